"""Studies of some questions, and with other clusters, against numbers made anew from the documents."""

from collections.abc import Iterable
from fractions import Fraction
from hashlib import sha256
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AddQuestion, AnyCommand, OpenContest, OpenQuestion
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.replay.reading.replay import Replay, replay
from forecast_ledger.replay.reading.studies import CLUSTERED, STUDIES
from tests.support.given import contest, day, entry, forecast, opened, resolution
from tests.support.logs import log_fixture, written
from tests.support.seeds import seed_of

REPLICATES = 39
RULES = RuleSet(name="own", kernel="brier", period="covered", total="mean", replicates=REPLICATES)
ADA, BO = 3, 4
# question: its group, category and tags, what Ada and Bo gave to yes, in tenths, and the answer
ASKED: dict[str, Any] = {
    "frost": ("west", "weather", ("cold", "air=cold"), 9, 5, "yes"),
    "rain": ("west", "weather", ("wet", "air=warm"), 3, 4, "yes"),
    "snow": ("east", "weather", ("cold", "wet", "air=cold"), 2, 6, "no"),
    "vote": ("east", "politics", (), 8, 1, "no"),
    "war": ("", "", (), 5, 7, "yes"),
}


def said(*questions: str) -> list[AnyCommand]:
    """A contest with all questions, of which only these are in it."""
    told: list[AnyCommand] = [contest(rules=RULES)]
    for name, (group, category, tags, ada, bo, answer) in ASKED.items():
        told += [
            opened(name, group=group or None, category=category or None, tags=tags),
            entry(question=name),
            forecast(name, probability=f"0.{ada}"),
            forecast(name, "bo", at=day(12), probability=f"0.{bo}"),
            resolution(name, outcome=answer),
        ]
    return [each for each in told if not isinstance(each, AddQuestion) or each.question in questions]


def beside() -> list[AnyCommand]:
    """The contest with all questions, and another with one of them."""
    first, *rest = said(*ASKED)
    place = next(number for number, each in enumerate(rest) if getattr(each, "question", "") == "war") + 1
    return [first, *rest[:place], contest("cap", rules=RULES), entry("cap", "war"), *rest[place:]]


season = log_fixture(beside, "module", replay)


def brier(name: str, place: int) -> Fraction:
    """The Brier score of Ada or Bo."""
    score: Fraction = (Fraction(int(ASKED[name][place]), 10) - (ASKED[name][5] == "yes")) ** 2
    return score


def cluster_of(name: str, field: Any) -> str:
    """The cluster of a question; a dict has those that were chosen."""
    group, category, tags = ASKED[name][:3]
    air = [tag.removeprefix("air=") for tag in tags if tag.startswith("air=")]
    by_field = {"group": group, "category": category, "tag:air": "".join(air)}
    return str(field.get(name, "") if isinstance(field, dict) else by_field.get(field, ""))


def seed_by(table: str, names: Iterable[str], *fields: Any) -> bytes:
    """The seed of the draws of a table with these questions, in clusters by these fields."""
    questions = {name: (1, *(cluster_of(name, field) for field in fields)) for name in names}
    whole = [(name, who) for name in ASKED for who in (ADA, BO)]
    scores = [{"question": name, "participant": who, "score": in_points(brier(name, who))} for name, who in whole]
    return seed_of(table, questions, scores)


def means(seed: bytes, units: list[list[str]], place: int) -> list[Fraction]:
    """The mean score in each replicate, in order: as many units as there are, drawn by the words of SHA-256."""
    found = []
    for replicate in range(REPLICATES):
        digest = sha256(seed + bytes(4) + replicate.to_bytes(4, "big") + bytes(4)).digest()
        words = [int.from_bytes(digest[begin : begin + 4], "big") for begin in range(0, 4 * len(units), 4)]
        drawn = [name for word in words for name in units[word % len(units)]]
        found.append(sum((brier(name, place) for name in drawn), Fraction(0)) / len(drawn))
    return sorted(found)


def in_points(number: Fraction) -> str:
    """A score as it is printed."""
    return f"{round(number * 10**9) / 10**9:.9f}"


Clusters = list[list[str]]
ALONE: Clusters = [["frost"], ["rain"], ["snow"], ["vote"], ["war"]]
CHOSEN = {"frost": "b", "vote": "b", "snow": "a", "rain": "a"}


@pytest.mark.usefixtures("little_is_enough")
@pytest.mark.parametrize(
    ("cluster", "units"),
    [
        ("group", [["war"], ["snow", "vote"], ["frost", "rain"]]),
        ("category", [["war"], ["vote"], ["frost", "rain", "snow"]]),
        ("question", ALONE),
        ("horizon", ALONE),  # of questions that are no hub's
        ("tag:air", [["vote"], ["war"], ["frost", "snow"], ["rain"]]),
        (["tag:air"], [["vote"], ["war"], ["frost", "snow"], ["rain"]]),
        (CHOSEN, [["war"], ["rain", "snow"], ["frost", "vote"]]),
    ],
)
def test_clusters_are_drawn_together(season: Replay, cluster: Any, units: Clusters) -> None:
    """Questions alone are the first units, then clusters by name; of 39 replicates, the ends are the outermost."""
    for who, place in (("ada", ADA), ("bo", BO)):
        [row] = season.study("intervals", contest="cup", cluster=cluster).only("participant", who)
        [field] = cluster if isinstance(cluster, list) else [cluster]
        drawn = means(seed_by("intervals", ASKED, field), units, place)
        assert (row["score_low"], row["score_high"]) == (in_points(drawn[0]), in_points(drawn[-1]))
        assert row["score"] == in_points(sum(brier(name, place) for name in ASKED) / Fraction(len(ASKED)))


WEST_OR_EAST = [["war"], ["snow", "vote"], ["frost", "rain"]]  # by group
BY_AIR = [["vote"], ["war"], ["frost", "snow"], ["rain"]]


def crossed(replicate: int) -> dict[str, int]:
    """How often each question is drawn: as often as its group times as often as its air, each a stratum of draws."""
    found = dict.fromkeys(ASKED, 1)
    for stratum, units in enumerate((WEST_OR_EAST, BY_AIR)):
        stem = (
            seed_by("intervals", ASKED, "group", "tag:air") + stratum.to_bytes(4, "big") + replicate.to_bytes(4, "big")
        )
        digest = sha256(stem + bytes(4)).digest()
        words = [int.from_bytes(digest[begin : begin + 4], "big") for begin in range(0, 4 * len(units), 4)]
        drawn = [word % len(units) for word in words]
        for number, names in enumerate(units):
            found |= {name: found[name] * drawn.count(number) for name in names}
    return found


@pytest.mark.usefixtures("little_is_enough")
def test_clusters_by_two_fields_are_drawn_each_by_itself(season: Replay) -> None:
    """A replicate without any question has no total; of those that have one, the ends are the outermost."""
    replicates = [crossed(number) for number in range(REPLICATES)]
    for who, place in (("ada", ADA), ("bo", BO)):
        drawn = sorted(
            sum((count * brier(name, place) for name, count in times.items()), Fraction(0)) / sum(times.values())
            for times in replicates
            if sum(times.values())
        )
        assert 30 < len(drawn) < REPLICATES
        [row] = season.study("intervals", contest="cup", cluster=["group", "tag:air"]).only("participant", who)
        assert (row["score_low"], row["score_high"]) == (in_points(drawn[0]), in_points(drawn[-1]))


def test_differences_are_turned_by_the_signs_of_both_clusters(season: Replay) -> None:
    """The p-value is the share of the ways to set seven signs in which the sum is as far from 0."""
    difference = {name: brier(name, BO) - brier(name, ADA) for name in ASKED}
    clusters, further = WEST_OR_EAST + BY_AIR, 0
    for signs in product((1, -1), repeat=len(clusters)):
        turned = [sign * difference[name] for sign, names in zip(signs, clusters, strict=True) for name in names]
        further += abs(sum(turned, Fraction(0))) >= abs(sum(difference.values(), Fraction(0)))
    [row] = season.study("pairwise", contest="cup", cluster=["group", "tag:air"])
    assert row["p"] == in_points(Fraction(further, 2**7))


@pytest.mark.usefixtures("little_is_enough")
@pytest.mark.parametrize(
    ("by", "parts"),
    [
        ("group", {"east": ["snow", "vote"], "west": ["frost", "rain"]}),
        ("category", {"politics": ["vote"], "weather": ["frost", "rain", "snow"]}),
        (
            "tag",
            {"air=cold": ["frost", "snow"], "air=warm": ["rain"], "cold": ["frost", "snow"], "wet": ["rain", "snow"]},
        ),
    ],
)
def test_each_value_has_a_board_of_its_questions(season: Replay, by: str, parts: dict[str, list[str]]) -> None:
    """Its draws follow from what is scored on these questions alone; a question may have several tags."""
    rows = [*season.study("intervals", by=by, cluster="question")]
    assert sorted({(row["contest"], row["by"], row["name"]) for row in rows}) == [("cup", by, name) for name in parts]
    for row in rows:
        place, own = ADA if row["participant"] == "ada" else BO, parts[row["name"]]
        drawn = means(seed_by("intervals", own, "question"), [[name] for name in own], place)
        ends = (in_points(drawn[0]), in_points(drawn[-1]))
        assert (row["score_low"], row["score_high"]) == (ends if len({*ends}) > 1 else (None, None))
        assert row["score"] == in_points(sum((brier(name, place) for name in own), Fraction(0)) / len(own))


@pytest.mark.parametrize(
    ("cluster", "clusters", "independent"),
    [(None, None, 4), ("question", 4, 4), ("group", 2, 2), ({"a": "x", "b": "x", "c": "x"}, 2, Fraction(16, 10))],
)
def test_intervals_of_calibration_allow_for_clusters(
    cluster: Any, clusters: int | None, independent: Fraction, tmp_path: Path
) -> None:
    """Of four forecasts three came true: as of n^2 over the sum of squares of clusters, such as 16 / (9 + 1)."""
    told: list[AnyCommand] = [contest(rules=RULES)]
    for name, group, answer in (("a", "one", "yes"), ("b", "one", "yes"), ("c", "two", "yes"), ("d", "two", "no")):
        told += [opened(name, group=group), entry(question=name), forecast(name), resolution(name, outcome=answer)]
    made = replay(written(tmp_path / "log.db", told)).study("calibration", cluster=cluster)
    [row] = made.only("participant", "ada")
    z, n, p = 1.959963984540054, float(independent), 0.75
    middle, spread = p + z * z / (2 * n), z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    limits = [(middle + way * spread) / (1 + z * z / n) for way in (-1, 1)]
    assert [float(row[end]) for end in ("wilson_low", "wilson_high")] == pytest.approx(limits, abs=1e-9)
    assert (row["n"], row["happened"], row.get("clusters")) == (4, 3, clusters)


RANDOM = {"seed", "p", "p_adjusted", "difference_low", "difference_high", "band_low", "band_high"}
RANDOM |= {"score_low", "score_high", "first", "rank_set_low", "rank_set_high", "rank_low", "rank_high"}


@pytest.mark.parametrize("table", STUDIES)
def test_a_part_is_as_a_contest_of_its_questions(season: Replay, table: str, tmp_path: Path) -> None:
    """Every number that is not drawn is that of another log, whose contest has only these questions."""
    other = replay(written(tmp_path / "log.db", said("frost", "rain", "snow")))
    part = season.study(table, contest="cup", by="category").only("name", "weather")
    found = [{name: row[name] for name in row.keys() - RANDOM - {"by", "name"}} for row in part]
    assert found == [{name: row[name] for name in row.keys() - RANDOM} for row in other.table(table)]


@pytest.mark.parametrize("table", STUDIES)
def test_a_study_without_choices_is_the_table(season: Replay, table: str) -> None:
    """Digest and all; of one contest, its rows."""
    assert season.study(table).digest() == season.table(table).digest()
    assert [*season.study(table, contest="cup")] == [*season.table(table).only("contest", "cup")]


def test_pairs_are_compared_on_the_questions_of_a_part(season: Replay) -> None:
    """Of the weather, Ada is better on frost and snow, by 0.24 and 0.32, and Bo on rain by 0.13."""
    [row] = season.study("pairwise", by="category").only("name", "weather")
    assert (row["participant"], row["other"], row["questions"], row["won"], row["lost"]) == ("ada", "bo", 3, 2, 1)
    assert row["difference"] == in_points(Fraction(24 + 32 - 13, 100) / 3)


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"table": "pairwis"}, "no study named 'pairwis'; there are pairwise, "),
        ({"table": "pairwise", "by": "categry"}, "no detail named 'categry' to divide by; there are category, "),
        ({"table": "brier", "cluster": "question"}, "brier has no clusters; these tables have: intervals, "),
        ({"table": "pairwise", "cluster": "tag"}, "no clusters named 'tag'; there are tag:NAME, category, "),
        ({"table": "pairwise", "cluster": ["group", "grup"]}, "no clusters named 'grup'; there are group, "),
        ({"table": "pairwise", "cluster": ["group", "group"]}, "two clusters must be different fields"),
        ({"table": "pairwise", "cluster": ["group", "question"]}, "two clusters must be different fields"),
        ({"table": "pairwise", "cluster": ["group", "tag:a", "tag:b"]}, "by one field or two, not by 3"),
        ({"table": "pairwise", "cluster": []}, "by one field or two, not by 0"),
        ({"table": "pairwise", "cluster": {"rian": "a"}}, "no question named 'rian'; there are rain, "),
        ({"table": "pairwise", "contest": "cupp"}, "no contest named 'cupp'; there are cup, cap"),
    ],
)
def test_what_is_not_there_is_refused(season: Replay, chosen: dict[str, Any], told: str) -> None:
    """With the nearest first."""
    with pytest.raises(ValueError, match=told):
        season.study(**chosen)
    assert {*CLUSTERED} < {*STUDIES}


@pytest.mark.usefixtures("little_is_enough")
def test_the_rule_set_names_what_is_drawn_together(season: Replay, tmp_path: Path) -> None:
    """A study draws as the rules say, or as it is told; the numbers are those of a contest with other rules."""
    by_air = structs.replace(RULES, clusters=("tag:air",))
    told = [structs.replace(each, rules=by_air) if isinstance(each, OpenContest) else each for each in said(*ASKED)]
    other = replay(written(tmp_path / "log.db", told))
    assert other.study("intervals").digest() == other.intervals.digest()
    assert other.study("intervals", cluster="tag:air").digest() == other.intervals.digest()
    [row] = other.intervals.only("participant", "bo")
    drawn = means(seed_by("intervals", ASKED, "tag:air"), [["vote"], ["war"], ["frost", "snow"], ["rain"]], BO)
    assert (row["score_low"], row["score_high"]) == (in_points(drawn[0]), in_points(drawn[-1]))
    [row] = other.study("intervals", cluster="group").only("participant", "bo")
    drawn = means(seed_by("intervals", ASKED, "group"), [["war"], ["snow", "vote"], ["frost", "rain"]], BO)
    assert (row["score_low"], row["score_high"]) == (in_points(drawn[0]), in_points(drawn[-1]))


def test_clusters_change_no_score(season: Replay, tmp_path: Path) -> None:
    """They are as if the questions had been opened with these groups: only the draws differ, by the log's digest."""
    regrouped: list[AnyCommand] = [
        structs.replace(each, group=CHOSEN.get(each.question)) if isinstance(each, OpenQuestion) else each
        for each in said(*ASKED)
    ]
    other = replay(written(tmp_path / "log.db", regrouped))
    for row, same in zip(season.study("pairwise", contest="cup", cluster=CHOSEN), other.pairwise, strict=True):
        assert {name: row[name] for name in row.keys() - RANDOM} == {name: same[name] for name in row.keys() - RANDOM}
