"""A table that is a copy of a source, read by a map: its commands, and what the table is whole for."""

from collections.abc import Iterable, Iterator

from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import FIRST_INSTANT, check_id, read_instant
from forecast_ledger.ledger.model.commands import AnyCommand, SubmitForecast, WithdrawForecast
from forecast_ledger.ledger.model.input_locations import ReadCommand
from forecast_ledger.replay.importing.source_items import KNOWN, Scope, Source, SourceItem, fitting_id
from forecast_ledger.replay.mapping.csv_mapping import CsvMap

_FORECASTS = {"submit_forecast"}
_ANSWERS = {"resolve_question", "annul_question", "cancel_market"}
_TRADES = {"record_trade"}
_COMPARED = {"at", "quoted_at"}  # instants by which commands are compared with what is recorded
_BOTS = {"enrol_participant"}
_NAMED = {"question", "participant"}  # without which nobody knows what a row is about
_REPEATED = "an earlier row of the file gives this id, and says something else; that one counts"


def table_copy(description: CsvMap, commands: Iterable[ReadCommand]) -> Source:
    """Return the commands of a table as a copy of the source that its map names.

    It is whole for what the map makes commands of: forecasts, answers, trades, bots. A row that cannot be read makes
    that unsure, so that nothing is taken back.
    """
    types, name = {part.type for part in description.command}, f"map:{description.source}"
    unread: list[Refused] = []
    scope = Scope(
        questions=lambda _: True,
        forecasts=lambda _: not _FORECASTS.isdisjoint(types),
        answers=lambda _: not _ANSWERS.isdisjoint(types),
        unread=lambda *_: bool(unread),
        bots=not _BOTS.isdisjoint(types),
        trades="" if _TRADES.isdisjoint(types) else name,
    )
    return Source(_named(name, _withdrawn_first([*commands]), unread), scope, name=name)


def _withdrawn_first(commands: list[ReadCommand]) -> list[ReadCommand]:
    """Return commands, of which a forecast of somebody comes after what was withdrawn at its instant or before.

    Which row is above the other says nothing about that.
    """
    ordered, by_series = [*commands], dict[tuple[str, str], list[int]]()
    for number, (_, item) in enumerate(commands):
        if isinstance(item, SubmitForecast | WithdrawForecast):
            by_series.setdefault((item.question, item.participant), []).append(number)
    for numbers in by_series.values():
        for number, each in zip(numbers, sorted((commands[at] for at in numbers), key=_order), strict=True):
            ordered[number] = each
    return ordered


def _order(each: ReadCommand) -> tuple[int, bool]:
    _, item = each
    try:
        return read_instant(getattr(item, "at", None)), isinstance(item, SubmitForecast)
    except Refused:  # `_readable` refuses it
        return FIRST_INSTANT, False


def _named(name: str, commands: Iterable[ReadCommand], unread: list[Refused]) -> Iterator[SourceItem]:
    """Return the commands under ids of the source; of rows that give one id, the first counts.

    unread: gets the refusals of rows that cannot be read.
    """
    said: dict[str, AnyCommand] = {}
    for location, item in commands:
        try:
            command = _readable(item, name)
        except Refused as refused:
            unread.append(refused)
            yield location, refused
            continue
        first = said.setdefault(command.id, command)
        if first is command:
            yield location, command
        else:
            yield location, KNOWN if first == command else Refused("command_id_reused", "id", first.id, _REPEATED)


def _readable(item: AnyCommand | Refused, name: str) -> AnyCommand:
    """Return a command under the id of the source.

    Refuses: what the map refuses; id_empty, bad_instant; of a question or a participant, what `check_id` refuses.
    """
    if isinstance(item, Refused):
        raise item
    if not item.id:
        raise Refused("id_empty", "id", "")
    for field in _COMPARED & {*item.__struct_fields__}:
        read_instant(getattr(item, field), field)
    for field in _NAMED & {*item.__struct_fields__}:
        if (text := getattr(item, field)) is not None:
            check_id(text, field)
    return structs.replace(item, id=fitting_id(f"{name} row {item.id}"))
