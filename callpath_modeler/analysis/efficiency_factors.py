"""Factors of parallel efficiency, after the methodology of the POP Centre of Excellence.

All factors come from the parts of the run time (`callpath_modeler.profile.balance`), which add up
to it and are never negative. So factors of parallel efficiency are between 0 and 1, at measured
scales as well as for predicted parts. In the multiplicative scheme, a factor is the product of the
factors below it. In the additive scheme, each factor is 1 minus a share of the run time, and losses
add up.

Computation scalability compares the computation with that at the smallest scale: under strong
scaling its sum over all threads, under weak scaling its mean per thread. It may be above 1. With
counters, it is the product of instruction, IPC and frequency scaling.

References
----------
POP Centre of Excellence: Standard Metrics for Performance Analysis, for all factors and both
schemes of hybrid programs.
Rosas, Gimenez, Labarta: Scalability prediction for fundamental performance factors (Supercomputing
Frontiers and Innovations, 2014), for the extrapolation of factors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.ideals import counts_workers
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.modeling import Centre, centre
from callpath_modeler.profile.balance import PARTS, Balance, Part
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.runs import ParameterLine, nearest_line
from callpath_modeler.profile.scaling_kind import with_scaling_of
from callpath_modeler.profile.schema import TIMES_OF_DEVICES
from callpath_modeler.units import counted, parameter_value, setting_text

ALONE = "p"
"""Parameter of the only scale, if no parameter varies."""


class Scheme(StrEnum):
    """How the loss of parallel efficiency is divided.

    Attributes
    ----------
    MULTIPLICATIVE : a factor is the product of the factors below it
    ADDITIVE : the losses of the factors below it add up to the loss of a factor
    """

    MULTIPLICATIVE = "multiplicative"
    ADDITIVE = "additive"


class PopFactor(StrEnum):
    """A factor of efficiency; the order is that of tables."""

    GLOBAL = "global_efficiency"
    PARALLEL = "parallel_efficiency"
    PROCESSES = "mpi_efficiency"
    BALANCE = "load_balance"
    COMMUNICATION = "communication_efficiency"
    THREADS = "openmp_efficiency"
    SERIAL = "serial_efficiency"
    REGIONS = "region_efficiency"
    SCALABILITY = "computation_scalability"
    INSTRUCTIONS = "instruction_scaling"
    IPC = "ipc_scaling"
    FREQUENCY = "frequency_scaling"
    UTILISATION = "gpu_utilisation"
    OVERLAP = "gpu_overlap"


LEAVES = (
    PopFactor.BALANCE,
    PopFactor.COMMUNICATION,
    PopFactor.SERIAL,
    PopFactor.REGIONS,
    PopFactor.SCALABILITY,
)
"""Factors without a factor below them; counters only explain the last one."""
OF_GPUS = frozenset({PopFactor.UTILISATION, PopFactor.OVERLAP})
"""Factors of the devices of all processes, which only the whole program has. They are beside the
others, because a device works while its process computes or waits."""
_OF_THREADS = frozenset(
    {
        PopFactor.PROCESSES,
        PopFactor.THREADS,
        PopFactor.SERIAL,
        PopFactor.REGIONS,
    }
)
_OF_COUNTERS = frozenset({PopFactor.INSTRUCTIONS, PopFactor.IPC, PopFactor.FREQUENCY})
_OF_GROWTH = frozenset({PopFactor.GLOBAL, PopFactor.SCALABILITY, *_OF_COUNTERS})


class Ingredient(IntEnum):
    """Column of an array of ingredients, after the parts of the run time.

    The last four are times of the GPUs of a process.
    """

    INSTRUCTIONS = PARTS
    CYCLES = PARTS + 1
    BUSY = PARTS + 2
    IDLE = PARTS + 3
    TRANSFERRED = PARTS + 4
    OVERLAPPED = PARTS + 5


INGREDIENTS = PARTS + len(Ingredient)
_TIMES_OF_GPUS = dict(
    zip(
        (Ingredient.BUSY, Ingredient.IDLE, Ingredient.TRANSFERRED, Ingredient.OVERLAPPED),
        TIMES_OF_DEVICES,
        strict=True,
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What computation is compared with: the smallest scale.

    Attributes
    ----------
    scaling : weak or strong
    ingredients : [subtrees, ingredients] at the smallest scale, per thread
    threads : number of all threads there
    """

    scaling: Scaling
    ingredients: FloatArray
    threads: float


@dataclass(frozen=True, slots=True, eq=False)
class FactorsAtScale:
    """The factors of all subtrees at one scale, each [subtrees].

    Attributes
    ----------
    scale : value of the parameter
    runs : number of runs; 0 = predicted
    value, low, high : by scheme and factor. The ends are those of the repetitions, or of the band
        of the prediction; NaN = a single run
    share : run time of the subtree over that of the program, 0 to 1
    """

    scale: float
    runs: int
    value: Mapping[tuple[Scheme, PopFactor], FloatArray]
    low: Mapping[tuple[Scheme, PopFactor], FloatArray]
    high: Mapping[tuple[Scheme, PopFactor], FloatArray]
    share: FloatArray

    @property
    def is_predicted(self) -> bool:
        """True if no run was at this scale."""
        return self.runs == 0


@dataclass(frozen=True, slots=True, eq=False)
class Efficiency:
    """Factors of efficiency of the program and of its costliest subtrees.

    Attributes
    ----------
    experiment : the runs along the line that have values of single threads
    line : the varying parameter, and the values of the others
    metric : name of the time
    rows : [subtrees] root of each subtree; the first is the whole program, `ROOT`
    scales : [K] measured values of the parameter, ascending
    ingredients : [subtrees, K, R, ingredients] of every run: the parts of the run time, then
        instructions and cycles of the computation, all per thread; then times of GPUs, which are
        known for the whole program; NaN = missing
    threads : [K] number of threads of all processes
    processes : largest number of processes
    reference : what computation is compared with; None = the parameter does not count workers
    aggregate : centre of repetitions
    factors : the factors of the program that are known, in order
    estimates : the factors at the measured scales, then at the target
    """

    experiment: Experiment
    line: ParameterLine
    metric: str
    rows: IntArray
    scales: FloatArray
    ingredients: FloatArray
    threads: FloatArray
    processes: int
    reference: Reference | None
    aggregate: Centre
    factors: tuple[PopFactor, ...]
    estimates: tuple[FactorsAtScale, ...]

    def __repr__(self) -> str:
        where = f"{counted(len(self.scales), 'scale')} of {self.line.parameter}"
        subtrees = counted(len(self.rows) - 1, "subtree")
        return f"<Efficiency {self.experiment.name}: {where}, {subtrees}>"

    @property
    def is_hybrid(self) -> bool:
        """True if processes have several threads, or OpenMP regions."""
        return PopFactor.THREADS in self.factors

    @property
    def last(self) -> FactorsAtScale:
        """The factors at the largest measured scale, or at the target."""
        return self.estimates[-1]

    def name(self, subtree: int) -> str:
        """Return the call path of a subtree; "" = the whole program."""
        row = int(self.rows[subtree])
        return "" if row == ROOT else self.experiment.tree.path(row)

    def centres(self) -> FloatArray:
        """Return the centre of the repetitions of all ingredients, [subtrees, K, ingredients]."""
        return _centres(self.ingredients, self.aggregate)

    def threads_at(self, scale: float) -> float:
        """Return the number of all threads at a scale that was not measured."""
        if self.reference is None:
            return float(self.threads[-1])
        return float(self.threads[-1] / self.scales[-1] * scale)


def factors_of(
    ingredients: FloatArray, threads: FloatArray, reference: Reference | None, scheme: Scheme
) -> dict[PopFactor, FloatArray]:
    """Return all factors of efficiency.

    Parameters
    ----------
    ingredients : [subtrees, ..., ingredients] the parts of the run time in seconds per thread, then
        instructions and cycles per thread; NaN = not known
    threads : number of all threads; its shape broadcasts with [subtrees, ...]
    reference : what computation is compared with; None = it is not compared
    scheme : how the loss is divided

    Returns
    -------
    dict
        [subtrees, ...] by factor; NaN = not known.
    """
    useful, serial, regions, uneven, calling = (ingredients[..., part] for part in Part)
    outside = useful + serial + regions
    longest = outside + uneven
    whole = longest + calling
    found: dict[PopFactor, FloatArray] = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        found[PopFactor.PARALLEL] = useful / whole
        if scheme is Scheme.MULTIPLICATIVE:
            found[PopFactor.PROCESSES] = outside / whole
            found[PopFactor.BALANCE] = outside / longest
            found[PopFactor.THREADS] = useful / outside
            found[PopFactor.SERIAL] = (useful + regions) / outside
            found[PopFactor.REGIONS] = useful / (useful + regions)
        else:
            found[PopFactor.PROCESSES] = 1 - (uneven + calling) / whole
            found[PopFactor.BALANCE] = 1 - uneven / whole
            found[PopFactor.THREADS] = 1 - (serial + regions) / whole
            found[PopFactor.SERIAL] = 1 - serial / whole
            found[PopFactor.REGIONS] = 1 - regions / whole
        found[PopFactor.COMMUNICATION] = longest / whole
        found |= _growth(ingredients, threads, reference)
        busy, idle, transferred, overlapped = (ingredients[..., each] for each in _TIMES_OF_GPUS)
        found[PopFactor.UTILISATION] = busy / (busy + idle)
        # Models of both times may cross far beyond the data.
        found[PopFactor.OVERLAP] = np.minimum(overlapped / transferred, 1.0)
    found[PopFactor.GLOBAL] = found[PopFactor.PARALLEL] * found[PopFactor.SCALABILITY]
    # Factors below the program may have no time at all: they are not known.
    return {factor: found[factor] for factor in PopFactor}


def _growth(
    ingredients: FloatArray, threads: FloatArray, reference: Reference | None
) -> dict[PopFactor, FloatArray]:
    """Return the factors that compare the computation with that of the reference."""
    useful = ingredients[..., Part.USEFUL]
    if reference is None:
        return dict.fromkeys(sorted(_OF_GROWTH - {PopFactor.GLOBAL}), np.full(useful.shape, np.nan))
    more = threads / reference.threads if reference.scaling is Scaling.STRONG else 1.0
    shape = (len(ingredients), *[1] * (ingredients.ndim - 2))

    def base(column: int) -> FloatArray:
        return reference.ingredients[:, column].reshape(shape)

    instructions = ingredients[..., Ingredient.INSTRUCTIONS]
    cycles = ingredients[..., Ingredient.CYCLES]
    ipc = instructions / cycles
    base_ipc = base(Ingredient.INSTRUCTIONS) / base(Ingredient.CYCLES)
    frequency = cycles / useful
    return {
        PopFactor.SCALABILITY: base(Part.USEFUL) / (useful * more),
        PopFactor.INSTRUCTIONS: base(Ingredient.INSTRUCTIONS) / (instructions * more),
        PopFactor.IPC: ipc / base_ipc,
        PopFactor.FREQUENCY: frequency / (base(Ingredient.CYCLES) / base(Part.USEFUL)),
    }


def measured_efficiency(
    experiment: Experiment,
    metric: str,
    parameter: str | None = None,
    *,
    held: Mapping[str, float] | None = None,
    aggregate: Centre = "mean",
) -> Efficiency:
    """Return the factors of efficiency at the measured scales.

    Parameters
    ----------
    experiment : runs with their `balances`
    metric : name of the time that was read
    parameter : parameter of the scales; None = p if it varies
    held : measured values of other parameters; by default the largest ones
    aggregate : centre of the ingredients of repetitions

    Returns
    -------
    Efficiency
        Factors of the program and its costliest subtrees at each scale.

    Raises
    ------
    DataError
        If no run has values of single threads.
    UsageError
        If there is no such parameter or value.
    """
    usable = np.array([balance is not None for balance in experiment.balances], np.bool_)
    if not usable.any():
        raise _unknown(experiment, metric)
    experiment = experiment.where(usable)
    line, settings = _line(experiment, parameter, held or {})
    if line.held:
        experiment = with_scaling_of(experiment.at(line.held))
        settings = experiment.settings([line.parameter])[:, 0]
    balances = [each for each in experiment.balances if each is not None]
    rows = _subtrees(balances)
    scales, of_run = np.unique(settings, return_inverse=True)
    ingredients, threads = _cube(balances, rows, of_run, len(scales))
    _add_gpus(ingredients, experiment, of_run)
    centres = _centres(ingredients, aggregate)
    # Subtrees that are costly only at some scales have no growth.
    reference = None
    is_clear = experiment.scaling is not Scaling.UNCLEAR
    if is_clear and (line.parameter == ALONE or counts_workers(experiment, line.parameter)):
        reference = Reference(experiment.scaling, centres[:, 0], float(threads[0]))
    processes = max(run.extent.processes for run in experiment.runs)
    found = Efficiency(
        experiment, line, metric, rows, scales, ingredients, threads, max(1, processes), reference,
        aggregate, (), (),
    )  # fmt: skip
    estimates = tuple(_measured(found, centres, k) for k in range(len(scales)))
    return replace(found, factors=_known(found, estimates), estimates=estimates)


def without_communication(experiment: Experiment) -> Experiment:
    """Return the experiment without the parts of runs that have no call of communication.

    Such a run of several processes was measured without its communication, so the factors would be
    too high.
    """
    balances: list[Balance | None] = []
    findings: list[Finding] = []
    for run, balance in zip(experiment.runs, experiment.balances, strict=True):
        if balance is None or balance.communicates or run.extent.processes < 2:
            balances.append(balance)
            continue
        balances.append(None)
        message = f"{run.extent.processes} processes, but no call of MPI or SHMEM"
        findings.append(Finding("CPM172", run.source, message))
    return replace(experiment, balances=tuple(balances), findings=(*experiment.findings, *findings))


def memory_findings(experiment: Experiment) -> tuple[Finding, ...]:
    """Return findings about runs whose subtrees were too many for the memory."""
    return tuple(
        Finding(
            "CPM171",
            run.source,
            f"{len(balance.rows) - 1} subtrees of {len(balance.rows) - 1 + balance.left_out}",
        )
        for run, balance in zip(experiment.runs, experiment.balances, strict=True)
        if balance is not None and balance.left_out
    )


def _unknown(experiment: Experiment, metric: str) -> DataError:
    """Return the error of an experiment none of whose runs has parts of a metric."""
    told = [each for each in experiment.findings if each.code in {"CPM170", "CPM172"}]
    first = f": {told[0].subject}: {told[0].message}" if told else ""
    hint = "; ".join(dict.fromkeys(each.remedy for each in told)) or "see `cpmodel info`"
    if not experiment.metric(metric).can_be_run_time:
        times = [v.metric.name for v in experiment.columns.values() if v.metric.can_be_run_time]
        hint = f"choose a time of threads: -m {times[0]}" if times else "measure a time of threads"
    return DataError(f"there are no factors of parallel efficiency{first}", hint=hint)


def _line(
    experiment: Experiment, parameter: str | None, held: Mapping[str, float]
) -> tuple[ParameterLine, FloatArray]:
    """Return the line of the scales, and the scale of each run before others are held."""
    if not experiment.parameters:
        if held or parameter not in {None, ALONE}:
            name = next(iter(held), parameter)
            raise UsageError(
                f"no parameter {name!r} varies between the runs", hint="omit --at and --parameter"
            )
        runs = experiment.runs
        scale = float(runs[0].parameters.get(ALONE, max(1, runs[0].extent.processes)))
        return ParameterLine(ALONE), np.full(len(runs), scale)
    names = experiment.modelled_parameters(parameter)
    chosen = parameter or names[0]
    names = (chosen, *(name for name in names if name != chosen))
    for name in held:
        if name not in names[1:]:
            raise UsageError(
                f"no parameter {name!r} varies independently of {chosen}",
                hint=f"parameters: {', '.join(names)}",
            )
    settings = np.unique(experiment.settings(names), axis=0)
    line = nearest_line(names, settings, held)
    for name, value in held.items():
        if line.measured_at[name] != value:
            values = np.unique(settings[:, names.index(name)])
            raise UsageError(
                f"no run is at {setting_text({name: value})}",
                hint=f"measured: {', '.join(map(parameter_value, values))}",
            )
    return structs.replace(line, held=line.measured_at), experiment.settings([chosen])[:, 0]


def _subtrees(balances: Sequence[Balance]) -> IntArray:
    """Return the rows of all subtrees, ascending; the program, `ROOT`, comes first."""
    return np.unique(np.concatenate([balance.rows for balance in balances]))


def _cube(
    balances: Sequence[Balance], rows: IntArray, of_run: IntArray, scales: int
) -> tuple[FloatArray, FloatArray]:
    """Return ingredients, [subtrees, K, R, ingredients], and numbers of threads, [K]."""
    repetitions = int(np.bincount(of_run).max())
    cube = np.full((len(rows), scales, repetitions, INGREDIENTS), np.nan)
    threads = np.zeros(scales)
    for balance, (scale, repetition) in zip(balances, places_of(of_run), strict=True):
        at = np.searchsorted(rows, balance.rows)
        place = cube[:, scale, repetition]
        place[at, :PARTS] = balance.parts
        place[at, Ingredient.INSTRUCTIONS] = balance.instructions / balance.threads
        place[at, Ingredient.CYCLES] = balance.cycles / balance.threads
        threads[scale] = max(threads[scale], balance.threads)
    return cube, threads


def places_of(of_run: IntArray) -> Iterator[tuple[int, int]]:
    """Yield the place of each run in the ingredients: its scale, and its repetition there.

    Parameters
    ----------
    of_run : [runs] scale of each run, as a place in the scales
    """
    filled: Counter[int] = Counter()
    for scale in of_run.tolist():
        yield scale, filled[scale]
        filled[scale] += 1


def _add_gpus(ingredients: FloatArray, experiment: Experiment, of_run: IntArray) -> None:
    """Fill in the times of GPUs of the whole program, where profiles have them."""
    for place, name in _TIMES_OF_GPUS.items():
        column = experiment.columns.get(name)
        if column is None:
            continue
        for (scale, repetition), total in zip(places_of(of_run), column.total, strict=True):
            ingredients[0, scale, repetition, place] = total


def _centres(ingredients: FloatArray, how: Centre) -> FloatArray:
    subtrees, scales, repetitions, columns = ingredients.shape
    lines = np.moveaxis(ingredients, 3, 1).reshape(-1, scales, repetitions)
    return np.moveaxis(centre(lines, how).reshape(subtrees, columns, scales), 1, 2)


def _measured(found: Efficiency, centres: FloatArray, scale: int) -> FactorsAtScale:
    """Return the factors at a measured scale, with the range of the repetitions."""
    runs = found.ingredients[:, scale]
    count = int((~np.isnan(runs[0, :, 0])).sum())
    threads = found.threads[scale]
    value, low, high = {}, {}, {}
    for scheme in Scheme:
        of_centre = factors_of(centres[:, scale], threads, found.reference, scheme)
        of_runs = factors_of(runs, threads, found.reference, scheme)
        for factor in PopFactor:
            several = of_runs[factor] if count > 1 else np.full(runs.shape[:2], np.nan)
            value[scheme, factor] = of_centre[factor]
            low[scheme, factor] = np.fmin.reduce(several, axis=1)
            high[scheme, factor] = np.fmax.reduce(several, axis=1)
    return FactorsAtScale(
        float(found.scales[scale]), count, value, low, high, share_of_program(centres[:, scale])
    )


def share_of_program(ingredients: FloatArray) -> FloatArray:
    """Return the run time of each subtree over that of the program, [subtrees].

    The models of the program and of its subtrees are independent. The program takes at least as
    long as any of its subtrees, so the largest of the run times counts.
    """
    whole = ingredients[:, :PARTS].sum(axis=1)
    return np.asarray(whole / np.nanmax(whole))


def _known(found: Efficiency, estimates: Sequence[FactorsAtScale]) -> tuple[PopFactor, ...]:
    """Return the factors of the program that are known, in order."""
    last = estimates[-1].value
    parts = found.ingredients[0, :, :, :PARTS]
    # Processes of several threads may compute all the time with all of them.
    threads = float(np.nanmax(found.threads)) > found.processes
    inside = np.nansum(parts[..., Part.SERIAL] + parts[..., Part.REGIONS]) > 0
    hybrid = threads or inside
    factors = []
    for factor in PopFactor:
        if factor in _OF_THREADS and not hybrid:
            continue
        # A single scale is not compared with itself.
        if factor in _OF_GROWTH and len(estimates) == 1:
            continue
        if np.isnan(last[Scheme.MULTIPLICATIVE, factor][0]):
            continue
        factors.append(factor)
    return tuple(factors)
