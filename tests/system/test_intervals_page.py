"""The page "How intervals are drawn", tried: a program that has only the exported CSV files gives the same ends."""

import csv
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from itertools import combinations
from math import ceil, isqrt
from pathlib import Path
from random import Random
from typing import Any

from forecast_ledger import explain, export
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from tests.support.given import choices, contest, day, entry, forecast, opened, resolution
from tests.support.logs import log_fixture

QUESTIONS = 36
Pair = tuple[str, str]
SETS = ("rank_set_low", "rank_set_high", "rank_low", "rank_high")
RULES = RuleSet(name="own", kernel="brier", period="covered", total="mean", replicates=199)


# --- what a reader of the page writes


def table(folder: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of an exported table."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def hashed(lines: list[str]) -> str:
    """Return the SHA-256 of lines of text."""
    return sha256("\n".join(lines).encode()).hexdigest()


def scored_digest(folder: Path) -> str:
    """Return the digest of what is scored, where all weights are the same and clusters are groups."""
    own: dict[str, list[str]] = {}
    rows = table(folder, "scores")
    for row in sorted(rows, key=lambda row: row["question"]):
        own.setdefault(row["participant"], []).append(f"{row['question']}\t{int(row['score'].replace('.', ''))}")
    groups = {row["question"]: row["group"] for row in table(folder, "questions")}
    lines = [f"{name}\t1\t{groups[name]}" for name in sorted({row["question"] for row in rows})]
    return hashed([*lines, *sorted(map(hashed, own.values()))])


def numbered(number: int) -> bytes:
    """Return four bytes, the highest first."""
    return number.to_bytes(4, "big")


def drawn(seed: bytes, stratum: int, replicate: int, count: int) -> list[int]:
    """Return which clusters of a stratum are drawn in a replicate."""
    if count == 1:
        return [0]
    found: list[int] = []
    counter, limit = 0, 2**32 - 2**32 % count
    while len(found) < count:
        digest = sha256(seed + numbered(stratum) + numbered(replicate) + numbered(counter)).digest()
        words = [int.from_bytes(digest[begin : begin + 4], "big") for begin in range(0, 32, 4)]
        found += [word % count for word in words if word < limit]
        counter += 1
    return found[:count]


def strata(folder: Path, counted: set[str]) -> list[list[list[str]]]:
    """Return the questions of each cluster of each stratum: those that stand alone by id, then groups by name."""
    members: dict[tuple[bool, str], list[str]] = {}
    kinds: dict[tuple[bool, str], set[str]] = {}
    for row in table(folder, "questions"):
        if row["question"] in counted:
            key = (row["group"] != "", row["group"] or row["question"])
            members.setdefault(key, []).append(row["question"])
            kinds.setdefault(key, set()).add(row["kind"])
    return [
        [members[key] for key in sorted(members) if sorted(kinds[key]) == [*stratum]]
        for stratum in sorted({tuple(sorted(each)) for each in kinds.values()})
    ]


def taken(seed: bytes, every: list[list[list[str]]], replicate: int) -> list[str]:
    """Return the questions of a replicate, each as often as it is drawn."""
    return [
        question
        for stratum, clusters in enumerate(every)
        for number in drawn(seed, stratum, replicate, len(clusters))
        for question in clusters[number]
    ]


def ends(folder: Path, participant: str, replicates: int, level: Fraction) -> list[Fraction]:
    """Return the ends of a participant's mean score in a contest of questions of equal weight."""
    rows = table(folder, "scores")
    drawn_from = strata(folder, {row["question"] for row in rows})
    scores = {
        row["question"]: Fraction(int(row["numerator"]), int(row["denominator"]))
        for row in rows
        if row["participant"] == participant
    }
    seed = bytes.fromhex(hashed([scored_digest(folder), "intervals"]))
    totals = []
    for replicate in range(replicates):
        own = [scores[name] for name in taken(seed, drawn_from, replicate) if name in scores]
        totals.append(sum(own, Fraction(0)) / len(own))
    totals.sort()
    outside = max(int((1 - level) * (replicates + 1) / 2), 1)
    return [totals[outside - 1], totals[-outside]]


def solved(lines: list[list[Fraction]]) -> list[Fraction]:
    """Return the solution of equations; the last number of a line is the right side."""
    if not lines:
        return []
    first = next(line for line in lines if line[0])
    rest = [
        [other - line[0] / first[0] * own for own, other in zip(first[1:], line[1:], strict=True)]
        for line in lines
        if line is not first
    ]
    below = solved(rest)
    return [(first[-1] - sum(own * each for own, each in zip(first[1:-1], below, strict=True))) / first[0], *below]


def connected(groups: list[set[str]]) -> bool:
    """Return whether groups that have a member in common, one after another, are all of them."""
    joined: list[set[str]] = []
    for group in groups:
        whole = group.union(*(each for each in joined if each & group))
        joined = [*(each for each in joined if not each & group), whole]
    return len(joined) == 1


def adjusted(scores: dict[str, dict[str, Fraction]], times: dict[str, int]) -> dict[str, Fraction]:
    """Return the adjusted scores if questions are drawn so often, by participant; none if these are not connected.

    scores: by question and participant.
    """
    if not connected([{*scores[name]} for name in times]):
        return {}
    people = sorted({who for name in times for who in scores[name]})
    lines = [[Fraction(0)] * (len(people) + 1) for _ in people]
    for name, weight in times.items():  # y is the mean of score - x
        own = scores[name]
        for who, score in own.items():
            line = lines[people.index(who)]
            line[people.index(who)] += weight
            line[-1] += weight * (score - sum(own.values(), Fraction(0)) / len(own))
            for other in own:
                line[people.index(other)] -= Fraction(weight, len(own))
    found = dict(zip(people, [Fraction(0), *solved([line[1:] for line in lines[1:]])], strict=True))
    rests = {name: [score - found[who] for who, score in scores[name].items()] for name in times}
    total = sum((times[name] * sum(rest, Fraction(0)) / len(rest) for name, rest in rests.items()), Fraction(0))
    common = total / sum(times.values())
    return {who: own + common for who, own in found.items()}


def refits(folder: Path, replicates: int) -> list[dict[str, Fraction]]:
    """Return adjusted scores in a contest of questions of equal weight, all in one part: first as they are."""
    scores: dict[str, dict[str, Fraction]] = {}
    for row in table(folder, "scores"):
        score = Fraction(int(row["numerator"]), int(row["denominator"]))
        scores.setdefault(row["question"], {})[row["participant"]] = score
    drawn_from = strata(folder, {*scores})
    seed = bytes.fromhex(hashed([scored_digest(folder), "adjusted_intervals"]))
    every = [[*scores], *(taken(seed, drawn_from, replicate) for replicate in range(replicates))]
    fits = [adjusted(scores, Counter(names)) for names in every]
    return [{who: Fraction(round(score * 10**24), 10**24) for who, score in fit.items()} for fit in fits]


def clusters_of(folder: Path) -> Counter[str]:
    """Return the number of clusters in which each participant has a score."""
    rows = table(folder, "scores")
    every = [{*names} for stratum in strata(folder, {row["question"] for row in rows}) for names in stratum]
    pairs = {
        (row["participant"], number) for row in rows for number, names in enumerate(every) if row["question"] in names
    }
    return Counter(who for who, _ in pairs)


def adjusted_ends(scores: list[Fraction], level: Fraction) -> list[Fraction]:
    """Return the ends of an adjusted score. scores: of the replicates that have one."""
    outside = max(int((1 - level) * (len(scores) + 1) / 2), 1)
    return [sorted(scores)[outside - 1], sorted(scores)[-outside]]


def root(square: Fraction) -> Fraction:
    """Return a root, rounded half-even to three decimals."""
    return round(Fraction(isqrt(int(square * 10**60)), 10**30), 3)


def statistics(fits: list[dict[str, Fraction]], pair: Pair, clusters: int, s: int) -> tuple[Fraction, ...]:
    """Return z of a pair, and then its statistic in each replicate."""
    difference, *others = [fit[pair[0]] - fit[pair[1]] for fit in fits]
    squares = [(other - difference) * (other - difference) for other in others]
    error = max(sum(squares, Fraction(0)) / len(others), Fraction(1, 10**18))  # squared, as t is T squared
    t, v = difference * difference / error, max(clusters - s, 1)
    z = root((4 * v - 1) * (4 * v - 1) * t / (8 * v * (2 * clusters + t)))
    return (z, *(root(square / error) for square in squares))


def certain(numbers: dict[Pair, tuple[Fraction, ...]], level: Fraction) -> list[Pair]:
    """Return which pairs are certain among these. numbers: of each pair, z and then its statistics."""
    pairs: list[Pair] = []
    while left := [pair for pair in numbers if pair not in pairs]:
        largest = sorted(map(max, zip(*(numbers[pair][1:] for pair in left), strict=True)))
        position = ceil(level * (len(largest) + 1))
        more = [pair for pair in left if position <= len(largest) and numbers[pair][0] > largest[position - 1]]
        if not more:
            break
        pairs += more
    return pairs


def rank_sets(
    fits: list[dict[str, Fraction]], clusters: dict[str, int], s: int, level: Fraction
) -> dict[str, list[int]]:
    """Return the rank and the ranks that are possible, for all at once and alone, of those with an interval, by name.

    clusters: of each of these, in which they have a score. s: the number of strata.
    """
    plain, both = fits[0], [fit for fit in fits if fit.keys() >= clusters.keys()]
    numbers = {
        pair: statistics(both, pair, min(map(clusters.__getitem__, pair)), s) for pair in combinations(clusters, 2)
    }
    together, ranks = certain(numbers, level), dict[str, list[int]]()
    for who in clusters:
        alone = certain({pair: each for pair, each in numbers.items() if who in pair}, level)
        ranks[who] = [1 + sum(score < plain[who] for score in plain.values())]
        for pairs in (together, alone):
            others = [plain[other] for pair in pairs if who in pair for other in pair if other != who]
            ranks[who].append(1 + sum(score < plain[who] for score in others))
            ranks[who].append(len(plain) - sum(score > plain[who] for score in others))
    return ranks


# --- its numbers beside those of the table


def told() -> list[AnyCommand]:
    """A contest of 36 questions, four of which are two groups; Bo leaves out a third of the questions."""
    random, said = Random(38), list[AnyCommand]([contest(rules=RULES)])
    for number in range(QUESTIONS):
        name = f"q{number:02}"
        said += [opened(name, group={3: "b", 4: "b", 20: "a", 7: "a"}.get(number)), entry(question=name)]
        said.append(forecast(name, probability=f"0.{random.randrange(1, 10)}"))
        if number % 3:
            said.append(forecast(name, "bo", at=day(12), probability=f"0.{random.randrange(100, 1000)}"))
        said.append(resolution(name, outcome=random.choice(("yes", "no"))))
    return said


SKILLS = {"ada": 76, "bo": 67, "flo": 60, "cy": 63, "dee": 55, "ed": 38}  # usual chance of the answer, percent
GROUPS = {2: "b", 4: "b", 19: "a", 20: "a", 27: "c", 28: "c"}


def halves() -> list[AnyCommand]:
    """Ada, Bo and Cy answer half of 48 questions, Dee and Ed the others, and all the same four; Flo answers few.

    Two groups have questions of two kinds.
    """
    random, said = Random(36), list[AnyCommand]([contest(rules=RULES)])
    for number in range(48):
        name, ease, group = f"q{number:02}", random.randrange(-16, 17), GROUPS.get(number)
        answers = ["red", "green", "blue"] if number % 8 == 3 else ["no", "yes"]
        said += [(choices if len(answers) == 3 else opened)(name, group=group), entry(question=name)]
        random.shuffle(answers)
        for who, skill in SKILLS.items():
            theirs = number % 2 == (who in ("dee", "ed")) and (who != "flo" or number % 3 == 0)
            right = Decimal(min(max(skill + ease + random.randrange(-25, 26), 2), 98)) / 100
            chances = dict.fromkeys(answers, (1 - right) / (len(answers) - 1)) | {answers[0]: right}
            given: dict[str, Any] = {"probability": chances["yes"]} if "yes" in chances else {"probabilities": chances}
            if theirs or number in (5, 15, 25, 35):
                said.append(forecast(name, who, **given))
        said.append(resolution(name, outcome=answers[0]))
    return said


log = log_fixture(told, "module")
halves_log = log_fixture(halves, "module")


def test_the_page_is_enough_to_compute_ends_again(log: str, tmp_path: Path) -> None:
    """To the ninth decimal, for both participants; the level is the one that `explain` prints."""
    export(log, tmp_path / "csv", tables=["questions", "scores", "intervals"])
    for who in ("ada", "bo"):
        number = explain(log, "interval", "cup", who).number
        level = Fraction(number.get("expanded_level", number["level"]))
        found = ends(tmp_path / "csv", who, RULES.replicates, level)
        [row] = [row for row in table(tmp_path / "csv", "intervals") if row["participant"] == who]
        assert [row["score_low"], row["score_high"]] == [f"{round(end * 10**9) / 10**9:.9f}" for end in found]
        assert found[0] < Fraction(row["score"]) < found[1]


def test_the_seed_is_that_of_the_page(log: str, tmp_path: Path) -> None:
    """Of the digest of what is scored and the table; the digest is the one that `explain` prints."""
    export(log, tmp_path / "csv", tables=["questions", "scores", "intervals"])
    number, digest = explain(log, "interval", "cup", "ada").number, scored_digest(tmp_path / "csv")
    assert (number["digest"], number["seed"]) == (digest, hashed([digest, "intervals"]))


def test_the_first_draws_are_those_of_the_page(log: str, tmp_path: Path) -> None:
    """`explain` prints eight of the 34 of the first replicate, and how often it has each question."""
    export(log, tmp_path / "csv", tables=["questions", "scores"])
    found = explain(log, "interval", "cup", "ada")
    [names] = strata(tmp_path / "csv", {part["question"] for part in found.parts})
    numbers = drawn(bytes.fromhex(found.number["seed"]), 0, 0, len(names))
    assert found.number["first_draws"] == f"stratum 0 of 34: {' '.join(map(str, numbers[:8]))} ..."
    assert {part["question"]: (part["cluster"], part["drawn_in_first"]) for part in found.parts} == {
        question: (f"0:{number}", numbers.count(number)) for number, own in enumerate(names) for question in own
    }


def test_the_page_is_enough_for_adjusted_scores(halves_log: str, tmp_path: Path) -> None:
    """Their ends and sets of ranks, where some replicates have none and somebody with a score has no interval."""
    export(halves_log, tmp_path / "csv", tables=["questions", "scores", "adjusted_intervals"])
    fits, rows = refits(tmp_path / "csv", RULES.replicates), table(tmp_path / "csv", "adjusted_intervals")
    clusters = clusters_of(tmp_path / "csv")
    assert clusters == {row["participant"]: int(row["clusters"]) for row in rows}
    shown = {row["participant"]: clusters[row["participant"]] for row in rows if not row["withheld"]}
    sets = rank_sets(fits, shown, 3, Fraction(RULES.level_ppm, 10**6))
    assert (clusters.keys() - shown.keys(), {} in fits) == ({"flo"}, True)
    for row in rows:
        who = row["participant"]
        assert row["adjusted_score"] == f"{round(fits[0][who] * 10**9) / 10**9:.9f}"
        if who not in sets:
            assert [row[name] for name in SETS] == [""] * 4
            continue
        number = explain(halves_log, "interval", "cup", who).number
        level = Fraction(number.get("expanded_level", number["level"]))
        both = adjusted_ends([fit[who] for fit in fits[1:] if fit], level)
        ends = [f"{round(end * 10**9) / 10**9:.9f}" for end in both]
        assert [row["adjusted_low"], row["adjusted_high"]] == ends
        assert f"{100 * (1 - float(ends[0]) ** 0.5):.6f}" == f"{float(row['brier_index_high']):.6f}"
        assert [int(row[name]) for name in ("rank", *SETS)] == sets[who]
