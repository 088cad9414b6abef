"""Interpretation of expectation files: from texts to expectations, with errors at their lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeGuard, TypeVar

import msgspec

from callpath_modeler.analysis.expectations.expectation import (
    EXAMPLES,
    Bound,
    Criterion,
    CriterionKind,
    Defaults,
    Document,
    Expectation,
    Expectations,
    ExpectEntry,
    GrowthLimit,
    JudgementSettings,
    RuleEntry,
    RuleText,
    parse,
)
from callpath_modeler.errors import CONFIDENCE, InputError, UsageError
from callpath_modeler.modeling import (
    Function,
    Growth,
    GrowthSyntaxError,
    parse_function,
    parse_growths,
)
from callpath_modeler.modeling.expected_growth import DeviationLimits, default_deviation
from callpath_modeler.modeling.growth import CONSTANT_GROWTH
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.omissions import WHOLE
from callpath_modeler.profile.runs import main_parameter
from callpath_modeler.support.expression import (
    CallPathsNode,
    Comparison,
    ComparisonError,
    ExpressionError,
    leaves,
    parse_comparison,
)
from callpath_modeler.support.toml import Place, TomlFile
from callpath_modeler.units import base_and_factor, parse_quantity

_AnyEntry = TypeVar("_AnyEntry", ExpectEntry, RuleEntry)

_LEAST_CONFIDENCE = 0.5
"""Smallest confidence; below it, an expectation could be met and broken at once."""


def read(path: Path) -> Expectations:
    """Return the expectations of a file.

    Raises
    ------
    InputError
        If there is no such file, or if a text in it is invalid; the message begins with file and
        line.
    """
    try:
        content = path.read_bytes()
    except OSError as cause:
        hint = "check its permissions"
        if path.is_dir():
            hint = "the runs come first, the file last"
        elif isinstance(cause, FileNotFoundError):
            hint = "cpmodel baseline EXP... -o FILE.toml makes one"
        raise InputError(f"{path}: {cause.strerror}", hint=hint) from cause
    return interpret(parse(content, str(path)))


def interpret(written: TomlFile[Document]) -> Expectations:
    """Return the expectations of a parsed file.

    Raises
    ------
    InputError
        If a text is invalid.
    """
    document = written.document
    reader = _Reader(written)
    numbers = reader.numbers()
    if not document.expect and not document.rule:
        written.refuse((), "nothing is expected", "add [[expect]] with callpath and growth")
    found = [one for k in range(len(document.expect)) for one in reader.expectations(k)]
    found += [reader.rule(k) for k in range(len(document.rule))]
    expectations = tuple(sorted(found, key=lambda each: written.line(each.place)))
    _check_names(written, expectations)
    return Expectations(written, expectations, numbers, reader.parameter)


def _check_names(written: TomlFile[Document], expectations: tuple[Expectation, ...]) -> None:
    """Raise an error for repeated names and for unknown controls."""
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
                f"others: {', '.join(name for name in lines if name != each.name) or 'none'}",
            )


_ANY = "**"
_AT_MOST = {"<=": True, "≤": True, ">=": False, "≥": False}


class _Reader:
    """Interpreter of the texts of one file."""

    def __init__(self, written: TomlFile[Document]) -> None:
        self._written = written
        self._defaults = written.document.defaults
        # Targets know their lines: they are read where they stand.
        stated = ((key, getattr(self._defaults, key)) for key in Defaults.__struct_fields__)
        self._stated = [each for each in stated if each[0] != "target" and each[1] is not None]
        self._named: list[str] = []
        self._limits: dict[tuple[str, str | None, tuple[str, ...]], tuple[GrowthLimit, ...]] = {}
        of_file = self._setting(("target",), written.document.target)
        self._target = self._setting(("defaults", "target"), self._defaults.target) or of_file

    @property
    def parameter(self) -> str | None:
        """Main parameter of the targets; None = there are no targets."""
        return main_parameter(self._named)

    def numbers(self) -> dict[str, tuple[float, str]]:
        """Return the numbers of the file."""
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

    def expectations(self, number: int) -> list[Expectation]:
        """Return the expectation of one ``[[expect]]``.

        A growth in several parameters is an expectation along each of them.
        """
        place: Place = ("expect", number)
        stated = self._written.document.expect[number]
        entry = self._with_defaults(stated)
        target = self._setting((*place, "target"), entry.target) or self._target
        criteria = self._criteria(entry, place, target)
        callpath = _ANY if entry.others and entry.callpath is None else entry.callpath
        if callpath is not None and not callpath.strip():
            self._refuse(place, "callpath", "empty call-path pattern")
        at_least = 1 if entry.at_least is None else entry.at_least
        if at_least < 0:
            self._refuse(place, "at_least", f"at_least = {at_least} is below zero")
        name = (entry.name or "").strip()
        if not name:
            subject = callpath or WHOLE
            subject += f", {stated.metric}" if stated.metric else ""
            name = f"{subject}: {', '.join(dict.fromkeys(_phrase(one) for one in criteria))}"
        shared = {
            "callpath": callpath,
            "others": entry.others,
            "at_least": at_least,
            **self._shared(entry, place, target),
        }
        limits = [one for one in criteria if isinstance(one, GrowthLimit)]
        if len(limits) < 2:
            return [Expectation(name=name, criteria=criteria, **shared)]
        # Bounds are evaluated once, with the first parameter.
        bounds = (criteria[len(limits) :], *(() for _ in limits[1:]))
        return [
            Expectation(name=f"{name}, along {one.parameter}", criteria=(one, *its), **shared)
            for one, its in zip(limits, bounds, strict=True)
        ]

    def rule(self, number: int) -> Expectation:
        """Return the expectation of one ``[[rule]]``."""
        place: Place = ("rule", number)
        entry = self._with_defaults(self._written.document.rule[number])
        comparison = self._comparison(entry.rule, (*place, "rule"))
        target = self._setting((*place, "target"), entry.target) or self._target
        return Expectation(
            name=(entry.name or "").strip() or comparison.text,
            criteria=(RuleText(comparison),),
            **self._shared(entry, place, target),
        )

    def _with_defaults(self, entry: _AnyEntry) -> _AnyEntry:
        """Return an entry with the defaults of the file for its missing keys."""
        missing = {key: value for key, value in self._stated if getattr(entry, key, "") is None}
        return msgspec.structs.replace(entry, **missing) if missing else entry

    def _shared(
        self, entry: ExpectEntry | RuleEntry, place: Place, target: Mapping[str, float]
    ) -> dict[str, Any]:
        """Return the fields that expectations of call paths and of rules share."""
        return {
            "place": place,
            "inclusive": bool(entry.inclusive),
            "metric": entry.metric,
            "target": target,
            "confidence": self._confidence(entry, place),
            "unsure": entry.unsure or "warn",
            "control": entry.control,
            "xfail": entry.xfail,
            "note": entry.note,
            "source": entry.source,
        }

    def _confidence(self, entry: JudgementSettings, place: Place) -> float:
        """Return the confidence of an entry."""
        confidence = CONFIDENCE if entry.confidence is None else entry.confidence
        if not _LEAST_CONFIDENCE <= confidence < 1:
            message = f"confidence {confidence:g} is no probability from 0.5 to below 1"
            self._refuse(place, "confidence", message)
        return confidence

    def _refuse(self, place: Place, key: str, message: str) -> NoReturn:
        """Raise an error at the value of a key, which may belong to the defaults."""
        own = (*place, key)
        where = own if own in self._written.lines else ("defaults", key)
        self._written.refuse(where, message, f"e.g. {EXAMPLES[key]}")

    def _setting(self, place: Place, target: dict[str, object] | None) -> dict[str, float]:
        """Return the values of a target."""
        if target is None:
            return {}
        main = main_parameter(target)
        if main is None:
            self._written.refuse(place, "a target names no parameter", EXAMPLES["target"])
        found: dict[str, float] = {}
        for name, value in target.items():
            if not _is_number(value) or not value > 0:
                self._written.refuse(
                    (*place, name), f"{name} = {value!r} is no scale", "a number above zero, or inf"
                )
            if name != main and math.isinf(value):
                hint = "give the others a value"
                self._written.refuse((*place, name), f"only {main} may be infinite", hint)
            found[name] = float(value)
        self._named += found
        return found

    def _criteria(
        self, entry: ExpectEntry, place: Place, target: Mapping[str, float]
    ) -> tuple[Criterion, ...]:
        found: list[Criterion] = []
        if entry.growth is not None:
            named = tuple(target) or tuple(dict.fromkeys(self._named))
            said = entry.growth, entry.deviation, named
            # Of ten thousand expectations, few limits are different ones.
            if said not in self._limits:
                self._limits[said] = self._limits_of(*said, place)
            found += self._limits[said]
        for kind in CriterionKind:
            text = getattr(entry, kind)
            if text is not None:
                found.append(self._bound(text, kind, place))
        if entry.bound is not None:
            where = (*place, "bound")
            comparison = self._comparison(entry.bound, where)
            for leaf in (*leaves(comparison.left), *leaves(comparison.right)):
                if isinstance(leaf, CallPathsNode):
                    message = "call paths in braces belong to a [[rule]]"
                    fault = ComparisonError(entry.bound, leaf.column, message)
                    self._point(where, fault, entry.bound)
            found.append(comparison)
        if not found:
            keys = ", ".join(["growth", *CriterionKind, "bound"])
            self._written.refuse(place, "nothing is expected here", f"add one of {keys}")
        return tuple(found)

    def _limits_of(
        self, text: str, deviation: str | None, named: Sequence[str], place: Place
    ) -> tuple[GrowthLimit, ...]:
        """Return the limit of a growth along each of its parameters."""
        sign, rest = _split(text)
        expected = self._growths(rest, text, (*place, "growth"), named)
        given: dict[str, Growth] | None = None
        if deviation is not None:
            wanted = [*expected] or named
            given = self._growths(deviation, deviation, (*place, "deviation"), wanted)
        if not expected:
            expected = {next(iter(given or ()), ""): CONSTANT_GROWTH}
        limits = []
        for name, growth in expected.items():
            far = default_deviation(growth) if sign is None else CONSTANT_GROWTH
            if given is not None:
                # O(1) is a deviation along all parameters.
                far = given.get(name, far) if given else CONSTANT_GROWTH
            if far < CONSTANT_GROWTH:
                self._refuse(place, "deviation", f"deviation = {deviation!r} is below O(1)")
            low = None if sign is True else growth / far
            high = None if sign is False else growth * far
            limits.append(GrowthLimit(text, growth, DeviationLimits(low, high), name or None))
        return tuple(limits)

    def _growths(
        self, text: str, whole: str, place: Place, wanted: Sequence[str]
    ) -> dict[str, Growth]:
        """Return growths by parameter; some parameter is one of `wanted`, if there are any."""
        key = str(place[-1])
        try:
            found = parse_growths(text)
        except ExpressionError as cause:
            self._point(place, cause, whole)
        if found and wanted and not found.keys() & set(wanted):
            its, others = " and ".join(found), " and ".join(wanted)
            message = f"{key} = {whole!r} is of {its}, the others are of {others}"
            self._refuse(place[:-1], key, message)
        return found

    def _bound(self, text: str, kind: CriterionKind, place: Place) -> Bound:
        at_most, rest = _split(text)
        if at_most is None:
            self._refuse(place, kind, f"{kind} = {text!r} does not begin with <= or >=")
        amount, written = self._quantity((*place, kind), rest, text)
        unit, factor = base_and_factor(written)
        if kind in {CriterionKind.SHARE, CriterionKind.EXCESS} and unit != "1":
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
            return parse_comparison(text)
        except ExpressionError as cause:
            self._point(place, cause, text)

    def _point(self, place: Place, fault: ExpressionError, whole: str) -> NoReturn:
        """Raise an error with the column of the invalid part at the end of a text."""
        column = fault.column + max(whole.rfind(fault.text), 0)
        told = type(fault)(whole, column, fault.message)
        self._written.refuse(place, f"{place[-1]}: {told}", f"e.g. {EXAMPLES[str(place[-1])]}")


def _is_number(value: object) -> TypeGuard[int | float]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and not (isinstance(value, float) and math.isnan(value))


def _split(text: str) -> tuple[bool | None, str]:
    """Return True for ``<=`` or False for ``>=``, and the rest of the text."""
    text = text.strip()
    sign = next((sign for sign in _AT_MOST if sign and text.startswith(sign)), "")
    return _AT_MOST.get(sign), text.removeprefix(sign).strip()


def _phrase(criterion: Criterion) -> str:
    """Return a criterion as text, as in the file."""
    match criterion:
        case Bound():
            return f"{criterion.kind} {criterion.text}"
        case GrowthLimit():
            return f"growth {criterion.text}"
        case Comparison() | RuleText():
            return criterion.text


_EXAMPLES = "e.g. --expect 'O(log p)', --expect expectations.toml, or a directory of runs"


@dataclass(frozen=True, slots=True)
class ExcessExpectation:
    """The content of ``--expect``: a growth, a file of expectations, or another experiment.

    Attributes
    ----------
    text : what the user wrote
    growth : the growth and its parameter; None = it is none
    expectations : the expectations of a file; None = it is none. Without both, `text` is the path
        of another experiment
    """

    text: str
    growth: tuple[Function, str | None] | None = None
    expectations: Expectations | None = None


def parse_expectation(text: str) -> ExcessExpectation:
    """Return the content of ``--expect``.

    A path that exists is a file of expectations if its suffix is ``.toml``, else an experiment. All
    else is a growth.

    Raises
    ------
    UsageError
        If the text is neither a path nor a growth.
    InputError
        If the file of expectations is invalid.
    """
    if text.endswith(".toml"):
        return ExcessExpectation(text, expectations=read(Path(text)))
    if text in {Scaling.WEAK, Scaling.STRONG}:
        raise UsageError(f"--expect {text} is a kind of scaling", hint=f"--scaling {text}")
    try:
        if text.strip() and Path(text).exists():
            return ExcessExpectation(text)
    except (OSError, ValueError):
        pass  # The text is too long for a path, or has a null character.
    try:
        return ExcessExpectation(" ".join(text.split()), growth=parse_function(text))
    except GrowthSyntaxError as cause:
        message = f"--expect is neither a growth nor an existing path: {cause}"
        raise UsageError(message, hint=_EXAMPLES) from None
