"""Read a series, or model drawn measurements, with some processes or threads; print the cost.

python jobs_ours.py read|info DIRECTORY JOBS
python jobs_ours.py one|two|three ROWS JOBS
python jobs_ours.py sums LENGTH JOBS
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
from draws import draw, points

from callpath_modeler import modeling
from callpath_modeler.cli.group import cpmodel
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.studies.loading import LoadOptions, load
from callpath_modeler.studies.pipeline import FitOptions, sharing
from callpath_modeler.support.parallel import WorkerPool

what, told, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])


def spent() -> tuple[float, float]:
    """Return the processor time of this thread, and that of other threads and ended processes."""
    alone, here, others = (
        usage.ru_utime + usage.ru_stime
        for usage in map(
            resource.getrusage,
            (resource.RUSAGE_THREAD, resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN),
        )
    )
    return alone, here - alone + others


if what == "read":
    options = LoadOptions(ReadOptions(jobs=jobs))
    begin, before = time.perf_counter(), spent()
    load([Path(told)], options)
elif what == "info":
    begin, before = time.perf_counter(), spent()
    words = ["--no-progress", "info", told, "-j", str(jobs), "-o", os.devnull, "--force"]
    cpmodel.main(words, standalone_mode=False)
elif what == "sums":
    begin, before = time.perf_counter(), spent()
    with WorkerPool(jobs) as workers:
        list(workers.map(sum, [range(int(told))] * 2))
else:
    p, values = points(5), draw(int(told), 8 if what == "one" else 5)
    where = points(8)
    if what == "two":
        # The product of a law of p and a law of n.
        where = np.array([(x, y) for x in p for y in p])
        values = values[:, :, None, :3] * np.roll(values, 7, axis=0)[:, None, :, :3]
        values = values.reshape(len(values), len(where), 3)
    if what == "three":
        # The product of three laws, on a line for each parameter and one inner point.
        at = np.array(
            [*(np.eye(3, dtype=int)[d] * k for d in range(3) for k in range(5)), (1, 1, 1)]
        )
        at = np.unique(at, axis=0)
        where = p[at]
        laws = (np.roll(values, 7 * d, axis=0)[:, at[:, d], :3] for d in range(3))
        values = np.multiply.reduce(list(laws))
    begin, before = time.perf_counter(), spent()
    with sharing(FitOptions(jobs=jobs), len(values), where[0].size) as shared:
        modeling.fit(where, values, each=shared.map)
wall = time.perf_counter() - begin
own, others = (after - there for after, there in zip(spent(), before, strict=True))
print(json.dumps({"wall": wall, "own": own, "others": others}))
