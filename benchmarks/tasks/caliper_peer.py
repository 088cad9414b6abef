"""Read a Caliper profile with caliper-reader and sum its time over ranks; print the cost.

python caliper_peer.py FILE
"""

import json
import sys
import time
from collections import defaultdict

import caliperreader

imported = time.process_time()
reader = caliperreader.CaliperReader()
reader.read(sys.argv[1])
read = time.process_time()
by_path = defaultdict(float)
for record in reader.records:
    if "sum#time.duration" in record:
        by_path["/".join(record["path"])] += float(record["sum#time.duration"])
done = time.process_time()
print(
    json.dumps(
        {"import": imported, "records": read - imported, "read": done - imported, "sums": by_path}
    )
)
