"""A log as a hub: there and back without a changed byte, and what of a log a hub cannot hold."""

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import read
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.files.hub_export import export_hub, hub_task
from forecast_ledger.replay.reading.log import Log
from tests.replay.cli.test_main import run
from tests.support.given import forecast as given_forecast
from tests.support.given import opened
from tests.support.logs import commands_of, written
from tests.support.paths import DATA
from tests.support.sources import import_into, table

HUB = DATA / "hub-import"
OPENED: list[Mapping[str, object]] = [
    {"type": "open_contest", "contest": "c", "rules": "baseline"},
    {"type": "open_question", "question": "rain", "kind": "binary"},
    {"type": "add_question", "contest": "c", "question": "rain"},
]
DAYS = {"at": "2026-03-01T00:00:00Z", "opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-03-08T00:00:00Z"}


def files(folder: Path) -> dict[str, bytes]:
    """The files of a hub."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rows(folder: Path, name: str) -> list[list[str]]:
    """The rows of a table of a hub, without its header."""
    return list(csv.reader(io.StringIO((folder / name).read_text(encoding="utf-8"))))[1:]


def said(lines: Iterable[list[str]]) -> list[list[str]]:
    """Rows in one order, without the ids of samples; an empty id is NA."""
    return sorted([*row[:6], "" if row[5] == "sample" else row[6] or "NA", row[7]] for row in lines)


def rain(log: Path, *commands: Mapping[str, object]) -> Path:
    """A log of a binary question, and what is said of it."""
    with Ledger.open(log) as ledger:
        for number, fields in enumerate([*OPENED, *commands]):
            needed = DAYS if fields["type"] == "open_question" else {"at": DAYS["at"]}
            ledger.handle(read(json.dumps({"id": f"c{number}", **needed, **fields})))
    return log


def forecast(who: str, at: str, probability: float, **fields: object) -> dict[str, object]:
    """A forecast on rain."""
    said = {"question": "rain", "participant": who, "probability": probability}
    return {"type": "submit_forecast", "at": f"2026-03-0{at}T00:00:00Z", **said, **fields}


def test_a_hub_comes_out_as_it_went_in(tmp_path: Path) -> None:
    """Imported, exported, imported and exported again: the same bytes and the same scores."""
    scores = []
    for name, source in (("a", HUB), ("b", tmp_path / "a")):
        with Ledger.open(tmp_path / f"{name}.db") as ledger:
            assert import_into(ledger, "hubverse", source).counts["refused"] == 0
            scores.append(sorted(table(ledger, "scores", "contest", "question", "participant", "score")))
        assert export_hub(Log(tmp_path / f"{name}.db"), tmp_path / name).left_out == {}
    assert scores[0] == scores[1]
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.parametrize(
    ("kernel", "ordered", "target_type"),
    [
        ("ordered_brier", None, "ordinal"),
        ("ordered_brier", False, "nominal"),
        ("brier", None, "nominal"),
        ("brier", True, "ordinal"),
    ],
)
def test_a_target_is_ordinal_if_its_question_or_else_its_kernel_says_so(
    kernel: Any, ordered: bool | None, target_type: str
) -> None:
    """A question that says whether its outcomes have an order is believed before the rule set."""
    names = ("low", "high")
    question = events.QuestionOpened(
        at=0, question="q", kind="multiple_choice", outcomes=names, opens_at=0, closes_at=10**6, ordered=ordered
    )
    rules = RuleSet(name="x", kernel=kernel, period="covered", total="mean")
    held = events.ContestOpened(at=0, contest="c", rules=rules, pool=0, payable_unit=1)
    assert hub_task(question, held).target_type == target_type


def test_model_output_has_the_rows_of_the_files_that_were_read(tmp_path: Path) -> None:
    """In an order of its own, without the level that no task has; the ids of samples are numbers of its own."""
    with Ledger.open(tmp_path / "log.db") as ledger:
        import_into(ledger, "hubverse", HUB)
    export_hub(Log(tmp_path / "log.db"), tmp_path / "hub")
    for path in sorted(HUB.glob("model-output/*/*.csv")):
        name = path.relative_to(HUB).as_posix()
        assert said(rows(tmp_path / "hub", name)) == said(row for row in rows(HUB, name) if row[6] != "0.95")
        samples = [row[6] for row in rows(tmp_path / "hub", name) if row[5] == "sample"]
        assert len(samples) == len({*samples})


def test_any_log_is_a_hub_that_can_be_read(tmp_path: Path) -> None:
    """A question is a task id, and the days on which it is open are the round; probabilities sum to one."""
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    export_hub(Log(log), tmp_path / "hub")
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for row in rows(tmp_path / "hub", "model-output/ledger-A/20210720_20210723-ledger-A.csv"):
        if row[2] == "pmf":
            sums[row[1], row[0]] += Decimal(row[4])
    assert {question for question, _ in sums} == {"olympics-2021"}, "A has withdrawn from the other one"
    assert set(sums.values()) == {1}
    with Ledger.open(tmp_path / "copy.db") as ledger:
        assert import_into(ledger, "hubverse", tmp_path / "hub").counts["refused"] == 0
    export_hub(Log(tmp_path / "copy.db"), tmp_path / "again")
    before, after = files(tmp_path / "hub"), files(tmp_path / "again")
    assert {name: before[name] for name in before if name.startswith(("model-output", "target"))} == {
        name: after[name] for name in after if name.startswith(("model-output", "target"))
    }


def test_the_forecast_that_stands_at_the_close_is_the_submission(tmp_path: Path) -> None:
    """Not one that was replaced or withdrawn, that ends before, or that came after an early close."""
    log = rain(
        tmp_path / "log.db",
        forecast("ada", "2", 0.2),
        forecast("ada", "3", 0.3),
        forecast("bo", "2", 0.4),
        {"type": "withdraw_forecast", "at": "2026-03-03T00:00:00Z", "question": "rain", "participant": "bo"},
        forecast("cy", "2", 0.5, until="2026-03-04T00:00:00Z"),
        forecast("di", "2", 0.6, until="2026-03-08T00:00:00Z"),
        forecast("eve", "7", 0.7),
        {"type": "close_question", "at": "2026-03-06T00:00:00Z", "question": "rain"},
    )
    export_hub(Log(log), tmp_path / "hub")
    found = {path.parent.name: path.read_text().splitlines()[1] for path in tmp_path.glob("hub/model-output/*/*")}
    assert found == {
        "ledger-ada": "20260301_20260307,rain,pmf,yes,0.3",
        "ledger-di": "20260301_20260307,rain,pmf,yes,0.6",
    }


@pytest.mark.parametrize(
    ("said", "expected", "left_out"),
    [
        ([{"type": "resolve_question", "question": "rain", "outcome": "no"}], ["0", "1"], 0),
        ([{"type": "resolve_question", "question": "rain", "payouts": {"yes": 0.3, "no": 0.7}}], [], 1),
        ([{"type": "annul_question", "question": "rain", "reason": "x"}], [], 0),
        (
            [
                {"type": "resolve_question", "question": "rain", "outcome": "no"},
                {"type": "revoke_resolution", "question": "rain", "reason": "x"},
                {"type": "resolve_question", "question": "rain", "outcome": "yes"},
            ],
            ["1", "0"],
            0,
        ),
    ],
)
def test_the_oracle_has_the_answer_that_stands(
    tmp_path: Path, said: list[dict[str, object]], expected: list[str], left_out: int
) -> None:
    """A share of each outcome is no answer of an oracle, and is counted."""
    log = rain(tmp_path / "log.db", *({"at": "2026-03-09T00:00:00Z", **each} for each in said))
    found = export_hub(Log(log), tmp_path / "hub")
    assert [row[-1] for row in rows(tmp_path / "hub", "target-data/oracle-output.csv")] == expected
    assert sum(found.left_out.values()) == left_out


def test_a_question_whose_outcomes_changed_is_left_out_and_counted(tmp_path: Path) -> None:
    """Even if as many outcomes were added as were removed, so that the forecasts look like those of the opening."""
    sky = {"question": "sky", "at": "2026-03-02T00:00:00Z"}
    ada = {"type": "submit_forecast", "participant": "ada"}
    log = rain(
        tmp_path / "log.db",
        {"type": "open_question", "question": "sky", "kind": "multiple_choice", "outcomes": ["blue", "grey", "other"]},
        sky | ada | {"probabilities": {"blue": 1, "grey": 0, "other": 0}},
        sky | {"type": "change_outcomes", "remove": ["grey"]},
        sky | {"type": "change_outcomes", "add": ["red"], "grace_ends_at": "2026-03-03T00:00:00Z"},
        sky | ada | {"at": "2026-03-04T00:00:00Z", "probabilities": {"blue": 0, "other": 0, "red": 1}},
        sky | {"type": "resolve_question", "at": "2026-03-09T00:00:00Z", "outcome": "red"},
    )
    found = export_hub(Log(log), tmp_path / "hub")
    assert not rows(tmp_path / "hub", "target-data/oracle-output.csv")
    assert found.left_out == {
        "a forecast on a question whose outcomes changed": 1,
        "an answer to a question whose outcomes changed": 1,
    }


def test_participants_have_names_that_a_hub_takes(tmp_path: Path) -> None:
    """TEAM-MODEL, each once; the metadata says who it is; no name leads out of the folder."""
    names = ["../../etc", "a b", "a_b", "team-model", "ü", "x: y", "ledger-a_b"]
    log = rain(tmp_path / "log.db", *(forecast(name, "2", 0.5) for name in names))
    export_hub(Log(log), tmp_path / "hub")
    found = {
        path.stem: json.loads(path.read_text(encoding="utf-8").split("model_name: ")[1])
        for path in (tmp_path / "hub" / "model-metadata").iterdir()
    }
    assert found == {
        "ledger-etc": "../../etc",
        "ledger-a_b_2": "a b",
        "ledger-a_b_3": "a_b",
        "team-model": "team-model",
        "ledger-model": "ü",
        "ledger-x_y": "x: y",
        "ledger-a_b": "ledger-a_b",
    }
    assert {path.name for path in (tmp_path / "hub" / "model-output").iterdir()} == set(found)


@pytest.mark.parametrize("round_id", ["../../../up", "/up", "..%5Cup", "c:up", "a%00b", "a%0Ab", ""])
def test_a_round_is_no_path(tmp_path: Path, round_id: str) -> None:
    """What no file can be named after is the id of a question, in the round of the days on which it is open."""
    asked = f"round={round_id}&output_type=pmf"
    (tmp_path / "a").mkdir()
    log = written(tmp_path / "log.db", [opened(asked), given_forecast(asked, "team-ada")])
    export_hub(Log(log), tmp_path / "a" / "hub")
    [file] = [path for path in tmp_path.rglob("*.csv") if path.name != "oracle-output.csv"]
    assert file.parent == tmp_path / "a" / "hub" / "model-output" / "team-ada"
    with file.open(encoding="utf-8", newline="") as lines:
        assert {row["question"] for row in csv.DictReader(lines)} == {asked}


def test_only_an_exported_hub_is_replaced(tmp_path: Path) -> None:
    """And only with --force; anything else in the folder saves it."""
    log, out = rain(tmp_path / "log.db", forecast("ada", "2", 0.2)), tmp_path / "hub"
    assert run("export", str(log), str(out), "--format", "hub").exit_code == FINE
    before = files(out)
    assert run("export", str(log), str(out), "--format", "hub").exit_code == USAGE
    assert run("export", str(log), str(out), "--format", "hub", "--force").exit_code == FINE
    assert files(out) == before
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    found = run("export", str(log), str(out), "--format", "hub", "--force")
    assert (found.exit_code, "not an exported hub" in found.stderr) == (USAGE, True)
    (tmp_path / "mine").mkdir()
    assert run("export", str(log), str(tmp_path / "mine"), "--format", "hub", "--force").exit_code == USAGE
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("log")) == ["hub", "mine"]


def test_what_is_printed_and_what_does_not_go_together(tmp_path: Path) -> None:
    """A row for each part of the hub; tables are for other formats; an older log position has fewer forecasts."""
    log = str(rain(tmp_path / "log.db", forecast("ada", "2", 0.2), forecast("bo", "2", 0.2)))
    found = run("export", log, str(tmp_path / "hub"), "--format", "hub")
    assert [line.split()[:2] for line in found.stdout.splitlines()[1:]] == [
        ["model-output", "4"],
        ["oracle-output", "0"],
        ["hub-config", "2"],
        ["model-metadata", "2"],
    ]
    assert run("export", log, str(tmp_path / "x"), "--format", "hub", "--tables", "scores").exit_code == USAGE
    assert export_hub(Log(log, as_of=4), tmp_path / "before").parts["model-output"].rows == 2


def test_the_oracle_of_a_range_is_one_from_the_answer_on(tmp_path: Path) -> None:
    """Two goals of at most four: from the edge 2.5 on. An answer above an open end: nowhere. A date: half way."""
    with Ledger.open(tmp_path / "log.db") as ledger:
        import_into(ledger, "metaculus", DATA / "metaculus-import")
    export_hub(Log(tmp_path / "log.db"), tmp_path / "hub")
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows(tmp_path / "hub", "target-data/oracle-output.csv"):
        found[row[1]].append((row[3], row[4]))
    edges = ["-0.5", "0.5", "1.5", "2.5", "3.5", "4.5"]
    assert found["504"] == list(zip(edges, ["0", "0", "0", "1", "1", "1"], strict=True))
    assert {value for _, value in found["503"]} == {"0"}
    assert [value for _, value in found["505"]] == ["0"] * 100 + ["1"] * 101  # 50 of 100 days: the end of bin 100


def test_a_hub_has_the_last_ids_and_of_several_the_last_forecast(tmp_path: Path) -> None:
    """Bo's of the 3rd is later in time than ada's of the 2nd, which is recorded after it; cy withdrew on the 4th."""
    told = {"type": "rename_participant", "reason": "one person"}
    log = rain(
        tmp_path / "log.db",
        forecast("bo", "3", 0.3),
        forecast("ada", "2", 0.2),
        forecast("cy", "2", 0.5),
        {"type": "withdraw_forecast", "at": "2026-03-04T00:00:00Z", "question": "rain", "participant": "cy"},
        forecast("dan", "3", 0.6),
        {**told, "participant": "ada", "to": "bo"},
        {**told, "participant": "bo", "to": "al"},
        {**told, "participant": "dan", "to": "cy"},
    )
    export_hub(Log(log), tmp_path / "hub")
    written_files = [name for name in files(tmp_path / "hub") if name.startswith("model-output/")]
    assert [name.rpartition("-")[2] for name in written_files] == ["al.csv"]
    assert [row[-2:] for row in rows(tmp_path / "hub", written_files[0])] == [["yes", "0.3"], ["no", "0.7"]]


def test_a_hub_has_what_was_restated(tmp_path: Path) -> None:
    """The forecasts that count, and none that was retracted."""
    made = [{"at": "2026-03-02T00:00:00Z", "probability": 0.4}]
    restated = {"type": "restate_forecasts", "question": "rain", "reason": "a slip"}
    log = rain(
        tmp_path / "log.db",
        forecast("ada", "1", 0.2),
        forecast("bo", "1", 0.3),
        {**restated, "participant": "ada", "forecasts": made},
        {**restated, "participant": "bo", "forecasts": []},
    )
    export_hub(Log(log), tmp_path / "hub")
    written_files = [name for name in files(tmp_path / "hub") if name.startswith("model-output/")]
    assert len(written_files) == 1
    assert [row[-2:] for row in rows(tmp_path / "hub", written_files[0])] == [["yes", "0.4"], ["no", "0.6"]]
