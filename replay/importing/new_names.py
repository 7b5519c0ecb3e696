"""People as the newest copy of a source has them: the commands that give new names, and who is enrolled as a bot."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AnyCommand,
    EnrolParticipant,
    RenameParticipant,
    SubmitForecast,
)
from forecast_ledger.ledger.model.events import ParticipantEnrolled
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.recorded_copy import PersonOf, RecordedCopy, source_of
from forecast_ledger.replay.importing.source_items import KNOWN, NotCarried, SourceItem, fitting_id

OTHERS_NAME = "a name that another person has or had: in the ledger, the id that the source has comes after it"


def renamings(copy: RecordedCopy, items: Iterable[SourceItem], person_of: PersonOf) -> Iterator[SourceItem]:
    """Return the renames; note in `copy` which id each name stands for.

    Who has two names in `items`, or one that two people have there, is not renamed.
    """
    named: dict[str, dict[str, tuple[InputLocation, str]]] = {}
    for location, item in items:
        if isinstance(item, SubmitForecast | EnrolParticipant) and (person := person_of(item.id)):
            named.setdefault(person, {}).setdefault(item.participant, (location, source_of(item.id)))
    people, present = copy.people, dict[str, str]()
    source_ids = {*people.present.values()}
    others = {who for known in copy.questions.values() for who in known.forecasts if who not in source_ids}
    bearers = Counter(name for names in named.values() for name in names)
    for person, names in named.items():
        if len(names) > 1 or any(bearers[name] > 1 for name in names):
            continue
        ((name, (location, source)),) = names.items()
        old, new = people.present.get(person), people.id_of(person, name, copy.renamed, others)
        if old is not None and new != old:
            command = RenameParticipant(
                id=fitting_id(f"{source} rename {person} after {copy.position}"),
                participant=old,
                to=new,
                reason="the source has another name",
            )
            yield location._replace(command="rename_participant"), command
            copy.rename(old, new, person)
        if new == fitting_id(f"{name} {person}"):
            yield location, NotCarried(OTHERS_NAME)
        present[name] = new
    copy.renamed |= present


SEALED_BOT = "another enrolment, or a bot that is none any more, in a contest that is finalized: its board stays"


class Bots:
    """The enrolments of a copy, compared with the last ones in the ledger; those of another origin stay."""

    def __init__(self, copy: RecordedCopy) -> None:
        self._copy = copy
        self._contests: dict[str, set[str]] = {}  # of each question of the copy
        self._enrolled: set[tuple[str, str]] = set()  # contest, participant
        self._made: dict[tuple[str, str], tuple[InputLocation, str]] = {}  # the first forecast, and its source

    def followed(
        self, location: InputLocation, item: AnyCommand | Refused | NotCarried
    ) -> AnyCommand | Refused | NotCarried:
        """Return an item; an enrolment under a new id if the ledger has another enrolment after the one it is known by.

        A contest that is finalized takes none. It notes who forecasts in which contest.
        """
        if isinstance(item, AddQuestion):
            self._contests.setdefault(item.question, set()).add(item.contest)
        elif isinstance(item, SubmitForecast):
            for contest in self._contests.get(item.question, ()):
                self._made.setdefault((contest, self._present(item.participant)), (location, source_of(item.id)))
        elif isinstance(item, EnrolParticipant):
            key = item.contest, self._present(item.participant)
            self._enrolled.add(key)
            last = self._copy.enrolled.get(key)
            is_of_source = last is not None and source_of(last.command_id) == source_of(item.id)
            is_sealed = item.contest in self._copy.sealed
            if last is not None and (is_of_source or is_sealed) and getattr(last.event, "bot", None) == item.bot:
                return KNOWN
            if is_sealed:
                return NotCarried(SEALED_BOT)
            if last is not None and is_of_source:
                return structs.replace(item, id=fitting_id(f"{item.id} after {last.position}"))
        return item

    def _present(self, participant: str) -> str:
        return self._copy.renamed.get(participant, participant)

    def none_any_more(self) -> Iterator[SourceItem]:
        """Return the enrolments of those whom the source enrolled as bots before, and who forecast without it now."""
        for (contest, participant), last in self._copy.enrolled.items():
            key = contest, participant
            location, source = self._made.get(key, (None, ""))
            event = last.event
            if location is None or key in self._enrolled or source_of(last.command_id) != source:
                continue
            if not isinstance(event, ParticipantEnrolled) or not event.bot:
                continue
            if contest in self._copy.sealed:
                yield location, NotCarried(SEALED_BOT)
                continue
            command = EnrolParticipant(
                id=fitting_id(f"{source} enrol {contest} {participant} after {last.position}"),
                at=format_instant(event.at),
                contest=contest,
                participant=participant,
            )
            yield location._replace(command="enrol_participant"), command
