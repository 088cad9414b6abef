"""Read a trace with the package `otf2`, and only count calls and bytes.

python traces_otf2.py ANCHOR
"""

import json
import sys
import time

import otf2

imported = time.process_time()
visits = sent = 0
with otf2.reader.open(sys.argv[1]) as trace:
    for _, event in trace.events:
        if isinstance(event, otf2.events.Enter):
            visits += 1
        elif isinstance(event, otf2.events.MpiSend):
            sent += event.msg_length
done = time.process_time()
sums = {"visits": float(visits), "bytes_sent": float(sent)}
print(json.dumps({"import": imported, "read": done - imported, "sums": sums}))
