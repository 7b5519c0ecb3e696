"""A kernel is added by its name in the rule set and its row: nothing else has to change."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.model import rules
from forecast_ledger.projections.scores import kernels
from tests.support.copies import command_line, copied, edit

FUNCTION = '''def missed(numbers: Numbers) -> Int64Array:
    """1 - p, p the probability of what happened."""
    chance: Int64Array = numbers.flat[numbers.start + numbers.outcome]
    return (PROBABILITY - chance) * (QUANTUM // PROBABILITY)


def _missed_uniform(uniform: Uniform) -> int:
    return half_even((uniform.outcomes - 1) * QUANTUM, uniform.outcomes)


'''
ROW = """    "missed": Kernel(
        words="the probability of what did not happen",
        takes=("chances",),
        lower_is_better=True,
        worst=1,
        uniform=_missed_uniform,
        source="a letter to the editor",
        of_numbers=missed,
    ),
"""
RULES: dict[str, Any] = {
    "name": "own",
    "kernel": "missed",
    "period": "covered",
    "total": "kind_means",
    "least_probability_ppm": 0,
}
PEERS: dict[str, Any] = {"name": "peers", "kernel": "missed", "reference": "peers"}
CHANCE: dict[str, Any] = {"name": "uniform", "kernel": "missed", "reference": "uniform"}
OPENED = {"opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-03-11T00:00:00Z", "kind": "binary"}
LINES = [
    *({"type": "open_question", "at": "2026-03-01T00:00:00Z", "question": q, **OPENED} for q in ("rain", "wind")),
    *(
        {"type": "open_contest", "at": "2026-03-01T00:00:00Z", "contest": each["name"], "rules": each}
        for each in (RULES, PEERS, CHANCE)
    ),
    *(
        {"type": "add_question", "at": "2026-03-01T00:00:00Z", "contest": each["name"], "question": q}
        for each in (RULES, PEERS, CHANCE)
        for q in ("rain", "wind")
    ),
    *(
        {"type": "submit_forecast", "at": "2026-03-01T00:00:00Z", "question": q, "participant": who, "probability": p}
        for q, who, p in (("rain", "ada", "0.7"), ("rain", "bo", "0.4"), ("wind", "bo", "0.4"))
    ),
    *(
        {"type": "resolve_question", "at": "2026-03-12T00:00:00Z", "question": q, "outcome": "yes"}
        for q in ("rain", "wind")
    ),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree with one more kernel; two of its files differ."""
    root = copied(tmp_path_factory.mktemp("tree"))
    edit(root, rules, '"ordered_brier", "error"]', '"ordered_brier", "error", "missed"]')
    edit(root, kernels, "def _ln_uniform(", f"{FUNCTION}def _ln_uniform(")
    edit(root, kernels, '    "crps": Kernel(\n', f'{ROW}    "crps": Kernel(\n')
    return root


@pytest.fixture(scope="module")
def run(tree: Path) -> Iterator[Callable[..., str]]:
    """Its command line; `log.db` has two questions in three contests that are scored by the new kernel."""
    said = "".join(json.dumps({"id": str(number)} | line) + "\n" for number, line in enumerate(LINES))
    (tree / "commands.jsonl").write_text(said, encoding="utf-8")
    with command_line(tree) as run:
        run("append", "log.db", "commands.jsonl")
        yield run


def test_a_new_kernel_scores_alone_against_peers_and_against_the_uniform_distribution(run: Callable[..., str]) -> None:
    """1 - p: 0.3 and 0.6; twice the lead over the mean, as two compare with one; less a half."""
    rows = json.loads(run("table", "log.db", "scores", "--format", "json"))
    scores = {(row["contest"], row["question"], row["participant"]): row["score"] for row in rows}
    assert scores == {
        ("own", "rain", "ada"): "0.300000000",
        ("own", "rain", "bo"): "0.600000000",
        ("own", "wind", "bo"): "0.600000000",
        ("peers", "rain", "ada"): "-0.300000000",
        ("peers", "rain", "bo"): "0.300000000",
        ("peers", "wind", "bo"): "0.000000000",
        ("uniform", "rain", "ada"): "-0.200000000",
        ("uniform", "rain", "bo"): "0.100000000",
        ("uniform", "wind", "bo"): "0.100000000",
    }


def test_its_direction_and_its_worst_score_count_on_a_board(run: Callable[..., str]) -> None:
    """The least is best; who has no forecast on a question has 1 there: (0.3 + 1) / 2 and (0.6 + 0.6) / 2."""
    rows = json.loads(run("leaderboard", "log.db", "own", "--format", "json"))
    assert [(row["rank"], row["participant"]) for row in rows] == [(1, "bo"), (2, "ada")]
    assert [row["score"] for row in rows] == ["60.000000000", "65.000000000"]


def test_it_is_explained_in_its_own_words_with_its_source(run: Callable[..., str]) -> None:
    """`explain` prints the words and the source of the kernel's row."""
    explanation = json.loads(run("explain", "log.db", "score", "own", "rain", "ada", "--json"))
    assert explanation["rule"]["words"].startswith("the probability of what did not happen, ")
    assert explanation["rule"]["source"] == "the contest's own; its kernel: a letter to the editor"
    assert explanation["rule"]["fields"]["kernel"] == "missed"


def test_a_rule_set_that_does_not_fit_it_is_refused(tree: Path, run: Callable[..., str]) -> None:
    """The kernel is a loss, so it does not go with a logarithm or a take."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"cdf_kernel": "ln"}, "kernels must agree"),
        ({"take": "coverage_exp"}, "a take needs"),
    ]
    for more, why in wrong:
        line = {"id": why, "type": "open_contest", "at": "2026-03-13T00:00:00Z", "contest": "no", "rules": PEERS | more}
        (tree / "refused.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
        assert why in run("append", "log.db", "refused.jsonl", code=1)
    assert run("verify", "log.db") != ""
