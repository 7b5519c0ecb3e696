"""What the reference says beside its tables, by topic: paragraphs of Markdown, or items of a list."""


def _paragraphs(text: str) -> tuple[str, ...]:
    """Paragraphs, and items of lists, each on one line."""
    return tuple(" ".join(part.split()) for part in text.strip().replace("\n- ", "\n\n- ").split("\n\n"))


COMMANDS = _paragraphs("""
A command is one JSON object on one line: `id`, `type`, `at`, then the fields of its type. `forecast-ledger append`
takes a file of them; `forecast-ledger schema commands` prints their JSON Schema. `?` marks a field that may be left
out; null counts as left out.

Numbers are JSON numbers or decimal text; they are rounded half-even to the unit of their field. Instants are RFC 3339
with an offset. Other fields than those listed are refused.
""")
EXAMPLES = "Commands of every kind, which an empty ledger accepts in this order:"
EVENTS = _paragraphs("""
An event is what a command led to: one JSON object with a `type`, `at` and its fields. The type is the stored name,
for ever. `forecast-ledger schema events` prints their JSON Schema.

Numbers are integers, or exact decimal text where a range has no unit. Instants are µs since the epoch in UTC,
probabilities and prices 1e-9, cumulative probabilities 1e-10, money, shares and weights 1e-6, percentages 1e-6 of a
percent. A field that has its default is left out.

A row of the log is one line of JSON with the event in it. Its bytes are canonical: no floats, fields in one order.
""")
REFUSALS = _paragraphs("""
A command that breaks a rule is refused: nothing of it is recorded. The codes are in order of precedence: if two
apply, the earlier one is reported. If the usual remedy does not fit a case, the refusal has its own.
""")
ERRORS = _paragraphs("""
Every error is a `LedgerError` with `to_dict()` and `as_json()`; `append --errors json` prints one error a line. An
error has, in this order, those of the following keys that apply. Keys, kinds of error and codes are for good; the
wording of the rest is not. `forecast-ledger schema errors` prints their JSON Schema.
""")
RULES = _paragraphs("""
The `rules` of a contest are the name of a preset, or a whole rule set: an object of a `name` and the fields that are
not to have their defaults; in Python a dict of them, or a `RuleSet`. The contest's first event carries the whole rule
set, so that no later change of a preset changes an old contest. Of the fields from `consensus_of` on, which are newer
than the others, it carries only those that do not have their default, so that the bytes of older logs stay as they
are.

A score is kernel x reference x sampling x scale; a board is total x take x rank. A rule set that contradicts itself
is refused, with what to change: for example, a kernel of which the least is best needs a reference, or a total that
is a mean over what one's forecasts covered.

A kernel is rounded once, to 1e-12 (`pinball` to four decimals more than its question has, 12 at most). An average
that feeds a logarithm is rounded to 1e-18, and so is the n / (n - 1) of peers in each step. Sums are exact.

Prizes are the pool in proportion to the takes, in payable units by largest remainder; ties go by id. If the pool is
below the least prize, nobody is paid.
""")
PRESETS = _paragraphs("""
The `relative` presets are Metaculus's tournament scores before April 6th, 2022 (`relative-2021-11`), as published on
that day (`relative-2022-04`), and as its Scores FAQ has them (`relative-faq`). The `baseline`, `peer` and `spot`
presets are those of the same FAQ; `peer-2025-06` adds the least prize of June 2025; `peer-average` is the average
over contests of January 2024. `autocast-2022` is Autocast competition of 2022, `brier-daily` the daily Brier
score of the forecasting tournaments of the 2010s, and `arena-v1` and `arena-v2` are the two methodologies of
Forecaster Arena. The folder `data` has worked examples of each.
""")
READINGS = "Where documents, or a document and the code behind it, disagree, a rule set has a field for either reading:"
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
            "time until the answer; the code behind them did both"
        ),
    ),
    (
        "days cut short",
        "`brier-daily` counts full days only",
        (
            '`"day_edges":"both"` counts the day of the opening, and that on which scored time ends with what'
            " then stands; `opening` counts the first of them"
        ),
    ),
    (
        'the median of "all other" forecasts',
        "one's own is included, as in the example of the 2022 document",
        '`"consensus_of":"others"`: it is not',
    ),
    (
        "numeric consensus",
        "`median` of the outcome's probabilities",
        "`community`: the mean of the cdfs",
    ),
    (
        "consensus of multiple choice",
        "`median` of the outcome's probabilities",
        (
            "`squeezed`: medians of all outcomes, brought to one and into 0.1% to 99.9%, as in Metaculus's "
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
        "probabilities above 99.9%, densities above 35 times the uniform one",
        "count as they are",
        (
            '`"greatest_probability_ppm":999000`, `"greatest_density_ppm":35000000`: capped, which makes '
            "+99.9 and +183 the best baseline scores"
        ),
    ),
    (
        "the uniform 0.01 in a numeric density",
        "the least that counts",
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
        "`members`: n / (n - 1), as in the code, which is nothing if n is 1",
    ),
    (
        "the Brier score of several outcomes",
        "`brier` halves it, `brier_sum` does not",
        "each by its name",
    ),
    (
        "the combined metric of the Autocast competition",
        "100 times the sum of three means",
        (
            '`"total":"kind_means_third"`: a third of it; `"kernel":"error"`: accuracies less distance, as '
            "notebooks print"
        ),
    ),
    (
        "a numeric answer or point beyond the range",
        "refused",
        '`"quantile_kernel":"absolute_clipped"` with open ends: clipped',
    ),
)
TRADING = _paragraphs("""
In a contest whose rule set has `trading` rules, participants bet cash on the outcomes of its questions at quoted
prices. `arena-v1` and `arena-v2` are Forecaster Arena's two methodologies; `trading` takes any other numbers. These
presets also have the kernel `brier`: forecasts on the same questions are scored in `scores` and `leaderboard`, beside
`bet_brier` and `arena_leaderboard`. The folder `data/arena-week` is a worked example.
""")
TRADING_MECHANICS = _paragraphs("""
- Start: a `weekly` contest starts on the latest Sunday 00:00 UTC that is not after `starts_at` (else `at`), one a
  week and `series`. Of a series, the newest `deciding_cohorts` decide.
- Enrolment: `enrol_participant` grants `starting_cash`, once. `family` and `release` say what takes part, and cannot
  change. `deposit_cash` and `withdraw_cash` need `recapitalisation`.
- Quotes: `quote` gives the prices of one question or of many. A price that is missing is never assumed.
- Decisions: `record_decision` is a participant's decision for a period of `period_days`, counted from 1 at the
  contest's start. A reply that is no decision is recorded as malformed, with its fault. After `attempts` of them the
  decision is HOLD by default, for ever distinct from a HOLD that was chosen. An attempt whose legs were all refused
  may be followed by another; every attempt stays. The same attempt sent again is a duplicate, whatever its command
  id; with other content it is refused.
- Legs are carried out in order, each on what the one before left. The largest bet is cash / `cap_divisor`, rounded
  down, before each leg; a reply is held to that of its start. If bets are `all_or_nothing`, one refused bet refuses
  all of them.
- A bet buys amount / price shares, rounded down to 1e-6, and adds to the open position on that outcome at average
  cost. Its confidence is amount / largest bet.
- A sale is a percentage of the shares held now, with that part of their cost. A sale of 100 closes the position at
  exactly 0; a later bet opens one with another number.
- A resolution settles every open position in its own transaction: 1 a share of the outcome, or its part of `payouts`.
  With payouts no outcome is known, and forecasts are not scored. `cancel_market` annuls the question and gives back
  what open positions cost (`refund_cost`, as `annul_question` does), or undoes all trades (`void_trades`).
- A revoked resolution is taken back from each position. Cash may become a debt, which is shown and never forgiven. If
  an annulment that came after a resolution is revoked, every open position is settled by that resolution again.
- A contest is complete when every participant has taken a decision, be it to hold, and nothing is open. Then it takes
  no more decisions and enrolments, and only then can it be finalized. A question that is closed and not resolved
  keeps positions pending.
- A look at a portfolio has what is known at its instant, by the instants that commands claim. A quote is known from
  the `at` of its command, not from its `quoted_at`, and not before the question's quote before it. A movement counts
  from its `at`, and not before the account's movement before it, nor before its quote is known. Looks at ticks and at
  movements follow this one rule; a look at a movement leaves out what the log has after it. Ticks go on until the
  latest instant that any event claims. The field `clock` of a rule set is about forecasts only.
- A position is worth its shares at the last quote that is known. A mark is stale if it was quoted more than
  `stale_after_seconds` before, or if its question is closed, after which quotes count only if `closed_marks` is
  `last`.
- `drawdown` is the largest (P - I) / P, where P is the greatest I before. I is the account's total times a factor,
  which is multiplied with (V - F) / V whenever cash F is put in or (below 0) taken out, where V is the total right
  after. So deposits are no gains and withdrawals no losses, as in a time-weighted return of the Global Investment
  Performance Standards.
- What rounding down keeps back is booked as `rounding` in `journal`, in 1e-15.
- Every purchase of a resolved question is scored, also if it was sold before. Its Brier score is (confidence - what
  the share paid)², which is the same by the probability of yes, whichever side was bought. Skill against the market
  is a ratio of means.
""")
TRADING_READINGS = _paragraphs("""
Where Forecaster Arena's documents and its code disagree, or neither says: an unknown winner stays pending until
somebody resolves or cancels, as in the newer code; `cancel_market` refunds as in the document; a contest can be
entered again after a full exit; how old a price may be is this project's number, an hour.
""")
TABLES = _paragraphs("""
`forecast-ledger table LOG TABLE` prints a table, `forecast-ledger help TABLE` its columns. `replay` builds all but
two, which can be far larger than the log: `score_parts`, with a row for each forecast and each change of what it is
compared with, and `portfolio_snapshots`. A table `score_parts` of more than 3,000,000 rows is refused before it is
built; `explain LOG score … --parts` prints the parts of one score. `portfolio_snapshots` is refused if all contests
together would look at portfolios more than 50,000,000 times.

`brier`, `brier_overall` and `calibration` are of binary questions, by the forecast at the spot, or, if the rule set
has none, by what stood as scored time ended. A mean Brier score of 0 is called Perfect, below 0.10 Excellent, below
0.20 Good, below 0.25 Fair (at or near random), below 0.40 Poor, else Very Poor; what the document gives to two words
belongs to the worse. `consensus` is the median of everybody, whatever a contest's rules; the consensus of its rules
is in `score_parts`.
""")
COLUMN_KINDS = "Printed, every quantity is decimal text, rounded half-even once. Inside, the kinds of columns are:"
KINDS = _paragraphs("""
A question is of one of three kinds. A numeric question is asked by the probability of its bins, or by quantiles at
given levels; each form has a kernel of its own in a rule set.
""")
QUESTION_KINDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "`binary`",
        "`yes` and `no`",
        "`probability`, of yes",
        "`outcome`",
        "`kernel`",
    ),
    (
        "`multiple_choice`",
        "named in `outcomes`",
        "`probabilities`, one an outcome",
        "`outcome`",
        "`kernel`",
    ),
    (
        "`numeric` with bins",
        "each bin, and each open end",
        "`cdf`, at the bins + 1 edges",
        "`value`",
        "`cdf_kernel`",
    ),
    (
        "`numeric` with levels",
        "none",
        "`quantiles`, one a level",
        "`value`",
        "`quantile_kernel`",
    ),
)
KERNELS = "A kernel says what one forecast is worth once the outcome is known:"
NUMBERS = _paragraphs("""
Floats change their last bits with the processor, the library and the order of summation, and last bits decide ties
and prizes. So nothing that is stored, summed, compared or paid is a float.

At the edge, decimals and floats are accepted (a float as the shortest decimal that names it), brought to the unit
half-even, and refused if they are not finite or out of range. The same log gives the same digest of every table: on
any machine, in any batch size, however the work is divided.
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
        "10^-decimals, as its question says",
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
A signal ends the command with 128 and the signal's number, as in shells: 130 for Ctrl-C, 143 for SIGTERM. `follow` is
meant to be ended so, and exits with 0. Output that nobody reads is no fault.
""")
CHECKS = _paragraphs("""
`verify` looks at every row and says of each check whether it holds. `--only CHECK` runs that one and those that it
rests on. Damage exits with 4; a prize that is not what the board says is a finding, 1, since the log can be read all
the same.
""")
LOST = _paragraphs("""
The check `decided` compares the digest of what each command said with that of the command rebuilt from its events. If
a command said more than its events keep, that digest cannot be rebuilt and is not compared; `verify` tells how many
such commands there are.
""")
