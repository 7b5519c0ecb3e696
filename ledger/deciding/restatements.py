"""Decide restate_forecasts: what a participant forecast on a question, as a corrected source has it."""

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.questions import forecast_event
from forecast_ledger.ledger.deciding.state import Decide, Evolve, State, Write
from forecast_ledger.ledger.model import commands, events

NOTHING = (values.FIRST_INSTANT, values.FIRST_INSTANT)  # what stands after a retraction: any later forecast may follow


def restate_forecasts(command: commands.RestateForecasts, state: State) -> tuple[events.AnyEvent, ...]:
    """Refuses, first that applies: out_of_range, unknown_question, wrong_distribution, unknown_outcome, wrong_length,
    not_summing_to_one, decreasing, open_end_needed, question_closed, wrong_order_of_instants, out_of_order (not after
    the forecast before), nothing_standing (nothing was forecast before, and nothing is given). If several forecasts
    are refused, the first is reported.
    """
    asked, made = state.questions.get(command.question), list[events.ForecastMade]()
    earliest = values.FIRST_INSTANT if asked is None else asked.changed_at
    for number, forecast in enumerate(command.forecasts, 1):
        submitted = forecast.made(command.question, command.participant)
        try:
            made.append(forecast_event(submitted, state, earliest, restated=True))
        except Refused as refused:
            raise refused.about(f"forecast {number}") from None
        earliest = made[-1].at + 1
    state.question(command.question)
    if not made and state.last_of(command.question, command.participant) in {None, NOTHING}:
        raise Refused("nothing_standing", "participant", command.participant, "nothing was forecast there before")
    retracted = events.ForecastsRetracted(
        at=values.read_instant(command.at),
        question=command.question,
        participant=command.participant,
        restated=len(made),
        reason=command.reason,
    )
    return (retracted, *made)


def forecasts_retracted(event: events.ForecastsRetracted, state: State, _: int) -> tuple[Write, ...]:
    """Mark that nothing stands, and that forecasts of any instant may follow."""
    standing = state.standing_on(event.question)
    others = (name for name in state.former.get(event.participant, ()) if name in standing)
    return tuple((standing, name, NOTHING) for name in (event.participant, *others))


DECIDE: dict[type, Decide] = {
    commands.RestateForecasts: restate_forecasts,
}
EVOLVE: dict[type, Evolve] = {
    events.ForecastsRetracted: forecasts_retracted,
}
