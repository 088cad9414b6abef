"""Reduce one metric of one profile to its exclusive maxima over locations.

python reduce_ours.py PROFILE METRIC time|memory
"""

import json
import sys
import time
from pathlib import Path

from private_memory import Watch

from callpath_modeler.profile.schema import Reduction
from cpmodel_scorep import CubexReader

path, metric, what = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
report: dict[str, object] = {"import": time.process_time()}
if what == "memory":
    with Watch() as whole, CubexReader().open(path) as profile:
        with Watch() as alone:
            values = profile.reduce(metric, Reduction.MAX).exclusive
        report["reduce"] = alone.peak - alone.before
    report["open and reduce"] = whole.peak - whole.before
else:
    start = time.process_time()
    with CubexReader().open(path) as profile:
        report["open"] = time.process_time() - start
        seconds = []
        for _ in range(3):
            start = time.process_time()
            values = profile.reduce(metric, Reduction.MAX).exclusive
            seconds.append(time.process_time() - start)
        report["seconds"] = seconds
report["sum"] = float(values.sum())
print(json.dumps(report))
