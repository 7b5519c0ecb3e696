"""The times of questions, which an event can change."""

from msgspec import structs

from forecast_ledger.ledger.model import events


def rescheduled(question: events.QuestionOpened, event: events.QuestionRescheduled) -> events.QuestionOpened:
    """Return a question with the times that an event gives in place of its own.

    >>> opened = events.QuestionOpened(at=0, question="q", kind="binary", opens_at=1, closes_at=5)
    >>> later = rescheduled(opened, events.QuestionRescheduled(at=4, question="q", closes_at=9))
    >>> later.opens_at, later.closes_at
    (1, 9)
    """
    times = {"opens_at": event.opens_at, "closes_at": event.closes_at, "reveals_at": event.reveals_at}
    return structs.replace(question, **{name: at for name, at in times.items() if at is not None})


def amended(question: events.QuestionOpened, event: events.QuestionAmended) -> events.QuestionOpened:
    """Return a question as an event describes it anew.

    >>> opened = events.QuestionOpened(at=0, question="q", kind="binary", title="Rian?", opens_at=1, closes_at=5)
    >>> amended(opened, events.QuestionAmended(at=4, question="q", title="Rain?")).title
    'Rain?'
    """
    said = {name: getattr(event, name) for name in ("title", "tags", "url", "source")}
    return structs.replace(question, **{name: text for name, text in said.items() if text is not None})
