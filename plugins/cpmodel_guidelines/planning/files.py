"""The files of a plan: input of ReproMPI, JSON of PGMPI, and job scripts for Slurm.

Scripts work in the folder they are submitted in, so no path of the plan is part of them. A job that
ran into its limit can be submitted again: it measures only what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from callpath_modeler.printable import shell_word, shell_words
from cpmodel_guidelines.functions import pgmpi_mock_up
from cpmodel_guidelines.planning.plan import Plan
from cpmodel_guidelines.planning.workloads import SuiteToRun
from cpmodel_guidelines.rules import others_in
from cpmodel_guidelines.statistics.repetition_count import Criterion
from cpmodel_guidelines.suites.pgmpi import CATALOGUE, CONFIGURATION

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


DECISIONS, LINES, MOCK_UPS = "plan.json", "plan.txt", "mock_ups.txt"
_MPIRUNS_OF_PREDICTION = 3


def plan_files(
    plans: Sequence[Plan],
    programs: Programs,
    criteria: Sequence[Criterion],
    batches: tuple[int, int, int],
    lines: Sequence[str],
) -> dict[str, str]:
    """Return the content of each file, by its path in the folder of the plan.

    Parameters
    ----------
    plans : one plan per suite
    criteria, batches : criteria of repetitions, and least, largest and step of the batches, for the
        predictions of PGMPI
    lines : the plan as text
    """
    files = {LINES: "\n".join([*lines, ""]), DECISIONS: _json({"plans": [*map(decided, plans)]})}
    for plan in plans:
        for k in range(len(plan.wish.scales)):
            home = home_of(plan, k)
            files[f"{home}/{SCRIPT}"] = job_script(plan, k, programs)
            if plan.workload.suite is SuiteToRun.REPROMPI:
                files[MOCK_UPS] = "\n".join([*_mock_ups(plan), ""])
                rows = (f"{name} {size} {count}" for name, size, count in plan.lines(k))
                files[f"{home}/{INPUT}"] = "\n".join([*rows, ""])
                files[f"{home}/config/{CATALOGUE}"] = _json([*_catalogue(plan)])
                told = _configuration(plan, k, criteria, batches)
                files[f"{home}/config/{CONFIGURATION}"] = _json(told)
    return files


def home_of(plan: Plan, scale: int) -> str:
    """Return the folder of a suite at a scale, inside the folder of the plan."""
    return f"p{plan.wish.scales[scale].processes}/{str(plan.workload.suite).lower()}"


def decided(plan: Plan) -> dict[str, object]:
    """Return a plan for JSON; times in seconds, and sizes in bytes."""
    wish, power = plan.wish, plan.power
    rows = zip(wish.scales, plan.times, plan.node_hours, plan.limits, strict=True)
    return {
        "suite": str(plan.workload.suite),
        "mpiruns": plan.mpiruns,
        "sizes": [*plan.sizes],
        "functions": [each.name for each in plan.workload.functions],
        "guidelines": [
            {"guideline": each.guideline.text, "right_side": each.basis, "mock_up": each.mock_up}
            for each in plan.workload.guidelines
        ],
        "budget": wish.budget,
        "jobs": [
            {"nodes": scale.nodes, "processes_per_node": scale.each, "processes": scale.processes,
             "seconds": float(time), "node_hours": float(hours), "limit": limit}
            for scale, time, hours, limit in rows
        ],
        "power": {
            "error_rate": wish.rate,
            "checks": power.checks,
            "noise": power.noise,
            "slowdown_found": power.slowdown if power.can_show else None,
            "asked": wish.slowdown,
            "probability_to_find_asked": power.chance(wish.slowdown),
        },
        "assumptions": None if wish.pilot is not None else {
            "latency": wish.machine.latency, "bandwidth": wish.machine.bandwidth,
            "noise": wish.noise, "repetitions": wish.repetitions,
        },
        "startup": wish.machine.startup,
        "pilot": None if wish.pilot is None else wish.pilot.name,
        "left_out": [*plan.left_out],
    }  # fmt: skip


def _mock_ups(plan: Plan) -> Iterator[str]:
    """Yield the list of mock-ups in the form of PGMPI's lists."""
    yield "guideline orig mock translated_mock"
    for each in plan.workload.guidelines:
        if each.mock_up:
            left, parts = each.guideline.left.function, each.guideline.parts
            short = f"MPI_{left}<{'+'.join(parts)}"
            yield f"{short} MPI_{left} {pgmpi_mock_up(left, parts)} {each.mock_up}"


def _catalogue(plan: Plan) -> Iterator[Mapping[str, object]]:
    """Yield PGMPI's list: patterns with mock-ups, and functions for monotony and splitting."""
    sizes = [*plan.sizes]
    with_patterns = set()
    for each in plan.workload.guidelines:
        left, parts = each.guideline.left.function, each.guideline.parts
        if each.mock_up:
            with_patterns.add(f"MPI_{left}")
            yield {"orig": f"MPI_{left}", "mock": pgmpi_mock_up(left, parts), "msizes": sizes}
    others = others_in([each.guideline for each in plan.workload.guidelines])
    for function in plan.workload.functions:
        is_other = function.is_mock_up or function.name in {*with_patterns, *others}
        if not is_other and function.has_sizes:
            yield {"orig": function.name, "msizes": sizes}


def _configuration(
    plan: Plan, scale: int, criteria: Sequence[Criterion], batches: tuple[int, int, int]
) -> dict[str, object]:
    of = plan.wish.scales[scale]
    return {
        "procs": of.processes,
        "nodes": of.nodes,
        "nnp": of.each,
        "nmpiruns": plan.mpiruns,
        "prediction": {
            "min": batches[0],
            "max": batches[1],
            "step": batches[2],
            "methods": [each.name for each in criteria],
            "thresholds": [each.threshold for each in criteria],
            "windows": [each.window for each in criteria],
            "nmpiruns": _MPIRUNS_OF_PREDICTION,
        },
    }


def _json(content: object) -> str:
    return f"{json.dumps(content, indent=2, allow_nan=False)}\n"
