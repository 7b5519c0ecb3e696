"""Scores on other scales, compared with decimals of fifty digits and with what hubEvals publishes."""

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import get_args, get_type_hints

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AddQuestion, AnyCommand, OpenContest, read
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores.range_kernels import TRANSFORMS, Numbers, pinball, transformed
from forecast_ledger.replay.reading.descriptions import describe_rules, describe_score
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, ensemble, entry, forecast, quartiles, resolution
from tests.support.paths import ROOT

HUB = ROOT / "data" / "hub-scores"
SHIFTED = msgspec.json.decode((HUB / "log-shifted.json").read_bytes(), type=RuleSet)
QUANTUM = Decimal("1e-12")


SCALES: dict[str, Callable[[Decimal], Decimal]] = {
    "log_shifted": lambda x: (x + 1).ln(),
    "log": Decimal.ln,
    "log2": lambda x: x.ln() / Decimal(2).ln(),
    "log10": Decimal.log10,
    "sqrt": Decimal.sqrt,
}


def scaled(name: str, units: int, decimals: int) -> Decimal:
    """Return f(x) for x = units x 10^-decimals to fifty digits, then half-even to twelve decimals."""
    with localcontext(prec=50):
        return SCALES[name](Decimal(units).scaleb(-decimals)).quantize(QUANTUM, ROUND_HALF_EVEN)


def test_every_transform_is_tested() -> None:
    """By name."""
    assert {"none", *SCALES} == TRANSFORMS.keys() == {*get_args(get_type_hints(RuleSet)["transform"])}


@pytest.mark.parametrize("name", SCALES)
@settings(max_examples=times(100), deadline=None)
@given(
    drawn=st.lists(
        st.tuples(
            st.integers(0, 12),
            st.lists(st.integers(0, 10) | st.integers(0, 10**13), min_size=3, max_size=3).map(sorted),
            st.integers(0, 10**13),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_quantiles_and_answers_are_transformed_and_rounded_once(
    name: str, drawn: list[tuple[int, list[int], int]]
) -> None:
    """Questions of any number of decimals together, their forecasts with gaps and from the last to the first."""
    flat, start, spans, values = [-7], [], [], []
    if name.startswith("log") and name != "log_shifted":
        drawn = [(decimals, [each + 1 for each in made], answer + 1) for decimals, made, answer in drawn]
    for decimals, made, answer in drawn:
        start.append(len(flat))
        flat += [*made, -7]
        levels = (250_000_000, 500_000_000, 750_000_000)
        spans.append(NumericRange(lower="0", upper="1", open_upper=True, levels=levels, decimals=decimals))
        values.append(format(Decimal(answer).scaleb(-decimals), "f"))
    count = len(drawn)
    numbers = Numbers(
        np.array(flat), np.array(start), np.full(count, 3), np.ones(count, np.int64), np.arange(count), [*spans], values
    )
    numbers = numbers.rows(np.arange(count)[::-1])
    made_of = transformed(name, numbers)
    for row, (decimals, made, answer) in enumerate(reversed(drawn)):
        begin = made_of.start[row]
        found = [Decimal(each).scaleb(-12) for each in made_of.flat[begin : begin + 3].tolist()]
        assert found == [scaled(name, each, decimals) for each in made]
        assert Decimal(made_of.values[count - 1 - row]) == scaled(name, answer, decimals)
        span = made_of.spans[count - 1 - row]
        assert span is not None
        assert span.decimals == 12
    # twice the mean loss of these numbers, in 1e-12
    expected = []
    for decimals, made, answer in reversed(drawn):
        y, scale = Fraction(scaled(name, answer, decimals)), [Fraction(scaled(name, each, decimals)) for each in made]
        losses = [((y < q) - Fraction(k, 4)) * (q - y) for k, q in enumerate(scale, 1)]
        expected.append(round(2 * sum(losses, Fraction(0)) / 3 * 10**12))
    assert pinball(made_of).tolist() == expected


def test_the_published_mean_score_of_a_hubs_model_on_the_shifted_scale() -> None:
    """hubEvals, "Getting started with hubEvals", "Scale transformations": 0.540 for Flusight-baseline.

    The same sixteen forecasts have a mean of 329 on the natural scale. The parts add up to the score here, too.
    """
    commands: list[AnyCommand] = []
    for line in (HUB / "commands.jsonl").read_text(encoding="utf-8").splitlines():
        command = read(line)
        if isinstance(command, OpenContest):
            commands += [command, structs.replace(command, id="log", contest="log", rules=SHIFTED)]
        elif isinstance(command, AddQuestion):
            commands += [command, structs.replace(command, id=f"{command.id}-log", contest="log")]
        else:
            commands.append(command)
    projections = oracle.projected(*commands)
    board = {row["contest"]: row["score"] for row in projections.table("leaderboard").rows()}
    assert f"{Decimal(board['log']):.3f}" == "0.540"
    assert f"{Decimal(board['natural']):.0f}" == "329"
    scores = projections.table("scores").only("contest", "log").rows()
    parts = projections.table("wis_parts").only("contest", "log").rows()
    names = ("dispersion_numerator", "overprediction_numerator", "underprediction_numerator")
    assert [int(row["numerator"]) for row in scores] == [sum(int(row[name]) for name in names) for row in parts]


def test_a_forecast_ten_times_too_high_scores_the_same_in_large_places_as_in_small_ones() -> None:
    """With one level, 0.5, the score is the distance of the logarithms: ln(x + 1) - ln(y + 1), here ln 10."""
    commands: list[AnyCommand] = [contest(rules=SHIFTED)]
    for name, made, answer in (("small", 9, 0), ("large", 99_999, 9_999), ("low", 0, 9)):
        asked = quartiles(name, levels=("0.5",), decimals=0, upper=10**6)
        commands += [asked, entry(question=name), forecast(name, quantiles=(made,)), resolution(name, value=answer)]
    rows = oracle.projected(*commands).table("scores").rows()
    ten = f"{Decimal(10).ln():.9f}"
    assert [row["score"] for row in rows] == [ten] * 3


@pytest.mark.parametrize(
    ("name", "made", "answer", "score"),
    [("log10", 100_000, 10, "4"), ("log2", 32, 4, "3"), ("sqrt", 1_000_000, 16, "996"), ("log", 10, 10, "0")],
)
def test_a_distance_on_another_scale_by_hand(name: str, made: int, answer: int, score: str) -> None:
    """log10 10^5 - log10 10 = 4, log2 32 - log2 4 = 3, √1000000 - √16 = 996; of a median and of a single sample."""
    rules = structs.replace(SHIFTED, transform=name)
    samples = ensemble(samples=1, decimals=0, lower=1, upper=10**6)
    commands: list[AnyCommand] = [
        quartiles(levels=("0.5",), decimals=0, lower=1, upper=10**6),
        samples,
        contest(rules=rules),
        *[entry(question=question) for question in ("flow", "depths")],
        forecast("flow", quantiles=(made,)),
        forecast("depths", samples=(made,)),
        *[resolution(question, value=answer) for question in ("flow", "depths")],
    ]
    rows = oracle.projected(*commands).table("scores").rows()
    assert [row["score"] for row in rows] == [f"{score}.000000000"] * 2


def test_the_words_for_a_score_name_the_transform() -> None:
    """They follow the kernel; rules without a transform have none."""
    words = describe_score(SHIFTED, "pinball")
    assert "of ln(x + 1) for each value and for the answer, counted at single instants" in words
    assert "ln(x + 1)" not in describe_score(structs.replace(SHIFTED, transform="none"), "pinball")
    assert describe_rules(SHIFTED, 1, words, "pinball")["source"].endswith("doi:10.1371/journal.pcbi.1011393")
    both = structs.replace(SHIFTED, kernel="brier")
    assert "ln(x + 1)" not in describe_score(both, "brier")
