"""Schemas: whatever the ledger takes they accept, and what they say is what the code does."""

import json
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import (
    KEYS,
    REFUSALS,
    Absent,
    Conflict,
    Corrupt,
    LedgerError,
    NewerVersion,
    Refused,
    Unavailable,
    Uncertain,
)
from forecast_ledger.ledger.deciding.decider import decide
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model import canonical, commands, events
from forecast_ledger.ledger.model.forms import FORMS
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.provenance import Provenance
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet, recorded_fields, written_fields
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.cli import main, reference
from forecast_ledger.replay.reading.replay import replay
from forecast_ledger.replay.reference import fields, schema
from forecast_ledger.replay.reference.fields import FIELDS, meaning, name
from forecast_ledger.replay.reference.rule_fields import RULES, VALUES
from tests.support.effort import LONG as EFFORT
from tests.support.effort import times
from tests.support.json_schema import faults
from tests.support.json_schema import values as made_values
from tests.support.logs import rows as rows_of
from tests.support.logs import written
from tests.support.paths import ROOT

DATA = ROOT / "data"
LINES = [line for path in sorted(DATA.glob("*/*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()]
STORIES = sorted(path.parent.name for path in DATA.glob("*/commands.jsonl"))
PARTS = (
    commands.Range,
    commands.Points,
    commands.Spot,
    commands.RestatedForecast,
    commands.Prices,
    commands.Bet,
    commands.Sale,
    events.NumericRange,
    events.StatedPoints,
    events.StatedShares,
    events.Attestation,
)
KINDS = (
    *get_args(commands.AnyCommand),
    *get_args(events.AnyEvent),
    *PARTS,
    events.Spot,
    events.Quote,
    events.RefusedQuote,
    events.Bet,
    events.Sale,
    commands.ModelCall,
    events.ModelCall,
    commands.Evidence,
    Provenance,
)
# Refusals of how a command is written, whatever the ledger holds.
WRITTEN = {
    "malformed", "id_empty", "id_too_long", "id_not_plain", "text_too_long", "bad_instant", "naive_instant",
    "bad_number", "not_finite", "out_of_range", "unknown_rules",
}  # fmt: skip


def plain(text: str | bytes) -> Any:
    """JSON with exact numbers."""
    return json.loads(text, parse_float=Decimal)


@cache
def whole_schema(topic: str) -> Any:
    """The schema of a topic, as it is printed."""
    return plain(schema.text(schema.schema(topic)))


def accepted(value: Any, topic: str = "commands") -> bool:
    """Return whether a schema accepts a value."""
    return not any(True for _ in faults(value, whole_schema(topic), whole_schema(topic)))


def code_of(line: str) -> str:
    """Why the ledger refuses how a command is written; empty if it does not. Its id may be told apart from it."""
    try:
        command = commands.read(line)
        values.check_id(command.id if "id" in plain(line) else "told apart", "id")
        canonical.canonical_content(command)
        decide(command, State(), 0)
    except Refused as refused:
        return refused.code if refused.code in WRITTEN else ""
    return ""


# --- what is there is accepted


def test_every_command_of_the_stories_is_accepted() -> None:
    """The worked examples are commands, so the schema of commands accepts them."""
    assert [line for line in LINES if not accepted(plain(line))] == []


@pytest.mark.parametrize("story", STORIES)
def test_every_row_of_the_stories_logs_is_accepted(story: str, tmp_path: Path) -> None:
    """The event of each row is accepted by the schema of events, and the row by that of rows."""
    read = [commands.read(line) for line in (DATA / story / "commands.jsonl").read_bytes().splitlines()]
    whole = whole_schema("events")
    for row in map(plain, rows_of(written(tmp_path / "log.db", read))):
        assert list(faults(row["event"], whole, whole)) == []
        assert list(faults(row, whole["$defs"]["Recorded"], whole)) == []


@pytest.mark.parametrize("rules", PRESETS.values(), ids=PRESETS)
def test_every_preset_is_accepted(rules: RuleSet) -> None:
    """The schema accepts every field of it as it is printed; an event's amounts are integers."""
    assert accepted(plain(msgspec.json.encode(written_fields(rules))), "rules")
    held = whole_schema("events")["$defs"]["RuleSet"]
    assert list(faults(plain(msgspec.json.encode(recorded_fields(rules))), held, whole_schema("events"))) == []


@pytest.mark.parametrize(
    "error",
    [
        *map(Refused, REFUSALS),
        Refused("bad_number", "probability", [1], "more"),
        Conflict("twice"),
        Unavailable("no file"),
        Absent("no ledger"),
        Uncertain("the disk"),
        Corrupt(3, "gone"),
        NewerVersion(3, "an unknown field"),
    ],
    ids=repr,
)
def test_every_error_is_accepted(error: LedgerError) -> None:
    """The schema accepts an error of each code, with the keys of the table in their order."""
    said = error.to_dict()
    assert accepted(said, "errors")
    assert list(said) == [key for key in KEYS if key in said]
    assert not accepted(said | {"error": "other"}, "errors")
    assert not accepted(said | {"code": "other"}, "errors") or said["error"] != "refused"


def test_the_place_of_a_refused_line_is_accepted() -> None:
    """`append --errors json` has the line, the command and the columns before what the error has."""
    said = CliRunner().invoke(main.main, ["append", "none.db", "-", "--dry-run", "--errors", "json"], input="{}\n")
    [line] = [line for line in said.stderr.splitlines() if line.startswith("{")]
    assert accepted(plain(line), "errors"), line
    assert "line" in plain(line)


# --- the schema accepts whatever the ledger does


def _leaves(value: Any) -> list[Any]:
    """Every value in a value, and every name of an object."""
    if isinstance(value, dict):
        return [*value, *(leaf for each in value.values() for leaf in _leaves(each))]
    return [leaf for each in value for leaf in _leaves(each)] if isinstance(value, list) else [value]


def _texts(value: Any) -> list[str]:
    return [leaf for leaf in _leaves(value) if isinstance(leaf, str)]


def _pieces(value: Any) -> list[Any]:
    """The pieces of evidence of a command."""
    found: Any = [] if value.get("evidence") is None else value["evidence"]
    return [found] if isinstance(found, dict) else list(found)


def _number_as_text(value: Any) -> bool:
    return any(text[:1] in set("+-0123456789") for text in _texts(value))


# What the ledger refuses though the schema accepts it, as JSON Schema cannot say it, or only at length; and when that
# can be so.
_FIELDS_TOGETHER = {
    "quote", "record_decision", "record_trade", "change_outcomes", "reschedule_question", "amend_question",
}  # fmt: skip
UNSAID: dict[str, Callable[[Any], bool]] = {
    # characters that Unicode has not assigned, and other forms than NFC
    "id_not_plain": lambda value: any(not (text.isascii() and text.isprintable()) for text in _texts(value)),
    # days that no calendar has, hours beyond 23
    "bad_instant": lambda value: any(text[:4].isdigit() for text in _texts(value)),
    # an instant as the answer to, or an end of, a question that is not of dates
    "bad_number": lambda value: (
        value["type"] in {"open_question", "resolve_question"} and any(text[:4].isdigit() for text in _texts(value))
    ),
    # bounds of numbers in text; in a range, how its numbers go together; that spots are one or more
    "out_of_range": lambda value: (
        _number_as_text(value) or value["type"] == "open_question" or value.get("spots") == []
    ),
    # a whole number that is written with a point; a call of a model, or evidence, that says nothing; which fields of a
    # command go together
    "malformed": lambda value: (
        value["type"] in _FIELDS_TOGETHER
        or any(isinstance(leaf, Decimal) for leaf in _leaves(value))
        or (isinstance(value.get("call"), dict) and not any(value["call"].values()))
        or any(not any(piece.values()) for piece in _pieces(value))
    ),
}


def _json(value: Any) -> str:
    return msgspec.json.Encoder(decimal_format="number").encode(value).decode()


NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, 2, 10**6, 10**9, 10**12, 10**12 + 1, 10**30, 10**30 + 1, True, None, "", "nan", "0x1"]),
    st.sampled_from(
        [each for form in FORMS.values() for bound in form.values() if isinstance(bound, Decimal) for each in (bound,)]
    ),
    st.decimals(min_value=-2, max_value=2, places=10),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=Decimal("-1e31"), max_value=Decimal("1e31")),
    st.decimals(min_value=-2, max_value=2, places=3).map(str),
)
TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "a", "a ", "x" * 200, "x" * 201, "2026-03-01T00:00:00Z", "2026-03-01", "2026", "baseline"]
    ),
    st.text(max_size=6),
    st.sampled_from(["2026-03-01T00:00:00", "2026-02-30T00:00:00Z", "2026-03-01 00:00:00.5+01:00", "x" * 10_001]),
)
ANY = st.one_of(NUMBERS, TEXTS, st.builds(list), st.builds(dict), st.builds(lambda: [[0]]), st.builds(lambda: {"a": 1}))


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A command of a story with some of its fields changed, dropped or added."""
    value = plain(draw(st.sampled_from(LINES)))
    fields = sorted(whole_schema("commands")["$defs"][_BY_TAG[value["type"]]]["properties"])
    for _ in range(draw(st.integers(1, 3))):
        _change(draw, value, draw(st.sampled_from([*fields, *fields, "other"])))
    return value


_BY_TAG = {str(kind.__struct_config__.tag): kind.__name__ for kind in get_args(commands.AnyCommand)}


def _change(draw: st.DrawFn, value: dict[str, Any], field: str) -> None:
    """Return a part with one of its parts changed; or another value in its place, or none."""
    inside = value.get(field)
    if isinstance(inside, dict) and inside and draw(st.booleans()):
        _change(draw, inside, draw(st.sampled_from(sorted(inside))))
    elif isinstance(inside, list) and inside and draw(st.booleans()):
        at = draw(st.integers(0, len(inside) - 1))
        if isinstance(inside[at], dict):
            _change(draw, inside[at], draw(st.sampled_from(sorted(inside[at]))))
        else:
            inside[at] = draw(ANY)
    elif draw(st.integers(0, 5)):
        value[field] = draw(ANY)
    else:
        value.pop(field, None)


@settings(max_examples=times(50), deadline=None)
@given(mutated())
def test_what_the_ledger_takes_the_schema_accepts(value: Any) -> None:
    """A command that the schema refuses is refused by the ledger for how it is written; the other way round only in
    ways that a schema cannot tell, each of which is named.
    """
    code = code_of(_json(value))
    if not accepted(value):
        assert code or _several(value), value
    elif code:
        assert UNSAID[code](value), (code, value)


@pytest.mark.parametrize("kind", _BY_TAG.values())
@settings(max_examples=times(8), deadline=None)
@given(data=st.data())
def test_what_the_schema_accepts_the_ledger_reads(kind: str, data: st.DataObject) -> None:
    """Values that are made from the schema of a command are commands; the ledger refuses how they are written only in
    the ways that a schema cannot tell.
    """
    whole = whole_schema("commands")
    value = data.draw(made_values({"$ref": f"#/$defs/{kind}"}, whole))
    assert accepted(value)
    code = code_of(_json(value))
    assert not code or UNSAID.get(code, lambda _: False)(value), (
        f"{code} of {value}: a type of ledger/model/forms.py says what a field may be; what a schema cannot say, UNSAID"
    )


def _several(value: Any) -> bool:
    """A forecast of several kinds, whose numbers the ledger does not look at before it refuses it."""
    return sum(value.get(each) is not None for each in ("probability", "probabilities", "cdf", "quantiles")) != 1


@pytest.mark.parametrize("topic", schema.TOPICS)
def test_unknown_fields_are_refused_wherever_they_are(topic: str) -> None:
    """Each part that the ledger reads takes the fields that it has and no others; errors may get more keys."""
    for part in whole_schema(topic)["$defs"].values():
        if part.get("type") == "object" and topic != "errors":
            assert part["additionalProperties"] is False


@pytest.mark.parametrize(
    ("form", "unit", "low", "high"),
    [
        ("Probability", 10**9, 0, 10**9),
        ("QuantileLevel", 10**9, 1, 10**9 - 1),
        ("Weight", 10**6, 0, 10**12),
        ("Deposit", 10**6, 1, 10**15),
    ],
)
def test_the_bounds_of_a_number_are_those_after_rounding(form: str, unit: int, low: int, high: int) -> None:
    """Half a unit beyond a bound is rounded to it if that is even; any more is refused by both."""
    whole = whole_schema("commands")
    for units in (low, high):
        for tenths in (-6, -5, -4, 0, 4, 5, 6):
            number = (Decimal(10 * units + tenths)).scaleb(-len(str(unit)))
            try:
                values.read_fixed(number, unit, "x", low, high)
                taken = True
            except Refused:
                taken = False
            assert (not list(faults(number, whole["$defs"][form], whole))) == taken, number


# Where a number stands in a command: the command's type, the way to the number, and its form.
WHERE: list[tuple[str, tuple[str | int, ...], str]] = [
    ("submit_forecast", ("probability",), "Probability"),
    ("submit_forecast", ("probabilities", "blue"), "Probability"),
    ("submit_forecast", ("cdf", 1), "Cumulative"),
    ("submit_forecast", ("quantiles", 0), "Measure"),
    ("resolve_question", ("value",), "Measure"),
    ("resolve_question", ("payouts", "blue"), "Payout"),
    ("open_question", ("range", "bins"), "Bins"),
    ("open_question", ("range", "decimals"), "Decimals"),
    ("open_question", ("range", "levels", 0), "QuantileLevel"),
    ("open_contest", ("pool",), "Pool"),
    ("open_contest", ("payable_unit",), "PayableUnit"),
    ("add_question", ("weight",), "Weight"),
    ("add_question", ("hidden_coverage_weight",), "Share"),
    ("quote", ("prices", "blue"), "Probability"),
    ("deposit_cash", ("amount",), "Deposit"),
    ("withdraw_cash", ("amount",), "Withdrawal"),
]


@pytest.mark.parametrize(("kind", "way", "form"), WHERE, ids=str)
def test_the_bounds_of_each_number_are_the_deciders(kind: str, way: tuple[str | int, ...], form: str) -> None:
    """At each bound, and one step within and beyond, the schema accepts what the decider accepts."""
    bounds = [bound for word, bound in FORMS[form].items() if word.lower().endswith(("minimum", "maximum"))]
    assert len(bounds) == 2
    hair = 1 if form in {"Bins", "Decimals"} else Decimal("1e-25")
    for number in (exact(bound, side) for bound in bounds for side in (-hair, 0, hair)):
        command = example(kind, way)
        part = command
        for step in way[:-1]:
            part = part[step]
        if way[-1] == "decimals":  # of a range so narrow that any unit can count it
            part |= {"lower": 0, "upper": 1}
        if way[1:] == ("levels", 0):
            part.clear()  # the only level
            part.append(number)
        else:
            part[way[-1]] = number
        code = code_of(_json(command))
        assert code in {"", "out_of_range"}
        assert accepted(command) == (code == ""), number


def exact(number: Any, more: Any) -> Any:
    """A sum without rounding."""
    with localcontext(prec=100):
        return number + more


def example(kind: str, way: tuple[str | int, ...]) -> Any:
    """A command of the examples that has such a field, or could have it."""
    commands = [plain(line) for line in fields.LINES]
    these = [command for command in commands if command["type"] == kind]
    first = next((command for command in these if way[0] in command), these[0])
    if way in {("range", "decimals"), ("range", "levels", 0)}:
        first = next(command for command in these if "levels" in command.get("range", {}))
    return first


@pytest.mark.parametrize(
    ("kind", "field", "form", "code"),
    [
        ("open_question", "question", "Id", "id_too_long"),
        ("open_question", "title", "Text", "text_too_long"),
        ("record_decision", "reasoning", "LongText", "text_too_long"),
    ],
)
def test_the_lengths_of_texts_are_the_deciders(kind: str, field: str, form: str, code: str) -> None:
    """A text may have the greatest length of its form, and not one character more."""
    for more in (0, 1):
        command = example(kind, (field,)) | {field: "x" * (FORMS[form]["maxLength"] + more)}
        assert (accepted(command), code_of(_json(command))) == ((False, code) if more else (True, ""))


def test_the_number_of_pieces_of_evidence_is_the_deciders() -> None:
    """A command may have twenty, and not one more; so has each of its rows."""
    for more in (0, 1):
        command = example("submit_forecast", ("probability",)) | {"evidence": [{"text": "6.2 mm"}] * (20 + more)}
        assert (accepted(command), code_of(_json(command))) == ((False, "malformed") if more else (True, ""))
    rows = schema.schema("events")["$defs"]["Provenance"]["properties"]["evidence"]
    assert (rows["type"], rows["maxItems"]) == ("array", 20)


LONG = f"2026-03-01T00:00:00.{'1' * 40}Z"  # as many digits as are read


@pytest.mark.parametrize(
    ("field", "taken", "refused"),
    [
        (
            "at",
            [
                "2026-03-01T00:00:00Z",
                "2026-03-01t00:00:00z",
                "2026-03-01 00:00:00.5-01:30",
                f"2026-03-01T00:00:00.{'1' * 40}Z",
            ],
            [
                "",
                "2026-03-01",
                "2026-03-01T00:00:00",
                "2026-03-01T00:00Z",
                f"2026-03-01T00:00:00.{'1' * 41}Z",
                " 2026-03-01T00:00:00Z",
            ],
        ),
        ("question", ["a", "a b", "ü", "=1"], ["", " a", "a ", "a\tb", "a\u00a0b", "a\u00ad"]),
        ("by", ["", "a", " a b", "ü", "=1"], ["a\tb", "a\u00a0b", "a\u00ad"]),
        (
            "attestation.newest_source",
            ["2021", "2021-12", "2021-12-31", "2021-12-31T10:00:00", "2021-12-31T10:00:00Z", "2021-12+01:00"],
            ["", "21", "2021-1", "2021-12-31T", "2021-12-31T10:00:00+1", "spring 2021"],
        ),
        ("probability", ["0.5", "+0.5", "5e-1", "00.5"], ["", ".5", "5.", "1/2", "0,5", " 0.5", "half", "nan", "0x1"]),
    ],
)
def test_texts_are_written_as_the_ledger_reads_them(field: str, taken: list[str], refused: list[str]) -> None:
    """The patterns of instants, ids, stamps and numbers in text accept what the ledger accepts."""
    for text in (*taken, *refused):
        command = example("submit_forecast", ("quantiles",) if "." in field else ("probability",))
        *way, last = field.split(".")
        (command[way[0]] if way else command)[last] = text
        assert (accepted(command), code_of(_json(command)) == "") == (text in taken,) * 2, text


# --- what the schemas say


def test_every_field_has_a_meaning_and_every_meaning_a_field() -> None:
    """The types are commands, events and their parts, rule sets and trading rules, with each of their values."""
    used = set()
    for kind in (*KINDS, Recorded):
        for field in msgspec.structs.fields(kind):
            assert meaning(kind, field.name)
            own = f"{name(kind)}.{field.name}"
            used.add(own if own in FIELDS else field.name)
    assert used == FIELDS.keys()
    fields = [field for kind in (RuleSet, Trading) for field in msgspec.structs.fields(kind)]
    names = [field.encode_name for field in fields]
    assert names == sorted(RULES, key=names.index)
    said = {
        f"{field.name.removeprefix('cdf_').removeprefix('quantile_')}.{value}"
        for field in fields
        for kind in (field.type, *get_args(field.type))
        for value in get_args(kind)
        if isinstance(value, str)
    }
    assert said == VALUES.keys() | {f"kernel.{name}" for name in KERNELS}


def test_every_property_is_described() -> None:
    """But for the tag, whose one value says what it is."""
    for topic, whole in ((topic, whole_schema(topic)) for topic in schema.TOPICS):
        for part in whole["$defs"].values():
            for field, said in part.get("properties", {}).items():
                assert said.get("description") or field in {"type", "code"}, (topic, field)


@pytest.mark.parametrize("topic", reference.SCHEMAS)
@pytest.mark.parametrize("options", [[], ["--openapi"]])
def test_schemas_are_printed_sorted_and_the_same_each_time(topic: str, options: list[str]) -> None:
    """JSON on stdout, its keys sorted; every reference leads somewhere."""
    first, again = (CliRunner().invoke(main.main, ["schema", topic, *options]).stdout for _ in range(2))
    printed = json.loads(first)
    assert first == again
    assert first == json.dumps(printed, indent=2, sort_keys=True, ensure_ascii=False) + "\n" or "E-" in first
    where = "#/components/schemas/" if options else "#/$defs/"
    parts = printed["components"]["schemas"] if options else printed["$defs"]
    refs = {part.partition('"')[0] for part in first.split(where)[1:]}
    assert refs <= parts.keys()
    assert tuple(schema.TOPICS) == reference.SCHEMAS


def test_schemas_are_schemas_by_an_independent_library() -> None:
    """The library takes each as one of 2020-12, and accepts the stories' commands as the check here does.

    Every third definition of each; in a long run, all.
    """
    library = pytest.importorskip("jsonschema", reason="an extra of the tests, which may not be installed")
    for whole in map(whole_schema, schema.TOPICS):
        some = [*whole["$defs"]][:: 3 if EFFORT == 1 else 1]
        library.Draft202012Validator.check_schema(whole | {"$defs": {name: whole["$defs"][name] for name in some}})
    validator = library.Draft202012Validator(json.loads(schema.text(schema.schema("commands"))))
    for line in LINES[::10]:
        assert list(validator.iter_errors(json.loads(line))) == []


@pytest.mark.parametrize("story", ["metaculus-2022", "arena-week"])
def test_every_row_of_every_table_is_accepted(story: str, tmp_path: Path) -> None:
    """As `Table.rows` returns it; a row without a column, or with another, is not."""
    read = [commands.read(line) for line in (DATA / story / "commands.jsonl").read_bytes().splitlines()]
    projections = replay(written(tmp_path / "log.db", read)).projections
    whole, seen = whole_schema("tables"), set[str]()
    for table in CATALOGUE:
        held = whole["$defs"][table]
        for row in [*projections.table(table).rows()][:50]:
            assert list(faults(row, held, whole)) == [], table
            assert list(faults(row | {"other": 1}, held, whole))
            assert list(faults({key: row[key] for key in [*row][1:]}, held, whole))
            seen.add(table)
    assert len(seen) > 15
