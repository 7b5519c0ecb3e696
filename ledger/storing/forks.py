"""What a fork of this process must not share: files, locks that a thread holds, and what it was changing."""

import os
from threading import local
from typing import Protocol
from weakref import WeakSet


class Divided(Protocol):
    """What is told of a fork: before it, and after it in either process, where no other thread has run yet."""

    def before_fork(self) -> None:
        """Give up what two processes cannot share, and let nobody take it until the fork is done."""

    def after_fork(self, *, is_child: bool) -> None:
        """Go on; the child has none of its parent's threads, but the locks that they held."""


_TOLD: "WeakSet[Divided]" = WeakSet()
_now = local()  # its attribute `told`: the objects that this thread has told of the fork it is about to make


def tell(of_forks: Divided) -> None:
    """Tell an object of each fork from now on, for as long as something else refers to it."""
    _TOLD.add(of_forks)


def _before() -> None:
    _now.told = list(_TOLD)
    for each in _now.told:
        each.before_fork()


def _after(*, is_child: bool) -> None:
    for each in _now.told:
        each.after_fork(is_child=is_child)
    _now.told = []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before,
        after_in_parent=lambda: _after(is_child=False),
        after_in_child=lambda: _after(is_child=True),
    )
