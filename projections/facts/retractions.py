"""Forecasts that were retracted later: from which log position on each counts as never made."""

from dataclasses import replace

import numpy as np

from forecast_ledger.ledger.core.values import NEVER
from forecast_ledger.projections.facts.columns import Facts, Forecasts


def with_retractions(facts: Facts, forecasts: Forecasts) -> Forecasts:
    """Return forecasts, question after question, each with the log position of the first retraction after it."""
    if not facts.retractions:
        return forecasts
    retracted = forecasts.retracted.copy()
    for code, retractions in facts.retractions.items():
        own = slice(*np.searchsorted(forecasts.question, [code, code + 1]))
        who, at = np.array(sorted((who, at) for at, who in retractions), np.int64).T
        width = max(int(forecasts.position[own].max(initial=0)), int(at.max())) + 1
        after = np.searchsorted(who * width + at, forecasts.participant[own] * width + forecasts.position[own])
        place = np.minimum(after, len(at) - 1)
        is_next = (after < len(at)) & (who[place] == forecasts.participant[own])
        retracted[own] = np.where(is_next, at[place], NEVER)
    return replace(forecasts, retracted=retracted)
