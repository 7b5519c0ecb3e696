"""The glossary: the terms of this project and their meanings."""

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
