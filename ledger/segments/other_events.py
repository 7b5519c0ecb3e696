"""The events of a segment other than forecasts, read from its columns."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.provenance import Provenance
from forecast_ledger.ledger.segments.arrow_arrays import integers, is_valid, whole
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, with_quotes, with_their_quotes

_event = msgspec.json.Decoder(events.AnyEvent)
_provenance = msgspec.json.Decoder(Provenance)


class OtherEvents(NamedTuple):
    """Events other than forecasts, in log order. digest: empty but for those that seal a contest.

    recorded_at: µs, an array. command_id, provenance: empty and UNSET if they were not read.
    """

    position: list[int]
    recorded_at: Any
    event: list[events.AnyEvent]
    digest: list[str]
    command_id: list[str]
    provenance: Sequence[Provenance | UnsetType]

    def part(self, some: slice) -> "OtherEvents":
        """Return some of them."""
        return OtherEvents._make(column[some] for column in self)

    def rows(self, some: slice) -> list[Recorded]:
        """Return some of them as rows of a log, which lack the digests of their command and of the row before."""
        part = self.part(some)
        return [
            Recorded(
                position=position,
                recorded_at=at,
                provenance=provenance,
                command_id=command_id,
                command="",
                previous="",
                event=event,
                digest=digest,
            )
            for position, at, event, digest, command_id, provenance in zip(
                *part._replace(recorded_at=part.recorded_at.tolist()), strict=True
            )
        ]


def other_events(columns: SegmentColumns) -> Iterator[Recorded]:
    """Yield the events other than forecasts. Raises Corrupt: this version cannot read one."""
    for page in other_pages(columns):
        yield from page.rows(slice(None))


def other_pages(columns: SegmentColumns) -> Iterator[OtherEvents]:
    """Yield the events other than forecasts, one or more at a time.

    Raises Corrupt at one that this version cannot read, after the events before it.
    """
    for page, quotes in with_their_quotes(columns.others, columns.quotes):
        others = with_quotes(page, quotes)
        texts, read, damage = others["event"].to_pylist(), list[events.AnyEvent](), None
        try:
            read.extend(map(_event.decode, texts))  # those before one that cannot be read are kept
        except log.UNREADABLE as error:
            damage = log.unreadable(integers(others["position"]).tolist()[len(read)], "event", error)
            others = others.slice(0, len(read))
        if read:
            yield OtherEvents(
                integers(others["position"]).tolist(),
                integers(others["recorded_at"]),
                read,
                _digests(others["digest"]),
                others["command_id"].to_pylist() if "command_id" in others.schema.names else [""] * len(others),
                provenances(others),
            )
        if damage is not None:
            raise damage


def _digests(column: Any) -> list[str]:
    """Return digests as hexadecimal texts, empty where there is none, as in most rows."""
    digests = [""] * len(column)
    for row in np.flatnonzero(is_valid(whole(column))).tolist():
        digests[row] = column[row].as_py().hex()
    return digests


def provenances(table: Any) -> Sequence[Provenance | UnsetType]:
    """Return the provenance of each row; UNSET if it has none, or the column was not read. Raises Corrupt."""
    if "provenance" not in table.schema.names or table["provenance"].null_count == len(table):
        return [UNSET] * len(table)
    result: list[Provenance | UnsetType] = []
    for position, text in zip(integers(table["position"]).tolist(), table["provenance"].to_pylist(), strict=True):
        try:
            result.append(UNSET if text is None else _provenance.decode(text))
        except log.UNREADABLE as error:
            raise Corrupt(position, f"this version cannot read the provenance: {error}", "schemas") from None
    return result
