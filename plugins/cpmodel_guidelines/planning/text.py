"""A plan as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callpath_modeler.printable import printable
from callpath_modeler.units import counted, percent, quantity, significant
from cpmodel_guidelines.planning.plan import FILLED, Plan


def plan_lines(plans: Sequence[Plan]) -> Iterator[str]:
    """Yield the lines of the plans of all suites, and the assumptions that they share."""
    for plan in plans:
        yield from _of_suite(plan)
        yield ""
    yield from _basis(plans[0])


def _of_suite(plan: Plan) -> Iterator[str]:
    total, hours = float(plan.times.sum()), float(plan.node_hours.sum())
    functions = counted(len(plan.workload.functions), "function")
    yield (
        f"{plan.workload.suite}: {counted(plan.mpiruns, 'mpirun')} of {functions} at "
        f"{counted(len(plan.sizes), 'size')}, {_time(total)}, {significant(hours)} node hours"
    )
    planned = plan.workload.guidelines
    mock_ups = sum(bool(each.mock_up) for each in planned)
    sums = len(planned) - mock_ups
    yield (
        f"  guidelines between functions: {mock_ups} with measured mock-ups, {sums} with sums of "
        "separately measured functions"
    )
    added = [
        each.mock_up for each in plan.workload.guidelines if each.mock_up and not each.is_known
    ]
    if added:
        yield f"  Your ReproMPI needs {', '.join(added)}: ReproMPI 1.0 has no such mock-up."
    rows = zip(plan.wish.scales, plan.times, plan.node_hours, plan.limits, strict=True)
    for k, (scale, time, of_nodes, limit) in enumerate(rows):
        calls = int(plan.repetitions[k].sum())
        yield (
            f"  p = {scale.processes} ({counted(scale.nodes, 'node')}): {_time(float(time))}, "
            f"{significant(float(of_nodes))} node hours, limit {_time(limit)}, "
            f"{calls} calls in an mpirun"
        )
    yield f"  {plan.power.said()}"
    chance = plan.power.chance(plan.wish.slowdown)
    yield (
        f"  A violation of {percent(plan.wish.slowdown)} at one size is found with a probability "
        f"of {percent(chance)}; error rate {percent(plan.wish.rate)}, "
        f"{counted(plan.power.checks, 'check')}"
    )
    if plan.left_out:
        yield "  Left out:"
        yield from (f"    {each}" for each in plan.left_out)


def _basis(plan: Plan) -> Iterator[str]:
    """Yield what the estimates rest on."""
    wish, machine = plan.wish, plan.wish.machine
    latency, start = quantity(machine.latency, "s"), quantity(machine.startup, "s")
    model = f"latency {latency} and bandwidth {quantity(machine.bandwidth, 'B')}/s per process"
    if wish.pilot is None:
        yield (
            f"Assumed: {model}, noise of medians over mpiruns {percent(wish.noise, 1)}, "
            f"{wish.repetitions} repetitions, start of a program {start}."
        )
        yield "A pilot campaign replaces these assumptions: --pilot EXP."
    else:
        yield (
            f"Times by the pilot {printable(wish.pilot.name)}. Other sizes and scales: {model}. "
            f"Start of a program: {start} (assumed)."
        )
        if wish.pilot.power is None:
            yield (
                f"The pilot has too few mpiruns to tell noise: {percent(wish.noise, 1)} is assumed."
            )
        else:
            yield f"Noise of a check by the pilot: {percent(wish.pilot.power.noise, 1)}."
    if wish.pilot is not None and wish.pilot.unmet:
        yield (
            f"{counted(wish.pilot.unmet, 'cell')} of the pilot would need more repetitions than it "
            "has."
        )
    yield f"{percent(1 - FILLED)} of the budget of {_time(wish.budget)} are a reserve."


def _time(seconds: float) -> str:
    """Return a time for people.

    >>> _time(95.0), _time(7380.0)
    ('1 min 35 s', '2 h 3 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
