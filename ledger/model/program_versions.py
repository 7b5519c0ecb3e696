"""Versions of this program as a ledger states them: how they are written, and which of two is older."""

import re
from typing import Any

VERSION_LENGTH = 200  # characters
_NUMBER = "(?:0|[1-9][0-9]*)"
# A public version in its normal form: the epoch, the release, and the numbers of a pre-release, post-release and
# development release.
WRITTEN_VERSION = (
    rf"(?:([1-9][0-9]*)!)?({_NUMBER}(?:\.{_NUMBER})*)"
    rf"(?:(a|b|rc)({_NUMBER}))?(?:\.post({_NUMBER}))?(?:\.dev({_NUMBER}))?"
)
_VERSION = re.compile(WRITTEN_VERSION)


def version_key(version: str) -> tuple[Any, ...] | None:
    """Return what two versions are compared by: a greater one is newer; None if the text is no version.

    A version is public, in its normal form, and has at most 200 characters.
    Source: Python Packaging Authority, packaging.python.org, Version specifiers, "Public version identifiers" and
    "Summary of permitted suffixes and relative ordering".

    >>> version_key("1.0rc1") < version_key("1") == version_key("1.0.0") < version_key("1.10")
    True
    >>> version_key("v1")
    """
    parts = _VERSION.fullmatch(version) if len(version) <= VERSION_LENGTH else None
    if parts is None:
        return None
    epoch, numbers, phase, pre, post, dev = parts.groups()
    release = [int(number) for number in numbers.split(".")]
    while len(release) > 1 and not release[-1]:
        release.pop()
    is_early = not phase and post is None and dev is not None  # before all pre-releases of its release
    phase = phase or ("" if is_early else "release")
    return int(epoch or 0), release, phase, int(pre or 0), int(post or -1), dev is None, int(dev or 0)


def is_older(version: str, than: str) -> bool:
    """Return whether a version is older than another one, or is unknown. Its local part does not count.

    >>> is_older("0.2.0+fix", "0.2.0"), is_older("0.2.0", "0.3.0"), is_older("unknown", "0.2.0")
    (False, True, True)
    """
    key, least = version_key(version.partition("+")[0]), version_key(than)
    return key is None or least is None or key < least
