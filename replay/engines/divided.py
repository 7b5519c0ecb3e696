"""All tables of a log whose questions are scored in parts, by one of the engines."""

from dataclasses import replace
from functools import partial

import numpy as np

from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.catalogue.question_parts import finish
from forecast_ledger.replay.engines.engines import ENGINES, Engine
from forecast_ledger.replay.engines.log_frame import LogFrame, UnreadForecasts
from forecast_ledger.replay.engines.tasks import FORECASTS, Shared, divide, tasks


def divided(frame: LogFrame, engine: Engine, forecasts: int = FORECASTS) -> Projections:
    """Return the projections of a log, with what rests on the forecasts on each question.

    forecasts: of the questions that are scored together, about. Raises Corrupt, Unavailable.
    """
    shared = Shared(frame.frame.facts, frame.sealed)
    every = np.arange(len(shared.facts.questions))
    facts = replace(shared.facts, forecasts=UnreadForecasts.of(partial(frame.forecasts_on, every)))
    return Projections(facts, cached=finish(facts, ENGINES[engine](shared, tasks(frame, divide(frame, forecasts)))))
