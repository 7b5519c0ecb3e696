"""Arguments of a wrong type are refused where a call comes in, before anything is done."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, formatannotation, signature
from itertools import chain, repeat
from numbers import Integral, Real
from types import FunctionType, UnionType
from typing import IO, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T", bound=Callable[..., Any])
_NAMED = 3  # types of items in a message
_MOST_KEPT = 1_000  # types and names of arguments that are kept for a function

_CLASSES: dict[Any, Any] = {int: Integral, float: Real}  # annotation -> the class of what passes for it


def checked(*unchecked: str) -> Callable[[_T], _T]:
    """Make a function, or the public methods of a class, raise TypeError for an argument of a wrong type.

    The message names the function, the argument, what it takes and what came. The items of an iterator pass, and what
    has an annotation that only type checkers can read. unchecked: arguments that the function itself refuses, with a
    code.

    >>> @checked()
    ... def named(name: str) -> str:
    ...     return name
    >>> named(7)
    Traceback (most recent call last):
    TypeError: named: name takes str, not int
    """

    def check(called: _T) -> _T:
        """Return the function with its arguments checked, or the class with those of its public methods checked."""
        if not isinstance(called, type):
            return _checked(called, unchecked)
        for name, member in [*vars(called).items()]:
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType) and not name.startswith("_"):
                part = _checked(function, unchecked)
                setattr(called, name, part if function is member else type(member)(part))
        return called

    return check


def _checked(called: _T, unchecked: Collection[str]) -> _T:
    parameters, arguments = signature(called).parameters.values(), dict[str, _Argument]()
    # Types of arguments, and names of those given by name, of which every value is right.
    right = set[tuple[Any, ...]]()
    positional = [parameter.name for parameter in parameters if parameter.kind <= Parameter.VAR_POSITIONAL]

    def check(args: Sequence[Any], kwargs: Mapping[str, Any], given: tuple[Any, ...]) -> None:
        """Raise TypeError if an argument is of another type than its hint."""
        if not arguments:  # when every class has been defined
            hints = {name: _Argument(name, hint) for name, hint in _hints(called) if name not in unchecked}
            arguments.update(hints)  # at once: another thread looks at all of them or at none
        are_few = len(args) <= len(positional)
        names = positional if are_few else chain(positional, repeat(positional[-1]))
        looked_at = [
            (arguments[name], value)
            for name, value in chain(zip(names, args, strict=False), kwargs.items())
            if name in arguments
        ]
        for argument, value in looked_at:
            if type(value) not in argument.known:
                argument.check(value, called)
        if are_few and all(type(value) in argument.known for argument, value in looked_at):
            if len(right) >= _MOST_KEPT:  # names of `**where` may be new in each call
                right.clear()
            right.add(given)

    @wraps(called)
    def call(*args: Any, **kwargs: Any) -> Any:
        """Check the arguments, and call the function. Raises TypeError: one is of another type than its hint."""
        given = (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else (*map(type, args),)
        if given not in right:
            check(args, kwargs, given)
        return called(*args, **kwargs)

    return call  # type: ignore[return-value]


class _Argument:
    """An argument. known: types of which every value is right."""

    def __init__(self, name: str, hint: Any) -> None:
        self._name, self._hint, self.known = name, hint, set[type]()

    def check(self, value: Any, called: Callable[..., Any]) -> None:
        """Raise TypeError unless a value may be given to a function."""
        if not _fits(value, self._hint):
            takes = formatannotation(self._hint).replace("collections.abc.", "").replace("typing.", "")
            raise TypeError(f"{called.__qualname__}: {self._name} takes {takes}, not {_described(value)}")
        if type(value) in (self._hint, *get_args(self._hint)) or not isinstance(value, Collection):
            self.known.add(type(value))  # otherwise, it depends on the items


def _hints(called: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return the annotation of each argument; without texts if one of them names what only type checkers import."""
    try:
        hints = get_type_hints(called)
    except NameError:
        hints = {name: hint for name, hint in called.__annotations__.items() if not isinstance(hint, str)}
    return [(name, hint) for name, hint in hints.items() if name != "return"]


def _fits(value: Any, hint: Any) -> bool:
    hint = getattr(get_origin(hint) or hint, "__value__", hint)  # of an alias, such as NumPy's arrays from 3.12 on
    origin, parts = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return type(value) in {*map(type, parts)}
    kind: Any = _CLASSES.get(origin or hint, origin or hint)
    if hint is Any or not isinstance(kind, type):
        return True
    is_one = hasattr(value, "read") if kind is IO else isinstance(value, kind)  # a file may pass on what is asked of it
    if not is_one or (type(value) is bool and kind in {Integral, Real}):
        return False
    has_items = parts and _is_of_items(kind) and isinstance(value, Collection)
    if not has_items or parts[0] is Any or type(value).__module__.startswith(__name__.partition(".")[0]):
        return True  # items of a class of ours are made when they are asked for
    items: Any = value
    return all(_fits(item, parts[0]) for item in (_one_of_each_type(items) if _is_of_classes(parts[0]) else items))


@cache
def _is_of_classes(hint: Any) -> bool:
    """Return whether the type of a value decides whether the value fits, not what is in it."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return all(map(_is_of_classes, parts))
    return not parts or parts[0] is Any or not _is_of_items(origin)


def _is_of_items(kind: Any) -> bool:
    """Return whether the items of a value of this class are looked at."""
    return kind.__module__ in {"builtins", "collections.abc"}


def _one_of_each_type(items: Iterable[Any]) -> Collection[Any]:
    return {type(item): item for item in items}.values()


def _described(value: Any) -> str:
    name = type(value).__name__
    if isinstance(value, str | bytes) or not isinstance(value, Collection):
        return name
    items = sorted(type(item).__name__ for item in _one_of_each_type(value))
    return f"{name} of {', '.join(items[:_NAMED])}" if items else name
