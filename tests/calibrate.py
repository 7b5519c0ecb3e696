"""What is claimed of scores and ranks, and how often it is so: `python -m tests.calibrate [RUNS]` prints a table of it.

Contests are simulated whose truth is known: questions of yes or no have a log odds from a normal distribution, and each
participant forecasts them with errors of a known size. A claim holds in a contest for those of whom it is true. What is
not shown claims nothing. The numbers are the same in every run of the same length.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from forecast_ledger.ledger.core.values import PROBABILITY, WEIGHT
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support.oracle import facts_in

Floats = NDArray[np.float64]

HOUR = 3_600 * 10**6  # µs
RUNS = 300  # contests of a kind
MANY = 200_000  # questions that the truth is found from
ALPHA = 0.05
SAME = (1.0, 1.0, 1.0, 1.0)
APART = (0.2, 0.6, 0.9, 1.6)
BRIER = RuleSet(name="brier", kernel="brier", sampling="spot", period="covered", total="mean", least_probability_ppm=0)
PEER = RuleSet(name="peer", kernel="ln", reference="peers", sampling="spot", scale="peer", total="mean")
LOG = RuleSet(name="log", kernel="ln", sampling="spot", period="covered", total="mean")
CROSSED = structs.replace(BRIER, name="crossed", clusters=("tag:week", "tag:place"))


class Kind(NamedTuple):
    """A kind of contest. errors: of each participant, standard deviations of log odds; who has the same is as good.

    questions: how many there are; those of a cluster share a shock that nobody foresees. crossed: the number of weeks,
    and of places, that questions are about; those of a week share one, and those of a place. odds: mean and standard
    deviation of log odds. missing: the share of forecasts that are not made. uneven: the first half of the participants
    miss so many more of the hard questions, with log odds from -1 to 1, and so many fewer of the others; the others do
    the opposite.
    """

    errors: tuple[float, ...] = SAME
    questions: int = 20
    cluster: int = 1
    crossed: int = 0
    odds: tuple[float, float] = (0.0, 1.5)
    shock: float = 0.0
    missing: float = 0.0
    uneven: float = 0.0
    rules: RuleSet = BRIER

    @property
    def clusters(self) -> int:
        """How many clusters there are, by the field with fewest."""
        return self.crossed or -(-self.questions // self.cluster)

    @property
    def better(self) -> int:
        """1 if a higher score is better, else -1."""
        return 1 if self.rules.kernel == "ln" else -1


KINDS = {
    "few": Kind(questions=10),
    "null": Kind(),
    "null, 50": Kind(questions=50),
    "skilled": Kind(APART),
    "close": Kind((0.5, 0.6, 0.7, 0.8)),
    "clustered": Kind(questions=125, cluster=5, shock=2.0),
    "clustered, few": Kind(questions=50, cluster=5, shock=2.0),
    "crossed": Kind(questions=200, crossed=25, shock=1.4, rules=CROSSED),
    "rare": Kind(questions=50, odds=(-4.0, 0.5)),
    "rare, many": Kind(questions=200, odds=(-3.0, 0.5)),
    "missing": Kind(APART, questions=50, missing=0.3),
    "uneven": Kind(questions=50, missing=0.4, uneven=0.3),
    "uneven, clustered": Kind(questions=125, cluster=5, shock=2.0, missing=0.4, uneven=0.3),
    "log, few": Kind(APART, questions=50, rules=LOG),
    "log": Kind(APART, questions=75, rules=LOG),
    "peer, few": Kind(APART, rules=PEER),
    "peer": Kind(APART, questions=50, rules=PEER),
}


class Drawn(NamedTuple):
    """Questions of some contests: which happened, and are hard, shape (runs, q), and forecasts, (runs, q, people)."""

    happened: NDArray[np.bool_]
    hard: NDArray[np.bool_]
    forecasts: Floats


class Run(NamedTuple):
    """A contest that was simulated.

    better: 1 if a higher score is better, else -1. truth: the expected score of each participant, in its points.
    """

    projections: Projections
    contest: str
    better: int
    truth: dict[str, float]


Claim = Callable[[Run], list[bool | None]]  # whether what is claimed is true, each time; None where it is not shown


def scores_within(run: Run) -> list[bool | None]:
    """The interval of each participant's score has the expected score in it."""
    found = {row.row.participant: row.score for row in run.projections.intervals(run.contest)}
    ends = {name: found.get(name) for name in run.truth}
    return [own and own[0] <= run.truth[name] * 1e9 <= own[1] for name, own in ends.items()]


def adjusted_within(run: Run) -> list[bool | None]:
    """The interval of each adjusted score has the expected score in it."""
    ends = {
        row["participant"]: (float(row["adjusted_low"]), float(row["adjusted_high"]))
        for row in run.projections.table("adjusted_intervals").rows()
        if not row["withheld"]
    }
    return [ends[name][0] <= mean <= ends[name][1] if name in ends else None for name, mean in run.truth.items()]


def ranks_within(run: Run) -> list[bool | None]:
    """The set of ranks of each participant has the rank by expected scores in it."""
    allowed = run.projections.rank_sets(run.contest).allowed
    board = run.projections.board(run.contest)
    return _within(run, {row.participant: allowed.get(number) for number, row in enumerate(board)})


def marginal_ranks_within(run: Run) -> list[bool | None]:
    """The marginal set of ranks of each participant has the rank by expected scores in it."""
    rows = run.projections.table("marginal_ranks").rows()
    return _within(run, {row["participant"]: row["rank_low"] and (row["rank_low"], row["rank_high"]) for row in rows})


def adjusted_ranks_within(run: Run) -> list[bool | None]:
    """The sets of ranks by adjusted scores have the ranks by expected scores in them, at once."""
    rows = [row for row in run.projections.table("adjusted_intervals").rows() if not row["withheld"]]
    found = [
        each
        for each in _within(run, {row["participant"]: (row["rank_set_low"], row["rank_set_high"]) for row in rows})
        if each is not None
    ]
    return [all(found) if found else None]


def marginal_adjusted_ranks_within(run: Run) -> list[bool | None]:
    """The set of ranks by adjusted scores of each participant alone has the rank by expected scores in it."""
    rows = [row for row in run.projections.table("adjusted_intervals").rows() if not row["withheld"]]
    return _within(run, {row["participant"]: (row["rank_low"], row["rank_high"]) for row in rows})


def _within(run: Run, sets: dict[str, tuple[int, int] | None]) -> list[bool | None]:
    worth = {name: run.better * mean for name, mean in run.truth.items()}
    ranks = {name: 1 + sum(other > own for other in worth.values()) for name, own in worth.items()}
    ends = {name: sets.get(name) for name in run.truth}
    return [own and own[0] <= ranks[name] <= own[1] for name, own in ends.items()]


def differences_within(run: Run) -> list[bool | None]:
    """The interval of the difference of each pair has the difference of their expected scores in it."""
    found = list[bool | None]()
    for row in run.projections.table("pairwise").rows():
        low, high = row["difference_low"], row["difference_high"]
        apart = run.better * (run.truth[row["participant"]] - run.truth[row["other"]])
        found.append(None if low is None or high is None else float(low) <= apart <= float(high))
    return found


def all_ranks_within(run: Run) -> list[bool | None]:
    """All sets of ranks have the ranks by expected scores in them, at once."""
    found = [each for each in ranks_within(run) if each is not None]
    return [all(found) if found else None]


def pairs_told_apart(run: Run) -> list[bool | None]:
    """Whoever is significantly better beside all other pairs is so by expected scores; for all pairs at once."""
    certain = [row for row in run.projections.table("pairwise").rows() if float(row["p_adjusted"]) <= ALPHA]
    apart = [
        run.better * (run.truth[row["participant"]] - run.truth[row["other"]]) * float(row["difference"])
        for row in certain
    ]
    return [all(each > 0 for each in apart)]


CLAIMS: dict[str, tuple[str, Claim]] = {  # with the share of cases in which each is to be true
    "score": ("95%", scores_within),
    "difference": ("95%", differences_within),
    "adjusted score": ("95%", adjusted_within),
    "set of ranks": ("95% or more", ranks_within),
    "marginal set of ranks": ("95% or more", marginal_ranks_within),
    "all sets of ranks": ("95% or more", all_ranks_within),
    "all adjusted sets of ranks": ("95% or more", adjusted_ranks_within),
    "marginal adjusted set of ranks": ("95% or more", marginal_adjusted_ranks_within),
    "all pairs": ("95% or more", pairs_told_apart),
}


class Row(NamedTuple):
    """A row of the table of claims. shown: share of cases; reached, error: of those shown, and its standard error."""

    kind: str
    claim: str
    nominal: str
    shown: float
    reached: float
    error: float


def table(kinds: Sequence[str], runs: int, claims: Sequence[str] = tuple(CLAIMS)) -> Iterator[Row]:
    """Yield the rows of the table of claims."""
    for name in kinds:
        made = [claim for claim in claims if claim in claims_of(KINDS[name])]
        found = [[CLAIMS[claim][1](run) for claim in made] for run in simulated(KINDS[name], runs)]
        for number, claim in enumerate(made):
            yield row(name, claim, [each[number] for each in found])


def claims_of(kind: Kind) -> list[str]:
    """Return the claims that are tried: scores are adjusted where forecasts are missing.

    Where participants answer unequally hard questions, nothing is claimed of scores that are not adjusted.
    """
    return [claim for claim in CLAIMS if (kind.missing if "adjusted" in claim else not kind.uneven)]


def row(kind: str, claim: str, found: Sequence[Sequence[bool | None]]) -> Row:
    """Return a row. found: of each contest, whose cases depend on each other, as those of two contests do not.

    >>> row("null", "score", [[True, True], [False, True], [None, None]])
    Row(kind='null', claim='score', nominal='95%', shown=0.6666666666666666, reached=0.75, error=0.25)
    """
    shown = [[case for case in cases if case is not None] for cases in found]
    count, held = sum(map(len, shown)), sum(map(sum, shown))
    reached = held / count if count else float("nan")
    apart = [sum(cases) - reached * len(cases) for cases in shown if cases]
    spread = sum(each * each for each in apart) * len(apart) / (len(apart) - 1) if len(apart) > 1 else float("nan")
    error = sqrt(spread) / count if count else float("nan")
    nominal = "95% or more" if KINDS[kind].crossed else CLAIMS[claim][0]  # draws by two fields vary more than the truth
    return Row(kind, claim, nominal, count / sum(map(len, found)), reached, error)


def simulated(kind: Kind, runs: int, seed: int = 1) -> Iterator[Run]:
    """Yield contests of a kind."""
    drawn = draw(kind, runs, kind.questions, np.random.default_rng(seed))
    side = np.where(np.arange(len(kind.errors)) < len(kind.errors) // 2, kind.uneven, -kind.uneven)
    missing = kind.missing + np.where(drawn.hard[..., None], side, -side)
    made = np.random.default_rng(seed + 1).random(drawn.forecasts.shape) >= missing
    truth = expected(kind)
    for number in range(runs):
        recorded = log(kind, drawn.happened[number], drawn.forecasts[number], made[number], f"run {number}")
        projections = Projections(facts_in(recorded))
        yield Run(projections, "cup", kind.better, {f"p{who}": mean for who, mean in enumerate(truth.tolist())})


def draw(kind: Kind, runs: int, questions: int, random: np.random.Generator) -> Drawn:
    """Draw questions and forecasts, each with three decimals."""
    if kind.crossed:
        shocks = sum(random.normal(0, kind.shock, (runs, kind.crossed))[:, at] for at in crossing(kind, questions))
    else:
        shocks = np.repeat(random.normal(0, kind.shock, (runs, -(-questions // kind.cluster))), kind.cluster, axis=1)
        shocks = shocks[:, :questions]
    known = random.normal(*kind.odds, (runs, questions))
    happened = random.random((runs, questions)) < chance(known + shocks)
    errors = random.normal(0, 1, (runs, questions, len(kind.errors))) * kind.errors
    shared = random.normal(0, 0.3, (runs, questions, 1))
    hard = np.abs(known) < 1
    return Drawn(happened, hard, np.clip(chance(known[..., None] + shared + errors).round(3), 0.001, 0.999))


def crossing(kind: Kind, questions: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the week and the place of each question: no two have both in common, as far as there are enough."""
    number = np.arange(questions)
    week = number % kind.crossed
    return week, (7 * week + number // kind.crossed) % kind.crossed


def chance(odds: Floats) -> Floats:
    """Return the probabilities of log odds."""
    return np.asarray(1 / (1 + np.exp(-odds)), np.float64)


def expected(kind: Kind) -> Floats:
    """Return the expected score of each participant, from a formula in floats over many questions."""
    if kind.crossed:  # a question has the sum of two shocks
        kind = kind._replace(crossed=0, shock=kind.shock * sqrt(2))
    drawn = draw(kind, 1, MANY, np.random.default_rng(99))
    right = np.where(drawn.happened[..., None], drawn.forecasts, 1 - drawn.forecasts)[0]
    if kind.rules.kernel == "ln":
        scores = np.log(right)
        if kind.rules is PEER:
            people = len(kind.errors)
            scores = 100 * people / (people - 1) * (scores - scores.mean(axis=1, keepdims=True))
    else:
        scores = (1 - right) ** 2
    means = np.asarray(scores.mean(axis=0), np.float64)
    return np.full_like(means, means.mean()) if len({*kind.errors}) == 1 else means


def log(
    kind: Kind, happened: NDArray[np.bool_], forecasts: Floats, made: NDArray[np.bool_], digest: str
) -> list[Recorded]:
    """Return the events of a contest. made: which forecasts are made. digest: of the last event, as a text."""
    found: list[events.AnyEvent] = [events.ContestOpened(at=0, contest="cup", rules=kind.rules, payable_unit=10_000)]
    answers = list[events.AnyEvent]()
    week, place = crossing(kind, len(happened)) if kind.crossed else ((), ())
    for number, (outcome, told, given) in enumerate(zip(happened, forecasts, made, strict=True)):
        name = f"q{number:04}"
        about: dict[str, Any] = {"group": f"g{number // kind.cluster:04}"} if kind.cluster > 1 else {}
        if kind.crossed:
            about = {"tags": (f"week={week[number]}", f"place={place[number]}")}
        found += [
            events.QuestionOpened(
                at=0, question=name, kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=9 * HOUR, **about
            ),
            events.QuestionAdded(at=0, contest="cup", question=name, weight=WEIGHT),
        ]
        for who in np.flatnonzero(given).tolist():
            yes = round(told[who] * 1000) * (PROBABILITY // 1000)
            said = (yes, PROBABILITY - yes)
            found.append(events.ForecastMade(at=HOUR, question=name, participant=f"p{who}", probabilities=said))
        at = 10 * HOUR
        answers.append(events.QuestionResolved(at=at, question=name, outcome=0 if outcome else 1, known_at=at))
    about = {"recorded_at": 0, "command_id": "c", "command": "", "previous": ""}
    return [
        Recorded(position=position, event=event, digest=digest, **about)
        for position, event in enumerate([*found, *answers], 1)
    ]


def printed(rows: Iterator[Row]) -> Iterator[str]:
    """Yield the lines of the table, in Markdown."""
    yield "| contests | questions | clusters | claim | nominal | shown | reached | standard error |"
    yield "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |"
    for each in rows:
        kind = KINDS[each.kind]
        reached = f"{each.reached:.1%} | {each.error:.1%}" if each.error >= 0 else "- | -"
        yield (
            f"| {each.kind} | {kind.questions} | {kind.clusters} | {each.claim} | {each.nominal} | {each.shown:.0%} | "
            f"{reached} |"
        )


if __name__ == "__main__":
    for line in printed(table([*KINDS], int(sys.argv[1]) if sys.argv[1:] else RUNS)):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
