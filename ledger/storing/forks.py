"""What a fork of this process must not share: files, locks that a thread holds, and what it was changing."""

import os
import sys
from threading import Thread, local, main_thread
from threading import enumerate as threads
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
_HARMLESS: "WeakSet[Thread]" = WeakSet()  # threads that hold nothing that a child needs
_now = local()  # its attribute `told`: what this thread has told of the fork that it is about to make


def tell(opened: Opened) -> None:
    """Tell it of each fork from now on, for as long as something else refers to it."""
    _OPENED.add(opened)


def renew(inherited: Inherited) -> None:
    """Renew it in each child from now on, for as long as something else refers to it."""
    _INHERITED.add(inherited)


def holds_nothing(thread: Thread) -> None:
    """Say that a thread of the command line holds nothing that a child needs, so that its process may be forked."""
    _HARMLESS.add(thread)


def can_fork() -> bool:
    """Return whether the main thread may fork this process to do a part of its work, instead of a new interpreter.

    Only that of the command line may, on Linux, while no other thread works: those of NumPy and pyarrow begin anew in a
    child. What other programs have loaded is not known.
    """
    return sys.platform == "linux" and len(_HARMLESS) > 0 and {*threads()} <= {main_thread(), *_HARMLESS}


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
