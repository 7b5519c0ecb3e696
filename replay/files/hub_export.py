"""Write a log as a hubverse hub: configuration, model output and oracle output, the same bytes for the same log.

A hub has one submission of each model for each round: the forecast that stands when the question closes.

Source: hubverse, Documentation, "Hub configuration files", "Model output" and "Target (observed) data".
"""

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import structs

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.core.regular_files import open_regular
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.projections.facts.renames import put_last
from forecast_ledger.projections.facts.schedules import rescheduled
from forecast_ledger.replay.files.atomic_output import clear_leftovers, move_into_place, scratch_folder
from forecast_ledger.replay.files.hub_tasks import HubTask, hub_task, tasks_config
from forecast_ledger.replay.files.manifest import MANIFEST_BYTES
from forecast_ledger.replay.reading.log import Log

ADMIN = "hub-config/admin.json"
LABELS = ("output_type", "output_type_id")
MISSING = "NA"
MAINTAINER = "forecast-ledger"
_TOP = {"hub-config", "model-output", "model-metadata", "target-data"}
_MODEL = re.compile(r"[A-Za-z0-9_]+-[A-Za-z0-9_]+")


# The last forecast or withdrawal of each participant on a question, in log order.
_Standing = dict[str, events.ForecastMade | events.ForecastWithdrawn]


class HubPart(NamedTuple):
    """What a hub has of a sort: the number of rows, and the SHA-256 of its files, in order of their paths."""

    rows: int
    digest: str


class HubExport(NamedTuple):
    """An exported hub. left_out: reason -> how many forecasts or answers."""

    checkpoint: Checkpoint
    parts: dict[str, HubPart]
    left_out: dict[str, int]


class _Folded:
    """What of a log a hub has: questions, forecasts that stand, answers, and the contest of each question."""

    def __init__(self) -> None:
        self.questions: dict[str, events.QuestionOpened] = {}
        self.closed: dict[str, int] = {}
        self.standing: dict[str, _Standing] = {}
        self.answers: dict[str, events.QuestionResolved] = {}
        self.contests: dict[str, events.ContestOpened] = {}
        self.contest_of: dict[str, str] = {}
        self.changed: set[str] = set()  # questions whose outcomes changed, which a hub cannot have

    def add(self, event: events.AnyEvent) -> None:
        """Take an event in."""
        if isinstance(event, events.ForecastMade):
            put_last(self.standing.setdefault(event.question, {}), event.participant, event)
        elif isinstance(event, events.ForecastWithdrawn):
            put_last(self.standing[event.question], event.participant, event)
        elif isinstance(event, events.ForecastsRetracted | events.ParticipantRenamed):
            self._correct(event)
        elif isinstance(event, events.QuestionOpened):
            self.questions[event.question] = event
        elif isinstance(event, events.OutcomesChanged):
            self.changed.add(event.question)
        elif isinstance(event, events.QuestionClosed):
            self.closed[event.question] = event.at
        elif isinstance(event, events.QuestionRescheduled):
            self.questions[event.question] = rescheduled(self.questions[event.question], event)
            if event.closes_at is not None:
                self.closed.pop(event.question, None)
        elif isinstance(event, events.QuestionResolved):
            self.answers[event.question] = event
        elif isinstance(event, events.QuestionAnnulled | events.ResolutionRevoked):
            self.answers.pop(event.question, None)
        elif isinstance(event, events.ContestOpened):
            self.contests[event.contest] = event
        elif isinstance(event, events.QuestionAdded):
            self.contest_of.setdefault(event.question, event.contest)

    def _correct(self, event: events.ForecastsRetracted | events.ParticipantRenamed) -> None:
        if isinstance(event, events.ForecastsRetracted):
            self.standing.get(event.question, {}).pop(event.participant, None)
        else:
            self.standing = {question: _renamed(last, event) for question, last in self.standing.items()}

    def forecasters(self) -> set[str]:
        """Return the participants who have not withdrawn every forecast."""
        every = (each for standing in self.standing.values() for each in standing.values())
        return {last.participant for last in every if isinstance(last, events.ForecastMade)}

    def forecasts(self, question: str) -> Iterator[events.ForecastMade]:
        """Return the forecasts that stand when a question closes, by participant."""
        end = self.closed.get(question, self.questions[question].closes_at)
        for _, forecast in sorted(self.standing.get(question, {}).items()):
            if not isinstance(forecast, events.ForecastMade):
                continue
            if forecast.at < end and (forecast.until is None or forecast.until >= end):
                yield forecast


def _renamed(standing: _Standing, rename: events.ParticipantRenamed) -> _Standing:
    """Return what stands under another id of a participant; of two in order of time, the later."""
    if rename.participant not in standing:
        return standing
    found: _Standing = {}
    for who, last in standing.items():
        name = rename.to if who == rename.participant else who
        if name not in found or found[name].at <= last.at:
            put_last(found, name, structs.replace(last, participant=name))
    return found


def export_hub(log: Log, out: str | PathLike[str], *, force: bool = False) -> HubExport:
    """Export a log as of its cut to a folder in the layout of a hub.

    force: replace a hub that was exported before.
    Raises, first that applies: FileExistsError (the path exists and may not be replaced), Refused (as_of), Unavailable,
    Corrupt, OSError.
    """
    out = Path(os.path.abspath(out))  # noqa: PTH100 - links are not followed: a link at OUT is replaced itself
    clear_leftovers(out)
    _check_free(out, force=force)
    folded, cut = _Folded(), log.cut()
    with log.pages(cut) as pages:
        for page in pages:
            for recorded in page:
                folded.add(recorded.event)
    head = cut.reached()
    with scratch_folder(out) as part:
        parts, left_out = _write(part / "hub", folded)
        _check_free(out, force=force)
        move_into_place(part / "hub", out)
    return HubExport(head, parts, left_out)


def _write(folder: Path, folded: _Folded) -> tuple[dict[str, HubPart], dict[str, int]]:
    tasks = {
        question.question: hub_task(question, folded.contests.get(folded.contest_of.get(question.question, "")))
        for _, question in sorted(folded.questions.items())
    }
    columns = list(dict.fromkeys(column for task in tasks.values() for column in task.values))
    models = _model_names(folded.forecasters())
    left_out: dict[str, int] = {}
    files: dict[str, list[list[str]]] = {}
    for question, task in tasks.items():
        for forecast in folded.forecasts(question):
            rows = [] if question in folded.changed else list(task.forecast_rows(forecast))
            if not rows:
                reason = "a forecast with other outcomes than the question was opened with"
                if question in folded.changed:
                    reason = "a forecast on a question whose outcomes changed"
                left_out[reason] = left_out.get(reason, 0) + 1
                continue
            model = models[forecast.participant]
            path = f"model-output/{model}/{task.round_id}-{model}.csv"
            lines = files.setdefault(path, [])
            if task.output_type == "sample":  # ids that no other task of the file has, since no paths are known
                rows = [(str(number), value) for number, (_, value) in enumerate(rows, len(lines) + 1)]
            lines.extend(_full(columns, task, rows))
    header = [*columns, *LABELS]
    parts = {"model-output": _write_tables(folder, files, [*header, "value"])}
    oracle = [row for question, task in tasks.items() for row in _oracle(columns, task, folded, question, left_out)]
    parts["oracle-output"] = _write_tables(folder, {"target-data/oracle-output.csv": oracle}, [*header, "oracle_value"])
    metadata = {f"model-metadata/{model}.yml": _metadata(who, model) for who, model in models.items()}
    parts["hub-config"] = _write_texts(
        folder, {"hub-config/tasks.json": tasks_config(list(tasks.values())), ADMIN: _admin()}
    )
    parts["model-metadata"] = _write_texts(folder, metadata)
    return parts, left_out


def _full(columns: Sequence[str], task: HubTask, rows: Iterable[tuple[str, str]]) -> Iterator[list[str]]:
    start = [task.values.get(column, MISSING) for column in columns]
    for identity, value in rows:
        yield [*start, task.output_type, identity, value]


def _oracle(
    columns: Sequence[str], task: HubTask, folded: _Folded, question: str, left_out: dict[str, int]
) -> Iterator[list[str]]:
    answer = folded.answers.get(question)
    if answer is None:
        return
    if answer.payouts or question in folded.changed:
        reason = "an answer of shares: an oracle has one outcome"
        if question in folded.changed:
            reason = "an answer to a question whose outcomes changed"
        left_out[reason] = left_out.get(reason, 0) + 1
        return
    yield from _full(columns, task, task.answer_rows(answer))


def _model_names(participants: Iterable[str]) -> dict[str, str]:
    """Return the hub's name of each participant: TEAM-MODEL of letters, digits and underscores, each once."""
    names: dict[str, str] = {who: who for who in sorted(participants) if _MODEL.fullmatch(who)}
    taken = set(names)
    for who in sorted(set(participants) - set(names)):
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", who).strip("_") or "model"
        name, number = f"ledger-{plain}", 1
        while name in taken:
            number += 1
            name = f"ledger-{plain}_{number}"
        taken.add(name)
        names[who] = name
    return names


def _metadata(who: str, model: str) -> str:
    """Return a model's metadata: YAML, as which JSON texts count too."""
    team, _, short = model.partition("-")
    fields = {"team_abbr": team, "model_abbr": short, "team_name": team, "model_name": who}
    return "".join(f"{key}: {msgspec.json.encode(value).decode()}\n" for key, value in fields.items())


def _admin() -> str:
    content = {
        "schema_version": "https://raw.githubusercontent.com/hubverse-org/schemas/main/v6.0.0/admin-schema.json",
        "name": "Forecast Ledger",
        "maintainer": MAINTAINER,
        "contact": {"name": MAINTAINER, "email": "nobody@example.org"},
        "repository": {"host": "github", "owner": MAINTAINER, "name": "hub"},
        "file_format": ["csv"],
        "timezone": "UTC",
        "model_output_dir": "model-output",
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _write_tables(folder: Path, files: dict[str, list[list[str]]], header: list[str]) -> HubPart:
    texts = {}
    for path, rows in files.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        texts[path] = text.getvalue()
    return _write_texts(folder, texts)._replace(rows=sum(map(len, files.values())))


def _write_texts(folder: Path, texts: dict[str, str]) -> HubPart:
    """Write files; return how many, and the digest of them all."""
    digest = sha256()
    for path, text in sorted(texts.items()):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
        digest.update(f"{path}\n".encode() + text.encode())
    return HubPart(len(texts), digest.hexdigest())


def _check_free(out: Path, *, force: bool) -> None:
    """Raise FileExistsError unless the path is free, or has a hub that was exported."""
    if not out.parent.is_dir():
        raise FileNotFoundError(f"{out}: the folder {out.parent} does not exist")
    if not os.path.lexists(out):
        return
    if not force:
        raise FileExistsError(f"{out}: exists already; --force replaces an export")
    if (
        out.is_symlink()
        or not out.is_dir()
        or {path.name for path in out.iterdir()} - _TOP
        or not _is_ours(out / ADMIN)
    ):
        raise FileExistsError(f"{out}: exists and is not an exported hub; it is not replaced")


def _is_ours(admin: Path) -> bool:
    try:
        with open_regular(admin, MANIFEST_BYTES) as file:
            return file.read() == _admin().encode()
    except (OSError, Unavailable):
        return False
