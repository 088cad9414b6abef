"""Read an HPCToolkit database with Hatchet; print the cost and the result.

python databases_hatchet.py DATABASE
"""

import json
import sys
import time

from hatchet import GraphFrame

imported = time.process_time()
frame = GraphFrame.from_hpctoolkit_latest(sys.argv[1])
done = time.process_time()
table = frame.dataframe
functions = table.index.map(lambda node: node.frame["type"] == "function")
print(
    json.dumps(
        {
            "import": imported,
            "read": done - imported,
            "nodes": len(table),
            "sums": {
                "inclusive": float(table["time (inc)"].max()),
                "exclusive": float(table["time"][functions].sum()),
            },
        }
    )
)
