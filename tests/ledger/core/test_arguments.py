"""Arguments are compared with their annotations; the message says what a function takes and what came."""

import io
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import formatannotation
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pytest

from forecast_ledger.ledger.core import arguments
from forecast_ledger.ledger.core.arguments import checked


@checked("name")
def called(
    path: str | PathLike[str] = "",
    *key: str,
    count: int = 0,
    exact: bool = False,
    mode: Literal["a", "b"] = "a",
    names: Sequence[str] = (),
    pages: Iterable[Sequence[int]] = (),
    either: Sequence[int | Sequence[str]] = (),
    by_name: Mapping[str, Any] | None = None,
    file: IO[bytes] | None = None,
    report: Callable[[int], None] = print,
    later: "Later | None" = None,
    unknown: "NotImported" = None,  # type: ignore[name-defined] # noqa: F821 - as what only type checkers import
    name: str = "main",
) -> int:
    """Count the keys."""
    return len(key)


class Later:
    """A class that is defined after the function."""

    @checked()
    def __init__(self, limit: int = 0) -> None:
        self.limit = limit


@checked()
class Door:
    """A class with every kind of method."""

    def method(self, name: str) -> str:
        """Return the name."""
        return name

    @classmethod
    def made(cls, name: str) -> str:
        """Return the name."""
        return name

    @staticmethod
    def fixed(name: str) -> str:
        """Return the name."""
        return name

    def _inner(self, name: str) -> str:
        return name


RIGHT: list[dict[str, Any]] = [
    {"path": "x"}, {"path": Path("x")}, {"count": 1}, {"count": np.int64(1)}, {"exact": True}, {"mode": "b"},
    {"mode": "c"}, {"names": ["a", "b"]}, {"names": "ab"}, {"names": []}, {"pages": [[1], (2, 3)]},
    {"pages": iter([None])}, {"either": [1, ["a"]]}, {"by_name": {"a": object()}}, {"file": io.BytesIO()},
    {"report": len}, {"report": int}, {"unknown": object()}, {"name": 7},
]  # fmt: skip


@pytest.mark.parametrize("given", RIGHT, ids=range(len(RIGHT)))
def test_what_an_annotation_allows_passes(given: dict[str, Any]) -> None:
    """Texts of a Literal are the function's own matter, as are names that it refuses itself and an iterator's items."""
    assert called(**given) == called(**given) == 0


def test_a_file_that_passes_on_what_is_asked_of_it_is_a_file() -> None:
    """As a temporary file does, which has no method itself."""
    with tempfile.NamedTemporaryFile() as file:
        assert called(file=file) == 0


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"path": None}, "path takes str | os.PathLike[str], not NoneType"),
    ({"path": b"x"}, "path takes str | os.PathLike[str], not bytes"),
    ({"count": True}, "count takes int, not bool"),
    ({"count": 1.0}, "count takes int, not float"),
    ({"exact": 1}, "exact takes bool, not int"),
    ({"mode": 1}, "mode takes Literal['a', 'b'], not int"),
    ({"names": ["a", 1, None]}, "names takes Sequence[str], not list of NoneType, int, str"),
    ({"names": {"a"}}, "names takes Sequence[str], not set of str"),
    ({"names": b"a"}, "names takes Sequence[str], not bytes"),
    ({"names": range(3)}, "names takes Sequence[str], not range of int"),
    ({"pages": [[1], ["a"]]}, "pages takes Iterable[Sequence[int]], not list of list"),
    ({"either": [1, "a", None]}, "either takes Sequence[int | Sequence[str]], not list of NoneType, int, str"),
    ({"either": [1, ["a"], [2]]}, "either takes Sequence[int | Sequence[str]], not list of int, list"),
    ({"by_name": {1: 2}}, "by_name takes Mapping[str, Any] | None, not dict of int"),
    ({"by_name": []}, "by_name takes Mapping[str, Any] | None, not list"),
    ({"file": "x"}, f"file takes {formatannotation(IO[bytes] | None)}, not str"),
    ({"report": "x"}, "report takes Callable[[int], None], not str"),
]


@pytest.mark.parametrize(("given", "says"), WRONG, ids=range(len(WRONG)))
def test_anything_else_is_refused(given: dict[str, Any], says: str) -> None:
    """The name of the function comes first; the values that came before change nothing."""
    for right in RIGHT:
        called(**right)
    with pytest.raises(TypeError) as error:
        called(**given)
    assert str(error.value) == f"called: {says}"


def test_arguments_by_place_are_checked() -> None:
    """The rest belongs to the argument with a star."""
    assert called("x", "a", "b") == 2
    with pytest.raises(TypeError, match="called: path takes"):
        called(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="called: key takes str, not int"):
        called("x", "a", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        called(other=1)  # type: ignore[call-arg]


def test_the_public_methods_of_a_class_are_checked() -> None:
    """Of an instance, of the class, and those that are functions; the message has the name of the class."""
    door: Any = Door()
    methods: list[Any] = [door.method, Door.made, door.fixed]
    for method in methods:
        assert method("a") == method(name="a") == "a"
        with pytest.raises(TypeError, match=rf"Door\.{method.__name__}: name takes str, not int"):
            method(1)
    assert door._inner(1) == 1


def test_a_class_that_is_defined_later_is_known() -> None:
    """Annotations are read at the first call; without them, if one names what only type checkers import."""

    @checked()
    def late(other: "Later") -> None:
        """Take one."""

    late(Later())
    late_door: Any = late
    with pytest.raises(TypeError, match="late: other takes"):
        late_door(1)
    with pytest.raises(TypeError, match=r"Later\.__init__: limit takes int, not str"):
        Later("1")  # type: ignore[arg-type]


def test_a_call_while_another_reads_the_hints_is_checked_by_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in another thread: it does not get through, and no call of the same types after it does."""
    made, asked = arguments._Argument, list[str]()

    @checked()
    def named(first: int, last: str) -> None:
        """Do nothing."""

    def meanwhile(name: str, hint: object) -> arguments._Argument:
        monkeypatch.undo()
        with pytest.raises(TypeError, match="last takes str"):
            named(1, 2)  # type: ignore[arg-type]
        asked.append(name)
        return made(name, hint)

    monkeypatch.setattr(arguments, "_Argument", lambda *of: meanwhile(*of) if of[0] == "last" else made(*of))
    for _ in range(2):
        with pytest.raises(TypeError, match="last takes str"):
            named(1, 2)  # type: ignore[arg-type]
    assert asked == ["last"]


def test_names_that_are_new_in_each_call_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service may call a function with any conditions, by name, for as long as it runs."""

    @checked()
    def chosen(table: str, **where: str) -> int:
        """Count the conditions."""
        return len(where)

    call: Any = chosen
    monkeypatch.setattr(arguments, "_MOST_KEPT", 10)
    tracemalloc.start()
    held = list[int]()
    for first in range(0, 1_000, 500):
        for number in range(first, first + 500):
            assert call("scores", **{f"column_{number}": "x"}) == 1
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[1] - held[0] < 20_000  # bytes; a key of each call would take 100,000 and more
    with pytest.raises(TypeError, match="chosen: table takes str, not int"):
        call(1, column_1="x")
