"""The catalogue: what every projection promises, whatever the log."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings

from ledger import Ledger
from ledger.commands import AnyCommand, read
from projections.projection import CATALOGUE, Projections
from projections.table import KINDS, Ids
from tests import oracle
from tests.given import contest, entry, forecast, numeric, opened, resolution

STORY = Path(__file__).parent.parent / "data" / "metaculus-2022" / "commands.jsonl"
EVERY = pytest.mark.parametrize("name", CATALOGUE)
KEYS = {name: projection.key or ("contest", "participant") for name, projection in CATALOGUE.items()}
PROMISED = {  # at least these columns
    "standing": (),
    "consensus": ("count", "median"),
    "score_parts": (),
    "scores": ("contest", "question", "participant", "score", "coverage"),
    "leaderboard": (
        "contest", "rank", "participant", "score", "coverage", "take", "share", "prize", "completion",
    ),
    "prizes": ("contest", "participant", "prize"),
}  # fmt: skip


def story() -> list[AnyCommand]:
    """The commands of the worked example."""
    return [read(line) for line in STORY.read_text(encoding="utf-8").splitlines()]


def digests(projections: Projections) -> dict[str, str]:
    """Of every projection."""
    return {name: projections.table(name).digest() for name in CATALOGUE}


def test_every_promised_projection_is_there_with_its_columns() -> None:
    """And no other, so that whoever adds one comes by here."""
    names = {name: [column.name for column in projection.columns] for name, projection in CATALOGUE.items()}
    assert names.keys() == PROMISED.keys()
    assert all(set(PROMISED[name]) <= set(columns) for name, columns in names.items())


@EVERY
def test_a_projection_says_what_it_and_each_column_mean(name: str) -> None:
    """In names that occur once, of kinds that exist, under a version."""
    projection = CATALOGUE[name]
    assert projection.meaning
    assert projection.version >= 1
    assert all(column.meaning and column.kind in KINDS for column in projection.columns)
    names = [column.name for column in projection.columns]
    assert len(set(names)) == len(names)
    assert set(projection.key) <= set(names)


@EVERY
def test_a_table_is_named_after_its_projection_and_has_its_columns(name: str) -> None:
    """All of one length."""
    table = oracle.projected(*story()).table(name)
    assert (table.name, table.version, table.columns) == (name, CATALOGUE[name].version, CATALOGUE[name].columns)
    lengths = [len(values.codes) if isinstance(values, Ids) else len(values) for values in table.values]
    assert lengths == [len(table)] * len(table.columns)
    assert len(table) > 0


@EVERY
def test_what_is_no_count_is_printed_as_text(name: str) -> None:
    """Scores, coverages, takes, shares and prizes are decimal text, so that no reader makes floats of them."""
    plain = {"micros", "count"}
    for row in oracle.projected(*story()).table(name).rows():
        for column in CATALOGUE[name].columns:
            assert isinstance(row[column.name], int if column.kind in plain else str)


def test_a_table_that_is_not_in_the_catalogue_is_not_found() -> None:
    """By its own name."""
    with pytest.raises(KeyError, match="standings"):
        oracle.projected(*story()).table("standings")


@settings(max_examples=40, deadline=None)
@given(oracle.logs())
def test_a_key_names_one_row_and_rows_come_in_order_of_their_key(asked: list[AnyCommand]) -> None:
    """Over logs of all kinds; a board has its own order, but one row a participant."""
    recorded, _ = oracle.attempted(asked)
    found = oracle.told(recorded)
    for name, key in KEYS.items():
        table = Projections(found).table(name)
        columns = {column.name: values for column, values in zip(table.columns, table.values, strict=True)}
        parts = [values.ranks() if isinstance(values := columns[part], Ids) else values for part in key]
        rows = list(zip(*(list(part) for part in parts), strict=True))
        assert len(set(rows)) == len(rows)
        assert not CATALOGUE[name].key or rows == sorted(rows)


def test_a_board_comes_by_contest_then_take_then_id() -> None:
    """Best first in each."""
    rows = list(oracle.projected(*story()).table("leaderboard").rows())
    names = [(row["contest"], row["participant"]) for row in rows]
    hidden_only = [("hidden-only", who) for who in ("B", "A", "C", "bot")]
    assert names == hidden_only + [("plain", who) for who in ("B", "A", "bot", "C")]


@pytest.mark.parametrize("chunk", [1, 2, 7, 10**9])
def test_digests_do_not_depend_on_how_many_forecasts_are_scored_together(chunk: int) -> None:
    """In the worked example."""
    assert digests(oracle.projected(*story(), chunk=chunk)) == digests(oracle.projected(*story()))


def test_digests_do_not_depend_on_when_the_ledger_recorded_what_it_was_told() -> None:
    """Two stores, two clocks."""
    found = []
    for recorded_at in (0, 1_800_000_000_000_000):
        with Ledger.open(":memory:", clock=lambda: recorded_at) as ledger:  # noqa: B023 - called before it changes
            ledger.handle_many(story())
            recorded = [each for page in ledger.read() for each in page]
        assert {each.recorded_at for each in recorded} == {recorded_at}
        found.append(digests(Projections(oracle.told(recorded))))
    assert found[0] == found[1]


def test_digests_do_not_depend_on_what_is_asked_for_first() -> None:
    """Each table is worked out when first asked for, and then again the same."""
    one, other = oracle.projected(*story()), oracle.projected(*story())
    assert digests(one) == {name: other.table(name).digest() for name in reversed(CATALOGUE)} == digests(one)


QUIET: dict[str, list[AnyCommand]] = {
    "nothing": [],
    "questions alone": [opened(), numeric()],
    "a contest alone": [contest()],
    "a contest over what nobody forecast on": [opened(), contest(), entry(), resolution()],
}


@EVERY
@pytest.mark.parametrize("said", QUIET.values(), ids=QUIET.keys())
def test_a_log_that_says_little_has_tables_without_rows(name: str, said: list[AnyCommand]) -> None:
    """One digest for all of them: the schema's."""
    table = oracle.projected(*said).table(name)
    assert (len(table), list(table.rows())) == (0, [])
    assert table.digest() == oracle.projected().table(name).digest()


def test_questions_without_a_contest_have_standings_and_medians() -> None:
    """And no scores."""
    found = oracle.projected(opened(), forecast(), resolution())
    lengths = {name: len(found.table(name)) for name in CATALOGUE}
    assert lengths == dict.fromkeys(CATALOGUE, 0) | {"standing": 1, "consensus": 2}


def test_each_fact_moves_what_follows_from_it_and_nothing_else() -> None:
    """A resolution moves no standing, a contest moves no median."""

    def moved(before: Sequence[AnyCommand], *more: AnyCommand) -> set[str]:
        one, other = digests(oracle.projected(*before)), digests(oracle.projected(*before, *more))
        return {name for name in CATALOGUE if one[name] != other[name]}

    said: list[AnyCommand] = [opened(), contest(pool=1), entry(), forecast()]
    assert moved(said, resolution()) == {"score_parts", "scores", "leaderboard", "prizes"}
    assert moved([*said, resolution()], contest("cap"), entry("cap")) == {
        "score_parts",
        "scores",
        "leaderboard",
        "prizes",
    }
    assert moved(said, forecast(participant="bob")) == {"standing", "consensus"}
