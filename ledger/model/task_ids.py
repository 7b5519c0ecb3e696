"""The task ids of a hub, such as its locations and horizons, in the id of a question."""

from collections.abc import Mapping
from urllib.parse import quote, unquote

OUTPUT_TYPE, LOCATION, HORIZON = "output_type", "location", "horizon"
_SAFE = " ,:/+()<>.'*!$@;?[]{}|^~-_"


def task_text(values: Mapping[str, str]) -> str:
    """Return task ids as a text, from which `task_values` reads them again.

    >>> task_text({"location": "US", "target": "a & b"})
    'location=US&target=a %26 b'
    """
    return "&".join(f"{quote(key, _SAFE)}={quote(value, _SAFE)}" for key, value in values.items())


def task_values(question: str) -> dict[str, str] | None:
    """Return the task ids in the id of a question; None if it is not a hub's.

    >>> task_values("location=US&target=a %26 b&output_type=pmf"), task_values("rain")
    ({'location': 'US', 'target': 'a & b', 'output_type': 'pmf'}, None)
    """
    pairs = [part.partition("=") for part in question.split("&")]
    values = {unquote(key): unquote(value) for key, _, value in pairs}
    whole = all(key and equals for key, equals, _ in pairs) and len(values) == len(pairs) > 1
    return values if whole and OUTPUT_TYPE in values and task_text(values) == question else None
