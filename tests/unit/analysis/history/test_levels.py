"""Levels of call paths have no noise that all call paths of a run share."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.history.judgement import relative_levels


def measured(seed=1, shape=(40, 6, 3, 3), own=0.01, shared=0.1):
    """Return values [call paths, records, scales, repetitions]."""
    random = np.random.default_rng(seed)
    size = random.uniform(0.1, 10, (shape[0], 1, shape[2], 1))
    noise = own * random.standard_normal(shape) + shared * random.standard_normal(shape[1:])
    return size * np.exp(noise)


def test_common_noise_is_taken_out():
    levels = relative_levels(measured()).own
    assert levels[:, 1:].std() < 0.02
    assert levels[:, 0] == pytest.approx(0)


def test_a_step_of_all_call_paths_is_common_and_one_of_a_single_call_path_is_not():
    values = measured(shared=0.01)
    values[:, 3:] *= 1.2
    values[5, 4:] *= 1.5
    levels = relative_levels(values)
    assert levels.common[3:].mean() - levels.common[:3].mean() == pytest.approx(0.182, abs=0.02)
    assert levels.own[5, 4:].mean() == pytest.approx(np.log(1.5), abs=0.03)
    assert np.abs(levels.own[6:]).max() < 0.1


def test_levels_of_a_record_do_not_depend_on_later_ones():
    values = measured()
    whole, begun = relative_levels(values), relative_levels(values[:, :4])
    assert np.array_equal(whole.own[:, :4], begun.own)
    assert np.array_equal(whole.common[:4], begun.common)


def test_missing_values_stay_missing_and_a_late_call_path_starts_at_zero():
    values = measured()
    values[3, :4] = np.nan
    values[:, 2, 2] = np.nan
    values[7, 5, :, 0] = np.nan
    levels = relative_levels(values)
    assert np.isnan(levels.own[3, :4]).all()
    assert levels.own[3, 4] == pytest.approx(0)
    assert np.isnan(levels.own[:, 2, 2]).all()
    assert np.isnan(levels.common[2, 2])
    assert np.isfinite(levels.own[7, 5]).all()


def test_one_odd_repetition_of_three_changes_no_level():
    values, odd = measured(), measured()
    odd[4, 3, 1, 2] *= 50
    expected, found = relative_levels(values).own, relative_levels(odd).own
    assert np.abs(found - expected).max() < 0.05


def test_the_error_is_that_of_repetitions_without_the_common_noise():
    levels = relative_levels(measured(own=0.03, shared=0.1))
    assert np.sqrt(levels.error[:, 1:].mean()) == pytest.approx(0.03 / np.sqrt(3), rel=0.2)
    assert (relative_levels(measured(shape=(10, 3, 2, 1))).error == 0).all()


def test_the_noise_is_that_of_the_control_and_the_rest_is_the_program():
    values, control = measured(shared=0.1), np.arange(40) < 10
    values[:, 2:] *= 0.8
    values[~control, 3:] *= 1.2
    levels = relative_levels(values, control)
    assert np.abs(levels.own[control]).max() < 0.05
    assert levels.own[~control, 3:].mean() == pytest.approx(np.log(1.2), abs=0.01)
    assert levels.program[3:] == pytest.approx(np.log(1.2), abs=0.03)
    assert levels.program[:3] == pytest.approx(0, abs=0.03)
    assert levels.common[3:].mean() == pytest.approx(np.log(0.8), abs=0.1)


def test_records_with_too_few_values_of_the_control_have_no_level():
    values, control = measured(), np.arange(40) < 4
    values[2:4, [0, 3]] = np.nan
    levels = relative_levels(values, control)
    for lacking in (levels.own, levels.program[None], levels.common[None]):
        assert np.isnan(lacking[:, [0, 3]]).all()
    known = [1, 2, 4, 5]
    assert np.isfinite(levels.own[:, known]).all()
    assert levels.own[4:, known].std() < 0.03
    values[:2] = np.nan
    assert np.isnan(relative_levels(values, control).own).all()


def test_the_error_of_the_program_is_that_of_its_factor_and_of_the_control():
    few, many = (
        np.mean([
            relative_levels(measured(seed, own=0.05), np.arange(40) < k).program_error[1:].mean()
            for seed in range(6)
        ])
        for k in (4, 20)
    )  # fmt: skip
    assert few > 2 * many > 0
