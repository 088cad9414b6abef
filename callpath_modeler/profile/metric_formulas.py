"""Formulas of metrics that a user defines, such as ``ipc = instructions / cycles``.

A ratio does not add up, so the value of a metric is the formula of sums: the instructions of a
subtree by its cycles. A linear formula without a constant term, such as ``cycles - stalls``, gives
a metric that adds up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shortened
from callpath_modeler.support import expression

OPTION = "--define"
"""Name of the option in messages."""

_MOST, _LONGEST, _LARGEST = 32, 500, 30
"""Largest number of definitions, and of characters and operands of one.

Files may come from anybody, and each operand takes time in proportion to the values of a metric.
"""
_LARGEST_POWER = 3
"""Largest power of a unit that is shown."""
_DEFINITION = re.compile(r"""\s*(?:([^\W\d][\w.]*)|'([^']+)'|"([^"]+)"|`([^`]+)`)\s*=\s*(\S.*)""")
_EXAMPLE = f"e.g. {OPTION} 'ipc = instructions / cycles'"


class Definition(Struct, frozen=True):
    """A metric that a user defines.

    Attributes
    ----------
    name : name of the metric
    formula : formula as the user wrote it
    node : the parsed formula
    """

    name: str
    formula: str
    node: expression.Node

    @property
    def text(self) -> str:
        """The definition in the syntax of the option."""
        quote = next(sign for sign in "`'\"" if sign not in self.name)
        return f"{quote}{self.name}{quote} = {self.formula}"

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of metrics in the formula, each once."""
        names = (
            leaf.text
            for leaf in expression.leaves(self.node)
            if isinstance(leaf, expression.NameNode)
        )
        return tuple(dict.fromkeys(names))


def parse_definitions(texts: Iterable[str]) -> tuple[Definition, ...]:
    """Return the definitions that texts such as ``"ipc = instructions / cycles"`` state.

    Raises
    ------
    UsageError
        If a text is not a definition, if two define one name, or if a formula uses its own name or
        a name that a later text defines.
    """
    found = [_definition(text) for text in texts]
    if len(found) > _MOST:
        raise UsageError(f"{OPTION}: more than {_MOST} definitions", hint="define fewer metrics")
    names = [each.name for each in found]
    for place, each in enumerate(found):
        if each.name in names[:place]:
            raise UsageError(
                f"{OPTION}: {each.name!r} is defined twice", hint="give each metric its own name"
            )
        for name in each.operands:
            if name in names[place:]:
                whose = "itself" if name == each.name else f"{name!r}, which is defined later"
                raise UsageError(
                    f"{OPTION}: the formula of {each.name!r} uses {whose}",
                    hint="a formula uses measured metrics and earlier definitions",
                )
    return tuple(found)


def _definition(text: str) -> Definition:
    if len(text) > _LONGEST:
        raise UsageError(
            f"{OPTION} {shortened(text)!r}: more than {_LONGEST} characters",
            hint="divide the formula into several definitions",
        )
    found = _DEFINITION.fullmatch(text)
    if found is None or not text.isprintable():
        raise UsageError(f"{OPTION} {shortened(text)!r} is not NAME = FORMULA", hint=_EXAMPLE)
    name = next(group for group in found.groups() if group is not None)
    formula = found[5].strip()
    try:
        made = Definition(name, formula, expression.parse_formula(formula))
    except expression.ComparisonError as cause:
        hint = "operators: + - * / ( ) min max; quote a name with other signs: `PAPI::L2`"
        raise UsageError(f"{OPTION} {name}: {cause}", hint=hint) from None
    if _size(made.node) > _LARGEST:
        raise UsageError(
            f"{OPTION} {name}: more than {_LARGEST} names and numbers",
            hint="divide the formula into several definitions",
        )
    if not made.operands:
        raise UsageError(f"{OPTION} {shortened(text)!r}: no metric is in it", hint=_EXAMPLE)
    return made


def _size(node: expression.Node) -> int:
    """Return the number of names and numbers in a formula."""
    count, waiting = 0, [node]
    while waiting:
        first = waiting.pop()
        if isinstance(first, expression.SumNode | expression.ProductNode | expression.ExtremeNode):
            waiting += expression.parts_of(first)
        else:
            count += 1
    return count


def needed_for(definitions: Sequence[Definition], name: str) -> tuple[Definition, ...]:
    """Return the definitions that the values of a metric need, in their order."""
    names, found = {name}, []
    # A formula uses earlier definitions only.
    for each in reversed(definitions):
        if each.name in names:
            names |= {*each.operands}
            found.append(each)
    return tuple(reversed(found))


def measured_operands(definitions: Sequence[Definition], name: str) -> tuple[str, ...]:
    """Return the names of the measured metrics that a metric needs: its own if it is measured."""
    needed = needed_for(definitions, name)
    names = dict.fromkeys(operand for each in needed for operand in each.operands)
    defined = {each.name for each in needed}
    return tuple(each for each in names if each not in defined) or (name,)


class Formula(Struct, frozen=True):
    """Formula of a metric over additive metrics.

    Attributes
    ----------
    steps : definitions that are evaluated in this order, the last of which is the metric
    parts : names of the additive metrics, whose sums are the operands
    """

    steps: tuple[Definition, ...]
    parts: tuple[str, ...]

    def of(self, sums: Sequence[FloatArray]) -> FloatArray:
        """Return the formula of sums of the parts, elementwise; NaN = not known.

        Parameters
        ----------
        sums : sums of each part in the order of `parts`, arrays of one shape
        """
        if sums[0].ndim > 1:
            # One column at a time: a formula of many operators needs as many arrays.
            columns = range(sums[0].shape[-1])
            found = [self.of([each[..., k] for each in sums]) for k in columns]
            return np.stack(found, axis=-1) if found else np.empty(sums[0].shape)
        values: dict[str, FloatArray] = dict(zip(self.parts, sums, strict=True))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for step in self.steps:
                made = expression.evaluate(step.node, lambda leaf: values[_name(leaf)])
                values[step.name] = np.broadcast_to(made, sums[0].shape)
        found_values = values[self.steps[-1].name]
        return np.where(np.isfinite(found_values), found_values, np.nan)


def _name(leaf: object) -> str:
    assert isinstance(leaf, expression.NameNode), "a formula has no call paths"
    return leaf.text


def degree(node: expression.Node, is_additive: Callable[[str], bool]) -> int | None:
    """Return 1 if a formula is linear without a constant term, 0 if constant, None otherwise.

    Parameters
    ----------
    node : the formula
    is_additive : whether the values of a metric add up
    """
    if isinstance(node, expression.NumberNode):
        return 0
    if not isinstance(node, expression.SumNode | expression.ProductNode | expression.ExtremeNode):
        return 1 if is_additive(_name(node)) else None
    found = [degree(part, is_additive) for part in expression.parts_of(node)]
    if isinstance(node, expression.SumNode | expression.ExtremeNode):
        same = found[0] if found == found[:1] * len(found) else None
        return same if isinstance(node, expression.SumNode) or same == 0 else None
    over = [of for of, divides in zip(found, node.divides, strict=True) if divides]
    above = [of for of, divides in zip(found, node.divides, strict=True) if not divides]
    known = [of for of in above if of is not None]
    if any(of != 0 for of in over) or len(known) < len(above) or sum(known) > 1:
        return None
    return sum(known)


def unit_name(units: expression.Units | None) -> str:
    """Return the name of a unit for values with prefixes; "" = none.

    >>> unit_name((("B", 1), ("s", -1))), unit_name((("s", -2),)), unit_name(())
    ('B/s', '/s^2', '1')
    """
    if units is None:
        return ""
    above = [unit if power == 1 else f"{unit}^{power}" for unit, power in units if power > 0]
    below = [unit if power == -1 else f"{unit}^{-power}" for unit, power in units if power < 0]
    return "/".join([" ".join(above), *below]) or "1"


def combined_units(
    node: expression.Node, known: Mapping[str, expression.Units | None]
) -> expression.Units | None:
    """Return the unit of a formula from the units of its operands; None = it has none.

    A sum of different units has no unit, and a unit of a high power says nothing.
    """

    def of_operand(leaf: object) -> expression.Units:
        unit = known[_name(leaf)]
        if unit is None:
            raise expression.ComparisonError("", 0, "an operand has no unit")
        return unit

    try:
        found = expression.units_of("", node, of_operand)
    except expression.ComparisonError:
        return None
    return found if all(abs(power) <= _LARGEST_POWER for _, power in found) else None
