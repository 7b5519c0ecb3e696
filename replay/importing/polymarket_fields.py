"""The fields of Polymarket's Gamma and CLOB APIs: each is used, or ignored for a reason."""

from forecast_ledger.replay.importing.source_items import Columns, ignored_fields

_WORDS = "words about the market"
_LOOKS = "how the market is shown, and found, on the site"
_VOLUME = "how much was traded, or is offered"
_ORDERS = "how orders are taken"
_OTHER_TIMES = "another form of a time that is read, or one that decides nothing"
_RECORD = "when and by whom the record was made"
_CHANGES = "computed from prices"
_FEES = "fees and rewards of traders"
_GAME = "the game that the market is about"
_STATES = "a state that `closed`, `acceptingOrders` and `umaResolutionStatus` decide"
_OTHER_ID = "another id of the market or its question"
_OF_BOTH = {
    _WORDS: "description resolutionSource",
    _LOOKS: """image icon imageOptimized iconOptimized series categories commentsEnabled disqusThread commentCount
        requiresTranslation""",
    _VOLUME: """volume volume24hr volume1wk volume1mo volume1yr liquidity liquidityAmm liquidityClob competitive
        openInterest""",
    _ORDERS: "enableOrderBook cyom",
    _RECORD: "createdBy updatedBy creator",
    _STATES: """active archived new featured restricted automaticallyResolved automaticallyActive pendingDeployment
        deploying deployingTimestamp scheduledDeploymentTimestamp""",
    _GAME: "gameId score",
    _OTHER_ID: "negRiskMarketID",
}
_OF_MARKET = {
    _WORDS: "groupItemTitle groupItemThreshold groupItemRange sponsorName shortOutcomes",
    _LOOKS: """twitterCardImage twitterCardLocation twitterCardLastRefreshed twitterCardLastValidated seriesColor
        chartColor showGmpSeries showGmpOutcome sponsorImage wideFormat xAxisValue yAxisValue marketGroup curationOrder
        marketType formatType pastSlugs mailchimpTag sentDiscord""",
    _VOLUME: """volumeNum liquidityNum volumeAmm volumeClob volume24hrAmm volume1wkAmm volume1moAmm volume1yrAmm
        volume24hrClob volume1wkClob volume1moClob volume1yrClob""",
    _ORDERS: """orderPriceMinTickSize orderMinSize secondsDelay clearBookOnStart rfqEnabled notificationsEnabled
        pagerDutyNotificationEnabled ammType fpmmLive denominationToken customLiveness""",
    _OTHER_TIMES: """endDateIso startDateIso umaEndDateIso hasReviewedDates readyTimestamp fundedTimestamp
        eventStartTime""",
    _RECORD: "submitted_by resolvedBy approved version",
    _CHANGES: """spread lastTradePrice oneHourPriceChange oneDayPriceChange oneWeekPriceChange oneMonthPriceChange
        oneYearPriceChange""",
    _FEES: """fee makerBaseFee takerBaseFee feesEnabled feeType feeSchedule makerRebatesFeeShareBps rewardsMinSize
        rewardsMaxSpread holdingRewardsEnabled clobRewards rewards umaBond umaReward""",
    _STATES: "ready funded readyForCron manualActivation umaResolutionStatuses",
    _GAME: "gameStartTime sportsMarketType line teamAID teamBID",
    _OTHER_ID: "questionID marketMakerAddress negRiskRequestID negRiskOther",
    "bounds of a market of numbers, whose two outcomes are read": "lowerBound upperBound lowerBoundDate upperBoundDate",
}
_OF_EVENT = {
    _WORDS: "subtitle eventMetadata estimateValue cantEstimate estimatedValue tweetCount",
    _LOOKS: """ticker featuredImage featuredImageOptimized showAllOutcomes showMarketImages gmpChartMode carouselMap
        color sortBy subcategory isTemplate templateVariables parentEvent parentEventId subEvents collections
        eventCreators chats templates seriesSlug featuredOrder cumulativeMarkets countryName electionType""",
    _OTHER_TIMES: """startDate endDate closedTime creationDate createdAt updatedAt published_at startTime eventDate
        eventWeek finishedTimestamp""",
    _STATES: "closed",
    _GAME: "elapsed period live ended gameStatus spreadsMainLine totalsMainLine teams sport homeTeamName awayTeamName",
    "it changes no answer and no price": "enableNegRisk negRiskAugmented negRiskFeeBips",
}


COLUMNS = {
    "market": Columns(
        used=(
            *("id", "question", "conditionId", "slug", "clobTokenIds", "outcomes", "outcomePrices", "startDate"),
            *("acceptingOrdersTimestamp", "createdAt", "endDate", "closed", "closedTime", "umaEndDate"),
            *("umaResolutionStatus", "acceptingOrders", "bestBid", "bestAsk", "updatedAt", "category", "tags"),
            *("events", "negRisk"),
        ),
        ignored=ignored_fields(_OF_BOTH, _OF_MARKET),
    ),
    "event": Columns(
        used=("title", "slug", "category", "tags", "markets", "negRisk"),
        ignored=ignored_fields(_OF_BOTH, _OF_EVENT, {_OTHER_ID: "id"}),
    ),
    "activity": Columns(
        used=(
            *("proxyWallet", "type", "side", "asset", "conditionId", "size", "usdcSize", "price", "timestamp"),
            *("outcome", "transactionHash"),
        ),
        ignored=ignored_fields(
            {
                "the token or the name of the outcome is read": "outcomeIndex",
                _WORDS: "title slug eventSlug icon eventId",
                "who owns the wallet, in words that change": """name pseudonym bio profileImage
                    profileImageOptimized""",
            }
        ),
    ),
    "position": Columns(
        used=(
            *("proxyWallet", "asset", "conditionId", "outcome", "size", "totalBought", "realizedPnl", "cashPnl"),
            "curPrice",
        ),
        ignored=ignored_fields(
            {
                "computed from what is compared": """avgPrice initialValue currentValue percentPnl
                    percentRealizedPnl""",
                "the token or the name of the outcome is read": "outcomeIndex oppositeOutcome oppositeAsset",
                _WORDS: "title slug eventSlug icon eventId",
                _OTHER_TIMES: "endDate timestamp",
                "what can be done with the shares": "redeemable mergeable negativeRisk",
            }
        ),
    ),
    "prices": Columns(
        used=("history", "market", "token_id", "tokenId", "asset_id", "t", "p"),
        ignored={"fidelity": "how fine the history is, in minutes"},
    ),
}
