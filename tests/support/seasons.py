"""Random seasons: rule sets drawn field by field, and logs of every kind of question under them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, get_args

import msgspec

from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import (
    BRIERS,
    PRESETS,
    ReferenceName,
    ReferenceRow,
    RuleSet,
    inconsistency,
)
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import oracle
from tests.support.rules_oracle import LOGARITHMS, losing

START = datetime(2026, 3, 10, tzinfo=UTC)
HOUR = 3_600 * 10**6  # µs
UNITS = (977_353, 6 * HOUR, 6 * HOUR + 977_353, 24 * HOUR)  # µs: of no round number, of a day's quarter, of a day
PEOPLE = ("a", "b", "c", "d", "e", "f", "g")
SHARES = (0, 1, 5, 10, 333_333_333, 500_000_000, 900_000_000, 10**9)  # 1e-9
LEVELS = (("0.5",), ("0.25", "0.5", "0.75"), ("0.1", "0.333333333"))
PLACES = ("0", "0.25", "0.5", "0.333333", "0.7", "0.9999999", "1")  # of an answer on its range
CHOICES: dict[str, tuple[object, ...]] = {
    "quantile_kernel": ("none", "none", "none", "pinball", "absolute", "absolute_clipped"),
    "reference": ("none", "uniform", "peers", "consensus"),
    "consensus": ("median", "community", "mean", "squeezed"),
    "consensus_weights": ("equal", "recency"),
    "sampling": ("time", "day", "spot"),
    "day_minutes": (0, 0, -300, 330, 1_440, -1_440, 1),
    "period": ("scheduled", "actual", "covered"),
    "day_edges": ("both", "opening", "none"),
    "coverage_period": ("scheduled", "scheduled", "actual"),
    "clock": ("claimed", "claimed", "recorded"),
    "scale": ("plain", "peer", "peer_whole", "baseline"),
    "total": ("sum", "mean", "per_coverage", "kind_means", "kind_means_third"),
    "least_coverage": (0, 1, 2),
    "take": ("none", "coverage_exp", "coverage_exp2", "positive_square"),
    "rank_by": ("take", "total"),
    "least_prize_micros": (0, 0, 10 * 10**6, 30 * 10**6, 60 * 10**6),
    "bots": ("members", "scored_only"),
    "scored_only_levels": ((), (), ("hidden",), ("no_rank", "no_prize")),
    "scored_only_factor": ("members", "one"),
    "score_consensus": (False, True),
    "best_of_entrant": (False, True),
    "early_forecasts": (True, True, False),
    "least_probability_ppm": (0, 1, 1_000, 10_000, 500_000),
    "least_density_ppm": (0, 1, 10_000, 300_000),
    "open_end_ppm": (0, 1, 50_000, 400_000),
    "consensus_of": ("all", "all", "others"),
    "least_prize_passes": ("many", "one", "one_by_one"),
    "density_floor": ("least", "added"),
    "greatest_probability_ppm": (500_000, 700_001, 999_000, 1_000_000, 1_000_000),
    "greatest_density_ppm": (1_000_000, 1_000_001, 1_800_000, 35_000_000, 10**12, 10**12),
}
# Drawn after the others, which have kept their places since these came.
LATER_CHOICES: dict[str, tuple[object, ...]] = {
    "total": ("", "", "", "per_question"),  # "" for the one drawn before
    "least_questions": (0, 0, 1, 2, 3),
    "least_share_ppm": (0, 0, 500_000, 666_667, 1_000_000),
    "bot_level": ("none", "none", "no_prize", "no_rank", "hidden"),
}
REFERENCE_ROWS: tuple[tuple[ReferenceRow, ...], ...] = (
    (),
    (),
    ("consensus",),
    ("market",),
    ("uniform", "always_half"),
    ("always_half", "market", "uniform", "consensus"),
)


# --- rules, field by field


def drawn_rules(random: Random) -> RuleSet:
    """Rules that go together, of all fields."""
    rules = shown_rules(random)
    scored = rules.kernel in BRIERS and random.random() < 0.5
    return msgspec.structs.replace(rules, payouts="scored" if scored else "unscored")


def mean_rules(random: Random) -> RuleSet:
    """Rules that go together, of all fields, under the kernel `brier_mean`, which kept seasons were drawn without."""
    while True:
        rules = drawn_rules(random)
        rules = msgspec.structs.replace(rules, kernel="brier_mean" if rules.kernel in BRIERS else rules.kernel)
        if rules.kernel == "brier_mean" and not inconsistency(rules):
            return rules


def median_rules(random: Random, reference: ReferenceName = "median_score") -> RuleSet:
    """Rules that go together, of all fields, with a reference that is drawn nowhere else."""
    while True:
        rules = msgspec.structs.replace(drawn_rules(random), reference=reference, consensus_of="all")
        if rules.kernel in BRIERS and random.random() < 0.3:
            rules = msgspec.structs.replace(rules, kernel="brier_mean")
        if not inconsistency(rules):
            return rules


def imputed_rules(random: Random) -> RuleSet:
    """Rules that go together, of all fields, with an imputation, which is drawn nowhere else."""
    while True:
        name = random.choice(("worst", *get_args(ReferenceRow)))
        rules = msgspec.structs.replace(drawn_rules(random), imputation=name)
        if name != "worst":
            rules = msgspec.structs.replace(rules, reference_rows=tuple(dict.fromkeys((*rules.reference_rows, name))))
        if rules.total not in {"sum", "mean"}:
            rules = msgspec.structs.replace(rules, total=random.choice(("sum", "mean")))
        if not inconsistency(rules):
            return rules


def shown_rules(random: Random) -> RuleSet:
    """Rules that go together, all of which leave payouts unscored."""
    while True:
        rules = msgspec.structs.replace(board_rules(random), reference_rows=random.choice(REFERENCE_ROWS))
        if not inconsistency(rules):
            return rules


def board_rules(random: Random) -> RuleSet:
    """Rules that go together, without reference forecasters."""
    while True:
        rules = first_rules(random)
        later = {field: random.choice(values) for field, values in LATER_CHOICES.items()}
        rules = msgspec.structs.replace(rules, **{field: value for field, value in later.items() if value != ""})
        if not inconsistency(rules):
            return rules


def first_rules(random: Random) -> RuleSet:
    """Rules that go together, of the fields that kept seasons were drawn with."""
    while True:
        rules = msgspec.structs.replace(RuleSet(name="drawn"), **_fields(random))
        rules = _without_effect_left_out(rules)
        if rules.consensus_of == "others":  # goes with little else
            rules = msgspec.structs.replace(rules, reference="consensus", consensus="median", consensus_weights="equal")
        if losing(rules):  # most of what goes with a gain does not with a loss
            rules = msgspec.structs.replace(rules, scale="plain", take="none", rank_by="total")
            if rules.reference == "none":
                total = random.choice(["mean", "kind_means", "kind_means_third"])
                rules = msgspec.structs.replace(rules, period="covered", total=total)
        if not inconsistency(rules):
            return rules


def _without_effect_left_out(rules: RuleSet) -> RuleSet:
    """The rules without what only goes with a logarithm, days or a least prize, where they have none."""
    kernels = {rules.kernel, rules.cdf_kernel, rules.quantile_kernel} - {"none"}
    unused: list[str] = []
    if not kernels & {*LOGARITHMS}:
        unused += ["greatest_probability_ppm", "greatest_density_ppm"]
    if not kernels <= {*LOGARITHMS}:
        unused.append("consensus_of")
    if rules.cdf_kernel not in LOGARITHMS:
        unused.append("density_floor")
    if rules.sampling != "day":
        unused.append("day_edges")
    if not rules.least_prize_micros:
        unused.append("least_prize_passes")
    plain = RuleSet(name="plain")
    return msgspec.structs.replace(rules, **{field: getattr(plain, field) for field in unused})


def _fields(random: Random) -> dict[str, object]:
    """Every field, drawn freely but for the kernels, all of which are gains or losses."""
    logarithm = random.choice(["ln", "log2"])
    gains = [(logarithm, logarithm), (logarithm, "none"), ("none", logarithm), ("spherical", "none")]
    losses = [
        (each, random.choice(["crps", "none"])) for each in ("brier", "brier_sum", "ordered_brier", "error", "none")
    ]
    named, cut = random.choice([*gains, ("spherical", logarithm), *losses])
    drawn = {name: random.choice(choices) for name, choices in CHOICES.items()}
    return drawn | {"kernel": named, "cdf_kernel": cut}


# --- logs


def kinds(rules: RuleSet) -> list[str]:
    """The kinds of questions that a rule set scores."""
    named = ["binary", "choice"] if rules.kernel != "none" else []
    cut = ["cdf", "log_cdf"] if rules.cdf_kernel != "none" else []
    asked = {"none": [], "pinball": ["quantiles", "log_quantiles", "point"], "absolute": ["point", "log_point"]}
    asked["absolute_clipped"] = ["point", "log_point", "open_point", "open_log_point"]
    return [*named, *cut, *asked[rules.quantile_kernel]]


class Season:
    """Commands drawn from seeded random numbers, most of which fit: questions, and contests under these rules."""

    def __init__(
        self,
        random: Random,
        *rules: RuleSet | str,
        ending: float = 0,
        uncounted: float = 0,
        quoted: float = 0,
        paid: float = 0,
        moved: float = 0,
        changing: float = 0,
        restated: float = 0,
        renamed: float = 0,
    ) -> None:
        """ending: how many of the forecasts end by themselves. uncounted: how many of the questions have weight 0; half
        as many have several spots.

        quoted: how many of the questions with named outcomes have prices. paid: how many of their answers are payouts.
        moved: how many of the questions get other times, once or several times.

        changing: of how many of the questions with three or more named outcomes the outcomes change.

        restated: on how many of the questions forecasts are restated, once or several times; half as many get other
        weights.

        renamed: how likely participants get another id, or are one person, at any place, once or several times.
        """
        self.restated = restated
        self.changing = changing
        self.random, self.ending, self.uncounted, self.quoted, self.paid = random, ending, uncounted, quoted, paid
        self.moved = moved
        self.rules = [PRESETS[each] if isinstance(each, str) else each for each in rules]
        self.unit = random.choice(UNITS)
        self.questions = [self.opening(f"q{number}") for number in range(random.randint(1, 4))]
        self.threads = [self.with_restatements(opened, self.doings(opened)) for opened in self.questions]
        self.contests = [self.contest(f"cup{number}", each) for number, each in enumerate(rules)]
        self.commands = [*self.questions, *self.interleaved([*self.threads, *self.contests])]
        while renamed and random.random() < renamed:
            who, other = random.choice(PEOPLE), random.choice((*PEOPLE, "h"))
            command = commands.RenameParticipant(at=self.moment(60), participant=who, to=other, reason="one person")
            self.commands.insert(random.randint(len(self.questions), len(self.commands)), command)

    def interleaved(self, threads: Sequence[Sequence[AnyCommand]]) -> list[AnyCommand]:
        """The commands of all threads, each thread's in its order."""
        turns = [number for number, thread in enumerate(threads) for _ in thread]
        self.random.shuffle(turns)
        rests = [iter(thread) for thread in threads]
        return [next(rests[turn]) for turn in turns]

    def recorded(self) -> list[Recorded]:
        """The events that a ledger records of the season."""
        now = [0]
        with Ledger.open(":memory:", clock=lambda: now[0]) as ledger:
            for now[0], together in self.batches():
                ledger.handle_many(together)
            return [each for page in ledger.read() for each in page]

    def batches(self) -> Iterator[tuple[int, list[AnyCommand]]]:
        """The commands in batches, each with when it is recorded: by a clock that runs through the questions' periods.

        Numbers are drawn on the way, so go through them once.
        """
        random, asked = self.random, oracle.with_ids(self.commands)
        now = read_instant(self.moment(-3))
        while asked:
            size = random.randint(1, 9)
            yield now, asked[:size]
            asked = asked[size:]
            now += random.choice([0, 1, self.unit // 2, self.unit])

    def moment(self, units: int, offset: int = 0) -> datetime:
        """So many units after the first opening, give or take some µs."""
        return START + timedelta(microseconds=units * self.unit + offset)

    # --- questions

    def opening(self, name: str) -> commands.OpenQuestion:
        """A question of a kind that one of the contests scores."""
        random = self.random
        opens = random.choice([0, 0, 1])
        closes = opens + random.randint(2, 10)
        reveals = random.choice([None, random.randint(opens + 1, closes)])
        opened = commands.OpenQuestion(
            at=self.moment(-9),
            question=name,
            kind="binary",
            opens_at=self.moment(opens),
            closes_at=self.moment(closes),
            reveals_at=None if reveals is None else self.moment(reveals),
        )
        kind = random.choice([kind for rules in self.rules for kind in kinds(rules)])
        if kind == "binary":
            return opened
        if kind == "choice":
            outcomes = tuple(f"o{number}" for number in range(random.choice([2, 3, 3, 4, 4, 5, 40])))
            return msgspec.structs.replace(opened, kind="multiple_choice", outcomes=outcomes)
        return msgspec.structs.replace(opened, kind="numeric", range=self.range(kind))

    def range(self, kind: str) -> commands.Range:
        """A range, perhaps open, perhaps logarithmic, cut in bins or asked by quantiles."""
        random = self.random
        lower, upper, zero = random.choice([("0", "4", None), ("-1", "2", None)])
        if "log" in kind:
            lower, upper, zero = random.choice([("1", "100", "0"), ("-7", "5", "-8.5"), ("1", "3", "11")])
        span = commands.Range(lower=lower, upper=upper, zero_point=zero)
        if kind.startswith("open") or not kind.endswith("point"):
            span = msgspec.structs.replace(span, open_lower=random.random() < 0.5, open_upper=random.random() < 0.5)
        if kind.endswith("cdf"):
            return msgspec.structs.replace(span, bins=random.choice([1, 2, 3, 4, 5, 6, 60]))
        levels = LEVELS[0] if kind.endswith("point") else random.choice(LEVELS)
        return msgspec.structs.replace(span, levels=levels, decimals=random.choice([0, 1, 6, 11]))

    def doings(self, opened: commands.OpenQuestion) -> list[AnyCommand]:
        """Everyone's forecasts and withdrawals in order of time, an early close perhaps, and answers."""
        random = self.random
        if self.changing and len(opened.outcomes or ()) > 2 and random.random() < self.changing:
            return self.doings_with_changes(opened)
        said = sorted(
            self.moment(random.randint(-2, 10), random.choice([0, 0, 0, 1, -1])) for _ in range(random.randint(3, 20))
        )
        whose = [(random.choice(PEOPLE), at) for at in said]
        made = self.interleaved(
            [[self.statement(opened, who, at) for who, at in whose if who == each] for each in PEOPLE]
        )
        if random.random() < 0.3:
            close = commands.CloseQuestion(at=self.moment(random.randint(1, 9)), question=opened.question)
            made.insert(random.randint(0, len(made)), close)
        while self.moved and random.random() < self.moved:
            made.insert(random.randint(0, len(made)), self.rescheduling(opened))
        if self.quoted and opened.range is None and random.random() < self.quoted:
            made = self.interleaved([made, self.quotes(opened)])
        after = [self.answer(opened) for _ in range(random.randint(0, 3))]
        last: list[AnyCommand] = [
            commands.RevokeResolution(at=self.moment(50), question=opened.question, reason="misread")
        ]
        sure = [*last, *(self.resolution(opened) for _ in range(3))]  # the second and third if the first fails
        late = self.quotes(opened)[-1:] if self.quoted and opened.range is None else []
        return [*made, *after, *sure * (random.random() < 0.9), *late]

    def with_restatements(self, opened: commands.OpenQuestion, made: list[AnyCommand]) -> list[AnyCommand]:
        """What happens to a question, with restatements at any place, also after its answer."""
        random = self.random
        while self.restated and random.random() < self.restated:
            who, instants = random.choice(PEOPLE), {random.randint(-2, 9) for _ in range(random.randint(0, 3))}
            said = [self.statement(opened, who, self.moment(at)) for at in sorted(instants)]
            given = [oracle.restated(each) for each in said if isinstance(each, commands.SubmitForecast)]
            command = commands.RestateForecasts(
                at=self.moment(60), question=opened.question, participant=who, forecasts=tuple(given), reason="found"
            )
            made.insert(random.randint(0, len(made)), command)
            if random.random() < 0.5:
                contest, weight = f"cup{random.randint(0, 1)}", random.choice(["0", "0.5", "3"])
                amendment = commands.AmendQuestion(question=opened.question, contest=contest, weight=weight)
                made.append(msgspec.structs.replace(amendment, at=self.moment(60), title=f"{len(made)}"))
        return made

    def rescheduling(self, opened: commands.OpenQuestion) -> commands.RescheduleQuestion:
        """Other times, most of them in order; now and then only an opening or a reveal."""
        random = self.random
        opens = random.choice([None, None, self.moment(random.choice([-1, 0, 1, 2]), random.choice([0, 1]))])
        closes = random.choice([None, self.moment(random.randint(2, 14), random.choice([0, 0, -1]))])
        reveals = self.moment(random.randint(1, 9)) if opens is closes is None or random.random() < 0.3 else None
        return commands.RescheduleQuestion(
            at=self.moment(random.randint(-1, 12)),
            question=opened.question,
            opens_at=opens,
            closes_at=closes,
            reveals_at=reveals,
        )

    def doings_with_changes(self, opened: commands.OpenQuestion) -> list[AnyCommand]:
        """Forecasts, withdrawals and changes of the outcomes in order of time, prices after them, and answers."""
        random, names, made = self.random, opened.outcomes or (), list[AnyCommand]()
        rest, used, changes, last = names[-1], len(names), random.randint(1, 3), 0
        for units in sorted(random.choices(range(-2, 11), k=random.randint(4, 24))):
            at, now = self.moment(units, random.choice([0, 0, 0, 1])), msgspec.structs.replace(opened, outcomes=names)
            if not changes or random.random() < 0.7:
                made.append(self.statement(now, random.choice(PEOPLE), at))
                continue
            change = commands.ChangeOutcomes(at=at, question=opened.question)
            gone = tuple(name for name in names if name != rest and random.random() < 0.4)
            if gone and len(names) - len(gone) > 1 and random.random() < 0.5:
                made.append(msgspec.structs.replace(change, remove=gone))
                names = tuple(name for name in names if name not in gone)
            else:
                new = tuple(f"o{used + number}" for number in range(random.randint(1, 2)))
                ends = at + timedelta(microseconds=random.choice([1, self.unit, 2 * self.unit, 5 * self.unit]))
                made.append(msgspec.structs.replace(change, add=new, grace_ends_at=ends))
                names, used = (*names, *new), used + len(new)
            changes, last = changes - 1, len(made)
        now = msgspec.structs.replace(opened, outcomes=names)
        if self.quoted and random.random() < self.quoted:
            made[last:] = self.interleaved([made[last:], self.quotes(now)])
        revoked = commands.RevokeResolution(at=self.moment(50), question=opened.question, reason="misread")
        return [*made, self.answer(now), revoked, *(self.resolution(now) for _ in range(3))]

    def quotes(self, opened: commands.OpenQuestion) -> list[AnyCommand]:
        """Prices in order of time, of some of the outcomes; those of a binary question are of yes."""
        random, names = self.random, opened.outcomes or ("yes",)
        made: list[AnyCommand] = []
        for at in sorted(self.moment(random.randint(-2, 10), random.choice([0, 0, 1, -1])) for _ in range(5)):
            some = random.sample(names, random.choice([len(names), len(names), random.randint(1, len(names))]))
            nanos = {name: random.choice([random.choice(SHARES), random.randint(0, 10**9)]) for name in some}
            prices: dict[str, Any] = {name: Decimal(price).scaleb(-9) for name, price in nanos.items()}
            quote = commands.Quote(at=at, question=opened.question, prices=prices, source="feed", quoted_at=at)
            made.append(quote)
        return made

    def statement(self, opened: commands.OpenQuestion, who: str, at: datetime) -> AnyCommand:
        """A forecast, or now and then a withdrawal."""
        random = self.random
        if random.random() < 0.2:
            return commands.WithdrawForecast(at=at, question=opened.question, participant=who)
        made = commands.SubmitForecast(at=at, question=opened.question, participant=who, until=self.end(at))
        if opened.range is None:
            parts = self.parts(len(opened.outcomes or "ab"))
            if opened.outcomes is None:
                return msgspec.structs.replace(made, probability=parts[0])
            return msgspec.structs.replace(made, probabilities=dict(zip(opened.outcomes, parts, strict=True)))
        if opened.range.levels is not None:
            return msgspec.structs.replace(made, quantiles=self.quantiles(opened.range))
        edges = (opened.range.bins or 0) + 1
        heights = sorted(random.choice([10 * random.choice(SHARES), random.randint(0, 10**10)]) for _ in range(edges))
        heights[0] *= opened.range.open_lower
        heights[-1] = heights[-1] if opened.range.open_upper else 10**10
        return msgspec.structs.replace(made, cdf=tuple(Decimal(height).scaleb(-10) for height in heights))

    def end(self, at: datetime) -> datetime | None:
        """When a forecast of this instant ends by itself; None if it does not. Nothing is drawn if none does."""
        if not self.ending or self.random.random() >= self.ending:
            return None
        return at + timedelta(
            microseconds=self.random.choice([1, self.unit // 2, self.unit, 3 * self.unit, 9 * self.unit])
        )

    def parts(self, count: int) -> list[Decimal]:
        """Probabilities that sum to one."""
        random = self.random
        cuts = sorted(random.choice([random.choice(SHARES), random.randint(0, 10**9)]) for _ in range(count - 1))
        return [Decimal(b - a).scaleb(-9) for a, b in zip([0, *cuts], [*cuts, 10**9], strict=True)]

    def quantiles(self, span: commands.Range) -> tuple[Decimal, ...]:
        """One for each level, most of them within the range."""
        random, low, high = self.random, int(str(span.lower)), int(str(span.upper))
        digits = random.choice([1, 11])
        beyond = [0, 0, 0, 2 * span.open_upper, -2 * span.open_lower]
        places = (random.randint(low * 10**digits, high * 10**digits) for _ in span.levels or ())
        return tuple(sorted(Decimal(place).scaleb(-digits) + random.choice(beyond) for place in places))

    def answer(self, opened: commands.OpenQuestion) -> AnyCommand:
        """A resolution, or its revocation, or an annulment."""
        move = self.random.choice(["resolve"] * 4 + ["revoke", "annul"])
        if move == "revoke":
            return commands.RevokeResolution(at=self.moment(50), question=opened.question, reason="misread")
        if move == "annul":
            return commands.AnnulQuestion(at=self.moment(50), question=opened.question, reason="no source")
        return self.resolution(opened)

    def resolution(self, opened: commands.OpenQuestion) -> commands.ResolveQuestion:
        """An answer: of a numeric question at an edge, between edges, or beyond an open end."""
        random = self.random
        known = random.choice([None, None, self.moment(random.randint(0, 11)), self.moment(random.randint(1, 9), 1)])
        resolved = commands.ResolveQuestion(at=self.moment(50), question=opened.question, known_at=known)
        if opened.range is None and self.paid and random.random() < self.paid:
            names = opened.outcomes or ("yes", "no")
            return msgspec.structs.replace(resolved, payouts=dict(zip(names, self.parts(len(names)), strict=True)))
        if opened.range is None:
            return msgspec.structs.replace(resolved, outcome=random.choice(opened.outcomes or ("yes", "no")))
        lower, upper = Decimal(str(opened.range.lower)), Decimal(str(opened.range.upper))
        inside = lower + (upper - lower) * Decimal(random.choice(PLACES))
        beyond = [lower - 1] * opened.range.open_lower + [upper + 1] * opened.range.open_upper
        return msgspec.structs.replace(resolved, value=random.choice([inside, inside, *beyond]))

    # --- contests

    def contest(self, contest: str, rules: RuleSet | str) -> list[AnyCommand]:
        """A contest over the questions that its rules can score; now and then frozen, perhaps before all is known."""
        random, at = self.random, self.moment(60)
        pool, unit = random.choice([0, 100, 100]), random.choice(["0.01", "1", "5"])
        asked: list[AnyCommand] = [
            commands.OpenContest(at=at, contest=contest, rules=rules, pool=pool, payable_unit=unit),
            *(each for opened in self.questions for each in self.entries(contest, opened)),
            *(each for who in PEOPLE for each in self.named(contest, who)),
        ]
        if random.random() < 0.2:
            asked.append(commands.FinalizeContest(at=at, contest=contest))
        return asked

    def entries(self, contest: str, opened: commands.OpenQuestion) -> list[AnyCommand]:
        """A question put into a contest, thrice: the second and third if the first fails."""
        random = self.random
        weight = random.choice(["1", "1", "2", "0.5", "0.000001"])
        if self.uncounted and random.random() < self.uncounted:
            weight = "0"
        plain = commands.AddQuestion(at=self.moment(60), contest=contest, question=opened.question, weight=weight)
        spot_at = random.choice([None, None, self.moment(random.randint(1, 6), random.choice([0, 1]))])
        spotted = msgspec.structs.replace(plain, spot_at=spot_at)
        if self.uncounted and random.random() < self.uncounted / 2:
            spotted = msgspec.structs.replace(plain, spots=self.spots())
        hidden = random.choice([None, "0", "0.25", "1"])
        return [msgspec.structs.replace(spotted, hidden_coverage_weight=hidden), spotted, plain]

    def spots(self) -> tuple[commands.Spot, ...]:
        """Several instants that count, most of them within the question's period."""
        random = self.random
        at = sorted({(random.randint(1, 7), random.choice([0, 0, 1])) for _ in range(random.randint(1, 4))})
        return tuple(commands.Spot(at=self.moment(*each), weight=random.choice([1, 1, 2, 100])) for each in at)

    def named(self, contest: str, who: str) -> list[AnyCommand]:
        """Enrolments and exclusions of a participant in a contest: none, one enrolment or two, perhaps an exclusion."""
        random, at = self.random, self.moment(60)
        asked: list[AnyCommand] = []
        while random.random() < 0.3:
            entrant, bot = random.choice([None, "team", "team", "a"]), random.random() < 0.5
            enrolled = commands.EnrolParticipant(at=at, contest=contest, participant=who, entrant=entrant, bot=bot)
            asked.append(enrolled)
        while random.random() < 0.2:
            excluded = commands.ExcludeParticipant(at=at, contest=contest, participant=who, level="hidden", reason="-")
            level = random.choice(["no_prize", "no_rank", "hidden"])
            asked.append(msgspec.structs.replace(excluded, level=level))
        return asked
