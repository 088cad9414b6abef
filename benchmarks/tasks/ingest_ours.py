"""Read a series with all its metrics; print the cost and the result.

python ingest_ours.py DIRECTORY
"""

import json
import sys
import time

import numpy as np

from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.studies import loading

imported = time.process_time()
options = loading.LoadOptions(read=ReadOptions(metrics=None))
experiment = loading.load([sys.argv[1]], options)
done = time.process_time()
sums = {name: float(np.nansum(values.exclusive)) for name, values in experiment.columns.items()}
print(
    json.dumps(
        {
            "import": imported,
            "read": done - imported,
            "call paths": len(experiment.tree),
            "sums": sums,
        }
    )
)
