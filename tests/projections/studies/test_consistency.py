"""Bands of recalibrated probabilities and tests of calibration, compared with their definitions.

Where forecasts have one probability, bands are compared with places of the binomial distribution.
"""

from fractions import Fraction
from hashlib import sha256
from math import comb
from random import Random

import numpy as np
import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies import consistency
from forecast_ledger.projections.studies.consistency import (
    Forecasts,
    affordable,
    as_miscalibrated,
    consistency_band,
)
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import asked, contest, entry, forecast, opened, resolution
from tests.support.seeds import seed_of

ONE = 10**9
FEW = RuleSet(name="few", kernel="brier", period="covered", total="mean", replicates=39, level_ppm=900_000)


def isotonic(places: list[int], happened: list[bool]) -> list[Fraction]:
    """Return the isotonic regression at each forecast: the greatest of the least means, over all spans around it."""
    distinct = sorted(set(places))
    counts = [[yes for place, yes in zip(places, happened, strict=True) if place == each] for each in distinct]

    def mean(first: int, last: int) -> Fraction:
        every = [yes for own in counts[first : last + 1] for yes in own]
        return Fraction(sum(every), len(every))

    ends = range(len(distinct))
    return [max(min(mean(a, b) for b in ends[i:]) for a in ends[: i + 1]) for i in ends]


def forecasts(places: list[int], happened: list[bool], clusters: list[int] | None = None) -> Forecasts:
    """Return one owner's forecasts; without clusters, each question stands alone."""
    own = clusters or [*range(len(places))]
    return Forecasts(np.array(places), np.array(happened), np.array(own))


def binomial_place(n: int, chance: Fraction, share: Fraction) -> int:
    """Return the least k for which k or fewer of n independent events happen with at least this probability."""
    upto, k = (1 - chance) ** n, 0
    while upto < share:
        k += 1
        upto += comb(n, k) * chance**k * (1 - chance) ** (n - k)
    return k


def drawn(seed: bytes, replicate: int, places: list[int], clusters: list[int]) -> list[bool]:
    """Return what comes true in a replicate, word by word, as the table's meaning says."""
    words: list[int] = []
    for counter in range(max(clusters) // 4 + 1):
        digest = sha256(seed + b"chance" + replicate.to_bytes(4, "big") + counter.to_bytes(4, "big")).digest()
        words += [int.from_bytes(digest[start : start + 8], "big") >> 2 for start in range(0, 32, 8)]
    own = [words[cluster] for cluster in clusters]
    return [Fraction(word, 2**62) < Fraction(place, ONE) for word, place in zip(own, places, strict=True)]


def saved(places: list[int], happened: list[bool]) -> Fraction:
    """Return by how much recalibration, to nine digits, lowers the sum of squared errors."""
    shares = dict(zip(sorted(set(places)), isotonic(places, happened), strict=True))
    pairs = [(Fraction(place, ONE), Fraction(round(shares[place] * ONE), ONE)) for place in places]
    return sum(((p - yes) ** 2 - (r - yes) ** 2 for (p, r), yes in zip(pairs, happened, strict=True)), Fraction(0))


@pytest.mark.parametrize("seed", range(times(8)))
def test_ends_are_order_statistics_of_recalibrated_draws(seed: int) -> None:
    """Of 39 replicates at the level 0.9, the second and the last but one: 0.1 x 40 / 2 = 2."""
    random = Random(seed)
    places = sorted(random.randrange(11) * ONE // 10 for _ in range(random.randint(1, 12)))
    happened = [random.random() < 0.5 for _ in places]
    clusters = [*range(len(places))] if seed % 2 else [random.randrange(3) for _ in places]
    name, own = b"seed %d" % seed, forecasts(places, happened, clusters)
    found = consistency_band(own, name, 39, 900_000)
    assert [each.probability for each in found] == sorted(set(places))
    assert [each.n for each in found] == [places.count(each.probability) for each in found]
    assert [each.recalibrated for each in found] == [round(share * ONE) for share in isotonic(places, happened)]
    came_true = [drawn(name, number, places, clusters) for number in range(39)]
    replicates = [isotonic(places, each) for each in came_true]
    far = sum(saved(places, each) >= saved(places, happened) for each in came_true)
    assert as_miscalibrated(own, name, 39) == far
    for number, each in enumerate(found):
        ordered = sorted(replicate[number] for replicate in replicates)
        assert (each.low, each.high) == (round(ordered[1] * ONE), round(ordered[37] * ONE))


def test_forecasts_of_one_probability_have_a_binomial_band() -> None:
    """With 1,999 replicates, ends lie between the binomial places of 1.5 and 3.5%, and of 96.5 and 98.5%."""
    [found] = consistency_band(forecasts([3 * ONE // 10] * 50, [False] * 50), b"fixed", 1_999, 950_000)
    limits = [binomial_place(50, Fraction(3, 10), Fraction(share, 1_000)) for share in (15, 35, 965, 985)]
    assert limits[0] <= found.low * 50 // ONE <= limits[1]
    assert limits[2] <= found.high * 50 // ONE <= limits[3]


def test_certain_forecasts_have_no_width() -> None:
    """What is certain comes true in every replicate, and what is impossible in none."""
    found = consistency_band(forecasts([0, 0, ONE], [False, True, True]), b"fixed", 39, 900_000)
    assert [(each.recalibrated, each.low, each.high) for each in found] == [(ONE // 2, 0, 0), (ONE, ONE, ONE)]


def test_the_table_names_its_seed() -> None:
    """It follows from what is scored, and is the same for all participants."""
    commands = [contest(rules=FEW), *asked("rain", {"ada": "0.7", "bob": "0.7"})]
    projections = oracle.projected(*commands)
    rows = {row["participant"]: row for row in projections.table("corp_band").rows()}
    for who in ("ada", "bob"):
        seed = seed_of("corp_band", {"rain": (1, "")}, projections.table("scores").rows())
        assert rows[who]["seed"] == seed.hex()
        assert (rows[who]["replicates"], rows[who]["n"], rows[who]["recalibrated"]) == (39, 1, "1.000000000")


@pytest.mark.parametrize(
    ("forecasts", "replicates"), [(0, 1_999), (20_010, 1_999), (20_011, 1_998), (201_005, 199), (10**9, 199)]
)
def test_a_contest_of_very_many_forecasts_has_fewer_replicates(forecasts: int, replicates: int) -> None:
    """40,000,000 / 20,010 is 1,999.0005; 40,000,000 / 201,005 is 199.0000498. There are never fewer than 199."""
    assert affordable(forecasts, 1_999) == replicates


@pytest.mark.parametrize("forecasts", [20_011, 10**9])
def test_no_contest_has_more_replicates_than_its_rules_say(forecasts: int) -> None:
    """Not even where they say fewer than 199."""
    assert affordable(forecasts, 39) == 39


def test_the_table_and_its_bands_have_the_replicates_that_are_affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 90 draws of three or more forecasts are at most 30 replicates, where the rules say 39."""
    commands: list[AnyCommand] = [opened(), contest(rules=FEW), entry(), forecast(), forecast(participant="bob")]
    commands += [forecast(participant="cy"), resolution()]
    monkeypatch.setattr(consistency, "MOST_DRAWS", 90)
    monkeypatch.setattr(consistency, "FEWEST_REPLICATES", 9)
    rows = list(oracle.projected(*commands).table("corp_band").rows())
    assert {row["replicates"] for row in rows} == {90 // len(rows)}
    for row in rows:
        seed = bytes.fromhex(row["seed"])
        [found] = consistency_band(forecasts([7 * ONE // 10], [True]), seed, 90 // len(rows), FEW.level_ppm)
        assert [int(Fraction(row[end]) * ONE) for end in ("band_low", "band_high")] == [found.low, found.high]


def test_a_table_of_too_many_bands_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is drawn, with the contest, the number of forecasts and the limit."""
    commands: list[AnyCommand] = [opened(), contest(rules=FEW), entry(), forecast(), forecast(participant="bob")]
    projections = oracle.projected(*commands, resolution())
    monkeypatch.setattr("forecast_ledger.projections.tables.calibration.MOST_FORECASTS", 1)
    with pytest.raises(Refused, match=r"cup has \d forecasts that count; the limit is 1"):
        projections.table("corp_band")


@pytest.mark.parametrize("size", [1, 4])
def test_calibrated_forecasts_are_seldom_called_miscalibrated(size: int) -> None:
    """P is at most 0.05 in at most 5% of 200 cases, 17 but for one case in 100; with clusters of four as well."""
    random, small = Random(size), 0
    for case in range(times(200)):
        places = sorted(random.randrange(1, 20) * ONE // 20 for _ in range(40))
        clusters = [number // size for number in random.sample(range(40), 40)]
        luck = [random.random() for _ in range(40)]
        happened = [luck[cluster] < place / ONE for cluster, place in zip(clusters, places, strict=True)]
        far = as_miscalibrated(forecasts(places, happened, clusters), b"case %d" % case, 199)
        small += 20 * (1 + far) <= 200
    assert small <= 17 * times(200) // 200


def test_forecasts_that_are_far_too_sure_are_called_miscalibrated() -> None:
    """0.9 and 0.1 where 0.6 and 0.4 happen, on 80 questions: no replicate of 999 is as far."""
    places = [ONE // 10] * 40 + [9 * ONE // 10] * 40
    happened = [number % 5 < 2 for number in range(40)] + [number % 5 < 3 for number in range(40)]
    assert as_miscalibrated(forecasts(places, happened), b"sure", 999) == 0


def test_the_table_of_tests_has_the_clusters_of_the_rules() -> None:
    """Two questions of one group are a cluster; p follows from the seed, the forecasts and the replicates."""
    commands: list[AnyCommand] = [contest(rules=FEW)]
    for name in ("rain", "snow", "sun"):
        commands += asked(name, {"ada": "0.7"}, "no", group=None if name == "sun" else "water")
    projections = oracle.projected(*commands)
    [row] = [row for row in projections.table("calibration_test").rows() if row["participant"] == "ada"]
    groups = {"rain": (1, "water"), "snow": (1, "water"), "sun": (1, "")}
    seed = seed_of("calibration_test", groups, projections.table("scores").rows())
    assert (row["n"], row["clusters"], row["replicates"], row["seed"]) == (3, 2, 999, seed.hex())
    places, clusters = [7 * ONE // 10] * 3, [1, 1, 0]  # a question alone comes first
    every = [saved(places, drawn(seed, number, places, clusters)) for number in range(999)]
    far = sum(each >= saved(places, [False] * 3) for each in every)
    assert Fraction(row["p"]) == Fraction(1 + far, 1000)
