"""How many digits an integer may have that is read from a text, or written to one: as many as by Python's default."""

import sys

MOST_DIGITS = 4_300  # msgspec reads no more either, whatever the limit of the process


def allow_digits() -> None:
    """Raise a lower limit of this process, which `PYTHONINTMAXSTRDIGITS` or the program has set, to that of Python.

    Otherwise it would decide which replies and rows can be read, so that a log had another meaning.
    """
    if 0 < sys.get_int_max_str_digits() < MOST_DIGITS:
        sys.set_int_max_str_digits(MOST_DIGITS)


def read_integer(text: str) -> int:
    """Return the integer that digits mean. Raises ValueError: they are too many, even if the process allows more."""
    if (count := len(text.removeprefix("-"))) > MOST_DIGITS:
        raise ValueError(f"an integer has {count:,} digits; at most {MOST_DIGITS:,} are read")
    return int(text)
