"""Properties that every projection has for every log."""

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings

from forecast_ledger.ledger.model.commands import AnyCommand, OpenContest, OpenQuestion, read
from forecast_ledger.ledger.model.events import ContestOpened, ForecastMade, ForecastWithdrawn
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.columns import KINDS, Ids, plain_values
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables import accounts, arena, questions
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.projections.tables.question_parts import needed
from forecast_ledger.projections.tables.schemas import kinds_of
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    asked,
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

# --- Properties that every projection has for every log.


DATA = ROOT / "data"
STORIES = {
    "kind_means": "autocast-2022",
    "admissions": "autocast-2022",
    "relative_skill": "autocast-2022",
    "leaderboard_by_group": "question-groups",
    "wis_parts": "hub-scores",
    "interval_coverage": "hub-scores",
    "calibration_by_option": "autocast-2022",
}
TRADING = {*accounts.ACCOUNTS, *arena.ARENA, *accounts.DECISIONS, *accounts.JOURNAL, *questions.PRICES}
STORIES |= dict.fromkeys((*TRADING, "implied_returns", "mean_implied_returns"), "arena-week")
STORIES |= {"fees": "exchange-fees", "quotes": "bids-and-asks"}
EVERY = pytest.mark.parametrize("name", CATALOGUE)
KEYS = {name: projection.key for name, projection in CATALOGUE.items()}
PROMISED = {  # at least these columns
    "contests": ("contest", "rules", "pool", "sealed_at", "sealed_digest", "paid"),
    "questions": ("state", "outcome", "value", "closed_at", "group", "category", "tags", "url", "source"),
    "forecasts": (
        "made_at", "recorded_at", "until", "from_at", "to_at", "ended_by", "outcome", "level", "probability", "value",
        "log_position",
    ),
    "standing": (),
    "consensus": ("count", "median"),
    "score_parts": ("probability", "reference", "peers", "term", "weight", "contribution"),
    "scores": ("contest", "question", "participant", "score", "coverage", "attainable"),
    "leaderboard": (
        "contest", "rank", "participant", "score", "coverage", "attainable", "take", "share", "prize", "completion",
        "submissions", "excluded",
    ),
    "leaderboard_by_group": ("contest", "by", "name", "rank", "participant", "score", "coverage", "completion"),
    "intervals": (
        "clusters", "withheld", "score", "score_low", "score_high", "rank", "rank_set_low", "rank_set_high", "first",
        "best_5_percent", "prize", "prize_low", "prize_high", "replicates", "seed",
    ),
    "marginal_ranks": ("contest", "participant", "clusters", "rank", "rank_low", "rank_high", "seed"),
    "resolution": ("contest", "ranked", "pairs", "smallest", "middle", "largest"),
    "baseline_differences": (
        "contest", "baseline", "participant", "questions", "clusters", "withheld", "difference", "difference_low",
        "difference_high", "p", "p_adjusted", "horizon", "periods", "diebold_mariano", "diebold_mariano_p", "seed",
    ),
    "pairwise": (
        "contest", "participant", "other", "questions", "won", "lost", "won_share", "clusters", "withheld",
        "difference", "difference_low", "difference_high", "p", "p_adjusted", "hoeffding_low", "hoeffding_high",
        "bernstein_low", "bernstein_high",
        "seed",
    ),
    "corp": ("contest", "participant", "n", "brier", "miscalibration", "discrimination", "uncertainty"),
    "corp_blocks": ("from_probability", "to_probability", "n", "happened", "recalibrated"),
    "wis_parts": (
        "contest", "question", "participant", "wis", "dispersion", "overprediction", "underprediction", "median_error",
        "dispersion_numerator", "overprediction_numerator", "underprediction_numerator", "denominator",
    ),
    "interval_coverage": ("contest", "participant", "probability", "n", "covered", "coverage"),
    "pit_counts": ("contest", "participant", "from_probability", "to_probability", "n"),
    "calibration_by_option": ("contest", "participant", "n", "happened", "observed_frequency", "wilson_low"),
    "calibration_time_weighted": (
        "contest", "participant", "n", "questions", "weight", "observed_frequency", "band_low", "band_high", "seed",
    ),
    "calibration_by_cluster": ("contest", "participant", "n", "happened", "wilson_low", "wilson_high", "clusters"),
    "calibration_test": ("contest", "participant", "n", "clusters", "miscalibration", "p", "replicates", "seed"),
    "corp_band": ("contest", "participant", "probability", "n", "recalibrated", "band_low", "band_high", "seed"),
    "murphy_curve": ("contest", "participant", "threshold", "n", "false_alarms", "misses", "score"),
    "score_over_time": ("contest", "answered", "participant", "question", "log_position", "score", "rank", "coverage"),
    "kind_means": ("contest", "participant", "kind", "mean"),
    "difficulty": ("by", "name", "part", "contest", "question", "participants", "mean_score", "effect"),
    "relative_skill": ("contest", "baseline", "participant", "compared", "relative_skill", "scaled_relative_skill"),
    "participant_review": (
        "contest", "participant", "place", "question", "score", "rank", "forecasters", "coverage", "attainable",
        "median", "counted", "gained",
    ),
    "adjusted_scores": ("rank", "participant", "questions", "mean_score", "adjusted_score", "brier_index", "excluded"),
    "adjusted_intervals": (
        "contest", "part", "participant", "clusters", "withheld", "rank", "adjusted_score", "adjusted_low",
        "adjusted_high", "rank_set_low", "rank_set_high", "rank_low", "rank_high", "brier_index", "brier_index_low",
        "brier_index_high", "replicates", "seed",
    ),
    "prizes": ("contest", "participant", "prize", "paid"),
    "brier": ("contest", "participant", "n", "brier", "reliability", "resolution_term", "uncertainty"),
    "brier_overall": ("participant", "pooled_brier", "mean_of_contest_means"),
    "calibration": ("contest", "participant", "n", "observed_frequency", "wilson_low", "wilson_high"),
    "admissions": ("contest", "question", "participant", "receipt", "information", "restricted"),
    "accounts": ("cash", "cap", "invested", "value", "total", "net_deposits", "profit", "state"),
    "positions": ("status", "shares", "average_entry", "cost", "realised", "pending_for"),
    "cash": ("movement", "amount", "balance", "debt"),
    "fees": ("contest", "participant", "log_position", "movement", "fee", "fees"),
    "portfolio_snapshots": (
        "at", "cash", "positions_value", "total", "profit", "profit_percent", "brier", "resolved_bets", "realised",
        "unrealised", "stale_marks", "stale_age",
    ),
    "trades": ("price", "quote", "confidence", "f_yes", "o_yes", "side_won"),
    "bet_brier": ("confidence", "f_yes", "o_yes", "side_won", "brier", "market_brier"),
    "implied_returns": (
        "contest", "question", "participant", "all_in", "proportional", "kelly_stake", "kelly", "alpha", "left_out",
    ),
    "mean_implied_returns": ("contest", "participant", "n", "left_out", "all_in", "proportional", "kelly", "alpha"),
    "arena_leaderboard": (
        "rank", "return_percent", "profit", "brier", "skill_against_even_odds", "skill_against_market", "win_rate",
        "turnover", "drawdown", "sharpe_ratio",
    ),
    "arena_series": ("series", "by", "name", "rank", "contests", "participants", "profit", "interpretation"),
    "arena_overall": ("by", "name", "interpretation", "pooled_brier", "mean_of_contest_means", "stake_weighted_brier"),
    "decisions": ("period", "attempt", "outcome", "fault", "legs", "executed", "prompt", "response", "reasoning"),
    "refused_legs": ("leg", "code"),
    "model_calls": ("input_tokens", "output_tokens", "cost", "latency", "settings", "shown"),
    "journal": ("log_position", "account", "amount"),
    "trial_balance": ("contest", "account", "postings", "added", "taken", "balance"),
    "marks": ("price", "quoted_at", "age", "source", "log_position"),
    "quotes": ("log_position", "known_from", "quoted_at", "source", "price", "bid", "ask"),
}  # fmt: skip
OPTIONAL = {  # columns that may be empty in a row
    "forecasts": {"until", "from_at", "to_at", "ended_by", "level", "probability", "value"},
    "contests": {"sealed_at", "sealed_digest", "starts_at"},
    "questions": {"reveals_at", "outcome", "value"},
    "score_parts": {"probability", "reference", "peers"},
    "leaderboard": {"rank", "take"},
    "adjusted_scores": {"rank", "brier_index"},
    "adjusted_intervals": {
        "adjusted_low",
        "adjusted_high",
        "rank_set_low",
        "rank_set_high",
        "rank_low",
        "rank_high",
        "brier_index",
        "brier_index_low",
        "brier_index_high",
    },
    "participant_review": {"score", "rank", "counted", "gained"},
    "score_over_time": {"rank"},
    "wis_parts": {"median_error", "median_error_numerator"},
    "implied_returns": {
        "quoted_at",
        "bought",
        "probability",
        "price",
        "all_in",
        "proportional",
        "kelly_stake",
        "kelly",
        "brier",
        "market_brier",
        "alpha",
    },
    "mean_implied_returns": {"all_in", "proportional", "kelly", "brier", "market_brier", "alpha"},
    "relative_skill": {"relative_skill", "scaled_relative_skill"},
    "pairwise": {
        "difference_low",
        "difference_high",
        "hoeffding_low",
        "hoeffding_high",
        "bernstein_low",
        "bernstein_high",
    },
    "intervals": {
        "rank",
        "score_low",
        "score_high",
        "rank_set_low",
        "rank_set_high",
        "first",
        "best_5_percent",
        "prize",
        "prize_low",
        "prize_high",
    },
    "marginal_ranks": {"rank_low", "rank_high"},
    "baseline_differences": {
        "difference_low",
        "difference_high",
        "horizon",
        "periods",
        "diebold_mariano",
        "diebold_mariano_p",
    },
    "brier": {"consensus_brier", "skill_against_consensus", "skill_against_base_rate"},
    "admissions": {"earliest_at", "latest_at", "information_margin"},
    "positions": {"average_entry", "mark", "pending_for"},
    "cash": {"position"},
    "portfolio_snapshots": {"log_position", "brier", "stale_age"},
    "trades": {"realised", "cap", "confidence", "f_yes", "o_yes", "side_won"},
    "bet_brier": {"f_yes", "o_yes"},
    "model_calls": {"attempt", "input_tokens", "output_tokens", "cost", "latency"},
    "arena_leaderboard": {
        "rank",
        "brier",
        "brier_rank",
        "skill_against_even_odds",
        "skill_against_market",
        "win_rate",
        "sharpe_ratio",
    },
    "arena_series": {
        "pooled_brier",
        "mean_of_contest_means",
        "skill_against_even_odds",
        "skill_against_market",
        "stake_weighted_brier",
        "return_percent",
        "win_rate",
    },
    "arena_overall": {
        "pooled_brier",
        "mean_of_contest_means",
        "skill_against_even_odds",
        "skill_against_market",
        "stake_weighted_brier",
        "win_rate",
    },
    "marks": {"brier"},
    "quotes": {"price", "bid", "ask"},
}


def story(name: str = "metaculus-2022") -> list[AnyCommand]:
    """The commands of a worked example."""
    return [read(line) for line in (DATA / name / "commands.jsonl").read_text(encoding="utf-8").splitlines()]


@cache
def example(name: str) -> Projections:
    """The projections of a worked example, of which several tests read a table each."""
    if name == "many":  # questions: 20
        chances = [{"ada": f"0.{(7 * number) % 9 + 1}", "bob": "0.5"} for number in range(20)]
        said = [each for number, own in enumerate(chances) for each in asked(f"q{number}", own)]
        return oracle.projected(contest(), *said)
    if name == "arena-week":  # which sends two commands twice
        return Projections(oracle.facts_in(oracle.attempted(story(name))[0]))
    return oracle.projected(*story(name))


def example_table(name: str) -> Table:
    """Return a table of a worked example in which it has rows."""
    return example("many" if name == "resolution" else STORIES.get(name, "metaculus-2022")).table(name)


def digests(projections: Projections) -> dict[str, str]:
    """The digest of every table."""
    return {name: projections.table(name).digest() for name in CATALOGUE}


def test_every_promised_projection_is_there_with_its_columns() -> None:
    """The catalogue has exactly these projections, so that a new one is added here too."""
    names = {name: [column.name for column in projection.columns] for name, projection in CATALOGUE.items()}
    assert names.keys() == PROMISED.keys()
    assert all(set(PROMISED[name]) <= set(columns) for name, columns in names.items())


def test_a_projection_and_its_columns_have_meanings() -> None:
    """Column names are unique, their kinds exist, and the version is at least 1."""
    for name, projection in CATALOGUE.items():
        assert projection.meaning, name
        assert projection.version >= 1, name
        assert all(column.meaning and column.kind in KINDS for column in projection.columns), name
        names = [column.name for column in projection.columns]
        assert len(set(names)) == len(names), name
        assert set(projection.key) <= set(names), name


@EVERY
def test_a_table_is_named_after_its_projection_and_has_its_columns(name: str) -> None:
    """All columns have the same length."""
    table = example_table(name)
    assert (table.name, table.version, table.columns) == (name, CATALOGUE[name].version, CATALOGUE[name].columns)
    lengths = [len(plain_values(values)) for values in table.values]
    assert lengths == [len(table)] * len(table.columns)
    assert len(table) > 0


@EVERY
def test_only_counts_are_printed_as_numbers(name: str) -> None:
    """Scores, coverages, takes, shares and prizes are decimal text, so that no reader converts them to floats."""
    found = {(column, type(value)) for row in example_table(name).rows() for column, value in row.items()}
    for column in CATALOGUE[name].columns:
        kinds = {kind for named, kind in found if named == column.name}
        missing = {type(None)} if column.name in OPTIONAL.get(name, ()) else set()
        assert kinds - missing <= {int if column.kind == "count" else str}


def test_a_table_that_is_not_in_the_catalogue_is_not_found() -> None:
    """The error has the name of the table."""
    with pytest.raises(KeyError, match="no table named 'standings'; there are standing, accounts"):
        oracle.projected(*story()).table("standings")


@settings(max_examples=times(40), deadline=None)
@given(oracle.logs())
def test_keys_are_unique_and_rows_are_in_order_of_their_key(commands: list[AnyCommand]) -> None:
    """Holds for logs of all kinds; a leaderboard has its own order, but one row for each participant."""
    recorded, _ = oracle.attempted(commands)
    projections = Projections(oracle.facts_in(recorded))
    for name, key in KEYS.items():
        table = projections.table(name)
        columns = {column.name: values for column, values in zip(table.columns, table.values, strict=True)}
        parts = [values.ranks() if isinstance(values := columns[part], Ids) else values for part in key]
        rows = list(zip(*(list(part) for part in parts), strict=True))
        assert len(set(rows)) == len(rows)
        assert CATALOGUE[name].as_built or rows == sorted(rows)


def test_a_leaderboard_is_in_order_of_contest_take_and_id() -> None:
    """The best participant of each contest is first."""
    rows = list(oracle.projected(*story()).table("leaderboard").rows())
    names = [(row["contest"], row["participant"]) for row in rows]
    hidden_only = [("hidden-only", participant) for participant in ("B", "A", "C", "bot")]
    assert names == hidden_only + [("plain", participant) for participant in ("B", "A", "bot", "C")]


@pytest.mark.parametrize("chunk", [1, 7])
def test_digests_do_not_depend_on_how_many_forecasts_are_scored_together(chunk: int) -> None:
    """The worked example has the same digests with every chunk size."""
    assert digests(oracle.projected(*story(), chunk=chunk)) == digests(oracle.projected(*story()))


def test_digests_do_not_depend_on_when_commands_are_recorded() -> None:
    """Two stores with two clocks have the same digests."""
    by_clock = []
    for recorded_at in (0, 1_800_000_000_000_000):
        recorded = oracle.history(*story(), at=recorded_at)
        assert {event.recorded_at for event in recorded} == {recorded_at}
        taken = digests(Projections(oracle.facts_in(recorded)))
        del taken["forecasts"]  # when each was recorded
        by_clock.append(taken)
    assert by_clock[0] == by_clock[1]


def test_digests_do_not_depend_on_the_order_in_which_tables_are_built() -> None:
    """Tables are computed on first use; later uses return the same."""
    first, second = oracle.projected(*story()), oracle.projected(*story())
    assert digests(first) == {name: second.table(name).digest() for name in reversed(CATALOGUE)} == digests(first)


DRAWN = ("calibration_test", "calibration_time_weighted", "corp_band")
QUIET: dict[str, list[AnyCommand]] = {
    "nothing": [],
    "only questions": [opened(), numeric(), quartiles()],
    "only a contest": [contest()],
    "a contest without forecasts": [opened(), contest(), entry(), resolution()],
}


TABLES_OF_AN_EVENT = (
    "if events of this test give a new table rows, or change them, name it among the expected tables; "
    "if they should not, its builder reads too much"
)


@pytest.mark.parametrize("commands", QUIET.values(), ids=QUIET.keys())
def test_a_log_without_scores_has_empty_tables(commands: list[AnyCommand]) -> None:
    """Each empty table has the digest of its schema; only a contest and a question have a row of their own."""
    projections, empty = oracle.projected(*commands), oracle.projected()
    for name in CATALOGUE:
        table = projections.table(name)
        kind = {"contests": OpenContest, "questions": OpenQuestion}.get(name)
        rows = sum(isinstance(command, kind) for command in commands) if kind else 0
        assert (len(table), len(list(table.rows()))) == (rows, rows), f"{TABLES_OF_AN_EVENT}; here: {name}"
        assert rows or table.digest() == empty.table(name).digest(), name


def test_questions_without_a_contest_have_standings_and_medians() -> None:
    """Without a contest, no other table has rows."""
    projections = oracle.projected(opened(), forecast(), resolution())
    lengths = {name: len(projections.table(name)) for name in CATALOGUE}
    rows = {"questions": 1, "forecasts": 2, "standing": 1, "consensus": 2}
    assert {name for name, length in lengths.items() if length != rows.get(name, 0)} == set(), TABLES_OF_AN_EVENT


def test_a_table_of_forecasts_that_every_replay_builds_is_made_some_questions_at_a_time() -> None:
    """Replays in parts, by engines or within some memory, have no facts of all forecasts."""
    of_forecasts = kinds_of([ForecastMade, ForecastWithdrawn]) - kinds_of([ContestOpened])
    built = {name for name, row in CATALOGUE.items() if not row.on_request and of_forecasts & {*row.reads}}
    assert {name for name in built if not needed([name])} == set(), (
        "these read forecasts: give each a division by question or of sums (see `question_parts`), or on_request=True"
    )
    assert {"standing", "consensus", "scores", "leaderboard", "brier"} <= built


def test_an_event_changes_only_the_tables_that_depend_on_it() -> None:
    """A resolution changes no standing forecast, a contest changes no median."""

    def check(expected: set[str], before: Sequence[AnyCommand], *more: AnyCommand) -> None:
        old, new = digests(oracle.projected(*before)), digests(oracle.projected(*before, *more))
        changed = {name for name in CATALOGUE if old[name] != new[name]}
        assert changed == expected, f"{TABLES_OF_AN_EVENT}; here: {', '.join(sorted(changed ^ expected))}"

    scored = {"score_parts", "scores", "leaderboard", "prizes", "intervals", "difficulty", "adjusted_scores"}
    scored |= {"adjusted_intervals", "marginal_ranks", "score_over_time", "participant_review"}
    brier_tables = {"brier", "brier_overall", "calibration", "corp", "corp_blocks"}
    brier_tables |= {*DRAWN, "calibration_by_cluster", "murphy_curve"}
    commands: list[AnyCommand] = [opened(), contest(pool=1), entry(), forecast()]
    check({"questions"} | scored | brier_tables, commands, resolution())
    check({"contests"} | scored | brier_tables, [*commands, resolution()], contest("cap"), entry("cap"))
    check({"forecasts", "standing", "consensus"}, commands, forecast(participant="bob"))
    check({"contests"}, commands, finalization())
    check({"contests"}, commands, contest("cap"))
    sealed = [*commands, resolution(), finalization()]
    check({"contests", "prizes", "journal", "trial_balance"}, sealed, payment())
    check(set(), commands, enrolment(participant="bob", bot=True))
    check({"questions"}, sealed, revocation())
    examined: list[AnyCommand] = [opened(), contest(rules=RuleSet(name="own", kernel="ln", attested=True)), entry()]
    check({"forecasts", "standing", "consensus", "admissions"}, examined, forecast())
