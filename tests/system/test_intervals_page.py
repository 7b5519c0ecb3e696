"""The page "How intervals are drawn", tried: a program that has only the exported CSV files gives the same ends."""

import csv
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from random import Random

from forecast_ledger import explain, export
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from tests.support.given import contest, day, entry, forecast, opened, resolution
from tests.support.logs import log_fixture

QUESTIONS = 36
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


def clusters(folder: Path, counted: set[str]) -> list[list[str]]:
    """Return the questions of each cluster: those that stand alone by id, then groups by name."""
    members: dict[tuple[bool, str], list[str]] = {}
    for row in table(folder, "questions"):
        if row["question"] in counted:
            members.setdefault((row["group"] != "", row["group"] or row["question"]), []).append(row["question"])
    return [members[key] for key in sorted(members)]


def ends(folder: Path, participant: str, replicates: int, level: Fraction) -> list[Fraction]:
    """Return the ends of a participant's mean score in a contest of binary questions of equal weight."""
    rows = table(folder, "scores")
    drawn_from = clusters(folder, {row["question"] for row in rows})
    scores = {
        row["question"]: Fraction(int(row["numerator"]), int(row["denominator"]))
        for row in rows
        if row["participant"] == participant
    }
    seed = bytes.fromhex(hashed([scored_digest(folder), "intervals"]))
    totals = []
    for replicate in range(replicates):
        taken = [name for place in drawn(seed, 0, replicate, len(drawn_from)) for name in drawn_from[place]]
        own = [scores[name] for name in taken if name in scores]
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


def adjusted(scores: dict[str, dict[str, Fraction]], times: dict[str, int]) -> dict[str, Fraction]:
    """Return the adjusted scores if questions are asked so often. scores: by question and participant."""
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


def adjusted_ends(folder: Path, replicates: int, level: dict[str, Fraction]) -> dict[str, list[Fraction]]:
    """Return the ends of adjusted scores in a contest of binary questions of equal weight, all in one part."""
    scores: dict[str, dict[str, Fraction]] = {}
    for row in table(folder, "scores"):
        score = Fraction(int(row["numerator"]), int(row["denominator"]))
        scores.setdefault(row["question"], {})[row["participant"]] = score
    drawn_from = clusters(folder, {*scores})
    seed = bytes.fromhex(hashed([scored_digest(folder), "adjusted_intervals"]))
    found: dict[str, list[Fraction]] = {who: [] for who in level}
    for replicate in range(replicates):
        taken = [name for place in drawn(seed, 0, replicate, len(drawn_from)) for name in drawn_from[place]]
        own = adjusted(scores, {name: taken.count(name) for name in taken})
        for who in level:
            found[who].append(own[who])
    outside = {who: max(int((1 - level[who]) * (replicates + 1) / 2), 1) for who in level}
    return {who: [sorted(each)[outside[who] - 1], sorted(each)[-outside[who]]] for who, each in found.items()}


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


log = log_fixture(told, "module")


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
    names = clusters(tmp_path / "csv", {part["question"] for part in found.parts})
    numbers = drawn(bytes.fromhex(found.number["seed"]), 0, 0, len(names))
    assert found.number["first_draws"] == f"stratum 0 of 34: {' '.join(map(str, numbers[:8]))} ..."
    assert {part["question"]: (part["cluster"], part["drawn_in_first"]) for part in found.parts} == {
        question: (f"0:{number}", numbers.count(number)) for number, own in enumerate(names) for question in own
    }


def test_the_page_is_enough_for_adjusted_scores(log: str, tmp_path: Path) -> None:
    """Bo left out a third of the questions, so that his differs from his mean."""
    export(log, tmp_path / "csv", tables=["questions", "scores", "adjusted_intervals"])
    numbers = {who: explain(log, "interval", "cup", who).number for who in ("ada", "bo")}
    levels = {who: Fraction(number.get("expanded_level", number["level"])) for who, number in numbers.items()}
    found = adjusted_ends(tmp_path / "csv", RULES.replicates, levels)
    for row in table(tmp_path / "csv", "adjusted_intervals"):
        ends = [f"{round(end * 10**9) / 10**9:.9f}" for end in found[row["participant"]]]
        assert [row["adjusted_low"], row["adjusted_high"]] == ends
        assert f"{100 * (1 - float(ends[0]) ** 0.5):.6f}" == f"{float(row['brier_index_high']):.6f}"
