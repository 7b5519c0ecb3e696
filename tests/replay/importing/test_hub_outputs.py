"""Output types of a hub: medians, means and samples as forecasts, and levels as the configuration asks for them."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.files.hub_export import export_hub
from forecast_ledger.replay.reading.log import Log
from tests.support.sources import edit, import_into, table, ticking

TASKS = """{"rounds": [{"round_id_from_variable": true, "round_id": "date", "model_tasks": [{
"task_ids": {"date": {"required": null, "optional": ["2026-03-07"]},
  "place": {"required": null, "optional": ["oslo", "bergen"]}},
"output_type": {%s},
"target_metadata": [{"target_id": "rain", "target_keys": null, "target_type": "continuous"}]}],
"submissions_due": {"relative_to": "date", "start": -6, "end": 1}}]}"""
OLD_MEDIAN = (
    '"median": {"output_type_id": {"required": ["NA"], "optional": null}, "value": {"minimum": 0}}'  # before 4.0
)
MEDIAN = '"median": {"output_type_id": {"required": null}, "is_required": false, "value": {"minimum": 0}}'
MEAN = '"mean": {"output_type_id": {"required": null}, "is_required": false, "value": {}}'
SAMPLES = """"sample": {"output_type_id_params": {"type": "character", "min_samples_per_task": 2,
"max_samples_per_task": 3, "max_length": 6, "compound_taskid_set": ["date"]}, "is_required": true, "value": {}}"""
LEVELS = '"quantile": {"output_type_id": {"required": %s, "optional": %s}, "value": {"minimum": 0}}'
ORACLE = "target-data/oracle-output.csv"
TRUTH = {ORACLE: "place,oracle_value\noslo,25\nbergen,40\n"}


def hub(folder: Path, outputs: str, rows: Mapping[str, str], truth: Mapping[str, str] = TRUTH) -> Path:
    """A hub whose models give these rows: place, output type and id, and value."""
    files = {"hub-config/tasks.json": TASKS % outputs} | dict(truth)
    for model, lines in rows.items():
        header = "date,place,output_type,output_type_id,value"
        said = [f"2026-03-07,{line}" for line in lines.split()]
        files[f"model-output/{model}/2026-03-07-{model}.csv"] = "\n".join([header, *said]) + "\n"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def quantiles(levels: str, values: str, place: str = "oslo") -> str:
    """The rows of a forecast by quantiles."""
    pairs = zip(levels.split(), values.split(), strict=True)
    return "\n".join(f"{place},quantile,{level},{value}" for level, value in pairs)


def board(folder: Path, refused: int = 0) -> list[tuple[str, ...]]:
    """The leaderboards of a hub, of which so many rows are refused."""
    with ticking() as ledger:
        assert len(import_into(ledger, "hubverse", folder).refused) == refused
        return sorted(table(ledger, "leaderboard", "contest", "participant", "score"))


@pytest.mark.parametrize("median", [OLD_MEDIAN, MEDIAN])
@pytest.mark.parametrize("empty", ["NA", ""])
def test_a_median_scores_its_absolute_error(tmp_path: Path, median: str, empty: str) -> None:
    """5 and 1.5, in both forms of the configuration; an empty id is NA."""
    rows = f"oslo,median,{empty},20 bergen,median,{empty},41.5"
    assert board(hub(tmp_path, median, {"t-a": rows})) == [("rain median", "t-a", "3.250000000")]


def test_a_mean_scores_its_squared_error(tmp_path: Path) -> None:
    """25 and 2.25; a mean may be below 0 if the hub sets no bound."""
    rows = {"t-a": "oslo,mean,NA,20 bergen,mean,NA,41.5", "t-b": "oslo,mean,NA,-5"}
    expected = [("rain mean", "t-a", "13.625000000"), ("rain mean", "t-b", "900.000000000")]
    assert board(hub(tmp_path, MEAN, rows)) == expected


def crps(samples: list[int], answer: int) -> Fraction:
    """By its definition: Gneiting and Raftery (2007), section 4.2."""
    spread = sum(abs(one - other) for one, other in product(samples, samples))
    return Fraction(sum(abs(each - answer) for each in samples), len(samples)) - Fraction(spread, 2 * len(samples) ** 2)


def test_samples_score_their_crps_task_by_task(tmp_path: Path) -> None:
    """The ids s1 to s3 are paths over both places, which change no score; the order of rows and ids does not count."""
    rows = "oslo,sample,s1,10 bergen,sample,s1,30 oslo,sample,s2,20 bergen,sample,s2,44 oslo,sample,s3,60"
    rows += " bergen,sample,s3,44"
    expected = (crps([10, 20, 60], 25) + crps([30, 44, 44], 40)) / 2
    folder = hub(tmp_path, SAMPLES, {"t-a": rows})
    [(contest, who, score)] = board(folder)
    assert (contest, who) == ("rain sample", "t-a")
    assert abs(Fraction(score) - expected) <= Fraction(1, 10**8)
    with ticking() as ledger:
        import_into(ledger, "hubverse", folder)
        file = folder / "model-output/t-a/2026-03-07-t-a.csv"
        edit(file, lambda text: text.replace("s1", "x").replace("s2", "s1").replace("x", "s2"))
        assert import_into(ledger, "hubverse", folder).counts["accepted"] == 0
        edit(file, lambda text: text.replace("s3,60", "s3,61"))
        assert import_into(ledger, "hubverse", folder).counts["accepted"] == 1


def test_another_number_of_samples_is_another_question(tmp_path: Path) -> None:
    """Both are on one board; a number that the hub does not take is refused, and so is an id with two values."""
    three = "oslo,sample,1,10 oslo,sample,2,20 oslo,sample,3,60"
    rows = {"t-a": three, "t-b": "oslo,sample,1,10 oslo,sample,2,20", "t-c": "oslo,sample,1,25"}
    rows["t-d"] = "oslo,sample,1,10 oslo,sample,1,11 oslo,sample,2,12"
    folder = hub(tmp_path, SAMPLES, rows)
    with ticking() as ledger:
        found = import_into(ledger, "hubverse", folder)
        assert "it has 1; hub-config/tasks.json asks for 2 to 3 samples" in found.refused[0]
        assert "line 3 has another value for it than a line before" in found.refused[1]
        [three_of, two_of] = sorted(table(ledger, "questions", "question"))
        assert two_of == (f"{three_of[0]}&output_type_id=2 samples",)
        scores = table(ledger, "leaderboard", "participant", "score")
        assert [who for who, _ in scores] == ["t-a", "t-b"]
        for (_, score), made in zip(scores, ([10, 20, 60], [10, 20]), strict=True):
            assert abs(Fraction(score) - crps(made, 25)) <= Fraction(1, 10**8)


def test_the_observed_value_answers_every_output_type(tmp_path: Path) -> None:
    """An oracle that has rows of one output type alone has the value for the others, and so has a time series."""
    rows = {"t-a": "oslo,mean,NA,20 oslo,median,NA,20"}
    truth = {ORACLE: "place,output_type,output_type_id,oracle_value\noslo,quantile,NA,25\n"}
    expected = [("rain mean", "t-a", "25.000000000"), ("rain median", "t-a", "5.000000000")]
    assert board(hub(tmp_path / "a", f"{MEAN},{MEDIAN}", rows, truth)) == expected
    truth = {"target-data/time-series.csv": "place,observation\noslo,25\n"}
    assert board(hub(tmp_path / "b", f"{MEAN},{MEDIAN}", rows, truth)) == expected


@pytest.mark.parametrize(
    ("required", "optional"), [("[0.25, 0.5, 0.75]", "[0.1, 0.9]"), ("null", "[0.1, 0.25, 0.5, 0.75, 0.9]")]
)
def test_a_file_may_leave_out_levels_that_are_optional(tmp_path: Path, required: str, optional: str) -> None:
    """Of the answer 25: 2/3 (0.25 x 5 + 0 + 0.25 x 5) = 5/3, and 2/5 (0.1 x 15 + 0.25 x 5 x 2 + 0.1 x 15) = 2.2.

    One that lacks a required level is refused, and so are the optional ones with it.
    """
    three, five = "0.25 0.5 0.75", "0.1 0.25 0.5 0.75 0.9"
    rows = {"t-a": quantiles(three, "20 25 30"), "t-b": quantiles(five, "10 20 25 30 40")}
    folder = hub(tmp_path, LEVELS % (required, optional), rows)
    (_, _, first), (_, _, second) = board(folder)
    assert abs(Decimal(first) - Decimal(5) / 3) <= Decimal("1e-8")
    assert second == "2.200000000"
    edit(folder / "model-output/t-b/2026-03-07-t-b.csv", lambda text: text.replace("quantile,0.5,", "quantile,0.9,"))
    assert len(board(folder, refused=1)) == 1


def test_levels_that_no_file_shares_are_compared_on_one_board(tmp_path: Path) -> None:
    """Each set of levels is a question of its own, whose id has the levels; a level in other digits is the same."""
    levels = LEVELS % ("[0.5]", "[0.1, 0.9]")
    rows = {"t-a": quantiles("0.5", "20"), "t-b": quantiles("0.50 0.90000000000000002", "20 30")}
    with ticking() as ledger:
        assert import_into(ledger, "hubverse", hub(tmp_path, levels, rows)).refused == []
        usual = "date=2026-03-07&place=oslo&output_type=quantile"
        assert sorted(table(ledger, "questions", "question")) == [(usual,), (f"{usual}&output_type_id=0.5,0.9",)]
        # 2 x 0.5 x 5 = 5, and 2/2 (0.5 x 5 + 0.1 x 5) = 3
        assert table(ledger, "leaderboard", "participant", "score") == [("t-b", "3.000000000"), ("t-a", "5.000000000")]


@pytest.mark.parametrize("required", ["[0.5]", "null"])
def test_levels_and_samples_come_out_of_an_export_as_they_went_in(tmp_path: Path, required: str) -> None:
    """Imported, exported, imported and exported again: the same files, and the same questions and scores."""
    optional = "[0.1, 0.9]" if required == "[0.5]" else "[0.1, 0.5, 0.9]"
    rows = {
        "t-a": quantiles("0.1 0.5 0.9", "10 20 30") + " oslo,sample,1,10 oslo,sample,2,20 oslo,sample,3,60",
        "t-b": quantiles("0.5", "25") + " oslo,sample,7,10 oslo,sample,8,20 oslo,median,NA,7 oslo,mean,NA,8",
    }
    source = hub(tmp_path / "source", ",".join([LEVELS % (required, optional), SAMPLES, MEDIAN, MEAN]), rows)
    scores = []
    for name, folder in (("a", source), ("b", tmp_path / "a")):
        with Ledger.open(tmp_path / f"{name}.db") as ledger:
            assert import_into(ledger, "hubverse", folder).refused == []
            scores.append(sorted(table(ledger, "scores", "contest", "participant", "score")))
        assert export_hub(Log(tmp_path / f"{name}.db"), tmp_path / name).left_out == {}
    assert scores[0] == scores[1]
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()} for name in "ab"
    )
    assert first == second


LATEST = "target-data/source/latest-rain.csv"


@pytest.mark.parametrize(
    "header", ["place,truth_date,value", "place,target_end_date,observation", "truth_date,year_week,value,place"]
)
def test_the_latest_values_of_a_hub_without_a_time_series_are_its_answers(tmp_path: Path, header: str) -> None:
    """In the columns of the European respiratory hubs, or of a time series; a day that no task has is left out."""
    days = {"place": ("oslo", "oslo", "bergen"), "year_week": ("w", "w", "w")}
    days |= dict.fromkeys(["truth_date", "target_end_date"], ("2026-03-01", "2026-03-08", "2026-03-08"))
    days |= dict.fromkeys(["value", "observation"], ("99", "25", "NA"))
    lines = [",".join(days[column][row] for column in header.split(",")) for row in range(3)]
    rows = {"t-a": "oslo,2026-03-08,median,NA,20 bergen,2026-03-08,median,NA,20"}
    folder = dated(hub(tmp_path, MEDIAN, rows, {LATEST: "\n".join([header, *lines]) + "\n"}))
    assert board(folder) == [("rain median", "t-a", "5.000000000")], "bergen is not known"
    edit(folder / LATEST, lambda text: text.replace("25", "26"))
    (folder / ORACLE).write_text("place,target_end_date,oracle_value\noslo,2026-03-08,40\n", encoding="utf-8")
    assert board(folder) == [("rain median", "t-a", "20.000000000")], "a hub with oracle output needs no other file"
    (folder / ORACLE).rename(folder / "target-data/time-series.csv")
    edit(folder / "target-data/time-series.csv", lambda text: text.replace("oracle_value", "observation"))
    assert board(folder) == [("rain median", "t-a", "20.000000000")], "nor does one with a time series"


def test_oracle_output_may_name_its_values_as_a_time_series_does(tmp_path: Path) -> None:
    """As a hub of cities did; a table with both columns has its own."""
    rows = {"t-a": "oslo,2026-03-08,median,NA,20"}
    folder = dated(hub(tmp_path, MEDIAN, rows, {ORACLE: "place,target_end_date,observation\noslo,2026-03-08,25\n"}))
    assert board(folder) == [("rain median", "t-a", "5.000000000")]
    text = "place,target_end_date,observation,oracle_value\noslo,2026-03-08,25,27\n"
    (folder / ORACLE).write_text(text, encoding="utf-8")
    assert board(folder) == [("rain median", "t-a", "7.000000000")]


def test_values_beyond_what_the_ledger_keeps_are_refused_with_what_can_be_done(tmp_path: Path) -> None:
    """Without bounds, values have four decimals and thirteen digits: one of 1,697,107,898 came from a model."""
    rows = {"t-a": "oslo,2026-03-08,median,NA,1697107898.42", "t-b": "oslo,2026-03-08,median,NA,1000000000"}
    folder = dated(hub(tmp_path, MEDIAN, rows, {ORACLE: "place,target_end_date,oracle_value\noslo,2026-03-08,25\n"}))
    with ticking() as ledger:
        [refused] = import_into(ledger, "hubverse", folder).refused
        assert "t-a.csv, line 2: out_of_range value: values of this question have 4 decimals" in refused
        assert "at most 1,000,000,000" in refused
        assert table(ledger, "scores", "participant") == [("t-b",)]


def dated(folder: Path) -> Path:
    """The hub with a further task id, the day that a question is about."""
    days = '"target_end_date": {"required": null, "optional": ["2026-03-08"]}'
    edit(folder / "hub-config/tasks.json", lambda text: text.replace('"place":', f'{days}, "place":'))
    for file in folder.glob("model-output/*/*.csv"):
        edit(file, lambda text: text.replace("date,place,", "date,place,target_end_date,"))
    return folder


@pytest.mark.parametrize(
    ("header", "lacking"),
    [("truth_date,value", "place"), ("place,value", "target_end_date"), ("place,truth_date,number", "observation")],
)
def test_latest_values_whose_columns_do_not_say_enough_are_named(tmp_path: Path, header: str, lacking: str) -> None:
    """With the column that is missing, and what to do; nothing is answered."""
    line = ",".join("2026-03-08" if column.endswith("date") else "oslo" for column in header.split(","))
    rows = {"t-a": "oslo,2026-03-08,median,NA,20"}
    folder = dated(hub(tmp_path, MEDIAN, rows, {LATEST: f"{header}\n{line}\n"}))
    with ticking() as ledger:
        [reason] = import_into(ledger, "hubverse", folder).left_out
        assert reason.startswith(f"files of the latest values without a column {lacking}, which")
        assert "give the values as target-data/time-series.csv" in reason
        assert table(ledger, "scores", "question") == []
