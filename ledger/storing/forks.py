"""What a fork of this process must not share: files, locks that a thread holds, and what it was changing."""

import _imp
import os
import signal
import sys
import time
from _thread import start_new_thread
from collections.abc import Callable
from importlib import import_module
from threading import Thread, current_thread, get_ident, local, main_thread
from threading import enumerate as threads
from typing import Any, Protocol, TypeVar
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
_MODULE_LOCKS = vars(import_module("importlib._bootstrap")).get("_module_locks", {})  # weak, by name
_PATIENCE = 5.0  # s that a fork waits for threads that import modules
_SOON = 0.01  # s
_T = TypeVar("_T")
# Of the fork that a thread is about to make: whom it has `told`, signals `held` since then, and `handlers` of these.
_now = local()


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


def send_soon(number: int) -> None:
    """Send this process a signal in a moment, outside of what calls this: Python drops an interrupt that it raises."""
    start_new_thread(_send, (number,))  # a thread object would wait until the thread runs, which may be too late


def _send(number: int) -> None:
    time.sleep(_SOON)
    if sys.platform == "win32":
        signal.raise_signal(number)  # os.kill would end the process at once
    else:
        os.kill(os.getpid(), number)


def _before() -> None:
    _hold_signals()
    _now.told = _members(_OPENED)
    for each in _now.told:
        each.before_fork()
    _wait_for_imports()


def _after(*, is_child: bool) -> None:
    try:
        _imp.release_lock()
        for each in _now.told:
            each.after_fork(is_child=is_child)
        _now.told = []
        for inherited in _members(_INHERITED) if is_child else ():
            inherited._renew()
    finally:
        for number, handler in _now.handlers.items():
            signal.signal(number, handler)
    for number in () if is_child else dict.fromkeys(_now.held):
        try:
            _now.handlers[number](number, None)
        except BaseException:
            send_soon(number)


def _members(of: "WeakSet[_T]") -> list[_T]:
    """Return what is in a set, to which another thread may be adding."""
    while True:
        try:
            return list(of)
        except RuntimeError:  # it has changed
            continue


def _hold_signals() -> None:
    """Hold signals back until the fork is done: Python would drop what their handlers raise, and half be told of it."""
    _now.told, _now.held = [], (held := list[int]())
    is_main, numbers = current_thread() is main_thread(), (signal.SIGINT, signal.SIGTERM)
    _now.handlers = {each: found for each in numbers if is_main and callable(found := signal.getsignal(each))}
    for each in _now.handlers:
        signal.signal(each, lambda number, _: held.append(number))


def _wait_for_imports() -> None:
    """Let no other thread import a module until the fork is done: a child waits for ever for one that is half imported.

    A module whose import does not end is not waited for, after _PATIENCE.
    """
    deadline = time.monotonic() + _PATIENCE
    _imp.acquire_lock()
    while time.monotonic() < deadline and any(map(_is_imported_elsewhere, list(_MODULE_LOCKS.values()))):
        _imp.release_lock()
        time.sleep(_SOON / 10)
        _imp.acquire_lock()


def _is_imported_elsewhere(find_lock: Callable[[], Any]) -> bool:
    owner = getattr(find_lock(), "owner", None)
    return owner is not None and owner != get_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before,
        after_in_parent=lambda: _after(is_child=False),
        after_in_child=lambda: _after(is_child=True),
    )
