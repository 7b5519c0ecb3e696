"""Tests of lines that are read at once: their forecasts are those that are read line by line."""

import json
from random import Random
from typing import Any

import pytest

from forecast_ledger.ledger.batching.forecasts import read_lines
from forecast_ledger.ledger.batching.plain_lines import read_alike
from forecast_ledger.ledger.batching.sent_forecasts import SentForecasts, ids_of_codes, pack
from tests.support.effort import times

SIGNS = [
    '"',
    "{",
    "}",
    ":",
    ",",
    "\\",
    " ",
    "\n",
    "\t",
    "\0",
    "\r",
    "\x7f",
    "a",
    "0",
    "9",
    "é",
    ".",
    "-",
    '""',
    "},{",
    "T",
]


def said(sent: SentForecasts | None) -> Any:
    """All of some forecasts, with the ids as texts."""
    if sent is None:
        return None
    arrays = [each.tolist() for each in (sent.question, sent.participant, sent.at, sent.units)]
    return *arrays, sent.questions, sent.participants, ids_of_codes(sent.ids), sent.spans, sent.lines


def line(dice: Random, names: list[str], form: dict[str, Any]) -> str:
    """A forecast whose fields are in an order, written in a form."""
    number = dice.choice(("0.5", "0.25", "0.0000009", "0.123456789", "0.000001", "0.70"))
    fields: dict[str, Any] = {
        "id": f"f{dice.randrange(10 ** dice.randrange(1, 13))}",
        "type": "submit_forecast",
        "at": f"2026-0{dice.randrange(1, 9)}-0{dice.randrange(1, 9)}T0{dice.randrange(9)}:00:00{form['end']}",
        "question": dice.choice(("q", "a-question-of-more-bytes", "r" * 63)),
        "participant": dice.choice(("ada", "bo", "c d")),
        "probability": number if form["text"] else "NUMBER",
        "until": None,
    }
    written = json.dumps({name: fields[name] for name in names}, separators=form["between"])
    written = written.replace('"NUMBER"', number)
    return f"{form['before']}{written}{form['after']}"


def random_lines(dice: Random) -> list[str]:
    """A few lines that are written alike."""
    names = ["id", "type", "at", "question", "participant", "probability", *["until"] * (dice.random() < 0.2)]
    dice.shuffle(names)
    form = {
        "end": dice.choice(("Z", ".5Z", ".000001Z")),
        "text": dice.random() < 0.5,
        "between": dice.choice(((",", ":"), (", ", ": "), (" , ", " :"))),
        "before": dice.choice(("", " ")),
        "after": dice.choice(("\n", "\r\n", " \n")),
    }
    return [line(dice, names, form) for _ in range(dice.randrange(1, 6))]


@pytest.mark.parametrize("seed", range(times(20)))
def test_lines_that_are_alike_are_read_as_each_of_them(seed: int) -> None:
    """Whatever the order of fields, white space and the form of numbers."""
    dice = Random(seed)
    for _ in range(60):
        data = "".join(random_lines(dice)).encode()
        alike, forecasts = read_alike(data), read_lines(data)
        assert alike is not None
        assert forecasts is not None
        found, expected = said(pack(alike)), said(pack(forecasts))
        assert found == expected


@pytest.mark.parametrize("seed", range(times(20)))
def test_a_line_that_is_changed_is_read_as_before_or_not_at_all(seed: int) -> None:
    """A sign more, less or another one: if the lines are read at once, then as those that are read one by one."""
    dice, read = Random(seed), 0
    for _ in range(150):
        lines = random_lines(dice)
        for _ in range(dice.randrange(1, 3)):
            place = dice.randrange(len(lines))
            at = dice.randrange(len(lines[place]))
            rest = lines[place][at + dice.randrange(2) :]
            lines[place] = lines[place][:at] + dice.choice(["", *SIGNS]) + rest
        data = "".join(lines).encode()
        alike, forecasts = read_alike(data), read_lines(data)
        found = alike and said(pack(alike))
        if found is not None:
            read += 1
            assert forecasts is not None, data
            assert found == said(pack(forecasts)), data
    assert read


@pytest.mark.parametrize("exponent", ["e-1", "E-1", "e0", "e+00"])
def test_lines_whose_numbers_have_the_same_exponent_are_left_to_the_other_way(exponent: str) -> None:
    """What follows the digits is no part of what is between two values."""
    fields = {"type": "submit_forecast", "id": "f", "at": "2026-03-02T00:00:00Z", "question": "q", "participant": "ada"}
    start = json.dumps(fields)[:-1]
    assert read_alike(f'{start}, "probability": 0.5}}\n{start}, "probability": 0.25}}\n'.encode()) is not None
    assert (
        read_alike(f'{start}, "probability": 0.5{exponent}}}\n{start}, "probability": 0.25{exponent}}}\n'.encode())
        is None
    )


@pytest.mark.parametrize(
    "value",
    ["f\0", "é", "x" * 65, "x" * 200],
)
def test_ids_of_other_signs_or_many_bytes_are_left_to_the_other_way(value: str) -> None:
    """Wherever they are: zeros would be taken for the end of an id, and a sign of two bytes for two."""
    fields = {"type": "submit_forecast", "at": "2026-03-02T00:00:00Z", "question": "q", "participant": "ada"}
    lines = [json.dumps(fields | {"probability": "0.5", "id": name}, ensure_ascii=False) for name in ("f", "g")]
    assert read_alike("\n".join([*lines, ""]).encode()) is not None
    odd = "\n".join([*lines, lines[0].replace('"f"', f'"{value}"'), ""])
    assert read_alike(odd.encode()) is None
