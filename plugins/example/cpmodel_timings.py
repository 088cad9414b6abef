"""Reader of timings: one line per call path, indented below its caller, seconds per process.

A file looks like this::

    timings of myapp
    main = 0.5 0.6
      solve = 2.5 2.3
        exchange = 0.1 0.2
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from callpath_modeler.errors import InputError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import DeclaredMetric, Extent, Metric, MetricStatus, Region
from callpath_modeler.readers.base import Match, Reduced, ThreadSums
from callpath_modeler.readers.reductions import statistic


class TimingsReader:
    api_version = 1
    name = "timings"
    description = "Timings: seconds per call path and process"
    suffixes = (".timings",)

    def match(self, path):
        if not path.is_file():
            return Match.NO
        with path.open("rb") as file:
            return Match.CONTENT if file.read(11) == b"timings of " else Match.NO

    @contextmanager
    def open(self, path):
        try:
            profile = Timings(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as cause:
            raise InputError(f"{path}: {cause}", hint="write the timings again") from cause
        yield profile


class Timings:
    def __init__(self, text):
        heading, *lines = text.splitlines() or [""]
        callers, parent, names, seconds = [], [], [], []
        for row, line in enumerate(lines):
            name, _, values = line.rpartition("=")
            depth = (len(name) - len(name.lstrip(" "))) // 2
            if depth > len(callers) or not name.strip():
                raise ValueError(f"line {row + 2}: the name or the caller is missing")
            del callers[depth:]
            parent.append(callers[-1] if callers else ROOT)
            callers.append(row)
            names.append(name.strip())
            seconds.append([float(value) for value in values.split()])
        regions = sorted(set(names))
        places = [regions.index(name) for name in names]
        self.call_tree = CallTree.from_parents(parent, places, [Region(name) for name in regions])
        self.seconds = np.array(seconds)
        if self.seconds.ndim != 2 or not self.seconds.size:
            raise ValueError("every line needs one time per process")
        if not np.all((self.seconds >= 0) & (self.seconds < np.inf)):
            raise ValueError("a time is negative or not finite")
        self.metrics = [DeclaredMetric(Metric("time", "s"), MetricStatus.DATA)]
        self.extent = Extent(processes=self.seconds.shape[1])
        self.metadata = {"program": heading.removeprefix("timings of ")}

    def reduce(self, metric, over_locations):
        if metric != "time":
            raise KeyError(metric)
        whole_program = self.seconds.sum(axis=0, keepdims=True)
        with np.errstate(all="ignore"):
            exclusive = statistic(self.seconds, over_locations)
            total = float(statistic(whole_program, over_locations)[0])
        return Reduced(exclusive, total, run_time=float(whole_program.max()))

    def sums_of_threads(self, metric, group, groups):
        if metric != "time":
            raise KeyError(metric)
        sums = np.zeros((groups, self.seconds.shape[1]))
        np.add.at(sums, group[group >= 0], self.seconds[group >= 0])
        return ThreadSums(sums, np.arange(sums.shape[1]))

    def findings(self):
        return []
