"""Read HPCToolkit databases; print the cost and the result.

python databases_ours.py one DATABASE sum|max      open one and reduce its run time
python databases_ours.py series DIRECTORY          read a series, align it, compute excess work
"""

import json
import sys
import time
from pathlib import Path

what, path = sys.argv[1], Path(sys.argv[2])

if what == "one":
    from callpath_modeler.profile.schema import Reduction
    from cpmodel_hpctoolkit.reader import HpctoolkitReader

    imported = time.process_time()
    with HpctoolkitReader().open(path) as profile:
        reduced = profile.reduce("CPUTIME", Reduction(sys.argv[3]))
        found = {
            "call paths": len(profile.call_tree),
            "sums": {"inclusive": reduced.total, "exclusive": float(reduced.exclusive.sum())},
        }
else:
    from callpath_modeler.analysis.ensemble import losses
    from callpath_modeler.profile.schema import Reduction
    from callpath_modeler.readers.assemble import ReadOptions
    from callpath_modeler.studies.loading import LoadOptions, load

    imported = time.process_time()
    experiment = load([path], LoadOptions(read=ReadOptions(locations=Reduction.SUM)))
    found = {"call paths": len(experiment.tree), "pairs": len(losses(experiment).pairs)}

done = time.process_time()
print(json.dumps({"import": imported, "read": done - imported, **found}))
