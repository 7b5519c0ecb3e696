"""Commands of every type, one a line; an empty ledger that can pay prizes accepts them in this order."""

_AT = '"at": "2026-03-02T00:00:00Z"'
_NINE = '"at": "2026-03-02T09:00:00Z"'
_OPEN = '"opens_at": "2026-03-02T00:00:00Z", "closes_at": "2026-03-06T00:00:00Z"'
_TEXT = f"""
{{"type": "open_question", {_AT}, "question": "rain", "kind": "binary", {_OPEN}}}
{{"type": "open_question", {_AT}, "question": "sky", "kind": "multiple_choice", "outcomes": ["blue", "grey"], {_OPEN}}}
{{"type": "open_question", {_AT}, "question": "heat", "kind": "numeric", "range": {{"lower": -10, "upper": 40, \
"bins": 5, "open_upper": true}}, {_OPEN}}}
{{"type": "open_question", {_AT}, "question": "rainfall", "kind": "numeric", "range": {{"lower": 0, "upper": 50, \
"levels": [0.1, 0.5, 0.9], "open_upper": true}}, {_OPEN}}}
{{"type": "open_question", {_AT}, "question": "climate", "kind": "multiple_choice", \
"outcomes": ["rain", "snow", "other"], {_OPEN}}}
{{"type": "submit_forecast", {_NINE}, "question": "rain", "participant": "ada", "probability": 0.8}}
{{"type": "submit_forecast", {_NINE}, "question": "rain", "participant": "bo", "probability": "0.35"}}
{{"type": "submit_forecast", {_NINE}, "question": "sky", "participant": "ada", \
"probabilities": {{"blue": 0.3, "grey": 0.7}}}}
{{"type": "submit_forecast", {_NINE}, "question": "heat", "participant": "ada", \
"cdf": [0, 0.2, 0.5, 0.8, 0.95, 0.99]}}
{{"type": "submit_forecast", {_NINE}, "question": "heat", "participant": "bo", \
"points": {{"levels": [0.1, 0.5, 0.9], "quantiles": [8, 14.5, 22], "method": "linear"}}}}
{{"type": "submit_forecast", {_NINE}, "question": "rainfall", "participant": "ada", "quantiles": [1, 4, 11.5], \
"attestation": {{"training_cutoff": "2025-06", "restricted_sources": false}}}}
{{"type": "open_question", {_AT}, "question": "snowfall", "kind": "numeric", "range": {{"lower": 0, "upper": 50, \
"samples": 4, "open_upper": true}}, {_OPEN}}}
{{"type": "submit_forecast", {_NINE}, "question": "snowfall", "participant": "ada", "samples": [0, 3.5, 0, 12]}}
{{"type": "change_outcomes", "at": "2026-03-02T12:00:00Z", "question": "climate", "add": ["hail"], \
"grace_ends_at": "2026-03-03T12:00:00Z"}}
{{"type": "withdraw_forecast", "at": "2026-03-03T00:00:00Z", "question": "heat", "participant": "ada"}}
{{"type": "open_contest", {_AT}, "contest": "week", "rules": "peer-2025-06", "pool": 500, "currency": "USD"}}
{{"type": "open_contest", {_AT}, "contest": "own-rules", "rules": {{"name": "brier and interval score", \
"kernel": "brier", "quantile_kernel": "pinball", "period": "covered", "total": "mean"}}}}
{{"type": "add_question", {_AT}, "contest": "week", "question": "rain", "weight": 2}}
{{"type": "enrol_participant", {_AT}, "contest": "week", "participant": "copybot", "bot": true}}
{{"type": "exclude_participant", {_AT}, "contest": "week", "participant": "bo", "level": "no_prize", \
"reason": "an organizer"}}
{{"type": "close_question", "at": "2026-03-05T00:00:00Z", "question": "heat"}}
{{"type": "reschedule_question", "at": "2026-03-05T12:00:00Z", "question": "rainfall", \
"closes_at": "2026-03-06T06:00:00Z", "reason": "the gauge is read at six"}}
{{"type": "amend_question", "at": "2026-03-05T12:00:00Z", "question": "rain", "contest": "week", "weight": 1.5, \
"title": "Rain in Bergen?"}}
{{"type": "resolve_question", "at": "2026-03-06T12:00:00Z", "question": "rain", "outcome": "yes"}}
{{"type": "resolve_question", "at": "2026-03-06T12:00:00Z", "question": "rainfall", "value": 6.2}}
{{"type": "annul_question", "at": "2026-03-06T12:00:00Z", "question": "heat", "reason": "the sensor failed"}}
{{"type": "restate_forecasts", "at": "2026-03-06T12:30:00Z", "question": "rain", "participant": "bo", \
"forecasts": [{{"at": "2026-03-02T09:00:00Z", "probability": 0.53}}], "reason": "the form had two digits exchanged"}}
{{"type": "rename_participant", "at": "2026-03-06T12:45:00Z", "participant": "bo", "to": "bo.larsen", \
"reason": "a new user name"}}
{{"type": "revoke_resolution", "at": "2026-03-06T13:00:00Z", "question": "rainfall", "reason": "a wrong gauge"}}
{{"type": "finalize_contest", "at": "2026-03-07T00:00:00Z", "contest": "week"}}
{{"type": "pay_prizes", "at": "2026-03-07T01:00:00Z", "contest": "week"}}
{{"type": "open_contest", {_AT}, "contest": "cohort-1", "rules": {{"name": "arena, open to deposits and trades", \
"kernel": "brier", "period": "covered", "total": "mean", "trading": {{"recapitalisation": true, \
"recorded_trades": true}}}}}}
{{"type": "add_question", {_AT}, "contest": "cohort-1", "question": "sky"}}
{{"type": "enrol_participant", {_AT}, "contest": "cohort-1", "participant": "ada", "family": "ada", \
"release": "ada-2"}}
{{"type": "deposit_cash", {_AT}, "contest": "cohort-1", "participant": "ada", "amount": 250, "reason": "a grant"}}
{{"type": "record_trade", "at": "2026-03-02T08:00:00Z", "contest": "cohort-1", "participant": "ada", \
"question": "sky", "outcome": "grey", "action": "buy", "shares": 12.5, "amount": 6.25, "fee": 0.02}}
{{"type": "quote", {_NINE}, "question": "sky", "prices": {{"blue": 0.4, "grey": 0.6}}, "source": "exchange", \
"quoted_at": "2026-03-02T09:00:00Z"}}
{{"type": "record_decision", "at": "2026-03-02T09:05:00Z", "contest": "cohort-1", "participant": "ada", \
"period": 1, "action": "BET", "bets": [{{"market_id": "sky", "side": "blue", "amount": 500}}], \
"reasoning": "The wind has turned."}}
{{"type": "record_failed_call", "at": "2026-03-08T00:04:00Z", "contest": "cohort-1", "participant": "ada", \
"period": 2, "error": "the provider answered 503", "call": {{"latency_ms": 40000}}}}
{{"type": "record_decision", "at": "2026-03-08T00:05:00Z", "contest": "cohort-1", "participant": "ada", \
"period": 2, "response": "{{\\"action\\": \\"HOLD\\", \\"reasoning\\": \\"Nothing new.\\"}}", \
"call": {{"input_tokens": 5200, "output_tokens": 310, "cost": 0.0187, "latency_ms": 8250, \
"settings": {{"temperature": 0, "max_tokens": 4000}}, "shown": ["sky"]}}}}
{{"type": "withdraw_cash", "at": "2026-03-08T01:00:00Z", "contest": "cohort-1", "participant": "ada", \
"amount": "99.50", "reason": "a fee"}}
{{"type": "resolve_question", "at": "2026-03-09T12:00:00Z", "question": "sky", \
"payouts": {{"blue": 0.5, "grey": 0.5}}}}
{{"type": "open_question", {_AT}, "question": "wind", "kind": "binary", {_OPEN}}}
{{"type": "cancel_market", "at": "2026-03-04T00:00:00Z", "question": "wind", "policy": "void_trades", \
"reason": "asked twice"}}
"""
LINES = tuple(f'{{"id": "{number}", {line[1:]}' for number, line in enumerate(_TEXT.strip().splitlines(), start=1))
