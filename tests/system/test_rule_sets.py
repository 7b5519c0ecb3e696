"""Every rule set against the slow definition, on random seasons."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS, ReferenceName, RuleSet
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle, rules_oracle
from tests.support.effort import times
from tests.support.given import OPENS, choices, contest, day, entry, forecast, numeric, opened, resolution
from tests.support.paths import ROOT
from tests.support.rules_oracle import Case, Score
from tests.support.seasons import Season, drawn_rules, imputed_rules, mean_rules, median_rules

DATA = ROOT / "data"
NINE = Fraction(1, 10**9)
RANDOMS = st.integers(0, 2**64).map(Random)
TABLES = ("score_parts", "scores", "leaderboard", "prizes")

Row = dict[str, Any]
Key = tuple[str, str]  # question, participant


def defined(rules: RuleSet, *said: AnyCommand) -> dict[str, Decimal]:
    """Scores by the slow definition, to six decimals, for the only question of a contest."""
    asked = said[0]
    assert isinstance(asked, commands.OpenQuestion)
    recorded = oracle.history(*said, contest(rules=rules), entry(question=asked.question))
    [case] = rules_oracle.cases(recorded, "cup").values()
    return {who: Decimal(round(score.score * 10**6)).scaleb(-6) for who, score in rules_oracle.scores(case).items()}


def test_the_definition_agrees_with_the_worked_examples_of_a_day_and_of_time() -> None:
    """Ten days, 0.6 for 18 hours, 0.75 for 60, 0.9 for the rest: 0.034375 by time, 0.02575 by the last of each day.

    Worked out by hand.
    """
    said: list[AnyCommand] = [opened(), resolution()]
    said[1:1] = [
        forecast(probability=p, at=at) for p, at in (("0.6", OPENS), ("0.75", day(10, 18)), ("0.9", day(13, 6)))
    ]
    rules = RuleSet(name="x", kernel="brier", period="covered", total="mean")
    assert defined(rules, *said) == {"ada": Decimal("0.034375")}
    assert defined(msgspec.structs.replace(rules, sampling="day"), *said) == {"ada": Decimal("0.02575")}


@pytest.mark.parametrize(
    ("kernel", "chances", "score"),
    [
        ("brier_sum", ("0.25", "0.25", "0.5", "0"), "0.875"),
        ("brier_sum", ("0.2", "0.3", "0.4", "0.1"), "0.7"),
        ("ordered_brier", ("0.25", "0.25", "0.5", "0"), "0.208333"),
        ("ordered_brier", ("0.25", "0.25", "0.3", "0.2"), "0.235"),
        ("ordered_brier", ("0", "0.5", "0.25", "0.25"), "0.208333"),
        ("ordered_brier", ("0.2", "0.3", "0.4", "0.1"), "0.2"),
        ("brier", ("0.5", "0.3", "0.2"), "0.39"),
        ("spherical", ("0.5", "0.3", "0.2"), "0.486664"),
        ("ln", ("0.5", "0.3", "0.2"), "-1.203973"),
    ],
)
def test_the_definition_agrees_with_the_worked_examples_of_kernels(
    kernel: Any, chances: tuple[str, ...], score: str
) -> None:
    """The second of the outcomes happened. Worked out by hand."""
    names = tuple("abcd"[: len(chances)])
    total: Any = "sum" if kernel in {"ln", "spherical"} else "mean"
    rules = RuleSet(name="x", kernel=kernel, period="covered", total=total)
    made = forecast("colour", probabilities=dict(zip(names, chances, strict=True)), at=OPENS)
    said = choices(outcomes=names), made, resolution("colour", outcome="b")
    assert defined(rules, *said) == {"ada": Decimal(score)}


def test_the_definition_agrees_with_the_worked_example_of_quantiles() -> None:
    """Interval [4, 8] of 80 % and the median 7, answer 10: 2.6. Source: Bracher, Ray, Gneiting and Reich (2021)."""
    rules = RuleSet(name="x", quantile_kernel="pinball", period="covered", total="mean")
    asked = numeric(upper=20, bins=None, levels=("0.1", "0.5", "0.9"))
    made = forecast("depth", quantiles=("4", "7", "8"), at=OPENS)
    assert defined(rules, asked, made, resolution("depth", value="10")) == {"ada": Decimal("2.6")}


def test_the_definition_agrees_with_the_worked_example_of_peers() -> None:
    """Log scores of -1, 1 and 2 less others': -2.5, 0.5 and 2. Source: Metaculus, Scores FAQ, "What is the Peer
    score?".
    """
    rules = RuleSet(name="x", kernel="log2", reference="peers")
    chances = {"alex": "0.0625", "bailey": "0.25", "cory": "0.5"}  # log2 -4, -2, -1: three less than the example's
    made = [forecast(participant=who, probability=chance, at=OPENS) for who, chance in chances.items()]
    expected = {"alex": Decimal("-2.5"), "bailey": Decimal("0.5"), "cory": Decimal(2)}
    assert defined(rules, opened(), *made, resolution()) == expected


def test_the_definition_agrees_with_the_worked_tournament() -> None:
    """Takes of .663, 4.782, .275 and .417 of a pool of 1,000. Source: Metaculus, Tournament Scoring, "Tournament
    Scoring".
    """
    lines = (DATA / "metaculus-2022" / "commands.jsonl").read_text(encoding="utf-8").splitlines()
    recorded = oracle.history(*map(commands.read, lines))
    cents = []
    for name in oracle.world(recorded).contests:
        scores = {
            (question, who): (score.score, score.coverage)
            for question, case in rules_oracle.cases(recorded, name).items()
            for who, score in rules_oracle.scores(case).items()
        }
        cents.append([place.prize // 10**4 for place in rules_oracle.board(recorded, name, scores)])
    assert sorted(cents) == [[77_930, 10_800, 6_790, 4_480], [79_887, 14_946, 5_167, 0]]


def rows(projections: Projections, name: str, contest: str) -> list[Row]:
    """A contest's rows of a table."""
    return [row for row in projections.table(name).rows() if row["contest"] == contest]


def by_key(table: Sequence[Row]) -> dict[Key, list[Row]]:
    """Rows by question and participant, which they are in order of."""
    return {key: list(group) for key, group in groupby(table, lambda row: (row["question"], row["participant"]))}


def slow(cases: Mapping[str, Case]) -> dict[Key, Score]:
    """Every score of a contest by its definition."""
    return {(name, who): score for name, case in cases.items() for who, score in rules_oracle.scores(case).items()}


def slack(case: Case, score: Score) -> Fraction:
    """The largest error of term x units of a part: n / (n - 1) and the mean are rounded to 2^-20 µs, or 2^-56 units."""
    if case.rules.reference not in {"peers", "mean_score"}:
        return Fraction(0)
    steepest = max(abs(part.term) for part in score.parts) + Fraction(1, 10**4)  # the coarsest kernel's quantum
    return steepest / 2 ** (20 if case.rules.sampling == "time" else 56)


def recorded_season(random: Random, *rules: RuleSet | str) -> tuple[list[Recorded], Projections]:
    """A season recorded, and its projections, some questions at a time."""
    recorded = Season(
        random,
        *rules,
        ending=random.choice([0, 0.5]),
        uncounted=0.2,
        quoted=0.5,
        paid=0.3,
        moved=0.4,
        restated=0.4,
        renamed=0.5,
    ).recorded()
    return recorded, Projections(oracle.facts_in(recorded), random.choice([1, 7, 1 << 20]))


def check_scores(recorded: Sequence[Recorded], projections: Projections, contest: str) -> None:
    """Scores, coverage and what was attainable are those of the definition; against peers, nearly."""
    cases = rules_oracle.cases(recorded, contest)
    fast = by_key(rows(projections, "scores", contest))
    expected = slow(cases)
    assert set(fast) == set(expected)
    for (name, who), [row] in fast.items():
        score, case = expected[name, who], cases[name]
        exact = Fraction(int(row["numerator"]), int(row["denominator"]))
        most = slack(case, score) * len(score.parts) * rules_oracle.scale(case) / score.period
        assert abs(exact - score.score) <= most, (name, who)
        assert Decimal(row["score"]) == oracle.nine(exact)
        assert Decimal(row["coverage"]) == oracle.nine(score.coverage)
        assert Decimal(row["attainable"]) == oracle.nine(rules_oracle.attainable(case))


def check_board(recorded: Sequence[Recorded], projections: Projections, contest: str) -> None:
    """Totals, takes, ranks and prizes follow from the scores as defined, row by row in order."""
    scores = rows(projections, "scores", contest)
    exact = {key: Fraction(int(row["numerator"]), int(row["denominator"])) for key, [row] in by_key(scores).items()}
    covered = {key: score.coverage for key, score in slow(rules_oracle.cases(recorded, contest)).items()}
    places = rules_oracle.board(recorded, contest, {key: (exact[key], covered[key]) for key in exact})
    board = rows(projections, "leaderboard", contest)
    for place, row in zip(places, board, strict=True):
        assert (row["take"] is None) == (place.take is None)
        if place.take is not None:
            assert abs(Fraction(Decimal(row["take"])) - place.take) <= NINE / 2 + place.take / 10**28
        assert {name: text for name, text in row.items() if name not in {"contest", "take"}} == printed(place)
    paid = {row["participant"]: row["prize"] for row in rows(projections, "prizes", contest)}
    able = [place for place in places if not place.excluded and place.take is not None]
    assert paid == {place.participant: money(place.prize) for place in able}


def printed(place: rules_oracle.Place) -> Row:
    """A place as the board's row prints it, but for the take."""
    shares = ("score", "coverage", "attainable", "share")
    return (
        {name: getattr(place, name) for name in ("rank", "participant", "completion", "submissions", "excluded")}
        | {name: f"{oracle.nine(getattr(place, name)):.9f}" for name in shares}
        | {"prize": money(place.prize)}
    )


def money(micros: int) -> str:
    """A prize as printed, in tests all of whose payable units are whole cents."""
    return f"{Decimal(micros).scaleb(-6):.2f}"


@settings(max_examples=times(50), deadline=None)
@given(RANDOMS)
def test_every_number_follows_from_the_definition_under_any_rules(random: Random) -> None:
    """Scores, coverage, boards and prizes under rules drawn field by field, in two contests over the same questions."""
    recorded, projections = recorded_season(random, drawn_rules(random), drawn_rules(random))
    for name in ("cup0", "cup1"):
        check_scores(recorded, projections, name)
        check_board(recorded, projections, name)


@settings(max_examples=times(10), deadline=None)
@given(RANDOMS)
def test_every_number_follows_from_the_definition_of_the_mean_brier_score(random: Random) -> None:
    """The kernel `brier_mean` under rules drawn field by field, with answers that are payouts."""
    recorded, projections = recorded_season(random, mean_rules(random))
    check_scores(recorded, projections, "cup0")
    check_board(recorded, projections, "cup0")


@pytest.mark.parametrize(("ordered", "score"), [(None, "0.8125"), (True, "0.8125"), (False, "0.875")])
def test_a_question_without_an_order_has_the_plain_brier_score(ordered: bool | None, score: str) -> None:
    """0.25, 0.25 and 0.5, and the first of three happened: 0.75² + 0.25² + 0.5² = 0.875 without an order. With one it
    is (0.75² + 0.5²) x 2 / 2 = 0.8125.
    """
    rules = RuleSet(name="x", kernel="ordered_brier", sampling="day", day_edges="none", period="covered", total="mean")
    names = {"x": "0.25", "y": "0.25", "z": "0.5"}
    made = forecast("colour", probabilities=names, at=OPENS)
    said = choices(outcomes=tuple(names), ordered=ordered), made, resolution("colour", outcome="x")
    assert defined(rules, *said) == {"ada": Decimal(score)}
    recorded = oracle.history(*said, contest(rules=rules), entry(question="colour"))
    [row] = rows(Projections(oracle.facts_in(recorded)), "scores", "cup")
    assert Decimal(row["score"]) == Decimal(score)


UNORDERED: list[dict[str, Any]] = [
    {"period": "covered", "total": "mean", "payouts": "scored"},
    {"reference": "peers"},
    {"reference": "consensus", "consensus": "squeezed", "score_consensus": True},
    {"reference": "uniform", "consensus": "median", "reference_rows": ("uniform", "market", "consensus")},
    {"period": "covered", "total": "kind_means"},
]


@pytest.mark.parametrize("fields", UNORDERED, ids=str)
@pytest.mark.parametrize("changing", [0, 0.8])
@settings(max_examples=times(8), deadline=None)
@given(RANDOMS)
def test_every_number_follows_from_the_definition_where_some_questions_have_no_order(
    fields: dict[str, Any], changing: float, random: Random
) -> None:
    """Ordered and unordered questions and questions that do not say are in one contest; references follow."""
    rules = RuleSet(name="own", kernel="ordered_brier", **fields)
    season = Season(random, rules, ending=0.2, uncounted=0.2, quoted=0.5, paid=0.3, changing=changing)
    season.commands = [
        msgspec.structs.replace(said, ordered=random.choice([None, True, False, False]))
        if isinstance(said, commands.OpenQuestion) and said.kind == "multiple_choice"
        else said
        for said in season.commands
    ]
    recorded = season.recorded()
    projections = Projections(oracle.facts_in(recorded), random.choice([1, 7, 1 << 20]))
    check_scores(recorded, projections, "cup0")
    check_board(recorded, projections, "cup0")
    check_parts(recorded, projections)


@settings(max_examples=times(30), deadline=None)
@given(RANDOMS, st.sampled_from(["median_score", "mean_score"]))
def test_every_number_follows_from_the_definition_of_the_median_and_the_mean_score(
    random: Random, reference: ReferenceName
) -> None:
    """These references under rules drawn field by field, where outcomes change and answers are payouts."""
    recorded, projections = changing_season(random, median_rules(random, reference))
    check_scores(recorded, projections, "cup0")
    check_board(recorded, projections, "cup0")
    check_parts(recorded, projections)


def changing_season(random: Random, *rules: RuleSet | str) -> tuple[list[Recorded], Projections]:
    """A season in which the outcomes of most questions change, and its projections."""
    season = Season(random, *rules, ending=random.choice([0, 0.5]), uncounted=0.2, quoted=0.5, paid=0.3, changing=0.8)
    recorded = season.recorded()
    return recorded, Projections(oracle.facts_in(recorded), random.choice([1, 7, 1 << 20]))


CHANGING: list[RuleSet | str] = [
    "baseline",
    "peer-2025-06",
    RuleSet(name="own", kernel="ln", reference="uniform", scale="baseline", sampling="day", score_consensus=True),
    RuleSet(name="own", kernel="ln", reference="consensus", consensus="squeezed", consensus_weights="recency"),
    RuleSet(name="own", kernel="brier", reference="uniform", reference_rows=("uniform", "market", "consensus")),
    RuleSet(name="own", kernel="ordered_brier", period="covered", total="mean", payouts="scored"),
    RuleSet(name="own", kernel="log2", reference="peers", clock="recorded", early_forecasts=False),
    RuleSet(name="own", kernel="ln", reference="uniform", clock="recorded", reference_rows=("uniform",)),
    RuleSet(name="own", kernel="ln", reference="peers", late_minutes=0, early_forecasts=False),
    RuleSet(name="own", kernel="ln", reference="consensus", consensus_weights="recency", late_minutes=90),
    RuleSet(name="own", kernel="brier", reference="uniform", sampling="day", late_minutes=1_440, total="mean"),
]


@pytest.mark.parametrize("rules", CHANGING, ids=str)
@settings(max_examples=times(10), deadline=None)
@given(RANDOMS)
def test_every_number_follows_from_the_definition_where_outcomes_change(rules: RuleSet | str, random: Random) -> None:
    """Outcomes that are added and removed count as the definition has it, instant by instant."""
    recorded, projections = changing_season(random, rules)
    check_scores(recorded, projections, "cup0")
    check_board(recorded, projections, "cup0")
    check_parts(recorded, projections)


@settings(max_examples=times(40), deadline=None)
@given(RANDOMS)
def test_every_number_follows_from_the_definition_where_outcomes_change_under_any_rules(random: Random) -> None:
    """The same under rules drawn field by field, of two contests over the same questions."""
    recorded, projections = changing_season(random, drawn_rules(random), drawn_rules(random))
    for name in ("cup0", "cup1"):
        check_scores(recorded, projections, name)
        check_board(recorded, projections, name)


@settings(max_examples=times(20), deadline=None)
@given(RANDOMS)
def test_every_number_follows_from_the_definition_of_imputation(random: Random) -> None:
    """The worst score, or that of a reference forecaster, counts where a participant has no forecast."""
    recorded, projections = changing_season(random, imputed_rules(random), imputed_rules(random))
    for name in ("cup0", "cup1"):
        check_scores(recorded, projections, name)
        check_board(recorded, projections, name)


OTHER_READINGS: list[dict[str, Any]] = [
    {"reference": "consensus", "consensus": "squeezed", "consensus_weights": "recency", "score_consensus": True},
    {"reference": "consensus", "consensus": "mean", "consensus_weights": "recency", "sampling": "day"},
    {"reference": "peers", "period": "actual", "coverage_period": "actual", "take": "coverage_exp"},
    {"reference": "uniform", "sampling": "day", "day_edges": "none", "score_consensus": True},
    {"reference": "consensus", "consensus_of": "others", "bots": "scored_only", "score_consensus": True},
    {"reference": "consensus", "consensus_of": "others", "sampling": "day", "density_floor": "added"},
    {"reference": "consensus", "consensus": "community", "greatest_probability_ppm": 600_000},
    {"reference": "peers", "density_floor": "added", "least_density_ppm": 400_000, "greatest_density_ppm": 1_500_000},
    {"reference": "peers", "take": "positive_square", "least_prize_micros": 20_000_000, "least_prize_passes": "one"},
]


@pytest.mark.parametrize("fields", OTHER_READINGS, ids=str)
@settings(max_examples=times(16), deadline=None)
@given(RANDOMS)
def test_every_number_follows_from_the_definition_under_the_other_readings(
    fields: dict[str, Any], random: Random
) -> None:
    """Rules for passages that can be read in two ways give the numbers of the definition, and so do their parts."""
    logarithm: Any = random.choice(["ln", "log2"])
    recorded, projections = recorded_season(
        random, RuleSet(name="own", kernel=logarithm, cdf_kernel=logarithm, **fields)
    )
    check_scores(recorded, projections, "cup0")
    check_board(recorded, projections, "cup0")
    check_parts(recorded, projections)


SHIFTED: list[dict[str, Any]] = [
    {"period": "covered", "total": "mean", "reference_rows": ("uniform",)},
    {"reference": "peers", "sampling": "day", "kernel": "brier"},
    {"reference": "peers", "sampling": "spot", "bots": "scored_only"},
]


@pytest.mark.parametrize("fields", SHIFTED, ids=str)
@settings(max_examples=times(16), deadline=None)
@given(RANDOMS)
def test_every_number_follows_from_the_definition_where_quantiles_are_transformed(
    fields: dict[str, Any], random: Random
) -> None:
    """Each quantile and answer x counts as ln(x + 1), worked out to 60 digits, in 1e-12; named outcomes as they are."""
    rules = RuleSet(name="own", quantile_kernel="pinball", transform="log_shifted", **fields)
    recorded, projections = recorded_season(random, rules)
    check_scores(recorded, projections, "cup0")
    check_board(recorded, projections, "cup0")
    check_parts(recorded, projections)


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=times(8), deadline=None)
@given(RANDOMS)
def test_every_number_follows_from_the_definition_under_each_preset(preset: str, random: Random) -> None:
    """The numbers are those of the definition under published rules too."""
    recorded, projections = recorded_season(random, preset)
    check_scores(recorded, projections, "cup0")
    check_board(recorded, projections, "cup0")


@settings(max_examples=times(40), deadline=None)
@given(RANDOMS)
def test_parts_sum_to_scores_and_each_is_what_was_earned_in_its_units(random: Random) -> None:
    """A part lasts while a forecast and its reference both stay the same; its term is that of each of its units."""
    check_parts(*recorded_season(random, drawn_rules(random)))


def check_parts(recorded: Sequence[Recorded], projections: Projections) -> None:
    """The rows of the table are those of the definition, however its units are cut."""
    cases = rules_oracle.cases(recorded, "cup0")
    numerators = {key: int(row["numerator"]) for key, [row] in by_key(rows(projections, "scores", "cup0")).items()}
    parts = by_key(rows(projections, "score_parts", "cup0"))
    assert {key: sum(int(row["contribution"]) for row in own_parts) for key, own_parts in parts.items()} == numerators
    for (name, who), score in slow(cases).items():
        case = cases[name]
        own_parts = [(rules_oracle.unit_of(case, read_instant(row["from_at"])), row) for row in parts[name, who]]
        assert sum(row["weight"] for _, row in own_parts) == sum(part.ends - part.begins for part in score.parts)
        for part in score.parts:
            row = next(row for unit, row in own_parts if unit <= part.begins and part.ends <= unit + row["weight"])
            most = slack(case, score) / (part.ends - part.begins) + Fraction(1, 2 * 10**12)
            assert abs(Fraction(row["term"]) - part.term) <= most
            assert (row["probability"], row["reference"]) == (exactly(part.chance), exactly(part.reference))
            assert row["peers"] == part.peers


def exactly(chance: Fraction | None) -> str | None:
    """A probability as printed, in full."""
    return None if chance is None else f"{oracle.quotient(chance).normalize():f}"


@settings(max_examples=times(25), deadline=None)
@given(RANDOMS)
def test_peer_scores_of_members_sum_to_nothing_at_every_instant(random: Random) -> None:
    """Terms of members sum to zero, whoever joins or leaves, and every standing member has one."""
    rules = RuleSet(name="peers", kernel="ln", cdf_kernel="ln", reference="peers", scale="peer", bots="scored_only")
    recorded, projections = recorded_season(random, rules)
    parts = by_key(rows(projections, "score_parts", "cup0"))
    for name, case in rules_oracle.cases(recorded, "cup0").items():
        for step in rules_oracle.steps(case):
            terms = []
            for stand in step.stands:
                if stand.participant not in case.scored_only:
                    own_parts = parts[name, stand.participant]
                    units = [(read_instant(row["from_at"]) - case.opened.opens_at, row) for row in own_parts]
                    terms += [
                        Fraction(row["term"]) for unit, row in units if unit <= step.begins < unit + row["weight"]
                    ]
            assert len(terms) == sum(stand.participant not in case.scored_only for stand in step.stands)
            assert abs(sum(terms, Fraction(0))) <= len(terms) * (
                Fraction(1, 10**12) + Fraction(30, 2**24 * step.length)
            )


@settings(max_examples=times(16), deadline=None)
@given(RANDOMS)
def test_no_number_depends_on_how_it_is_worked_out(random: Random) -> None:
    """Pages of events, groups of forecasts and the order of questions do not change any digest.

    The contests come last: whether a spot is accepted depends on the times that its question has by then.
    """
    season = Season(random, *(drawn_rules(random) for _ in range(2)), uncounted=0.2, quoted=0.5, paid=0.3, moved=0.4)
    season.contests = [
        [each for each in thread if not isinstance(each, commands.FinalizeContest)] for thread in season.contests
    ]
    digests = set()
    for page, chunk in ((1_000_000, 1 << 20), (1, 3), (7, 1)):
        turns = [*season.interleaved(season.threads), *season.interleaved(season.contests)]
        recorded, _ = oracle.attempted([*random.sample(season.questions, len(season.questions)), *turns])
        projections = Projections(oracle.facts_in(recorded, page), chunk)
        digests.add(tuple(projections.table(name).digest() for name in TABLES))
    assert len(digests) == 1
