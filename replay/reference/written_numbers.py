"""Every number that a person can write, with its unit, read from the types of commands, rule sets and maps."""

from collections.abc import Iterator
from typing import Any, get_args

from msgspec import Struct, inspect, structs

from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.written_rules import WrittenRuleSet, WrittenTrading
from forecast_ledger.replay.reference.fields import name

# What commands have within them, apart from attestations.
PARTS = (
    commands.Range,
    commands.Points,
    commands.Spot,
    commands.RestatedForecast,
    commands.Prices,
    commands.Bet,
    commands.Sale,
    commands.ModelCall,
)
# The numbers of maps and of the command line: where they are written, their name, their unit.
OTHERS: tuple[tuple[str, str, str], ...] = (
    ("maps", "a constant, or a cell", "that of the field of the command"),
    ("maps", "`above`", "that of its column"),
    ("maps", "`levels`", "that of the column `level`"),
    ("options", "`--limit`", "rows"),
    ("options", "`--rows`", "rows of the log"),
    ("options", "`--after`", "a log position"),
    ("options", "`--as-of`", "a log position, unless it is an instant"),
    ("options", "`--memory`", "bytes, in the unit written behind it: MB, GB, MiB or GiB"),
    ("options", "`position`", "a log position"),
)


def written_numbers() -> Iterator[tuple[str, str, str]]:
    """Yield each number of commands and rule sets: where it is written, its field, its unit; empty if it has none.

    >>> [unit for where, field, unit in written_numbers() if field == "`pool`"]
    ["the contest's currency"]
    """
    for kind in (*get_args(commands.AnyCommand), *PARTS):
        yield from _numbers_of(kind, str(kind.__struct_config__.tag or name(kind)))
    yield from _numbers_of(WrittenRuleSet, "rules")
    yield from _numbers_of(WrittenTrading, "rules.trading")


def _numbers_of(kind: type[Struct], where: str) -> Iterator[tuple[str, str, str]]:
    for field in structs.fields(kind):
        units = list(dict.fromkeys(_units(inspect.type_info(field.type))))
        if units:
            yield f"`{where}`", f"`{field.encode_name}`", "; ".join(units)


def _units(kind: inspect.Type, *, numeric: bool = False) -> Iterator[str]:
    """Yield the unit of each number in a value of a type, also in a list or an object; "" if it says none."""
    match kind:
        case inspect.Metadata(extra={"unit": str(unit)}):
            yield unit
        case inspect.Metadata(type=inner, extra_json_schema=schema):
            yield from _units(inner, numeric="number" in _types(schema))
        case inspect.UnionType(types=types):
            for each in types:
                yield from _units(each)
        case inspect.VarTupleType(item_type=inner) | inspect.DictType(value_type=inner):
            yield from _units(inner)
        case inspect.IntType() | inspect.FloatType() | inspect.DecimalType():
            yield ""
        case inspect.AnyType() if numeric:
            yield ""


def _types(schema: dict[str, Any] | None) -> list[str]:
    types = (schema or {}).get("type", [])
    return [types] if isinstance(types, str) else types
