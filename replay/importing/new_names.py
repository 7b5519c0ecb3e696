"""New names: the commands that give people the names that the newest copy of a source has for them."""

from collections import Counter
from collections.abc import Iterable, Iterator

from forecast_ledger.ledger.model.commands import EnrolParticipant, RenameParticipant, SubmitForecast
from forecast_ledger.replay.importing.people import PersonOf
from forecast_ledger.replay.importing.recorded_copy import RecordedCopy, source_of
from forecast_ledger.replay.importing.source_items import NotCarried, SourceItem, fitting_id
from forecast_ledger.replay.writing.command_lines import InputPlace

OTHERS_NAME = "a name that another person has or had: in the ledger, the id that the source has comes after it"


def renamings(copy: RecordedCopy, items: Iterable[SourceItem], person_of: PersonOf) -> Iterator[SourceItem]:
    """Return the renames; note in `copy` which id each name stands for.

    Who has two names in `items`, or one that two people have there, is not renamed.
    """
    named: dict[str, dict[str, tuple[InputPlace, str]]] = {}
    for place, item in items:
        if isinstance(item, SubmitForecast | EnrolParticipant) and (person := person_of(item.id)):
            named.setdefault(person, {}).setdefault(item.participant, (place, source_of(item.id)))
    people, present = copy.people, dict[str, str]()
    own = {*people.present.values()}
    others = {who for known in copy.questions.values() for who in known.forecasts if who not in own}
    bearers = Counter(name for names in named.values() for name in names)
    for person, names in named.items():
        if len(names) > 1 or any(bearers[name] > 1 for name in names):
            continue
        ((name, (place, source)),) = names.items()
        old, new = people.present.get(person), people.id_of(person, name, copy.renamed, others)
        if old is not None and new != old:
            command = RenameParticipant(
                id=fitting_id(f"{source} rename {person} after {copy.position}"),
                participant=old,
                to=new,
                reason="the source has another name",
            )
            yield place._replace(command="rename_participant"), command
            copy.rename(old, new, person)
        if new == fitting_id(f"{name} {person}"):
            yield place, NotCarried(OTHERS_NAME)
        present[name] = new
    copy.renamed |= present
