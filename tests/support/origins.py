"""Random values of the fields that say where a command comes from."""

from typing import Any

from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, Evidence
from forecast_ledger.ledger.model.provenance import Provenance, optional_names

NAMES = st.text('ada",\\ é<&0', min_size=1, max_size=8)  # what JSON, CSV and HTML write otherwise is among them
TEXTS = st.text('because\n"\\,\u2028\x00', max_size=12)
ADDRESSES = NAMES.map(lambda name: f"https://example.org/{name.replace(' ', '_')}")
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
EVIDENCE = (
    st.builds(Evidence, url=ADDRESSES, text=TEXTS, sha256=DIGESTS)
    | st.builds(Evidence, url=ADDRESSES)
    | st.builds(Evidence, text=TEXTS.filter(bool))
    | st.builds(Evidence, sha256=DIGESTS)
)
LISTS = st.lists(EVIDENCE, max_size=3).map(tuple)
# What rows can say; `Provenance()` is never recorded.
PROVENANCES = st.builds(
    Provenance, by=NAMES | st.just(""), reason=TEXTS, evidence=LISTS, correlation=NAMES, causation=NAMES | st.just("")
)
# Fields of a command, any of which may be left out or empty.
FIELDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "by": NAMES | st.just(""),
        "reason": TEXTS,
        "evidence": EVIDENCE | LISTS,
        "correlation": NAMES,
        "causation": NAMES,
    },
)


def with_origins(commands: list[AnyCommand], said: list[dict[str, Any]], every: int) -> list[AnyCommand]:
    """The commands, of which each `every`th says one of these, in turn; none says another reason than its own."""
    return [
        structs.replace(command, **_fitting(command, said[number % len(said)]))
        if said and number % every == 0
        else command
        for number, command in enumerate(commands)
    ]


def _fitting(command: AnyCommand, said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name in optional_names(type(command))}
