"""Answers to questions of the command line: values, targets and rankings of sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from callpath_modeler.analysis.measured_only import (
    has_too_few_scales,
    measured_scale,
    refuse_prediction,
)
from callpath_modeler.analysis.rank import By, Ranking, rank
from callpath_modeler.analysis.repetitions import repetition_findings
from callpath_modeler.analysis.scale_pairs import with_pairs
from callpath_modeler.analysis.verification import Verification, verify
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import CallpathModelerError, DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.loading import LoadOptions, load, load_groups
from callpath_modeler.pipeline import (
    FitOptions,
    aggregate_of,
    fit,
    measured_of,
    models_of,
    models_of_loaded,
)
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.readers.parallel_reading import Progress
from callpath_modeler.readers.run_filter import parse_conditions
from callpath_modeler.target_query import (
    PredictionQuery,
    Target,
    checked_target,
    findings_at,
    parse_pairs,
    parse_target,
    slice_at,
)


def ranking_of(
    sources: Sequence[str | Path],
    question: PredictionQuery,
    *,
    by: str | None = None,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
    default_factor: float | None = None,
) -> tuple[Ranking, tuple[Finding, ...]]:
    """Return a ranking of sources, and all findings.

    The order `by` is the loss by default if two measured scales are compared, else the value. Other
    parameters and the errors are those of `values_and_target_of`.
    """
    fitted, value = values_and_target_of(
        sources,
        question,
        load_options=load_options,
        fit_options=fit_options,
        progress=progress,
        default_factor=default_factor,
    )
    return ranked(fitted, value, by, question)


def ranked(
    fitted: Fitted, target: float, by: str | None, question: PredictionQuery
) -> tuple[Ranking, tuple[Finding, ...]]:
    """Return a ranking at a target, and all findings.

    The order `by` and the errors are those of `ranking_of`.
    """
    if by in {By.GROWTH, By.SHARE}:
        refuse_prediction(fitted, f"--by {by}")
    if by == By.LOSS and fitted.is_measured_only and not fitted.compares(target):
        raise UsageError(
            f"--by {by}: there is no smaller scale to compare with",
            hint="omit the option, or give profiles of two scales",
        )
    usual = By.LOSS if fitted.compares(target) else By.VALUE
    order = usual if by is None else By(by)
    ranking = rank(
        fitted, target, order, inclusive=question.inclusive, predicted=question.predicted
    )
    return ranking, findings_at(fitted, target)


def findings_of(
    experiment: Experiment,
    sources: Sequence[str | Path],
    question: PredictionQuery,
    load_options: LoadOptions,
    fit_options: FitOptions,
) -> tuple[Finding, ...]:
    """Return all findings about runs, models and a target, each once.

    If the runs do not allow models, the findings are about runs. Without a target, the target is
    the largest scale.

    Parameters
    ----------
    experiment : result of `load`
    sources : its sources
    question : target and metric, in the words of the command line
    load_options, fit_options : options of loading and of making models
    """
    found = [*experiment.findings, *repetition_findings(experiment)]
    target, fit_options = _wished(question, fit_options)
    metric = question.metric
    try:
        models = models_of_loaded(experiment, sources, metric, load_options, fit_options)
    except DataError:
        return tuple(dict.fromkeys(found))
    return tuple(dict.fromkeys([*found, *findings_at(*_at_target(models, target, 1.0))]))


def rankings_of(
    sources: Sequence[str | Path],
    question: PredictionQuery,
    group_by: str | None,
    *,
    by: str | None = None,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
) -> dict[str, tuple[Ranking, tuple[Finding, ...]]]:
    """Return one ranking for the runs of each value of a metadata key or a parameter.

    Parameters
    ----------
    sources : sources, as for `load`
    question : the question, in the words of the command line
    group_by : key or parameter; None = all runs are one group
    by : order of the ranking; None = as for `ranking_of`
    load_options, fit_options : options of loading and of making models
    progress : called with the number of files that are read, and of all files

    Returns
    -------
    dict
        Ranking and findings by value.

    Raises
    ------
    CallpathModelerError
        As `values_and_target_of`; the message names the group.
    """
    if group_by is None:
        one = ranking_of(
            sources,
            question,
            by=by,
            load_options=load_options,
            fit_options=fit_options,
            progress=progress,
        )
        return {"": one}
    load_options = (load_options or LoadOptions()).of_metric(question.metric)
    groups = load_groups(sources, group_by, load_options, progress)
    found = {}
    for name, experiment in groups.items():
        try:
            fitted, value = values_of_loaded(
                experiment, (), question, load_options, fit_options or FitOptions(), None
            )
            found[name] = ranked(fitted, value, by, question)
        except CallpathModelerError as error:
            raise type(error)(f"{group_by}={name}: {error.message}", hint=error.hint) from error
    return found


def values_and_target_of(
    sources: Sequence[str | Path],
    question: PredictionQuery,
    *,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
    default_factor: float | None = None,
) -> tuple[Fitted, float]:
    """Return the models of sources, or measured values alone, and the target.

    There are measured values alone if the scales are too few for models, or if the question names
    pairs of scales and no target. The target is then a measured scale, by default the largest one,
    or that of the last pair.
    Otherwise it is as for `models_and_target_of`, whose parameters and errors these are.
    """
    load_options = (load_options or LoadOptions()).of_metric(question.metric)
    experiment = load(sources, load_options, progress)
    return values_of_loaded(
        experiment, sources, question, load_options, fit_options or FitOptions(), default_factor
    )


def values_of_loaded(
    experiment: Experiment,
    sources: Sequence[str | Path],
    question: PredictionQuery,
    load_options: LoadOptions,
    fit_options: FitOptions,
    default_factor: float | None,
) -> tuple[Fitted, float]:
    """Return the values and the target of an experiment that `load` returned.

    It is as `values_and_target_of`, with `sources` () if no store has the experiment.
    """
    target, fit_options = _wished(question, fit_options)
    pairs, parameter = parse_pairs(question.pairs), fit_options.parameter
    too_few = has_too_few_scales(experiment, parameter)
    if (pairs or too_few) and not question.is_target_required:
        target = Target(chosen=target.chosen)
    has_target = target.value is not None or parameter in target.named
    if not too_few and (has_target or not pairs):
        _check_is_named(target, default_factor)
        fitted = models_of_loaded(experiment, sources, question.metric, load_options, fit_options)
        fitted, scale = _at_target(fitted, target, default_factor)
        fitted = _expecting(fitted, question, load_options, fit_options)
        return (with_pairs(fitted, pairs) if pairs else fitted), scale
    if pairs and has_target:
        raise UsageError(
            "--pair names the target already", hint="omit --target, because there are no models"
        )
    found = measured_of(
        experiment,
        question.metric,
        replace(
            fit_options,
            aggregate=aggregate_of(experiment, sources, question.metric, load_options, fit_options),
        ),
        held={name: value for name, value in target.named.items() if name != parameter},
        pairs=pairs,
    )
    if question.predicted:
        refuse_prediction(found, "--predicted")
    value = target.named.get(found.parameter, target.value)
    if value is not None and value not in found.points:
        _raise_too_few(experiment, question.metric, fit_options)
    scale = measured_scale(found, value)
    return _expecting(found, question, load_options, fit_options), scale


def _expecting(
    fitted: Fitted, question: PredictionQuery, load_options: LoadOptions, fit_options: FitOptions
) -> Fitted:
    """Return models with the expected costs of a question, if it has any."""
    if question.expect is None:
        return fitted
    # Few questions expect costs, and expectations take a tenth of the start of a command.
    from callpath_modeler.excess_expectation import with_expected_costs

    return with_expected_costs(
        fitted, question.expect, load_options, fit_options, is_required=not question.has_verdicts
    )


def _raise_too_few(experiment: Experiment, metric: str | None, options: FitOptions) -> None:
    """Raise the `DataError` of too few scales; its hint says how to see values instead."""
    try:
        fit(experiment, metric, options)
    except DataError as error:
        hint = f"{error.hint}; omit the target to see measured values"
        raise DataError(error.message, hint=hint) from error


def verification_of(ranking: Ranking, path: Path, load_options: LoadOptions) -> Verification:
    """Return the measurements of other runs at the target of a ranking.

    The other runs are chosen by the target, not by conditions on its parameter.

    Raises
    ------
    CallpathModelerError
        As `load` and `verify`.
    """
    fitted = ranking.fitted
    conditions = parse_conditions(load_options.where) if load_options.where else []
    kept = ",".join(each.as_text() for each in conditions if each.name != fitted.parameter)
    options = replace(load_options.of_another(), where=kept).of_metric(fitted.metric.name)
    return verify(ranking, load([path], options))


def models_and_target_of(
    sources: Sequence[str | Path],
    question: PredictionQuery,
    *,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
    default_factor: float | None = None,
) -> tuple[Fitted, float]:
    """Return the models of sources, and the target.

    Parameters
    ----------
    sources : sources, as for `load`
    question : the question, in the words of the command line
    load_options, fit_options : options of loading and of making models
    progress : called with the number of files that are read, and of all files
    default_factor : default target as a multiple of the largest scale; None = no default

    Raises
    ------
    UsageError
        If there is no target, or if it is invalid.
    """
    load_options = (load_options or LoadOptions()).of_metric(question.metric)
    target, fit_options = _wished(question, fit_options or FitOptions())
    _check_is_named(target, default_factor)
    fitted = models_of(sources, question.metric, load_options, fit_options, progress)
    return _at_target(fitted, target, default_factor)


def _wished(question: PredictionQuery, fit_options: FitOptions) -> tuple[Target, FitOptions]:
    """Return the target of a question, and the options of models along its parameter."""
    target = parse_target(question.target, question.at, fit_options.parameter)
    if target.parameter is not None:
        fit_options = replace(fit_options, parameter=target.parameter)
    return target, fit_options


def _check_is_named(target: Target, default_factor: float | None) -> None:
    """Raise `UsageError` if there is neither a target nor a default."""
    if target == Target() and default_factor is None:
        raise UsageError("no target scale", hint="give --target 262144, or --target inf for growth")


def _at_target(
    fitted: Fitted, target: Target, default_factor: float | None
) -> tuple[Fitted, float]:
    fitted = slice_at(fitted, target)
    value = target.named.get(fitted.parameter, target.value)
    if value is None:
        value = float(fitted.points[-1]) * (default_factor or 1.0)
    return fitted, checked_target(fitted, value)
