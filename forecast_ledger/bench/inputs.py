"""The seasons that are measured: commands with seeded random times and probabilities, and their facts."""

import random
from decimal import Decimal
from typing import Any

import numpy as np

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.values import PROBABILITY, format_instant
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AnyCommand,
    OpenContest,
    OpenQuestion,
    Range,
    ResolveQuestion,
    SubmitForecast,
)
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.columns import Facts, Forecasts
from forecast_ledger.projections.facts.from_log import facts

_LOWER = (10, 25, *range(50, 500, 50))  # 1e-3
LEVELS = tuple(level * 10**6 for level in (*_LOWER, 500, *(1_000 - level for level in reversed(_LOWER))))
START = 1_767_225_600_000_000  # µs
DAY = 86_400 * 10**6
BATCH = 10_000
COUNT = 200_000  # forecasts of a season


def opening(questions: int, *, numeric: bool = False, rules: str = "relative-2022-04") -> list[AnyCommand]:
    """A contest over so many questions of 30 days."""
    at, closes_at = format_instant(START), format_instant(START + 30 * DAY)
    commands: list[AnyCommand] = [OpenContest(id="c", at=at, contest="c", rules=rules, pool=10_000)]
    for q in range(questions):
        fields: dict[str, Any] = {"question": f"q{q}", "opens_at": at, "closes_at": closes_at}
        kind: dict[str, Any] = (
            {"kind": "numeric", "range": Range(lower=0, upper=100)} if numeric else {"kind": "binary"}
        )
        commands.append(OpenQuestion(id=f"o{q}", at=at, **kind, **fields))
        commands.append(AddQuestion(id=f"a{q}", at=at, contest="c", question=f"q{q}"))
    return commands


def forecasts(count: int, questions: int, participants: int) -> list[AnyCommand]:
    """Forecasts in order of time, each by a random participant on a random question."""
    chance = random.Random(1)
    step = 29 * DAY // count
    return [
        SubmitForecast(
            id=f"f{i}",
            at=format_instant(START + 1 + i * step),
            question=f"q{chance.randrange(questions)}",
            participant=f"p{chance.randrange(participants)}",
            probability=Decimal(chance.randrange(1_000, 999_000)) / 10**6,
        )
        for i in range(count)
    ]


def cdfs(count: int, participants: int) -> list[AnyCommand]:
    """Forecasts of a numeric question: 201 points each."""
    chance = random.Random(2)
    step = 29 * DAY // count
    commands: list[AnyCommand] = []
    for i in range(count):
        inner = sorted(chance.randrange(10**10) for _ in range(199))
        cdf = tuple(Decimal(height).scaleb(-10) for height in (0, *inner, 10**10))
        at, who = format_instant(START + 1 + i * step), f"p{chance.randrange(participants)}"
        commands.append(SubmitForecast(id=f"f{i}", at=at, question="q0", participant=who, cdf=cdf))
    return commands


def resolutions(questions: int, *, numeric: bool = False, after: int = 31 * DAY) -> list[AnyCommand]:
    """Every other question resolves yes; a numeric one as 28.4."""
    at = format_instant(START + after)
    return [
        ResolveQuestion(id=f"r{q}", at=at, question=f"q{q}", value="28.4")
        if numeric
        else ResolveQuestion(id=f"r{q}", at=at, question=f"q{q}", outcome=("yes", "no")[q % 2])
        for q in range(questions)
    ]


def quantile_commands(count: int) -> list[AnyCommand]:
    """Forecasts of 23 quantiles of up to four decimals."""
    chance, commands = random.Random(3), list[AnyCommand]()
    for i in range(count):
        quantiles = tuple(Decimal(number).scaleb(-4) for number in sorted(chance.choices(range(10**7), k=len(LEVELS))))
        at = format_instant(START + 1 + i)
        commands.append(SubmitForecast(id=f"f{i}", at=at, question="w", participant=f"p{i % 50}", quantiles=quantiles))
    return commands


def handle_all(ledger: Ledger, commands: list[AnyCommand]) -> None:
    """Append in batches; every command must be accepted."""
    for i in range(0, len(commands), BATCH):
        if not all(isinstance(outcome, Receipt) for outcome in ledger.handle_many(commands[i : i + BATCH])):
            raise AssertionError("a command of the benchmark was refused")


def one_question(count: int, participants: int, *, numeric: bool = False) -> Facts:
    """A question with so many forecasts, which is resolved."""
    with Ledger.open(":memory:") as ledger:
        handle_all(ledger, opening(1, numeric=numeric))
        handle_all(ledger, cdfs(count, participants) if numeric else forecasts(count, 1, participants))
        handle_all(ledger, resolutions(1, numeric=numeric))
        return facts(ledger.read())


def season(questions: int, contests: int, *, unlike: bool = False) -> Facts:
    """A forecast on each question, these divided among contests; unlike: no two questions are open equally long."""
    chance, at = random.Random(4), format_instant(START)
    commands: list[AnyCommand] = [
        OpenContest(id=f"c{c}", at=at, contest=f"c{c}", rules="relative-2022-04", pool=100) for c in range(contests)
    ]
    for q in range(questions):
        closes_at = format_instant(START + 30 * DAY - unlike * chance.randrange(DAY))
        fields: dict[str, Any] = {"question": f"q{q}", "kind": "binary", "opens_at": at, "closes_at": closes_at}
        commands.append(OpenQuestion(id=f"o{q}", at=at, **fields))
        commands.append(AddQuestion(id=f"a{q}", at=at, contest=f"c{q % contests}", question=f"q{q}"))
        forecast: dict[str, Any] = {"question": f"q{q}", "participant": "ada", "probability": Decimal("0.7")}
        commands.append(SubmitForecast(id=f"f{q}", at=at, **forecast))
    with Ledger.open(":memory:", clock=lambda: START) as ledger:  # what is drawn depends on the instants
        handle_all(ledger, [*commands, *resolutions(questions)])
        return facts(ledger.read())


def crowd(questions: int, participants: int, count: int) -> Facts:
    """The season of `_season`, unlike, with so many forecasts of many participants in place of its own."""
    facts, chance = season(questions, 1, unlike=True), np.random.default_rng(4)
    for number in range(participants):
        facts.participant_codes.add(f"p{number}")
    indices, numbers = np.arange(count), chance.integers(10**6, 999 * 10**6, count)
    question = np.sort(chance.integers(0, questions, count))
    at = START + 1 + chance.permutation(count) * (28 * DAY // count)
    at = at[np.lexsort((at, question))]
    position = facts.as_of + 1 + np.argsort(np.argsort(at))
    facts.held = Forecasts(
        position=position,
        at=at,
        recorded_at=at,
        question=question,
        participant=chance.integers(0, participants, count),
        made=np.ones(count, bool),
        until=np.full(count, facts.forecasts.until[0]),
        retracted=np.full(count, facts.forecasts.retracted[0]),
        start=2 * indices,
        chances=np.stack([numbers, PROBABILITY - numbers], axis=1).reshape(-1),
    )
    facts.as_of = int(position.max())
    facts.statuses.clear()
    return facts
