"""From an expectation file to expectations: every text in it understood, or refused by its line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NoReturn, TypeGuard

import msgspec

from callpath_modeler.analysis.expectations.document import (
    EXAMPLES,
    Defaults,
    Entry,
    Unsure,
    Written,
    parse,
)
from callpath_modeler.analysis.expectations.expression import (
    CallPaths,
    Comparison,
    ComparisonError,
    leaves,
    parse_comparison,
)
from callpath_modeler.analysis.expectations.positions import Place
from callpath_modeler.errors import InputError
from callpath_modeler.modeling import Growth, parse_growth
from callpath_modeler.modeling.growth import CONSTANT_GROWTH
from callpath_modeler.modeling.validation import Limits, default_deviation
from callpath_modeler.syntax import ExpressionError
from callpath_modeler.units import base_and_factor, parse_quantity

_LEAST_CONFIDENCE = 0.5
"""Below, something could be kept and broken at once."""


class Kind(StrEnum):
    """Numbers that can be bounded at a target."""

    VALUE = "value"
    SHARE = "share"  # of the whole program
    EXCESS = "excess"  # excess work between the smallest scale and the target
    LOSS = "loss"  # cost per process beyond the ideal


@dataclass(frozen=True, slots=True)
class GrowthLimit:
    """How fast something may grow.

    Attributes
    ----------
    text : as the user wrote it
    expected : the growth that is written there
    limits : what is accepted
    """

    text: str
    expected: Growth
    limits: Limits


@dataclass(frozen=True, slots=True)
class Bound:
    """What a number at the target is to stay below or above.

    Attributes
    ----------
    text : as the user wrote it
    kind : which number
    at_most : True for ``<=``, False for ``>=``
    amount : in `unit`
    unit : SI base unit
    """

    text: str
    kind: Kind
    at_most: bool
    amount: float
    unit: str


Criterion = GrowthLimit | Bound | Comparison


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation.

    Attributes
    ----------
    name : unique in its file
    place : where it stands there
    criteria : all of them are expected
    callpath : pattern; None = the whole program
    others : only of call paths that no other expectation names
    inclusive : of call paths with all that they call
    metric : None = the run time
    target : value of the parameter; None = the file names none
    at_least : how many call paths the pattern is to match
    confidence : of the verdict
    unsure : what to make of it where the data do not tell
    control : name of an expectation that fails along where the machine is to blame
    xfail : why it is known to fail
    note, source : for people
    """

    name: str
    place: Place
    criteria: tuple[Criterion, ...]
    callpath: str | None
    others: bool
    inclusive: bool
    metric: str | None
    target: float | None
    at_least: int
    confidence: float
    unsure: Unsure
    control: str | None
    xfail: str | None
    note: str | None
    source: str | None


@dataclass(frozen=True, slots=True)
class Expectations:
    """All of a file.

    Attributes
    ----------
    written : the file
    expectations : in its order
    numbers : by name, each with its unit
    parameter : which one targets are of; None = there are no targets
    """

    written: Written
    expectations: tuple[Expectation, ...]
    numbers: Mapping[str, tuple[float, str]]
    parameter: str | None


def read(path: Path) -> Expectations:
    """Read an expectation file.

    Raises
    ------
    InputError
        If there is none, or something in it is not understood; the message begins with file and
        line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as cause:
        raise InputError(f"{path}: not text in UTF-8", hint="TOML is") from cause
    except OSError as cause:
        raise InputError(
            f"{path}: {cause.strerror}", hint="cpmodel baseline EXP -o FILE.toml makes one"
        ) from cause
    return understand(parse(text, str(path)))


def understand(written: Written) -> Expectations:
    """Read what the texts of a file say.

    Raises
    ------
    InputError
        If one is not understood.
    """
    document = written.document
    reader = _Reader(written)
    numbers = reader.numbers()
    if document.rule:
        written.refuse(("rule",), "rules are not understood by this version", "use [[expect]]")
    if not document.expect:
        written.refuse((), "nothing is expected", "add [[expect]] with callpath and growth")
    expectations = tuple(reader.expectation(k) for k in range(len(document.expect)))
    _check_names(written, expectations)
    return Expectations(written, expectations, numbers, reader.parameter)


def _check_names(written: Written, expectations: tuple[Expectation, ...]) -> None:
    """Refuse names that stand twice, and controls that are none."""
    lines: dict[str, int] = {}
    for each in expectations:
        if each.name in lines:
            written.refuse(
                (*each.place, "name"),
                f"a second {each.name!r}; the first is in line {lines[each.name]}",
                "names tell expectations apart: give each its own",
            )
        lines[each.name] = written.line(each.place)
    for each in expectations:
        if each.control is not None and (each.control not in lines or each.control == each.name):
            written.refuse(
                (*each.place, "control"),
                f"no other expectation is called {each.control!r}",
                f"names: {', '.join(name for name in lines if name != each.name)}",
            )


_ANY = "**"
_SIGN = re.compile(r"\s*(<=|>=|≤|≥)?\s*(.*?)\s*", re.DOTALL)
_AT_MOST = {"<=": True, "≤": True, ">=": False, "≥": False}


class _Reader:
    """Reads the texts of one file."""

    def __init__(self, written: Written) -> None:
        self._written = written
        self._defaults = written.document.defaults
        self.parameter: str | None = None
        self._target = self._scale(("target",), written.document.target)
        self._target = self._scale(("defaults", "target"), self._defaults.target) or self._target

    def numbers(self) -> dict[str, tuple[float, str]]:
        """Return the numbers that the file names."""
        found = {}
        for name, value in self._written.document.numbers.items():
            place = ("numbers", name)
            if isinstance(value, str):
                amount, unit = self._quantity(place, value, value)
                base, factor = base_and_factor(unit)
                found[name] = (amount * factor, base)
            elif _is_number(value):
                found[name] = (float(value), "1")
            else:
                self._written.refuse(place, f"{name} is no number", 'e.g. 48, or "24 GB"')
        return found

    def expectation(self, number: int) -> Expectation:
        """Read one ``[[expect]]``."""
        place: Place = ("expect", number)
        own = self._written.document.expect[number]
        entry = msgspec.structs.replace(
            own,
            **{
                key: getattr(self._defaults, key)
                for key in Defaults.__struct_fields__
                if getattr(own, key) is None
            },
        )
        criteria = self._criteria(entry, place)
        callpath = _ANY if entry.others and entry.callpath is None else entry.callpath
        if callpath is not None and not callpath.strip():
            self._refuse(place, "callpath", "empty call-path pattern")
        confidence = 0.95 if entry.confidence is None else entry.confidence
        if not _LEAST_CONFIDENCE <= confidence < 1:
            message = f"confidence {confidence:g} is no probability from 0.5 to below 1"
            self._refuse(place, "confidence", message)
        at_least = 1 if entry.at_least is None else entry.at_least
        if at_least < 0:
            self._refuse(place, "at_least", f"at_least = {at_least} is below zero")
        target = None if own.target is None else self._scale((*place, "target"), own.target)
        expected = ", ".join(_phrase(one) for one in criteria)
        return Expectation(
            name=(entry.name or "").strip() or f"{callpath or 'whole program'}: {expected}",
            place=place,
            criteria=criteria,
            callpath=callpath,
            others=entry.others,
            inclusive=bool(entry.inclusive),
            metric=entry.metric,
            target=target or self._target,
            at_least=at_least,
            confidence=confidence,
            unsure=entry.unsure or "warn",
            control=entry.control,
            xfail=entry.xfail,
            note=entry.note,
            source=entry.source,
        )

    def _refuse(self, place: Place, key: str, message: str) -> NoReturn:
        """Refuse the value of a key of an entry, which may come from the defaults."""
        own = (*place, key)
        where = own if own in self._written.lines else ("defaults", key)
        self._written.refuse(where, message, f"e.g. {EXAMPLES[key]}")

    def _scale(self, place: Place, target: dict[str, object] | None) -> float | None:
        """Return the value of a target, whose parameter is the same everywhere."""
        if target is None:
            return None
        if len(target) != 1:
            self._written.refuse(
                place, f"a target names one parameter, not {len(target)}", EXAMPLES["target"]
            )
        [(name, value)] = target.items()
        if not _is_number(value) or not value > 0:
            self._written.refuse(
                (*place, name), f"{name} = {value!r} is no scale", "a number above zero, or inf"
            )
        if self.parameter not in {None, name}:
            self._written.refuse(
                (*place, name),
                f"a target of {name}; that of line "
                f"{self._written.line(('target',))} is of {self.parameter}",
                "all targets of a file are of one parameter",
            )
        self.parameter = name
        return float(value)

    def _criteria(self, entry: Entry, place: Place) -> tuple[Criterion, ...]:
        found: list[Criterion] = []
        if entry.growth is not None:
            found.append(self._limit(entry.growth, entry.deviation, place))
        for kind in Kind:
            text = getattr(entry, kind)
            if text is not None:
                found.append(self._bound(text, kind, place))
        if entry.bound is not None:
            found.append(self._comparison(entry.bound, place))
        if not found:
            keys = ", ".join(["growth", *Kind, "bound"])
            self._written.refuse(place, "nothing is expected here", f"add one of {keys}")
        return tuple(found)

    def _limit(self, text: str, deviation: str | None, place: Place) -> GrowthLimit:
        sign, rest = _split(text)
        expected, parameter = self._growth(rest, text, (*place, "growth"), self.parameter)
        given = None
        if deviation is not None:
            where = (*place, "deviation")
            given, _ = self._growth(deviation, deviation, where, parameter or self.parameter)
        far = given or (default_deviation(expected) if sign is None else CONSTANT_GROWTH)
        if far < CONSTANT_GROWTH:
            self._refuse(place, "deviation", f"deviation = {deviation!r} is below O(1)")
        low = None if sign is True else expected / far
        high = None if sign is False else expected * far
        return GrowthLimit(text, expected, Limits(low, high))

    def _growth(
        self, text: str, whole: str, place: Place, wanted: str | None
    ) -> tuple[Growth, str | None]:
        """Read a growth in the parameter that is wanted, if any; return both."""
        key = str(place[-1])
        try:
            parsed = parse_growth(text)
        except ExpressionError as cause:
            self._point(place, cause, whole)
        if parsed.parameter is not None and wanted not in {None, parsed.parameter}:
            message = f"{key} = {whole!r} is of {parsed.parameter}, the others are of {wanted}"
            self._refuse(place[:-1], key, message)
        return parsed.growth, parsed.parameter

    def _bound(self, text: str, kind: Kind, place: Place) -> Bound:
        at_most, rest = _split(text)
        if at_most is None:
            self._refuse(place, kind, f"{kind} = {text!r} does not begin with <= or >=")
        amount, written = self._quantity((*place, kind), rest, text)
        unit, factor = base_and_factor(written)
        if kind in {Kind.SHARE, Kind.EXCESS} and unit != "1":
            self._refuse(place, kind, f"{kind} = {text!r}: a fraction has no unit {written}")
        return Bound(text, kind, at_most, amount * factor, unit)

    def _quantity(self, place: Place, text: str, whole: str) -> tuple[float, str]:
        try:
            return parse_quantity(text)
        except ValueError:
            key = place[-1]
            self._written.refuse(
                place, f"{key} = {whole!r}: a number and its unit are needed", 'e.g. "2.5 s"'
            )

    def _comparison(self, text: str, place: Place) -> Comparison:
        try:
            comparison = parse_comparison(text)
        except ExpressionError as cause:
            self._point((*place, "bound"), cause, text)
        for side in (comparison.left, comparison.right):
            for leaf in leaves(side):
                if isinstance(leaf, CallPaths):
                    message = "call paths in braces belong to a [[rule]]"
                    self._point(
                        (*place, "bound"), ComparisonError(text, leaf.column, message), text
                    )
        return comparison

    def _point(self, place: Place, fault: ExpressionError, whole: str) -> NoReturn:
        """Refuse a text, with a mark before what is not understood."""
        shift = whole.rfind(fault.text)
        column = fault.column + max(shift, 0)
        marked = f"{whole[:column]} >>> {whole[column:]}".strip()
        self._written.refuse(
            place, f"{place[-1]}: {fault.message}: {marked}", f"e.g. {EXAMPLES[str(place[-1])]}"
        )


def _is_number(value: object) -> TypeGuard[int | float]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and not (isinstance(value, float) and math.isnan(value))


def _split(text: str) -> tuple[bool | None, str]:
    """Return whether a text begins with ``<=`` (True) or ``>=`` (False), and the rest of it."""
    found = _SIGN.fullmatch(text)
    assert found is not None
    return _AT_MOST.get(found[1] or ""), found[2]


def _phrase(criterion: Criterion) -> str:
    """Say what is expected, as the file does."""
    match criterion:
        case Bound():
            return f"{criterion.kind} {criterion.text}"
        case GrowthLimit():
            return f"growth {criterion.text}"
        case Comparison():
            return criterion.text
