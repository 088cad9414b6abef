"""Answers as sentences: cost at the target, uncertainty, cause, and extrapolation factor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.answer import By
from callpath_modeler.analysis.excess_work import NOTICEABLE
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.program_costs import KNOWN
from callpath_modeler.analysis.step_time import step_counts, step_time
from callpath_modeler.analysis.uncertain import MARKS, WITHIN, deviation, is_unknown
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.readers.paths import is_rate
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.losses_text import comparison_sentence
from callpath_modeler.report.model_formulas import from_text, model_range_texts
from callpath_modeler.units import (
    counted,
    factor_text,
    parameter_value,
    percent,
    quantity,
    rough_value,
    setting_text,
    signed_percent,
)

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer, Ranking
    from callpath_modeler.analysis.scales import ScalingOptimum
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.modeling import Centre

_CLOCK = re.compile(
    r"(cpu|real|wall|run|elapsed|total)?.{0,3}(time|clock|seconds|duration)", re.IGNORECASE
)
"""Names of metrics that measure the time of a program, with any clock."""
STATISTICS = {
    "mean": "mean",
    "median": "median",
    "trimmed": "trimmed mean",
    "midrange": "midrange",
    "first-quartile": "first quartile",
    "min": "minimum",
}
"""Names of statistics over repetitions in sentences."""
_SCATTERS = 0.005
"""Relative scatter of steps above which a sentence states the band of a single one."""
_LOWERED_MUCH = 0.1
"""Part of the sum of all models by which predictions are lowered before a ranking says so."""
_WORTH_A_WORD = 0.02
"""Share of the cost; the first line reports larger shares without a model."""


def at_text(fitted: Fitted, value: float) -> str:
    """Return the name of a point of all parameters: ``p = 4096, n = 1e+06``."""
    return "an unknown scale" if fitted.has_unknown_scale else setting_text(fitted.at(value))


def scaling_words(experiment: Experiment, *, why: bool = True) -> str:
    """Return the kind of scaling and its reason; the options that state an unclear kind."""
    if experiment.scaling is Scaling.UNCLEAR:
        reason = f"{experiment.scaling_reason}; " * why
        return f"scaling unclear ({reason}choose --scaling weak or --scaling strong)"
    return f"{experiment.scaling} scaling" + f" ({experiment.scaling_reason})" * why


def left_out(experiment: Experiment) -> str:
    """Return the exclusions of an experiment, as an addition to its description."""
    return "".join(f" · {each}" for each in omissions(experiment))


def omissions(experiment: Experiment) -> list[str]:
    """Return one text for each exclusion that the user asked for."""
    asked = (each.message for each in experiment.findings if each.code == "CPM139")
    return [f"excluded: {message}" for message in asked]


def headline(ranking: Ranking, *, style: TextStyle) -> str:
    """Return the sentence that answers a ranking: the cost, its uncertainty, and its cause."""
    fitted, unit = ranking.fitted, ranking.fitted.metric.unit
    if not len(ranking.order):
        return f"At {at_text(fitted, ranking.target)}: nothing could be predicted."
    if ranking.total[0] == 0 == ranking.total_at_largest:
        return f"{fitted.metric.name} is zero in every run."
    row = culprit(ranking)
    name = short_name(fitted.experiment.tree.names(row)[-1])
    is_alone = len(fitted.experiment.tree) == 1
    if np.isinf(ranking.target):
        (growth,) = model_range_texts(fitted, np.array([row]), pretty=not style.ascii_only)
        of_program = "" if _is_clock(fitted.metric) else f"{fitted.metric.name} of "
        grows = f"{of_program}{fitted.experiment.name} is" if is_alone else f"{name} grows fastest:"
        return f"As {fitted.parameter} grows without end, {grows} {growth}."
    if ranking.is_comparison:
        excess = float(ranking.excess.exclusive[row])
        lost = percent(excess)
        said = [f"{cost_text(ranking, style=style)}.", *step_notes(ranking, style=style)]
        answer = f"{' '.join(said)} {comparison_sentence(ranking, style=style)}"
        if is_alone or (ranking.by is By.LOSS and excess < NOTICEABLE):
            return answer
        most = "loses most" if ranking.by is By.LOSS else "is first, and loses"
        return f"{answer} {name} {most}: {lost} exclusive."
    if ranking.by is By.ENERGY and ranking.energy is not None:
        takes = takes_text(ranking.energy, row, style=style)
        answer = f"{cost_text(ranking, style=style)}. Of the energy, {name} {takes}."
    elif fitted.metric.additive:
        first = _alone if is_alone else _first
        answer = f"{cost_text(ranking, style=style)}. {first(ranking, row, style=style)}".strip()
    else:
        of_row = (ranking.value[row], ranking.low[row], ranking.high[row])
        amount, growth = amount_text(*of_row, unit, style=style), ""
        if not fitted.is_measured_only:
            is_known = not (fitted.modelled[row] and is_unknown(int(ranking.trust[row])))
            known = growth_of(fitted, row, pretty=not style.ascii_only)
            growth = f", and {known if is_known else 'its growth is not known'}"
        is_good = is_rate(fitted.metric.name)
        worst = f"{fitted.metric.name} of {name} is" if is_good else f"{name} is worst,"
        worst = f"{fitted.metric.name} is" if is_alone else worst
        answer = f"At {target_text(ranking)}: {worst} {amount}{growth}."
    notes = [
        *step_notes(ranking, style=style),
        *known_notes(ranking),
        *model_notes(ranking, style=style),
        *missing_notes(ranking),
    ]
    return " ".join([answer, *notes])


def _first(ranking: Ranking, row: int, *, style: TextStyle) -> str:
    """Return the sentence about the call path that comes first."""
    name = short_name(ranking.fitted.experiment.tree.names(row)[-1])
    return f"{name} {takes_text(ranking, row, style=style)}."


def _alone(ranking: Ranking, row: int, *, style: TextStyle) -> str:
    """Return the sentence about the only call path, which is the program."""
    if ranking.fitted.is_measured_only:
        return ""
    if ranking.fitted.modelled[row] and is_unknown(int(ranking.call_paths[0].trust[row])):
        return "Its growth is not known."
    return f"It {growth_of(ranking.fitted, row, pretty=not style.ascii_only)}."


def takes_text(ranking: Ranking, row: int, *, style: TextStyle) -> str:
    """Return the share of a call path and its growth as a predicate: ``takes 73 % and is O(p)``."""
    takes = f"takes {part_text(ranking, row)}"
    if ranking.fitted.is_measured_only:
        return takes
    growth = growth_of(ranking.fitted, row, pretty=not style.ascii_only)
    no_share = ranking.is_unknown
    marks = int(ranking.call_paths[0].trust[row])
    no_growth = ranking.fitted.modelled[row] and is_unknown(marks)
    if no_share and no_growth:
        return "comes first, but its share and its growth are uncertain"
    if no_share:
        return f"comes first, but its share is not known. It {growth}"
    return f"{takes}, and its growth is not known" if no_growth else f"{takes} and {growth}"


def step_notes(answer: Answer, *, style: TextStyle) -> list[str]:
    """Return the time of one step of a training run, and its samples per second if known."""
    counts = step_counts(answer.fitted.experiment)
    if len(counts) > 1:
        numbers = ", ".join(map(str, counts[:5]))
        return [f"Runs have different numbers of steps ({numbers}): select the same with --steps."]
    step = step_time(answer)
    if step is None:
        return []
    amount, known = style.amount(step.value, "s"), f"{step.steps} steps in a run"
    if not np.isnan(step.low):
        ends = style.interval(step.low, step.high, "s")
        amount = ends if answer.is_unknown else amount
        known += "" if answer.is_unknown else f"; {ends}"
    said = [f"One step takes {amount} ({known})"]
    if step.samples_per_second > 0 and not answer.is_unknown:
        rate = f"{rough_value(step.samples_per_second)} samples/s"
        cost = f"{style.amount(step.seconds_per_sample, 's')} of a process for each sample"
        said.append(f"which is {rate}, and {cost}")
    notes = [", ".join(said) + "."]
    if step.one_high > 0 and step.scatter > _SCATTERS:
        ends = style.interval(step.one_low, step.one_high, "s")
        scatter = percent(step.scatter)
        notes.append(f"Steps of one run scatter by {scatter}, so a single step may take {ends}.")
    return notes


def known_notes(answer: Answer) -> list[str]:
    """Return how far predictions can be trusted, if that at the target cannot."""
    fitted = answer.fitted
    if not answer.is_unknown or not fitted.metric.additive:
        return []
    farthest, reach = answer.farthest_known, percent(WITHIN[MARKS - KNOWN] - 1)
    if farthest is not None:
        at = setting_text({fitted.parameter: farthest})
        return [f"Up to {at}, the band is within {reach} of the prediction."]
    if answer.target > 2 * fitted.points[-1]:
        at = setting_text({fitted.parameter: float(fitted.points[-1])})
        return [f"Beyond {at}, no band is within {reach} of its prediction."]
    return []


def cost_text(answer: Answer, *, style: TextStyle) -> str:
    """Return the run time of the program at a target, or its cost in another metric.

    ``lulesh will run 325 s at p = 1000 (8 × the largest run; 95 % band 120 … 800 s)``
    """
    fitted, run_time = answer.fitted, answer.run_time
    metric, name = fitted.metric, fitted.experiment.name
    value, low, high = run_time.total if run_time else answer.total
    runs = run_time.repetitions if run_time else answer.repetitions
    known = [_of_runs(answer, runs, style=style)] if runs else known_by(answer)
    known += [] if run_time else [_stand_in(fitted.experiment)] * metric.is_time
    amount = style.amount(value, metric.unit)
    if not runs and not np.isnan(low):
        ends = style.interval(low, high, metric.unit)
        band = f"{percent(fitted.models.confidence)} band"
        known.append(band if answer.is_unknown else f"{band} {ends}")
        amount = ends if answer.is_unknown else amount
    if _is_clock(metric):
        said = f"{name} {'ran' if runs else 'will run'} {amount}"
    else:
        said = f"{name}: {metric.name} = {amount}"
    return f"{said} at {at_text(fitted, answer.target)} ({'; '.join(known)})"


def _is_clock(metric: Metric) -> bool:
    """Return whether a metric is the time that a program runs, with any clock."""
    is_beside = metric.is_on_gpu_streams or metric.is_of_all_threads
    return metric.is_time and not is_beside and _CLOCK.match(metric.name) is not None


def _of_runs(answer: Answer, runs: int, *, style: TextStyle) -> str:
    """Return the statistic of a measured total with the totals of the runs, and their number."""
    fitted, known = answer.fitted, answer.measured
    if answer.run_time is not None:
        known = Measured(answer.run_time.fitted)
    point, said = known.point(answer.target), measured_by(fitted.models.aggregate, runs)
    if point is None or runs < 2 or not fitted.metric.additive:
        return said
    totals = known.totals(point)
    ends = style.interval(float(totals.min()), float(totals.max()), fitted.metric.unit)
    return f"{said}, {ends}"


def measured_by(centre: Centre, *runs: int) -> str:
    """Return the statistic of measured values, and the numbers of runs: ``mean of 5 runs``."""
    of_runs = f"{' and '.join(map(str, runs))} {'run' if runs == (1,) else 'runs'}"
    return f"measured, {of_runs}" if max(runs) < 2 else f"{STATISTICS[centre]} of {of_runs}"


def _stand_in(experiment: Experiment) -> str:
    """Return the name of the figure that replaces a run time that was not recorded."""
    match experiment.reduction:
        case Reduction.MEAN:
            return "mean over processes"
        case Reduction.GIVEN:
            return "sum of the recorded times"
        case _:
            return f"sum of call paths, {experiment.reduction.words}"


def sum_notes(answer: Answer) -> list[str]:
    """Return notes on the imbalance, and on models that predict more than the run time."""
    run_time, reduction = answer.run_time, answer.fitted.experiment.reduction
    notes = []
    if reduction is Reduction.MEAN and answer.tree.in_groups.any():
        notes.append(
            "Values of a group are its part of the mean over all processes, so that of a single"
            " process is divided by p. For its own time and growth, use --ranks instead."
        )
    if run_time is None:
        return notes
    if answer.has_imbalance and reduction is Reduction.SUM and answer.fitted.parameter == "p":
        what = "imbalance: the time of the slowest process times p, less the sum of all call paths."
        notes.append(f"{what} Listed values are sums over processes.")
    elif answer.has_imbalance:
        what = "imbalance: the run time less the sum of all call paths."
        notes.append(f"{what} {_why_sums_differ(answer)}")
    # Of call paths that are lowered by less, `show` says so.
    is_much = answer.predicted_total < answer.sum_of_models * (1 - _LOWERED_MUCH)
    if not answer.repetitions and is_much:
        said = quantity(answer.sum_of_models, answer.fitted.metric.unit)
        notes.append(
            f"The models of the call paths add up to {said}, more than the run time. Uncertain"
            " predictions are lowered until they add up to it: measure a larger scale."
        )
    return notes


def is_lowered(by_models: float, predicted: float) -> bool:
    """Return whether a prediction is below its models by enough to be worth a word."""
    return bool(predicted < by_models * (1 - _WORTH_A_WORD))


def _why_sums_differ(answer: Answer) -> str:
    """Return the reason why call paths do not add up to the run time, as a sentence."""
    reduction, is_more = answer.fitted.experiment.reduction, answer.imbalance < 0
    if reduction is Reduction.MAX and is_more:
        slowest = "different processes are slowest in different call paths"
        return f"Each is the maximum over processes, and {slowest}."
    if not answer.repetitions and is_more:
        return "Their models disagree with the model of the run time: measure a larger scale."
    each = (
        "one value per run" if reduction is Reduction.GIVEN else f"the {reduction} over processes"
    )
    return f"Each is {each}, and the run time is the time of the slowest process."


def turning_notes(answer: Answer, *, style: TextStyle) -> list[str]:
    """Return a note on the fastest scale, if that is smaller than the target."""
    turning, fitted = answer.turning, answer.fitted
    if turning is None:
        return []
    where = fastest_at(fitted, turning)
    where += ", the smallest run" if turning.at == fitted.points[0] else ""
    amount = amount_text(*turning.total, fitted.metric.unit, style=style)
    first, last = (_scale(fitted, turning, value) for value in (turning.first, turning.last))
    as_fast = f"{fitted.parameter} = {first} … {last} may be as fast, and " * (first != last)
    slower = "make it slower" if turning.is_slower else "may make it slower"
    # Inside the data, it could be mistaken for a measurement.
    fastest = "Fastest in the models" if turning.at <= fitted.points[-1] else "Fastest"
    return [f"{fastest} at {where}: {amount}; {as_fast}more processes {slower}."]


def fastest_at(fitted: Fitted, optimum: ScalingOptimum) -> str:
    """Return the scale at which a program is fastest: ``about p = 420``."""
    where = f"{fitted.parameter} = {_scale(fitted, optimum, optimum.at)}"
    return where if optimum.at == fitted.points[0] else f"about {where}"


def _scale(fitted: Fitted, optimum: ScalingOptimum, value: float) -> str:
    """Return a scale as text: in full if it was given, else rounded."""
    is_given = value in (float(fitted.points[0]), optimum.until)
    return parameter_value(value) if is_given else rough_value(value)


def growth_of(fitted: Fitted, row: int, *, pretty: bool) -> str:
    """Return the growth of a call path, as its row states it, as a predicate: ``is O(p)``."""
    if not fitted.modelled[row]:
        return "has no model"
    (growth,) = model_range_texts(fitted, np.array([row]), pretty=pretty)
    return f"is {growth}{from_text(fitted, row)}"


def known_by(answer: Answer) -> list[str]:
    """Return the basis of the cost at a target: the number of runs, or the extrapolation factor."""
    if answer.repetitions:
        return [measured_by(answer.fitted.models.aggregate, answer.repetitions)]
    return [beyond(answer.fitted, answer.target), *_runs(answer.measured, answer.target)]


def target_text(answer: Answer) -> str:
    """Return the target and the basis of its cost: ``p = 125 (mean of 3 runs)``."""
    return f"{at_text(answer.fitted, answer.target)} ({'; '.join(known_by(answer))})"


def _runs(measured: Measured, target: float) -> list[str]:
    """Return the costs of the runs at a target whose costs are predicted."""
    metric, point = measured.fitted.metric, measured.point(target)
    if point is None or not metric.additive:
        return []
    took = quantity(float(np.nansum(measured.fitted.measured[:, point])), metric.unit)
    return [f"{counted(measured.repetitions(point), 'run')} there: {took}"]


def model_notes(answer: Answer, *, style: TextStyle) -> list[str]:
    """Return notes that compare the models with the measured total at the target."""
    fitted, said, total = answer.fitted, answer.predicted_total, answer.total[0]
    if fitted.is_measured_only:
        return []
    if answer.run_time is not None and answer.run_time.repetitions:
        value = style.amount(answer.predicted_run_time, fitted.metric.unit)
        return [f"The model predicts {value} (error {off_by(answer)})."]
    if not answer.repetitions or not np.isfinite(said):
        return []
    value = style.amount(said, fitted.metric.unit)
    known = answer.modelled_total / total if total > 0 else 1.0
    part = f"; they cover {percent(known)} of the cost" * (1 - known >= _WORTH_A_WORD)
    return [f"The models predict {value} (error {off_by(answer)}){part}."]


def off_by(answer: Answer) -> str:
    """Return the error of the run time's model, or of the models in total: ``+13 %``."""
    run_time = answer.run_time
    if run_time is not None and run_time.repetitions:
        return _off(answer.predicted_run_time, run_time.total[0])
    return _off(answer.predicted_total, answer.modelled_total)


def _off(predicted: float, measured: float) -> str:
    return signed_percent(float(deviation(np.array([predicted]), np.array([measured]))[0]))


def missing_notes(ranking: Ranking) -> list[str]:
    """Return a note on the share of the cost without a prediction, if it is worth mentioning."""
    if not ranking.fitted.metric.additive or ranking.unmodelled_share < _WORTH_A_WORD:
        return []
    if ranking.repetitions or ranking.run_time is not None:
        return []
    missing = percent(ranking.unmodelled_share)
    return [f"Call paths without a model are not included: {missing} of today's cost."]


def part_text(ranking: Ranking, row: int) -> str:
    """Return the exclusive cost of a call path as a share of the program, ``73 %``.

    It is an amount where models of call paths predict more than the program is predicted to take.
    """
    share = float(ranking.own_share[row])
    if share <= 1:
        return percent(share)
    value = float(ranking.call_paths[0].value[row])
    return quantity(value, ranking.fitted.metric.unit)


def culprit(ranking: Ranking) -> int:
    """Return the row to name first.

    In a ranking of inclusive values, it is the call path with the largest exclusive value in the
    subtree of the first row.
    """
    worst = int(ranking.order[0])
    if np.isinf(ranking.target):
        return int(ranking.leader[worst])
    if not ranking.inclusive:
        return worst
    end = int(ranking.fitted.experiment.tree.end[worst])
    of_energy = ranking.energy if ranking.by is By.ENERGY else None
    shares = (of_energy or ranking).own_share[worst:end]
    return worst + int(np.argmax(np.nan_to_num(shares, nan=-1.0)))


def beyond(fitted: Fitted, target: float) -> str:
    """Return the position of a target relative to the data: ``8 × the largest run``."""
    ranges = {name: fitted.measured_range(name) for name in fitted.at(target)}
    outside = {
        name: value / ranges[name][1]
        for name, value in fitted.at(target).items()
        if not ranges[name][0] <= value <= ranges[name][1]
    }
    if not outside:
        alone = fitted.never_combined(target)
        return "no single run is as large in every parameter" if alone else "inside the data"
    if any(times <= 1 for times in outside.values()):
        return "below the smallest run"
    if not fitted.held:
        return f"{factor_text(outside[fitted.parameter])} × the largest run"
    each = (f"{name} {factor_text(times)} ×" for name, times in outside.items())
    return f"{', '.join(each)} the largest run"
