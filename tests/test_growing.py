"""Tables kept up by parts equal tables built from the whole log, after any history and wherever it is divided."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import Ledger
from ledger.commands import AnyCommand, read
from ledger.log import Recorded
from projections import growing
from projections.growing import Growing, Part
from projections.projection import CATALOGUE, Projections
from projections.tables import facts
from tests import oracle
from tests.given import contest, entry, forecast, opened, resolution
from tests.test_determinism import QUESTIONS, lines
from tests.trading_seasons import Season

NAMES = [name for name, projection in CATALOGUE.items() if not projection.asked_for]
Rows = list[tuple[Any, ...]]


class Kept:
    """Tables to which parts are applied: whatever had their ids goes, what they have comes."""

    def __init__(self) -> None:
        self.rows: dict[str, Rows] = {name: [] for name in NAMES}

    def apply(self, part: Part) -> None:
        """Replace the rows of a part."""
        names = [column.name for column in part.table.columns]
        held = self.rows[part.table.name]
        places = [(names.index(column), label) for column, label in part.ids]
        rest = [row for row in held if any(row[place] != label for place, label in places)]
        if not places:
            rest = []
        self.rows[part.table.name] = rest + list(part.table.plain())


@cache
def trading(seed: int) -> list[Recorded]:
    """What the engine records of a season of trading."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle_many([read(msgspec.json.encode(command)) for command, _ in Season(seed, 60).said])
        return [recorded for page in ledger.read() for recorded in page]


def grown(recorded: Sequence[Recorded], cuts: Sequence[int]) -> Kept:
    """The tables kept up over a log that is read up to these positions, one after another."""
    kept, grows = Kept(), Growing()
    for first, end in zip([0, *cuts], [*cuts, len(recorded)], strict=True):
        if recorded[first:end]:
            grows.add(recorded[first:end])
        for part in grows.parts():
            kept.apply(part)
        grows.forget()
    return kept


def assert_equal_a_rebuild(kept: Kept, recorded: Sequence[Recorded]) -> None:
    """Each table has the rows of the whole log's; a board, contest by contest, in its order."""
    every = Projections(facts([recorded] if recorded else []))
    for name in NAMES:
        expected = list(every.table(name).plain())
        if CATALOGUE[name].key:
            assert Counter(kept.rows[name]) == Counter(expected), name
        else:
            assert sorted(kept.rows[name], key=lambda row: str(row[0])) == expected, name


@given(oracle.logs(), st.data())
@settings(max_examples=60, deadline=None)
def test_parts_add_up_to_a_rebuild_of_any_tournament(asked: list[AnyCommand], data: st.DataObject) -> None:
    """Random questions of every kind and contests, divided at random positions."""
    recorded, _ = oracle.attempted(asked)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(recorded)), max_size=8)))
    assert_equal_a_rebuild(grown(recorded, cuts), recorded)


@pytest.mark.parametrize("seed", range(8))
def test_parts_add_up_to_a_rebuild_of_any_season_of_trading(seed: int) -> None:
    """Quotes, decisions, resolutions, corrections and seals, divided at random positions."""
    recorded = trading(seed)
    cuts = sorted(Random(seed).sample(range(len(recorded)), 12))
    assert_equal_a_rebuild(grown(recorded, cuts), recorded)


@pytest.mark.parametrize("seed", range(2))
def test_parts_add_up_at_every_single_position(seed: int) -> None:
    """An event at a time, compared after each of the last."""
    recorded, kept, grows = trading(seed)[:260], Kept(), Growing()
    for number, each in enumerate(recorded, 1):
        grows.add([each])
        for part in grows.parts():
            kept.apply(part)
        grows.forget()
        if number % 13 == 0:
            assert_equal_a_rebuild(kept, recorded[:number])


def test_parts_add_up_for_a_season_with_every_rule_set() -> None:
    """Between its contests every kernel, reference, average, sampling and total, and attested forecasts."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle_many([read(msgspec.json.encode({"id": f"s{n}"} | line)) for n, line in enumerate(lines(1))])
        recorded = [each for page in ledger.read() for each in page]
    random, answers = Random(1), len(recorded) - QUESTIONS
    cuts = sorted(random.sample(range(answers), 5))
    assert_equal_a_rebuild(grown(recorded[:answers], cuts), recorded[:answers])
    cuts += sorted(random.sample(range(answers, len(recorded)), 3))
    assert_equal_a_rebuild(grown(recorded, cuts), recorded)


@pytest.mark.parametrize("late", ["zoe", "[consensus]"])
def test_who_comes_late_changes_no_board_but_may_take_the_name_of_the_consensus(late: str) -> None:
    """It comes before the consensus in all that is remembered; of its name, the consensus gets another."""
    scored: list[Any] = [opened(), contest(rules="brier-daily" if late == "zoe" else "relative-2022-04"), entry()]
    scored += [forecast(), forecast(participant="bob"), resolution()]
    later: list[Any] = [opened("snow"), contest("other"), entry("other", "snow"), forecast("snow", late)]
    recorded = oracle.history(*scored, *later, resolution("snow"))
    assert_equal_a_rebuild(grown(recorded, range(len(recorded))), recorded)


def test_each_projection_is_divided_in_one_way() -> None:
    """None is named twice, none is named that does not exist; what nobody divides is worked out anew."""
    named = [*growing.OF_QUESTIONS, *growing.OF_SCORING, *growing.OF_TRADING, *growing.OF_CONTESTS, *growing.OF_ALL]
    assert len(set(named)) == len(named)
    assert sorted([*named, *growing.OTHERS]) == sorted(NAMES)


def test_a_forecast_touches_its_question_alone() -> None:
    """On a question not yet resolved: neither other questions nor scores are worked out again."""
    asked: list[Any] = [
        opened(),
        opened("snow"),
        contest(),
        entry(),
        entry(question="snow"),
        forecast(),
        resolution("snow"),
    ]
    recorded = oracle.history(*asked, forecast(participant="bob"))
    grows = Growing()
    grows.add(recorded[:-1])
    grows.forget()
    grows.add(recorded[-1:])
    assert {(part.table.name, part.ids) for part in grows.parts()} == {
        ("standing", (("question", "rain"),)),
        ("consensus", (("question", "rain"),)),
    }
