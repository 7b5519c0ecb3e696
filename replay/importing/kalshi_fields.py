"""The fields of Kalshi's API: each is used, or ignored for a reason."""

from forecast_ledger.replay.importing.source_items import Columns, ignored_fields

_WORDS = "words about the market"
_VOLUME = "how much was traded, or is offered"
_NOW = "prices of the moment at which the record was made, which it does not say"
_ORDERS = "how orders are taken"
_TIMES = "a time that decides nothing: the close and the settlement are read"
_STRIKE = "what the market asks, in numbers; its title says it"
_ON_SITE = "how markets are grouped and shown"
_ACCOUNT = "contracts of an account, which follow from its fills"
_BEFORE = "another price of the period, which is not its last"

COLUMNS = {
    "market": Columns(
        used=(
            *("ticker", "event_ticker", "title", "subtitle", "yes_sub_title", "category", "open_time", "created_time"),
            *("close_time", "status", "result", "settlement_ts", "settlement_value", "settlement_value_dollars"),
            *("notional_value", "notional_value_dollars"),
        ),
        ignored=ignored_fields(
            {
                _WORDS: """no_sub_title rules_primary rules_secondary early_close_condition expiration_value
                    primary_participant_key""",
                _VOLUME: """volume volume_fp volume_24h volume_24h_fp open_interest open_interest_fp liquidity
                    liquidity_dollars dollar_volume dollar_open_interest yes_bid_size_fp yes_ask_size_fp""",
                _NOW: """yes_bid yes_ask no_bid no_ask last_price previous_price previous_yes_bid previous_yes_ask
                    yes_bid_dollars yes_ask_dollars no_bid_dollars no_ask_dollars last_price_dollars
                    previous_price_dollars previous_yes_bid_dollars previous_yes_ask_dollars""",
                _ORDERS: """can_close_early risk_limit_cents tick_size price_level_structure price_ranges
                    response_price_units fee_waiver_expiration_time settlement_timer_seconds exchange_index
                    fractional_trading_enabled""",
                _TIMES: """expiration_time expected_expiration_time latest_expiration_time updated_time
                    occurrence_datetime""",
                _STRIKE: "market_type strike_type floor_strike cap_strike functional_strike custom_strike",
                _ON_SITE: "mve_collection_ticker mve_selected_legs is_provisional series_ticker",
            }
        ),
    ),
    "event": Columns(
        used=("event_ticker", "title", "category", "mutually_exclusive", "markets"),
        ignored=ignored_fields(
            {
                _WORDS: "sub_title settlement_sources product_metadata",
                _TIMES: "strike_date strike_period last_updated_ts",
                _ORDERS: "collateral_return_type available_on_brokers exchange_index",
                _ON_SITE: "series_ticker",
            }
        ),
    ),
    "trade": Columns(
        used=("ticker", "created_time", "yes_price", "yes_price_dollars"),
        ignored=ignored_fields(
            {
                "a trade may be there twice: of one instant the last price counts": "trade_id",
                "it is the rest of the price of yes": "no_price no_price_dollars price",
                _VOLUME: "count count_fp",
                "who took the order; each trade has one price": "taker_side taker_outcome_side taker_book_side",
            }
        ),
        only={"is_block_trade": [False]},
    ),
    "candlestick": Columns(
        used=("end_period_ts", "price", "yes_bid", "yes_ask"),
        ignored=ignored_fields({_VOLUME: "volume volume_fp open_interest open_interest_fp"}),
    ),
    "sides": Columns(
        used=("close", "close_dollars"),
        ignored=ignored_fields(
            {
                _BEFORE: """open open_dollars high high_dollars low low_dollars mean mean_dollars previous
                    previous_dollars min min_dollars max max_dollars"""
            }
        ),
    ),
    "fill": Columns(
        used=(
            *("fill_id", "trade_id", "ticker", "market_ticker", "outcome_side", "book_side", "side", "count"),
            *("count_fp", "created_time", "ts", "yes_price", "yes_price_dollars", "no_price", "no_price_dollars"),
            *("fee_cost", "subaccount_number"),
        ),
        ignored=ignored_fields(
            {
                _ORDERS: "order_id client_order_id is_taker exchange_index",
                "whether the order bought or sold: `side` says which outcome was acquired": "action",
                "other forms of it": "price yes_price_fixed no_price_fixed ts_ms purchased_side",
            }
        ),
    ),
    "settlement": Columns(
        used=(
            *("ticker", "market_result", "settled_time", "value", "revenue", "fee_cost"),
            *("yes_total_cost", "yes_total_cost_dollars", "no_total_cost", "no_total_cost_dollars"),
        ),
        ignored=ignored_fields(
            {
                _ACCOUNT: "yes_count yes_count_fp no_count no_count_fp",
                _ON_SITE: "event_ticker",
            }
        ),
    ),
}
