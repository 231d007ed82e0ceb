"""Refuses arguments of the Python API that their signature does not allow.

Without this a text in the place of a time fails somewhere below, by an attribute that it lacks, or
does not fail at all: ``update({...}, where=[])`` would change every row. What is allowed is read
off the annotations, so that a signature says it once, to the reader, to mypy and here. They are
read as text, for some name classes of packages that are imported late or are not there; a packaged
checker would have to import these, and would show values, which may be secrets.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from numbers import Integral
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from pennon.errors import ArgumentRefused, ProcessForked

__all__ = [
    "as_names",
    "check_least",
    "check_one_of",
    "check_process",
    "checked",
    "checked_methods",
    "wrapped_methods",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)
# What is wrong with a value, "it is of type str"; None where it fits.
_Check = Callable[[object], str | None]


class _LanceProcess:
    """The process in which Lance has started its threads, which no fork of it has."""

    def __init__(self) -> None:
        self.number: int | None = None


_LANCE: Final = _LanceProcess()


def check_process(function: str) -> None:
    """Refuse to wait for ever for threads of Lance that a forked process does not have.

    Args:
        function: What is called, which has Lance do something.

    Raises:
        ProcessForked: It was called in the process before that, too.
    """
    process = os.getpid()
    if _LANCE.number is None:
        _LANCE.number = process
    if process != _LANCE.number:
        raise ProcessForked(function=function, process=process, parent=_LANCE.number)


def checked(name: str, *, runs_lance: bool = False) -> Callable[[_Function], _Function]:
    """Let a function refuse arguments of another type than it is annotated with.

    Args:
        name: What its users call it.
        runs_lance: Whether it has Lance do something.

    Raises:
        ArgumentRefused: When it is called with such an argument.

    Example:
        >>> @checked("math.double")
        ... def double(number: int) -> int:
        ...     return 2 * number
        >>> double(7)
        14
    """
    return lambda function: _refusing(name, function, runs_lance=runs_lance)


def _refusing(called: str, function: _Function, *, runs_lance: bool = True) -> _Function:
    signature = inspect.signature(function)
    checks = {
        name: (_check_of(annotation), annotation)
        for name, parameter in signature.parameters.items()
        if isinstance(annotation := parameter.annotation, str)
        and parameter.kind is not parameter.VAR_KEYWORD
    }

    @functools.wraps(function)
    def refusing(*args: object, **kwargs: object) -> object:
        if runs_lance:
            check_process(called)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if name in checks:
                check, annotation = checks[name]
                why = check(value)
                if why is not None:
                    raise ArgumentRefused(
                        function=called, parameter=name, why=why, expected=annotation
                    )
        return function(*args, **kwargs)

    return refusing  # type: ignore[return-value]


def checked_methods(cls: _Class) -> _Class:
    """Let the public methods that a class defines refuse arguments, as ``checked`` does.

    They have Lance do something.

    Example:
        >>> @checked_methods
        ... class Account:
        ...     def pay(self, amount: int) -> None: ...
        >>> Account().pay(7)
    """
    return wrapped_methods(cls, _refusing)


def wrapped_methods(
    cls: _Class, wrap: Callable[[str, Callable[..., Any]], Callable[..., Any]]
) -> _Class:
    """Put a function around each public method that a class defines.

    Args:
        cls: The class, which is changed.
        wrap: Makes of a method's name and the method what takes its place.

    Example:
        >>> class Account:
        ...     def pay(self, amount: int) -> int:
        ...         return amount
        >>> wrapped_methods(Account, lambda _, method: lambda self, amount: -method(self, amount))
        <class 'pennon.arguments.Account'>
        >>> Account().pay(7)
        -7
    """
    for name, member in list(vars(cls).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            setattr(cls, name, wrap(name, member))
    return cls


def check_least(function: str, parameter: str, value: int | None, least: int) -> None:
    """Refuse a number below the least one that has a meaning; None is none.

    Raises:
        ArgumentRefused: It is less.

    Example:
        >>> check_least("expire_snapshots", "retain_last", 1, 1)
    """
    if value is not None and value < least:
        raise ArgumentRefused(
            function=function,
            parameter=parameter,
            why=f"it is {value}",
            expected=f"a whole number from {least}",
        )


def check_one_of(function: str, parameter: str, value: str, known: Collection[str]) -> None:
    """Refuse a word that is none of those that have a meaning.

    Raises:
        ArgumentRefused: It is another.

    Example:
        >>> check_one_of("compact", "strategy", "sort", ["binpack", "sort"])
    """
    if value not in known:
        raise ArgumentRefused(
            function=function,
            parameter=parameter,
            why=f"it is {value!r}",
            expected="one of " + ", ".join(repr(word) for word in known),
        )


def as_names(names: Sequence[str]) -> tuple[str, ...]:
    """Give names as a tuple; one alone need not stand in a list.

    Example:
        >>> as_names("region"), as_names(["region", "day"])
        (('region',), ('region', 'day'))
    """
    return (names,) if isinstance(names, str) else tuple(names)


def _check_of(annotation: str) -> _Check:
    return _check_of_tree(ast.parse(annotation, mode="eval").body)


def _check_of_tree(tree: ast.expr) -> _Check:
    match tree:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _union(_check_of_tree(left), _check_of_tree(right))
        case ast.Subscript(value=ast.Name(id="Sequence"), slice=of):
            return _list_check(_check_of_tree(of))
        case ast.Subscript(value=ast.Name(id="Mapping"), slice=ast.Tuple(elts=[key, value])):
            return _mapping_check(_check_of_tree(key), _check_of_tree(value))
        case ast.Subscript(value=of):
            return _CHECKS[ast.unparse(of)]
    return _CHECKS[ast.unparse(tree)]


def _union(left: _Check, right: _Check) -> _Check:
    def check(value: object) -> str | None:
        why = left(value)
        return None if why is None or right(value) is None else why

    return check


def _list_check(of: _Check) -> _Check:
    def check(value: object) -> str | None:
        if isinstance(value, str):  # one name, which need not stand in a list
            return of(value)
        if isinstance(value, bytes | Mapping) or not isinstance(value, Collection):
            return _named(value)
        whys = filter(None, map(of, value))
        return next((f"it has an element of which {why}" for why in whys), None)

    return check


def _mapping_check(key: _Check, of: _Check) -> _Check:
    def check(value: object) -> str | None:
        if not isinstance(value, Mapping):
            return _named(value)
        for name, element in value.items():
            if (why := key(name)) is not None:
                return f"it has a key of which {why}"
            if (why := of(element)) is not None:
                return f"of its value for {name!r}, {why}"
        return None

    return check


def _instance(*classes: type) -> _Check:
    return lambda value: None if isinstance(value, classes) else _named(value)


def _whole_number(value: object) -> str | None:
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    return None if is_number else _named(value)


def _named(value: object) -> str:
    """Say what a value is, not which: it may be a secret."""
    if value is None:
        return "it is None"
    cls = type(value)
    is_plain = cls.__module__ in ("builtins", "datetime")
    spelled = cls.__qualname__ if is_plain else f"{cls.__module__}.{cls.__qualname__}"
    return f"it is of type {spelled}"


_CHECKS: Final[Mapping[str, _Check]] = {
    "object": lambda _: None,
    "None": lambda value: None if value is None else _named(value),
    "str": _instance(str),
    "int": _whole_number,
    "bool": _instance(bool, np.bool_),
    "datetime": _instance(datetime),
    "timedelta": _instance(timedelta),
    "os.PathLike": _instance(os.PathLike),
    "pa.DataType": _instance(pa.DataType),
    "pa.Schema": lambda _: None,  # what is none has an error of its own
    "Progress": lambda value: None if callable(value) else _named(value),
    "PlannedPartition": lambda value: None if hasattr(value, "residual") else _named(value),
    # Of packages that are imported late, or not installed.
    "SparkSession.Builder": lambda _: None,
    "datafusion.SessionContext": lambda _: None,
}
