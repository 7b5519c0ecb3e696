"""Parts of a map, and the names that each may have: an unknown one is refused with its path and the nearest."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import hint, nearest, vocabulary
from forecast_ledger.ledger.model.commands import AmendQuestion, AnyCommand

_Made = TypeVar("_Made")


def read_part(written: Any, kind: Any, prefix: str) -> Any:
    """Return a part of a map as this type. prefix: its path in the map.

    Refuses: bad_map, with the path of the fault.
    """
    try:
        return msgspec.convert(written, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        field = f"{prefix}{path.rstrip('`')}".lstrip(".")
        raise Refused("bad_map", field, None, message + hint(kind, message, path.rstrip("`").lstrip("."), "")) from None


def unknown_name(name: str, names: Iterable[str], what: str = "field") -> str:
    """Return what is wrong with a name that is none of these.

    >>> unknown_name("probabilty", ["question", "probability"])
    'no such field; the nearest is probability; the fields are: question, probability'
    """
    names = [*names]
    near = nearest(name, names)
    return f"no such {what}; {f'the nearest is {near}; ' if near else ''}the {what}s are: {', '.join(names)}"


def with_path(path: str, make: Callable[[], _Made]) -> _Made:
    """Return what a function makes of a part of a map. Refuses: as it does, with this path before its own."""
    try:
        return make()
    except Refused as fault:
        raise Refused(fault.code, f"{path}.{fault.field}", fault.value, fault.detail, remedy=fault.remedy) from None


def check_names(part: Any, field: str, kind: Any, formats: Iterable[str], path: str) -> None:
    """Check the names of the parts of a field's description, if they can be listed. kind: the field's type.

    formats: the names of a description that has `from`, which a field without parts of its own needs.
    Refuses: bad_map.
    """
    names = vocabulary(AnyCommand).fields.get(field)
    if names is not None:
        _check_parts(part, field, path)
    elif isinstance(part, dict) and "from" not in part and dict not in {get_origin(each) for each in get_args(kind)}:
        unknown = [name for name in part if name not in {*formats}]
        if unknown:
            raise Refused("bad_map", f"{path}.{unknown[0]}", None, unknown_name(unknown[0], formats))
        raise Refused("bad_map", f"{path}.from", None, 'a description needs `from`, such as `from = "{Column}"`')


def _check_parts(part: Any, field: str, path: str) -> None:
    names = vocabulary(AnyCommand).fields.get(field)
    if isinstance(part, list):
        for number, item in enumerate(part):
            _check_parts(item, field, f"{path}[{number}]")
    elif isinstance(part, dict) and "from" not in part and names is not None:
        for name, value in part.items():
            if name not in names:
                raise Refused("bad_map", f"{path}.{name}", None, unknown_name(name, names))
            _check_parts(value, f"{field}.{name}", f"{path}.{name}")


fields_of = cache(structs.fields)  # of a struct; it reads all annotations at every call


def needed_parts(kind: Any) -> set[str]:
    """Return the parts that an object must have, if a field of this type takes one."""
    kinds = [each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, Struct)]
    return {part.name for each in kinds for part in fields_of(each) if part.required}


def is_optional_list(kind: type[AnyCommand], field: structs.FieldInfo) -> bool:
    """Return whether a field takes a list or values by name, and may be left out in place of none.

    A question that is amended to have no tags loses them; without the field, it keeps them.
    """
    return (
        kind is not AmendQuestion
        and not field.required
        and bool({get_origin(each) for each in get_args(field.type)} & {tuple, dict})
    )


def is_long(part: Any) -> bool:
    """Return whether a field is described as in `LongFormat`."""
    return isinstance(part, dict) and {"level", "value"} <= part.keys()
