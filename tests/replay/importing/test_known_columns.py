"""Every column and field of the formats is used, or ignored for a reason; what is not known is named with its place."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.replay.importing.forecastbench import COLUMNS
from forecast_ledger.replay.importing.hub_config import FIELDS
from forecast_ledger.replay.importing.kalshi import COLUMNS as KALSHI
from forecast_ledger.replay.importing.kinds import KINDS
from forecast_ledger.replay.importing.manifold_markets import COLUMNS as MANIFOLD
from forecast_ledger.replay.importing.metaculus import BOTS_DIFFER, COLUMNS_OF_FORECASTS, SAME_NAME
from forecast_ledger.replay.importing.metaculus_questions import COLUMNS_OF_QUESTIONS
from forecast_ledger.replay.importing.polymarket_markets import COLUMNS as POLYMARKET
from forecast_ledger.replay.importing.question_forecasts import Following
from forecast_ledger.replay.importing.record_copy import FollowedCopy, record_copy
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import Columns
from tests.support.paths import DATA
from tests.support.sources import edit, ticking

# What each format has, as published: used, and ignored. Metaculus: `utils/csv_utils.py`, the headers that it writes
# now, and wrote (`MC Options`); words are in its API. ForecastBench: the sets of 2024-07-21 to 2026-09-27. The
# hubverse: the schemas of the configuration, 2.0.0 to 6.0.0. Polymarket: the answers of its API from 2020 to 2026.
# Manifold: `common/src` of its published code, `contract.ts`, `answer.ts`, `bet.ts` and `api/market-types.ts`.
# Kalshi: the answers of its API of 2023 to 2026.
USED = {
    "question_data.csv": """Question ID,Question URL,Question Title,Post ID,Default Project,Default Project ID,
        Categories,Leaderboard Tags,Label,Question Type,MC Options,MC Options (Current),MC Options (All),
        MC Options History,Lower Bound,Open Lower Bound,Upper Bound,Open Upper Bound,Continuous Range,Open Time,
        CP Reveal Time,Scheduled Close Time,Actual Close Time,Resolution,Resolution Known Time,
        Include Bots in Aggregates,Question Weight""",
    "forecast_data.csv": """Question ID,Forecaster ID,Forecaster Username,Forecaster (Anonymized),Is Bot,Start Time,
        End Time,Probability Yes,Probability Yes Per Category,Continuous CDF""",
    "set": "organization,model,forecast_due_date,question_set,question-set,questions,forecasts,resolutions",
    "questions": "id,source,question,url,resolution_dates",
    "forecasts": "id,source,forecast,resolution_date,direction,imputed,user_id",
    "resolutions": "id,source,resolution_date,resolved,direction,resolved_to",
    "tasks": "rounds",
    "round": "round_id,round_id_from_variable,model_tasks,submissions_due",
    "due": "relative_to,start,end",
    "task": "task_ids,output_type,target_metadata",
    "ids": "required,optional",
    "output": "output_type_id,output_type_id_params,value",
    "samples": "min_samples_per_task,max_samples_per_task",
    "value": "minimum,maximum",
    "target": "target_id,target_name,target_keys,target_type,is_step_ahead,time_unit",
    "admin": "model_output_dir",
    "target-data": "date_col",
    "polymarket market": """id,question,conditionId,slug,clobTokenIds,outcomes,outcomePrices,startDate,createdAt,
        endDate,acceptingOrdersTimestamp,closed,closedTime,umaEndDate,umaResolutionStatus,acceptingOrders,bestBid,bestAsk,
        updatedAt,category,tags,events,negRisk""",
    "polymarket event": "title,slug,category,tags,markets,negRisk",
    "polymarket prices": "history,market,token_id,tokenId,asset_id,t,p",
    "manifold market": """id,creatorUsername,createdTime,closeTime,question,slug,url,outcomeType,mechanism,probability,
        prob,isResolved,resolution,resolutionTime,resolutionProbability,resolutions,lastUpdatedTime,answers,
        shouldAnswersSumToOne,addAnswersMode,groupSlugs,min,max,isLogScale""",
    "manifold answer": "id,text,createdTime,probability,prob,resolution,resolutionTime,resolutionProbability",
    "manifold bet": """contractId,answerId,userId,userUsername,createdTime,probBefore,probAfter,amount,isAnte,
        isRedemption,limitProb,fills,betGroupId,id,outcome,shares""",
    "manifold position": "contractId,answerId,userId,userUsername,profit,payout,invested",
    "polymarket activity": """proxyWallet,type,side,asset,conditionId,size,usdcSize,price,timestamp,outcome,
        transactionHash""",
    "polymarket position": "proxyWallet,asset,conditionId,outcome,size,totalBought,realizedPnl,cashPnl,curPrice",
    "kalshi market": """ticker,event_ticker,title,subtitle,yes_sub_title,category,open_time,created_time,close_time,
        status,result,settlement_ts,settlement_value,settlement_value_dollars,notional_value,notional_value_dollars""",
    "kalshi event": "event_ticker,title,category,mutually_exclusive,markets",
    "kalshi trade": "ticker,created_time,yes_price,yes_price_dollars",
    "kalshi candlestick": "end_period_ts,price,yes_bid,yes_ask",
    "kalshi sides": "close,close_dollars",
    "kalshi settlement": """ticker,market_result,settled_time,value,revenue,fee_cost,yes_total_cost,
        yes_total_cost_dollars,no_total_cost,no_total_cost_dollars""",
    "kalshi fill": """fill_id,trade_id,ticker,market_ticker,outcome_side,book_side,side,count,count_fp,
        created_time,ts,yes_price,yes_price_dollars,no_price,no_price_dollars,fee_cost,subaccount_number""",
}
IGNORED = {
    "question_data.csv": "Post Curation Status,Post Published Time,Description,Resolution Criteria,Fine Print,Unit",
    "forecast_data.csv": """Forecaster Count,Probability Below Lower Bound,Probability Above Upper Bound,5th Percentile,
        25th Percentile,Median,75th Percentile,95th Percentile,Probability of Resolution,PDF at Resolution""",
    "set": "model_organization",
    "questions": """combination_of,resolution_criteria,background,source_intro,market_info_open_datetime,
        market_info_close_datetime,market_info_resolution_criteria,freeze_datetime,freeze_datetime_value,
        freeze_datetime_value_explanation""",
    "forecasts": "reasoning,searches,consulted_urls",
    "tasks": "schema_version,output_type_id_datatype,derived_task_ids",
    "round": "round_name,last_data_date,file_format,derived_task_ids,additional_metadata",
    "output": "is_required",
    "samples": "is_required,type,max_length",
    "value": "type",
    "target": "target_units,description,additional_metadata",
    "admin": """schema_version,name,maintainer,contact,citation,cloud,repository,repository_host,
        repository_url,zoltar_project_id,hub_models,additional_metadata,file_format,timezone""",
    "target-data": "schema_version,additional_metadata,observable_unit,versioned,time-series,oracle-output",
    "polymarket market": """twitterCardImage,twitterCardLocation,twitterCardLastRefreshed,twitterCardLastValidated,
        resolutionSource,ammType,liquidity,sponsorName,sponsorImage,xAxisValue,yAxisValue,denominationToken,fee,image,
        icon,lowerBound,upperBound,description,volume,active,marketType,formatType,lowerBoundDate,upperBoundDate,
        marketMakerAddress,createdBy,updatedBy,wideFormat,new,mailchimpTag,featured,archived,resolvedBy,restricted,
        marketGroup,groupItemTitle,groupItemThreshold,groupItemRange,questionID,enableOrderBook,orderPriceMinTickSize,
        orderMinSize,curationOrder,volumeNum,liquidityNum,endDateIso,startDateIso,umaEndDateIso,hasReviewedDates,
        readyForCron,commentsEnabled,volume24hr,volume1wk,volume1mo,volume1yr,gameStartTime,secondsDelay,disqusThread,
        shortOutcomes,teamAID,teamBID,umaBond,umaReward,fpmmLive,volume24hrAmm,volume1wkAmm,volume1moAmm,volume1yrAmm,
        volume24hrClob,volume1wkClob,volume1moClob,volume1yrClob,volumeAmm,volumeClob,liquidityAmm,liquidityClob,
        makerBaseFee,takerBaseFee,customLiveness,notificationsEnabled,pagerDutyNotificationEnabled,score,imageOptimized,
        iconOptimized,categories,series,creator,ready,funded,pastSlugs,readyTimestamp,fundedTimestamp,competitive,
        rewardsMinSize,rewardsMaxSpread,spread,automaticallyResolved,oneHourPriceChange,oneDayPriceChange,
        oneWeekPriceChange,oneMonthPriceChange,oneYearPriceChange,lastTradePrice,automaticallyActive,clearBookOnStart,
        chartColor,seriesColor,showGmpSeries,showGmpOutcome,manualActivation,negRiskOther,negRiskMarketID,
        negRiskRequestID,gameId,sportsMarketType,line,umaResolutionStatuses,pendingDeployment,deploying,
        deployingTimestamp,scheduledDeploymentTimestamp,rfqEnabled,eventStartTime,submitted_by,sentDiscord,approved,
        version,feesEnabled,feeType,feeSchedule,makerRebatesFeeShareBps,holdingRewardsEnabled,clobRewards,rewards,
        requiresTranslation,cyom,openInterest,commentCount""",
    "polymarket event": """id,ticker,subtitle,description,resolutionSource,startDate,creationDate,endDate,image,icon,
        active,closed,archived,new,featured,restricted,liquidity,volume,openInterest,sortBy,subcategory,isTemplate,
        templateVariables,published_at,createdBy,updatedBy,createdAt,updatedAt,commentsEnabled,competitive,volume24hr,
        volume1wk,volume1mo,volume1yr,featuredImage,disqusThread,parentEvent,parentEventId,enableOrderBook,liquidityAmm,
        liquidityClob,negRiskMarketID,negRiskFeeBips,commentCount,imageOptimized,iconOptimized,featuredImageOptimized,
        subEvents,series,categories,collections,cyom,closedTime,showAllOutcomes,showMarketImages,automaticallyResolved,
        enableNegRisk,automaticallyActive,eventDate,startTime,eventWeek,seriesSlug,score,elapsed,period,live,ended,
        finishedTimestamp,gmpChartMode,eventCreators,tweetCount,chats,featuredOrder,estimateValue,cantEstimate,
        estimatedValue,templates,spreadsMainLine,totalsMainLine,carouselMap,pendingDeployment,deploying,
        deployingTimestamp,scheduledDeploymentTimestamp,gameStatus,negRiskAugmented,cumulativeMarkets,eventMetadata,
        requiresTranslation,gameId,teams,sport,homeTeamName,awayTeamName,countryName,electionType,color,creator""",
    "manifold market": """unit,value,resolutionValue,initialValue,precision,
        creatorId,creatorName,creatorAvatarUrl,creatorCreatedTime,description,textDescription,
        visibility,lastBetTime,lastCommentTime,deleted,resolverId,isSpicePayout,closeEmailsSent,volume,volume24Hours,
        elasticity,collectedFees,uniqueBettorCount,uniqueBettorCountDay,unlistedById,featuredLabel,isTwitchContract,
        coverImageUrl,isRanked,gptCommentSummary,marketTier,loverUserId1,loverUserId2,matchCreatorId,isLove,isSubsidized,
        isPolitics,popularityScore,importanceScore,dailyScore,freshnessScore,conversionScore,viewCount,likedByUserCount,
        pool,p,totalLiquidity,subsidyPool,probChanges,specialLiquidityPerAnswer,sort,initialProbability,tags,token,
        siblingContractId,takerAPIOrdersDisabled,boosted""",
    "manifold answer": """contractId,userId,poolYes,poolNo,pool,totalLiquidity,subsidyPool,probChanges,volume,index,
        isOther,shortText,imageUrl,color,textFts,resolverId,midpoint""",
    "manifold position": """id,from,hasNoShares,hasShares,hasYesShares,lastBetTime,lastProb,loan,marginLoan,
        maxSharesOutcome,profitPercent,profitAdjustment,totalAmountInvested,totalAmountSold,totalShares,totalSpent,
        userName,userAvatarUrl""",
    "manifold bet": """betId,userAvatarUrl,userName,loanAmount,sharesByOutcome,fees,isApi,isChallenge,
        visibility,challengeSlug,isSold,sale,replyToCommentId,orderAmount,isFilled,isCancelled,expiresAt,silent,
        updatedTime,comment,deps,clientVersion""",
    "kalshi market": """market_type,no_sub_title,expiration_time,expected_expiration_time,latest_expiration_time,
        settlement_timer_seconds,response_price_units,yes_bid,yes_ask,no_bid,no_ask,last_price,previous_yes_bid,
        previous_yes_ask,previous_price,yes_bid_dollars,yes_ask_dollars,no_bid_dollars,no_ask_dollars,last_price_dollars,
        previous_yes_bid_dollars,previous_yes_ask_dollars,previous_price_dollars,yes_bid_size_fp,yes_ask_size_fp,volume,
        volume_fp,volume_24h,volume_24h_fp,open_interest,open_interest_fp,liquidity,liquidity_dollars,dollar_volume,
        dollar_open_interest,can_close_early,early_close_condition,expiration_value,risk_limit_cents,tick_size,
        price_level_structure,price_ranges,fee_waiver_expiration_time,exchange_index,fractional_trading_enabled,
        updated_time,occurrence_datetime,strike_type,floor_strike,cap_strike,functional_strike,custom_strike,
        rules_primary,rules_secondary,primary_participant_key,mve_collection_ticker,mve_selected_legs,is_provisional,
        series_ticker""",
    "kalshi event": """series_ticker,sub_title,collateral_return_type,settlement_sources,strike_date,strike_period,
        last_updated_ts,exchange_index,available_on_brokers,product_metadata""",
    "kalshi trade": """trade_id,no_price,no_price_dollars,price,count,count_fp,taker_side,taker_outcome_side,
        taker_book_side""",
    "kalshi candlestick": "volume,volume_fp,open_interest,open_interest_fp",
    "kalshi sides": """open,open_dollars,high,high_dollars,low,low_dollars,mean,mean_dollars,previous,previous_dollars,
        min,min_dollars,max,max_dollars""",
    "kalshi settlement": "event_ticker,yes_count,yes_count_fp,no_count,no_count_fp",
    "kalshi fill": """order_id,client_order_id,is_taker,exchange_index,action,price,yes_price_fixed,no_price_fixed,
        ts_ms,purchased_side""",
    "polymarket prices": "fidelity",
    "polymarket activity": """outcomeIndex,title,slug,icon,eventId,eventSlug,name,pseudonym,bio,profileImage,
        profileImageOptimized""",
    "polymarket position": """avgPrice,initialValue,currentValue,percentPnl,percentRealizedPnl,redeemable,mergeable,
        title,slug,icon,eventId,eventSlug,outcomeIndex,oppositeOutcome,oppositeAsset,endDate,timestamp,negativeRisk""",
}
TABLES: dict[str, Columns] = {
    "question_data.csv": COLUMNS_OF_QUESTIONS,
    "forecast_data.csv": COLUMNS_OF_FORECASTS,
    **COLUMNS,
    **FIELDS,
    **{f"polymarket {kind}": columns for kind, columns in POLYMARKET.items()},
    **{f"kalshi {kind}": columns for kind, columns in KALSHI.items()},
    **{f"manifold {kind}": columns for kind, columns in MANIFOLD.items()},
}


def names(listed: str) -> set[str]:
    """The names in a list with commas."""
    return {name.strip() for name in listed.split(",") if name.strip()}


@pytest.mark.parametrize("table", TABLES)
def test_every_column_of_a_format_is_used_or_ignored(table: str) -> None:
    """The lists are those of the formats."""
    assert {*TABLES[table].used} == names(USED[table])
    assert {*TABLES[table].ignored} == names(IGNORED.get(table, ""))


def told(kind: str, path: Path) -> list[str]:
    """What an import says that it does not carry over; nothing is refused."""
    now = read_instant("2026-06-01T00:00:00Z")
    copy = FollowedCopy(KINDS[kind].read(SourceFiles(path), None), Following(now))
    with ticking() as ledger:
        assert record_copy(ledger, copy, lambda *_: None)["refused"] == 0
    return copy.left_out.lines()


def rewritten(path: Path, change: Callable[[list[dict[str, str]]], object]) -> None:
    """Change the rows of a CSV."""
    rows = list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))
    change(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8", newline="")


def with_columns(name: str, *cells: str) -> Callable[[list[dict[str, str]]], object]:
    """A column with these cells in the first rows, and another that is empty."""
    return lambda rows: [
        row.update({name: cell, "Empty": ""}) for row, cell in zip(rows, [*cells, *[""] * len(rows)], strict=False)
    ]


SOURCES = {kind: DATA / f"{'hub' if kind == 'hubverse' else kind}-import" for kind in KINDS}
Change = Callable[[Any], object]
TASK = "hub-config/tasks.json"
CHANGES: list[tuple[str, str, Change, str]] = [
    (
        "metaculus",
        "question_data.csv",
        with_columns("Spot Scoring Time", "", "2026-03-02", "2026-03-03"),
        "a column that is not read: 'Spot Scoring Time' (question_data.csv, line 3)",
    ),
    (
        "metaculus",
        "forecast_data.csv",
        with_columns("Weight", "2"),
        "a column that is not read: 'Weight' (forecast_data.csv, line 2)",
    ),
    (
        "metaculus",
        "question_data.csv",
        lambda rows: [rows[number].update({"Post Curation Status": "pending"}) for number in (1, 2)],
        "a value that is not read of the column 'Post Curation Status': 'pending' (question_data.csv, line 3)",
    ),
    (
        "metaculus",
        "question_data.csv",
        lambda rows: rows[3].update({"Include Bots in Aggregates": "True"}),
        f"{BOTS_DIFFER} (question_data.csv, line 5)",
    ),
    (
        "metaculus",
        "question_data.csv",
        lambda rows: rows[3].update({"Default Project ID": "8"}),
        f"{SAME_NAME} (question_data.csv, line 5)",
    ),
    (
        "forecastbench",
        "question_sets/2026-03-01-llm.json",
        lambda said: [each.update({"weight": 2, "empty": "N/A"}) for each in said["questions"]],
        "a field that is not read: 'weight' (question_sets/2026-03-01-llm.json, questions item 1)",
    ),
    (
        "forecastbench",
        "forecast_sets/2026-03-01/2026-03-01.Acme.1.json",
        lambda said: said["forecasts"][1].update({"resolved_to": 1.0, "market_value_on_due_date": None}),
        "a field that is not read: 'resolved_to' (forecast_sets/2026-03-01/2026-03-01.Acme.1.json, forecasts item 2)",
    ),
    (
        "forecastbench",
        "resolution_sets/2026-03-01_resolution_set.json",
        lambda said: said.update({"version": 2}),
        "a field that is not read: 'version' (resolution_sets/2026-03-01_resolution_set.json)",
    ),
    (
        "hubverse",
        TASK,
        lambda said: said["rounds"][0]["model_tasks"][1]["target_metadata"][0].update(target_type="compositional"),
        f"a value that is not read of the field 'target_type': 'compositional' ({TASK})",
    ),
    (
        "hubverse",
        TASK,
        lambda said: said["rounds"][0]["model_tasks"][0]["output_type"]["quantile"].update(transform="log"),
        f"a field that is not read: 'transform' ({TASK})",
    ),
    (
        "polymarket",
        "events.json",
        lambda said: [each.update({"payoutUnit": 2, "empty": ""}) for each in said[1]["markets"]],
        "a field that is not read: 'payoutUnit' (events.json, item 2, market 1)",
    ),
    (
        "polymarket",
        "events.json",
        lambda said: said[1].update({"exclusive": True}),
        "a field that is not read: 'exclusive' (events.json, item 2)",
    ),
    (
        "polymarket",
        "prices-history/71001.json",
        lambda said: said["history"][1].update({"v": 7}),
        "a field that is not read: 'v' (prices-history/71001.json, price 2)",
    ),
    (
        "manifold",
        "markets.json",
        lambda said: said[3]["answers"][1].update({"weight": 2}),
        "a field that is not read: 'weight' (markets.json, item 4)",
    ),
    (
        "manifold",
        "bets.json",
        lambda said: [each.update({"leverage": 2}) for each in said[1:]],
        "a field that is not read: 'leverage' (bets.json, item 2)",
    ),
    (
        "kalshi",
        "candlesticks.json",
        lambda said: said["markets"][0]["candlesticks"][1]["yes_bid"].update({"median_dollars": "0.2900"}),
        "a field that is not read: 'median_dollars' (candlesticks.json, markets 1, candlestick 2)",
    ),
    (
        "kalshi",
        "events.json",
        lambda said: said["events"][0].update({"exclusive": True}),
        "a field that is not read: 'exclusive' (events.json, events 1)",
    ),
    ("hubverse", "hub-config/admin.json", lambda said: said.update(scores=["wis"]), "'scores' (hub-config/admin.json)"),
]


@pytest.mark.parametrize(("kind", "file", "change", "expected"), CHANGES)
def test_what_is_not_known_is_named_once_in_its_file(
    kind: str, file: str, change: Change, expected: str, tmp_path: Path
) -> None:
    """With its first place; cells that are empty say nothing, and the rest is imported as before."""
    folder = Path(shutil.copytree(SOURCES[kind], tmp_path / "source"))
    before = told(kind, folder)
    if file.endswith(".csv"):
        rewritten(folder / file, change)
    else:
        content = json.loads((folder / file).read_text(encoding="utf-8"))
        change(content)
        (folder / file).write_text(json.dumps(content), encoding="utf-8")
    [line] = [line for line in told(kind, folder) if line not in before]
    assert line.startswith("not carried over: 1 x ")
    assert expected in line


def test_what_else_a_hub_has_is_named(tmp_path: Path) -> None:
    """Columns of target data that say something, and settings of another program; checks of submissions are not."""
    folder = Path(shutil.copytree(DATA / "hub-import", tmp_path / "hub"))
    before = told("hubverse", folder)
    for name in ("predevals-config.yml", "validations.yml"):
        (folder / "hub-config" / name).write_text("x: 1\n", encoding="utf-8")
    edit(
        folder / "target-data/time-series.csv",
        lambda text: "\n".join(
            f"{line},{'rate,empty' if not number else f'0.{number},NA'}"
            for number, line in enumerate(text.splitlines())
        ),
    )
    assert [line.partition(" x ")[2] for line in told("hubverse", folder) if line not in before] == [
        "a file of hub-config that is not read (hub-config/predevals-config.yml)",
        "a column that is no task id, so that no answer depends on it: 'rate' (target-data/time-series.csv, line 2)",
    ]
