"""Filters never exclude much of the time: generated programs, and measured series."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callpath_modeler.analysis.answer import rank
from callpath_modeler.analysis.refinement import VisitCost, refine
from callpath_modeler.profile.schema import Region
from callpath_modeler.report.refinement_text import filter_text
from callpath_modeler.studies import loading, pipeline
from instrumented import P, compiled, ranked
from score_p_filters import excluded, rules

SERIES = ("lulesh.weak", "comd.weak", "snap.weak", "amg.weak", "npb_ft.strong")
COSTS = (VisitCost(1e-7, 1e-6), VisitCost(1e-5, 1e-3), VisitCost(10.0, 10.0))
"""The dearest visit makes every function small and frequent."""


def check(ranking, cost):
    """Check the filter against the grammar and the shares of functions; return their number."""
    found = refine(ranking, cost)
    fitted = ranking.fitted
    tree = fitted.experiment.tree
    made = rules(filter_text(found))
    by_region = [excluded(made, region.name, region.mangled) for region in tree.regions]
    rows = np.array(by_region)[tree.region]
    names = {(region.mangled or region.name) for region in tree.regions}
    by_rule = {
        region.mangled or region.name
        for region, out in zip(tree.regions, by_region, strict=True)
        if out
    }
    assert by_rule == {each.filter_name for each in found.excluded} <= names
    _, values = fitted.experiment.by_setting(fitted.metric.name, ("p",))
    means = np.nan_to_num(values).mean(axis=2)
    costs = (means, np.nan_to_num(fitted.measured))
    shares = np.column_stack([each / each.sum(axis=0) for each in costs])
    at_target = np.nan_to_num(ranking.value) / ranking.total[0]
    for name in by_rule:
        its = [(r.mangled or r.name) == name for r in tree.regions]
        of_function = np.array(its)[tree.region]
        assert shares[of_function].sum(axis=0).max() <= 0.01
        assert at_target[of_function].sum() <= 0.01
        assert tree.inclusive(shares)[of_function].max() <= 0.01
    for region, out in zip(tree.regions, by_region, strict=True):
        assert not out or (region.paradigm == "compiler" and region.name != "main")
    growth = np.where(fitted.modelled, fitted.models.growth_rank(), -1)
    constant = fitted.models.shapes.rank[-1]
    assert growth[rows].max(initial=-1) <= max(constant, growth[~rows].max(initial=-1))
    return len(by_rule)


@st.composite
def programs(draw):
    """Return functions with costs over many orders of magnitude, and their callers."""
    regions = [compiled(f"f{k}", f"_Zf{k}") for k in range(6)]
    regions += [compiled("plain"), Region("MPI_Send", "MPI_Send", paradigm="mpi")]
    functions, parents = [(compiled("main"), 1.0, 1.0)], [-1]
    depth = [0]
    for _ in range(draw(st.integers(1, 12))):
        parent = depth[-draw(st.integers(1, len(depth)))]
        del depth[depth.index(parent) + 1 :]
        region = draw(st.sampled_from(regions))
        size = 10.0 ** draw(st.floats(-5, 2))
        power = draw(st.sampled_from([0.0, 0.5, 1.0, -1.0]))
        noise = np.array(draw(st.lists(st.floats(0.7, 1.3), min_size=5, max_size=5)))
        functions.append((region, size * P**power * noise, 10.0 ** draw(st.floats(0, 8))))
        depth.append(len(parents))
        parents.append(parent)
    return functions, parents


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.sampled_from([32.0, 64.0, 4096.0]), st.sampled_from(COSTS))
def test_a_filter_of_a_generated_program_excludes_at_most_a_percent(program, target, cost):
    functions, parents = program
    check(ranked(functions, parents, target=target), cost)


@pytest.mark.parametrize("name", SERIES)
def test_a_filter_of_a_measured_series_excludes_at_most_a_percent(shared_data, name):
    options = loading.LoadOptions(loading.ReadOptions(requirements=True))
    fitted = pipeline.fit(loading.load([Path(shared_data) / "scorep" / name], options))
    counts = []
    for times in (1.0, 64.0):
        ranking = rank(fitted, times * fitted.points[-1])
        counts += [check(ranking, cost) for cost in COSTS]
    assert max(counts) > 0
