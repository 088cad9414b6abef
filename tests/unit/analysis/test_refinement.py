"""Filters exclude small and frequent functions only; coarse call paths are named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.analysis.answer import rank
from callpath_modeler.analysis.refinement import Coarse, Kept, VisitCost, refine
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.schema import Region
from cells import cells
from instrumented import P, compiled, program, ranked
from synthetic import fitted

MAIN = (compiled("main"), 100.0, 1.0)
SMALL = (compiled("small(int)", "_Z5smalli"), 0.5, 1e6)
MPI = (Region("MPI_Send", "MPI_Send", paradigm="mpi", role="point2point"), 0.5, 1e6)


def kept(functions, parents=None, **how):
    """Return the reason per small and frequent function."""
    found = refine(ranked([MAIN, *functions], parents, **how))
    return {each.region.name: each.kept for each in found.small}


def test_a_small_and_frequent_function_is_excluded():
    found = refine(ranked([MAIN, SMALL, (compiled("large"), 50.0, 10.0)]))
    (only,) = found.excluded
    assert only.filter_name == "_Z5smalli"
    assert only.visits == 1e6
    assert only.per_visit == pytest.approx(0.5e-6)
    assert only.share == pytest.approx(0.5 / 150.5)
    assert (found.visits, found.visits_after) == (1e6 + 12, 12)
    assert (found.most_visits, found.most_visits_after) == (1e6 + 12, 12)
    assert found.run_time == pytest.approx(150.5)


def test_functions_that_are_large_or_rare_are_no_candidates():
    large_per_visit = (compiled("kernel"), 0.5, 1e4)
    rare = (compiled("once"), 1e-6, 1.0)
    assert kept([SMALL, large_per_visit, rare]) == {"small(int)": None}


def test_a_function_of_more_than_a_percent_is_kept():
    assert kept([(compiled("f"), 1.5, 1e7)]) == {"f": Kept.COSTLY}


def test_call_paths_of_one_function_are_added():
    f = compiled("f")
    callers = [(compiled(f"caller{k}"), 10.0, 1.0) for k in range(3)]
    parts = [each for caller in callers for each in (caller, (f, 0.6, 1e6))]
    assert kept(parts, [-1, 0, 1, 0, 3, 0, 5]) == {"f": Kept.COSTLY}


def test_a_function_that_is_costly_at_any_scale_is_kept():
    assert kept([(compiled("f"), np.where(P == 4, 3.0, 0.1), 1e7)]) == {"f": Kept.COSTLY}


def test_a_function_that_is_costly_at_the_target_is_kept():
    growing = (compiled("f"), 0.02 * P, 1e7)
    other = (compiled("g"), 0.02 * P, 1.0)
    assert kept([growing, other], target=64.0)["f"] is Kept.COSTLY
    assert kept([growing, other], target=33.0)["f"] is None


def test_a_function_that_is_costly_on_one_process_is_kept():
    even, uneven = [1.0, 1.0], [1.0, 30.0]
    assert kept([SMALL], imbalance=even) == {"small(int)": None}
    assert kept([SMALL], imbalance=uneven) == {"small(int)": Kept.COSTLY}


def test_a_function_that_is_costly_with_its_callees_is_kept():
    callee = (compiled("kernel"), 5.0, 1e3)
    assert kept([SMALL, callee], [-1, 0, 1]) == {"small(int)": Kept.COSTLY}


def test_a_wide_band_at_the_target_keeps_a_function():
    noisy = 0.5 * np.array([1.0, 0.2, 1.6, 0.3, 1.2])
    functions = [(compiled("f"), noisy, 1e7)]
    found = refine(ranked([MAIN, *functions], target=4096.0))
    (only,) = found.small
    assert only.share_at_most > 0.01
    assert only.kept is Kept.MAY_BE_COSTLY


def test_a_function_without_a_model_is_kept():
    late = np.where(P >= 16, 0.1, np.nan)
    assert kept([(compiled("f"), late, 1e7)]) == {"f": Kept.UNKNOWN}


@cells(
    "region",
    [
        MPI[0],
        Region("!$omp parallel @f.f90:23", paradigm="openmp", role="parallel"),
        Region("user region", paradigm="user"),
        Region("sqlite3_step", "sqlite3_step", paradigm="libwrap"),
        Region("f"),
        compiled("MPI_Send"),
        compiled("PMPI_Send"),
        compiled("omp_get_wtime"),
    ],
)
def test_only_functions_of_the_compiler_are_candidates(region):
    assert kept([SMALL, (region, 0.01, 1e7)]) == {"small(int)": None}


def test_the_main_program_is_no_candidate():
    tiny = [(compiled("int main(int, char**)", "main"), 1e-3, 1e7), (compiled("f"), 100.0, 1.0)]
    assert refine(ranked(tiny)).small == ()
    fortran = [(compiled("snap"), 1e-3, 1e7), (compiled("f"), 100.0, 1.0)]
    assert refine(ranked(fortran)).small == ()


def test_callers_of_libraries_are_kept():
    assert kept([SMALL, MPI], [-1, 0, 1]) == {"small(int)": Kept.CALLS_LIBRARIES}
    assert kept([SMALL, MPI], [-1, 0, 0]) == {"small(int)": None}
    user = (Region("kernel", paradigm="user"), 0.1, 10.0)
    assert kept([SMALL, user], [-1, 0, 1]) == {"small(int)": None}


def test_the_only_function_that_grows_is_kept():
    growing = (compiled("f"), 1e-4 * P, 1e7)
    assert kept([growing]) == {"f": Kept.GROWTH}
    assert kept([growing, (compiled("g"), 1e-4 * P, 1.0)]) == {"f": None}


def test_two_functions_that_grow_are_not_excluded_together():
    growing = [(compiled(name), 1e-4 * P, 1e7) for name in "fg"]
    assert kept(growing) == {"f": Kept.GROWTH, "g": Kept.GROWTH}


def test_names_that_a_filter_cannot_tell_apart_are_kept():
    same = [(compiled("f"), 0.1, 1e7), (compiled("f", "_Zf"), 60.0, 10.0)]
    assert kept(same) == {"f": Kept.NAME}
    odd = compiled("f\x1b[31m")
    assert kept([(odd, 0.1, 1e7)]) == {odd.name: Kept.NAME}


def test_a_linker_name_tells_functions_of_one_name_apart():
    same = [(compiled("f", "_Zf1"), 0.1, 1e7), (compiled("f", "_Zf2"), 60.0, 10.0)]
    found = refine(ranked([MAIN, *same]))
    assert [each.filter_name for each in found.excluded] == ["_Zf1"]


def test_visits_on_the_process_with_most_are_an_upper_limit():
    found = refine(ranked([MAIN, SMALL], imbalance=[1.0, 1.0]))
    assert found.most_visits == found.visits


def test_repetitions_are_averaged():
    found = refine(ranked([MAIN, SMALL], repetitions=3))
    assert found.visits == 1e6 + 2


def test_a_dearer_visit_makes_more_functions_small():
    functions = [MAIN, (compiled("f"), 0.9, 5e4)]
    assert refine(ranked(functions), VisitCost(1e-7, 1e-6)).small == ()
    assert len(refine(ranked(functions), VisitCost(1e-7, 1e-5)).excluded) == 1


def test_a_costly_call_path_outside_the_models_is_coarse():
    odd = 40.0 * np.array([1.0, 3.0, 0.5, 4.0, 0.7])
    found = refine(ranked([MAIN, (compiled("solve"), odd, 1.0), SMALL], repetitions=3))
    rows = {path.row: path for path in found.coarse}
    assert set(rows) == {2}
    assert rows[2].calls_nothing
    assert Coarse.WIDE in rows[2].reasons


def test_call_paths_that_are_well_described_or_cheap_are_not_coarse():
    odd = np.array([1.0, 3.0, 0.5, 4.0, 0.7])
    assert refine(ranked([MAIN, (compiled("f"), 0.1 * odd, 1.0)])).coarse == ()
    assert refine(ranked([MAIN, (compiled("f"), 40 + 2 * P, 1.0)])).coarse == ()
    assert refine(ranked([MAIN, (MPI[0], 40 * odd, 1.0)])).coarse == ()


def test_a_call_path_whose_callees_take_most_is_not_coarse():
    odd = 40.0 * np.array([1.0, 3.0, 0.5, 4.0, 0.7])
    functions = [MAIN, (compiled("f"), odd, 1.0), (compiled("g"), 10 * odd, 1.0)]
    found = refine(ranked(functions, [-1, 0, 1]))
    assert [path.row for path in found.coarse] == [3]


def test_other_metrics_infinity_and_missing_visits_are_refused():
    with pytest.raises(UsageError, match="infinity"):
        refine(ranked([MAIN, SMALL], target=np.inf))
    with pytest.raises(UsageError, match="cannot cost"):
        refine(ranked([MAIN, SMALL]), VisitCost(0.0, 1.0))
    found = ranked([MAIN, SMALL])
    alone = replace(
        found.fitted.experiment, columns={"time": program([MAIN, SMALL]).columns["time"]}
    )
    with pytest.raises(DataError, match="no visits"):
        refine(rank(replace(found.fitted, experiment=alone), found.target))
    with pytest.raises(UsageError, match="ranking"):
        refine(fitted({"main": P}))
