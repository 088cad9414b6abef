from __future__ import annotations

import pytest

from cpmodel_commspec.checking import differences
from cpmodel_commspec.scalable.expansion import expanded, scale_at
from patterns import PATTERNS, extrapolated, recorded_at


@pytest.mark.parametrize("name", PATTERNS)
def test_a_program_is_exact_at_numbers_of_processes_that_were_not_traced(name, tmp_path):
    pattern = PATTERNS[name]
    told = extrapolated(name)
    for processes in pattern.targets:
        there = expanded(told, scale_at(told, processes))
        assert list(differences(there, recorded_at(tmp_path, pattern, processes))) == []
