"""What the words of this project mean."""

WORDS: tuple[tuple[str, str], ...] = (
    (
        "question",
        "something that resolves: binary, multiple choice or numeric",
    ),
    (
        "participant",
        "whoever forecasts: a person, a bot, a model",
    ),
    (
        "forecast",
        (
            "a participant's distribution over a question's outcomes; it *stands* from when it is made until "
            "it is replaced or withdrawn or the question closes"
        ),
    ),
    (
        "withdrawal",
        "ends a standing forecast",
    ),
    (
        "contest",
        "a set of questions and one rule set",
    ),
    (
        "rule set",
        "data: how a contest turns forecasts into scores, takes and prizes",
    ),
    (
        "hidden period",
        "from a question's opening until its community forecast is revealed",
    ),
    (
        "consensus",
        "the community forecast: the median, or another average, of what stands at each instant",
    ),
    (
        "member",
        "whoever's forecasts count among the peers and in the consensus",
    ),
    (
        "entrant",
        "who hands in one or several submissions, each a participant",
    ),
    (
        "attestation",
        "what a forecast's maker declares of its newest source and its model",
    ),
    (
        "coverage",
        (
            "the share of a question's period on which a participant's forecast stood; attainable: that of "
            "one which always stood"
        ),
    ),
    (
        "take",
        "what prizes are proportional to",
    ),
    (
        "quote",
        "the price of a question's outcomes at an instant, with its source",
    ),
    (
        "trade",
        "shares of one outcome bought or sold at a quote",
    ),
    (
        "position",
        "a participant's holding of one outcome in a contest",
    ),
    (
        "decision",
        "what a participant does in a period: BET, SELL or HOLD; its parts are *legs*",
    ),
    (
        "mark",
        "what a share is taken to be worth: the last quote",
    ),
    (
        "resolution",
        "the recorded outcome of a question, or what a share of each outcome pays",
    ),
    (
        "log position",
        "place in the log, 1, 2, 3 … without gaps",
    ),
    (
        "checkpoint",
        "log position and digest: all that is needed to check a log against",
    ),
    (
        "as of",
        "the cut of the log that a reading uses",
    ),
    (
        "projection",
        "a named, versioned pure function from the log to a table",
    ),
    (
        "replay",
        "running projections over a log as of a cut",
    ),
    (
        "claimed, recorded time",
        "`at` is what the command claims, `recorded_at` the ledger's own clock; the two are never merged",
    ),
)
