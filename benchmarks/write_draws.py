"""Draw measurements of known models, for every program to fit.

The protocol is that of the field: ``c0 + c1 p^i log2(p)^j`` with the classes of Extra-P's search
space, coefficients uniform in 0.001 ... 1000, noise of n percent as a factor uniform in
1 - n/200 ... 1 + n/200, five points 8 ... 128, five repetitions. Every second row is a constant.

    python write_draws.py FILE ROWS SEED
"""

import json
import sys
from pathlib import Path

import numpy as np

POINTS = 2.0 ** np.arange(3, 8)
REPETITIONS = 5
NOISES = (10, 50)
FAR = 16

_CLASSES = (
    "0,1 0,2 1/4,0 1/4,1 1/4,2 1/3,0 1/3,1 1/3,2 1/2,0 1/2,1 1/2,2 2/3,0 2/3,1 2/3,2 3/4,0 3/4,1 "
    "3/4,2 4/5,0 1,0 1,1 1,2 5/4,0 5/4,1 4/3,0 4/3,1 3/2,0 3/2,1 3/2,2 5/3,0 7/4,0 2,0 2,1 2,2 "
    "9/4,0 7/3,0 5/2,0 5/2,1 5/2,2 8/3,0 11/4,0 3,0 3,1"
)


def draw(row: int, rng: np.random.Generator) -> dict[str, object]:
    """Return one row: its class, noise, values [points x repetitions], and value far out."""
    noise = NOISES[row % 2]
    constant, growing = rng.uniform(0.001, 1000, 2)
    exponent, log = rng.choice(_CLASSES.split()).split(",")
    if row // 2 % 2:
        exponent, log, growing = "0", "0", 0.0
    top, _, bottom = exponent.partition("/")
    power = int(top) / int(bottom or 1)
    points = np.append(POINTS, FAR * POINTS[-1])
    truth = constant + growing * points**power * np.log2(points) ** int(log)
    factor = 1 + rng.uniform(-noise / 200, noise / 200, (len(POINTS), REPETITIONS))
    return {
        "class": f"{exponent},{log}",
        "noise": noise,
        "values": (truth[:-1, None] * factor).tolist(),
        "far": truth[-1],
    }


def main() -> None:
    """Write what the command line says."""
    path, rows, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng = np.random.default_rng(seed)
    drawn = [draw(row, rng) for row in range(rows)]
    series = {"points": POINTS.tolist(), "far": FAR * POINTS[-1], "rows": drawn}
    path.write_text(json.dumps(series), encoding="ascii")


if __name__ == "__main__":
    main()
