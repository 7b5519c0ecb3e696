"""The differences between two tables of one projection."""

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.replay.explain.diff import differences
from tests.support import oracle
from tests.support.given import OPENS, contest, entry, forecast, opened, resolution

SAID: list[AnyCommand] = [
    opened(),
    contest(rules="baseline"),
    entry(),
    forecast(probability="0.7", at=OPENS),
    resolution(),
]


def test_equal_tables_do_not_differ() -> None:
    """However often they are worked out."""
    one, other = (oracle.projected(*SAID).table("scores") for _ in range(2))
    assert list(differences(one, other)) == []


def test_a_row_that_comes_goes_or_changes_is_told_with_its_key() -> None:
    """The old value, then the new; nothing stands for a row that is not there."""
    before, after = (oracle.projected(*said).table("standing") for said in (SAID, [*SAID[:3]]))
    [gone] = differences(before, after)
    [come] = differences(after, before)
    assert gone.key == come.key
    assert (list(gone.key), gone.key["participant"]) == (["question", "participant", "from_at"], "ada")
    assert {name: (new, old) for name, (old, new) in gone.columns.items()} == come.columns
    assert all(new is None for _, new in gone.columns.values())
    other = oracle.projected(*SAID[:3], forecast(probability="0.6", at=OPENS), *SAID[4:])
    [changed] = differences(oracle.projected(*SAID).table("scores"), other.table("scores"))
    assert {"score", "numerator"} == set(changed.columns)
    assert [value[:5] for value in changed.columns["score"]] == ["48.54", "26.30"]  # 100 (1 + log2 p), of 0.7 and 0.6
