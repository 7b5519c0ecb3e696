"""What a fork of this process must not share: files, locks that a thread holds, and what it was changing."""

import os
from threading import local
from typing import Protocol
from weakref import WeakSet


class Opened(Protocol):
    """An object with something that two processes cannot share, such as an open file."""

    def before_fork(self) -> None:
        """Close it, and let nobody open it until the fork is done."""

    def after_fork(self, *, is_child: bool) -> None:
        """Let threads open it again; the child has none of its parent's threads, but the locks that they held."""


class Inherited(Protocol):
    """An object that a child has from its parent, perhaps as a thread of the parent was changing it."""

    def _renew(self) -> None:
        """Begin anew, in a child in which no other thread runs yet."""


_OPENED: "WeakSet[Opened]" = WeakSet()
_INHERITED: "WeakSet[Inherited]" = WeakSet()
_now = local()  # its attribute `told`: what this thread has told of the fork that it is about to make


def tell(opened: Opened) -> None:
    """Tell it of each fork from now on, for as long as something else refers to it."""
    _OPENED.add(opened)


def renew(inherited: Inherited) -> None:
    """Renew it in each child from now on, for as long as something else refers to it."""
    _INHERITED.add(inherited)


def _before() -> None:
    _now.told = list(_OPENED)
    for each in _now.told:
        each.before_fork()


def _after(*, is_child: bool) -> None:
    for each in _now.told:
        each.after_fork(is_child=is_child)
    _now.told = []
    for inherited in list(_INHERITED) if is_child else ():
        inherited._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before,
        after_in_parent=lambda: _after(is_child=False),
        after_in_child=lambda: _after(is_child=True),
    )
