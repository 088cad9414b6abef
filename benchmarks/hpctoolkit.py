"""Reading of HPCToolkit databases: one of 200,000 contexts, and a series of five."""

from __future__ import annotations

import sys
from pathlib import Path

from environments import HATCHET, WORK
from ingest import DisagreementError, same_sums
from measure import TASKS, Cost, cheapest, run
from results import Row

DATABASES = WORK / "databases"

NOTES = """\
The benchmark computes the sums of inclusive and exclusive time over all ranks, for the contexts of
one version 4 database. It distinguishes functions from lines. Hatchet runs with its defaults, which
read the same numbers. The sums are compared before the table is printed. Times are processor
seconds without start and imports. Memory includes start and imports.
"""

_CONTEXTS, _RANKS = 200_000, 16
_SERIES_CONTEXTS, _SERIES_CALL_PATHS = 17_000, 10_000
_SCALES = ("8", "16", "32", "64", "128")
_FASTER, _SMALLER = 5, 3
_SERIES_SECONDS = 1.0


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    database = written("large", _CONTEXTS, _RANKS, "64") / "app.p64"
    peer = cheapest([HATCHET.executable(), TASKS / "databases_hatchet.py", database], 2)
    ours = _ours("one", database, "sum")
    if peer.report["nodes"] != _CONTEXTS:
        raise DisagreementError(f"{peer.report['nodes']} contexts, not {_CONTEXTS}")
    same_sums(ours.report["sums"], peer.report["sums"])
    series = _ours("series", written("series", _SERIES_CONTEXTS, 8, *_SCALES))
    if series.report["call paths"] < _SERIES_CALL_PATHS:
        raise DisagreementError(f"{series.report['call paths']} call paths are too few")
    return [
        _read(ours, peer),
        Row(
            "hpctoolkit: largest resident set",
            f"{ours.resident / 1e6:.0f} MB",
            f"{peer.resident / 1e6:.0f} MB {HATCHET.name}",
            peer.resident / ours.resident,
            f"≥ {_SMALLER} x",
            peer.resident >= _SMALLER * ours.resident,
        ),
        _maxima(_ours("one", database, "max")),
        Row(
            f"hpctoolkit: read, align, excess of 5 runs x {series.report['call paths']:,}",
            f"{series.report['read']:.3g} s",
            goal=f"< {_SERIES_SECONDS:g} s",
            met=series.report["read"] < _SERIES_SECONDS,
        ),
    ]


def written(name: str, contexts: int, ranks: int, *scales: str, few: int = 0) -> Path:
    """Write databases into a directory of this name, and return the directory.

    With `few`, each rank has values of this number of lines.
    """
    directory = DATABASES / name
    told = ["--contexts", str(contexts), "--ranks", str(ranks), "--scales", *scales]
    told += ["--few", str(few)] if few else []
    run([sys.executable, TASKS.parent / "write_databases.py", directory, *told], reports=False)
    return directory


def _ours(*told: object) -> Cost:
    return cheapest([sys.executable, TASKS / "databases_ours.py", *map(str, told)], 3)


def _read(ours: Cost, peer: Cost) -> Row:
    mine, others = float(ours.report["read"]), float(peer.report["read"])
    return Row(
        f"hpctoolkit: summed time of {_CONTEXTS:,} contexts",
        f"{mine:.3g} s",
        f"{others:.3g} s {HATCHET.name}",
        others / mine,
        f"≥ {_FASTER} x",
        others >= _FASTER * mine,
    )


def _maxima(ours: Cost) -> Row:
    # The peer's mode for single profiles failed on every database in our tests.
    return Row(
        f"hpctoolkit: its maxima over {_RANKS} ranks",
        f"{float(ours.report['read']):.3g} s, {ours.resident / 1e6:.0f} MB",
    )


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep="  ")
