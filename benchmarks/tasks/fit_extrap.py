"""Model the first rows of drawn measurements with Extra-P's default modeler.

python fit_extrap.py DRAWS ROWS
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from extrap.entities.coordinate import Coordinate
from extrap.entities.functions import Function
from extrap.entities.measurement import Measurement
from extrap.modelers import single_parameter


def leading_class(function: Function) -> str:
    """Return the exponents of the fastest growing term, as ``"3/2,1"``."""
    fastest = (0, 0)
    for compound in function.compound_terms:
        power, log = 0, 0
        for factor in compound.simple_terms:
            if factor.term_type == "polynomial":
                power = factor.exponent
            else:
                log = int(factor.exponent)
        fastest = max(fastest, (power, log))
    return f"{fastest[0]},{fastest[1]}"


warnings.filterwarnings("ignore")
drawn = json.loads(Path(sys.argv[1]).read_text(encoding="ascii"))
rows = drawn["rows"][: int(sys.argv[2])]
coordinates = [Coordinate(point) for point in drawn["points"]]
measurements = [
    [
        Measurement(coordinate, None, None, values)
        for coordinate, values in zip(coordinates, row["values"], strict=True)
    ]
    for row in rows
]
modeler = single_parameter.all_modelers["Default"]()
with np.errstate(all="ignore"):
    start = time.process_time()
    models = modeler.model(measurements)
    seconds = time.process_time() - start
functions = [model.hypothesis.function for model in models]
print(
    json.dumps(
        {
            "seconds": [seconds],
            "rows": len(rows),
            "classes": [leading_class(function) for function in functions],
            "far": [float(function.evaluate(drawn["far"])) for function in functions],
        }
    )
)
