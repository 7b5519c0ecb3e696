"""The fields of markets, answers and bets of Manifold's API and data dump: each is used, or ignored for a reason."""

from forecast_ledger.replay.importing.source_items import Columns, ignored_fields

_WORDS = "words and pictures"
_PEOPLE = "who made or resolved the market, and who is interested in it"
_VOLUME = "how much was bet, and the pools of the market maker"
_ON_SITE = "how the market is shown, and found, on the site"
_ORDER = "parts of an order; what it did to the probability is read"
_MONEY = "parts of the amount, and what changes a balance and no profit"

COLUMNS = {
    "market": Columns(
        used=(
            *("id", "creatorUsername", "createdTime", "closeTime", "question", "slug", "url", "outcomeType"),
            *(
                "mechanism",
                "probability",
                "prob",
                "isResolved",
                "resolution",
                "resolutionTime",
                "resolutionProbability",
            ),
            *("resolutions", "lastUpdatedTime", "answers", "shouldAnswersSumToOne", "addAnswersMode", "groupSlugs"),
            *("min", "max", "isLogScale"),
        ),
        ignored=ignored_fields(
            {
                _WORDS: """description textDescription coverImageUrl creatorAvatarUrl featuredLabel tags
                    gptCommentSummary unit""",
                "the number that a probability stands for": "value resolutionValue initialValue precision",
                _PEOPLE: """creatorId creatorName creatorCreatedTime resolverId uniqueBettorCount uniqueBettorCountDay
                    likedByUserCount viewCount loverUserId1 loverUserId2 matchCreatorId isLove""",
                _VOLUME: """pool p volume volume24Hours totalLiquidity subsidyPool specialLiquidityPerAnswer elasticity
                    collectedFees probChanges isSubsidized initialProbability isSpicePayout token siblingContractId
                    takerAPIOrdersDisabled""",
                _ON_SITE: """visibility unlistedById deleted isRanked isPolitics isTwitchContract marketTier
                    popularityScore importanceScore dailyScore freshnessScore conversionScore closeEmailsSent sort
                    lastBetTime lastCommentTime boosted""",
            }
        ),
    ),
    "answer": Columns(
        used=(
            "id",
            "text",
            "createdTime",
            "probability",
            "prob",
            "resolution",
            "resolutionTime",
            "resolutionProbability",
        ),
        ignored=ignored_fields(
            {
                _WORDS: "shortText imageUrl color textFts",
                _PEOPLE: "userId resolverId contractId",
                _VOLUME: "pool poolYes poolNo totalLiquidity subsidyPool probChanges volume",
                _ON_SITE: "index isOther midpoint",
            }
        ),
    ),
    "position": Columns(
        used=("contractId", "answerId", "userId", "userUsername", "profit", "payout", "invested"),
        ignored=ignored_fields(
            {
                "other results, and those of a day, a week or a month": """profitPercent from totalAmountSold
                    totalAmountInvested totalSpent profitAdjustment""",
                "a loan changes the balance, and no profit": "loan marginLoan",
                "what is held, which follows from the bets": """hasNoShares hasShares hasYesShares maxSharesOutcome
                    totalShares lastBetTime lastProb""",
                _ON_SITE: "id userName userAvatarUrl",
            }
        ),
    ),
    "bet": Columns(
        used=(
            *("contractId", "answerId", "userId", "userUsername", "createdTime", "probBefore", "probAfter", "amount"),
            *("isAnte", "isRedemption", "limitProb", "fills", "betGroupId", "id", "outcome", "shares"),
        ),
        ignored=ignored_fields(
            {
                _ORDER: "orderAmount isFilled isCancelled expiresAt silent isApi isChallenge challengeSlug",
                _MONEY: "sharesByOutcome loanAmount fees isSold sale",
                _ON_SITE: """betId updatedTime visibility userName userAvatarUrl replyToCommentId comment
                    deps clientVersion""",
            }
        ),
    ),
}
