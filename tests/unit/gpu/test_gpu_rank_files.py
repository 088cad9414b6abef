"""Files of ranks, of scales and of repetitions, by their names."""

from __future__ import annotations

from pathlib import Path

from cells import cells
from cpmodel_gpu.rank_files import ranks_of


def ranks(*names: str) -> list[int]:
    return list(ranks_of([Path(name) for name in names]))


@cells(
    ("names", "expected"),
    [
        (("report.0.sqlite", "report.1.sqlite", "report.2.sqlite"), [0, 1, 2]),
        (("report.10.sqlite", "report.9.sqlite"), []),
        (("rank-3.sqlite", "rank-7.sqlite"), [3, 7]),
        (("app.p4.rank0.sqlite", "app.p4.rank1.sqlite"), [0, 1]),
        (("mpi_rank_1.db", "mpi_rank_0.db"), [0, 1]),
        (("job77_0.sqlite", "job77_1.sqlite"), [0, 1]),
    ],
)
def test_files_that_differ_in_the_rank_are_of_one_run(names, expected):
    assert ranks(*names) == expected


@cells(
    "names",
    [
        ("app.p1.sqlite", "app.p2.sqlite"),
        ("app.p0.sqlite", "app.p1.sqlite"),
        ("app.r0.sqlite", "app.r1.sqlite"),
        ("profile1.sqlite", "profile2.sqlite"),
        ("report.1.sqlite", "report.2.sqlite", "report.4.sqlite"),
        ("a.0.sqlite", "b.1.sqlite"),
        ("report.0.0.sqlite", "report.1.1.sqlite"),
        ("report.0.sqlite",),
        ("report.0.sqlite", "report.00.sqlite"),
        ("crank0.sqlite", "crank1.sqlite"),
        ("rank99999999999999999999.sqlite", "rank1.sqlite"),
    ],
)
def test_files_of_scales_and_of_repetitions_are_runs_of_their_own(names):
    assert ranks(*names) == []
