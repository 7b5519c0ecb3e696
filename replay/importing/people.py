"""People: who a forecaster is by the id that the source has for them, so that a new name is one person's new name.

The ids of commands have that id, and so has the log. A name that another person has, or had, is never given to a second
one: the id of the source then comes after it.
"""

from collections.abc import Callable, Iterable, Mapping

from forecast_ledger.replay.importing.source_items import fitting_id

PersonOf = Callable[[str], str]  # the id of a command -> the source's id of its forecaster, "" if it has none


class People:
    """The people of a source in a log. present: the id of each in the ledger. names: those of the source, in order."""

    def __init__(self) -> None:
        self.present: dict[str, str] = {}
        self.names: dict[str, list[str]] = {}

    def note(self, person: str, participant: str) -> None:
        """Note a forecast of somebody under an id of the ledger."""
        if self.present.get(person) != participant:
            self.present[person] = participant
            self.names.setdefault(person, []).append(participant)

    def renamed(self, old: str, new: str, person: str) -> None:
        """Note that a participant has another id. person: whose name the source changed; "" if it was done by hand."""
        for each, present in self.present.items():
            self.present[each] = new if present == old else present
        if person:
            self.names.setdefault(person, []).append(new)

    def id_of(self, person: str, name: str, renamed: Mapping[str, str], others: Iterable[str]) -> str:
        """Return the id that somebody has in the ledger from now on, whom the copy gives a name.

        renamed: former ids, and the present one of each. others: who is in the ledger without an id of the source.

        >>> people = People()
        >>> people.note("7", "ada"), people.note("8", "bo")
        (None, None)
        >>> people.id_of("8", "bonnie", {}, []), people.id_of("8", "ada", {}, []), people.id_of("9", "bo", {}, [])
        ('bonnie', 'ada 8', 'bo 9')
        """
        present, names, owner = self.present.get(person), self.names.get(person, []), renamed.get(name, name)
        shared = present is not None and [*self.present.values()].count(present) > 1
        is_said = name in names[-1:] or (owner == present and name not in names)
        if present is not None and (name == present or is_said or shared):
            return present  # the source says nothing new, or it was changed by hand
        theirs = {each for other, now in self.present.items() if other != person for each in (now, *self.names[other])}
        is_free = name not in theirs and (present is None or (owner in {name, present} and name not in others))
        return (owner if present is None else name) if is_free else fitting_id(f"{name} {person}")
