"""Model drawn measurements; print what it cost, and classes and predictions of some rows.

python fit_ours.py DRAWS REPORTED
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from callpath_modeler import modeling

drawn = json.loads(Path(sys.argv[1]).read_text(encoding="ascii"))
reported = int(sys.argv[2])
points = np.array(drawn["points"])
values = np.array([row["values"] for row in drawn["rows"]])
seconds = []
for _ in range(3):
    start = time.process_time()
    models = modeling.fit(points, values)
    seconds.append(time.process_time() - start)
models = models.take(np.arange(reported))
growths = [models.growth(row) for row in range(reported)]
searched = {term.growth for term in modeling.DEFAULT_SPACE.terms}
print(
    json.dumps(
        {
            "seconds": seconds,
            "rows": len(values),
            "classes": [f"{growth.exponent},{growth.log}" for growth in growths],
            "far": models.values([drawn["far"]])[:, 0].tolist(),
            "searched": [f"{growth.exponent},{growth.log}" for growth in searched],
        }
    )
)
