"""Metrics that a user defines by formulas, in an experiment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.metric_formulas import parse_definitions
from callpath_modeler.profile.pruning import merge_into_callers, with_defined_metrics
from callpath_modeler.profile.schema import Metric
from callpath_modeler.tui.choices import metric_total
from synthetic import experiment

NAN = float("nan")
WORK = {"main": [2, 2], "main/f": [6, 12], "main/g": [NAN, 4]}
CYCLES = {"main": [4, 4], "main/f": [2, 4], "main/g": [NAN, 0]}


def counted():
    """Return two runs with the metrics work, cycles and a maximum."""
    made = experiment(WORK, (2, 4), metric=Metric("work", "1"))
    cycles = experiment(CYCLES, (2, 4), metric=Metric("cycles", "1")).columns
    least = Metric("most", "1", additive=False)
    others = {"most": MetricValues(least, made.values(), made.columns["work"].total)}
    known = {"work": "", "cycles": "", "most": "", "joules": "", "broken": "no number"}
    return replace(made, columns={**made.columns, **cycles, **others}, declared=known)


def defining(*texts, of=None, **options):
    return with_defined_metrics(of or counted(), parse_definitions(texts), **options)


def test_an_inclusive_ratio_is_the_ratio_of_sums():
    made = defining("ipc = work / cycles")
    own, whole = made.values("ipc"), made.values("ipc", inclusive=True)
    assert own[:2].tolist() == [[0.5, 0.5], [3.0, 3.0]]
    assert np.isnan(own[2]).all()  # it did not occur, or took no cycles
    # (2 + 6) / (4 + 2) and (2 + 12 + 4) / (4 + 4 + 0), not the sums of ratios.
    assert whole[0] == pytest.approx([8 / 6, 18 / 8])
    assert made.metric("ipc") == Metric("ipc", "1", "work / cycles", additive=False)
    assert made.columns["ipc"].total == pytest.approx([8 / 6, 18 / 8])


def test_a_linear_metric_adds_up():
    made = defining("spare = 2 * work - cycles")
    assert made.metric("spare") == Metric("spare", "1", "2 * work - cycles")
    assert made.values("spare")[:2].tolist() == [[0, 0], [10, 20]]
    assert made.values("spare", inclusive=True)[0].tolist() == [10, 28]


def test_an_operand_that_did_not_occur_costs_nothing_in_a_sum():
    of = counted()
    cycles = of.columns["cycles"].exclusive.copy()
    cycles[1, 0] = NAN
    columns = {**of.columns, "cycles": replace(of.columns["cycles"], exclusive=cycles)}
    made = defining("both = work + cycles", of=replace(of, columns=columns))
    assert made.values("both")[1, 0] == 6
    assert np.isnan(made.values("both")[2, 0])


def test_a_definition_uses_earlier_ones():
    made = defining("both = work + cycles", "part = work / both", "percent = part * 100")
    assert made.values("percent", inclusive=True)[0] == pytest.approx([800 / 14, 1800 / 26])
    assert made.formula("percent").parts == ("work", "both")


def test_a_ratio_of_a_metric_that_does_not_add_up_has_no_sums():
    made = defining("share = work / most", "of_it = share * work")
    assert made.formula("share") is None
    assert made.formula("of_it") is None
    same = made.values("share", inclusive=True)
    assert np.array_equal(same, made.values("share"), equal_nan=True)


def test_folded_call_paths_are_summed_before_they_are_divided():
    before = defining("ipc = work / cycles")
    folded = with_defined_metrics(merge_into_callers(before, ["main/f"]))
    assert folded.values("ipc")[0] == pytest.approx([8 / 6, 14 / 8])


def test_a_metric_whose_operands_were_not_read_has_no_values():
    made = defining("power = joules / work", "more = power * 2")
    assert "power" not in made.columns
    assert "more" not in made.columns
    assert [each.name for each in made.definitions] == ["power", "more"]


@pytest.mark.parametrize(
    ("texts", "message", "hint"),
    [
        (["work = cycles"], "'work' is a measured metric", "another name"),
        (["joules = work"], "'joules' is a measured metric", "another name"),
        (["ipc = wrok / cycles"], "no metric 'wrok'", "did you mean 'work'?"),
        (["a = work", "b = aa / work"], "no metric 'aa'", "metrics: work, cycles"),
    ],
)
def test_clashes_and_unknown_names_are_refused(texts, message, hint):
    with pytest.raises(UsageError) as caught:
        defining(*texts)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_definitions_of_a_configuration_file_may_not_apply():
    made = defining("a = flops / work", "b = a * 2", "c = work * 2", if_possible=True)
    assert [each.name for each in made.definitions] == ["c"]


def test_one_name_has_one_definition():
    made = defining("ipc = work / cycles")
    assert defining("ipc = work / cycles", of=made).definitions == made.definitions
    with pytest.raises(UsageError, match="was defined as 'work / cycles' before"):
        defining("ipc = cycles / work", of=made)


def test_the_total_of_a_ratio_is_that_of_sums():
    made = defining("ipc = work / cycles")
    assert metric_total(lambda _: made, "ipc", {"p": 4.0}, "mean").total == 18 / 8
    assert metric_total(lambda _: defining("share = work / most"), "share", {}, "mean") == (
        "share does not add up over call paths"
    )


def test_an_experiment_without_definitions_stays_the_same():
    of = counted()
    assert with_defined_metrics(of) is of
