"""Read a Caliper profile and sum its time over ranks; print the cost and the result.

python caliper_ours.py FILE
"""

import json
import sys
import time
from pathlib import Path

from callpath_modeler.profile.schema import Reduction
from cpmodel_caliper import CaliperReader

reader = CaliperReader()
imported = time.process_time()
with reader.open_runs(Path(sys.argv[1])) as (run,):
    reduced = run.source.reduce("time", Reduction.SUM)
    tree = run.source.call_tree
done = time.process_time()
sums = {tree.path(row): float(value) for row, value in enumerate(reduced.exclusive) if value}
print(json.dumps({"import": imported, "read": done - imported, "sums": sums}))
