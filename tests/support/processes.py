"""Processes that a test starts: forked from a server, which imports a module once for all of them."""

from multiprocessing import get_context
from multiprocessing.context import ForkServerContext


def forking(module: str) -> ForkServerContext:
    """A way to start processes that run functions of a module; each has its own memory, and no thread or lock of ours.

    A server that runs already, for another module, stays: then the processes import this one themselves.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([module])
    return context
