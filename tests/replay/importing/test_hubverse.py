"""Hubs: scores worked out by hand, versions of the truth, files that are corrected, and files that are wrong."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.ledger.model.commands import OpenQuestion
from forecast_ledger.ledger.model.events import ForecastMade, QuestionOpened, QuestionResolved, ResolutionRevoked
from forecast_ledger.ledger.model.task_ids import task_values
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing import hub_questions
from forecast_ledger.replay.importing.follow_copy import ANSWER_UNREAD
from forecast_ledger.replay.importing.hub_config import Target, Task
from forecast_ledger.replay.importing.hub_questions import question_id
from forecast_ledger.replay.importing.hub_truth import NO_ROWS
from forecast_ledger.replay.importing.hubverse import NO_FILES
from tests.support.paths import DATA
from tests.support.sources import edit, import_into, table, ticking, told, zipped

HUB = DATA / "hub-import"
SERIES, ORACLE = "target-data/time-series.csv", "target-data/oracle-output.csv"
FIRST = "model-output/team1-a/2026-03-07-team1-a.csv"
SECOND = "model-output/team2-b/2026-03-14-team2-b.csv"
ADMISSIONS = "wk inc flu hosp quantile"
PATHS = (
    "which samples of several tasks are one path ('compound_taskid_set'): each task is scored by its own samples, so "
    "that no score depends on it"
)
BY_HAND = [  # data/hub-import/README.md
    ("wk flu hosp rate category pmf", "team1-a", "0.130000000"),
    ("wk flu hosp rate category pmf", "team2-b", "0.020000000"),
    ("wk flu hosp rate cdf", "team1-a", "0.083333333"),
    ("wk inc flu hosp mean", "team1-a", "8.500000000"),
    ("wk inc flu hosp median", "team1-a", "3.000000000"),
    (ADMISSIONS, "team1-a", "2.166666665"),  # losses of quantiles are rounded to 1e-8 each
    (ADMISSIONS, "team2-b", "2.300000000"),
    ("wk inc flu hosp sample", "team1-a", "2.500000000"),
]


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A copy of the small hub."""
    return Path(shutil.copytree(HUB, tmp_path / "hub"))


def board(ledger: Ledger) -> list[tuple[str, ...]]:
    """Every leaderboard."""
    return sorted(table(ledger, "leaderboard", "contest", "participant", "score"))


def assert_boards_as_by_hand(ledger: Ledger) -> None:
    """Every score is the one that was worked out by hand."""
    for (*key, score), (*expected, by_hand) in zip(board(ledger), BY_HAND, strict=True):
        assert key == expected
        assert abs(Decimal(score) - Decimal(by_hand)) <= Decimal("1e-8")


def test_the_small_hub_scores_as_worked_out_by_hand() -> None:
    """The newest version of the truth counts; a level that the configuration does not have is counted."""
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", HUB)
        assert found.counts == {"accepted": 57, "duplicate": 0, "refused": 0}
        assert found.left_out == {
            PATHS: 1,
            "a level that hub-config/tasks.json does not have for its task": 1,
        }
        assert_boards_as_by_hand(ledger)


def test_a_hub_without_files_of_models_says_so(hub: Path) -> None:
    """Nothing is recorded of a folder that was copied in part, and the report names what is missing."""
    shutil.rmtree(hub / "model-output")
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", hub)
        assert found.counts == {"accepted": 0, "duplicate": 0, "refused": 0}
        assert found.left_out["a folder that has no file of a model"] == 1


def test_importing_again_counts_once() -> None:
    """Every id comes from the source."""
    with ticking() as ledger:
        import_into(ledger, "hubverse", HUB)
        head = ledger.head()
        assert import_into(ledger, "hubverse", HUB).counts == {"accepted": 0, "duplicate": 57, "refused": 0}
        assert ledger.head() == head


def test_a_newer_copy_adds_what_is_new(hub: Path) -> None:
    """A further version of a value revokes the one before it; a corrected file replaces its forecast."""
    with ticking() as ledger:
        import_into(ledger, "hubverse", hub)
        edit(hub / SERIES, lambda text: text + "2026-03-25,2026-03-14,wk inc flu hosp,US,42\n")
        assert import_into(ledger, "hubverse", hub).counts == {"accepted": 8, "duplicate": 57, "refused": 0}
        edit(hub / SECOND, lambda text: text.replace("0.9,60", "0.9,44"))
        assert import_into(ledger, "hubverse", hub).counts["accepted"] == 1, "restated, after the answer"
        # 2/3 x (0.1 x 0 + 0.5 x 2 + 0.1 x 2) = 0.8, and 11/15 as before
        [score] = [score for contest, who, score in board(ledger) if (contest, who) == (ADMISSIONS, "team2-b")]
        assert abs(Decimal(score) - (Decimal(8) / 10 + Decimal(11) / 15) / 2) <= Decimal("1e-8")


def test_a_round_without_files_stays_and_its_questions_are_counted(hub: Path) -> None:
    """Those with forecasts alone; a file of one model is enough for the round to be compared."""
    with ticking() as ledger:
        import_into(ledger, "hubverse", hub)
        head, files = ledger.head(), sorted(hub.rglob("2026-03-07-*.csv"))
        every = told(ledger)
        first = {event.question for event in every if isinstance(event, QuestionOpened) and event.group == "2026-03-07"}
        forecast = first & {event.question for event in every if isinstance(event, ForecastMade)}
        kept = files[0].read_text()
        for path in files:
            path.unlink()
        assert import_into(ledger, "hubverse", hub).left_out.get(NO_FILES) == len(forecast) > 0
        assert ledger.head() == head
        files[0].write_text(kept)
        found = import_into(ledger, "hubverse", hub)
        assert NO_FILES not in found.left_out
        assert found.changes


def test_a_value_without_versions_that_changes_is_a_correction(hub: Path) -> None:
    """The answer that stands is revoked first; sending the newer copy again changes nothing."""
    with ticking() as ledger:
        import_into(ledger, "hubverse", hub)
        edit(hub / ORACLE, lambda text: text.replace("moderate,1", "moderate,0").replace("high,0", "high,1"))
        assert import_into(ledger, "hubverse", hub).counts == {"accepted": 2, "duplicate": 56, "refused": 0}
        assert import_into(ledger, "hubverse", hub).counts["accepted"] == 0
        [score] = [score for contest, who, score in board(ledger) if (contest[-3:], who) == ("pmf", "team2-b")]
        assert score == "0.820000000"  # 0.1² + 0.9²


def test_answers_come_in_order_of_time_and_a_new_version_revokes_the_old() -> None:
    """22 on 11 March, then 25 and 40 on 18 March; each is recorded before the next, whatever it is about."""
    with ticking() as ledger:
        import_into(ledger, "hubverse", HUB)
        every = told(ledger)
        values = [event.value for event in every if isinstance(event, QuestionResolved) and event.value]
        assert values == ["3", *["22"] * 4, *["25"] * 4, *["40"] * 4], "quantiles, a mean, a median and samples"
        [(group, category)] = {
            (event.group, event.category)
            for event in every
            if isinstance(event, QuestionOpened) and event.question.startswith("reference_date=2026-03-14")
        }
        assert (group, category) == ("2026-03-14", "wk inc flu hosp")
        revoked = [event for event in every if isinstance(event, ResolutionRevoked)]
        assert [event.reason for event in revoked] == ["revised as of 2026-03-18"] * 4
        assert all(isinstance(every[every.index(event) + 1], QuestionResolved) for event in revoked)


def test_parquet_and_a_zip_are_the_same_as_csv(hub: Path, tmp_path: Path) -> None:
    """The same log to the last digest, but for numbers that Parquet writes with fewer digits."""
    with ticking() as ledger:
        import_into(ledger, "hubverse", HUB)
        expected = ledger.head()
    with ticking() as ledger:
        import_into(ledger, "hubverse", zipped(HUB, tmp_path / "hub.zip", "small-hub-main/"))
        assert ledger.head() == expected
    text = dict.fromkeys(("location", "output_type_id", "reference_date", "target_end_date", "as_of"), pa.string())
    for path in [*hub.glob("model-output/*/*.csv"), *hub.glob("target-data/*.csv")]:
        found = arrow_csv.read_csv(path, convert_options=arrow_csv.ConvertOptions(column_types=text))
        parquet.write_table(found, path.with_suffix(".parquet"))
        path.unlink()
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", hub)
        assert (found.counts["accepted"], found.counts["refused"]) == (57, 0)
        assert [row[:2] for row in board(ledger)] == [row[:2] for row in BY_HAND]


def test_parquet_without_pyarrow_is_said_before_anything_is_recorded(
    hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the extra."""
    (hub / SECOND).rename((hub / SECOND).with_suffix(".parquet"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with ticking() as ledger:
        with pytest.raises(Unavailable, match="columnar"):
            import_into(ledger, "hubverse", hub)
        assert ledger.head().position == 0


def test_a_folder_of_target_data_may_name_a_column_in_its_path(hub: Path) -> None:
    """`time-series/as_of=2026-03-11/part-0.csv`, as partitioned data sets are laid out."""
    lines = (hub / SERIES).read_text(encoding="utf-8").splitlines()
    (hub / SERIES).unlink()
    for version in ("2026-03-11", "2026-03-18"):
        part = hub / "target-data" / "time-series" / f"as_of={version}" / "part-0.csv"
        part.parent.mkdir(parents=True)
        rows = [line.partition(",")[2] for line in lines if line.startswith(("as_of", version))]
        part.write_text("\n".join(rows) + "\n", encoding="utf-8")
    with ticking() as ledger:
        assert import_into(ledger, "hubverse", hub).counts["accepted"] == 57


def test_targets_without_keys_are_told_apart_by_their_ids() -> None:
    """All questions were of the first target, so that one board had the means of several units."""
    inflation, jobs = Target(target_id="cpi", target_name="Prices"), Target(target_id="jobs")
    task = Task(task_ids={}, output_type={}, target_metadata=[inflation, jobs])
    assert [task.target_of({"target": name}) for name in ("cpi", "jobs", "rent")] == [inflation, jobs, Target()]
    assert Task(task_ids={}, output_type={}, target_metadata=[inflation]).target_of({"target": "prices"}) == inflation


def name_targets(hub: Path, *names: str) -> None:
    """Give every task targets of these ids, without keys, in the place of its own."""
    said = json.loads((hub / "hub-config/tasks.json").read_text("utf-8"))
    for task in said["rounds"][0]["model_tasks"]:
        [target] = {each["target_type"]: each | {"target_keys": None} for each in task["target_metadata"]}.values()
        task["target_metadata"] = [target | {"target_id": name} for name in names]
    (hub / "hub-config/tasks.json").write_text(json.dumps(said), "utf-8")


def test_a_row_with_the_id_of_no_target_has_what_all_of_them_have(hub: Path) -> None:
    """Its outcomes had no order, so that they had the Brier score in the place of the ranked probability score."""
    name_targets(hub, "a", "b")
    with ticking() as ledger:
        assert import_into(ledger, "hubverse", hub).refused == []
        assert ("hub pmf", "team2-b", "0.020000000") in table(ledger, "leaderboard", "contest", "participant", "score")


def test_a_question_of_another_target_is_on_its_board_too(hub: Path) -> None:
    """It stayed on the board of the first alone: the commands that put it on each have the same id."""
    with ticking() as ledger:
        for name, accepted in (("one", True), ("two", True), ("two", False), ("one", False)):
            name_targets(hub, name)
            found = import_into(ledger, "hubverse", hub)
            assert (found.refused, found.counts["accepted"] > 0) == ([], accepted)
        boards = table(ledger, "leaderboard", "contest", "participant", "score")
    for name in ("one", "two"):
        assert (f"{name} quantile", "team1-a", "2.166666665") in boards


def test_a_question_that_now_asks_for_other_levels_stays_as_it_is(hub: Path) -> None:
    """Its forecasts were recorded as if they were of the levels before, or refused with a remedy that did not help."""
    with ticking() as ledger:
        import_into(ledger, "hubverse", hub)
        edit(hub / "hub-config/tasks.json", lambda text: text.replace("[0.1, 0.5, 0.9]", "[0.1, 0.5, 0.8]"))
        for file in (hub / "model-output").rglob("*.csv"):
            edit(file, lambda text: re.sub(r"quantile,0\.9,(\d)", r"quantile,0.8,1\1", text))
        found = import_into(ledger, "hubverse", hub)
        assert_boards_as_by_hand(ledger)
    said = "an earlier copy asked for 3 levels, and this one for 3 others"
    assert [said in line for line in found.refused] == [True, True]


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        (FIRST, lambda text: text.replace("quantile,0.5,20\n", "quantile,0.5\n"), "bad_source : the row has 7 cells"),
        (FIRST, lambda text: text.replace(",value", ",values"), "bad_source " + FIRST + ": the column 'value' is"),
        (FIRST, lambda text: text.replace("pmf,low", "pmf,lo"), "does not have it for this task"),
        (FIRST, lambda text: text.replace("0.5,20", "0.5,NA"), "bad_number quantiles"),
        (FIRST, lambda text: text.replace("0.5,20", "0.5,1e999"), "out_of_range value"),
        (FIRST, lambda text: text.replace("0.5,20", "0.5,35"), "decreasing quantiles"),
        (FIRST, lambda text: text.replace("0.1,10", "0.1,-1"), "open_end_needed quantiles"),
        (FIRST, lambda text: text.replace("low,0.2", "low,0.3"), "not_summing_to_one probabilities"),
        (FIRST, lambda text: text.replace("low,0.2\n", 'low,"0.2\n'), "the lines after"),
        (
            FIRST,
            lambda text: text.replace("quantile,0.5", "quantile,0.1"),
            "line 3 has another value for it than a line before",
        ),
        (FIRST, lambda text: "\n".join(line for line in text.split("\n") if "0.5,20" not in line), "are missing"),
        (SERIES, lambda text: text.replace(",40", ",many"), "bad_number value"),
        (SERIES, lambda text: text.replace("2026-03-11", "11 March"), "bad_instant as_of"),
        (ORACLE, lambda text: text.replace("moderate,1", "moderate,0"), ""),
    ],
)
def test_what_is_wrong_in_a_file_is_refused_with_its_place(
    hub: Path, file: str, change: Callable[[str], str], expected: str
) -> None:
    """The rest is recorded; without an oracle's 1, a question has no answer."""
    edit(hub / file, change)
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", hub)
        assert found.counts["accepted"] >= 15
        told = "\n".join(found.refused)
        assert expected in told
        assert bool(told) == bool(expected)
        assert all(line.startswith(file) for line in found.refused)


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("model-output/team1-a/2026-03-07-other.csv", "x", "not named ROUND-MODEL"),
        ("model-output/team1-a/2027-01-01-team1-a.csv", "x", "a file of a round that"),
        ("target-data/weekly.csv", "x", "the answers are those of target-data/oracle-output and"),
    ],
)
def test_files_that_are_not_read_are_named(hub: Path, file: str, text: str, reason: str) -> None:
    """One line each."""
    (hub / file).write_text(text, encoding="utf-8")
    with ticking() as ledger:
        [counted] = [count for why, count in import_into(ledger, "hubverse", hub).left_out.items() if reason in why]
        assert counted == 1


def test_rows_without_a_task_are_counted(hub: Path) -> None:
    """A place that the configuration does not have, in each of six output types; a cdf in unequal steps."""
    edit(hub / FIRST, lambda text: text.replace(",US,", ",ZZ,"))
    edit(hub / "hub-config/tasks.json", lambda text: text.replace("[1, 2, 3, 4, 5]", "[1, 2, 3, 4, 9]"))
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", hub)
        reason = "no task of the round in hub-config/tasks.json has these task ids and this output type"
        assert found.left_out[reason] == 6


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("hub-config/tasks.json", None, "no such file"),
        ("hub-config/tasks.json", "{", "bad_source"),
        ("hub-config/tasks.json", '{"rounds": 7}', "Expected `array`"),
        ("hub-config/tasks.json", "[" * 100_000, "bad_source"),
        ("hub-config/admin.json", "\udcff", "bad_source"),
    ],
)
def test_a_hub_that_cannot_be_read_records_nothing(hub: Path, file: str, text: str | None, message: str) -> None:
    """The configuration is read first."""
    (hub / file).unlink()
    if text is not None:
        (hub / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    with ticking() as ledger:
        with pytest.raises(Refused) as refused:
            import_into(ledger, "hubverse", hub)
        assert message in str(refused.value)
        assert ledger.head().position == 0


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("", f"{SERIES}: bad_source {SERIES}: the file is empty"),
        (
            "as_of,value\n",
            f"{SERIES}: bad_source {SERIES}: the column 'observation' is missing; the columns are: as_of, value",
        ),
        ("as_of,target_end_date,target,location,observation\n", None),
    ],
    ids=["empty", "without a column", "a header alone"],
)
def test_a_file_of_target_data_without_rows_answers_nothing_and_takes_nothing_back(
    hub: Path, text: str, refused: str | None
) -> None:
    """Of 57 commands, 16 are answers by the time series: 22, revoked, 25, and 40, each for four output types.

    The forecasts and the other answers are recorded, and the whole file adds these; afterwards they stay.
    """
    whole = Path(shutil.copytree(hub, hub.with_name("whole")))
    (hub / SERIES).write_text(text, encoding="utf-8")
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", hub)
        assert (found.counts["accepted"], found.refused) == (57 - 4 * (3 + 1), [refused] if refused else [])
        assert found.left_out.get(NO_ROWS) == (None if refused else 1)
        assert import_into(ledger, "hubverse", whole).counts["accepted"] == 16
        found = import_into(ledger, "hubverse", hub)
        assert (found.counts["accepted"], found.left_out[ANSWER_UNREAD]) == (0, 8)


def test_the_id_of_a_question_has_its_task_ids() -> None:
    """They can be read again, whatever characters they have."""
    values = {"reference_date": "2026-03-07", "target": "a&b=c%", "output_type": "pmf"}
    assert task_values(question_id(values)) == values
    assert task_values("reference_date=2026-03-07&location=US") is None


@pytest.mark.parametrize(("target_type", "said"), [("ordinal", "yes"), ("nominal", "no"), ("binary", "")])
def test_a_target_type_says_whether_categories_have_an_order(hub: Path, target_type: str, said: str) -> None:
    """Only of categories; an older import, which did not say it, is imported again without a refusal."""
    tasks = hub / "hub-config/tasks.json"
    tasks.write_text(tasks.read_text(encoding="utf-8").replace('"ordinal"', f'"{target_type}"'), encoding="utf-8")
    with ticking() as ledger:
        import_into(ledger, "hubverse", hub)
        assert {*table(ledger, "questions", "kind", "ordered")} == {("multiple_choice", said), ("numeric", "")}
    with ticking() as ledger:
        with pytest.MonkeyPatch.context() as before:
            before.setattr(hub_questions, "OpenQuestion", lambda **said: OpenQuestion(**said | {"ordered": None}))
            import_into(ledger, "hubverse", hub)
        assert import_into(ledger, "hubverse", hub).counts == {"accepted": 0, "duplicate": 57, "refused": 0}
        assert {each for (each,) in table(ledger, "questions", "ordered")} == {""}


def test_other_rules_score_the_same_forecasts(hub: Path) -> None:
    """`--rules` names a preset for every contest."""
    shutil.rmtree(hub / "model-output" / "team2-b")
    edit(hub / "hub-config/tasks.json", lambda text: text.replace('"quantile"', '"quantiles"').replace('"cdf"', '"x"'))
    with ticking() as ledger:
        import_into(ledger, "hubverse", hub, "baseline")
        assert {*table(ledger, "contests", "rules")} == {("baseline",)}


# The layout of the hubverse's example-simple-forecast-hub, shortened: a row of target data has a date, a forecast its
# round and horizon.
SIMPLE_TASKS = """{"rounds": [{"round_id_from_variable": true, "round_id": "origin_date", "model_tasks": [{
"task_ids": {"origin_date": {"required": null, "optional": ["2022-11-28", "2022-12-05"]},
  "target": {"required": ["inc covid hosp"], "optional": null},
  "horizon": {"required": null, "optional": [-6, 1, 2, 14]}, "location": {"required": null, "optional": ["US"]}},
"output_type": {"quantile": {"output_type_id": {"required": [0.25, 0.5, 0.75]}, "value": {"minimum": 0}}},
"target_metadata": [{"target_id": "inc covid hosp", "target_keys": {"target": "inc covid hosp"},
  "is_step_ahead": true, "time_unit": "day"}]}],
"submissions_due": {"relative_to": "origin_date", "start": -6, "end": 1}}]}"""
SIMPLE_OUTPUT = """origin_date,target,horizon,location,output_type,output_type_id,value
2022-11-28,inc covid hosp,1,US,quantile,0.25,100
2022-11-28,inc covid hosp,1,US,quantile,0.5,110
2022-11-28,inc covid hosp,1,US,quantile,0.75,120
2022-11-28,inc covid hosp,2,US,quantile,0.25,200
2022-11-28,inc covid hosp,2,US,quantile,0.5,210
2022-11-28,inc covid hosp,2,US,quantile,0.75,220
"""
SIMPLE_TRUTH = """time_idx,location,target,observation
2022-11-28,US,inc covid hosp,90
2022-11-29,US,inc covid hosp,111
2022-11-30,US,inc covid hosp,222
2022-12-01,US,inc covid hosp,333
"""
TARGET_DATA = "hub-config/target-data.json"


@pytest.fixture
def simple(tmp_path: Path) -> Path:
    """That hub."""
    hub = tmp_path / "simple"
    for name, text in {
        "hub-config/tasks.json": SIMPLE_TASKS,
        TARGET_DATA: '{"observable_unit": ["target", "time_idx", "location"], "date_col": "time_idx"}',
        "model-output/hub-base/2022-11-28-hub-base.csv": SIMPLE_OUTPUT,
        SERIES: SIMPLE_TRUTH,
    }.items():
        (hub / name).parent.mkdir(parents=True, exist_ok=True)
        (hub / name).write_text(text, encoding="utf-8")
    return hub


@pytest.mark.parametrize("kind", [SERIES, ORACLE])
@pytest.mark.parametrize("configured", [True, False])
def test_a_date_that_is_no_task_id_is_that_of_the_round_and_the_horizon(
    simple: Path, kind: str, configured: bool
) -> None:
    """Twice the mean loss: 2 (2.75 + 0.5 + 2.25) / 3 of 111, and 2 (5.5 + 6 + 1.5) / 3 of 222, the mean of which is
    18.5 / 3. Every horizon had the last day's value.
    """
    (simple / SERIES).rename(simple / kind)
    if kind == ORACLE:
        edit(simple / ORACLE, lambda text: text.replace("observation", "oracle_value"))
    if not configured:
        (simple / TARGET_DATA).unlink()
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", simple)
        assert (found.refused, found.left_out) == ([], {})
        assert board(ledger) == [("inc covid hosp quantile", "hub-base", "6.166666670")]  # rounded to 1e-8 each
        assert [each.value for each in told(ledger) if isinstance(each, QuestionResolved)] == ["111", "222"]


def test_target_data_whose_date_cannot_be_told_are_not_believed(simple: Path) -> None:
    """The steps of rounds are not said; or two rows of one version differ."""
    edit(simple / SERIES, lambda text: text + "2022-11-29,US,inc covid hosp,112\n")
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", simple)
        told = f"bad_source value: {SERIES}, line 3 says otherwise for the same task ids and version; neither counts"
        assert found.refused == [f"{SERIES}, line 6: {told}"]
        assert found.counts["accepted"] == 8
    edit(simple / "hub-config/tasks.json", lambda text: text.replace('"is_step_ahead": true', '"is_step_ahead": false'))
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", simple)
        assert (found.refused, found.counts["accepted"]) == ([], 7)
        assert [reason.partition(",")[0] for reason in found.left_out] == ["target data by the column time_idx"]


def test_only_the_last_version_of_the_truth_must_agree_with_itself(hub: Path) -> None:
    """An older one that has two values is refused and left out: the answer is that of the next."""
    edit(hub / SERIES, lambda text: text + "2026-03-11,2026-03-07,wk inc flu hosp,US,23\n" * 2)
    with ticking() as ledger:
        refused = import_into(ledger, "hubverse", hub).refused
        assert len(refused) == len({contest for contest, *_ in BY_HAND if contest.startswith("wk inc")})
        assert all(f"{SERIES}, line 2 says otherwise" in line for line in refused)
        assert_boards_as_by_hand(ledger)
    edit(hub / SERIES, lambda text: text + "2026-03-18,2026-03-07,wk inc flu hosp,US,26\n")
    with ticking() as ledger:
        import_into(ledger, "hubverse", hub)
        answers = {value for about, value in table(ledger, "questions", "category", "value") if "inc" in about}
        assert answers == {"None", "40"}, "of the 14th alone"


def repeated(text: str) -> str:
    """A file whose rows all occur twice."""
    header, *rows = text.splitlines(keepends=True)
    return header + "".join(row + row for row in rows)


def numbered(text: str) -> str:
    """A file with the numbers of its rows in a first column without a name, as pandas writes it."""
    header, *rows = text.splitlines(keepends=True)
    return "," + header + "".join(f"{number},{row}" for number, row in enumerate(rows))


@pytest.mark.parametrize(
    ("file", "change"),
    [
        (FIRST, lambda text: text.replace("quantile,0.5,", "quantile,0.50,")),
        (FIRST, lambda text: re.sub(",0(?=[.][0-9]+$)", ",", text, flags=re.MULTILINE)),
        (FIRST, lambda text: text.replace("quantile,0.9,", "quantile,0.90000000000000002,")),
        (FIRST, lambda text: text.replace(",0,US,", ",0.0,US,")),
        (FIRST, repeated),
        (FIRST, numbered),
    ],
    ids=[
        "a level in other digits",
        "no digit before the point",
        "a level as a double is written",
        "a task id",
        "a row twice",
        "row numbers",
    ],
)
def test_another_spelling_of_a_file_changes_nothing(hub: Path, file: str, change: Callable[[str], str]) -> None:
    """Levels and task ids are compared as numbers; a row that repeats another counts once."""
    with ticking() as ledger, ticking() as other:
        import_into(ledger, "hubverse", hub)
        edit(hub / file, change)
        assert import_into(other, "hubverse", hub).refused == []
        assert board(other) == board(ledger)


def test_a_column_that_is_no_task_id_is_named(hub: Path) -> None:
    """It is left out, and counted."""
    edit(hub / FIRST, numbered)
    with ticking() as ledger:
        assert import_into(ledger, "hubverse", hub).left_out["a column without a name"] == 1


def test_two_categories_that_happened_are_refused(hub: Path) -> None:
    """Neither counts, whichever comes first; the place of the other is named."""
    edit(hub / ORACLE, lambda text: text.replace("high,0", "high,1"))
    with ticking() as ledger:
        [told] = import_into(ledger, "hubverse", hub).refused
        assert "says otherwise for the same task ids and version; neither counts" in told
        assert not [who for contest, who, _ in board(ledger) if contest.endswith("pmf")]
