"""How far a claimed instant may lie from the ledger's clock, to the microsecond, however a command is sent."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from forecast_ledger import ForecastColumns, Ledger
from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand, CloseQuestion, SubmitForecast
from tests.replay.cli.test_main import run
from tests.support.given import NOW, contest, forecast, opened

MINUTE = 60 * 10**6


def at(offset: int) -> str:
    """An instant so many µs after the ledger's clock."""
    return format_instant(NOW + offset)


def begun(claims: str | None) -> Ledger:
    """A ledger with an open question, and a clock that stands still."""
    ledger = Ledger.open(":memory:", clock=lambda: NOW, claims=claims)
    ledger.handle(opened(at=at(0), opens_at=at(-9 * MINUTE), closes_at=at(9 * MINUTE)), "begun")
    return ledger


@pytest.mark.parametrize(
    ("claims", "offset", "code"),
    [
        ("5m", -5 * MINUTE, ""),
        ("5m", -5 * MINUTE - 1, "claimed_too_early"),
        ("5m", 5 * MINUTE, ""),
        ("5m", 5 * MINUTE + 1, "claimed_too_late"),
        ("1m,0s", -MINUTE, ""),
        ("1m,0s", -MINUTE - 1, "claimed_too_early"),
        ("1m,0s", 0, ""),
        ("1m,0s", 1, "claimed_too_late"),
        (None, -8 * MINUTE, ""),
        (None, 8 * MINUTE, ""),
    ],
)
@pytest.mark.parametrize("way", ["quick", "slow", "columns"])
def test_an_instant_is_taken_up_to_the_limit(claims: str | None, offset: int, code: str, way: str) -> None:
    """Both limits are taken, a microsecond beyond them is not; a forecast takes the same limits as a command."""
    quick = forecast(at=at(offset), id="f")
    asked: dict[str, Sequence[AnyCommand]] = {
        "quick": [quick],
        "slow": [CloseQuestion(question="rain", at=at(offset), id="f")],
        "columns": ForecastColumns(
            id=["f"], at=[at(offset)], question=["rain"], participant=["ada"], probability=["0.7"]
        ),
    }
    with begun(claims) as ledger:
        [outcome] = ledger.handle_many(asked[way])
        assert (outcome.code if isinstance(outcome, Refused) else "") == code


def test_the_refusal_names_the_limit_and_the_remedy() -> None:
    """Without `at`, the command is taken, whatever the limits are."""
    with begun("90s,0s") as ledger:
        with pytest.raises(Refused) as early:
            ledger.handle(forecast(at=at(-2 * MINUTE)), "f")
        assert str(early.value) == (
            f"claimed_too_early: at = {at(-2 * MINUTE)!r}: at most 90 s before the recording, {at(0)}; "
            "leave `at` out: the ledger stamps the instant of the recording"
        )
        with pytest.raises(Refused, match=r"claimed_too_late: .*: at most 0 s after the recording"):
            ledger.handle(forecast(at=at(MINUTE)), "f")
        assert ledger.handle(SubmitForecast(question="rain", participant="ada", probability="0.7"), "f").last == 2


def test_a_retry_is_a_duplicate_after_the_limit_has_passed() -> None:
    """What is recorded was in time; the answer that was lost is given again."""
    now = [NOW]
    with Ledger.open(":memory:", clock=lambda: now[0], claims="5m") as ledger:
        first = ledger.handle(contest(at=at(0)), "c")
        now[0] += 60 * MINUTE
        assert ledger.handle(contest(at=at(0)), "c") == Receipt("c", first.first, first.last, duplicate=True)


def test_a_claim_is_refused_before_what_the_state_would_refuse() -> None:
    """The order of precedence: the limits need no state."""
    with begun("5m") as ledger, pytest.raises(Refused) as refused:
        ledger.handle(CloseQuestion(question="none", at=at(-60 * MINUTE)), "x")
    assert refused.value.code == "claimed_too_early"


def test_imported_times_of_receipt_are_what_claims_are_compared_with() -> None:
    """A history may be held to the same limits, by the times at which it was received."""
    with Ledger.open(":memory:", clock=lambda: NOW, claims="5m") as ledger:
        commands = [contest(at=at(-60 * MINUTE), id="a"), contest("two", at=at(-60 * MINUTE), id="b")]
        good, bad = ledger.handle_many(commands, recorded_at=[NOW - 58 * MINUTE, NOW])
        assert isinstance(good, Receipt)
        assert isinstance(bad, Refused)
        assert bad.code == "claimed_too_early"


@pytest.mark.parametrize("claims", ["", "5", "m", "5m,", "5m,0s,1s", "-5m", "PT5M", "5 m", "1.5h"])
def test_limits_that_are_no_durations_are_wrong_usage(claims: str, tmp_path: Path) -> None:
    """Nothing is opened, and no file is made."""
    with pytest.raises(ValueError, match="is no duration: give a number and s, m, h or d, such as 90m"):
        Ledger.open(tmp_path / "log.db", claims=claims)
    lines = tmp_path / "lines.jsonl"
    lines.write_text("")
    assert run("append", str(tmp_path / "log.db"), str(lines), "--claims", claims).exit_code == 2
    assert [*tmp_path.iterdir()] == [lines]


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--atomic"]])
def test_the_command_line_takes_limits(tmp_path: Path, options: list[str]) -> None:
    """Without them, a history is brought in as it claims; a folder of segments takes them too."""
    line = {"id": "c", "type": "open_contest", "at": "2020-03-01T00:00:00Z", "contest": "cup", "rules": "baseline"}
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps(line))
    for log in ("log.db", "folder/"):
        result = run("append", str(tmp_path / log), str(lines), "--claims", "5m", *options)
        assert (result.exit_code, "claimed_too_early" in result.stderr) == (1, True)
        assert run("append", str(tmp_path / f"free{log}"), str(lines), *options).exit_code == 0
