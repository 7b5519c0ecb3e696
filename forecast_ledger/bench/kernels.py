"""Kernels of quantiles and cdfs, against plain NumPy and, where it is installed, scoringrules."""

import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from forecast_ledger.bench.inputs import LEVELS
from forecast_ledger.bench.timing import fastest
from forecast_ledger.ledger.core.values import CUMULATIVE, PROBABILITY
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.projections.core.arrays import Int64Array, half_even_many
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.range_kernels import Numbers


def plain_pinball(quantiles: Int64Array, answers: Int64Array) -> Int64Array:
    """The losses of `pinball` on quantiles of four decimals, without its checks for overflow."""
    gaps = quantiles - answers[:, None]
    slopes = np.where(gaps > 0, PROBABILITY, 0) - np.array(LEVELS)
    return half_even_many((gaps * slopes).sum(axis=1), len(LEVELS) * PROBABILITY // 20_000)


def plain_crps(heights: Int64Array, at: Int64Array) -> Int64Array:
    """The arithmetic of `crps` for answers at the lower edge of a bin; its sums may wrap here."""
    row, bins = np.arange(len(heights)), heights.shape[1] - 1
    gaps = np.where(np.arange(bins + 1) > at[:, None], CUMULATIVE - heights, heights)
    before, after = gaps[:, :-1], gaps[:, 1:]
    pieces = before * before + before * after + after * after
    low, high = CUMULATIVE - heights[row, at], CUMULATIVE - heights[row, at + 1]
    pieces[row, at] = low * low + low * high + high * high
    return half_even_many(pieces.sum(axis=1), 3 * bins * 10**8)


def kernels(_: Path) -> dict[str, float]:
    """Measure 241,933 forecasts of 23 quantiles and 20,000 cdfs of 201 points against plain NumPy and scoringrules."""
    chance = np.random.default_rng(4)
    question, count = np.sort(chance.integers(0, 2_000, 241_933)), len(LEVELS)
    quantiles = np.sort(chance.integers(0, 10**7, (len(question), count)), axis=1)
    units = chance.integers(0, 10**3, 2_000)
    span = NumericRange(lower="0", upper="1000000", levels=LEVELS, decimals=4)
    start, ones = np.arange(len(question)) * count, np.ones(len(question), np.int64)
    pinball_numbers = Numbers(
        quantiles.reshape(-1), start, count * ones, ones, question, [span] * 2_000, list(map(str, units))
    )
    answers = (units * 10**4)[question]
    if not (KERNELS["pinball"].of_numbers(pinball_numbers) == plain_pinball(quantiles, answers)).all():  # type: ignore[misc]
        raise AssertionError("plain NumPy gives other losses")
    values, floats, levels = answers / 10**4, quantiles / 10**4, np.array(LEVELS) / PROBABILITY
    pinball = fastest(lambda: KERNELS["pinball"].of_numbers(pinball_numbers))  # type: ignore[misc]
    heights = np.sort(chance.integers(0, CUMULATIVE, (20_000, 201)), axis=1)
    at, ones = np.arange(20_000) % 200, np.ones(20_000, np.int64)
    bins = NumericRange(lower="0", upper="200", open_lower=True, open_upper=True, bins=200)
    texts = list(map(str, range(200)))
    crps_numbers = Numbers(heights.reshape(-1), np.arange(20_000) * 201, 201 * ones, ones, at, [bins] * 200, texts)
    crps = fastest(lambda: KERNELS["crps"].of_numbers(crps_numbers))  # type: ignore[misc]
    parts, shares = np.clip(at[:, None] - np.arange(200), 0, 1), heights / CUMULATIVE
    ends = shares[:, :-1], 1 - shares[:, 1:]
    theirs = _scoringrules()
    rows = {
        "241,933 forecasts of 23 quantiles, pinball: time over plain NumPy's (aim 1.5)": pinball
        / fastest(lambda: plain_pinball(quantiles, answers))
    }
    if theirs:
        rows["the same: time over scoringrules'"] = pinball / fastest(
            lambda: theirs.crps_quantile(values, floats, levels)
        )
    rows["20,000 cdfs of 201 points, crps: time over plain NumPy's (aim 1.5)"] = crps / fastest(
        lambda: plain_crps(heights, at)
    )
    if theirs:
        rows["the same: time over scoringrules', bin by bin"] = crps / fastest(
            lambda: theirs.crps_uniform(parts, 0.0, 1.0, *ends).mean(axis=1)
        )
    return rows


def _scoringrules() -> Any:
    """The library, whose import warns; None if it is not installed."""
    if find_spec("scoringrules") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module("scoringrules")
