"""Causes of growth: a confusion table, bands, and algorithms of collective operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from results import Table

from callpath_modeler.analysis.cause import Cause
from callpath_modeler.analysis.cause_search import find_causes
from callpath_modeler.analysis.laws_of_time import BLOCKS, FAMILIES
from callpath_modeler.profile.call_class import CallClass
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.runs import Run, split_parameters
from callpath_modeler.profile.schema import Extent, Metric, Reduction, Region
from callpath_modeler.studies import pipeline

Floats = npt.NDArray[np.float64]

POINTS = np.array([8.0, 16.0, 32.0, 64.0, 128.0])
TARGET = 1024.0
REPETITIONS = 3
NOISE = 0.05
PROGRAMS = 25
"""Generated programs; each has every cause once."""
CONSTANT = 12
"""Call paths of a program that do not grow."""
AT = np.append(POINTS, TARGET)

NOTES = f"""\
Each of {PROGRAMS} generated programs has every cause once, and {CONSTANT} call paths of all classes
that do not grow. There are five scales from 8 to 128 with three repetitions, and the noise is
normal with 5 %. The growing part is 30 to 95 % of the time at the largest scale. A cause is right
if its label is the one of the table. A band is wrong if it excludes the true share that
requirements explain at p = 1024.
"""
FAMILY_NOTES = """\
Each algorithm is generated 300 times with 2 % noise and random coefficients, five scales from 8 to
128 and three repetitions. The number of bytes is constant, or it grows with a random power of p up
to p. The answer is right if the named algorithm has the generated law. If no algorithm reaches
98 %, the answer is "cannot tell which".
"""


@dataclass(slots=True)
class Generated:
    """A call path with a known cause, at `AT`.

    Attributes
    ----------
    name : name of the function
    cause : the cause in words
    label : its label, as `Cause.label`; "" = not counted
    time : [6] mean time of the processes
    required : [6] part of the time that requirements explain
    needs : values [6] by metric
    imbalance : [6] largest over mean time
    caller : name of the caller; "" = the program
    waits_for : name of a call path; the delay of its slowest process is added in each run
    """

    name: str
    cause: str
    label: str
    time: Floats
    required: Floats
    needs: Mapping[str, Floats]
    imbalance: Floats = field(default_factory=lambda: np.ones(len(AT)))
    caller: str = ""
    waits_for: str = ""


METRICS = {
    "visits": Metric("visits", "1"),
    "bytes_sent": Metric("bytes_sent", "B"),
    "flops": Metric("papi_fp_ops", "1"),
}


def experiment(paths: list[Generated], seed: int, noise: float = NOISE) -> Experiment:
    """Return an experiment of some call paths at `POINTS`, with normal noise."""
    random = np.random.default_rng(seed)
    names = ["<program>", *dict.fromkeys(each.caller for each in paths if each.caller)]
    order: list[tuple[str, str]] = []
    for caller in ("", *names[1:]):
        if caller:
            order.append((caller, ""))
        order += [(each.name, caller) for each in paths if each.caller == caller]
    row_of = {"": 0, **{name: k for k, (name, caller) in enumerate(order, 1) if not caller}}
    parents = [ROOT, *(row_of[caller] for _, caller in order)]
    texts = ["main", *(name.partition("@")[0] for name, _ in order)]
    regions = list(dict.fromkeys(texts))
    tree = CallTree.from_parents(
        parents,
        [regions.index(text) for text in texts],
        [Region(text, paradigm="mpi" if text.startswith("MPI_") else "compiler")
         for text in regions],
    )  # fmt: skip
    rows = {each.name: 1 + [name for name, _ in order].index(each.name) for each in paths}
    runs = tuple(
        Run(f"p{p:g}.r{r}", "fake", Extent(int(p)), {"p": float(p)}, r)
        for p in POINTS
        for r in range(1, REPETITIONS + 1)
    )
    count = len(POINTS), REPETITIONS
    time = np.zeros((len(tree), *count))
    imbalance = np.ones((len(tree), *count))
    needs = {name: np.zeros((len(tree), *count)) for name in METRICS}
    for each in paths:
        row = rows[each.name]
        scatter = 1 + noise * random.standard_normal(count)
        time[row] = each.time[:-1, None] * np.maximum(scatter, 0.1)
        # The largest of p normal times, and that of a process that is late in every run.
        of_all = np.sqrt(2 * np.log(POINTS))[:, None]
        by_chance = 1 + noise * (of_all + random.gumbel(size=count) / of_all)
        late = each.imbalance[:-1, None] * (1 + noise * random.standard_normal(count))
        imbalance[row] = np.maximum(np.where(each.imbalance[:-1, None] > 1.001, late, 0), by_chance)
        for name, values in each.needs.items():
            needs[name][row] = values[:-1, None]
    for each in paths:
        if each.waits_for:
            # What the slowest process computes longer in a run, the others wait in that run.
            row, late = rows[each.name], rows[each.waits_for]
            scatter = 1 + noise * random.standard_normal(count)
            delay = time[late] * (imbalance[late] - 1)
            time[row] = (each.required[:-1, None] + delay) * np.maximum(scatter, 0.1)
    flat = {name: values.reshape(len(tree), -1) for name, values in needs.items()}
    times = time.reshape(len(tree), -1)
    columns = {
        "time": MetricValues(
            Metric("time", "s"), times, times.sum(axis=0),
            imbalance.reshape(len(tree), -1).astype(np.float32),
        ),
        **{metric.name: MetricValues(metric, flat[name], flat[name].sum(axis=0))
           for name, metric in METRICS.items()},
    }  # fmt: skip
    varying, constants = split_parameters(runs, {"p": "name"})
    return Experiment(
        name="app",
        tree=tree,
        runs=runs,
        parameters=varying,
        constants=constants,
        columns=columns,
        declared=dict.fromkeys(columns, ""),
        reduction=Reduction.MEAN,
        scaling=Scaling.WEAK,
        scaling_reason="as told",
        findings=(),
    )


def _law(random: np.random.Generator, *, least: float = 0.33) -> Floats:
    """Return a growing law, [6], 1 at the largest scale."""
    power = random.uniform(least, 1.2)
    logs = random.integers(0, 2)
    values = AT**power * np.log2(AT) ** logs
    return np.asarray(values / values[-2])


def _grown(random: np.random.Generator, law: Floats) -> tuple[Floats, float]:
    """Return a constant plus a law, [6], 1 at the largest scale, and the constant."""
    part = random.uniform(0.3, 0.95)
    return 1 - part + part * law, 1 - part


def program(seed: int) -> list[Generated]:
    """Return call paths with every cause."""
    random = np.random.default_rng(seed)
    one = np.ones(len(AT))
    paths: list[Generated] = []

    def size() -> float:
        return float(10 ** random.uniform(-2, 1))

    def add(
        cause: str, label: str, name: str, time: Floats, required: Floats, **more: object
    ) -> None:
        unit = size()
        number = f"{name}@{len(paths)}"
        paths.append(Generated(number, cause, label, unit * time, unit * required, **more))  # type: ignore[arg-type]

    visits = float(random.integers(10, 1000))
    law, _ = _grown(random, _law(random))
    add(
        "more calls of a computation",
        "more work",
        "solve",
        law,
        law,
        needs={"visits": visits * law},
    )
    law, rest = _grown(random, _law(random))
    add(
        "more operations per call",
        "more work",
        "refine",
        law,
        law,
        needs={"visits": visits * one, "flops": 1e6 * law},
    )
    law, _ = _grown(random, _law(random))
    add("bytes that grow", "longer messages", "MPI_Send", law, law,
        needs={"visits": visits * one, "bytes_sent": 1e5 * (law - law.min() * 0.5)})  # fmt: skip
    law, _ = _grown(random, _law(random))
    add("messages that grow", "more messages", "MPI_Isend", law, law,
        needs={"visits": visits * law, "bytes_sent": 1e4 * visits * law})  # fmt: skip
    log = np.log2(AT)
    law, _ = _grown(random, log / log[-2])
    add("collective over more processes", "collective log p", "MPI_Allreduce", law, law,
        needs={"visits": visits * one, "bytes_sent": 8 * visits * AT})  # fmt: skip
    law, _ = _grown(random, log / log[-2])
    add("collective over more processes", "collective log p", "MPI_Bcast", law, law,
        needs={"visits": visits * one, "bytes_sent": 1e3 * visits * one})  # fmt: skip
    # Each process works while all others wait.
    law, rest = _grown(random, AT / POINTS[-1])
    add("serialised code", "waits", "MPI_Recv", law, rest * one,
        needs={"visits": visits * one, "bytes_sent": 1e4 * visits * one})  # fmt: skip
    # The slowest process of a computation lets the others wait.
    delay, rest = _law(random), random.uniform(0.05, 0.5)
    unit, total = size(), random.uniform(2, 5)
    paths.append(
        Generated(
            "forces@late",
            "",
            "",
            unit * total * one,
            unit * total * one,
            {"visits": visits * one},
            1 + delay / total,
            "step",
        )
    )
    paths.append(
        Generated(
            "MPI_Waitall@late",
            "late senders",
            "waits for forces",
            unit * (rest + delay),
            unit * rest * one,
            {"visits": visits * one},
            caller="step",
            waits_for="forces@late",
        )
    )
    uneven = _law(random)
    add("imbalance that grows", "imbalance", "update", one, one, needs={"visits": visits * one},
        imbalance=1 + random.uniform(0.8, 4) * uneven)  # fmt: skip
    law, rest = _grown(random, (AT / POINTS[-1]) ** random.uniform(0.5, 1.2))
    add("jitter in a collective", "waits", "MPI_Allreduce", law, rest * one,
        needs={"visits": visits * one, "bytes_sent": 8 * visits * AT})  # fmt: skip
    add(
        "work on one process",
        "imbalance",
        "write_on_root",
        one,
        one,
        needs={"visits": one / AT},
        imbalance=AT,
    )
    law, rest = _grown(random, _law(random))
    add("contention", "unexplained", "stream", law, rest * one, needs={"visits": visits * one,
        "flops": 1e6 * visits * one})  # fmt: skip
    names = ("assemble", "smooth", "MPI_Recv", "MPI_Allreduce", "MPI_Bcast", "MPI_Wait")
    for k in range(CONSTANT):
        name = names[k % len(names)]
        needs = {"visits": visits * one}
        if name in {"MPI_Recv", "MPI_Bcast"}:
            needs["bytes_sent"] = 1e4 * visits * one
        add("nothing grows", "-", name, one, one, needs=needs)
    return paths


def causes_of(paths: list[Generated], seed: int, noise: float = NOISE) -> dict[str, Cause]:
    """Return the found causes by name of the generated call path."""
    made = experiment(paths, seed, noise)
    fitted = pipeline.fit(made, "time")
    found = find_causes(fitted, TARGET, np.arange(len(made.tree)))
    assert found is not None
    # Rows follow the order of generation within each caller.
    order = [each for caller in dict.fromkeys(["", *(e.caller for e in paths)]) for each in
             [None, *(e for e in paths if e.caller == caller)]]  # fmt: skip
    return {each.name: found.at(row) for row, each in enumerate(order) if each is not None}  # type: ignore[misc]


def table(_: Path) -> Table:
    """Return the confusion table."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    bands: dict[str, list[bool]] = {}
    for seed in range(PROGRAMS):
        paths = program(seed)
        found = causes_of(paths, seed)
        for each in paths:
            if not each.label:
                continue
            cause = found[each.name]
            counts.setdefault((each.cause, each.label), Counter())[cause.label] += 1
            if cause.is_examined and cause.label != "-":
                share = cause.explained().required
                truth = each.required[-1] / each.time[-1]
                held = share.low - 0.005 <= truth <= share.high + 0.005
                bands.setdefault(each.cause, []).append(held)
    lines = [(*line, _band_text(bands.get(line[0], []))) for line in _lines(counts)]
    head = ("cause", "label", "cases", "right", "other answers", "wrong bands")
    return Table(head, lines, range(2, 4))


def _band_text(held: list[bool]) -> str:
    return f"{held.count(False)} of {len(held)}" if held else ""


def _lines(counts: Mapping[tuple[str, str], Counter[str]]) -> Iterator[tuple[str, ...]]:
    whole: Counter[str] = Counter()
    for (cause, label), found in counts.items():
        total = found.total()
        others = [f"{name}: {n}" for name, n in found.most_common() if name != label]
        whole["right"] += found[label]
        whole["all"] += total
        yield cause, label, str(total), f"{100 * found[label] / total:.0f} %", ", ".join(others)
    yield "all", "", str(whole["all"]), f"{100 * whole['right'] / whole['all']:.0f} %", ""


_CALLS = {
    CallClass.BROADCAST: "MPI_Bcast",
    CallClass.REDUCE: "MPI_Reduce",
    CallClass.ALLREDUCE: "MPI_Allreduce",
    CallClass.ALLGATHER: "MPI_Allgather",
    CallClass.GATHER: "MPI_Gather",
    CallClass.SCATTER: "MPI_Scatter",
    CallClass.ALLTOALL: "MPI_Alltoall",
    CallClass.REDUCE_SCATTER: "MPI_Reduce_scatter",
    CallClass.SCAN: "MPI_Scan",
    CallClass.BARRIER: "MPI_Barrier",
}


def families(_: Path, cases: int = 300, noise: float = 0.02) -> Table:
    """Return how often the generated algorithm is named."""
    lines = []
    for kind, name in _CALLS.items():
        for family in FAMILIES[kind]:
            random = np.random.default_rng(1)
            paths = []
            for k in range(cases):
                visits = float(random.integers(10, 1000))
                overhead, latency, sent = random.uniform(0.1, 1, 3) * (0.3, 1, 1)
                power = random.choice([0.0, random.uniform(0.3, 1.0)])
                bytes_ = 1e4 * AT**power
                time = overhead + latency * family.latency.of(AT) / family.latency.of(AT)[0]
                needs = {"visits": visits * np.ones(len(AT))}
                if family.size is not None:
                    law = family.size.of(AT) * (AT if kind in BLOCKS else 1)
                    time = time + sent * bytes_ / bytes_[0] * law / law[0]
                    counted = AT if kind in {CallClass.ALLREDUCE, CallClass.ALLGATHER,
                                             CallClass.ALLTOALL} else 1.0  # fmt: skip
                    needs["bytes_sent"] = visits * bytes_ * counted
                paths.append(Generated(f"{name}@{k}", "", family.name, time, time, needs))
            answers = Counter(
                "cannot tell which" if cause.family is None else cause.family.name
                for cause in causes_of(paths, 7, noise).values()
            )
            told = cases - answers["cannot tell which"]
            right = f"{100 * answers[family.name] / told:.0f} %" if told else "-"
            others = [f"{n}: {c}" for n, c in answers.most_common() if n != family.name]
            lines.append((name, family.name, str(told), right, ", ".join(others)))
    head = ("operation", "algorithm", "told", "right", "other answers")
    return Table(head, lines, range(2, 4))
