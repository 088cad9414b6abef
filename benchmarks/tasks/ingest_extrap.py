"""Import a series with Extra-P, as its command line does; print the cost.

python ingest_extrap.py DIRECTORY
"""

import json
import sys
import time

from extrap.fileio.file_reader.cube_file_reader2 import CubeFileReader2

imported = time.process_time()
experiment = CubeFileReader2().read_cube_file(sys.argv[1], "weak")
done = time.process_time()
print(
    json.dumps(
        {
            "import": imported,
            "read": done - imported,
            "call paths": len(experiment.callpaths),
        }
    )
)
