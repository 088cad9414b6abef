from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.runs import refuse_several_programs
from synthetic import call_tree

LULESH = call_tree(["main", "main/Lagrange", "main/Lagrange/CalcForce", "main/MPI_Init"])
SNAP = call_tree(["snap", "snap/sweep", "snap/sweep/octsweep", "snap/MPI_Init"])
POINTS = (2.0, 4.0, 8.0, 16.0, 32.0)
P = np.array(POINTS)


@dataclass
class Profile:
    tree: CallTree
    name: str = "x"
    metadata: dict[str, str] = field(default_factory=lambda: {"program": "app"})


def test_similar_trees_of_several_builds_are_one_program():
    runs = [Profile(LULESH), Profile(call_tree(["main", "main/Lagrange", "main/Other"]))]
    refuse_several_programs(runs)


def test_several_programs_are_refused_with_their_names_counts_and_how_to_choose():
    snap = Profile(SNAP, "snap.p4", {"program": "snap"})
    with pytest.raises(UsageError, match="2 programs: app in 2 runs") as caught:
        refuse_several_programs([Profile(LULESH), snap, Profile(LULESH)])
    assert "snap in 1 run (first snap.p4)" in caught.value.message
    assert "--where program=app" in caught.value.hint


def test_programs_of_one_name_cannot_be_chosen_by_it():
    with pytest.raises(UsageError, match="2 programs") as caught:
        refuse_several_programs([Profile(LULESH), Profile(SNAP)])
    assert "--where" not in caught.value.hint


def test_common_library_functions_make_no_common_program():
    only_mpi = ["MPI_Init", "MPI_Send", "MPI_Recv", "MPI_Finalize"]
    first = call_tree(["a", *[f"a/{name}" for name in only_mpi]])
    second = call_tree(["b", *[f"b/{name}" for name in only_mpi]])
    with pytest.raises(UsageError):
        refuse_several_programs([Profile(first), Profile(second)])
