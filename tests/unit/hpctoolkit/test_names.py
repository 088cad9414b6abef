from __future__ import annotations

import pytest

from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import PROGRAM, Region
from callpath_modeler.profile.unify import unify
from cells import cells
from cpmodel_hpctoolkit.names import function_region, match_key


@cells(
    ("name", "key"),
    [
        ("poll [libc-2.28.so]", "poll [libc.so]"),
        ("PMPI_Finalize [libmpi.so.12.1.1]", "PMPI_Finalize [libmpi.so]"),
        ("f [libstdc++.so.6]", "f [libstdc++.so]"),
        ("work(int) [clone ._omp_fn.7]", "work(int)"),
        ("work.isra.3.constprop.11", "work"),
        ("work.part.0.cold", "work"),
        ("work.isra.0 [libx-1.2.so.3]", "work [libx.so]"),
    ],
)
def test_what_changes_with_every_build_is_no_part_of_the_key(name, key):
    assert match_key(name) == key


@cells(
    "name",
    [
        "std::vector<int, std::allocator<int> >::push_back(int&&)",
        "f(double)",
        "operator<(A const&, B const&)",
        "module_mp_solve_",
        "memcpy@@GLIBC_2.14",
        "a.b.c",
        "f.isradar",
        "[vmlinux]",
        "lambda [with T = int]",
    ],
)
def test_templates_overloads_and_dots_stay_in_the_key(name):
    assert match_key(name) == name


def test_runs_of_two_builds_share_their_call_paths():
    def run(*names):
        regions = [function_region(name) for name in names]
        return CallTree.from_parents([-1, *range(len(names) - 1)], range(len(names)), regions)

    one = run("main", "solve<int>(int) [clone .isra.1]", "poll [libc-2.28.so]")
    two = run("main", "solve<int>(int)", "poll [libc-2.31.so]")
    united = unify([one, two])
    assert len(united.tree) == 3
    assert united.tree.path(2) == "main/solve<int>(int) [clone .isra.1]/poll [libc-2.28.so]"
    assert unify([two]).tree.ids() == united.tree.ids()


def test_overloads_stay_apart():
    regions = [function_region(name) for name in ("main", "f(int)", "f(double)", "f<int>(int)")]
    tree = CallTree.from_parents([-1, 0, 0, 0], range(4), regions)
    assert len(unify([tree]).tree) == 4


@pytest.mark.parametrize("root", ["main thread", "<program root>"])
def test_the_roots_of_both_versions_have_one_name(root):
    assert function_region(root) == Region(PROGRAM, role="artificial")


@cells(
    ("name", "module", "paradigm"),
    [
        ("MPI_Send", "/bin/app", "mpi"),
        ("PMPI_Wait", "", "mpi"),
        ("MPIDI_CH3I_Progress", "/usr/lib/libmpich.so.12", "mpi"),
        ("ucp_worker_progress", "/usr/lib64/libucp.so.0", "mpi"),
        ("GOMP_parallel [libgomp.so.1]", "/usr/lib64/libgomp.so.1", "openmp"),
        ("do_wait", "/usr/lib64/libomp.so", "openmp"),
        ("pthread_create", "", "pthread"),
        ("cudaMalloc", "/bin/app", "cuda"),
        ("hpcrun_malloc", "", "measurement"),
        ("compute", "/bin/app", ""),
        ("curl_multiply", "/bin/app", ""),
        ("mpirical", "/bin/app", ""),
    ],
)
def test_libraries_are_told_from_the_program(name, module, paradigm):
    assert function_region(name, module).paradigm == paradigm
