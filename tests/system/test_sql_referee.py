"""A referee: DuckDB computes the same integers from sealed segments, in SQL that shares no code with the project."""

import random
from pathlib import Path

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand, WithdrawForecast
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.files.export import seal
from forecast_ledger.replay.reading.replay import replay
from tests.support.given import DAY, NOW, contest, day, entry, forecast, micros, opened, resolution

LOSSES = RuleSet(name="losses", kernel="brier", reference="peers", period="scheduled")
NUMERATORS = """  -- the time against peers is counted in 2^-24 of a microsecond
CREATE MACRO rounded(n, d) AS  -- half-even, of numbers that are not negative
    n // d + CASE WHEN 2 * (n % d) > d OR (2 * (n % d) = d AND (n // d) % 2 = 1) THEN 1 ELSE 0 END;
WITH event AS (SELECT event->>'type' AS type, event->>'question' AS question, event FROM
        (SELECT event::JSON AS event FROM 'FOLDER/*.others.parquet')),
    question AS (SELECT question, (event->>'opens_at')::BIGINT AS opens_at, (event->>'closes_at')::BIGINT AS closes_at
        FROM event WHERE type = 'question_opened.v1'),
    answer AS (SELECT question, (event->>'outcome')::INT AS outcome, (event->>'known_at')::BIGINT AS known_at
        FROM event WHERE type = 'question_resolved.v1'),
    said AS (SELECT *, epoch_us(claimed_at) AS moment,
            lead(epoch_us(claimed_at)) OVER (PARTITION BY question, participant ORDER BY position) AS next
        FROM 'FOLDER/*.forecasts.parquet'),
    stood AS (SELECT question, participant, greatest(moment, opens_at) AS start,
            least(coalesce(next, closes_at), coalesce(epoch_us(until), closes_at), closes_at, known_at) AS finish,
            (1000000000 - numbers[outcome + 1])::HUGEINT AS missed
        FROM said JOIN question USING (question) JOIN answer USING (question) WHERE made),
    standing AS (SELECT *, rounded(missed * missed, 1000000::HUGEINT) AS own FROM stood WHERE start < finish),
    change AS (SELECT question, start AS moment, 1 AS people, own AS losses FROM standing
        UNION ALL SELECT question, finish, -1, -own FROM standing),
    instant AS (SELECT question, moment, sum(people)::HUGEINT AS people, sum(losses)::HUGEINT AS losses
        FROM change GROUP BY ALL),
    step AS (SELECT question, moment, (lead(moment) OVER w - moment)::HUGEINT AS lasts,
            (sum(people) OVER w)::HUGEINT AS n, (sum(losses) OVER w)::HUGEINT AS losses
        FROM instant WINDOW w AS (PARTITION BY question ORDER BY moment)),
    compared AS (SELECT question, moment, losses // n AS mean,
            rounded((lasts * n) << 24, n - 1) AS weight,
            rounded(((losses % n) * lasts) << 24, n - 1) AS beyond
        FROM step WHERE n > 1)
SELECT standing.question, participant, coalesce(sum(own * weight - weight * mean - beyond), 0)::HUGEINT
FROM standing LEFT JOIN compared
ON compared.question = standing.question AND compared.moment >= start AND compared.moment < finish
GROUP BY ALL ORDER BY ALL
"""


def nine_questions(dice: random.Random) -> list[AnyCommand]:
    """Nine questions of unlike lengths; forecasts replaced, withdrawn, ended by themselves, in the same instant."""
    commands: list[AnyCommand] = [contest("c", rules=LOSSES)]
    for number in range(9):
        name = f"q{number}"
        closes = micros(12 + number, hour=number)
        commands += [opened(name, closes_at=format_instant(closes)), entry("c", name)]
        instants = sorted(dice.randrange(micros(10), closes) for _ in range(60))
        for at in instants + instants[-3:]:
            who, when = f"p{dice.randrange(8)}", format_instant(at)
            if dice.random() < 0.15:
                commands.append(WithdrawForecast(at=when, question=name, participant=who))
                continue
            until = format_instant(at + DAY) if dice.random() < 0.2 else None
            chance = f"0.{dice.randrange(10**9):09d}"
            commands.append(forecast(name, participant=who, at=when, probability=chance, until=until))
        known_at = day(11 + number) if number % 2 else None
        commands.append(resolution(name, outcome=dice.choice(["yes", "no"]), known_at=known_at))
    return commands


@pytest.mark.parametrize("seed", range(2))
def test_the_referee_finds_every_numerator_of_peer_scores(seed: int, tmp_path: Path) -> None:
    """The folder of segments is all that it reads: sums in 128-bit integers, equal to the last bit."""
    log, folder = tmp_path / "log.db", tmp_path / "segments"
    commands = [structs.replace(command, id=f"c{n}") for n, command in enumerate(nine_questions(random.Random(seed)))]
    with Ledger.open(log, clock=lambda: NOW + 99 * DAY) as ledger:
        ledger.handle_many(commands)  # some withdrawals are refused, since nothing stands
        projections = replay(ledger).projections
    seal(log, folder, rows=200)
    questions, rows = projections.scored("c")
    names = [answer.question.question for answer in questions.answers]
    labels = projections.facts.participant_codes.labels
    columns = (rows.question.tolist(), rows.participant.tolist(), rows.numerator.integers())
    ours = sorted((names[question], labels[who], number) for question, who, number in zip(*columns, strict=True))
    duckdb = pytest.importorskip("duckdb", reason="duckdb, which the test extra installs, is not installed")
    with duckdb.connect() as referee:
        assert referee.sql(NUMERATORS.replace("FOLDER", str(folder))).fetchall() == ours
    assert len(ours) > 60
