from __future__ import annotations

import pytest

from cpmodel_guidelines.checks import Between, FunctionAtSetting, Sizes

KNOWN = [
    FunctionAtSetting(0, (4.0, 8.0)),
    FunctionAtSetting(0, (4.0, 128.0)),
    FunctionAtSetting(0, (4.0, 0.0)),
    FunctionAtSetting(1, (4.0, 8.0)),
]


@pytest.fixture
def sizes():
    return Sizes.of(KNOWN, 1)


def test_a_known_size_lies_between_itself(sizes):
    assert sizes.between(KNOWN[0]) == Between(KNOWN[0], KNOWN[0], 0.0)


def test_another_size_lies_between_its_neighbours_by_its_ratio_to_them(sizes):
    assert sizes.between(FunctionAtSetting(0, (4.0, 32.0))) == Between(KNOWN[0], KNOWN[1], 0.5)
    assert sizes.between(FunctionAtSetting(0, (4.0, 2.0))) == Between(KNOWN[2], KNOWN[0], 0.5)


@pytest.mark.parametrize(
    "place",
    [
        FunctionAtSetting(0, (4.0, 129.0)),
        FunctionAtSetting(1, (4.0, 7.0)),
        FunctionAtSetting(0, (8.0, 8.0)),
        FunctionAtSetting(2, (4.0, 8.0)),
    ],
)
def test_beyond_the_sizes_of_that_function_at_that_setting_nothing_is_known(sizes, place):
    assert sizes.between(place) is None


def test_without_sizes_only_settings_that_were_measured_are_known():
    sizes = Sizes.of([FunctionAtSetting(0, (4.0,))], None)
    assert sizes.between(FunctionAtSetting(0, (4.0,))) == Between(
        FunctionAtSetting(0, (4.0,)), FunctionAtSetting(0, (4.0,)), 0.0
    )
    assert sizes.between(FunctionAtSetting(0, (8.0,))) is None


def test_the_least_size_is_that_of_the_setting(sizes):
    assert sizes.least(FunctionAtSetting(0, (4.0, 99.0))) == 0.0
    assert sizes.least(FunctionAtSetting(0, (8.0, 99.0))) is None
