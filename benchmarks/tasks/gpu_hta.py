"""Read a Kineto trace with HolisticTraceAnalysis and compute its temporal breakdown.

python gpu_hta.py DIRECTORY
"""

import json
import logging
import sys
import time

logging.disable(logging.CRITICAL)

from hta.trace_analysis import TraceAnalysis  # noqa: E402

imported = time.process_time()
# By default, it leaves out the last step.
analysis = TraceAnalysis(trace_dir=sys.argv[1], include_last_profiler_step=True)
found = analysis.get_temporal_breakdown(visualize=False).iloc[0]
kernels, _ = analysis.get_gpu_kernel_breakdown(visualize=False)
done = time.process_time()
sums = {
    "GPU busy": float(found["kernel_time(us)"] - found["idle_time(us)"]) * 1e-6,
    "GPU idle": float(found["idle_time(us)"]) * 1e-6,
}
print(json.dumps({"import": imported, "read": done - imported, "sums": sums}))
