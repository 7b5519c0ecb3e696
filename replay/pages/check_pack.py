"""Check a pack with Python alone: files, the chain of digests, the digests of tables, scores, and a contest's prizes.

python3 check.py [FOLDER]

FOLDER is where the zip was unpacked, by default the folder of this file. It reads files and changes nothing. README.txt
has the same rules in words. Exit code: 0 if nothing is wrong, else 1.
"""

import json
import re
import struct
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal, localcontext
from fractions import Fraction
from hashlib import file_digest, sha256
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

Check = tuple[str, str]  # what was checked, and what is wrong with it; "" if nothing is
PART_ROWS = 1 << 18  # rows of a part of a large table, which has a digest of its own
SCALE = {  # kind of a column -> decimals of its unit: 9 if a unit is 1e-9
    "points": 9, "share": 9, "probability": 11, "term": 12, "measure": 12, "money": 6, "fine_money": 15, "seconds": 6,
}  # fmt: skip
NOT_CHECKED = "other scores, how a take follows from scores, money of trades, and who may have recorded what"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - the name that older and newer Pythons have


def lines(path: Path) -> Iterator[Any]:
    """Yield the objects of a file of JSON lines."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def compact(value: Any) -> bytes:
    """Return JSON in UTF-8 without spaces; with only quotation marks, backslashes and control characters escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# --- Files: SHA256SUMS has a line for each file of the pack but itself.


def check_files(folder: Path) -> Check:
    """Check the SHA-256 of every file, and that there is no other file."""
    sums = (line.split("  ", 1) for line in (folder / "SHA256SUMS").read_text("utf-8").splitlines())
    stated = {name: digest for digest, name in sums}
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {"SHA256SUMS"}
    wrong = [f"{name} is missing" for name in sorted(stated.keys() - present)]
    wrong += [f"{name} is not in SHA256SUMS" for name in sorted(present - stated.keys())]
    for name in sorted(stated.keys() & present):
        with (folder / name).open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != stated[name]:
                wrong.append(f"{name} has another SHA-256")
    return f"SHA-256 of {len(stated)} files", "; ".join(wrong)


# --- The chain: digest(n) = SHA-256 of row n up to the comma before "digest"; row n has digest(n - 1) as "previous".


def check_chain(folder: Path) -> Check:
    """Check that each row of the log has its digest and that of the row before, and that the last is the stated one."""
    position, digest = 0, "0" * 64
    for line in lines(folder / "log" / "events.jsonl"):
        row = line["row"].encode()
        position += 1
        fields, stated = json.loads(row), row.rpartition(b',"digest":"')[0]
        if fields["position"] != position or fields["previous"] != digest:
            return "chain of digests", f"row {position} does not follow the row before it"
        digest = sha256(stated).hexdigest()
        if fields["digest"] != digest:
            return "chain of digests", f"row {position} has the digest {digest}, and states {fields['digest']}"
    text = (folder / "checkpoint.toml").read_text("utf-8")
    end = int(re.findall(r"^log_position = (\d+)$", text, re.MULTILINE)[0])
    last = re.findall(r'^digest = "(\w{64})"$', text, re.MULTILINE)[0]
    wrong = (
        "" if (position, digest) == (end, last) else f"it ends at {position}, {digest}; the checkpoint is {end}, {last}"
    )
    return f"chain of digests of {position} rows", wrong


# --- Tables: digest = SHA-256 of the schema as JSON, then of the values column by column.


def unit_value(text: Any, kind: str) -> Any:
    """Return a printed value as it is digested: an integer in the unit of its kind, or a text."""
    if text is None or kind in {"id", "text", "take", "count"}:
        return text
    if kind == "instant":
        return (datetime.fromisoformat(text.replace("Z", "+00:00")) - EPOCH) // timedelta(microseconds=1)
    decimals, (whole, _, fraction) = SCALE.get(kind, 0), str(text).partition(".")
    if len(fraction) <= decimals and f"{whole}{fraction}".removeprefix("-").isdigit():
        return int(whole + fraction.ljust(decimals, "0"))  # in a fifth of the time of a Fraction
    return int(Fraction(text) * 10**decimals)


def column_bytes(values: Sequence[Any], form: str) -> bytes:
    """Return the bytes of a column in one of four forms; integers have 8 bytes, the least significant first."""
    if form == "ids":  # the distinct ids in the order of their characters, then the index of each row's id among them
        labels = sorted(set(values))
        code = {label: number for number, label in enumerate(labels)}
        return compact(labels) + column_bytes([code[value] for value in values], "int64")
    if form == "wide":  # v = low + 2^36 middle + 2^72 high: all low words, then all middle words, then all high words
        words = ([value & 2**36 - 1 for value in values], [value >> 36 & 2**36 - 1 for value in values])
        return b"".join(column_bytes(each, "int64") for each in (*words, [value >> 72 for value in values]))
    if form == "int64":
        return struct.pack(f"<{len(values)}q", *values)
    return compact([None if value is None else str(value) for value in values])  # "texts"


def part_form(values: Sequence[Any], kind: str, form: str) -> str:
    """Return the form of a column in a part of a large table: that of its values alone."""
    if form in {"ids", "int64"} or kind == "text":
        return form
    return "int64" if all(isinstance(each, int) and -(2**63) <= each < 2**63 for each in values) else "texts"


def table_digest(name: str, version: int, columns: Sequence[Sequence[str]], rows: Iterable[Any]) -> str:
    """Return the digest of a table. columns: name, kind and form of each. rows: as printed, by column.

    The rows of one part are in memory at a time.
    """

    def digest(part: Sequence[Any], *, whole: bool) -> str:
        """Return the digest of some rows. whole: they are the whole table, whose columns have the published form."""
        schema = [name, version, [[column, kind] for column, kind, _ in columns], len(part)]
        hashed = sha256(compact(schema))
        for column, kind, form in columns:
            values = [unit_value(row[column], kind) for row in part]
            hashed.update(column_bytes(values, form if whole else part_form(values, kind, form)))
        return hashed.hexdigest()

    reading, parts, count = iter(rows), list[str](), 0
    part = [*islice(reading, PART_ROWS)]
    following = [*islice(reading, 1)]
    if not following:
        return digest(part, whole=True)
    while part:
        parts.append(digest(part, whole=False))
        count += len(part)
        part = [*following, *islice(reading, PART_ROWS - len(following))]
        following = []
    named = [[column, kind] for column, kind, _ in columns]
    return sha256(compact([name, version, named, count, parts])).hexdigest()


def check_tables(folder: Path) -> Check:
    """Check the digest of every table, and that the checkpoint has the same one if it lists the table."""
    tables = json.loads((folder / "tables.json").read_text("utf-8"))
    text, wrong = (folder / "checkpoint.toml").read_text("utf-8"), []
    for name, table in tables.items():
        computed = table_digest(name, table["version"], table["columns"], lines(folder / "log" / f"{name}.jsonl"))
        saved = re.findall(
            rf'^{name} = .*"(\w{{64}})"', text, re.MULTILINE
        )  # those that are built by name are not there
        if {computed} != {table["digest"], *saved}:
            wrong.append(f"{name} has the digest {computed}")
    return f"digests of {len(tables)} tables", "; ".join(wrong)


# --- A score: the sum of term x weight over the time that forecasts stood, over the denominator.


def kernel_score(kernel: str, chances: Sequence[Fraction], paid: Sequence[Fraction]) -> Fraction:
    """Return the score of a forecast by a kernel, rounded to 1e-12, ties to even.

    chances: p, of each outcome in order. paid: o, 1 for the outcome that happened and 0 for the others, or the payouts.
    """
    squares = sum((p - o) ** 2 for p, o in zip(chances, paid, strict=True))
    if kernel in {"brier", "brier_sum", "brier_mean"}:
        return round(Fraction(squares) / {"brier": 2, "brier_sum": 1, "brier_mean": len(paid)}[kernel], 12)
    if kernel == "ordered_brier":
        missed = [*accumulate(p - o for p, o in zip(chances, paid, strict=True))][:-1]
        return round(2 * sum((each**2 for each in missed), Fraction(0)) / len(missed), 12)
    if kernel == "error":
        return Fraction(chances.index(max(chances)) != paid.index(Fraction(1)))
    return logarithm_or_share(kernel, chances[paid.index(Fraction(1))], sum((p**2 for p in chances), Fraction(0)))


def logarithm_or_share(kernel: str, chance: Fraction, squares: Fraction) -> Fraction:
    """Return ln p, log2 p, or the spherical score: p over the root of the sum of squares. p: of what happened."""
    with localcontext() as context:
        context.prec = 60
        p = Decimal(chance.numerator) / chance.denominator
        if kernel == "spherical":
            value = p / (Decimal(squares.numerator) / squares.denominator).sqrt()
        else:
            value = p.ln() / (Decimal(2).ln() if kernel == "log2" else 1)
    return round(Fraction(value), 12)


LOGARITHMS = {"ln", "log2"}
WHOLE = {"brier", "brier_sum", "brier_mean", "ordered_brier", "error", "spherical"}  # which read a whole forecast
ONE_ANSWER = {"error", "spherical"}  # which score no payouts


class Case:
    """What the log says of a score: the rules, the question, and the forecasts of its participant on it."""

    def __init__(self, score: Any, events: Sequence[Any]) -> None:
        """events: those about the contest and the question, and renamed participants."""
        question, ids = score["question"], {score["participant"]}
        self.rules = opening(events, "contest", score["contest"])["rules"]
        self.question = opening(events, "question", question)
        self.about = [each for each in events if each.get("question") == question]
        for renamed in reversed([renamed for renamed in events if renamed["type"] == "participant_renamed.v1"]):
            ids |= {renamed["participant"]} if renamed["to"] in ids else set()
        made = [each for each in self.about if each["type"] == "forecast_made.v1" and each["participant"] in ids]
        self.made = [[Fraction(p, 10**9) for p in each.get("probabilities", ())] for each in made]
        self.plain = self.question["kind"] in {"binary", "multiple_choice"}
        self.kernel, self.reference = self.rules["kernel" if self.plain else "cdf_kernel"], self.rules["reference"]
        self.count = len(self.question.get("outcomes", ()))
        self.changed = any(each["type"] == "outcomes_changed.v1" for each in self.about)

    def paid(self) -> list[Fraction]:
        """Return what the answer pays for each outcome: 1 for the one that happened; nothing if there is no answer."""
        answers = [each for each in self.about if each["type"] == "question_resolved.v1"]
        if not answers:
            return []
        if answers[-1].get("payouts"):
            return [Fraction(each, answers[-1].get("payout_unit") or 10**9) for each in answers[-1]["payouts"]]
        return [Fraction(each == answers[-1]["outcome"]) for each in range(self.count)]

    def why_not(self) -> str:
        """Say why no term of the score can be computed again; "" if some can."""
        if self.changed:
            return "the outcomes of the question changed"
        if self.reference not in {"none", "uniform", "consensus"}:
            return f"the reference is {self.reference}"
        if self.kernel not in LOGARITHMS | WHOLE or (not self.plain and self.kernel not in LOGARITHMS):
            return f"the question is {self.question['kind']}" if not self.plain else f"the kernel is {self.kernel}"
        payouts = self.plain and not self.paid().count(Fraction(1))
        if payouts and self.kernel in LOGARITHMS | ONE_ANSWER:
            return f"the answer has payouts, and the kernel is {self.kernel}"
        return ""


def expected_terms(case: Case, part: Any) -> set[Fraction]:
    """Return what the term of a part may be: kernel of p less kernel of r; nothing if the log does not say.

    p: a forecast of the participant with the probability of the part. r: the consensus, or 1 / K of K outcomes, or
    nothing, as the rules name the reference. Of the consensus of several outcomes, only logarithms can be computed.
    """
    chance, other = part["probability"], part["reference"] if case.reference == "consensus" else None
    if case.reference == "consensus" and other is None:
        return set()
    if case.kernel in LOGARITHMS:
        if chance is None or not (case.plain or other):
            return set()
        kernel_values = {logarithm_or_share(case.kernel, Fraction(chance), Fraction(1))}
        if case.reference == "none":
            return kernel_values
        base = Fraction(other) if other else Fraction(1, case.count)
        return {each - logarithm_or_share(case.kernel, base, Fraction(1)) for each in kernel_values}
    paid = case.paid()
    happened = paid.index(Fraction(1)) if Fraction(1) in paid else None
    fitting = [
        p for p in case.made if len(p) == case.count and (happened is None or p[happened] == Fraction(chance or 0))
    ]
    compared: list[Fraction] = [Fraction(1, case.count)] * case.count
    if case.reference == "consensus":
        if case.count != 2 or happened is None:
            return set()
        compared = [Fraction(other or 0) if each == happened else 1 - Fraction(other or 0) for each in range(2)]
    base = kernel_score(case.kernel, compared, paid) if case.reference != "none" else Fraction(0)
    return {kernel_score(case.kernel, each, paid) - base for each in fitting}


def check_scores(folder: Path) -> list[Check]:
    """Check the scores in score.json, one for each kernel and reference that the log uses."""
    scores = json.loads((folder / "score.json").read_text("utf-8"))
    events = [*about(folder, {each["question"] for each in scores}, {each["contest"] for each in scores})]
    rows = {
        key: row for row in lines(folder / "log" / "scores.jsonl") if (key := key_of(row)) in {*map(key_of, scores)}
    }
    return [check_score(score["parts"], Case(score, events), rows[key_of(score)]) for score in scores]


def key_of(score: Any) -> tuple[str, str, str]:
    """Return the contest, the question and the participant of a score."""
    return score["contest"], score["question"], score["participant"]


def about(folder: Path, questions: Collection[str], contests: Collection[str]) -> Iterator[Any]:
    """Yield the events about some questions and contests, and renamed participants."""
    for line in lines(folder / "log" / "events.jsonl"):
        event = json.loads(line["event"])
        named = event.get("question") in questions or event.get("contest") in contests
        if named or event["type"] == "participant_renamed.v1":
            yield event


def check_score(parts: Sequence[Any], case: Case, row: Any) -> Check:
    """Check a score: its terms by their formula, their sum, and that its probabilities are in the log."""
    what, why = f"score of {row['participant']} on {row['question']} in {row['contest']}", case.why_not()
    most = max(parts, key=lambda part: abs(Fraction(part["term"])))
    weighed = Fraction(most["term"]) * most["weight"]
    unit = int(most["contribution"]) / weighed if weighed else Fraction(0)  # of contributions, of all parts alike
    known = 0
    for part in parts:
        term, weight = Fraction(part["term"]), part["weight"]
        if abs(int(part["contribution"]) - unit * term * weight) > abs(unit) * weight * Fraction(2, 10**12):
            return what, f"the part from {part['from_at']} is not its term x its weight"
        expected = set() if why else expected_terms(case, part)
        known += bool(expected)
        if expected and term not in expected:
            some = " or ".join(str(float(each)) for each in sorted(expected))
            return what, f"the term from {part['from_at']} is {some} by its formula"
    numerator, denominator = sum(int(part["contribution"]) for part in parts), int(row["denominator"])
    if numerator != int(row["numerator"]) or round(Fraction(numerator, denominator), 9) != Fraction(row["score"]):
        return what, f"the parts add up to {numerator} / {denominator}, and the score is {row['score']}"
    again = f"terms computed again by {case.kernel}: {known} of {len(parts)}"
    again += ", as the log does not say what the others are compared with" * (known < len(parts))
    told = f"{what}: {len(parts)} parts, {numerator} / {denominator} = {row['score']}"
    told += f"; terms not computed again: {why}" if why else f"; {again}"
    return told, "" if case.changed else _unrecorded(case, parts)


def _unrecorded(case: Case, parts: Sequence[Any]) -> str:
    """Say which probability of a score no forecast has, if they are of outcomes; very small ones count as the least."""
    made = [each for each in case.about if each["type"] == "forecast_made.v1"]
    known = {Fraction(each, 10**9) for event in made for each in event.get("probabilities", ())}
    known |= {Fraction(case.rules.get("least_probability_ppm", 0), 10**6)}
    given = {Fraction(part["probability"]) for part in parts if part["probability"] is not None}
    lost = sorted(given - known) if all("probabilities" in event for event in made) else []
    return f"no forecast has the probability {float(lost[0])}" if lost else ""


def opening(events: Sequence[Any], what: str, name: str) -> Any:
    """Return the event that opened a contest, with its rules and pool, or a question."""
    return next(each for each in events if each["type"] == f"{what}_opened.v1" and each[what] == name)


# --- A prize: pool x take / sum of takes, in whole units; the units left over go to the largest remainders.


def check_prize(folder: Path) -> Check:
    """Check the prizes of a contest, from the takes of its board, which are rounded to nine decimals."""
    contest = json.loads((folder / "score.json").read_text("utf-8"))[0]["contest"]
    what, opened = f"prizes of {contest}", opening([*about(folder, (), {contest})], "contest", contest)
    unit, pool, least = opened["payable_unit"], opened.get("pool", 0), opened["rules"].get("least_prize", 0)
    if opened["rules"].get("least_prize_passes", "many") != "many" and least:
        return f"{what}: not checked, because the rules remove small prizes in another way", ""
    board = [row for row in lines(folder / "log" / "leaderboard.jsonl") if row["contest"] == contest]
    takes = {row["participant"]: Fraction(Decimal(row["take"])) for row in board if row["take"] and not row["excluded"]}
    prizes = {row["participant"]: Fraction(row["prize"] or 0) * 10**6 for row in board}
    while takes and (small := min(takes.values())) < max(takes.values()) and small * pool < least * sum(takes.values()):
        takes = {
            who: take for who, take in takes.items() if take != small
        }  # the smallest go first, equal ones together
    units, total = pool // unit * (pool >= least), sum(takes.values()) or Fraction(1)
    paid, known = sum(prizes.values()), any(takes.values())
    slack = Fraction(units * (len(takes) + 1), 10**9) / total  # what the rounding of takes can change, in units
    slack = slack if known else Fraction(units)
    shares = {who: units * take / total for who, take in takes.items()}
    more = {who: prizes[who] / unit - shares[who] for who in shares}  # a prize is its share, rounded down or up
    if paid != sum(prizes[who] for who in takes) or any(prize % unit for prize in prizes.values()):
        return what, "somebody without a take has a prize, or a prize is no whole number of units"
    if paid != units * unit and (paid or known):
        return what, f"they add up to {float(paid) / 10**6}"
    if any(abs(each) >= 1 + slack for each in more.values()):
        return what, "a prize is a unit or more away from its share"
    if max(more.values(), default=0) - min(more.values(), default=0) > 1 + slack:
        return what, "a unit left over did not go to the largest remainder"
    unknown = "; not checked one by one, because every take is 0 in nine decimals" * (paid > 0 and not known)
    return f"{what}: {len(takes)} shares of {pool / 10**6:.2f}{unknown}", ""


def checks(folder: Path) -> Iterator[Check]:
    """Yield every check of a pack; a file that cannot be read is a fault."""
    made: tuple[Callable[[Path], Check | list[Check]], ...] = (
        check_files,
        check_chain,
        check_tables,
        check_scores,
        check_prize,
    )
    for check in made:
        if check in {check_scores, check_prize} and not (folder / "score.json").exists():
            yield "a score and a prize: the log has no score", ""
            return
        try:
            result = check(folder)
            yield from result if isinstance(result, list) else [result]
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, struct.error) as error:
            yield check.__name__.replace("_", " "), f"cannot be read: {type(error).__name__}: {error}"


def main(arguments: Sequence[str]) -> int:
    """Print every check; return 1 if one found a fault."""
    failed = 0
    for what, wrong in checks(Path(arguments[0]) if arguments else Path(__file__).parent):
        failed += bool(wrong)
        sys.stdout.write(f"{'WRONG' if wrong else 'ok'}  {what}{': ' * bool(wrong)}{wrong}\n")
    sys.stdout.write(f"not checked: {NOT_CHECKED}\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
