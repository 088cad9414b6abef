"""Studies: runs and their models, which are read and made when a question needs them, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callpath_modeler import store
from callpath_modeler.analysis.answer import By, Ranking, rank
from callpath_modeler.analysis.data_quality import repetition_findings
from callpath_modeler.analysis.excess_work import compares_scales
from callpath_modeler.analysis.measured_only import (
    has_too_few_scales,
    measured_scale,
    measured_values,
    refuse_prediction,
)
from callpath_modeler.analysis.scale_costs import energy_metric, require_energy
from callpath_modeler.analysis.scales import Pair, with_pairs
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError, parse_enum
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Centre
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.studies.loading import (
    LoadOptions,
    defining,
    load,
    load_both,
    load_parts,
    parts_of,
)
from callpath_modeler.studies.pipeline import FitOptions, fit, fit_settings
from callpath_modeler.studies.question import (
    Question,
    Target,
    checked_target,
    findings_at,
    parse_pairs,
    parse_target,
    slice_at,
)
from callpath_modeler.support.front_ends import HtmlReprMixin

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.days import ScatterOfDays
    from callpath_modeler.analysis.difference import Differences
    from callpath_modeler.analysis.ensemble import Losses
    from callpath_modeler.analysis.expectations.check_result import Check
    from callpath_modeler.analysis.expectations.growth_check import Baseline, BaselineSettings
    from callpath_modeler.analysis.expectations.judge import Procedure
    from callpath_modeler.analysis.pair_forecast import PairInputs
    from callpath_modeler.analysis.verification import Verification
    from callpath_modeler.arrays import IntArray
    from callpath_modeler.modeling import SearchSpace
    from callpath_modeler.readers.profile_runs import Progress
    from callpath_modeler.studies.comparison import Compared
    from callpath_modeler.studies.isoefficiency import Isoefficiency
    from callpath_modeler.studies.process_profile import ProcessProfile
    from callpath_modeler.studies.program_efficiency import EfficiencyAnswer

Sources = str | Path | Sequence[str | Path]


class Study(HtmlReprMixin):
    """Runs and their models, which answer questions.

    Runs are read and models are made when a question needs them, once. Models of a store are not
    made again. Every method takes a `Question`, or its fields by name.

    Parameters
    ----------
    sources : profiles, directories, globs, manifests, or one store; or an experiment
    load_options, fit_options : options of reading and of making models; None = the defaults
    experiment : the runs, if they were read from the sources already
    progress : called with the number of files that are read, and of all files

    Examples
    --------
    >>> import callpath_modeler as cpm
    >>> study = cpm.Study("sample_profiles/stencil")
    >>> study.ranking(target=1024)
    <Ranking stencil at p = 1024: 25 call paths by value>
    >>> study.ranking(target=1024, inclusive=True).order[:3]   # with the same models
    array([ 0,  1, 12])
    """

    def __init__(
        self,
        sources: Sources | Experiment,
        load_options: LoadOptions | None = None,
        fit_options: FitOptions | None = None,
        *,
        experiment: Experiment | None = None,
        progress: Progress | None = None,
    ) -> None:
        if isinstance(sources, Experiment):
            experiment, sources = sources, ()
        self.sources = (sources,) if isinstance(sources, str | Path) else tuple(sources)
        self.load_options = load_options or LoadOptions()
        self.fit_options = fit_options or FitOptions()
        self.progress = progress
        self._models: dict[tuple[str, FitOptions], Fitted] = {}
        self._experiments: dict[tuple[str, ...] | None, Experiment] = {}
        if experiment is not None:
            known = defining(experiment, self.load_options)
            self._experiments[self.load_options.read.metrics] = known

    def __repr__(self) -> str:
        return f"<Study of {', '.join(map(str, self.sources)) or self.runs().name}>"

    def reading(self, **changes: Any) -> Study:
        """Return the study of the same sources that is read with other options.

        Parameters
        ----------
        changes : fields of `ReadOptions`, such as ``requirements=True``
        """
        options = replace(self.load_options, read=replace(self.load_options.read, **changes))
        return Study(self.sources, options, self.fit_options, progress=self.progress)

    def experiment(self, metric: str | None = None) -> Experiment:
        """Return the selected runs of one case; None = with the run time.

        Raises
        ------
        UsageError
            If the runs are of several cases: see `cases`.
        UsageError, InputError, DataError
            As `load`.
        """
        found = self.runs(metric)
        found.refuse_several_cases()
        return found

    def runs(self, metric: str | None = None) -> Experiment:
        """Return the selected runs, which may be of several cases; None = with the run time.

        Raises
        ------
        UsageError, InputError, DataError
            As `load`.
        """
        known, options = self._experiments, self.load_options.of_metric(metric)
        if options.read.metrics not in known:
            for each in known.values():
                if metric in each.columns or not self.sources:
                    return each
            known[options.read.metrics] = load(self.sources, options, self.progress)
        return known[options.read.metrics]

    def models(self, metric: str | None = None, parameter: str | None = None) -> Fitted:
        """Return the models of a metric, one for every call path.

        Parameters
        ----------
        metric : name of the metric; None = the run time
        parameter : parameter of the models; None = that of the options

        Raises
        ------
        UsageError, InputError, DataError
            As `load` and `fit`.
        """
        experiment, options = self.experiment(metric), self._fitting(parameter)
        name = experiment.metric(metric).name
        if (name, options) not in self._models:
            found = self._stored(experiment, name, options)
            found = found.holding({}, options.parameter) if found else None
            found = found or fit(experiment, name, options)
            if found.formula is not None:
                parts = (self.models(each, parameter) for each in found.formula.parts)
                found = replace(found, parts=tuple(parts))
            self._models[name, options] = found
        return self._models[name, options]

    def centre(self, metric: str | None = None, parameter: str | None = None) -> Centre:
        """Return the centre of repetitions that `models` use, without making them."""
        experiment, options = self.experiment(metric), self._fitting(parameter)
        found = self._stored(experiment, experiment.metric(metric).name, options)
        return options.aggregate if found is None else found.models.aggregate

    def _fitting(self, parameter: str | None) -> FitOptions:
        options = self.fit_options
        return options if parameter is None else replace(options, parameter=parameter)

    def _stored(self, experiment: Experiment, metric: str, options: FitOptions) -> Fitted | None:
        """Return the models of the store that have these options, or None."""
        if len(self.sources) != 1 or self.load_options.where or self.load_options.case:
            return None
        if not store.is_stored(path := Path(self.sources[0])):
            return None
        settings = None if options == FitOptions() else fit_settings(experiment, options)
        return store.read_models(path, experiment, metric, settings)

    def at(self, question: Question | None = None, **asked: Any) -> tuple[Fitted, float]:
        """Return the models that a question needs, or measured values alone, and the target.

        There are measured values alone if the scales are too few for models, or if the question
        names pairs of scales and no target. The target is then a measured scale: by default the
        largest one, or that of the last pair.

        Parameters
        ----------
        question : the question
        asked : fields of the question, such as ``target=1024``

        Raises
        ------
        UsageError, InputError, DataError
            As `load` and `fit`, or if the target is invalid.
        """
        question = replace(question or Question(), **asked)
        target, parameter = self._target(question)
        pairs = parse_pairs(question.pairs)
        experiment = self.experiment(question.metric)
        too_few = has_too_few_scales(experiment, parameter)
        if (pairs or too_few) and not question.is_target_required:
            target = Target(chosen=target.chosen)
        has_target = target.value is not None or parameter in target.named
        if not too_few and (has_target or not pairs):
            fitted, scale = self._predicted(question, target, parameter)
            fitted = self._expecting(fitted, question, parameter)
            return (with_pairs(fitted, pairs) if pairs else fitted), scale
        if pairs and has_target:
            raise UsageError(
                "--pair names the target already", hint="omit --target, because there are no models"
            )
        held = {name: value for name, value in target.named.items() if name != parameter}
        found = self.measured(question.metric, parameter, held, pairs)
        if question.predicted:
            refuse_prediction(found, "--predicted")
        value = target.named.get(found.parameter, target.value)
        if value is not None and value not in found.points:
            self._raise_too_few(question.metric, parameter)
        scale = measured_scale(found, value)
        return self._expecting(found, question, parameter), scale

    def predicted(self, question: Question | None = None, **asked: Any) -> tuple[Fitted, float]:
        """Return the models that a question needs, and the target, as `at`, but never measured."""
        question = replace(question or Question(), **asked)
        return self._predicted(question, *self._target(question))

    def _target(self, question: Question) -> tuple[Target, str | None]:
        """Return the target of a question, and the parameter of the models."""
        target = question.scale(self.fit_options.parameter)
        return target, target.parameter or self.fit_options.parameter

    def _predicted(
        self, question: Question, target: Target, parameter: str | None
    ) -> tuple[Fitted, float]:
        if target == Target() and question.further is None:
            hint = "give --target 262144, or --target inf for growth"
            raise UsageError("no target scale", hint=hint)
        fitted = slice_at(self.models(question.metric, parameter), target)
        value = target.named.get(fitted.parameter, target.value)
        if value is None:
            value = float(fitted.points[-1]) * (question.further or 1.0)
        return fitted, checked_target(fitted, value)

    def measured(
        self,
        metric: str | None = None,
        parameter: str | None = None,
        held: Mapping[str, float] | None = None,
        pairs: Sequence[Pair] = (),
    ) -> Fitted:
        """Return measured values without models, as `measured_values`."""
        experiment, options = self.experiment(metric), self._fitting(parameter)
        return measured_values(
            experiment,
            metric,
            parameter,
            settings=fit_settings(experiment, options),
            held=held,
            pairs=pairs,
            aggregate=self.centre(metric, parameter),
            confidence=options.confidence,
        )

    def _raise_too_few(self, metric: str | None, parameter: str | None) -> None:
        """Raise the `DataError` of too few scales; its hint says how to see values instead."""
        try:
            fit(self.experiment(metric), metric, self._fitting(parameter))
        except DataError as error:
            hint = f"{error.hint}; omit the target to see measured values"
            raise DataError(error.message, hint=hint) from error

    def _expecting(self, fitted: Fitted, question: Question, parameter: str | None) -> Fitted:
        """Return models with the expected costs of a question, if it has any."""
        if question.expect is None:
            return fitted
        # Few questions expect costs, and expectations take a tenth of the start of a command.
        from callpath_modeler.studies.expectation_check import with_expected_costs

        return with_expected_costs(
            fitted,
            question.expect,
            lambda source: self._another(source, self._fitting(parameter)),
            is_required=not question.has_verdicts,
        )

    def _another(self, source: str | Path, fit_options: FitOptions) -> Study:
        """Return the study of another experiment, in which patterns may select nothing."""
        return Study([source], self.load_options.of_another(), fit_options, progress=None)

    def ranking(self, question: Question | None = None, **asked: Any) -> Ranking:
        """Return the call paths in the order of their cost at a target.

        Parameters
        ----------
        question : the question
        asked : fields of the question, such as ``target=1024``

        Raises
        ------
        UsageError, InputError, DataError
            As `at`, or if the order needs models or two scales.
        """
        question = replace(question or Question(), **asked)
        study = self
        if question.by == By.ENERGY and self.sources and not self.load_options.read.requirements:
            study = self.reading(requirements=True)
        return study.ranked(*study.at(question), question)

    def ranked(self, fitted: Fitted, target: float, question: Question) -> Ranking:
        """Return the ranking of a question from the models and the target that `at` returned."""
        by = question.by
        if by in {By.GROWTH, By.SHARE}:
            refuse_prediction(fitted, f"--by {by}")
        if by == By.LOSS and fitted.is_measured_only and not fitted.compares(target):
            raise UsageError(
                f"--by {by}: there is no smaller scale to compare with",
                hint="omit the option, or give profiles of two scales",
            )
        usual = By.LOSS if compares_scales(fitted, target) else By.VALUE
        return rank(
            fitted,
            target,
            usual if by is None else parse_enum(By, by, "order"),
            inclusive=question.inclusive,
            predicted=question.predicted,
            energy=self._energy(fitted, target, question),
        )

    def _energy(self, fitted: Fitted, target: float, question: Question) -> Fitted | None:
        """Return the models of the energy for a ranking by time or by energy; None = no energy."""
        asked = replace(question, by=None, pairs=(), expect=None)
        if question.by == By.ENERGY:
            asked = replace(asked, metric=require_energy(fitted.experiment).name)
            return self._beside(fitted, asked)
        metric = energy_metric(fitted.experiment)
        if metric is None or not fitted.metric.can_be_run_time or target == float("inf"):
            return None
        # Runs without energy may leave too few scales, and the time is ranked all the same.
        with suppress(DataError):
            return self._beside(fitted, replace(asked, metric=metric.name))
        return None

    def _beside(self, fitted: Fitted, question: Question) -> Fitted:
        """Return the models of another metric along the parameter of models."""
        _, parameter = self._target(question)
        if fitted.is_measured_only:
            return self.measured(question.metric, parameter, fitted.said)
        return slice_at(self.models(question.metric, parameter), self._target(question)[0])

    def cases(self, metric: str | None = None) -> dict[str, Study]:
        """Return one study for each case of the runs, by name.

        Cases differ in words, such as inputs and algorithms. Runs of one case have the name "".

        Raises
        ------
        UsageError, InputError, DataError
            As `load`.

        Examples
        --------
        >>> import callpath_modeler as cpm
        >>> [*cpm.Study("sample_profiles/stencil").cases()]
        ['']
        """
        return {case: study for (_, case), study in self.parts(metric=metric).items()}

    def parts(
        self, group_by: str | None = None, metric: str | None = None
    ) -> dict[tuple[str, str], Study]:
        """Return one study for each group of runs, and for each case in it.

        Parameters
        ----------
        group_by : key of the metadata, or a parameter; None = all runs are one group
        metric : metric that is read; None = the run time

        Returns
        -------
        dict
            Studies by the value of the group and the name of the case, as `load_parts`.

        Raises
        ------
        UsageError, InputError, DataError
            As `load_parts`.
        """
        options = self.load_options.of_metric(metric)
        known = self._experiments.get(options.read.metrics)
        if known is not None or not self.sources:
            found = parts_of(known or self.runs(metric), group_by)
        else:
            found = load_parts(self.sources, options, group_by, self.progress)
        if [*found] == [("", "")]:
            self._experiments[options.read.metrics] = found["", ""]
            return {("", ""): self}
        return {
            name: Study(part, self.load_options, self.fit_options) for name, part in found.items()
        }

    def findings(self, question: Question | None = None, **asked: Any) -> tuple[Finding, ...]:
        """Return all findings about runs, models and a target, each once.

        If the runs do not allow models, the findings are about runs.
        """
        question = replace(question or Question(), **asked)
        experiment = self.experiment(question.metric)
        found = [*experiment.findings, *repetition_findings(experiment)]
        # The runs may not allow models.
        with suppress(DataError):
            found += findings_at(*self.predicted(question))
        return tuple(dict.fromkeys(found))

    def verification(self, ranking: Ranking, path: str | Path) -> Verification:
        """Return the measurements of other runs at the target of a ranking.

        The other runs are chosen by the target, not by conditions on its parameter.

        Raises
        ------
        CallpathModelerError
            As `load` and `verify`.
        """
        from callpath_modeler.analysis.verification import verify
        from callpath_modeler.readers.run_cases import parse_conditions

        fitted, where = ranking.fitted, self.load_options.where
        conditions = parse_conditions(where) if where else []
        kept = ",".join(each.as_text() for each in conditions if each.name != fitted.parameter)
        other = self._another(path, self.fit_options)
        other.load_options = replace(other.load_options, where=kept)
        return verify(ranking, other.experiment(fitted.metric.name))

    def difference(
        self,
        base: Sources | Experiment,
        question: Question | None = None,
        *,
        days: ScatterOfDays | None = None,
        **asked: Any,
    ) -> Compared:
        """Return the comparison of an earlier experiment with this one.

        Without a target, an experiment with too few scales for models is compared as measured. A
        target that both experiments ran is compared as measured, unless the question
        asks for predictions.

        Parameters
        ----------
        base : sources of the earlier experiment, or the experiment
        question : the question
        days : scatter from day to day, as `history.day_to_day` learns it; None = not known
        asked : fields of the question, such as ``target=1024``

        Raises
        ------
        UsageError, InputError, DataError
            As `load`, `fit` and `compare`.
        """
        from callpath_modeler.analysis.pairing import common_line
        from callpath_modeler.studies.comparison import (
            at_scales,
            compared_at,
            differences_of,
            has_enough_points,
        )

        question = replace(question or Question(), **asked)
        target, parameter = self._target(question)
        scale = target.value if target.parameter is None else target.named[target.parameter]
        if scale == float("inf"):
            raise UsageError(
                "--target inf: there is no difference at infinity",
                hint="give a finite target; growth before and after is always compared",
            )
        held = {name: value for name, value in target.named.items() if name != parameter}
        options, metric = self.load_options.of_metric(question.metric), question.metric
        sources: Sequence[str | Path] = ()
        if isinstance(base, Experiment):
            both = base, self.experiment(metric)
        else:
            sources = [base] if isinstance(base, str | Path) else base
            both = load_both(sources, self.sources, options, self.progress)
        before, after, parameter = at_scales(*both, parameter)
        line = common_line(before, after, parameter, held)
        fitting = replace(self.fit_options, parameter=parameter)

        def side(experiment: Experiment, of: Sequence[str | Path]) -> Fitted | Experiment:
            if scale is None and not has_enough_points(experiment, metric, line, fitting):
                return experiment
            found = Study(of, self.load_options, fitting, experiment=experiment).models(metric)
            if scale is not None:
                checked_target(found, scale)
            return found

        found = differences_of(
            side(before, sources), side(after, self.sources), metric, held, fitting, days
        )
        return compared_at(found, scale, inclusive=question.inclusive, predicted=question.predicted)

    def differences(self, base: str | Path, new: Fitted) -> Differences:
        """Return the differences of an earlier experiment and models of this one, at any target.

        An experiment with too few scales for models is compared as measured.

        Parameters
        ----------
        base : source of the earlier experiment, which is held at the same values
        new : models or measured values of this experiment

        Raises
        ------
        UsageError, InputError, DataError
            As `load`, `fit` and `compare`.
        """
        from callpath_modeler.analysis.pairing import common_line
        from callpath_modeler.studies.comparison import at_scales, differences_of, has_enough_points

        metric, other = new.metric.name, self._another(base, self.fit_options)
        parameter = None if new.has_unknown_scale else new.parameter
        before, after, parameter = at_scales(other.experiment(metric), new.experiment, parameter)
        line = common_line(before, after, parameter, new.held)
        old: Fitted | Experiment = before
        has_models = not new.is_measured_only
        if has_models and has_enough_points(before, metric, line, self.fit_options):
            old = other.models(metric)
        # Two scales that are compared have no models.
        fitting = replace(self.fit_options, parameter=parameter)
        return differences_of(old, new if has_models else after, metric, new.held, fitting)

    def pair(self, base: str | Path, new: Fitted, *, predicted: bool = False) -> PairInputs:
        """Return an earlier experiment and models of this one, for views.

        Parameters
        ----------
        base : source of the earlier experiment
        new : models or measured values of this experiment
        predicted : use predictions even if both ran a target

        Raises
        ------
        UsageError, InputError, DataError
            As `differences`; a view needs a metric that adds up.
        """
        from callpath_modeler.analysis.pair_forecast import PairInputs

        found = self.differences(base, new)
        before, after = (side.experiment.name for side in found.pair.sides)
        if before == after:
            before, after = str(base), " ".join(map(str, self.sources))
        return PairInputs(new, found, (before, after), predicted=predicted)

    def losses(
        self, question: Question | None = None, *, base: float | None = None, **asked: Any
    ) -> Losses:
        """Return the excess work between measured scales.

        Parameters
        ----------
        question : metric, pairs and expected costs; ``at`` has values of other parameters than
            that of the scales
        base : measured scale that all larger ones are compared with; None = the smallest one
        asked : fields of the question, such as ``pairs=[(8, 128)]``

        Raises
        ------
        UsageError, InputError, DataError
            As `load` and `losses`.
        """
        from callpath_modeler.analysis.ensemble import losses
        from callpath_modeler.studies.expectation_check import ideal_between

        question = replace(question or Question(), **asked)
        held = parse_target(None, question.at).named
        experiment, centre = self.experiment(question.metric), self.centre(question.metric)
        options = replace(self.fit_options, aggregate=centre)
        return losses(
            experiment,
            question.metric,
            options.parameter,
            held=held,
            pair=parse_pairs(question.pairs) or None,
            base=base,
            aggregate=centre,
            ideal=ideal_between(
                question.expect,
                experiment,
                question.metric,
                lambda source: self._another(source, options),
                options,
                held,
            ),
        )

    def losses_at(self, found: Losses, target: float | str) -> tuple[Losses, Answer]:
        """Return losses with those between their base and a target, and the prediction there.

        Raises
        ------
        UsageError, DataError
            As `fit`, or if the target is invalid.
        """
        from callpath_modeler.analysis.further_excess import with_target

        scale = parse_target(target).value
        assert scale is not None, "a target is a scale"
        fitted = self.models(found.metric.name, found.parameter)
        fitted = fitted.holding(found.line.held, found.parameter)
        return with_target(found, fitted, checked_target(fitted, scale))

    def check(
        self,
        path: str | Path,
        question: Question | None = None,
        *,
        procedure: Procedure = "mixture",
        **asked: Any,
    ) -> Check:
        """Return the results of the expectations of a file.

        Parameters
        ----------
        path : the expectation file
        question : a target that replaces the file's for its parameters, and the metric of
            expectations that name none
        procedure : ``"published"`` compares the one growth that the method of the publication
            chooses
        asked : fields of the question, such as ``target=1024``

        Raises
        ------
        InputError
            If the file is invalid; before any run is read where that is possible.
        UsageError, DataError
            As `load` and `fit`.
        """
        from callpath_modeler.analysis.expectations.clauses import read
        from callpath_modeler.studies import expectation_check

        question = replace(question or Question(), **asked)
        target, chosen = self._target(question)
        expectations = read(Path(path))
        parameter = chosen or expectations.parameter
        metrics = [each.metric or question.metric for each in expectations.expectations]
        # The first metric need not be the run time if no expectation is about it.
        first = question.metric if None in metrics or not metrics else metrics[0]
        study = self.reading(metrics=expectation_check.metrics_to_read(expectations, metrics))
        try:
            models = slice_at(study.models(first, parameter), target)
        except (UsageError, DataError) as cause:
            expectation_check.blame(expectations, cause, None if chosen else parameter)
            raise
        at = target.named or ({} if target.value is None else {models.parameter: target.value})

        def of_metric(name: str, space: SearchSpace | None) -> Fitted:
            like = study
            if space is not None:
                options, runs = replace(study.fit_options, space=space), study.experiment(name)
                like = Study(study.sources, study.load_options, options, experiment=runs)
            return like.models(name, models.parameter).holding(models.said, models.parameter)

        return expectation_check.judged(models, expectations, at, of_metric, procedure)

    def for_expectations(self, path: Path | None, metric: str | None) -> Study:
        """Return the study that reads all metrics that the expectations of a file need.

        Parameters
        ----------
        path : the expectation file; None = there is none, so the study is this one
        metric : metric of expectations that name none; None = the run time

        Raises
        ------
        InputError
            If the file is invalid.
        """
        if path is None:
            return self
        from callpath_modeler.analysis.expectations.clauses import read
        from callpath_modeler.studies import expectation_check

        expectations = read(path)
        metrics = [metric, *(each.metric or metric for each in expectations.expectations)]
        return self.reading(metrics=expectation_check.metrics_to_read(expectations, metrics))

    def baseline(
        self, question: Question | None = None, settings: BaselineSettings | None = None
    ) -> Baseline:
        """Return expectations that the models meet; the default target is the largest scale.

        Raises
        ------
        UsageError, InputError, DataError
            As `load`, `fit` and `baseline`, or if the target is infinite.
        """
        from callpath_modeler.analysis.expectations.growth_check import BaselineSettings, baseline

        question = question or Question()
        target, parameter = self._target(question)
        if float("inf") in (target.value, *target.named.values()):
            raise UsageError("--target inf: values have no bound there", hint="a finite scale")
        fitted = slice_at(self.models(question.metric, parameter), target)
        at = target.named.get(fitted.parameter, target.value)
        return baseline(fitted, replace(settings or BaselineSettings(), target=at))

    def efficiency(self, question: Question | None = None, **asked: Any) -> EfficiencyAnswer:
        """Return the factors of efficiency of profiles, at the measured scales and at a target.

        Parameters
        ----------
        question : the time and the target; without a target, there are only measured scales
        asked : fields of the question, such as ``target=1024``

        Returns
        -------
        EfficiencyAnswer
            The factors of the program and of its costliest subtrees.

        Raises
        ------
        UsageError
            If a source is a store, or if an option is not valid.
        DataError
            If no run has values of single threads, or if the runs do not allow the models of a
            target.
        InputError
            If no file can be read.
        """
        from callpath_modeler.studies.program_efficiency import (
            efficiency_of,
            parts_of,
            reading_parts,
        )

        for source in self.sources:
            if store.is_stored(Path(source)):
                raise UsageError(
                    f"{source}: a store has no values of single processes",
                    hint="give the profiles themselves",
                )
        question = replace(question or Question(), **asked)
        options = self.load_options.of_metric(question.metric)
        read = load(self.sources, reading_parts(options, question.metric), self.progress)
        read.refuse_several_cases()
        return efficiency_of(
            parts_of(read, options), question, self.fit_options, whole=not options.ignore
        )

    def isoefficiency(
        self, efficiency: float, question: Question | None = None, **asked: Any
    ) -> Isoefficiency:
        """Return the problem sizes that keep a parallel efficiency at each scale.

        Parameters
        ----------
        efficiency : the efficiency to keep, between 0 and 1
        question : the time, and the largest scale. Its ``at`` has values of further parameters; a
            value of the problem size asks for the largest scale of that size
        asked : fields of the question, such as ``target=1024``

        Raises
        ------
        UsageError, InputError, DataError
            As `load` and `fit`, or if the runs have no scale or no problem size.
        """
        from callpath_modeler.studies.isoefficiency import isoefficiency_of

        question = replace(question or Question(), **asked)
        parameter = self.fit_options.parameter
        fitted = self.models(question.metric)
        return isoefficiency_of(fitted, efficiency, question.scale(parameter), parameter)

    def processes(
        self, rows: Sequence[int] | IntArray, question: Question | None = None, **asked: Any
    ) -> ProcessProfile:
        """Return the values of processes in some call paths, which are summed.

        Parameters
        ----------
        rows : rows of the call paths
        question : the question; the default target is the largest scale
        asked : fields of the question, such as ``target=1024``

        Raises
        ------
        DataError, InputError, UsageError
            As `process_profile`.
        """
        from callpath_modeler.studies.process_profile import process_profile

        question = replace(question or Question(), **asked)
        return process_profile(
            self.experiment(question.metric),
            rows,
            question.metric,
            inclusive=question.inclusive,
            target=self._target(question)[0],
            options=self.load_options,
        )
