"""Reduce one metric of one profile to its exclusive maxima over locations, with pycubexr.

python reduce_pycubexr.py PROFILE METRIC time|memory
"""

import json
import sys
import time

import numpy as np
from private_memory import Watch
from pycubexr import CubexParser

path, name, what = sys.argv[1:4]
report: dict[str, object] = {"import": time.process_time()}


def reduce(profile: CubexParser) -> np.ndarray:
    metric = profile.get_metric_by_name(name)
    values = profile.get_metric_values(metric, cache=False)
    if metric.metric_type == "EXCLUSIVE":
        return values.values.reshape(-1, values.num_locations()).max(axis=1)
    return np.array(
        [
            values.cnode_values(call_path, convert_to_exclusive=True).max()
            for call_path in profile.all_cnodes()
        ]
    )


if what == "memory":
    with Watch() as whole, CubexParser(path) as profile:
        with Watch() as alone:
            values = reduce(profile)
        report["reduce"] = alone.peak - alone.before
    report["open and reduce"] = whole.peak - whole.before
else:
    start = time.process_time()
    with CubexParser(path) as profile:
        report["open"] = time.process_time() - start
        seconds = []
        for _ in range(3):
            start = time.process_time()
            values = reduce(profile)
            seconds.append(time.process_time() - start)
        report["seconds"] = seconds
report["sum"] = float(values.sum())
print(json.dumps(report))
