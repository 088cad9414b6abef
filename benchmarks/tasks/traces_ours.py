"""Replay a trace into a profile; print the cost and the result.

python traces_ours.py ANCHOR
"""

import json
import sys
import time
from pathlib import Path

from callpath_modeler.profile.schema import Reduction
from cpmodel_otf2 import TraceReader

reader = TraceReader()
imported = time.process_time()
with reader.open(Path(sys.argv[1])) as profile:
    sums = {name: profile.reduce(name, Reduction.SUM).total for name in ("visits", "bytes_sent")}
done = time.process_time()
print(
    json.dumps(
        {"import": imported, "read": done - imported, "sums": sums, "paths": len(profile.call_tree)}
    )
)
