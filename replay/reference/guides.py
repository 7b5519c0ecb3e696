"""The first steps, CSV files and maps, as topics of the reference."""

from forecast_ledger.replay.reading.blocks import Block, Code, Heading, Table
from forecast_ledger.replay.scoring.roles import USUAL

_STEPS = (
    ("forecast-ledger demo", "rebuilds a published tournament, and compares every figure"),
    ("forecast-ledger score FORECASTS [ANSWERS]", "scores a table of your own: a CSV, Parquet, JSON lines or .xlsx"),
    ("forecast-ledger score FORECASTS --log LOG", "keeps the log, from which all that follows works"),
    ("forecast-ledger leaderboard LOG [CONTEST]", "prints the board"),
    ("forecast-ledger explain LOG score CONTEST QUESTION PARTICIPANT", "shows how a score is computed"),
    ("forecast-ledger report LOG OUT.html", "writes a page with boards and pictures"),
    ("forecast-ledger verify LOG", "checks every row, every decision and every prize"),
    ("forecast-ledger append LOG FILE", "appends commands, one JSON object per line: `help commands`"),
)
_MAP_KEYS = (
    ("`command`", "one or more: a row gives one command for each that selects it"),
    ("`delimiter`", "between the cells of a CSV; the default is a comma"),
    ("`encoding`", "of a CSV that is not in UTF-8, such as `cp1252`"),
    ("`sheet`", "of a workbook that has several"),
    ("`instant`", "how instants are written, as in strptime; the default is RFC 3339"),
    ("`offset`", "from UTC of instants that have none, such as `+01:00` or `Z`"),
    ("`zone`", "the time zone of a clock, such as `Europe/Berlin`, in place of an offset"),
    ("`sort`", "`at`, another field that is an instant, or `recorded_at`: commands are recorded in its order"),
    ("`source`", "the name of a source of which the file is a whole copy: the ledger then follows its copies"),
)
_COMMAND_KEYS = (
    ("`type`", "a command: `help commands`"),
    ("`id`", "a template; a row that is sent again has the same id, so that it counts once"),
    ("`fields`", "for each field of the command a template, a constant, or a description"),
    ("`where`", "for columns the texts that are allowed, or a condition of `not`, `empty`, `matches`"),
    ("`present`", "columns that must not be empty"),
    ("`above`", "for columns a number that theirs must be above"),
    ("`group`", "columns that the rows of one command share; one field then has a `level` and a `value`"),
    ("`columns`", "columns that each give a command of their own, with `{#cell}`, `{#column}`, `{#1}`"),
    (
        "`normalize`",
        "`{ within = 0.01 }`: probabilities are divided by a sum so near to 1; with `normalized`, the log has both",
    ),
)
_FIELD_KEYS = (
    ("`from`", "a template: `{Column}` stands for the cell"),
    ("`matches`", "a pattern of the whole text; its group is read in place of it"),
    ("`map`", "the value for each text, or the name of a CSV that has them"),
    ("`number`", "how 1234.5 is written, such as `1.234,5`; `+150` for American odds"),
    ("`percent`", "`true`: numbers are in percent, with or without the sign"),
    ("`round`", "to so many decimals"),
    ("`instant`", "how this instant is written"),
    ("`offset`", "of this instant"),
    ("`zone`", "of this instant"),
    ("`end_of_day`", "`true`: a date stands for the beginning of the next day"),
    ("`split`", "the separator of a list"),
    ("`json`", "`true`: the cell is JSON"),
    ("`names`", "of the items of a list"),
)
_EXAMPLE = """offset = "Z"

[[command]]
type = "submit_forecast"
id = "{User} {Question} {Date}"
[command.fields]
at = "{Date}"
question = "{Question}"
participant = "{User}"
probability = { from = "{Probability}", percent = true }"""


_TWO_WAYS = (
    "`score FORECASTS [ANSWERS]` recognises the usual names of columns, opens the questions and a contest, and prints "
    "the board; `--write-map` writes the map that says how it read them. `append LOG FILE --map MAP` makes commands "
    "of the rows of a CSV, Parquet, JSON lines or .xlsx file, as a map describes them: `help map`."
)
_ABOUT_MAPS = (
    "A map is a file of TOML. `append LOG FILE --map MAP` reads FILE by it, and `score --write-map MAP` writes one to "
    "begin with. `demo --keep FOLDER` writes the maps in data/csv-import to FOLDER, with the files that they read."
)


def getting_started() -> tuple[Block, ...]:
    """The commands that a newcomer needs first."""
    return (Table(("command", "what it does"), _STEPS),)


def csv_files() -> tuple[Block, ...]:
    """The two ways in for a CSV, and the names of columns that are recognised."""
    roles = tuple((f"`{role}`", ", ".join(" ".join(groups).split())) for role, groups in USUAL.items())
    return (
        _TWO_WAYS,
        Heading("Names that are recognised"),
        "With any capitals, spaces or underscores. `--column ROLE=NAME` names another column.",
        Table(("role", "names"), roles),
    )


def maps() -> tuple[Block, ...]:
    """The keys of a map."""
    return (
        _ABOUT_MAPS,
        Code("toml", _EXAMPLE),
        Heading("At the top"),
        Table(("key", "meaning"), _MAP_KEYS),
        Heading("In a command"),
        Table(("key of a command", "meaning"), _COMMAND_KEYS),
        Heading("In the description of a field"),
        Table(("key of a field", "meaning"), _FIELD_KEYS),
    )
