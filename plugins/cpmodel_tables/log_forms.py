"""Layouts of the logs of programs: one `Form` for each program.

A further log needs one more form. LAMMPS, GROMACS, OpenFOAM and HPL were run for the tests. The
other layouts follow the documentation of the programs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

_NUMBER = r"\d[\d.]*(?:[eE][+-]?\d+)?"


class Repeated(Enum):
    """Meaning of a value in several lines of one run."""

    SUM = "the sum"
    LAST = "the last one"


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a log that have values.

    Attributes
    ----------
    row : pattern of a line. Group ``name`` is the call path below `below`, without it the value is
        that of `below`. Group ``indent`` is the depth, two blanks a level. Groups of
        `Form.metrics` are values, groups that begin with an underscore are ignored, and others
        are properties of the run
    begin, end : patterns of the lines before the first row and after the last; "" = anywhere
    below : call path above
    written : name of a call path, with the groups of the row
    factor : factor from values to the unit of the metric
    digits : number of significant digits of a time; 0 = a fixed number after the point
    repeated : what equal call paths in several lines mean
    """

    row: str
    begin: str = ""
    end: str = ""
    below: tuple[str, ...] = ()
    written: str = "{name}"
    factor: float = 1.0
    digits: int = 0
    repeated: Repeated = Repeated.SUM


@dataclass(frozen=True, slots=True)
class Form:
    """The layout of the log of one program.

    Attributes
    ----------
    tool : program that wrote the log
    program : name of the root call path, unless a line states property ``program``; "" = rows name
        all call paths
    sign : pattern in the first 64 KiB of the log that no other program prints
    facts : patterns of lines; their groups are properties of the run: ``p``, ``threads``, others
    lines : lines with values
    metrics : title and unit by group
    is_inclusive : times contain those of the call paths below
    counted : properties that are the number of lines with a pattern
    products : properties that are the product of others
    per : property that all values are divided by; "" = none
    run : pattern of the first line of each run; "" = one run a file
    phase : name and pattern of the first line of each phase, if a run has several
    finished : pattern of a line without which the run did not end; "" = not known
    failed : pattern of a line that says that the run failed; "" = none
    """

    tool: str
    program: str
    sign: str
    lines: tuple[Lines, ...]
    facts: tuple[str, ...] = ()
    metrics: Mapping[str, tuple[str, str]] = field(
        default_factory=lambda: {"time": ("time (exc)", "s"), "visits": ("visits", "1")}
    )
    is_inclusive: bool = True
    counted: Mapping[str, str] = field(default_factory=dict)
    products: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per: str = ""
    run: str = ""
    phase: tuple[str, str] = ("", "")
    finished: str = ""
    failed: str = ""


FORMS = (
    Form(
        "LAMMPS",
        "LAMMPS",
        sign=r"^LAMMPS \(\d+ \w+ \d{4}",
        run=r"^LAMMPS \(\d+ \w+ \d{4}",
        facts=(
            r"^Loop time of .* for (?P<steps>\d+) steps with (?P<total_atoms>\d+) atoms",
            r"CPU use with (?P<p>\d+) MPI tasks? x (?P<threads>\d+) OpenMP threads?",
        ),
        lines=(
            Lines(rf"^Loop time of (?P<time>{_NUMBER}) on \d+ procs", digits=6),
            Lines(
                rf"^(?P<name>[A-Z]\w*) *\|(?: *(?:{_NUMBER})? *\|)? *(?P<time>{_NUMBER}) *\|",
                begin=r"^(?:MPI task timing|Thread timings?) breakdown",
                end=r"^\s*$",
                digits=5,
            ),
        ),
        phase=("run", r"^Loop time of "),
        finished=r"^Total wall time:",
        failed=r"^ERROR",
    ),
    Form(
        "GROMACS",
        "GROMACS",
        sign=r":-\) GROMACS - ",
        run=r":-\) GROMACS - ",
        facts=(
            r"^Using (?P<p>\d+) MPI (?:process|thread|rank)",
            r"^Using (?P<threads>\d+) OpenMP thread",
            r"^There are: (?P<total_atoms>\d+) Atoms",
            r"^ +nsteps += (?P<steps>\d+)$",
        ),
        lines=(
            Lines(rf"^ Total +(?P<time>{_NUMBER}) +{_NUMBER} +{_NUMBER}$", "R E A L +C Y C L E"),
            # A star marks processes for one task only, which run at the same time as the others.
            Lines(
                rf"^ (?P<name>\S[^*]*?) +\d+ +\d+ +(?P<visits>\d+) +(?P<time>{_NUMBER}) +\S+ +\S+$",
                begin="R E A L +C Y C L E",
                end=r"^ Total ",
            ),
            Lines(
                rf"^ (?P<name>Rest) +(?P<time>{_NUMBER}) ",
                begin="R E A L +C Y C L E",
                end="^ Total ",
            ),
            Lines(
                rf"^ (?P<name>\S[^*]*?) +\d+ +\d+ +(?P<visits>\d+) +(?P<time>{_NUMBER}) +\S+ +\S+$",
                begin="^ Breakdown of PME mesh",
                end=r"^ *$|^ *Core t",
                below=("PME mesh",),
            ),
        ),
        finished=r"^Finished mdrun",
        failed=r"^Fatal error",
    ),
    Form(
        "OpenFOAM",
        "OpenFOAM",
        sign=r"^Build +: .*\n(?:.*\n){0,3}Exec +: ",
        run=r"^Build +: ",
        facts=(
            r"^Exec +: (?P<program>\S+)",
            r"^nProcs +: (?P<p>\d+)",
        ),
        # Processor time of the first process; the clock time has whole seconds.
        lines=(Lines(rf"^ExecutionTime = (?P<time>{_NUMBER}) s", repeated=Repeated.LAST),),
        finished=r"^End$|^Finalising parallel run",
        failed=r"^--> FOAM FATAL|^FOAM exiting|^FOAM aborting",
    ),
    Form(
        "NPB",
        "NPB",
        sign=r"NAS Parallel Benchmarks|^ \w\w Benchmark Completed",
        run=r"^ *(?:NAS Parallel Benchmarks|\w\w Benchmark Completed)",
        facts=(
            r"^ *(?P<program>\w\w) Benchmark Completed",
            r"^ *Class += +(?P<problem_class>\w)$",
            r"^ *Size += +(?P<total_size>\d+(?: *x *\d+)*)$",
            r"^ *Iterations += +(?P<iterations>\d+)$",
            r"^ *(?:Total|Active) processes += +(?P<p>\d+)$",
            r"^ *(?:Total|Active|Avail)? ?threads += +(?P<threads>\d+)$",
        ),
        lines=(Lines(rf"^ *Time in seconds += +(?P<time>{_NUMBER})$"),),
        failed=r"^ *Verification += +UNSUCCESSFUL",
    ),
    Form(
        "HPL",
        "HPL",
        sign=r"HPLinpack \d",
        run=r"^W\w+ +\d+ +\d+ +\d+ +\d+ ",
        products={"p": ("P", "Q")},
        lines=(
            Lines(rf"^W\w+ +(?P<n>\d+) +(?P<nb>\d+) +(?P<P>\d+) +(?P<Q>\d+) +(?P<time>{_NUMBER}) "),
        ),
        failed=r"\.\.\. FAILED",
    ),
    Form(
        "HPCG",
        "HPCG",
        sign=r"^HPCG-Benchmark",
        facts=(
            r"Distributed Processes *[=:] *(?P<p>\d+)",
            r"Threads per processes *[=:] *(?P<threads>\d+)",
            r"Global nx *[=:] *(?P<nx>\d+)",
            r"Total number of optimized iterations *[=:] *(?P<iterations>\d+)",
        ),
        lines=(
            Lines(rf"^Benchmark Time Summary::Total=(?P<time>{_NUMBER})"),
            Lines(
                r"^Benchmark Time Summary::(?P<name>DDOT|WAXPBY|SpMV|MG)="
                rf"(?P<time>{_NUMBER})"
            ),
            Lines(
                rf"^ +Total: *(?P<time>{_NUMBER})", begin="^Benchmark Time Summary:", end=r"^\S"
            ),
            Lines(
                rf"^ +(?P<name>DDOT|WAXPBY|SpMV|MG): *(?P<time>{_NUMBER})",
                begin="^Benchmark Time Summary:",
                end=r"^\S",
            ),
        ),
        # The benchmark repeats its work until a fixed time is over.
        per="iterations",
        failed=r"HPCG result is INVALID",
    ),
    Form(
        "STREAM",
        "STREAM",
        sign=r"^STREAM version ",
        facts=(
            r"^Number of Threads (?:requested|counted) = (?P<threads>\d+)",
            r"^Array size = (?P<total_size>\d+)",
        ),
        lines=(
            Lines(
                rf"^(?P<name>Copy|Scale|Add|Triad): +{_NUMBER} +(?P<time>{_NUMBER}) ",
                begin="^Function +",
            ),
        ),
        is_inclusive=False,
        failed=r"^Failed Validation",
    ),
    Form(
        "mpiP",
        "mpiP",
        sign=r"^@ mpiP",
        facts=(r"^@ Command : (?:\S*/)?(?P<program>[^\s/]+)",),
        counted={"p": r"^@ MPI Task Assignment +: "},
        lines=(
            Lines(rf"^ +\* +(?P<time>{_NUMBER}) +{_NUMBER} +{_NUMBER}$", "^@--- MPI Time", "^@---"),
            Lines(
                rf"^(?P<name>[A-Z]\w+) +(?P<_site>\d+) +(?P<time>{_NUMBER}) +{_NUMBER} +{_NUMBER}"
                rf"(?: +(?P<visits>\d+)(?: +{_NUMBER})?)?$",
                begin="^@--- Aggregate Time",
                end="^@---",
                written="MPI_{name} (site {_site})",
                factor=1e-3,
            ),
        ),
        # The report adds up the processes.
        per="p",
    ),
    Form(
        "Caliper",
        "",
        sign=r"^Path +Min time/rank +Max time/rank +Avg time/rank +Time % *$",
        lines=(
            Lines(
                rf"^(?P<indent> *)(?P<name>\S(?:.*?\S)?) +{_NUMBER} +{_NUMBER} +"
                rf"(?P<time>{_NUMBER}) +{_NUMBER} *$",
                begin="^Path +Min",
            ),
        ),
        is_inclusive=False,
    ),
    Form(
        "Caliper",
        "",
        sign=r"^Path +Time \(E\) +Time \(I\) +Time % \(E\) +Time % \(I\) *$",
        lines=(
            Lines(
                rf"^(?P<indent> *)(?P<name>\S(?:.*?\S)?) +(?P<time>{_NUMBER}) +{_NUMBER} +"
                rf"{_NUMBER} +{_NUMBER} *$",
                begin="^Path +Time",
            ),
        ),
        is_inclusive=False,
    ),
)  # fmt: skip


def form_of(text: str) -> Form | None:
    """Return the form of a log, by its first block; None = none of them."""
    return next((each for each in FORMS if re.search(each.sign, text, re.MULTILINE)), None)
