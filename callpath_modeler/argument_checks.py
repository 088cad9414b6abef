"""Checks of arguments that Python code passes: words, numbers, kinds of objects."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from numbers import Integral, Real
from typing import TypeVar

from callpath_modeler.errors import UsageError, did_you_mean

_Kind = TypeVar("_Kind", bound=StrEnum)

CONFIDENCE = 0.95
"""Default of the probability that a band holds the value."""

_MADE_BY = {
    "Compared": "compare(base, new)",
    "DataFrame": "pandas.DataFrame(...)",
    "Experiment": "load(sources) or from_frame(frame)",
    "Fitted": "fit(experiment)",
    "Mapping": "e.g. {'p': 4096}",
    "Path": "a path, e.g. 'runs'",
    "Ranking": "rank(models, target)",
    "SearchSpace": "SearchSpace.of(['0', '1/2', '1'])",
    "str": "e.g. 'time'",
    "tuple": "e.g. ('time', 'visits')",
}
"""Expressions that make objects, for messages; other objects are made by their class."""


def parse_enum(kind: type[_Kind], value: str, what: str) -> _Kind:
    """Return the member of an enumeration for a word or a member.

    Parameters
    ----------
    kind : the enumeration
    value : the word
    what : name of the option for the message

    Raises
    ------
    UsageError
        If there is no such word.
    """
    check_choice(value, kind, what)
    return kind(value)


def check_choice(value: str, choices: Iterable[str], what: str) -> None:
    """Raise `UsageError` if a word is not known."""
    words = [str(word) for word in choices]
    if value not in words:
        meant = f"{did_you_mean(str(value), words)} known: {', '.join(words)}".lstrip()
        raise UsageError(f"no {what} {value!r}", hint=meant)


def check_executor(value: object) -> None:
    """Raise `UsageError` if a value is neither None nor an executor of `concurrent.futures`."""
    if value is not None:
        # Importing it takes longer than all other checks, and few commands need it.
        from concurrent.futures import Executor

        check_type(value, Executor, "executor")


def check_type(value: object, kind: type | tuple[type, ...], what: str) -> None:
    """Raise `UsageError` if a value has the wrong type.

    Parameters
    ----------
    value : the value
    kind : the accepted type or types
    what : purpose of the value for the message
    """
    if isinstance(value, kind):
        return
    names = [each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,))]
    wanted = " or ".join("None" if name == "NoneType" else name for name in names)
    raise UsageError(
        f"{what}: {wanted} is expected, not {type(value).__name__}",
        hint=_MADE_BY.get(names[-1]) or _MADE_BY.get(names[0]) or f"{names[0]}(...)",
    )


def check_count(value: object, least: int, what: str) -> None:
    """Raise `UsageError` unless a value is a whole number of at least `least`."""
    if not isinstance(value, Integral) or value < least:
        raise UsageError(
            f"{what} {value!r} is not a whole number of at least {least}", hint=f"e.g. {least}"
        )


def check_probability(value: object, what: str) -> None:
    """Raise `UsageError` unless a value is between 0 and 1."""
    # Comparisons with NaN are false.
    if not (isinstance(value, Real) and 0.0 < float(value) < 1.0):
        raise UsageError(f"{what} {value} is not a probability", hint="e.g. 0.95")
