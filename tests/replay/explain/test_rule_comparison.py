"""The board of a contest under several rule sets, and how alike the ranks are."""

import json
from decimal import Decimal, localcontext
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.explain.what_if import kendall_tau_b, spearman_rho
from tests.replay.cli.test_main import run

RANKS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), max_size=12)


def asked(log: str, *arguments: str) -> list[dict[str, Any]]:
    """The rows that `what-if` prints for the contest `plain`."""
    result = run("what-if", log, "--contest", "plain", *arguments, "--format", "json")
    assert result.exit_code == FINE, result.stderr
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def rounded(number: int, squared: int) -> str | None:
    """Number / sqrt(squared) with 60 digits, rounded to 9 decimals."""
    if not squared:
        return None
    with localcontext() as context:
        context.prec = 60
        text = f"{(Decimal(number) / Decimal(squared).sqrt()).quantize(Decimal('1e-9')):.9f}"
        return text.removeprefix("-") if Decimal(text) == 0 else text


@given(RANKS)
def test_kendalls_tau_b_is_that_of_its_definition(pairs: list[tuple[int, int]]) -> None:
    """Concordant less discordant pairs, over the root of the pairs that are not tied in each list."""
    sign = [((a > c) - (a < c), (b > d) - (b < d)) for (a, b), (c, d) in combinations(pairs, 2)]
    concordance = sum(x * y for x, y in sign)
    expected = rounded(concordance, sum(x * x for x, _ in sign) * sum(y * y for _, y in sign))
    assert kendall_tau_b([a for a, _ in pairs], [b for _, b in pairs]) == expected


@given(RANKS)
def test_spearmans_rho_is_the_correlation_of_mid_ranks(pairs: list[tuple[int, int]]) -> None:
    """A mid-rank is the mean of the places that tied ones take; twice it is a whole number."""

    def centred(values: list[int]) -> list[int]:
        places = [sum(other < each for other in values) + sum(other <= each for other in values) + 1 for each in values]
        return [len(places) * place - sum(places) for place in places]

    ours, theirs = centred([a for a, _ in pairs]), centred([b for _, b in pairs])
    product = sum(x * y for x, y in zip(ours, theirs, strict=True))
    expected = rounded(product, sum(x * x for x in ours) * sum(y * y for y in theirs))
    assert spearman_rho([a for a, _ in pairs], [b for _, b in pairs]) == expected


def test_correlations_worked_out_by_hand() -> None:
    """Five ranks with a tie: 8 pairs in order, 1 against, 1 tied, so 7 / sqrt(9 * 10); 1 - 6 * 2 / (4 * 15) = 0.8."""
    assert kendall_tau_b([1, 2, 2, 4, 5], [1, 2, 3, 5, 4]) == "0.737864787"
    assert spearman_rho([1, 2, 3, 4], [2, 1, 3, 4]) == "0.800000000"
    assert (kendall_tau_b([1, 2, 3], [3, 2, 1]), spearman_rho([1, 2, 3], [3, 2, 1])) == ("-1.000000000",) * 2
    assert (kendall_tau_b([], []), spearman_rho([4], [4])) == (None, None)


def test_each_rule_set_has_a_rank_and_a_score_as_its_own_board_has_them(log: str) -> None:
    """As `what-if` with one of them shows, and for the contest's own rules as the leaderboard shows."""
    rows = asked(log, "--rules", "baseline", "--rules", "peer-2024-03")
    assert list(rows[0]) == [
        "participant", "rank:own", "score:own", "rank:baseline", "score:baseline", "rank:peer-2024-03",
        "score:peer-2024-03",
    ]  # fmt: skip
    board = json.loads(run("leaderboard", log, "plain", "--format", "json").stdout)
    own = {row["participant"]: (row["rank"], row["score"]) for row in board}
    assert {row["participant"]: (row["rank:own"], row["score:own"]) for row in rows} == own
    assert [row["participant"] for row in rows] == [*own]
    for name in ("baseline", "peer-2024-03"):
        expected = {who: {"rank": rank, "score": score} for who, (rank, score) in own.items()}
        for change in asked(log, "--rules", name, "--show", "leaderboard"):
            if change["column"] in {"rank", "score"}:
                expected[change["participant"]][change["column"]] = change["new"]
        found = {row["participant"]: {part: row[f"{part}:{name}"] for part in ("rank", "score")} for row in rows}
        assert found == expected


def test_correlations_are_told_and_can_be_printed_as_a_table(log: str) -> None:
    """Each pair of rule sets; the participants whom only one of them ranks are left out."""
    options = ["--contest", "plain", "--rules", "baseline", "--rules", "peer-2024-03"]
    told = run("what-if", log, *options).stderr
    assert (
        "ranks by own and baseline: Kendall's tau-b 0.333333333, Spearman's rho 0.400000000; 4 ranked by both" in told
    )
    rows = [tuple(row.values()) for row in asked(log, *options[2:], "--correlations")]
    assert rows[0] == ("own", "baseline", 4, "0.333333333", "0.400000000")
    assert [row[:3] for row in rows[1:]] == [("own", "peer-2024-03", 4), ("baseline", "peer-2024-03", 4)]


def test_the_table_that_is_compared_by_default_is_the_leaderboard(log: str) -> None:
    """The options say what else there might be; which table, most people mean."""
    options = ["what-if", log, "--contest", "plain", "--without", "C"]
    found, asked_for = run(*options), run(*options, "--show", "leaderboard")
    assert found.stdout
    assert (found.exit_code, found.stdout, found.stderr) == (asked_for.exit_code, asked_for.stdout, asked_for.stderr)


def test_rule_sets_of_one_name_are_numbered(log: str, tmp_path: Path) -> None:
    """A file has a JSON object, with or without a byte order mark; its name may be that of a preset, or of another."""
    path = tmp_path / "mine.json"
    path.write_bytes(b'\xef\xbb\xbf{"name": "baseline", "kernel": "ln", "cdf_kernel": "ln"}')
    [row, *_] = asked(log, "--rules", "baseline", "--rules", f"@{path}", "--rules", f"@{path}")
    assert [name for name in row if name.startswith("rank")] == [
        "rank:own", "rank:baseline", "rank:baseline (2)", "rank:baseline (3)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rules", "baseline", "--rules", "spot-peer", "--show", "scores"], "leave out --show"),
        (["--rules", "baseline", "--show", "scores", "--correlations"], "--correlations needs several --rules"),
        (["--rules", "@no-such-file", "--show", "scores"], "no-such-file: No such file or directory"),
        (["--rules", "@.", "--show", "scores"], "Is a directory"),
        (["--rules", "@binary", "--show", "scores"], "binary: not UTF-8"),
        (["--rules", "@text", "--show", "scores"], "text: not a JSON object"),
        (["--rules", "@wrong", "--show", "scores"], "kernl"),
    ],
)
def test_wrong_usage_is_told(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    """The exit code is 2; a file that is no rule set is named."""
    monkeypatch.chdir(tmp_path)
    Path("binary").write_bytes(b"\xff{}")
    Path("text").write_bytes(b"baseline")
    Path("wrong").write_bytes(b'{"name": "mine", "kernl": "ln"}')
    result = run("what-if", log, "--contest", "plain", *options)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert message in result.stderr


def test_rules_lists_the_presets_and_the_fields_of_one(tmp_path: Path) -> None:
    """Every preset with its source; every field with its value, its default and what it means."""
    rows = json.loads(run("rules", "--format", "json").stdout)
    assert [row["preset"] for row in rows] == [*PRESETS]
    assert all(row["source"] for row in rows)
    fields = {row["field"]: row for row in json.loads(run("rules", "arena-v1", "--format", "json").stdout)}
    assert {*fields} >= {*RuleSet.__struct_encode_fields__} - {"trading"}
    assert fields["trading.period_days"]["value"].isdecimal()
    assert all(row["meaning"] for row in fields.values())
    mine = tmp_path / "mine.json"
    mine.write_text('{"name": "mine", "kernel": "log2"}', encoding="utf-8")
    rows = json.loads(run("rules", f"@{mine}", "--format", "json").stdout)
    own = {row["field"]: (row["value"], row["default"]) for row in rows}
    assert (own["kernel"], own["scale"], own["name"]) == (("log2", "none"), ("plain", "plain"), ("mine", None))
    unknown = run("rules", "baselin")
    assert (unknown.exit_code, "baseline" in unknown.stderr) == (USAGE, True)
