"""Models as a Python module that does not need this package."""

from __future__ import annotations

import keyword
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.printable import in_one_line, python_docstring
from callpath_modeler.report.expressions import python_formulas
from callpath_modeler.report.headline import omissions
from callpath_modeler.units import parameter_value, setting_text

_OURS = {"MODELS", "callpath", "float", "np", "predict", "sum"}
_TAKEN = frozenset({*_OURS, "__debug__", *keyword.kwlist})

_MODULE = '''"""Models of {metric} [{unit}] of {experiment}, by call path.

Measured at {measured}; {values}.
{omitted}Written by `cpmodel export -f python`.
For bands, and for predictions that add up to the run time, see `cpmodel rank`.
"""

import numpy as np

METRIC = {metric_!r}
UNIT = {unit_!r}
PARAMETERS = {parameters!r}

MODELS = {{
{models}
}}


def predict(callpath, {arguments}):
    """Return the model of a call path at numbers or arrays of numbers, never below zero."""
    {arguments}{comma} = np.broadcast_arrays({floats})
    with np.errstate(over="ignore"):
        return np.maximum(MODELS[callpath]({arguments}) + np.zeros({first}.shape), 0.0)
'''

_TOTAL = '''

def total({arguments}):
    """Return the sum of all models."""
    return sum(predict(callpath, {arguments}) for callpath in MODELS)
'''


def python_source(fitted: Fitted) -> str:
    """Return the source of a module with a function per call path that has a model.

    It needs only numpy. Call paths that look the same are followed by their ids.
    """
    metric, arguments = fitted.metric, identifiers(fitted.parameters)
    listed = ", ".join(arguments)
    rows = np.flatnonzero(fitted.modelled)
    formulas = python_formulas(fitted.whole.formulas(rows, arguments, exact=True))
    keys = _keys(fitted, rows.tolist())
    models = "\n".join(
        f"    {key!r}: lambda {listed}: {formula},  # {in_one_line(note)}"
        for key, formula, note in zip(keys, formulas, _notes(fitted, rows), strict=True)
    )
    return (
        _MODULE.format(
            metric=python_docstring(metric.name),
            unit=python_docstring(metric.unit),
            metric_=metric.name,
            unit_=metric.unit,
            experiment=python_docstring(fitted.experiment.name),
            measured=python_docstring(_measured(fitted)),
            values=f"exclusive, {fitted.experiment.reduction.words}",
            omitted="".join(
                f"The models cover only part of the program ({python_docstring(each)}).\n"
                for each in omissions(fitted.experiment)
            ),
            parameters=tuple(arguments),
            models=models,
            arguments=listed,
            comma="," * (len(arguments) == 1),
            floats=", ".join(f"np.asarray({name}, float)" for name in arguments),
            first=arguments[0],
        )
        + _TOTAL.format(arguments=listed) * metric.additive
    )


def identifiers(names: Sequence[str]) -> list[str]:
    """Return a valid and distinct Python identifier for each of `names`."""
    found: list[str] = []
    for given in names:
        # Python normalises identifiers, so that different letters may become the same.
        name = unicodedata.normalize("NFKC", given)
        word = "".join(letter if f"_{letter}".isidentifier() else "_" for letter in name)
        word = word if word[:1].isidentifier() else f"_{word}"
        while word in _TAKEN or word in found:
            word += "_"
        found.append(word)
    return found


def _notes(fitted: Fitted, rows: IntArray) -> list[str]:
    """Return growths and statuses; for models that some runs have closer models than, only that."""
    growths = fitted.models.growth_texts(rows, fitted.parameter)
    said = zip(growths, fitted.statuses(rows), strict=True)
    notes = [f"{growth}, {status}" for growth, status in said]
    if not fitted.of_line.size:
        return notes
    at = setting_text(fitted.held)
    closer = f"a separate model of the runs at {at} fits them better: see cpmodel rank"
    is_of_line = fitted.of_line[rows].tolist()
    return [closer if other else note for note, other in zip(notes, is_of_line, strict=True)]


def _keys(fitted: Fitted, rows: Sequence[int]) -> list[str]:
    tree = fitted.experiment.tree
    paths, ids = tree.paths(rows), tree.ids()
    count = Counter(paths)
    return [
        path if count[path] == 1 else f"{path} @{ids[row]}"
        for path, row in zip(paths, rows, strict=True)
    ]


def _measured(fitted: Fitted) -> str:
    values = {parameter.name: parameter.values for parameter in fitted.experiment.parameters}
    return ", ".join(
        f"{name} = {' '.join(parameter_value(value) for value in values[name])}"
        for name in fitted.parameters
    )
