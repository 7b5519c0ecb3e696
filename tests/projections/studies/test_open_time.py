"""Calibration weighted by time, compared with fractions worked out forecast by forecast, and by hand."""

from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from random import Random

import numpy as np
import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies.open_time import Stood, TimedBin, timed_bands
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import BEFORE, choices, closing, contest, day, entry, forecast, opened, resolution, withdrawal
from tests.support.seasons import Season, drawn_rules
from tests.support.seeds import seed_of

MEAN = RuleSet(name="mean", kernel="brier", period="covered", total="mean")
NUMBERS = "weight", "mean_forecast", "observed_frequency"


def bins(projections: Projections, participant: str = "ada") -> dict[str, tuple[str, ...]]:
    """Return n, weight, mean and frequency of each bin of a participant, with two decimals, by its lower end."""
    return {
        row["from_probability"]: (str(row["n"]), *(f"{Decimal(row[name]):.2f}" for name in NUMBERS))
        for row in projections.table("calibration_time_weighted").rows()
        if row["participant"] == participant
    }


def asked(*commands: AnyCommand) -> list[AnyCommand]:
    """Return a contest with one question, which is open for ten days from the 10th."""
    return [opened(), contest(rules=MEAN), entry(), *commands]


def test_a_forecast_weighs_as_much_as_the_share_of_the_open_time_that_it_stood() -> None:
    """0.7 stands for five days of ten from the 11th, then 0.72 for four; their bin is [0.675, 0.725)."""
    made = forecast(), forecast(probability="0.72", at=day(16))
    projections = oracle.projected(*asked(*made), resolution())
    mean = (Decimal("0.7") * 5 + Decimal("0.72") * 4) / 9
    assert bins(projections) == {"0.675000000": ("2", "0.90", f"{mean:.2f}", "1.00")}
    [row] = projections.table("calibration_time_weighted").rows()
    assert (row["to_probability"], row["mean_forecast"]) == ("0.725000000", f"{mean:.9f}")


def test_time_before_the_opening_and_after_an_early_close_or_a_withdrawal_does_not_count() -> None:
    """The question closes on the 15th: of its five open days Ada's forecast stands for all, Bob's for one."""
    made = forecast(at=BEFORE), forecast(participant="bob", at=day(12)), withdrawal(participant="bob", at=day(13))
    projections = oracle.projected(*asked(*made), closing(), resolution(outcome="no"))
    assert bins(projections) == {"0.675000000": ("1", "1.00", "0.70", "0.00")}
    assert bins(projections, "bob") == {"0.675000000": ("1", "0.20", "0.70", "0.00")}


def test_questions_with_unlike_open_times_are_weighted_by_shares() -> None:
    """0.5 stands for 9 of 10 days on a question with the answer yes, and for 3 of 4 on one with the answer no."""
    short: list[AnyCommand] = [
        opened("snow", closes_at=day(14)),
        entry(question="snow"),
        forecast("snow", probability="0.5"),
    ]
    commands: list[AnyCommand] = [
        *asked(forecast(probability="0.5")),
        *short,
        resolution(),
        resolution("snow", outcome="no"),
    ]
    share = Fraction(9, 10) / (Fraction(9, 10) + Fraction(3, 4))
    assert bins(oracle.projected(*commands)) == {"0.475000000": ("2", "1.65", "0.50", f"{Decimal(float(share)):.2f}")}


@pytest.mark.parametrize(
    ("probability", "lower"),
    [
        ("0", "0.000000000"),
        ("0.041666666", "0.000000000"),
        ("0.041666667", "0.041666667"),
        ("0.083333334", "0.083333334"),
        ("0.124999999", "0.083333334"),
        ("0.125", "0.125000000"),
        ("0.5", "0.475000000"),
        ("0.874999999", "0.825000000"),
        ("0.875", "0.875000000"),
        ("0.958333334", "0.958333334"),
        ("1", "0.958333334"),
    ],
)
def test_a_bin_has_its_lower_end_and_the_last_one_has_both(probability: str, lower: str) -> None:
    """Three bins of a 24th at each end of the scale, and fifteen of a twentieth between them."""
    assert [*bins(oracle.projected(*asked(forecast(probability=probability)), resolution()))] == [lower]


def test_questions_of_other_kinds_do_not_count() -> None:
    """Forecasts on colours have a table of their own; nor does a question that nobody has forecast on."""
    assert bins(oracle.projected(*asked(), resolution())) == {}
    made = forecast("colour", probabilities={"red": "0.2", "green": "0.5", "blue": "0.3"})
    commands: list[AnyCommand] = [
        choices(),
        contest(rules=MEAN),
        entry(question="colour"),
        made,
        resolution("colour", outcome="red"),
    ]
    assert bins(oracle.projected(*commands)) == {}


def words(seed: bytes, replicate: int, count: int) -> list[Fraction]:
    """Return the random numbers of a replicate, one for each cluster: 62 bits of each eight bytes of SHA-256."""
    made: list[int] = []
    for counter in range(count):
        digest = sha256(seed + b"chance" + replicate.to_bytes(4, "big") + counter.to_bytes(4, "big")).digest()
        made += [int.from_bytes(digest[start : start + 8], "big") >> 2 for start in range(0, 32, 8)]
    return [Fraction(word, 2**62) for word in made]


def test_the_band_draws_each_question_once_and_a_group_by_one_number() -> None:
    """Of three questions two are a group; of 39 replicates, the band at 90% ends at the second and the 38th."""
    rules = structs.replace(MEAN, replicates=39, level_ppm=900_000)
    commands: list[AnyCommand] = [contest(rules=rules)]
    for name, later in (("rain", 13), ("snow", 15), ("sun", 18)):
        commands += [opened(name, group=None if name == "sun" else "water"), entry(question=name)]
        commands += [forecast(name, at=day(10)), forecast(name, probability="0.72", at=day(later))]
        commands += [resolution(name)]
    projections = oracle.projected(*commands)
    [row] = projections.table("calibration_time_weighted").rows()
    groups = {"rain": (1, "water"), "snow": (1, "water"), "sun": (1, "")}
    seed = seed_of("calibration_time_weighted", groups, projections.table("scores").rows())
    assert (row["n"], row["questions"], row["seed"]) == (6, 3, seed.hex())
    frequencies = []
    for replicate in range(39):
        first, second, *_ = words(seed, replicate, 1)
        luck = {"sun": (first, 8), "rain": (second, 3), "snow": (second, 5)}  # whole days with 0.7, of ten
        frequencies.append(sum(u < (7 * days + Fraction("7.2") * (10 - days)) / 100 for u, days in luck.values()))
    frequencies.sort()
    for end, place in (("band_low", 1), ("band_high", 37)):
        assert Fraction(row[end]) == Fraction(oracle.nine(Fraction(frequencies[place], 3)))


def updated(random: Random, questions: int, group: int) -> list[TimedBin]:
    """The bin of a calibrated forecaster with twenty forecasts near ½ on each question; groups come together."""
    own, luck = [], [random.random() for _ in range(questions)]
    for question in range(questions):
        chances = [500_000_000 + random.randrange(-20_000_000, 20_000_001) for _ in range(20)]
        happened = luck[question // group] < sum(chances) / 20e9
        own.append(Stood(question, 20, 20, sum(chances), happened, 20))
    forecast, came_true = sum(each.forecast for each in own), sum(each.stood for each in own if each.happened)
    return [TimedBin(0, 0, 10, 20 * questions, forecast, came_true, 20, own)]


@pytest.mark.parametrize(("questions", "group"), [(40, 1), (80, 4)])
def test_a_calibrated_forecaster_is_seldom_outside_the_band(questions: int, group: int) -> None:
    """At most 5% of 120 forecasters with twenty updates on each question: 12, but for one case in 100.

    Places of the binomial distribution of all updates would leave out more than a quarter of them.
    """
    random, outside, counted = Random(questions), 0, 0
    for case in range(120):
        [own] = bins_of = updated(random, questions, group)
        clusters = np.arange(questions) // group
        [(low, high)] = timed_bands(bins_of, clusters, b"case %d" % case, 199, 950_000)
        frequency = Fraction(own.happened, own.weight)
        outside += not low <= frequency * 10**9 <= high
        counted += abs(frequency - Fraction(own.forecast, own.weight * 10**9)) > 0.98 / (20 * questions) ** 0.5
    assert outside <= 12
    assert counted >= 30


@pytest.mark.parametrize("seed", range(times(10)))
def test_bins_of_random_seasons_are_the_same_in_chunks_of_any_size(seed: int) -> None:
    """A forecast weighs at most 1, and the weighted mean of a bin's forecasts is in the bin."""
    random = Random(seed)
    season = Season(random, drawn_rules(random), MEAN, MEAN, uncounted=0.2, ending=0.2)
    facts = oracle.facts_in(season.recorded())
    whole, pieces = (Projections(facts, chunk).table("calibration_time_weighted") for chunk in (1 << 20, 1))
    assert whole.digest() == pieces.digest()
    for row in whole.rows():
        numbers = [Fraction(row[name]) for name in ("from_probability", "mean_forecast", "to_probability")]
        assert numbers == sorted(numbers)
        assert 0 < Fraction(row["weight"]) <= row["n"]
        assert 0 <= Fraction(row["observed_frequency"]) <= 1
