"""The files of a plan: input of ReproMPI, JSON of PGMPI, job scripts, and what was decided."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from cpmodel_guidelines.functions import pgmpi_mock_up
from cpmodel_guidelines.planning.plan import Plan
from cpmodel_guidelines.planning.scripts import INPUT, SCRIPT, Programs, job_script
from cpmodel_guidelines.planning.workloads import SuiteToRun
from cpmodel_guidelines.rules import others_in
from cpmodel_guidelines.statistics.repetition_count import Criterion
from cpmodel_guidelines.suites.pgmpi import CATALOGUE, CONFIGURATION

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
