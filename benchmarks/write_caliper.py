"""Write a Caliper profile of a synthetic program: one record per call path and MPI rank.

python benchmarks/write_caliper.py FILE --call-paths 2000 --ranks 64
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

_TIME = "sum#time.duration"
_FUNCTIONS = 200
_DEEPEST = 12
_UINT, _STRING, _DOUBLE = 2, 3, 5
"""Numbers of types in the format."""


def main() -> None:
    """Write the profile of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--call-paths", type=int, default=2000)
    parser.add_argument("--ranks", type=int, default=64)
    told = parser.parse_args()
    told.file.parent.mkdir(parents=True, exist_ok=True)
    with told.file.open("w", encoding="utf-8") as file:
        file.writelines(f"__rec={record}\n" for record in _records(told.call_paths, told.ranks))


def _records(call_paths: int, ranks: int) -> Iterator[str]:
    unit, rank, size, time, region = 13, 15, 17, 20, 22
    yield f"node,id=12,attr=10,data=64,parent={_STRING}"
    yield f"node,id={unit},attr=8,data=attribute.unit,parent=12"
    yield f"node,id=14,attr=10,data=65,parent={_UINT}"
    yield f"node,id={rank},attr=8,data=mpi.rank,parent=14"
    yield f"node,id=16,attr=10,data=577,parent={_UINT}"
    yield f"node,id={size},attr=8,data=mpi.world.size,parent=16"
    yield f"node,id=18,attr={unit},data=sec,parent={_DOUBLE}"
    yield "node,id=19,attr=10,data=65,parent=18"
    yield f"node,id={time},attr=8,data={_TIME},parent=19"
    yield f"node,id=21,attr=10,data=268,parent={_STRING}"
    yield f"node,id={region},attr=8,data=region,parent=21"
    rng = random.Random(1)
    first, depth = region + 1, [1]
    yield f"node,id={first},attr={region},data=main"
    for node in range(1, call_paths):
        caller = rng.randrange(node)
        while depth[caller] == _DEEPEST:
            caller = rng.randrange(node)
        depth.append(depth[caller] + 1)
        name = f"function_{node if node < _FUNCTIONS else rng.randrange(_FUNCTIONS)}"
        yield f"node,id={first + node},attr={region},data={name},parent={first + caller}"
    for number in range(ranks):
        for node in range(call_paths):
            values = f"{number}={rng.random():.6f}"
            yield f"ctx,ref={first + node},attr={rank}={time},data={values}"
    yield f"globals,attr={size},data={ranks}"


if __name__ == "__main__":
    main()
