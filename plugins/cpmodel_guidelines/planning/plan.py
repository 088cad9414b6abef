"""Choice of mpiruns, message sizes and repetitions for a budget of time, and plans as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import printable
from callpath_modeler.units import counted, percent, quantity, significant
from cpmodel_guidelines.planning.pilot import Pilot
from cpmodel_guidelines.planning.workloads import Machine, MeasuredFunction, SuiteToRun, Workload
from cpmodel_guidelines.statistics.power import Power, least_mpiruns

FILLED = 0.8
"""Share of the budget that is planned; the rest is a reserve."""
_FEW, _GOOD = 5, 10
"""Number of mpiruns that is the least, and that is aimed at before sizes are left out."""
_LEAST_REPETITIONS = 10
_LEAST_SIZES = 4
_MOST_BYTES = 2**31 - 1
"""Largest message of all blocks together; counts of MPI are integers of 32 bits."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A number of nodes with a number of processes on each."""

    nodes: int
    each: int

    @property
    def processes(self) -> int:
        """Return the number of processes."""
        return self.nodes * self.each


@dataclass(frozen=True, slots=True)
class Wish:
    """What a campaign should be.

    Attributes
    ----------
    scales : numbers of nodes and processes
    sizes : message sizes in bytes
    machine : assumptions about times
    budget : time of all jobs together, in seconds
    noise : assumed standard deviation of the logarithm of a median over mpiruns
    rate : error rate of the answer
    slowdown : violation that should be found, as a fraction
    repetitions : repetitions of each call in an mpirun, where a pilot does not tell them
    pilot : measured campaign; None = assumptions only
    """

    scales: tuple[Scale, ...]
    sizes: tuple[int, ...]
    machine: Machine
    budget: float
    noise: float
    rate: float
    slowdown: float
    repetitions: int
    pilot: Pilot | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A campaign of one suite.

    Attributes
    ----------
    workload : functions and guidelines
    wish : what was asked for
    sizes : [S] chosen message sizes in bytes
    mpiruns : number of mpiruns
    seconds : [P, F, S] time of one call; NaN = not measured
    repetitions : [P, F, S] repetitions of each call; 0 = not measured
    power : what the number of mpiruns finds
    left_out : sentences about what the budget does not allow
    """

    workload: Workload
    wish: Wish
    sizes: tuple[int, ...]
    mpiruns: int
    seconds: FloatArray
    repetitions: IntArray
    power: Power
    left_out: tuple[str, ...] = field(default=())

    @property
    def times(self) -> FloatArray:
        """Return the time in seconds of all mpiruns of each scale, [P]."""
        each = _mpirun(self.workload, self.wish, self.seconds, self.repetitions)
        times: FloatArray = self.mpiruns * each
        return times

    @property
    def node_hours(self) -> FloatArray:
        """Return the node hours of each scale, [P]."""
        nodes = np.array([float(each.nodes) for each in self.wish.scales])
        hours: FloatArray = self.times * nodes / 3600
        return hours

    @property
    def limits(self) -> list[int]:
        """Return the time limit of each job in seconds; their sum is the budget."""
        share = self.wish.budget / float(self.times.sum())
        return [int(time * share) for time in self.times]

    def lines(self, scale: int) -> Iterator[tuple[str, int, int]]:
        """Yield function, message size and repetitions at a scale."""
        for f, function in enumerate(self.workload.functions):
            for s, size in enumerate(self.sizes):
                count = int(self.repetitions[scale, f, s])
                if count:
                    yield function.name, size, count


def planned(workload: Workload, wish: Wish) -> Plan:
    """Return the campaign that fits the budget.

    If all sizes with the wanted mpiruns take too long, repetitions are reduced first, because
    mpiruns scatter more than calls. Then the number of mpiruns is reduced down to ten, then the
    most expensive sizes are left out, and then mpiruns again. If starts of programs alone take half
    of the time, mpiruns are reduced before sizes.

    Raises
    ------
    UsageError
        If nothing can be measured, or the smallest campaign takes longer than the budget.
    """
    sizes = _possible_sizes(workload, wish)
    if not workload.functions or not sizes:
        raise UsageError(
            f"{workload.suite} can measure none of these guidelines at these sizes",
            hint="give other guidelines or smaller sizes",
        )
    seconds, repetitions = _cells(workload, wish, sizes)
    power = _power(workload, wish, len(sizes))
    found = power.mpiruns_for(wish.slowdown)
    wanted = max(_GOOD, found or _most(workload, wish))
    full = Plan(workload, wish, sizes, wanted, seconds, repetitions, power.with_mpiruns(wanted))
    chosen = _fitting(full)
    return replace(chosen, left_out=tuple(_left_out(full, chosen, found)))


def _possible_sizes(workload: Workload, wish: Wish) -> tuple[int, ...]:
    """Return the sizes that all functions can have at all scales."""
    most = max(scale.processes for scale in wish.scales)
    fitting = [size for size in wish.sizes if size * most <= _MOST_BYTES]
    if workload.suite is not SuiteToRun.OSU or not fitting:
        return tuple(fitting)
    # OSU doubles sizes, and its reductions have elements of four bytes.
    return tuple(2**k for k in range(2, 32) if min(fitting) <= 2**k <= max(fitting))


def _cells(workload: Workload, wish: Wish, sizes: Sequence[int]) -> tuple[FloatArray, IntArray]:
    shape = len(wish.scales), len(workload.functions), len(sizes)
    seconds, repetitions = np.full(shape, np.nan), np.zeros(shape, np.intp)
    for p, scale in enumerate(wish.scales):
        for f, function in enumerate(workload.functions):
            for s, size in enumerate(sizes[: None if function.has_sizes else 1]):
                seconds[p, f, s], repetitions[p, f, s] = _cell(function, size, scale, wish)
    return seconds, repetitions


def _cell(function: MeasuredFunction, size: int, scale: Scale, wish: Wish) -> tuple[float, int]:
    """Return the time of a call and its repetitions."""
    assumed = wish.machine.call(function.terms, size, scale.processes)
    known = None if wish.pilot is None else wish.pilot.nearest(function.name, size, scale.processes)
    if known is None:
        return assumed, wish.repetitions
    # Between measured sizes and scales, times grow as assumed.
    there = wish.machine.call(function.terms, known.size, known.processes)
    return known.seconds * assumed / there, known.repetitions or wish.repetitions


def _power(workload: Workload, wish: Wish, sizes: int) -> Power:
    checks = workload.checks(sizes, len(wish.scales))
    measured = None if wish.pilot is None else wish.pilot.power
    if measured is None:
        return Power(_GOOD, np.sqrt(2) * wish.noise, checks, wish.rate)
    return replace(measured, checks=max(checks, measured.checks))


def _mpirun(
    workload: Workload, wish: Wish, seconds: FloatArray, repetitions: IntArray
) -> FloatArray:
    """Return the time of one mpirun at each scale, [P]."""
    meeting = np.array([wish.machine.barrier(scale.processes) for scale in wish.scales])
    calls = np.nansum(repetitions * (seconds + meeting[:, None, None]), axis=(1, 2))
    times: FloatArray = workload.launches * wish.machine.startup + calls
    return times


def _most(workload: Workload, wish: Wish) -> int:
    """Return the number of mpiruns whose starts alone fill the budget."""
    start = workload.launches * wish.machine.startup * len(wish.scales)
    return min(int(FILLED * wish.budget / max(start, 1e-9)) + 1, 1000)


def _fits(plan: Plan) -> bool:
    return float(plan.times.sum()) <= FILLED * plan.wish.budget


def _fitting(full: Plan) -> Plan:
    """Return the campaign that fits the budget."""
    least = max(_FEW, least_mpiruns(full.wish.rate))
    # Where starts of programs take the time, leaving out sizes does not help.
    starts = _GOOD * full.workload.launches * full.wish.machine.startup * len(full.wish.scales)
    aim = _GOOD if starts <= FILLED * full.wish.budget / 2 else least
    if _fits(_reduced(full, 0.0)):
        return _filled(full)
    while True:
        short = _reduced(full, 0.0)
        if _fits(_with_mpiruns(short, aim)):
            return _filled(_with_mpiruns(full, _largest(short)))
        if len(full.sizes) <= _LEAST_SIZES:
            break
        full = _without_costliest(full)
    if not _fits(_with_mpiruns(short, least)):
        needed = float(_with_mpiruns(short, least).times.sum()) / FILLED
        raise UsageError(
            f"{full.workload.suite}: the budget is too small: {least} mpiruns with "
            f"{len(short.sizes)} sizes need {ceil(needed / 60)} min",
            hint="raise --budget, reduce --startup if programs start faster, or give fewer --nodes",
        )
    return _filled(_with_mpiruns(full, _largest(short)))


def _largest(short: Plan) -> int:
    """Return the largest number of mpiruns that fits, and is wanted."""
    each = float(short.times.sum()) / short.mpiruns
    return min(short.mpiruns, int(FILLED * short.wish.budget / each * (1 + 1e-12)))


def _filled(full: Plan) -> Plan:
    """Return a plan with as many of the wanted repetitions as fit."""
    shares = (1.0, 0.5, 0.25, 0.125, 0.0)
    return next(plan for share in shares if _fits(plan := _reduced(full, share)))


def _reduced(plan: Plan, share: float) -> Plan:
    """Return a plan with a share of the repetitions, and with ten at least."""
    least = np.minimum(plan.repetitions, _LEAST_REPETITIONS)
    counts = np.maximum(np.ceil(plan.repetitions * share).astype(np.intp), least)
    return replace(plan, repetitions=counts)


def _with_mpiruns(plan: Plan, mpiruns: int) -> Plan:
    return replace(plan, mpiruns=mpiruns, power=plan.power.with_mpiruns(mpiruns))


def _without_costliest(plan: Plan) -> Plan:
    """Return a plan without the size that takes longest, or the largest one of a range."""
    cost = np.nansum(plan.repetitions * plan.seconds, axis=(0, 1))
    # The shortest message stays: functions without messages are measured with it.
    is_range = plan.workload.suite is SuiteToRun.OSU
    worst = len(cost) - 1 if is_range else 1 + int(np.argmax(cost[1:]))
    kept = [k for k in range(len(plan.sizes)) if k != worst]
    counts, seconds = plan.repetitions[:, :, kept], plan.seconds[:, :, kept]
    checks = plan.workload.checks(len(kept), len(plan.wish.scales))
    power = replace(plan.power, checks=checks)
    sizes = tuple(plan.sizes[k] for k in kept)
    return replace(plan, sizes=sizes, repetitions=counts, seconds=seconds, power=power)


def _left_out(full: Plan, chosen: Plan, needed: int | None) -> Iterator[str]:
    """Yield sentences about the difference of the wanted and the chosen campaign."""
    wish = full.wish
    dropped = [size for size in full.sizes if size not in chosen.sizes]
    if dropped:
        names = ", ".join(map(str, dropped))
        yield f"{len(dropped)} of {len(full.sizes)} message sizes in bytes: {names}"
    large = [size for size in wish.sizes if size > max(full.sizes)]
    if full.workload.suite is SuiteToRun.REPROMPI and large:
        yield f"{counted(len(large), 'size')} whose blocks together exceed 2 GiB"
    if chosen.repetitions.sum() and chosen.repetitions.max() < full.repetitions.max():
        yield (
            f"repetitions: at most {chosen.repetitions.max()} instead of {full.repetitions.max()} "
            "in an mpirun"
        )
    if needed is None or needed > chosen.mpiruns:
        many = "more than 1000" if needed is None else str(needed)
        yield (
            f"mpiruns: {many} would find a violation of {percent(wish.slowdown)}, and "
            f"{chosen.mpiruns} fit into the budget"
        )
    for guideline, lacking in full.workload.left_out:
        yield f"{guideline.text}: {full.workload.suite} lacks {', '.join(lacking)}"


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
