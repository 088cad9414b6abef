"""Experiments with times and visits, for filters of instrumentation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from callpath_modeler.analysis.answer import rank
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.schema import PROGRAM, Reduction, Region
from callpath_modeler.studies import pipeline
from synthetic import POINTS, TIME, VISITS, experiment

P = np.array(POINTS)
ROOT = Region(PROGRAM, paradigm="measurement", role="artificial")


def compiled(name, mangled=""):
    return Region(name, mangled, "a.c", 1, "compiler", "function")


def program(functions, parents=None, *, imbalance=None, repetitions=1):
    """Return an experiment.

    Parameters
    ----------
    functions : (region, times [K], visits) per call path, in preorder below the program
    parents : row of the caller among `functions`, -1 = the program; None = the first one calls all
    imbalance : imbalance of the times per call path; None = not known
    """
    parents = [-1] + [0] * (len(functions) - 1) if parents is None else parents
    known = list(dict.fromkeys([ROOT, *(region for region, *_ in functions)]))
    numbers = [0, *(known.index(region) for region, *_ in functions)]
    tree = CallTree.from_parents([-1, *(parent + 1 for parent in parents)], numbers, known)
    times = np.array([0 * P, *(np.broadcast_to(time, P.shape) for _, time, _ in functions)])
    visits = np.array([1 + 0 * P, *(np.broadcast_to(count, P.shape) for *_, count in functions)])
    made = experiment(
        {str(k): [[t] * repetitions for t in row] for k, row in enumerate(times)},
        reduction=Reduction.MEAN,
    )
    times, visits = (np.repeat(each, repetitions, axis=1) for each in (times, visits))
    ratio = None
    if imbalance is not None:
        ratio = np.repeat([1.0, *imbalance], times.shape[1]).reshape(times.shape)
    even = np.ones(times.shape, np.float32)
    columns = {
        "time": MetricValues(TIME, times, times.sum(axis=0), ratio),
        "visits": MetricValues(VISITS, visits, visits.sum(axis=0), even),
    }
    return replace(made, tree=tree, columns=columns)


def ranked(functions, parents=None, target=64.0, **how):
    return rank(pipeline.fit(program(functions, parents, **how), "time"), target)
