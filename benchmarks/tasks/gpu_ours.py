"""Read a GPU profile and sum its metrics; print the cost and the result.

python gpu_ours.py READER PATH
"""

import json
import sys
import time
from pathlib import Path

from callpath_modeler.profile.schema import Reduction

_METRICS = ("time on GPU streams", "GPU busy", "GPU idle")

if sys.argv[1] == "kineto":
    from cpmodel_kineto import KinetoReader

    reader = KinetoReader()
else:
    from cpmodel_gpu import NsightReader

    reader = NsightReader()
imported = time.process_time()
path, sums = Path(sys.argv[2]), {}
if sys.argv[1] == "kineto":
    with reader.open_runs(path) as (run,):
        source = run.source
        sums = {name: source.reduce(name, Reduction.SUM).total for name in _METRICS}
else:
    with reader.open(path) as source:
        sums = {name: source.reduce(name, Reduction.SUM).total for name in _METRICS}
done = time.process_time()
print(json.dumps({"import": imported, "read": done - imported, "sums": sums}))
