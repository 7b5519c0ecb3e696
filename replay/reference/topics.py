"""The reference, by topic: pages made of the tables that the code itself uses."""

from collections.abc import Callable
from typing import Any, get_args

import msgspec
from msgspec import Struct

from forecast_ledger.ledger.auditing.rebuild import LOST
from forecast_ledger.ledger.core.errors import KEYS, REFUSALS
from forecast_ledger.ledger.core.hints import nearest
from forecast_ledger.ledger.model import commands as commanded
from forecast_ledger.ledger.model import events as recorded
from forecast_ledger.ledger.model.forms import FORMS
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESET_SOURCES, PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import LEG_CODES, REPLY_FAULTS, Trading
from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
from forecast_ledger.projections.core.column_values import KINDS
from forecast_ledger.projections.scores.kernels import KERNELS, Kernel
from forecast_ledger.replay.audit.verify import CHECKS
from forecast_ledger.replay.console.shell import EXITS
from forecast_ledger.replay.reference import examples, glossary, notes
from forecast_ledger.replay.reference.fields import meaning, name
from forecast_ledger.replay.reference.pages import Block, Code, Entry, Heading, Page, Table, named, of_name
from forecast_ledger.replay.reference.rule_fields import RULES, VALUES, value_meaning
from forecast_ledger.replay.reference.schema import Schema, prose, schema
from forecast_ledger.replay.reference.sources import SOURCES


def commands() -> tuple[Block, ...]:
    """Each command and each part of one."""
    parts = (commanded.Range, recorded.Attestation, commanded.Prices, commanded.Bet, commanded.Sale)
    made = schema("commands")["$defs"]
    forms = tuple((f"`{form}`", str(said["description"])) for form, said in sorted(FORMS.items()))
    return (
        *notes.COMMANDS,
        *(_entry(kind, "command", made) for kind in get_args(commanded.AnyCommand)),
        *(_entry(kind, "part of a command", made) for kind in parts),
        Heading("How values are written"),
        Table(("form", "what it is"), forms),
        Heading("Examples"),
        notes.EXAMPLES,
        Code("jsonl", "\n".join(examples.LINES)),
    )


def events() -> tuple[Block, ...]:
    """The row of the log, each event, and each part of one."""
    parts = (recorded.NumericRange, recorded.Attestation, recorded.Quote, recorded.Bet, recorded.Sale)
    made = schema("events")["$defs"]
    return (
        *notes.EVENTS,
        _entry(Recorded, "row of the log", made),
        *(_entry(kind, "event", made) for kind in get_args(recorded.AnyEvent)),
        *(_entry(kind, "part of an event", made) for kind in parts),
    )


def refusals() -> tuple[Block, ...]:
    """Each code, and what an error has."""
    codes = tuple((f"`{code}`", wrong, remedy) for code, (wrong, remedy) in REFUSALS.items())
    return (
        *notes.REFUSALS,
        Table(("code", "what is wrong", "what to do"), codes),
        Heading("Errors for programs"),
        *notes.ERRORS,
        Table(("key", "holds"), _rows(KEYS)),
    )


def rules() -> tuple[Block, ...]:
    """Presets, each field of a rule set, and what documents leave open."""
    presets = tuple((f"`{name}`", f"`{_json(_own(rules))}`", PRESET_SOURCES[name]) for name, rules in PRESETS.items())
    return (
        *notes.RULES,
        Heading("Presets"),
        *notes.PRESETS,
        Table(("preset", "rule set, where it is not the default", "source"), presets),
        *_fields(RuleSet, "field of a rule set"),
        Heading("Where sources disagree"),
        notes.READINGS,
        Table(("question", "the presets", "the other reading"), notes.DISAGREEMENTS),
    )


def trading() -> tuple[Block, ...]:
    """Trading rules, what they do, and why a reply or a leg is not carried out."""
    return (
        *notes.TRADING,
        *_fields(Trading, "field of trading rules"),
        Heading("How trading works"),
        *notes.TRADING_MECHANICS,
        *notes.TRADING_READINGS,
        Heading("Replies that are no decision"),
        Table(("a reply's fault", "means"), _rows(REPLY_FAULTS)),
        Heading("Legs that are not carried out"),
        Table(("a leg's code", "means"), _rows(LEG_CODES)),
    )


def tables() -> tuple[Block, ...]:
    """Each table with its columns."""
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
    kinds = tuple((f"`{kind}`", said.unit) for kind, said in KINDS.items())
    return *notes.TABLES, *entries, Heading("Kinds of columns"), notes.COLUMN_KINDS, Table(("kind", "inside"), kinds)


_KERNEL = ("kernel", "scores", "best", "worst", "unit", "what it is", "source")


def kinds() -> tuple[Block, ...]:
    """Kinds of questions, and kernels."""
    kernels = tuple(
        (f"`{name}`", ", ".join(kernel.takes), *_ends(kernel), kernel.unit.words, kernel.words, kernel.source)
        for name, kernel in KERNELS.items()
    )
    header = ("kind", "outcomes", "a forecast gives", "the answer", "its kernel")
    return *notes.KINDS, Table(header, notes.QUESTION_KINDS), notes.KERNELS, Table(_KERNEL, kernels)


def numbers() -> tuple[Block, ...]:
    """Units."""
    return *notes.NUMBERS, Table(("quantity", "inside"), notes.UNITS)


def exit_codes() -> tuple[Block, ...]:
    """What the command line exits with."""
    return Table(("exit code", "means"), tuple((str(code), said) for code, said in EXITS.items())), *notes.EXIT_CODES


def checks() -> tuple[Block, ...]:
    """What `verify` looks at, and what it cannot."""
    return (
        *notes.CHECKS,
        Table(("check", "what holds"), _rows(CHECKS)),
        *notes.LOST,
        Table(("command", "what its events do not keep"), _rows(LOST)),
    )


def words() -> tuple[Block, ...]:
    """The glossary."""
    return (Table(("word", "means"), glossary.WORDS),)


def sources() -> tuple[Block, ...]:
    """Every document that something is taken from."""
    rows = tuple((each.short, each.title, each.where, each.gives) for each in SOURCES)
    return (Table(("cited as", "document", "where", "what is taken from it"), rows),)


# topic -> its title, what it is about, and what makes its blocks.
TOPICS: dict[str, tuple[str, str, Callable[[], tuple[Block, ...]]]] = {
    "commands": ("Commands", "What can be recorded: each command with its fields.", commands),
    "events": ("Events", "What the log holds: each event with its fields.", events),
    "refusals": ("Refusals", "Why a command is refused, and what to do.", refusals),
    "rules": ("Rule sets", "How a contest turns forecasts into scores, takes and prizes.", rules),
    "trading": ("Trading", "How participants bet on the questions of a contest.", trading),
    "tables": ("Tables", "What follows from a log: each table with its columns.", tables),
    "kinds": ("Kinds of questions", "What can be asked, and how it is scored.", kinds),
    "numbers": ("Numbers", "The units in which quantities are counted.", numbers),
    "exit-codes": ("Exit codes", "What `forecast-ledger` exits with.", exit_codes),
    "checks": ("Checks", "What `forecast-ledger verify` looks at.", checks),
    "words": ("Words", "What the words of this project mean.", words),
    "sources": ("Sources", "The documents that rules and methods are taken from.", sources),
}


def page(topic: str) -> Page:
    """The page of a topic.

    >>> page("numbers").title
    'Numbers'
    """
    title, summary, blocks = TOPICS[topic]
    return Page(topic, title, summary, blocks())


def contents() -> Page:
    """The page that lists the others."""
    rows = tuple((f"[{topic}]({topic}.md)", summary) for topic, (_, summary, _) in TOPICS.items())
    return Page("README", "Reference", "`forecast-ledger help TOPIC` prints each.", (Table(("topic", "about"), rows),))


def found(name: str) -> tuple[Block, ...]:
    """What is known of a topic, or of a name on any page, under the topics that have it; nothing if nobody knows it.

    A name that has an entry or a row of its own is not looked for among the fields and values of others.

    >>> [block for block in found("id_empty")][-1].rows[0][2]
    'give it at least one character'
    """
    if name in TOPICS:
        whole = page(name)
        return Heading(whole.title), whole.summary, *whole.blocks
    pages = [page(topic) for topic in TOPICS]
    for within in (False, True):
        parts = [(each.title, of_name(each, name, within=within)) for each in pages]
        blocks = [block for title, here in parts if here for block in (Heading(title), *here)]
        if blocks:
            return tuple(blocks)
    return ()


def like(name: str) -> str:
    """The topic or name that is most like one that nobody knows; empty if none is."""
    return nearest(name, [*TOPICS, *(each for topic in TOPICS for each in named(page(topic)))])


def _entry(kind: type[Struct], sort: str, made: dict[str, Schema]) -> Entry:
    """A command, an event or a part: its docstring, and each of its fields."""
    tag = kind.__struct_config__.tag
    rows = tuple(
        (f"`{field.name}`" + "?" * (not field.required), _written(made[kind.__name__]["properties"][field.name]), said)
        for field in msgspec.structs.fields(kind)
        if (said := meaning(kind, field.name)) and not (sort in {"command", "event"} and field.name in {"id", "at"})
    )
    return Entry(str(tag) if tag else name(kind), sort, (*prose(kind), Table(("field", "written as", "meaning"), rows)))


def _written(said: Schema) -> str:
    """How a value of a schema is written, in a few words."""
    match said:
        case {"$ref": str(where)}:
            written = f"`{where.rpartition('/')[2]}`"
        case {"discriminator": _}:
            written = "one of the events below"
        case {"anyOf": list(several)}:
            written = " or ".join(_written(each) for each in several if each != {"type": "null"})
        case {"enum": list(values)}:
            written = ", ".join(f"`{value}`" for value in values)
        case {"type": "array"}:
            written = f"list of {_written(said['items'])}"
        case {"type": "object"}:
            written = f"object from `Id` to {_written(said['additionalProperties'])}"
        case _:
            written = {"boolean": "`true` or `false`", "integer": "whole number", "string": "text"}[said["type"]]
    return written


def _fields(of: type[RuleSet | Trading], sort: str) -> list[Entry]:
    """Each field of a rule set or of trading rules, with its values, its range or neither, and its default."""
    made = schema("rules")["$defs"][of.__name__]["properties"]
    return [_field(field.name, made[field.name], sort) for field in msgspec.structs.fields(of)]


def _field(field: str, said: Schema, sort: str) -> Entry:
    usual = f" Default: `{_json(said['default'])}`." if "default" in said else ""
    bounds = [f"{said[bound]:,}" for bound in ("minimum", "maximum") if bound in said]
    among = f" From {bounds[0]} to {bounds[1]}." if bounds else ""
    values = said.get("enum") or said.get("items", {}).get("enum", ())
    meanings = {value: value_meaning(field, value) for value in values}
    rows = tuple((f"`{value}`", meanings[value]) for value in sorted(values, key=_place(meanings)))
    told = _sentence(RULES[field]) + among + usual
    return Entry(field, sort, (told, *([Table(("value", "means"), rows)] if rows else [])))


def _place(meanings: dict[str, str]) -> Callable[[str], int]:
    """A value's place in the table of values, and a kernel's in that of kernels."""
    order = [*VALUES.values(), *(value_meaning("kernel", name) for name in KERNELS)]
    return lambda value: order.index(meanings[value])


def _own(rules: RuleSet) -> dict[str, object]:
    """What of a preset is not the default, but for its name."""
    own = _unlike(rules, RuleSet(name=rules.name))
    return own | ({} if rules.trading is None else {"trading": _unlike(rules.trading, Trading())})


def _unlike(rules: RuleSet | Trading, usual: RuleSet | Trading) -> dict[str, object]:
    plain = msgspec.to_builtins(usual)
    return {field: value for field, value in msgspec.to_builtins(rules).items() if value != plain[field]}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _rows(table: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((f"`{word}`", said) for word, said in table.items())


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _keyed(key: tuple[str, ...]) -> str:
    return f"Sorted by {', '.join(f'`{column}`' for column in key)}." if key else "In the order of the board."


def _ends(kernel: Kernel) -> tuple[str, str]:
    """Whether the least or the greatest score is best, and the worst there is."""
    worst = "none" if kernel.worst is None else str(kernel.worst)
    return ("least" if kernel.lower_is_better else "greatest"), worst
