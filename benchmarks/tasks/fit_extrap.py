"""Model measurements with Extra-P's default modeler; print the cost.

    python fit_extrap.py MEASURED FITTED

MEASURED has points `p` [K] or [K, D], values `y` [n, K, R] (NaN = missing) and `targets` [m] or
[m, D]. FITTED gets predictions `value` [n, m]. With one parameter, it also gets `lead` [n, 2], the
exponents of the fastest growing term.
"""

import json
import sys
import time
import warnings

import numpy as np
from extrap.entities.coordinate import Coordinate
from extrap.entities.functions import Function
from extrap.entities.measurement import Measurement
from extrap.modelers import multi_parameter, single_parameter


def leading_term(function: Function) -> tuple[float, float]:
    """Return the exponents of the power and of the logarithm."""
    fastest = (0.0, 0.0)
    for compound in function.compound_terms:
        power, log = 0.0, 0.0
        for factor in compound.simple_terms:
            if factor.term_type == "polynomial":
                power = float(factor.exponent)
            else:
                log = float(factor.exponent)
        fastest = max(fastest, (power, log))
    return fastest


warnings.filterwarnings("ignore")
measured = np.load(sys.argv[1])
several = measured["p"].ndim > 1
coordinates = [Coordinate(*np.atleast_1d(point).tolist()) for point in measured["p"]]
measurements = [
    [
        Measurement(coordinate, None, None, values[~np.isnan(values)].tolist())
        for coordinate, values in zip(coordinates, row, strict=True)
        if not np.isnan(values).all()
    ]
    for row in measured["y"]
]
modeler = (multi_parameter if several else single_parameter).all_modelers["Default"]()
with np.errstate(all="ignore"):
    start = time.process_time()
    models = modeler.model(measurements)
    seconds = time.process_time() - start
    functions = [model.hypothesis.function for model in models]
    value = [
        [float(function.evaluate(target.tolist())) for target in measured["targets"]]
        for function in functions
    ]
lead = [(np.nan, np.nan) if several else leading_term(function) for function in functions]
np.savez(sys.argv[2], value=value, lead=lead)
print(json.dumps({"seconds": seconds, "rows": len(models)}))
