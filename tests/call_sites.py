"""HPCToolkit databases of a function that one caller calls from three lines."""

from __future__ import annotations

import numpy as np

from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope, write_database

F, L, S = Kind.FUNCTION, Kind.LOOP, Kind.LINE
SITES = (31, 57, 80)
"""Lines of the calls in `main`, which begins in line 12."""
COSTS = {4: (20.0, 4.0, 7.0, 10.0), 64: (20.0, 60.0, 10.0, 10.0)}
"""Cost per process of `main` and of its three calls, by number of processes. Under weak scaling the
excess work of the calls is 56, 3 and 0 % of the run time at p = 64, which is 100 s."""
EXCESS = {31: 0.56, 57: 0.03, 80: 0.0}


def contexts(source="/src/main.c", *, shift=0, sites=SITES, loop=False):
    """Return `main` with a statement in line 14, and its calls of `exchange`.

    Parameters
    ----------
    shift : number of lines that an edit inserted above `main`
    sites : lines of the calls; 0 = without debugging information
    loop : the first call is in a loop in line 30
    """
    known = [
        Scope(-1, F, "main thread"),
        Scope(0, F, "main", source, 12 + shift),
        Scope(1, S, file=source, line=14 + shift),
    ]
    above = 1
    if loop:
        known.append(Scope(1, L, file=source, line=30 + shift))
        above = 3
    for line in sites:
        known.append(Scope(above, S, file=source, line=line and line + shift))
        known.append(Scope(len(known) - 1, F, "exchange", source, 3))
        known.append(Scope(len(known) - 1, S, file=source, line=5))
        above = 1
    return known


def write_run(directory, processes, costs, known=None):
    """Write a database whose processes all have the same cost: of `main`, then of each call."""
    known = contexts() if known is None else known
    own = np.zeros(len(known))
    statements = [k for k, scope in enumerate(known) if scope.kind is S and scope.line == 5]
    own[2], own[statements] = costs[0], costs[1:]
    ranks = [
        Measured({"NODE": 0, "RANK": rank, "THREAD": 0}, {"REALTIME (sec)": own})
        for rank in range(processes)
    ]
    return write_database(directory, known, ranks)


def write_series(folder, **of_contexts):
    """Write a database for p = 4 and one for p = 64, and return their directory."""
    for processes, costs in COSTS.items():
        write_run(folder / f"app.p{processes}", processes, costs, contexts(**of_contexts))
    return folder


def write_source(folder):
    """Write the source of the program, whose calls are in the lines of `SITES`."""
    lines = [f"/* line {number} */" for number in range(1, 91)]
    lines[2], lines[4] = (
        "void exchange(double *halo)",
        "    MPI_Sendrecv_replace(halo, ...);",
    )
    lines[11], lines[13] = "int main(int argc, char **argv)", "\tsmooth(grid);"
    for site, what in zip(SITES, ("border", "corner", "residual"), strict=True):
        lines[site - 1] = f"\texchange({what});"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.c").write_text("\n".join(lines), encoding="utf-8")
