"""Read a series with pycubexr and take the maximum over locations of exclusive values.

python ingest_pycubexr.py DIRECTORY
"""

import json
import sys
import time
from pathlib import Path

from pycubexr import CubexParser

imported = time.process_time()
sums: dict[str, float] = {}
for path in sorted(Path(sys.argv[1]).glob("*/profile.cubex")):
    with CubexParser(str(path)) as profile:
        call_paths = profile.all_cnodes()
        for metric in profile.get_metrics():
            values = profile.get_metric_values(metric, cache=False)
            for call_path in call_paths:
                exclusive = values.cnode_values(call_path, convert_to_exclusive=True)
                largest = float(exclusive.astype(float).max())
                sums[metric.name] = sums.get(metric.name, 0.0) + largest
done = time.process_time()
print(
    json.dumps(
        {
            "import": imported,
            "read": done - imported,
            "call paths": len(call_paths),
            "sums": sums,
        }
    )
)
