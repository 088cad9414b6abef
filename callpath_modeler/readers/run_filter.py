"""Conditions that select runs, such as ``p>=64`` and ``InputType=Random``."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from msgspec import Struct

from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.numerals import decimal_of
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.runs import of_case
from callpath_modeler.readers.parameters import FROM_PROFILE

_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_CONDITION = re.compile(r"([^<>=!]+)(>=|<=|!=|==|=|>|<)([^<>=!]+)")


class _Described(Protocol):
    @property
    def metadata(self) -> Mapping[str, str]: ...


class _Stating(_Described, Protocol):
    @property
    def stated(self) -> Mapping[str, float]: ...
    @property
    def cases(self) -> Sequence[str]: ...


_R = TypeVar("_R", bound=_Stating)


class RunCondition(Struct, frozen=True):
    """A condition on one parameter or on one entry of the metadata.

    Attributes
    ----------
    name : name of a parameter, or key of the metadata
    sign : comparison
    text : right-hand side; for text with ``=`` and ``!=``, it may contain ``*`` and ``?``
    """

    name: str
    sign: str
    text: str

    def as_text(self) -> str:
        """Return the condition as it was given."""
        return f"{self.name}{self.sign}{self.text}"

    def holds(self, value: str | float | None) -> bool:
        """Return whether a parameter or a text of the metadata meets the condition.

        Raises
        ------
        UsageError
            If a text would be compared by size.
        """
        if value is None:
            return self.sign == "!="
        left, right = _number(value), _number(self.text)
        if left is not None and right is not None:
            return bool(_COMPARE[self.sign](left, right))
        if self.sign not in {"=", "==", "!="}:
            raise UsageError(
                f"--where {self.name}{self.sign}{self.text}: the value {value!r} is not a number",
                hint="compare words with = or !=, e.g. --where "
                + shell_word(f"{self.name}={value}"),
            )
        is_like = fnmatchcase(str(value).lower(), self.text.lower())
        return is_like is not (self.sign == "!=")


def parse_conditions(text: str) -> list[RunCondition]:
    """Return the conditions in a text, which commas separate.

    Raises
    ------
    UsageError
        If a condition is malformed.
    """
    conditions = []
    for part in text.split(","):
        parsed = _CONDITION.fullmatch(part)
        if parsed is None or not (parsed[1].strip() and parsed[3].strip()):
            raise UsageError(
                f"condition {part!r} is malformed",
                hint="e.g. --where 'p>=64,n=30' or --where 'InputType=Random'",
            )
        conditions.append(RunCondition(parsed[1].strip(), parsed[2], parsed[3].strip()))
    return conditions


class RunSelection:
    """Conditions on runs; those on metadata are applied before parameters are known.

    Parameters
    ----------
    text : conditions, with commas between them
    cases : names of cases; a run must be of all of them
    if_possible : ignore the names if the runs are of one case
    """

    def __init__(self, text: str, cases: Sequence[str] = (), *, if_possible: bool = False) -> None:
        self.if_possible = if_possible
        self.finds_cases = False
        """Whether the runs are of several cases, so that the names apply."""
        self.open = parse_conditions(text) if text else []
        """Conditions that have not been applied."""
        self.cases = [*cases]
        """Names of cases that have not been applied."""
        self.excluded = 0, 0
        """Number of runs that conditions on metadata excluded, and of all runs."""

    def by_metadata(self, runs: list[_R]) -> list[_R]:
        """Return the runs that meet the conditions on metadata, and are of the chosen cases.

        Raises
        ------
        DataError
            If no run meets them.
        UsageError
            If there is no such case.
        """
        parameters = {name for run in runs for name in run.stated} | FROM_PROFILE.keys()
        chosen = runs
        for condition in [*self.open]:
            name = condition.name
            if name not in parameters and is_metadata(runs, name):
                chosen = [run for run in chosen if condition.holds(metadata_value(run, name))]
                self.open.remove(condition)
                if not chosen:
                    told = condition.as_text()
                    raise DataError(f"no run is left where {told}", hint="see `cpmodel info`")
        keys = keys_of_cases(chosen)
        self.finds_cases = bool(keys)
        for text in self.cases if keys or not self.if_possible else ():
            found = of_case(keys, chosen, text)
            chosen = [run for run, is_chosen in zip(chosen, found, strict=True) if is_chosen]
        self.cases = []
        self.excluded = len(runs) - len(chosen), len(runs)
        return chosen


def keys_of_cases(runs: Iterable[_Stating]) -> list[str]:
    """Return the keys of the metadata that tell cases apart, each once."""
    return [*dict.fromkeys(key for run in runs for key in run.cases)]


def metadata_value(run: _Described, name: str) -> str | None:
    """Return the metadata of a run under a key; upper and lower case are equal."""
    if name in run.metadata:
        return run.metadata[name]
    found = (text for key, text in run.metadata.items() if key.lower() == name.lower())
    return next(found, None)


def is_metadata(runs: Sequence[_Described], name: str) -> bool:
    """Return whether any run has the key in its metadata."""
    return any(metadata_value(run, name) is not None for run in runs)


def _number(value: str | float) -> float | None:
    try:
        return decimal_of(value) if isinstance(value, str) else float(value)
    except ValueError:
        return None
