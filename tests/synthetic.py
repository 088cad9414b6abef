"""Profiles, experiments and readers from a few lines, without files of a real format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.runs import Run, split_parameters
from callpath_modeler.profile.schema import (
    DeclaredMetric,
    Extent,
    Metric,
    MetricStatus,
    Reduction,
    Region,
)
from callpath_modeler.readers.base import API_VERSION, Match, Reader, Reduced, RunSource
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.registry import Registry
from callpath_modeler.studies import pipeline

TIME = Metric("time", "s", "run time")
VISITS = Metric("visits", "1", "number of calls")
ONE_PROCESS = Extent(1)
POINTS = (2.0, 4.0, 8.0, 16.0, 32.0)


def region(text: str) -> Region:
    """Return the region of ``"name"`` or ``"name@line"``, with the paradigm of MPI functions."""
    name, _, line = text.partition("@")
    paradigm = "mpi" if name.startswith("MPI_") else "compiler"
    return Region(name, file=f"{name}.c", line=int(line or 1), paradigm=paradigm)


def call_tree(paths: Sequence[str], notes: Sequence[str] | None = None) -> CallTree:
    """Return the tree of `paths` such as ``"main/f@12/g"``, given in preorder.

    A repeated path is a second sibling, and the paths that follow belong to it.
    """
    rows: dict[str, int] = {}
    parents, regions = [], []
    index: dict[Region, int] = {}
    for row, path in enumerate(paths):
        caller, _, last = path.rpartition("/")
        parents.append(rows[caller] if caller else ROOT)
        regions.append(index.setdefault(region(last), len(index)))
        rows[path] = row
    known = tuple(dict.fromkeys(["", *(notes or [])]))
    annotation = [known.index(note) for note in notes] if notes else None
    return CallTree.from_parents(parents, regions, tuple(index), annotation, known)


def chain(depth: int) -> CallTree:
    """Return a tree in which every call path has one callee."""
    return CallTree.from_parents(np.arange(-1, depth - 1), np.zeros(depth, int), [Region("f")])


def experiment(
    values: Mapping[str, Sequence[float] | Sequence[Sequence[float]]],
    points: Sequence[float] = POINTS,
    *,
    parameter: str = "p",
    metric: Metric = TIME,
    scaling: Scaling = Scaling.WEAK,
    reduction: Reduction = Reduction.MAX,
) -> Experiment:
    """Return an experiment of one metric.

    Parameters
    ----------
    values : for each call path in preorder, one exclusive value per point, or a list of repetitions
        per point; NaN = the call path did not occur
    """
    tree = call_tree(list(values))
    cube = np.array(list(values.values()), float)
    cube = cube[..., None] if cube.ndim == 2 else cube
    exclusive = cube.reshape(len(tree), -1)
    runs = tuple(
        Run(f"app.{parameter}{point:g}.r{r}", "fake", Extent(int(point)), {parameter: point}, r)
        for point in points
        for r in range(1, cube.shape[2] + 1)
    )
    varying, constants = split_parameters(runs, {parameter: "name"})
    return Experiment(
        name="app",
        tree=tree,
        runs=runs,
        parameters=varying,
        constants=constants,
        columns={metric.name: MetricValues(metric, exclusive, np.nansum(exclusive, axis=0))},
        declared={metric.name: ""},
        reduction=reduction,
        scaling=scaling,
        scaling_reason="as told",
        findings=(),
    )


def fitted(
    values: Mapping[str, Sequence[float]],
    points: Sequence[float] = POINTS,
    *,
    run_time: Sequence[float] | None = None,
    **of_experiment: object,
) -> Fitted:
    """Return the models of an experiment from `experiment`, and of its run time [runs]."""
    made = experiment(values, points, **of_experiment)
    if run_time is not None:
        column = replace(made.columns["time"], run_time=np.asarray(run_time, float))
        made = replace(made, columns={"time": column})
    return pipeline.fit(made)


@dataclass
class FakeSource:
    """A profile in memory, with reduced exclusive values of each metric."""

    call_tree: CallTree
    columns: Mapping[Metric, Sequence[float]]
    extent: Extent = ONE_PROCESS
    metadata: Mapping[str, str] = field(default_factory=lambda: {"program": "app"})
    derived: Sequence[Metric] = ()
    noticed: Sequence[Finding] = ()
    imbalance: Sequence[float] | None = None
    run_time: float = float("nan")

    @property
    def metrics(self) -> list[DeclaredMetric]:
        readable = [DeclaredMetric(metric, MetricStatus.DATA) for metric in self.columns]
        return readable + [DeclaredMetric(m, MetricStatus.DERIVED, "derived") for m in self.derived]

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:  # noqa: ARG002
        for known, values in self.columns.items():
            if known.name == metric:
                exclusive = np.array(values, float)
                uneven = None if self.imbalance is None else np.array(self.imbalance, np.float32)
                return Reduced(exclusive, float(np.nansum(exclusive)), uneven, self.run_time)
        raise KeyError(metric)

    def findings(self) -> Sequence[Finding]:
        return self.noticed


@dataclass
class FakeMean(FakeSource):
    """A profile that was reduced to means when it was written."""

    reductions: Sequence[Reduction] = (Reduction.MEAN, Reduction.SUM)


@dataclass
class FakeMax(FakeSource):
    """A profile that contains only maxima over processes."""

    reductions: Sequence[Reduction] = (Reduction.MAX,)


class FakeReader:
    """A reader that returns a profile for each file name, or raises an error that replaces it."""

    api_version: ClassVar[int] = API_VERSION
    description: ClassVar[str] = "profiles in memory"

    def __init__(self, name: str = "fake", suffix: str = ".fake") -> None:
        self.name = name
        self.suffixes = (suffix,)
        self.profiles: dict[str, FakeSource | InputError] = {}

    def match(self, path: Path) -> Match:
        return Match.NAME if path.name.endswith(self.suffixes) else Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[FakeSource]:
        profile = self.profiles[path.name]
        if isinstance(profile, InputError):
            raise profile
        yield profile

    def add(
        self, directory: Path, name: str, profile: FakeSource | InputError, **of_file: object
    ) -> RunFile:
        """Write an empty file for `profile`, and return its run."""
        path = directory / f"{name}{self.suffixes[0]}"
        path.write_bytes(b"x")
        self.profiles[path.name] = profile
        return RunFile(path, **of_file)


class FakeSeriesReader:
    """A reader that returns a list of runs for each file name."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "fake"
    description: ClassVar[str] = "files of several runs in memory"
    suffixes: ClassVar[tuple[str, ...]] = (".series",)

    def __init__(self) -> None:
        self.files: dict[str, list[RunSource]] = {}

    def match(self, path: Path) -> Match:
        return Match.NAME if path.name.endswith(self.suffixes) else Match.NO

    @contextmanager
    def open_runs(self, path: Path) -> Iterator[list[RunSource]]:
        yield self.files[path.name]

    def add(self, directory: Path, name: str, runs: list[RunSource], **of_file: object) -> RunFile:
        """Write an empty file for `runs`."""
        path = directory / f"{name}.series"
        path.write_bytes(b"x")
        self.files[path.name] = runs
        return RunFile(path, **of_file)


def registry(*readers: Reader) -> Registry:
    """Return a registry of only these readers."""
    return Registry(tuple(readers))
