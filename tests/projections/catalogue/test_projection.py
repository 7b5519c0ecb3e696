"""The catalogue: what every projection promises, whatever the log."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings

from forecast_ledger.ledger.model.commands import AnyCommand, OpenContest, read
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.catalogue.projection import CATALOGUE, Projections
from forecast_ledger.projections.catalogue.trading_catalogue import TRADING
from forecast_ledger.projections.core.column_values import KINDS, Ids, plain
from forecast_ledger.projections.core.table import Table
from tests.support import oracle
from tests.support.given import (
    contest,
    enrolment,
    entry,
    finalization,
    forecast,
    numeric,
    opened,
    payment,
    quartiles,
    resolution,
    revocation,
)
from tests.support.paths import ROOT

DATA = ROOT / "data"
STORIES = {"kind_means": "autocast-2022", "admissions": "autocast-2022"}  # where the other story has no row
STORIES |= dict.fromkeys(TRADING, "arena-week")
EVERY = pytest.mark.parametrize("name", CATALOGUE)
KEYS = {name: projection.key for name, projection in CATALOGUE.items()}
PROMISED = {  # at least these columns
    "contests": ("contest", "rules", "pool", "sealed_at", "sealed_digest", "paid"),
    "standing": (),
    "consensus": ("count", "median"),
    "score_parts": ("probability", "reference", "peers", "term", "weight", "contribution"),
    "scores": ("contest", "question", "participant", "score", "coverage", "attainable"),
    "leaderboard": (
        "contest", "rank", "participant", "score", "coverage", "attainable", "take", "share", "prize", "completion",
        "submissions", "excluded",
    ),
    "kind_means": ("contest", "participant", "kind", "mean"),
    "prizes": ("contest", "participant", "prize", "paid"),
    "brier": ("contest", "participant", "n", "brier", "reliability", "resolution_term", "uncertainty"),
    "brier_overall": ("participant", "pooled_brier", "mean_of_contest_means"),
    "calibration": ("contest", "participant", "n", "observed_frequency", "wilson_low", "wilson_high"),
    "admissions": ("contest", "question", "participant", "receipt", "information", "restricted"),
    "accounts": ("cash", "cap", "invested", "value", "total", "net_deposits", "profit", "state"),
    "positions": ("status", "shares", "average_entry", "cost", "realised", "pending_for"),
    "cash": ("movement", "amount", "balance", "debt"),
    "portfolio_snapshots": (
        "at", "cash", "positions_value", "total", "profit", "profit_percent", "brier", "resolved_bets", "realised",
        "unrealised", "stale_marks", "stale_age",
    ),
    "trades": ("price", "quote", "confidence", "f_yes", "o_yes", "side_won"),
    "bet_brier": ("confidence", "f_yes", "o_yes", "side_won", "brier", "market_brier"),
    "arena_leaderboard": (
        "rank", "return_percent", "profit", "brier", "skill_against_even_odds", "skill_against_market", "win_rate",
        "turnover", "drawdown",
    ),
    "arena_overall": ("by", "name", "pooled_brier", "mean_of_contest_means", "stake_weighted_brier"),
    "decisions": ("period", "attempt", "outcome", "fault", "legs", "executed", "prompt", "response", "reasoning"),
    "refused_legs": ("leg", "code"),
    "journal": ("log_position", "account", "amount"),
    "marks": ("price", "quoted_at", "age", "source", "log_position"),
}  # fmt: skip
OPTIONAL = {  # columns that may be empty in a row
    "contests": {"sealed_at", "sealed_digest", "starts_at"},
    "score_parts": {"probability", "reference", "peers"},
    "leaderboard": {"rank", "take"},
    "brier": {"consensus_brier", "skill_against_consensus", "skill_against_base_rate"},
    "admissions": {"earliest_at", "latest_at", "information_margin"},
    "positions": {"average_entry", "mark", "pending_for"},
    "cash": {"position"},
    "portfolio_snapshots": {"log_position", "brier", "stale_age"},
    "trades": {"realised", "cap", "confidence", "f_yes", "o_yes", "side_won"},
    "bet_brier": {"f_yes", "o_yes"},
    "arena_leaderboard": {"rank", "brier", "brier_rank", "skill_against_even_odds", "skill_against_market", "win_rate"},
    "arena_overall": {
        "pooled_brier",
        "mean_of_contest_means",
        "skill_against_even_odds",
        "skill_against_market",
        "stake_weighted_brier",
        "win_rate",
    },
    "marks": {"brier"},
}


def story(name: str = "metaculus-2022") -> list[AnyCommand]:
    """The commands of a worked example."""
    return [read(line) for line in (DATA / name / "commands.jsonl").read_text(encoding="utf-8").splitlines()]


def told(name: str) -> Table:
    """A table of a worked example that has rows of it."""
    of = STORIES.get(name, "metaculus-2022")
    if of == "arena-week":  # which sends two commands twice
        return Projections(oracle.told(oracle.attempted(story(of))[0])).table(name)
    return oracle.projected(*story(of)).table(name)


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
    table = told(name)
    assert (table.name, table.version, table.columns) == (name, CATALOGUE[name].version, CATALOGUE[name].columns)
    lengths = [len(plain(values)) for values in table.values]
    assert lengths == [len(table)] * len(table.columns)
    assert len(table) > 0


@EVERY
def test_what_is_no_count_is_printed_as_text(name: str) -> None:
    """Scores, coverages, takes, shares and prizes are decimal text, so that no reader makes floats of them."""
    for row in told(name).rows():
        for column in CATALOGUE[name].columns:
            kind = int if column.kind == "count" else str
            missing = row[column.name] is None and column.name in OPTIONAL.get(name, ())
            assert missing or type(row[column.name]) is kind


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
        assert CATALOGUE[name].as_built or rows == sorted(rows)


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
    "questions alone": [opened(), numeric(), quartiles()],
    "a contest alone": [contest()],
    "a contest over what nobody forecast on": [opened(), contest(), entry(), resolution()],
}


@EVERY
@pytest.mark.parametrize("said", QUIET.values(), ids=QUIET.keys())
def test_a_log_that_says_little_has_tables_without_rows(name: str, said: list[AnyCommand]) -> None:
    """One digest for all of them: the schema's; only a contest has a row of its own."""
    table = oracle.projected(*said).table(name)
    rows = sum(isinstance(each, OpenContest) for each in said) if name == "contests" else 0
    assert (len(table), len(list(table.rows()))) == (rows, rows)
    assert rows or table.digest() == oracle.projected().table(name).digest()


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

    scored = {"score_parts", "scores", "leaderboard", "prizes"}
    judged = {"brier", "brier_overall", "calibration"}
    said: list[AnyCommand] = [opened(), contest(pool=1), entry(), forecast()]
    assert moved(said, resolution()) == scored | judged
    assert moved([*said, resolution()], contest("cap"), entry("cap")) == {"contests"} | scored | judged
    assert moved(said, forecast(participant="bob")) == {"standing", "consensus"}
    assert moved(said, finalization()) == moved(said, contest("cap")) == {"contests"}
    sealed = [*said, resolution(), finalization()]
    assert moved(sealed, payment()) == {"contests", "prizes", "journal"}
    assert moved(sealed, revocation()) == moved(said, enrolment(participant="bob", bot=True)) == set()
    examined: list[AnyCommand] = [opened(), contest(rules=RuleSet(name="own", kernel="ln", attested=True)), entry()]
    assert moved(examined, forecast()) == {"standing", "consensus", "admissions"}
