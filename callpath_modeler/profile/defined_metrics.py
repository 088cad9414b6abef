"""Metrics of an experiment that a user defines by formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import UsageError, did_you_mean
from callpath_modeler.expression import Units, as_units
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.metric_formulas import (
    OPTION,
    Definition,
    Formula,
    combined_units,
    degree,
    unit_name,
)
from callpath_modeler.profile.metric_values import MetricValues
from callpath_modeler.profile.schema import Metric


def with_defined_metrics(
    experiment: Experiment, more: Sequence[Definition] = (), *, if_possible: bool = False
) -> Experiment:
    """Return an experiment with the metrics that formulas define.

    Metrics that were defined before are made again, because a formula of sums is not a sum of
    formulas: call paths may have been folded. A metric whose operands were not read has no values.

    Parameters
    ----------
    experiment : the measured runs
    more : further definitions
    if_possible : leave out definitions with unknown operands instead of raising an error

    Raises
    ------
    UsageError
        If the name of a definition is that of a measured metric or of another definition, or if an
        operand is unknown.
    """
    old = {each.name: each.formula for each in experiment.definitions}
    definitions = (*experiment.definitions, *_new(old, more))
    if not definitions:
        return experiment
    columns = {name: each for name, each in experiment.columns.items() if name not in old}
    known = dict.fromkeys([*columns, *experiment.declared])
    units = {name: _units(each.metric) for name, each in columns.items()}
    kept = []
    for each in definitions:
        if each.name in known:
            raise UsageError(
                f"{OPTION}: {each.name!r} is a measured metric", hint="choose another name"
            )
        unknown = [name for name in each.operands if name not in known]
        if unknown and if_possible:
            continue
        if unknown:
            hint = f"{did_you_mean(unknown[0], known)} metrics: {', '.join(known)}".lstrip()
            raise UsageError(
                f"{OPTION}: no metric {unknown[0]!r} for the formula of {each.name!r}", hint=hint
            )
        kept.append(each)
        known[each.name] = None
        if all(name in columns for name in each.operands):
            units[each.name] = combined_units(each.node, units)
            columns[each.name] = _values(each, columns, units[each.name])
    return replace(experiment, columns=columns, definitions=tuple(kept))


def _new(old: Mapping[str, str], more: Sequence[Definition]) -> Iterator[Definition]:
    """Yield the definitions that an experiment does not have yet."""
    for each in more:
        if each.name not in old:
            yield each
        elif old[each.name] != each.formula:
            raise UsageError(
                f"{OPTION}: {each.name!r} was defined as {old[each.name]!r} before",
                hint="choose another name",
            )


def _units(metric: Metric) -> Units | None:
    return as_units(metric.unit) if metric.unit else None


def _values(
    definition: Definition, columns: Mapping[str, MetricValues], units: Units | None
) -> MetricValues:
    """Return the values of a metric from those of its operands."""
    operands = [columns[name] for name in definition.operands]
    is_linear = degree(definition.node, lambda name: columns[name].metric.additive) == 1
    formula = Formula((definition,), definition.operands)
    exclusive = formula.of(_addends([one.exclusive for one in operands], is_linear))
    if is_linear:
        exclusive[np.logical_and.reduce([np.isnan(one.exclusive) for one in operands])] = np.nan
    total = formula.of([one.total for one in operands])
    for array in (exclusive, total):
        array.flags.writeable = False
    unit = unit_name(units)
    metric = Metric(definition.name, unit, definition.formula, additive=is_linear)
    return MetricValues(metric, exclusive, total)


def _addends(values: Sequence[FloatArray], is_linear: bool) -> Sequence[FloatArray]:
    """Return operands; in a sum, an operand that did not occur costs nothing."""
    return [np.where(np.isnan(one), 0.0, one) for one in values] if is_linear else values
