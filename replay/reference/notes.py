"""The prose of the reference, and its glossary."""


def _paragraphs(text: str) -> tuple[str, ...]:
    """Return the paragraphs and list items of a text, each on one line."""
    return tuple(" ".join(part.split()) for part in text.strip().replace("\n- ", "\n\n- ").split("\n\n"))


COMMANDS = _paragraphs("""
A command is one JSON object on one line: `id`, `type`, `at`, then the fields of its type. `forecast-ledger append`
reads a file of commands; `forecast-ledger schema commands` prints their JSON Schema. `?` marks an optional field; null
counts as absent.

Numbers are JSON numbers or decimal text; they are rounded half-even to the unit of their field. Instants are RFC 3339
with an offset. A command with an unknown field is refused.

`at` is the instant that the command claims. Without it, the ledger stamps the instant at which it records the command,
or that of an earlier command on the same subject if it claims a later one. The digest of such a command has no instant.
""")
PROVENANCE = _paragraphs("""
Every command may say who asks for it, why, and what shows that it is right. Every row of the command has what it says,
and `log`, `show`, `explain`, `blame` and `audit` print it. Nobody checks it, and no address is opened.

`by`, `reason` and `evidence` are part of the command: with another of them, it is another command, which needs another
id. `correlation` and `causation` are ids of the program that sends it. They are not part of it: a retry may have
others, and the row keeps those of the command that was recorded. Some commands need a reason, which is then a field of
their event.
""")
EXAMPLES = "Commands of every type. An empty ledger accepts them in this order:"
EVENTS = _paragraphs("""
An event is a fact that a command led to: one JSON object with a `type`, `at` and its fields. The type is the stored
name of the event and never changes. `forecast-ledger schema events` prints the JSON Schema of events.

Numbers are integers, or exact decimal text where a range has no unit. Instants are µs since the epoch in UTC,
probabilities and prices 1e-9, cumulative probabilities 1e-10, money, shares and weights 1e-6, percentages 1e-6 of a
percent. A field that has its default value is left out.

A row of the log is one line of JSON that contains the event. Its bytes are canonical: no floats, fields in one order.
""")
REFUSALS = _paragraphs("""
A command that breaks a rule is refused, and nothing of it is recorded. The codes are in order of precedence: if two
apply, the earlier one is reported. If the usual remedy does not fit a case, the refusal has its own remedy.
""")
ERRORS = _paragraphs("""
Every error is a `LedgerError` with `to_dict()` and `as_json()`; `append --errors json` prints one error a line. An
error has those of the following keys that apply, in this order. Keys, kinds of error and codes do not change; other
wording may. `forecast-ledger schema errors` prints the JSON Schema of errors.
""")
STATUSES = _paragraphs("""
Every class of errors has the status that a service answers with, `http_status`, and `retryable`: whether it helps to
make the same call again, under the same id. It does not before a command is corrected, a process upgraded or a log
repaired.
""")
RULES = _paragraphs("""
The `rules` of a contest are the name of a preset, or a whole rule set: an object with a `name` and the fields that
differ from their defaults; in Python a dict of them, or a `RuleSet`. The first event of a contest contains the whole
rule set, so a later change of a preset does not change an old contest. The fields from `consensus_of` on are newer than
the others: the event contains them only if they differ from their defaults, so that the bytes of older logs stay the
same.

A score is kernel x reference x sampling x scale; a board is total x take x rank. A rule set that contradicts itself
is refused, and the refusal names the fields to change. For example, a kernel whose scores are better when lower needs a
reference, or else the period `covered` and a total of means.

A kernel is rounded once, to 1e-12 (`pinball` to four decimals more than its question has, 12 at most). An average
whose logarithm is taken is rounded to 1e-18, and so is the n / (n - 1) of peers in each step. Sums are exact.

Prizes divide the pool in proportion to the takes, in payable units by largest remainder; ties go by id. If the pool is
below the least prize, nobody is paid.
""")
PRESETS = _paragraphs("""
The `relative` presets are Metaculus's tournament scores before April 6th, 2022 (`relative-2021-11`), as published on
that day (`relative-2022-04`), and as described in its Scores FAQ (`relative-faq`). The `baseline`, `peer` and `spot`
presets are those of the same FAQ; `peer-2025-06` adds the least prize of June 2025; `peer-average` is the average over
contests of January 2024. `autocast-2022` is the Autocast competition of 2022, `brier-daily` the daily Brier score of
the forecasting tournaments of the 2010s, and `arena-v1` and `arena-v2` are the two methodologies of Forecaster Arena.
The folder `data` has worked examples of each.
""")
READINGS = "Where documents disagree, or a document and the code behind it, a rule set can follow either:"
DISAGREEMENTS: tuple[tuple[str, str, str], ...] = (
    (
        "base of the legacy score in the take e^score",
        "`relative-2022-04`: natural",
        "`relative-faq`: base 2",
    ),
    (
        "legacy score and coverage after an early close",
        "`scheduled`: the rest of the period counts as 0, as both documents say",
        (
            '`"period":"actual"` divides the score, and `"coverage_period":"actual"` the coverage, by the '
            "time until the answer was known; the code behind the documents did both"
        ),
    ),
    (
        "days cut short",
        "`brier-daily` counts full days only",
        (
            '`"day_edges":"both"` also counts the day of the opening and the day on which scored time ends, by '
            "what then stands; `opening` counts only the first of these two"
        ),
    ),
    (
        'the median of "all other" forecasts',
        "a participant's own forecast is included, as in the example of the 2022 document",
        '`"consensus_of":"others"`: it is not included',
    ),
    (
        "numeric consensus",
        "`median` of the outcome's probabilities",
        "`community`: the mean of the cumulative distributions",
    ),
    (
        "consensus of multiple choice",
        "`median` of the outcome's probabilities",
        (
            "`squeezed`: the medians of all outcomes, normalised and limited to 0.1% to 99.9%, as in Metaculus's "
            "code since October 2024"
        ),
    ),
    (
        "peer score of numeric questions",
        "half, 50, as published with the figures",
        '`"scale":"peer_whole"`: 100, as the formula is printed',
    ),
    (
        "best and worst peer score",
        "±690.8 = 100 ln 1000; between 0.1% and 99.9% ±690.7 = 100 ln 999",
        '`"kernel":"log2"`: ±996 = 100 log2 999',
    ),
    (
        "probabilities above 99.9%, densities above 35 times the uniform density",
        "not changed",
        (
            '`"greatest_probability_ppm":999000`, `"greatest_density_ppm":35000000`: capped, which makes '
            "+99.9 and +183 the best baseline scores"
        ),
    ),
    (
        "the uniform 0.01 in a numeric density",
        "the least density: a smaller one counts as 0.01",
        '`"density_floor":"added"`: added to every density',
    ),
    (
        "the least prize before October 2025",
        "the smallest takes are dropped first",
        '`"least_prize_passes":"one"`: all at once',
    ),
    (
        "equal takes below the least prize",
        "dropped together",
        '`"least_prize_passes":"one_by_one"`: the last id first',
    ),
    (
        "a bot compared with n members",
        '`"scored_only_factor":"one"`, as the text says',
        "`members`: n / (n - 1), as in the code, and nothing if n is 1",
    ),
    (
        "the Brier score of several outcomes",
        "`brier` halves it, `brier_sum` does not, `brier_mean` divides it by the number of outcomes",
        "all three kernels exist",
    ),
    (
        "the combined metric of the Autocast competition",
        "100 times the sum of three means",
        (
            '`"total":"kind_means_third"`: a third of it; `"kernel":"error"`: accuracies less distance, as '
            "printed by the notebooks"
        ),
    ),
    (
        "a numeric answer or point beyond the range",
        "refused",
        '`"quantile_kernel":"absolute_clipped"` with open ends: clipped',
    ),
)
TRADING = _paragraphs("""
In a contest whose rule set has `trading` rules, participants buy shares of the outcomes of its questions at quoted
prices, with the cash of their accounts. `arena-v1` and `arena-v2` are Forecaster Arena's two methodologies; `trading`
accepts other numbers. These presets also have the kernel `brier`: forecasts on the same questions are scored in
`scores` and `leaderboard`, beside `bet_brier` and `arena_leaderboard`. The folder `data/arena-week` is a worked
example.
""")
TRADING_MECHANICS = _paragraphs("""
- Start: a `weekly` contest starts on the latest Sunday 00:00 UTC that is not after `starts_at` (else `at`). A series
  has one contest a week, and only its newest `deciding_cohorts` contests accept decisions.
- Enrolment: `enrol_participant` grants `starting_cash`, once. `family` and `release` identify the competitor and its
  version, and cannot change. `deposit_cash` and `withdraw_cash` need `recapitalisation`.
- Quotes: `quote` gives the prices of one question or of several, or the bids and asks of their outcomes, or both. The
  price is the mean of bid and ask if the command gives no other. In a binary question, the bid of no is 1 - the ask of
  yes, and its ask 1 - the bid of yes. A bid above its ask is refused (`crossed_quote`). A missing price is never
  assumed. One bad price refuses all, unless the command has `skip_bad`.
- Decisions: `record_decision` is a participant's decision for a period of `period_days`, counted from 1 at the
  contest's start. The text of a reply is read as the rule `replies` says; a list that is null is empty. A reply that is
  not a valid decision is recorded as malformed, with its fault. After `attempts`
  malformed replies the decision is HOLD by default, which stays distinguishable from a HOLD that was chosen. If every
  leg of an attempt was refused, another attempt may follow; every attempt stays in the log. The same attempt sent
  again is a duplicate, whatever its command id; with different content it is refused.
- `call` keeps what a call of the model used, cost and took, its settings, and the markets that it was shown; the table
  `model_calls` has a row for each. `record_failed_call` records a call that brought no reply, which uses up no attempt.
- Legs are carried out in order, each after the effects of the one before. The largest bet is cash / `cap_divisor`,
  rounded down, before each leg; the reply as a whole is checked against the largest bet at its start. If bets are
  `all_or_nothing`, one refused bet refuses all of them.
- A bet buys amount / price shares, rounded down to 1e-6, and adds to the open position on that outcome at average
  cost. Its confidence is amount / largest bet.
- Against one of several outcomes: with `shares_against`, a bet with the side `not NAME` buys shares that pay 1 if that
  outcome does not come true, and 1 - its part of `payouts`. Their price is 1 - the price of the outcome; at bid and ask
  they are bought at 1 - its bid, of which they take the depth, and sold at 1 - its ask. They are a position of their
  own, which tables call `not NAME`. Without the rule, as in logs from before it, such a bet is refused
  (`unknown_side`), and a bet on each of the other outcomes says the same.
- A sale is a percentage of the shares held at that time, with the same percentage of their cost. A sale of 100 closes
  the position at exactly 0; a later bet opens a position with a new number.
- Depth: with `depth` `refuse` or `partial`, an account can buy and sell as many shares at a quote as its sizes say, in
  all its legs together, until the next quote of the question. Buying no of a binary question takes from the bids of
  yes. Trades of other accounts take nothing. A bet that is filled in part pays for the shares that it gets, rounded up;
  its confidence is that of the bet as it was made. A quote that does not say its sizes is not limited.
- Fees: with `fee_rate_ppm`, every purchase and sale has a fee. Limits of bets do not include it; a bet is refused if
  the cash does not cover its amount and its fee. The cost of a position has no fees in it: a fee lowers the realised
  profit when it is paid. It is booked as `fees` in `journal` and listed in the table `fees`. Settlements and refunds
  are free. `void_trades` gives fees back, the other policies do not. `arena-v1-kalshi` and `arena-v1-polymarket` have
  the fees of these exchanges for orders that are filled at once. A contest has one rate.
- Trades of elsewhere: with `recorded_trades`, `record_trade` records a trade as it happened on another market, with its
  shares and its money: no quote, no period and no limit of bets. It is in the table `trades` without a price of a
  quote, has no confidence, and is not scored. `all_but` is a share of every other outcome, which together pay what no
  of it pays; with `shares_against` it is a share against it, which also pays if an outcome that is added later comes
  true. Neither outcome nor all_but is a complete set. The amount of a trade in several outcomes is divided equally
  between them. More shares than are held can be sold with `short_sales`: they are owed, at the price that came in, and
  paid for at the resolution. With `overdrafts` the cash may become negative. Such a trade may be of an instant after
  the close, until the question is resolved. A contest with `recorded_trades` needs no decisions to be finalized.
- A resolution settles every open position in its own transaction: 1 a share of the outcome, or its part of `payouts`.
  If there are payouts, no outcome is known, and forecasts are scored only if the rule set says so. `cancel_market`
  annuls the question and gives back what open positions cost (`refund_cost`, as `annul_question` does), or undoes all
  trades (`void_trades`), or gives back what was paid for a position less what was received for its shares, and takes
  nothing from who received more (`refund_stake`). If 700 was paid for a position and a part of it sold for 450,
  `refund_stake` gives 250 back; if the part brought 810, it gives nothing, and the 110 stay.
- If a resolution is revoked, its settlement of each position is reversed. Cash may become negative; such a debt is
  shown and never forgiven. If an annulment that came after a resolution is revoked, every open position is settled by
  that resolution again.
- A contest is complete when every participant has made a decision (HOLD counts) and no position is open. If
  `completed_by` is `shown`, it does not wait for hidden participants; what they hold when it is finalized stays open.
  From then on it accepts no decisions and no enrolments, and can be finalized. While a question is closed and not
  resolved, its positions are pending.
- A snapshot of a portfolio contains what is known at its instant, by the instants that commands claim. A quote is known
  from the `at` of its command, not from its `quoted_at`, and not before the previous quote of the question. A movement
  counts from its `at`, and not before the previous movement of the account, nor before its quote is known. Snapshots
  at ticks and at movements follow the same rule; a snapshot at a movement leaves out later rows of the log. Ticks go
  on until the latest instant that any event claims. The field `clock` of a rule set is about forecasts only.
- The value of a position is its shares at the last quote that is known. A mark is stale if it was quoted more than
  `stale_after_seconds` before, or if its question is closed. Quotes after the close count only if `closed_marks` is
  `last`.
- `drawdown` is the largest (P - I) / P, where P is the greatest I before. I is the account's total times a factor,
  which is multiplied by (V - F) / V whenever cash F is deposited or (below 0) withdrawn, where V is the total right
  afterwards. So deposits are not gains and withdrawals are not losses, as in a time-weighted return of the Global
  Investment Performance Standards.
- The amounts that rounding down withholds are booked as `rounding` in `journal`, in 1e-15.
- Every purchase of a resolved question is scored, even if its shares were sold before. Its Brier score is
  (confidence - what the share paid)², which is the same by the probability of yes, whichever side was bought. Skill
  against the market is a ratio of means.
""")
TRADING_READINGS = _paragraphs("""
Where Forecaster Arena's documents and its code disagree, or neither answers: a market with an unknown winner stays
pending until it is resolved or cancelled, as in the newer code; `cancel_market` refunds as in the document; an
outcome can be bought again after its position was closed. The greatest age of a price, an hour, is a choice of this
project; so is that an account's own trades use up the sizes of a quote and those of others do not: trades on paper do
not move the market, and a participant's results do not depend on who else takes part.
""")
TABLES = _paragraphs("""
`forecast-ledger table LOG TABLE` prints a table, `forecast-ledger help TABLE` its columns. `replay` builds all tables
but a few. `forecasts` has a row for each number of each forecast in the log, and `quotes` one for each outcome of each
quote; every export has these two. Two others can be far larger than the log: `score_parts`, with a row for each
forecast and each change of its reference, and `portfolio_snapshots`. If `score_parts` would have more than 3,000,000
rows, it is refused before it is built, with its size; `table LOG score_parts --where question=…` computes the parts of
one question, and `explain LOG score … --parts` prints those of one score. `forecast-ledger table LOG
portfolio_snapshots --where contest=… --where participant=… --from 2026-03-01 --until 2026-03-31` computes only the
portfolios that it prints. If the table would need more than 50,000,000 snapshots, it is refused.

`brier`, `brier_overall` and `calibration` are about binary questions. They use the forecast at the spot, or, if the
rule set has no spot, the forecast that stood when scored time ended. A mean Brier score of 0 is called Perfect, below
0.10 Excellent, below 0.20 Good, below 0.25 Fair (at or near random), below 0.40 Poor, else Very Poor; if the document
puts a score in two classes, the worse one applies. `consensus` is the median of all participants, whatever the rules of
a contest; the consensus by the rules of a contest is in `score_parts`.
""")
COLUMN_KINDS = "A printed quantity is decimal text, rounded half-even once. Inside, columns have these kinds:"
KINDS = _paragraphs("""
A question is binary, multiple choice, numeric, date or discrete. A numeric question asks for the probability of its
bins, for quantiles at given levels, or for a number of samples; a rule set has a kernel for the first of these forms,
and one for the other two. A point forecast is a quantile of the level 0.5, if it is a median, or a single sample, if it
is a mean.

A date question is a numeric question that counts seconds since the epoch; its bounds and its answer are written as
dates or instants. A discrete question has one bin for each possible value: the edges of its range lie half a step
outside the smallest and the largest value, as on Metaculus, and its answer is one of the values. Both take a `cdf`, and
every kernel scores them like numeric questions with these bins; a mean by kind counts them as numeric.
""")
QUESTION_KINDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "`binary`",
        "`yes` and `no`",
        "`probability` of yes",
        "`outcome`",
        "`kernel`",
    ),
    (
        "`multiple_choice`",
        "named in `outcomes`",
        "`probabilities`, one for each outcome",
        "`outcome`",
        "`kernel`",
    ),
    (
        "`numeric` with bins",
        "the bins and the open ends",
        "`cdf`, at the bins + 1 edges, or `points`",
        "`value`",
        "`cdf_kernel`",
    ),
    (
        "`date`",
        "the bins and the open ends",
        "`cdf`, at the bins + 1 edges, or `points`",
        "`value`, a date or an instant",
        "`cdf_kernel`",
    ),
    (
        "`discrete`",
        "the values and the open ends",
        "`cdf`, at the values + 1 edges, or `points`",
        "`value`, one of the values",
        "`cdf_kernel`",
    ),
    (
        "`numeric` with levels",
        "none",
        "`quantiles`, one for each level",
        "`value`",
        "`quantile_kernel`",
    ),
    (
        "`numeric` with samples",
        "none",
        "`samples`, as many as the range says",
        "`value`",
        "`quantile_kernel`",
    ),
)
KERNELS = "A kernel is the formula that scores one forecast once the outcome is known:"
POINTS = _paragraphs("""
A forecaster who has a few quantiles and no cdf gives `points`: `levels`, `quantiles` and a `method`. The ledger
computes the cdf in exact fractions, rounded half-even once to 1e-10, and records the points beside it, so that `log`,
`show` and `explain` show what it was made from and `verify` computes it again. Levels increase, and quantiles do not
decrease; anything else is refused. A question with levels takes `quantiles` at these levels, and no points.

At a closed end, the cdf is 0 or 1, and a quantile beyond it is refused. At an open end, half of the probability below
the first point, or above the last, lies beyond the end: with 0.1 at 14 and a lower bound of 0, the cdf begins at 0.05.
To say how much lies beyond it, give a point on the end. A point beyond the end is joined to the next one across it.

Equal quantiles have all the probability between their levels at that value; on an edge of bins, it belongs to the bin
below, as an answer there does. On a log scale, methods work in the logarithm, in which bins are equal; a quantile at or
beyond the zero point is refused. Each value of a discrete question has the stretch of its bin, so that a point on a
value divides the probability of that value; two equal quantiles put the probability between them on the value alone.
""")
NUMBERS = _paragraphs("""
Floats change their last bits with the processor, the library and the order of summation, and last bits decide ties
and prizes. So nothing that is stored, summed, compared or paid is a float.

At the edge, decimals and floats are accepted (a float as the shortest decimal that denotes it), rounded half-even to
their unit, and refused if they are not finite or out of range. The same log gives the same digest of every table on any
machine, in any batch size, and with any division of the work.
""")
WRITTEN_NUMBERS = _paragraphs("""
An amount of money is a decimal in the currency, wherever it is written. In a rule set an amount is a text, such as
`"least_prize": "50"`, because earlier versions read a number there as 1e-6 of its unit: `50000000` was 50. A number is
refused (`amount_not_text`), so that no rule set of an earlier version is read wrongly. The log still holds 1e-6; in
Python, the fields of `RuleSet` and `Trading` hold it too, and their names end in `_micros`.
""")
UNITS: tuple[tuple[str, str], ...] = (
    (
        "instant",
        "µs since the epoch, UTC",
    ),
    (
        "probability",
        "1e-9",
    ),
    (
        "cumulative probability",
        "1e-10",
    ),
    (
        "quantile",
        "10^-decimals, where the question sets `decimals`",
    ),
    (
        "money, weights",
        "1e-6",
    ),
    (
        "logarithm",
        "1e-12, rounded half-even once",
    ),
    (
        "score",
        "exact numerator and denominator, published to nine decimals",
    ),
    (
        "take",
        "exact, or coverage times a power of 30 significant digits; published to nine decimals",
    ),
)
EXIT_CODES = _paragraphs("""
If a signal ends the command, the exit code is 128 plus the number of the signal, as in shells: 130 for Ctrl-C, 143 for
SIGTERM. One signal ends every command within two seconds, and a second one ends it at once; what was recorded before
stays recorded. A signal is the usual way to end `follow`, which then exits with 0. If the reader of a pipe closes it
early, that is not an error.
""")
CHECKS = _paragraphs("""
`verify` reads every row and reports whether each check passes. `--only CHECK` runs that check and those that it
depends on. The exit code is 4 for damage, and 1 for a prize that differs from the board, since the log can still be
read.
""")
LOST = _paragraphs("""
The check `decided` compares the digest of each command with the digest of the command rebuilt from its events: of its
normal form, with values as they are recorded. A row of that form says `normal`, and so do all rows after it. In rows
from before, the digest is of the command as it was written. If such a command had contents that its events do not
contain, that digest cannot be rebuilt and is not compared; `verify` prints the number of such commands, and where they
are.

A log cannot show by itself that it was rewritten with new digests, that it is another history, or that its newest rows
were removed. A checkpoint that is kept elsewhere can; `--strict` does not pass without one.
""")


WORDS: tuple[tuple[str, str], ...] = (
    ("question", "something that resolves: binary, multiple choice or numeric"),
    ("participant", "a person, a bot or a model that forecasts, trades, or both"),
    (
        "forecast",
        (
            "a participant's distribution over a question's outcomes; it *stands* from when it is made until it is "
            "replaced or withdrawn, or the question closes, or its `until` is reached"
        ),
    ),
    ("withdrawal", "of a forecast: the end of a standing forecast; of cash: money taken out of an account"),
    (
        "contest",
        "a set of questions, a set of participants and one rule set: a tournament, a weekly cohort, a benchmark",
    ),
    ("series", "weekly contests, or *cohorts*; one starts each week"),
    (
        "rule set",
        "data that says how a contest turns forecasts into scores, takes and prizes, and how its participants trade",
    ),
    ("preset", "a rule set that the project provides under a name"),
    ("hidden period", "the time from a question's opening until its community forecast is revealed"),
    ("kernel", "the formula that scores one forecast once the outcome is known"),
    (
        "reference",
        "what a forecast is compared with: nothing, the uniform distribution, the peers, a consensus, a median",
    ),
    (
        "sampling",
        "the choice of the instants at which forecasts are scored: every instant, one a day, or only the *spot*",
    ),
    (
        "reference forecaster",
        "a row of the board that is no participant: the consensus, one half, the uniform distribution or the market",
    ),
    ("consensus", "the community forecast: the median, or another average, of the forecasts that stand at an instant"),
    ("member", "a participant whose forecasts count among the peers and in the consensus"),
    ("entrant", "a person or team that enters one or several submissions, each of which is a participant"),
    ("attestation", "a declaration by the maker of a forecast about its newest source and its model"),
    (
        "coverage",
        (
            "the share of a question's period during which a participant's forecast stood; attainable coverage is "
            "the coverage of a forecast that stood all the time"
        ),
    ),
    ("total", "a participant's score in a contest, over all its questions"),
    ("take", "the number that prizes are proportional to"),
    ("board", "the ranked participants of a contest, as in the tables `leaderboard` and `arena_leaderboard`"),
    ("quote", "the price of a question's outcomes at an instant, with its source"),
    ("trade", "shares of one outcome bought or sold at a quote, or elsewhere for an amount that is recorded with them"),
    ("position", "a participant's holding of one outcome in a contest"),
    ("decision", "what a participant does in a period: BET, SELL or HOLD; its parts are *legs*"),
    ("mark", "the price at which a position is valued: the last quote"),
    ("snapshot", "the cash and the positions of an account at one instant, valued at their marks"),
    ("resolution", "the recorded outcome of a question, or the payout of a share of each outcome"),
    ("command", "a request to record something, which is accepted, or refused with a code"),
    ("event", "a fact that an accepted command led to"),
    ("log", "the events of a ledger in the order in which they were recorded; rows are only ever added"),
    ("log position", "the number of a row of the log: 1, 2, 3 … without gaps"),
    ("digest", "a SHA-256, of a row of the log or of a table; the digest of a row covers all rows before it"),
    ("checkpoint", "a log position and the digest of its row: all that is needed to check a log up to there"),
    ("segment", "consecutive rows of a log as Parquet files; to *seal* a log is to write it as segments"),
    ("as of", "the log position or the instant up to which a log is read"),
    ("projection", "a named, versioned pure function from the log to a table"),
    ("replay", "running projections over a log as of a log position or an instant"),
    ("read model", "an SQLite file of the tables, kept up to date with a log by a runner"),
    (
        "claimed, recorded time",
        "`at` is the instant that a command claims, `recorded_at` the ledger's own clock; the two are never merged",
    ),
)
