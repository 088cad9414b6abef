"""Job scripts for Slurm: all mpiruns of a suite in a row, with one file of results each.

Scripts work in the folder they are submitted in, so no path of the plan is part of them. A job that
ran into its limit can be submitted again: it measures only what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from callpath_modeler.printable import shell_word, shell_words
from cpmodel_guidelines.planning.plan import Plan
from cpmodel_guidelines.planning.workloads import SuiteToRun

RESULTS, SCRIPT, INPUT = "raw_data", "job.sh", "input.txt"
"""Names of the folder with results, the script, and the input of ReproMPI."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Commands of a machine.

    Attributes
    ----------
    launcher : words that start a parallel program, e.g. ``srun``
    reprompi : the program of ReproMPI
    osu : folder of the programs of OSU; "" = they are in the search path
    directives : options for Slurm, e.g. ``--partition=test``
    """

    launcher: tuple[str, ...]
    reprompi: str
    osu: str
    directives: tuple[str, ...] = ()


def job_script(plan: Plan, scale: int, programs: Programs) -> str:
    """Return the job script of a plan at one scale."""
    is_osu = plan.workload.suite is SuiteToRun.OSU
    body = _osu(plan, scale, programs) if is_osu else _reprompi(programs)
    return "\n".join([*_head(plan, scale, programs), "", *body, ""])


def _head(plan: Plan, scale: int, programs: Programs) -> Iterator[str]:
    of = plan.wish.scales[scale]
    suite = str(plan.workload.suite).lower()
    yield "#!/bin/bash"
    yield f"#SBATCH --job-name=guidelines-{suite}-p{of.processes}"
    yield f"#SBATCH --nodes={of.nodes}"
    yield f"#SBATCH --ntasks-per-node={of.each}"
    yield f"#SBATCH --ntasks={of.processes}"
    yield f"#SBATCH --time={_clock(plan.limits[scale])}"
    yield "#SBATCH --exclusive"
    yield from (f"#SBATCH {each}" for each in programs.directives)
    yield ""
    yield f"# {plan.mpiruns} mpiruns in a row; one mpirun is one repetition."
    yield "# Submit the script in its own folder: sbatch job.sh"
    yield "# Submit it again after its time limit: it measures what is missing."
    yield "set -euo pipefail"
    yield 'cd -- "${SLURM_SUBMIT_DIR:-$(dirname -- "${BASH_SOURCE[0]}")}"'
    yield f"mkdir -p {RESULTS}"
    yield f"mpiruns={plan.mpiruns}"


def _reprompi(programs: Programs) -> list[str]:
    words = [*programs.launcher, programs.reprompi, f"--input-file={INPUT}"]
    return [
        f"if [[ ! -f {INPUT} ]]; then",
        f'    echo "{INPUT} is not here: submit this script in its own folder" >&2',
        "    exit 2",
        "fi",
        "for ((i = 0; i < mpiruns; i++)); do",
        f'    result="{RESULTS}/mpi_bench_r$i.dat"',
        '    if [[ -s "$result" ]]; then continue; fi',
        f'    {shell_words(words)} > "$result.part"',
        '    mv -- "$result.part" "$result"',
        "done",
    ]


def _osu(plan: Plan, scale: int, programs: Programs) -> list[str]:
    p = plan.wish.scales[scale].processes
    folder = f"{programs.osu.rstrip('/')}/" if programs.osu else ""
    return [
        f"osu={shell_word(folder)}",
        "measure() {  # function, then options",
        f'    local result="{RESULTS}/$1.p{p}.r$i.txt"',
        '    if [[ -s "$result" ]]; then return; fi',
        f'    {shell_words(programs.launcher)} "$osu$1" "${{@:2}}" > "$result.part"',
        '    mv -- "$result.part" "$result"',
        "}",
        "for ((i = 0; i < mpiruns; i++)); do",
        *(f"    measure {command}" for command in osu_commands(plan, scale)),
        "done",
    ]


def osu_commands(plan: Plan, scale: int) -> Iterator[str]:
    """Yield the command lines of OSU without their launcher: name, sizes and iterations."""
    p = plan.wish.scales[scale].processes
    for f, function in enumerate(plan.workload.functions):
        count = int(plan.repetitions[scale, f].max())
        options = f"-i {count} -x {max(1, count // 10)}"
        # OSU reports the whole vector of reductions that scatter.
        times = p if function.terms[0].function == "Reduce_scatter" else 1
        sizes = f"-m {plan.sizes[0] * times}:{plan.sizes[-1] * times} "
        yield f"{function.name} {sizes if function.has_sizes else ''}{options}"


def _clock(seconds: int) -> str:
    """Return a time limit of Slurm.

    >>> _clock(3661)
    '01:01:01'
    """
    hours, rest = divmod(max(seconds, 60), 3600)
    return f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
