"""Other ids of participants, in words: as whose what was recorded counts, and what a sealed board says of it."""

from dataclasses import replace

import numpy as np

from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.facts.renames import Rename, codes_of, enrolled_as, moved


def renames_of(facts: Facts, participant: str, as_of: int) -> list[Rename]:
    """Return by which renames the records of other ids count as a participant's, as of a log position, in log order."""
    code, renames = facts.participant_codes.codes.get(participant, -1), _up_to(facts, as_of)
    codes = codes_of(renames, code)
    return [rename for rename in renames if rename.old in codes and rename.new in codes]


def ids_of(facts: Facts, participant: str, as_of: int) -> set[str]:
    """Return every id under which the records of a participant are, as of a log position."""
    labels = facts.participant_codes.labels
    return {participant, *(labels[rename.old] for rename in renames_of(facts, participant, as_of))}


def says_ids(facts: Facts, participant: str, as_of: int) -> list[str]:
    """Say which records of other ids count as a participant's as of a log position; [] if none."""
    labels = facts.participant_codes.labels
    return [
        f"since log position {rename.position}, what is recorded of {labels[rename.old]} counts as of "
        f"{labels[rename.new]}"
        for rename in renames_of(facts, participant, as_of)
    ]


def says_present_id(facts: Facts, participant: str, as_of: int) -> str:
    """Say which id a participant has as of a log position, if it is another one; "" if it is not."""
    now, since = present_id(facts, participant, as_of)
    return "" if now == participant else f"{participant} is {now} since log position {since}"


def present_id(facts: Facts, participant: str, as_of: int) -> tuple[str, int]:
    """Return which id a participant has as of a log position, and since which; 0 if it never had another one."""
    labels, now, since = facts.participant_codes.labels, participant, 0
    for rename in _up_to(facts, as_of):
        if labels[rename.old] == now:
            now, since = labels[rename.new], rename.position
    return now, since


def renamed_since(facts: Facts, contest: Contest) -> list[str]:
    """Say which participants of a sealed contest have other ids since, in log order."""
    if contest.sealed is None or not facts.renames or facts.renames[-1].position <= contest.sealed.position:
        return []
    labels, sealed = facts.participant_codes, contest.sealed.position
    rows = np.isin(facts.forecasts.question, [*contest.entries]) & (facts.forecasts.position <= sealed)
    people = {*facts.forecasts.rows(np.flatnonzero(rows)).named(sealed).participant.tolist()}
    people |= {labels.codes[who] for who in {*contest.enrolments, *contest.levels} if who in labels.codes}
    found = []
    for rename in facts.renames:
        if rename.position > sealed and rename.old in people:
            people.add(rename.new)
            found.append(f"{labels.labels[rename.old]} is {labels.labels[rename.new]} (#{rename.position})")
    return found


def with_ids_of_now(facts: Facts, contest: Contest) -> Contest:
    """Return a sealed contest with what is recorded of its participants under the ids that they have now."""
    labels, sealed = facts.participant_codes.labels, contest.as_of(facts)
    enrolments, levels = contest.enrolments, contest.levels
    for rename in facts.renames:
        if rename.position > sealed:
            old, new = labels[rename.old], labels[rename.new]
            enrolments, levels = enrolled_as(enrolments, old, new), moved(levels, old, new)
    return replace(contest, enrolments=enrolments, levels=levels)


def _up_to(facts: Facts, as_of: int) -> list[Rename]:
    return [rename for rename in facts.renames if rename.position <= as_of]
