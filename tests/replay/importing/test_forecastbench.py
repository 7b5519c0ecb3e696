"""ForecastBench's sets: scores worked out by hand, imputed forecasts, shares, later answers, sets that are wrong."""

import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model.events import ForecastMade, QuestionAnnulled, QuestionOpened, QuestionResolved
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.paths import DATA
from tests.support.sources import edit, import_into, table, ticking, told, zipped

SETS = DATA / "forecastbench-import"
OWL = "forecast_sets/2026-03-01/2026-03-01.Acme.1.json"
ANSWERS = "resolution_sets/2026-03-01_resolution_set.json"
QUESTIONS = "question_sets/2026-03-01-llm.json"
BY_HAND = [  # data/forecastbench-import/README.md
    ("2025-03-02 dataset combination", "Acme: owl-1", "0.175000000"),
    ("2026-03-01 dataset", "Acme: owl-1", "0.225000000"),
    ("2026-03-01 dataset", "ForecastBench: Always 0.5", "0.250000000"),
    ("2026-03-01 market", "Acme: owl-1", "0.065000000"),
    ("2026-03-01 market", "ForecastBench: Always 0.5", "0.250000000"),
]
NOT_RESOLVED = "a market that is not resolved: its price is no answer"
NOT_ASKED = "a forecast on a question that the round's question sets do not have"


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """A copy of the sets."""
    return Path(shutil.copytree(SETS, tmp_path / "sets"))


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what a set says."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def annulled(ledger: Ledger) -> list[str]:
    """The questions that are annulled."""
    return [event.question for event in told(ledger) if isinstance(event, QuestionAnnulled)]


def test_the_sets_score_as_worked_out_by_hand() -> None:
    """What is not carried over is counted; nothing is refused."""
    with ticking() as ledger:
        found = import_into(ledger, "forecastbench", SETS)
        assert found.counts == {"accepted": 41, "duplicate": 0, "refused": 0}
        assert found.left_out == {NOT_ASKED: 1, NOT_RESOLVED: 1}
        assert sorted(table(ledger, "leaderboard", "contest", "participant", "score")) == BY_HAND


def test_what_is_recorded_of_a_round() -> None:
    """Titles with their dates; the mark of imputed forecasts; answers of a share; answers in order of time."""
    with ticking() as ledger:
        import_into(ledger, "forecastbench", SETS)
        every = told(ledger)
    titles = {event.question: event.title for event in every if isinstance(event, QuestionOpened)}
    assert "increased by 2026-03-31 as compared to its value on 2026-03-01" in titles["2026-03-01 fred DGS1 2026-03-31"]
    assert titles["2025-03-02 fred DGS1 & DGS30 +- 2025-03-09"].endswith("(DGS1 yes, DGS30 no)")
    labels = {
        each.question: (each.group, each.category, each.url) for each in every if isinstance(each, QuestionOpened)
    }
    assert labels["2026-03-01 fred DGS1 2026-03-31"] == ("fred", "dataset", "https://example.org/DGS1")
    assert labels["2025-03-02 fred DGS1 & DGS30 +- 2025-03-09"] == ("fred", "dataset combination", "")
    imputed = [each for each in every if isinstance(each, ForecastMade) and each.attestation]
    assert [(each.question, each.participant) for each in imputed] == [
        ("2026-03-01 fred DGS1 2026-03-31", "ForecastBench: Always 0.5")
    ]
    answers = [event for event in every if isinstance(event, QuestionResolved)]
    assert [each.payouts for each in answers if each.payouts] == [(300_000_000, 700_000_000)]
    assert [each.at for each in answers] == sorted(each.at for each in answers)


def test_importing_again_counts_once_and_later_answers_are_added(sets: Path, tmp_path: Path) -> None:
    """Resolution sets are published anew each night: a market resolves, an answer is corrected."""
    with ticking() as ledger:
        import_into(ledger, "forecastbench", sets)
        again = import_into(ledger, "forecastbench", zipped(sets, tmp_path / "sets.zip", "datasets/"))
        assert again.counts == {"accepted": 0, "duplicate": 41, "refused": 0}

        def later(content: dict[str, Any]) -> None:
            content["resolutions"][4] |= {"resolved": True, "resolved_to": 1.0}
            content["resolutions"][2]["resolved_to"] = 1.0

        rewrite(sets / ANSWERS, later)
        for expected in (3, 0):  # an answer; a revocation and an answer; then nothing
            assert import_into(ledger, "forecastbench", sets).counts["accepted"] == expected
        scores = {row[:2]: row[2] for row in table(ledger, "leaderboard", "contest", "participant", "score")}
        assert scores["2026-03-01 market", "Acme: owl-1"] == "0.296666667"  # (0.8² + 0.4² + 0.3²) / 3


def test_forecasts_of_people_are_by_their_ids(sets: Path) -> None:
    """The sets of 2024 name the question set otherwise, and each forecast has a `user_id`."""

    def people(content: dict[str, Any]) -> None:
        content["question-set"] = content.pop("question_set")
        content["forecasts"] = [
            {**content["forecasts"][0], "user_id": "S1"},
            {**content["forecasts"][0], "user_id": "S2"},
        ]

    rewrite(sets / OWL, people)
    with ticking() as ledger:
        import_into(ledger, "forecastbench", sets)
        who = {row[0] for row in table(ledger, "scores", "participant")}
        assert {"Acme: S1", "Acme: S2"} <= who


def scores(ledger: Ledger, question: str) -> dict[str, str]:
    """Participant -> score on a question."""
    rows = table(ledger, "scores", "question", "participant", "score")
    return {who: score for name, who, score in rows if name == question}


def test_a_market_that_is_listed_at_several_dates_has_one_answer_known_at_the_first(sets: Path) -> None:
    """Its rows come in any order, and in another set; all but the first date's count as duplicates."""

    def listed(content: dict[str, Any]) -> None:
        row = content["resolutions"][2]
        content["resolutions"] += [{**row, "resolution_date": date} for date in ("2026-03-31", "2026-03-19")]

    rewrite(sets / ANSWERS, listed)
    shutil.copy(sets / ANSWERS, sets / "again.json")
    with ticking() as ledger:
        found = import_into(ledger, "forecastbench", sets)
        assert found.counts == {"accepted": 41, "duplicate": 8, "refused": 0}  # 12 rows of 4 questions
        every = told(ledger)
        [answer] = [each for each in every if isinstance(each, QuestionResolved) and each.question.endswith("0xabc")]
        assert answer.at == read_instant("2026-03-19T00:00:00Z")
        assert import_into(ledger, "forecastbench", sets).counts["accepted"] == 0


@pytest.mark.parametrize("value", [1.0, None, 0.5])
def test_answers_that_contradict_each_other_are_refused_with_both_places(sets: Path, value: float | None) -> None:
    """A market that is 0 on one date and something else on another has no answer, also if an earlier copy had one."""
    with ticking() as ledger:
        import_into(ledger, "forecastbench", sets)
        assert scores(ledger, "2026-03-01 polymarket 0xabc")
        rewrite(
            sets / ANSWERS, lambda said: said["resolutions"].append({**said["resolutions"][2], "resolved_to": value})
        )
        found = import_into(ledger, "forecastbench", sets)
        [line] = found.refused
        assert line.startswith(f"{ANSWERS}, resolutions item 6: bad_source resolved_to: ")
        assert f"{ANSWERS}, resolutions item 3 says 0.0 for the same question" in line
        assert scores(ledger, "2026-03-01 polymarket 0xabc") == {}


def test_a_forecast_that_is_repeated_counts_once_and_one_that_contradicts_itself_not_at_all(sets: Path) -> None:
    """A market's is repeated for each resolution date, in other digits, in another set of the same participant.

    (0.2 - 0)² = 0.04. It is imputed if all rows say so.
    """
    market = "2026-03-01 polymarket 0xabc"

    def repeated(content: dict[str, Any]) -> None:
        row = content["forecasts"][2]
        content["forecasts"] += [{**row, "resolution_date": "2026-03-08", "imputed": True}]

    rewrite(sets / OWL, repeated)
    shutil.copy(sets / OWL, sets / "again.json")
    edit(sets / "again.json", lambda text: text.replace('"forecast": 0.2', '"forecast": 2.0e-1'))
    with ticking() as ledger:
        found = import_into(ledger, "forecastbench", sets)
        assert found.counts == {"accepted": 41, "duplicate": 1 + 6, "refused": 0}
        assert scores(ledger, market)["Acme: owl-1"] == "0.040000000"
        every = told(ledger)
        made = [each for each in every if isinstance(each, ForecastMade) and each.question == market]
        assert [each.attestation for each in made] == [None, None]
        edit(sets / "again.json", lambda text: text.replace('"forecast": 2.0e-1', '"forecast": 0.3'))
        found = import_into(ledger, "forecastbench", sets)
        assert len(found.refused) == 2
        assert found.refused[0].startswith("forecast_sets/")
        assert found.refused[0].endswith("neither counts")
        assert "again.json, forecasts item 3 says 0.3" in found.refused[0]
        assert "Acme: owl-1" not in scores(ledger, market)


def test_a_question_in_two_sets_counts_once(sets: Path) -> None:
    """The set for people has some of the other's questions; other words are named, and the first set's count."""
    shutil.copy(sets / QUESTIONS, sets / "question_sets/2026-03-01-human.json")
    with ticking() as ledger:
        assert import_into(ledger, "forecastbench", sets).counts == {"accepted": 41, "duplicate": 5, "refused": 0}

    def other(content: dict[str, Any]) -> None:
        content["questions"][1]["question"] = "Snow?"
        content["questions"][2]["resolution_dates"] = ["2026-03-08"]

    rewrite(sets / QUESTIONS, other)
    with ticking() as ledger:
        found = import_into(ledger, "forecastbench", sets)
        assert found.left_out["other words or another address of a question that an item before it has"] == 1
        [line] = found.refused
        assert line.startswith(f"{QUESTIONS}, questions item 3: bad_source resolution_dates: ")
        assert "question_sets/2026-03-01-human.json, questions item 3, which counts" in line
        titles = {row[1] for row in table(ledger, "questions", "question", "title")}
        assert "Will it snow in Oslo in March?" in titles


def test_an_answer_without_a_value_annuls(sets: Path) -> None:
    """`NaN`, as Python writes it, is read as no value."""
    edit(sets / ANSWERS, lambda text: text.replace('"resolved_to": 1.0', '"resolved_to": NaN'))
    with ticking() as ledger:
        assert import_into(ledger, "forecastbench", sets).counts["refused"] == 0
        assert annulled(ledger) == ["2026-03-01 fred DGS1 2026-03-08"]


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        (OWL, lambda said: said["forecasts"][0].update(forecast=1.5), "out_of_range probability"),
        (OWL, lambda said: said["forecasts"][0].update(forecast="high"), "forecasts item 1: bad_source forecast"),
        (OWL, lambda said: said["forecasts"][0].pop("source"), "missing required field `source`"),
        (OWL, lambda said: said.pop("model"), "missing required field `model`"),
        (OWL, lambda said: said["forecasts"].append({**said["forecasts"][0], "forecast": 0.1}), "neither counts"),
        (ANSWERS, lambda said: said["resolutions"][0].update(resolved_to=1.5), "out_of_range payouts"),
        (ANSWERS, lambda said: said["resolutions"][0].update(resolution_date="soon"), "bad_instant resolution_date"),
        (QUESTIONS, lambda said: said["questions"][0].update(resolution_dates=[7]), "questions item 1: bad_source"),
        (QUESTIONS, lambda said: said["questions"].append(7), "questions item 5: bad_source"),
    ],
)
def test_what_is_wrong_in_a_set_is_refused_with_its_place(
    sets: Path, file: str, change: Callable[[dict[str, Any]], object], expected: str
) -> None:
    """The rest is recorded."""
    rewrite(sets / file, change)
    with ticking() as ledger:
        found = import_into(ledger, "forecastbench", sets)
        assert any(expected in line and line.startswith(file) for line in found.refused), found
        assert found.counts["accepted"] >= 25


def test_sets_that_cannot_be_read(tmp_path: Path) -> None:
    """Refused when nothing is left to read; else named, each with its reason."""
    due = '{"forecast_due_date": "2026-03-01", "questions": '
    texts = {"a": "{", "b": "[" * 100_000, "f": due + "[1e9999999999999999999]}", "g": due + '[], "questions": []}'}
    for name, text in {**{f"{name}.json": text for name, text in texts.items()}, "c.json": '"x"'}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with ticking() as ledger:
        with pytest.raises(Refused, match="not JSON"):
            import_into(ledger, "forecastbench", tmp_path)
        (tmp_path / "d.json").write_text('{"questions": []}', encoding="utf-8")
        with pytest.raises(Refused):
            import_into(ledger, "forecastbench", tmp_path)
        shutil.copy(SETS / QUESTIONS, tmp_path / "e.json")
        found = import_into(ledger, "forecastbench", tmp_path)
        assert sorted(line.partition(":")[0] for line in found.refused) == [f"{name}.json" for name in "abdfg"]
        assert found.left_out == {"a JSON file that is no question, forecast or resolution set": 1}


def test_one_set_alone_is_read(tmp_path: Path) -> None:
    """Answers to questions that an earlier import opened."""
    with ticking() as ledger:
        import_into(ledger, "forecastbench", SETS / QUESTIONS)
        import_into(ledger, "forecastbench", SETS / OWL)
        found = import_into(ledger, "forecastbench", SETS / ANSWERS)
        assert (found.counts["accepted"], found.counts["refused"]) == (4, 0)
        board = {row[:2]: row[2] for row in table(ledger, "leaderboard", "contest", "participant", "score")}
        assert board["2026-03-01 dataset", "Acme: owl-1"] == "0.225000000"


# What the leaderboard with people of 2024 (leaderboards/csv/human_leaderboard_overall.csv) prints of forecasters that
# always say the same: on 422 questions of data sets, and on 76 markets.
PRINTED = {"0.5": ("0.25", "0.211"), "0": ("0.327", "0.254"), "1": ("0.673", "0.667")}


def round_of_2024(folder: Path) -> None:
    """A round with as many questions and answers as the leaderboard's.

    They follow from what it prints. Of 422 answers, 138 are yes: always 0 scores 138 / 422 = 0.327. Of 52 markets that
    were resolved, 14 are yes: 0.269. Of 24 others it takes the price o for the answer, and prints 0.222 and 0.530 for
    always 0 and always 1: the means of o² and of (1 - o)², so that the mean of o is 0.346. Half of the prices are
    0.0262 and half 0.6658. Always 0.5 then scores 0.222 - 0.346 + 0.25 = 0.126, as it prints.
    """
    answers = {"fred": [1.0] * 138 + [0.0] * 284, "manifold": [1.0] * 14 + [0.0] * 38 + [0.0262, 0.6658] * 12}
    head = {"forecast_due_date": "2024-07-21", "question_set": "2024-07-21-human.json"}
    asked = [(source, f"{source}{number}", value) for source in answers for number, value in enumerate(answers[source])]
    date = {"fred": "2024-07-28", "manifold": None}
    sets: dict[str, dict[str, Any]] = {
        "question_sets/2024-07-21-human.json": {
            "questions": [
                {"id": name, "source": source, "resolution_dates": [date[source]] if date[source] else "N/A"}
                for source, name, _ in asked
            ]
        },
        "resolution_sets/2024-07-21_resolution_set.json": {
            "resolutions": [
                {"id": name, "source": source, "resolution_date": "2024-07-28", "resolved_to": value, "resolved": True}
                for source, name, value in asked
            ]
        },
    }
    for said in PRINTED:
        sets[f"forecast_sets/2024-07-21/always-{said}.json"] = {
            "organization": "ForecastBench",
            "model": f"Always {said}",
            "forecasts": [
                {"id": name, "source": source, "forecast": float(said), "resolution_date": date[source]}
                for source, name, _ in asked
            ],
        }
    for name, content in sets.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(head | content), encoding="utf-8")


def test_the_leaderboard_of_2024_prints_these_scores_of_forecasters_that_always_say_the_same(tmp_path: Path) -> None:
    """To three decimals, as it prints them; fractional answers count as shares."""
    round_of_2024(tmp_path)
    with ticking() as ledger:
        assert import_into(ledger, "forecastbench", tmp_path).refused == []
        rows = table(ledger, "leaderboard", "contest", "participant", "score")
    scores = {(contest, who): Decimal(score) for contest, who, score in rows}
    for said, printed in PRINTED.items():
        for contest, score in zip(("dataset", "market"), printed, strict=True):
            assert round(scores[f"2024-07-21 {contest}", f"ForecastBench: Always {said}"], 3) == Decimal(score)
