"""Time of the communication of FT on a fat tree, by SimGrid SMPI and by the built-in replay.

    python benchmarks/smpi.py [PROCESSES...]

The program is the specification of `ft.P` of ../shared/data/traces in closed form, without
computation: 22 all-to-all calls of 16 * 2^18 / p^2 bytes to each rank, 20 reductions of 4 doubles,
3 barriers, and 2 broadcasts. The fat tree has as many hosts as ranks, 100 Gbit/s links with 1.2 us.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter

from cpmodel_commspec.expressions import Expression
from cpmodel_commspec.generators.c_program import c_source
from cpmodel_commspec.operations import Communicator, Kind, Shape
from cpmodel_commspec.replay.loggp import replay
from cpmodel_commspec.replay.platform import Platform
from cpmodel_commspec.replay.run_time import program_of
from cpmodel_commspec.replay.smpi import smpi_run
from cpmodel_commspec.specification import Loop, Node, Specification, Step

PROCESSES = (64, 256)
SELECTORS = ("ompi", "mpich")
LINK = 'bw="12.5GBps" lat="1.2us" loopback_bw="20GBps" loopback_lat="0.2us"'
TREES = {64: "2;8,8;1,8;1,1", 256: "2;16,16;1,16;1,1"}
# One way through two switches is four links; o and g are assumed.
NETWORK = Platform("fat tree", 4 * 1.2e-6, 0.5e-6, 0.1e-6, 1 / 12.5e9, 65536)


def transform(processes: int) -> Specification:
    """Return the specification of FT on a number of processes."""
    everybody = tuple(range(processes))
    names = ("barrier", "bcast", "alltoall", "reduce")
    shapes = tuple(
        Shape(Kind.COLLECTIVE, name, 0, call=f"MPI_{name.capitalize()}") for name in names
    )

    def call(name: str, size: int | None = None, *, has_root: bool = False) -> Step:
        numbers = {} if size is None else {"bytes": Expression(size)}
        if has_root:
            numbers["root"] = Expression(0)
        return Step(names.index(name), everybody, numbers)

    pair = 16 * 2**18 // processes**2
    body: tuple[Node, ...] = (
        call("barrier"),
        call("bcast", 12, has_root=True),
        call("bcast", 4, has_root=True),
        call("alltoall", pair),
        call("barrier"),
        call("alltoall", pair),
        Loop(20, everybody, (call("alltoall", pair), call("reduce", 32, has_root=True))),
        call("barrier"),
    )
    world = Communicator("WORLD", (everybody,))
    return Specification("ft", processes, 0, 47 * processes, 1, shapes, (world,), body, {})


def fat_tree(processes: int) -> str:
    """Return a platform file."""
    return (
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        f'<platform version="4.1"><cluster id="c" prefix="node-" suffix="" '
        f'radical="0-{processes - 1}" speed="2Gf" {LINK} topology="FAT_TREE" '
        f'topo_parameters="{TREES[processes]}"/></platform>\n'
    )


def main() -> None:
    """Print a table in Markdown."""
    print("| processes | bytes of a pair | SMPI, ompi | SMPI, mpich | built-in replay |")
    print("|---|---|---|---|---|")
    for processes in map(int, sys.argv[1:] or PROCESSES):
        told = transform(processes)
        source = c_source(told)
        cells = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fat_tree.xml"
            path.write_text(fat_tree(processes))
            for selector in SELECTORS:
                begin = perf_counter()
                seconds = smpi_run(source, processes, path, selector).seconds
                cells.append(f"{seconds * 1e3:.2f} ms")
                print(f"{selector}: {perf_counter() - begin:.1f} s", file=sys.stderr)
        built_in = replay(told.shapes, told.communicators, program_of(told), NETWORK).seconds
        cells.append(f"{built_in * 1e3:.2f} ms")
        pair = 16 * 2**18 // processes**2
        print(f"| {processes} | {pair} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
