"""Model drawn measurements and predict them with bands; print the cost.

python fit_ours.py ROWS POINTS TIMES
"""

import json
import sys
import time

from draws import draw, points

from callpath_modeler import modeling

rows, count, times = (int(word) for word in sys.argv[1:])
p, values = points(count), draw(rows, count)
seconds = []
for _ in range(times):
    start = time.process_time()
    modeling.fit(p, values).predict([16 * p[-1]])
    seconds.append(time.process_time() - start)
print(json.dumps({"seconds": min(seconds), "rows": rows}))
