"""Extract the communication of a trace; print the cost and the result.

python communication_ours.py ANCHOR
"""

import json
import sys
import time
from pathlib import Path

from cpmodel_commspec.checking import differences
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.recording.recorder import record
from cpmodel_otf2.reader import opened

imported = time.process_time()
with opened(Path(sys.argv[1])) as source:
    traced = record(source, lambda _done, _total: None)
told = specify(traced)
differing = list(differences(told, traced))
done = time.process_time()
print(
    json.dumps(
        {
            "read": done - imported,
            "operations": told.operations,
            "lines": told.lines,
            "differing": len(differing),
        }
    )
)
