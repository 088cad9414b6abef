"""Read a series, or model drawn measurements, with some processes; print what it took.

python jobs_ours.py read DIRECTORY JOBS
python jobs_ours.py one|several ROWS JOBS
python jobs_ours.py sums LENGTH JOBS
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from draws import draw, points

from callpath_modeler import modeling
from callpath_modeler.loading import LoadOptions, load
from callpath_modeler.parallel import Workers
from callpath_modeler.readers.assemble import ReadOptions

what, told, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])


def spent(who: int) -> float:
    """Return the processor time of this process, or of those that it has ended."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


if what == "read":
    options = LoadOptions(ReadOptions(jobs=jobs))
    begin, own = time.perf_counter(), spent(resource.RUSAGE_SELF)
    load([Path(told)], options)
elif what == "sums":
    begin, own = time.perf_counter(), spent(resource.RUSAGE_SELF)
    with Workers(jobs) as workers:
        list(workers.map(sum, [range(int(told))] * 2))
else:
    p, values = points(5), draw(int(told), 8 if what == "one" else 5)
    where = points(8)
    if what == "several":
        # A law of p times another one of n.
        where = np.array([(x, y) for x in p for y in p])
        values = values[:, :, None, :3] * np.roll(values, 7, axis=0)[:, None, :, :3]
        values = values.reshape(len(values), len(where), 3)
    begin, own = time.perf_counter(), spent(resource.RUSAGE_SELF)
    with Workers(jobs) as workers:
        modeling.fit(where, values, each=workers.map)
found = {
    "wall": time.perf_counter() - begin,
    "own": spent(resource.RUSAGE_SELF) - own,
    "others": spent(resource.RUSAGE_CHILDREN),
}
print(json.dumps(found))
