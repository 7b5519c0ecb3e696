"""The reference, by topic: pages made from the tables that the code itself uses."""

from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from functools import cache
from typing import NamedTuple, get_args

import msgspec
from msgspec import Struct

from forecast_ledger.ledger.auditing.rebuild import LOST_DETAILS
from forecast_ledger.ledger.core.errors import ERRORS, KEYS, REFUSALS
from forecast_ledger.ledger.core.hints import nearest
from forecast_ledger.ledger.deciding.distributions import METHODS
from forecast_ledger.ledger.model import commands as command_types
from forecast_ledger.ledger.model import events as event_types
from forecast_ledger.ledger.model.forms import FORMS
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.provenance import NAMES, Evidence, Provenance, optional_names
from forecast_ledger.ledger.model.rules import RuleSet, limits
from forecast_ledger.ledger.model.trading_rules import LEG_CODES, MICROS, REPLY_FAULTS, Trading
from forecast_ledger.projections.core.columns import KINDS
from forecast_ledger.projections.scores.kernels import KERNELS, Kernel
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.audit.verify import CHECKS
from forecast_ledger.replay.reading.blocks import Block, Code, Entry, Heading, Table, as_markdown
from forecast_ledger.replay.reference import fields, notes
from forecast_ledger.replay.reference.exit_codes import EXITS
from forecast_ledger.replay.reference.fields import meaning, name
from forecast_ledger.replay.reference.rule_fields import RULES, VALUES, json_text, presets, value_meaning
from forecast_ledger.replay.reference.schema import OTHERS, Schema, prose, schema, written_numbers
from forecast_ledger.replay.reference.sources import SOURCES
from forecast_ledger.replay.scoring.shapes import USUAL

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


class Page(NamedTuple):
    """A topic: its title, a summary of one line, and its blocks."""

    topic: str
    title: str
    summary: str
    blocks: tuple[Block, ...]

    def as_markdown(self) -> str:
        """Return the page as a file of Markdown."""
        return as_markdown([Heading(self.title, 1), self.summary, *self.blocks]) + "\n"


def commands() -> tuple[Block, ...]:
    """The commands and their parts."""
    parts = (
        command_types.Range,
        command_types.Points,
        event_types.Attestation,
        command_types.Spot,
        command_types.RestatedForecast,
        command_types.Prices,
        command_types.Bet,
        command_types.Sale,
        command_types.ModelCall,
        command_types.Evidence,
    )
    made = schema("commands")["$defs"]
    forms = tuple((f"`{form}`", str(schema["description"])) for form, schema in sorted(FORMS.items()))
    return (
        *notes.COMMANDS,
        Heading("Where a command comes from"),
        *notes.PROVENANCE,
        _fields_table(command_types.CloseQuestion, made, NAMES),
        *(_entry(kind, "command", made) for kind in get_args(command_types.AnyCommand)),
        *(_entry(kind, "part of a command", made) for kind in parts),
        Heading("Forms of values"),
        Table(("form", "meaning"), forms),
        Heading("Examples"),
        notes.EXAMPLES,
        Code("jsonl", "\n".join(fields.LINES)),
    )


def events() -> tuple[Block, ...]:
    """The row of the log, the events and their parts."""
    parts = (
        event_types.NumericRange,
        event_types.StatedPoints,
        event_types.StatedShares,
        event_types.Attestation,
        event_types.Quote,
        event_types.RefusedQuote,
        event_types.Bet,
        event_types.Sale,
        event_types.ModelCall,
        Evidence,
    )
    made = schema("events")["$defs"]
    return (
        *notes.EVENTS,
        _entry(Recorded, "row of the log", made),
        _entry(Provenance, "part of a row", made),
        *(_entry(kind, "event", made) for kind in get_args(event_types.AnyEvent)),
        *(_entry(kind, "part of an event", made) for kind in parts),
    )


def refusals() -> tuple[Block, ...]:
    """The codes of refusals, and the keys of an error."""
    codes = tuple((f"`{code}`", wrong, remedy) for code, (wrong, remedy) in REFUSALS.items())
    statuses = tuple(
        (f"`{each.kind}`", f"`{each.__name__}`", str(each.http_status), "yes" if each.retryable else "no")
        for each in ERRORS
    )
    return (
        *notes.REFUSALS,
        Table(("code", "what is wrong", "what to do"), codes),
        Heading("Errors for programs"),
        *notes.ERRORS,
        Table(("key", "value"), _rows(KEYS)),
        *notes.STATUSES,
        Table(("kind", "exception", "HTTP status", "retryable"), statuses),
    )


def rules() -> tuple[Block, ...]:
    """The presets, the fields of a rule set, and the questions on which sources disagree."""
    rows = tuple((f"`{row['preset']}`", f"`{row['differs']}`", row["source"]) for row in presets())
    return (
        *notes.RULES,
        Heading("Presets"),
        *notes.PRESETS,
        Table(("preset", "rule set, where it is not the default", "source"), rows),
        *_fields(RuleSet, "field of a rule set"),
        Heading("Where sources disagree"),
        notes.READINGS,
        Table(("question", "the presets", "the other reading"), notes.DISAGREEMENTS),
    )


def trading() -> tuple[Block, ...]:
    """The trading rules, how they work, and why a reply or a leg is not carried out."""
    return (
        *notes.TRADING,
        *_fields(Trading, "field of trading rules"),
        Heading("How trading works"),
        *notes.TRADING_MECHANICS,
        *notes.TRADING_READINGS,
        Heading("Malformed replies"),
        Table(("fault", "meaning"), _rows(REPLY_FAULTS)),
        Heading("Legs that are not carried out"),
        Table(("code", "meaning"), _rows(LEG_CODES)),
    )


def tables() -> tuple[Block, ...]:
    """The tables with their columns."""
    entries = [
        Entry(
            name,
            "table",
            (
                f"{_sentence(table.meaning)} {_keyed(table.key)}",
                Table(
                    ("column", "kind", "meaning"),
                    tuple((f"`{column.name}`", column.kind, column.meaning) for column in table.columns),
                ),
            ),
        )
        for name, table in CATALOGUE.items()
    ]
    kinds = tuple((f"`{name}`", kind.unit) for name, kind in KINDS.items())
    return *notes.TABLES, *entries, Heading("Kinds of columns"), notes.COLUMN_KINDS, Table(("kind", "inside"), kinds)


_KERNEL = ("kernel", "scores", "better", "worst", "unit", "meaning", "source")


def kinds() -> tuple[Block, ...]:
    """The kinds of questions, the kernels, and the methods from points to a cdf."""
    kernels = tuple(
        (f"`{name}`", ", ".join(kernel.takes), *_ends(kernel), kernel.unit.words, kernel.words, kernel.source)
        for name, kernel in KERNELS.items()
    )
    header = ("kind", "outcomes", "field of a forecast", "field of the answer", "kernel")
    methods = tuple((f"`{name}`", row.words, row.source) for name, row in METHODS.items())
    return (
        *notes.KINDS,
        Table(header, notes.QUESTION_KINDS),
        notes.KERNELS,
        Table(_KERNEL, kernels),
        Heading("Points to a cdf"),
        *notes.POINTS,
        Table(("method", "meaning", "source"), methods),
    )


def numbers() -> tuple[Block, ...]:
    """The units."""
    return (
        *notes.NUMBERS,
        Table(("quantity", "inside"), notes.UNITS),
        Heading("Numbers that people write"),
        *notes.WRITTEN_NUMBERS,
        Table(("where", "field", "unit"), (*written_numbers(), *OTHERS)),
    )


def exit_codes() -> tuple[Block, ...]:
    """The exit codes of the command line."""
    return Table(("exit code", "meaning"), tuple((str(code), text) for code, text in EXITS.items())), *notes.EXIT_CODES


def checks() -> tuple[Block, ...]:
    """The checks that `verify` makes, and what it cannot check."""
    return (
        *notes.CHECKS,
        Table(("check", "passes if"), _rows(CHECKS)),
        *notes.LOST,
        Table(("command", "not in its events"), _rows(LOST_DETAILS)),
    )


def words() -> tuple[Block, ...]:
    """The glossary."""
    return (Table(("term", "meaning"), notes.WORDS),)


def sources() -> tuple[Block, ...]:
    """The documents that rules and methods are taken from."""
    rows = tuple((source.short, source.title, source.where, source.gives) for source in SOURCES)
    return (Table(("cited as", "document", "where", "used for"), rows),)


# topic -> its title, its summary, and the function that makes its blocks.
TOPICS: dict[str, tuple[str, str, Callable[[], tuple[Block, ...]]]] = {
    "getting-started": ("Getting started", "The commands to begin with.", getting_started),
    "csv": ("CSV files", "How a table of your own is scored or imported.", csv_files),
    "map": ("Maps", "How a map says which columns make the fields of a command.", maps),
    "commands": ("Commands", "The commands that a ledger accepts, with their fields.", commands),
    "events": ("Events", "The events in the log, with their fields.", events),
    "refusals": ("Refusals", "Why commands are refused, and what to do.", refusals),
    "rules": ("Rule sets", "How a contest turns forecasts into scores, takes and prizes.", rules),
    "trading": ("Trading", "How participants bet on the questions of a contest.", trading),
    "tables": ("Tables", "The tables that are made from a log, with their columns.", tables),
    "kinds": ("Kinds of questions", "The kinds of questions, and the kernels that score forecasts on them.", kinds),
    "numbers": ("Numbers", "The units of quantities.", numbers),
    "exit-codes": ("Exit codes", "The exit codes of `forecast-ledger`.", exit_codes),
    "checks": ("Checks", "The checks of `forecast-ledger verify`.", checks),
    "words": ("Words", "The terms of this project.", words),
    "sources": ("Sources", "The documents that rules and methods are taken from.", sources),
}


@cache
def page(topic: str) -> Page:
    """Return the page of a topic.

    >>> page("numbers").title
    'Numbers'
    """
    title, summary, blocks = TOPICS[topic]
    return Page(topic, title, summary, blocks())


def contents() -> Page:
    """Return the page that lists the topics."""
    rows = tuple((f"[{topic}]({topic}.md)", summary) for topic, (_, summary, _) in TOPICS.items())
    return Page(
        "README", "Reference", "`forecast-ledger help TOPIC` prints each page.", (Table(("topic", "about"), rows),)
    )


def look_up(name: str) -> tuple[Block, ...]:
    """Return a topic, or the entries and rows of a name on all pages, each under its topic; empty if there are none.

    If the name has an entry or a row of its own, the fields and values of other entries are not searched.

    >>> [block for block in look_up("id_empty")][-1].rows[0][2]
    'give an id of at least one character'
    """
    if name in TOPICS:
        whole = page(name)
        return Heading(whole.title), whole.summary, *whole.blocks
    pages = [page(topic) for topic in TOPICS]
    for within in (False, True):
        parts = [(part.title, entries_of(part, name, within=within)) for part in pages]
        blocks = [block for title, entries in parts if entries for block in (Heading(title), *entries)]
        if blocks:
            return tuple(blocks)
    return ()


def nearest_name(name: str) -> str:
    """Return the topic or name nearest to an unknown one; empty if none is near."""
    return nearest(name, [*TOPICS, *(entry for topic in TOPICS for entry in names(page(topic)))])


def _entry(kind: type[Struct], sort: str, made: dict[str, Schema]) -> Entry:
    """Return the entry of a command, an event or a part: its docstring and its fields."""
    tag = kind.__struct_config__.tag
    every = {"id", "at"} if sort in {"command", "event"} else set()
    every |= {*optional_names(kind)} if sort == "command" else set()
    names = [field.name for field in msgspec.structs.fields(kind) if field.name not in every]
    names.sort(key=lambda name: sort == "command" and name in NAMES)  # its own fields first
    return Entry(str(tag) if tag else name(kind), sort, (*prose(kind), _fields_table(kind, made, names)))


def _fields_table(kind: type[Struct], made: dict[str, Schema], names: Collection[str]) -> Table:
    """Return the table of some fields of a command, an event or a part."""
    required = {field.name: field.required for field in msgspec.structs.fields(kind)}
    rows = tuple(
        (f"`{each}`" + "?" * (not required[each]), _written(made[kind.__name__]["properties"][each]), text)
        for each in names
        if (text := meaning(kind, each))
    )
    return Table(("field", "written as", "meaning"), rows)


def _written(part: Schema) -> str:
    """Return the form of a value of a schema, in a few words."""
    match part:
        case {"$ref": str(where)}:
            written = f"`{where.rpartition('/')[2]}`"
        case {"discriminator": _}:
            written = "one of the events below"
        case {"anyOf": list(choices)}:
            written = " or ".join(_written(choice) for choice in choices if choice != {"type": "null"})
        case {"enum": list(values)}:
            written = ", ".join(f"`{value}`" for value in values)
        case {"type": "array"}:
            written = f"list of {_written(part['items'])}"
        case {"type": "object"}:
            written = f"object from `Id` to {_written(part['additionalProperties'])}"
        case _:
            written = {"boolean": "`true` or `false`", "integer": "whole number", "string": "text"}[part["type"]]
    return written


def _fields(kind: type[RuleSet | Trading], sort: str) -> list[Entry]:
    """Return the entry of each field of a rule set or of trading rules: its values or range, and its default."""
    made = schema("rules")["$defs"][kind.__name__]["properties"]
    return [
        _field(field.encode_name, made[field.encode_name], sort, _limits(kind, field.name))
        for field in msgspec.structs.fields(kind)
    ]


def _limits(kind: type[RuleSet | Trading], field: str) -> str:
    """Return the range of a number and its unit, in words; empty for another field."""
    meta = limits(kind, field)
    if meta is None or meta.extra is None:
        return ""
    scale = -6 if field.endswith(MICROS) else 0
    low, high = (format(Decimal(int(bound or 0)).scaleb(scale).normalize(), ",f") for bound in (meta.ge, meta.le))
    return f" From {low} to {high} ({meta.extra['unit']})."


def _field(field: str, part: Schema, sort: str, limits: str) -> Entry:
    default = f" Default: `{json_text(part['default'])}`." if "default" in part else ""
    values = part.get("enum") or part.get("items", {}).get("enum", ())
    meanings = {value: value_meaning(field, value) for value in values}
    rows = tuple((f"`{value}`", meanings[value]) for value in sorted(values, key=_order(meanings)))
    paragraph = _sentence(RULES[field]) + limits + default
    return Entry(field, sort, (paragraph, *([Table(("value", "meaning"), rows)] if rows else [])))


def _order(meanings: dict[str, str]) -> Callable[[str], int]:
    """Return a sort key for values: the order of the table of values, then that of the kernels."""
    order = [*VALUES.values(), *(value_meaning("kernel", name) for name in KERNELS)]
    return lambda value: order.index(meanings[value])


def _rows(table: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((f"`{name}`", text) for name, text in table.items())


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _keyed(key: tuple[str, ...]) -> str:
    return f"Sorted by {', '.join(f'`{column}`' for column in key)}." if key else "In the order of the board."


def _ends(kernel: Kernel) -> tuple[str, str]:
    """Return the direction of a kernel, and its worst score."""
    worst = "none" if kernel.worst is None else str(kernel.worst)
    return ("lower" if kernel.lower_is_better else "higher"), worst


def bare(cell: str) -> str:
    """Return the name in a cell, without its marks.

    >>> bare("`title`?")
    'title'
    """
    return cell.rstrip("?").strip("`")


def names(page: Page) -> Iterator[str]:
    """Yield every name that has an entry on a page, or a row of a table, also within an entry."""
    for block in page.blocks:
        if isinstance(block, Entry):
            yield block.name
        for table in _tables(block):
            yield from (bare(row[0]) for row in table.rows)


def entries_of(page: Page, name: str, *, within: bool = False) -> list[Block]:
    """Return the entries of a name on a page, and its rows of tables; within: its rows within entries instead."""
    blocks: list[Block] = []
    for block in page.blocks:
        if isinstance(block, Entry) and not within:
            blocks += [block] * (block.name == name)
        elif isinstance(block, Entry) == within:
            rows = [part for table in _tables(block) if (part := _rows_of(table, name)).rows]
            blocks += [block._replace(blocks=tuple(rows))] * bool(rows) if isinstance(block, Entry) else rows
    return blocks


def _tables(block: Block) -> list[Table]:
    parts = block.blocks if isinstance(block, Entry) else (block,)
    return [part for part in parts if isinstance(part, Table)]


def _rows_of(table: Table, name: str) -> Table:
    return table._replace(rows=tuple(row for row in table.rows if bare(row[0]) == name))
