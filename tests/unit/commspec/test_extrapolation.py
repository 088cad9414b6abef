from __future__ import annotations

import pytest

from communication import recorded, traced
from cpmodel_commspec.checking import differences
from cpmodel_commspec.scalable.expansion import expanded, scale_at
from cpmodel_commspec.scalable.extrapolation import extrapolate
from patterns import PATTERNS


def recorded_at(folder, pattern, processes):
    path = traced(
        folder / str(processes), processes, pattern.program, pattern.communicators(processes)
    )
    return recorded(path)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_program_is_exact_at_numbers_of_processes_that_were_not_traced(name, tmp_path):
    pattern = PATTERNS[name]
    told = extrapolate([recorded_at(tmp_path, pattern, p) for p in pattern.traces]).told
    for processes in pattern.targets:
        there = expanded(told, scale_at(told, processes))
        assert list(differences(there, recorded_at(tmp_path, pattern, processes))) == []
