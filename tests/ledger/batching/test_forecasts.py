"""Tests of forecasts as columns, and of their quick way into the log."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching import batch, forecasts, measures
from forecast_ledger.ledger.batching.forecasts import ForecastColumns, QuickForecasts, read_lines, read_quick_forecasts
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands, log
from forecast_ledger.ledger.model.canonical import normal_content
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import DAY, NOW, choices, closing, day, forecast, numeric, opened, resolution, revocation

COLUMNS: dict[str, list[Any]] = {
    "id": ["f1", "f2", "f2", "", "f5", "f6", []],
    "at": [day(2), day(3), day(3), day(3), "then", day(4), day(4)],
    "question": ["rain"] * 7,
    "participant": ["ada", "bob", "bob", "cy", "dee", None, "eve"],
    "probability": ["0.5", Decimal("0.25"), "0.75", 1, 0.5, "0.5", "0.5"],
}
LINE = {"id": "f", "type": "submit_forecast", "at": day(2), "question": "q", "participant": "p", "probability": "0.5"}
VALUES: list[Any] = [None, True, 5, 0.25, 1e-7, 10**30, "0.50", "", "é", [], {}, [0.5]]


def test_an_item_is_the_command_and_a_slice_has_the_same_columns() -> None:
    """As of any sequence of commands."""
    forecasts = ForecastColumns(**COLUMNS)
    every = [
        commands.SubmitForecast(**dict(zip(COLUMNS, values, strict=True)))
        for values in zip(*COLUMNS.values(), strict=True)
    ]
    assert [*forecasts] == every
    assert [forecasts[place] for place in range(-7, 7)] == [every[place] for place in range(-7, 7)]
    assert [*forecasts[1:5:2]] == every[1:5:2]
    assert isinstance(forecasts[2:], ForecastColumns)
    with pytest.raises(IndexError):
        forecasts[7]


@pytest.mark.parametrize("field", ["id", "at", "question", "participant", "probability"])
def test_one_command_is_read_as_it_is_among_others(field: str) -> None:
    """Whatever a field has: an unusual value takes the long way in both, and any other gives the same texts."""
    unusual: list[Any] = [
        "f1",
        "a b",
        "é",
        "e\u0301",
        " a",
        'a"b',
        "x" * 201,
        "\0",
        "2026-03-02T09:00:00.5+01:00",
        "2026-02-30",
        day(2),
    ]
    unusual += ["0.5", "0.0000009", "0.000001", "1", "1.5", ".5", "5E-1", Decimal("0.70"), Decimal("5E-7"), Decimal(1)]
    other = {"id": "g", "at": day(2), "question": "q", "participant": "p", "probability": "0.5"}
    are_quick = set()
    for value in [*VALUES, *unusual]:
        given = other | {"id": "f"} | {field: value}
        alone, beside = (commands.SubmitForecast(**fields) for fields in (given, other))
        ids = [given["id"], other["id"]]
        among, _ = zip(*read_quick_forecasts(ids, [alone, beside]), strict=True)
        [single] = zip(*read_quick_forecasts(ids[:1], [alone]), strict=True)
        are_quick.add(single[0] is not None)
        is_apart = field == "at" and value is None  # of several, all have an instant, or none
        if not is_apart and (single[0] is not None or among[0] is not None):
            assert single == among
    assert are_quick == {True, False}


def test_a_forecast_with_any_other_field_takes_the_long_way() -> None:
    """Whichever field it is, beside a probability, probabilities by outcome, a cdf, quantiles or samples."""
    numbers: dict[str, Any] = {"probability": "0.5", "probabilities": {"a": "0.5", "b": "0.5"}}
    numbers |= {"cdf": ("0", "1"), "quantiles": (1, 2), "samples": (1, 2)}
    others = {*commands.SubmitForecast.__struct_fields__} - {"id", "at", "question", "participant", *numbers}
    for field, value in numbers.items():
        plain = structs.replace(forecast("q", at=day(2), probability=None), **{field: value})
        assert read_quick_forecasts(["f"], [plain]).at != [None]
        for other in {*others, *numbers} - {field}:
            assert read_quick_forecasts(["f"], [structs.replace(plain, **{other: value})]).at == [None], other


def test_columns_have_the_outcomes_and_the_rows_of_commands() -> None:
    """With duplicates, reused ids and refusals between them, alone and in one transaction."""
    for atomic in (False, True):
        found = []
        for sent in (ForecastColumns(**COLUMNS), [*ForecastColumns(**COLUMNS)]):
            with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as ledger:
                ledger.handle(opened(), "c1")
                outcomes = [ledger.handle_many(sent, atomic=atomic), ledger.handle_many(sent)]
                rows = [row for page in ledger._store.pages() for row in page]
            found.append((str(outcomes), rows))
            assert sum(isinstance(outcome, Refused) for outcome in outcomes[0]) == (7 if atomic else 5)
        assert found[0] == found[1]


def test_columns_of_different_lengths_are_refused() -> None:
    """The message has the length of each."""
    with pytest.raises(ValueError, match="'probability': 6"):
        ForecastColumns(**COLUMNS | {"probability": ["0.5"] * 6})


def test_lines_are_read_as_the_commands_on_them() -> None:
    """A line that is no plain forecast is left to the other way, alone or among others."""
    dice, taken = random.Random(7), 0
    for _ in range(600):
        fields: dict[str, Any] = {name: value for name, value in LINE.items() if dice.random() < 0.97}
        if dice.random() < 0.5:
            fields[dice.choice([*LINE])] = dice.choice(VALUES)
        if dice.random() < 0.3:
            fields[dice.choice(["until", "cdf", "quantiles", "probabilities", "attestation", "odd"])] = dice.choice(
                VALUES
            )
        line = json.dumps(fields).encode() + dice.choice([b"", b"\n", b"\r\n", b" \n"])
        read = read_lines(line)
        ended = line.rstrip(b"\n") + b"\n"
        assert read_lines(json.dumps(LINE).encode() + b"\n" + ended + ended) is None or read is not None
        if read is not None:
            taken += 1
            assert read[0] == commands.read(line)
            assert type(read[0].probability) is type(commands.read(line).probability)  # type: ignore[union-attr]
    assert 100 < taken < 500


@pytest.mark.parametrize(
    "line",
    [b"\n", b"{", b"null", b"[]", b"\xff", b'{"a":' * 9999, json.dumps(LINE).encode() + b"{}", b'"\\ud800"'],
)
def test_a_line_that_is_no_command_is_left_to_the_other_way(line: bytes) -> None:
    """Which refuses it in its own words."""
    assert read_lines(json.dumps(LINE).encode() + b"\n" + line) is None


PROBABILITIES: list[Any] = [
    *("0.5", "0.50", "0.000000000", "0.000000999", "0.000001", "0.00000100", "0.999999999", "0.123456789"),
    *("0.1234567894", "0.1234567895", "0", "1", "0.0", "1.0", ".5", "0.", "-0.5", "+0.5", "5e-1", "0.5e0", "0_0.5"),
    *(" 0.5", "0.5\n", "0.1_2", "0.\u0663", "\uff10.5", "0.5\u0660", "", "nan", "0.00000000000000001", "0.5000000000"),
    *(Decimal("0.5"), Decimal("0.50"), Decimal("5E-1"), Decimal("1E-7"), Decimal("0.000001"), Decimal("0E-9")),
    *(Decimal("NaN"), Decimal("0.12345678949999"), Decimal(1), 0.5, 0.1, 1, 0, True, None, [], b"0.5"),
]
INSTANTS: list[Any] = [
    *("2026-03-02T00:00:00Z", "2026-03-02T01:00:00+01:00", "2026-03-02T00:00:00.0000015Z", "2026-03-02t00:00:00z"),
    *("2026-03-02T00:00:00", "2026-03-02", "2026-02-30T00:00:00Z", "1600-01-01T00:00:00Z", "", None, 5, []),
]
IDS: list[Any] = [
    "ada",
    "é",
    "e\u0301",
    'a"b',
    "a\\b",
    "a/b",
    "</script>",
    " a",
    "a\n",
    "\ud800",
    "x" * 201,
    "",
    None,
    [],
]


def outcomes(commands: list[AnyCommand], size: int) -> tuple[list[str], list[bytes]]:
    """The outcomes of commands that are sent in batches of a size, and all rows."""
    with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as ledger:
        batches = [commands[begin : begin + size] for begin in range(0, len(commands), size)]
        every = [outcome for batch in batches for outcome in ledger.handle_many(batch)]
        said = [f"{outcome} {getattr(outcome, 'pointer', '')}" for outcome in every]
        return said, [row for page in ledger._store.pages() for row in page]


def no_forecasts(ids: Sequence[Any], _: Any) -> QuickForecasts:
    """No quick forecast of any command."""
    return QuickForecasts.none(len(ids))


def both_ways(commands: list[AnyCommand], size: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The same by the quick way, where it is taken, and by the long way."""
    quick = outcomes(commands, size)
    with monkeypatch.context() as patched:
        patched.setattr(batch, "read_quick_forecasts", no_forecasts)
        return quick, outcomes(commands, size)


def test_every_way_to_write_a_forecast_has_the_same_outcome_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are refused: with the same code, field and value."""
    commands: list[Any] = [opened()]
    commands += [forecast(participant=f"p{n}", at=day(1), probability=p) for n, p in enumerate(PROBABILITIES)]
    commands += [forecast(participant=f"a{n}", at=at) for n, at in enumerate(INSTANTS)]
    commands += [forecast(participant=who, at=day(1)) for who in IDS]
    commands += [forecast(question=question, participant="q", at=day(1)) for question in IDS]
    commands = [structs.replace(command, id=f"c{number}") for number, command in enumerate(commands)]
    commands += [forecast(participant="i", at=day(1), id=command_id) for command_id in IDS]
    quick, long = both_ways(commands, 1, monkeypatch)
    assert quick == long
    assert sum(read_quick_forecasts([command.id], [command]).at != [None] for command in commands) > 20
    assert sum("recorded" not in said and "Receipt" not in said for said in quick[0]) > 40


def random_command(dice: random.Random) -> Any:
    """A command on one of four questions; half of them are forecasts, many of them refused."""
    name = f"q{dice.randrange(4)}"
    if dice.random() < 0.6:
        return forecast(
            question=name,
            participant=f"p{dice.randrange(3)}",
            at=day(dice.randrange(-1, 9)),
            probability=dice.choice(["0.25", Decimal("0.5"), "0.125", "1"]),
            until=dice.choice([None, None, None, day(7)]),
        )
    others: list[Any] = [opened(question=name), choices(question=name), numeric(question=name)]
    others += [closing(question=name, at=day(dice.randrange(2, 6))), resolution(question=name), revocation(name)]
    return dice.choice(others)


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_have_the_same_rows_both_ways(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions of every kind that open, close, resolve and open again; forecasts out of order, early and late."""
    dice = random.Random(seed)
    history = [
        structs.replace(random_command(dice), id=f"c{number if dice.random() < 0.9 else dice.randrange(number + 1)}")
        for number in range(120)
    ]
    quick, long = both_ways(history, dice.choice([1, 7, 120]), monkeypatch)
    assert quick == long


def random_range(dice: random.Random) -> dict[str, Any]:
    """A range of any form; some have bounds between two units, or units of which there are more than 1e13."""
    form: dict[str, Any] = dice.choice([{"bins": 3}, {"levels": ("0.1", "0.5", "0.9")}, {"samples": 3}])
    decimals = {} if "bins" in form else {"decimals": dice.choice([0, 1, 1, 3, 6, 12])}
    lower, upper = dice.choice([(0, 4), (-2, 2), ("-0.1", "0.15"), ("0.3", "1.7"), ("0.0000003", "0.0000009")])
    ends = {name: dice.random() < 0.4 for name in ("open_lower", "open_upper")}
    return {"bins": None, "lower": lower, "upper": upper} | form | decimals | ends


WRONG: list[Any] = [
    *("", "1_0", "inf", "0x1", "1e-999999", "1e99999999", True, None, [], Decimal("NaN"), 10**400, 1e300, "-0.0"),
]


def written(number: Decimal, dice: random.Random) -> Any:
    """A number in one of many ways; a few of them are those of another number, or of none."""
    exact: list[Any] = [number, str(number), f"{number:f}", f"{number:e}", number.normalize(), f"{number:.8f}"]
    others: list[Any] = [float(number), int(number), f"+{number}", number * 10**9, number + Decimal("1e-11"), -number]
    odd = dice.random()
    return dice.choice(exact if odd < 0.93 else others if odd < 0.985 else WRONG)


def random_numbers(dice: random.Random, question: commands.OpenQuestion) -> Any:
    """A forecast of numbers, mostly in the form and the range of its question, and in increasing order."""
    span = question.range or commands.Range(lower=0, upper=1)
    form = "quantiles" if span.levels else "samples" if span.samples else "cdf"
    lower, upper = (Decimal(0), Decimal(1)) if form == "cdf" else (Decimal(span.lower), Decimal(span.upper))
    unit = Decimal(1).scaleb(-dice.choice([span.decimals or 0, span.decimals or 10, 1, 2]))
    count = {"cdf": 4}.get(form, 3) + (dice.random() < 0.05) - (dice.random() < 0.05)
    within = (lower + (upper - lower) * dice.randrange(-1, 1002) / 1000 for _ in range(count))
    among = [dice.choice([each.quantize(unit), each.quantize(unit), lower, upper]) for each in within]
    if form == "cdf" and dice.random() < 0.8:
        among[:1], among[-1:] = [lower], [upper]
    if form != "samples" and dice.random() < 0.95:
        among.sort(reverse=dice.random() < 0.03)
    numbers: Any = dice.choice([tuple, tuple, tuple, list])(written(number, dice) for number in among)
    numbers = numbers if dice.random() < 0.98 else dice.choice([(), "0.5", {}, 5])
    fields = {dice.choice([form] * 30 + ["cdf", "quantiles", "samples", "probabilities"]): numbers}
    fields |= {"until": day(9)} if dice.random() < 0.03 else {"probability": "0.5"} if dice.random() < 0.03 else {}
    at = day(dice.randrange(1, 8)) if dice.random() < 0.95 else dice.choice(INSTANTS)
    return forecast(question=question.question, participant=f"p{dice.randrange(60)}", at=at, **fields)


def random_history(dice: random.Random) -> list[Any]:
    """Questions of every range, and forecasts of numbers on them; some are sent twice, some are other commands."""
    ranges = (numeric(question=f"q{number}", **random_range(dice)) for number in range(16))
    asked = [structs.replace(each, closes_at=dice.choice([day(20), "2026-08-01T00:00:00Z"])) for each in ranges]
    history: list[Any] = [*asked, opened(question="rain")]
    for _ in range(500):
        odd = dice.random()
        again = odd < 0.05 and type(history[-1]) is commands.SubmitForecast
        other = random_command(dice) if odd < 0.1 else random_numbers(dice, dice.choice(asked))
        history.append(history[-1] if again else other)
    ids = [f"c{number if dice.random() < 0.95 else dice.randrange(number + 1)}" for number in range(len(history))]
    return [structs.replace(each, id=own) for each, own in zip(history, ids, strict=True)]


@pytest.mark.parametrize("seed", range(4))
def test_random_numbers_have_the_same_outcome_both_ways(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quantiles, samples and cdfs: written in many ways, rounded, refused, sent again, and among probabilities.

    In one history, the ledger stamps them; in two, numbers are read one by one.
    """
    monkeypatch.setattr(forecasts, "_MANY", 1)
    monkeypatch.setattr(measures, "_MANY", 1 if seed < 2 else 10**6)
    dice = random.Random(seed)
    history = random_history(dice)
    if seed == 1:
        history = [structs.replace(each, at=None) if hasattr(each, "samples") else each for each in history]
    quick, long = both_ways(history, dice.choice([1, 40, 600]), monkeypatch)
    assert quick == long
    assert 100 < sum("Receipt" in said for said in quick[0]) < 400
    read, forms = read_quick_forecasts([each.id for each in history], history), Counter[str]()
    for command, at, numbers, text in zip(history, read.at, read.measures, read.fingerprint, strict=True):
        if at is not None and isinstance(numbers, measures.Measures):
            forms[numbers.field] += 1
            ordered = command.samples and sorted(Decimal(str(each)) for each in command.samples)
            assert text == log.fingerprint(normal_content(structs.replace(command, samples=ordered)))
    assert min(forms[form] for form in ("cdf", "quantiles", "samples")) > 60


def test_more_numbers_than_any_question_takes_are_left_to_the_other_way() -> None:
    """10,000 bins have 10,001 edges: one number more is in no forecast, and is not read twice before it is refused."""
    read = [
        forecast("q", at=day(2), probability=None, quantiles=[1] * count, id=f"{count}") for count in (10_001, 10_002)
    ]
    assert [each is None for each in read_quick_forecasts([each.id for each in read], read).at] == [False, True]


def test_a_batch_taken_back_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does the long way."""
    good = [forecast(participant=f"p{number}", at=day(1), id=f"f{number}") for number in range(3)]
    again = [*good, forecast(participant="p0", at=day(0), id="late")]
    for quick in (True, False):
        with monkeypatch.context() as patched, Ledger.open(":memory:", clock=lambda: NOW) as ledger:
            if not quick:
                patched.setattr(batch, "read_quick_forecasts", no_forecasts)
            ledger.handle(opened(), "c1")
            refused = ledger.handle_many([*again, opened(id="c2")], atomic=True)
            assert all(isinstance(outcome, Refused) for outcome in refused)
            assert ledger.head().position == 1
            assert [outcome.last for outcome in ledger.handle_many(again[:3])] == [2, 3, 4]  # type: ignore[union-attr]


def test_a_field_nested_however_deep_is_refused() -> None:
    """Nothing of a command is hashed or compared before its type is checked, which would end the process."""
    nested: Any = ()
    for _ in range(200_000):
        nested = (nested,)
    deep = commands.SubmitForecast(id="c", question="rain", participant="bob", samples=nested)
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "a")
        receipt, refused = ledger.handle_many([structs.replace(forecast(), id="b"), deep])
    assert not isinstance(receipt, Refused)
    assert isinstance(refused, Refused)


@pytest.mark.parametrize("length", [200, 201, 10_000])
def test_ids_that_are_too_long_are_refused_and_not_kept(length: int) -> None:
    """A file of such ids takes no memory, however many there are."""
    given = [structs.replace(forecast(), id=f"f{n}", participant=f"{n:0{length}}") for n in range(3)]
    forecasts._kept_text.cache_clear()
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "a")
        outcomes = ledger.handle_many(given)
        for command in given:
            outcomes += ledger.handle_many([structs.replace(command, id=f"{command.id} alone")])
    refused = [getattr(outcome, "code", "") for outcome in outcomes]
    assert refused == (["id_too_long"] if length > 200 else [""]) * 6
    assert forecasts._kept_text.cache_info().currsize == (4 if length == 200 else 1)
