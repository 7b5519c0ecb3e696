"""All tables of a log whose questions are scored in parts, by one of the engines."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import numpy as np

from forecast_ledger.projections.catalogue.catalogue import BUILT
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.catalogue.question_parts import finish, needed
from forecast_ledger.replay.engines.engines import ENGINES, Engine, processors
from forecast_ledger.replay.engines.log_frame import LogFrame, UnreadForecasts
from forecast_ledger.replay.engines.tasks import FORECASTS, Shared, divide, tasks

MANY = 1 << 22  # forecasts from which on it is worth starting processes


def engine_for(frame: LogFrame) -> Engine:
    """Return the engine for a log: processes, if there are many forecasts, and processors for more than one."""
    return "processes" if processors() > 1 and frame.frame.counts.sum() >= MANY else "local"


def divided(
    frame: LogFrame, engine: Engine, tables: Collection[str] = BUILT, forecasts: int = FORECASTS
) -> Projections:
    """Return the projections of a log, with all that these tables need of the forecasts on each question.

    A table that needs more has all forecasts read when it is asked for. forecasts: of the questions that are scored
    together, about. Raises Corrupt, Unavailable.
    """
    wanted = needed(tables)
    shared = Shared(frame.frame.facts, frame.sealed, wanted)
    every = np.arange(len(shared.facts.questions))
    facts = replace(shared.facts, forecasts=UnreadForecasts.of(partial(frame.forecasts_on, every)))
    parts = ENGINES[engine](shared, tasks(frame, divide(frame, forecasts))) if wanted else ()
    return Projections(facts, cached=finish(facts, parts, wanted))
