"""Who asked for the events of a log, and the answers without evidence: a section of a working paper."""

from collections.abc import Callable
from typing import Any

from forecast_ledger.replay.pages.findings import Findings, answer_text
from forecast_ledger.replay.reading.blocks import Number, Table
from forecast_ledger.replay.reading.event_text import origin

DECIDED = "Who decided, and on what evidence"
Listed = Callable[..., list[Table]]  # a caption, columns, rows, types of event -> a table, the newest rows of many


def decided_by(findings: Findings, listed: Listed) -> tuple[list[str], list[tuple[str, str]], list[Table]]:
    """Return the words, facts and tables of the section. Answers are listed only if one of them has evidence.

    Nobody has checked the names: the section of what was not checked says so.
    """
    answers = findings.answers()
    without = [(each, said) for each in answers for said in [origin(each)] if not said.evidence]
    rows = [
        [who, f"{counts.total():,}", ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items()))]
        for who, counts in sorted(findings.asked.items())
    ]
    unsaid = findings.events - sum(counts.total() for counts in findings.asked.values())
    words = [f"Entries that do not say who asked for them: {unsaid:,} of {findings.events:,}."]
    words.append(f"Answers in force without evidence: {len(without):,} of {len(answers):,}.")
    sheets = [Table(["asked by", Number("events"), "types"], rows, "Who asked for what")] * bool(rows)
    if len(without) < len(answers):
        columns = ["log position", "question", "answer", "by", "reason"]
        rows = [[str(each.position), _question(each.event), answer_text(each, findings), said.by, said.reason]
                for each, said in without]  # fmt: skip
        sheets += listed("Answers without evidence", columns, rows, "question_resolved", "question_annulled")
    return words, [], sheets


def _question(answer: Any) -> str:
    return str(answer.question)
