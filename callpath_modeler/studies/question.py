"""Questions to a study, their targets, and models held at a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.uncertain import FAR
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.printable import shell_word, shortened
from callpath_modeler.profile.runs import main_parameter, settings_of, target_of
from callpath_modeler.studies.loading import parse_number
from callpath_modeler.units import as_option, factor_text, parameter_value, setting_text

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.expectations.clauses import ExcessExpectation
    from callpath_modeler.analysis.scales import Pair

FURTHER = 4.0
"""Default target of commands that need none, as a multiple of the largest scale."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a `Study`.

    Scales are numbers, or text in the words of the command line.

    Attributes
    ----------
    target : target scale, such as ``4096``, ``"1e6"`` or ``"inf"``
    at : target by name, with values of other parameters, such as ``"p=4096,n=1e6"``; excludes
        `target`
    metric : name of the metric; None = the run time
    inclusive : use inclusive values
    predicted : use predictions even where the target was measured
    pairs : pairs of measured scales to compare, such as ``(8, 128)`` or ``"8,128"``; empty = all
        scales
    by : order of a ranking; None = excess work if two measured scales are compared, else the value
    expect : expected costs of excess work; None = perfect scaling
    has_verdicts : verdicts of the file of expectations are shown, so it need not state growths
    is_target_required : False = a target is ignored where pairs or few scales need no models
    further : default target as a multiple of the largest scale; None = a target is required
    """

    target: float | str | None = None
    at: Mapping[str, float] | str | None = None
    metric: str | None = None
    inclusive: bool = False
    predicted: bool = False
    pairs: tuple[Pair | str, ...] = ()
    by: str | None = None
    expect: ExcessExpectation | None = None
    has_verdicts: bool = False
    is_target_required: bool = True
    further: float | None = FURTHER

    def scale(self, parameter: str | None = None) -> Target:
        """Return the target; ``target=4096`` is short for ``at={"p": 4096}`` with models over p.

        Parameters
        ----------
        parameter : parameter that the user chose for the models

        Raises
        ------
        UsageError
            If the target is malformed, or given twice.
        """
        return parse_target(self.target, self.at, parameter)


class Target(Struct, frozen=True):
    """The scale of predictions.

    Attributes
    ----------
    value : value of the main parameter; None = not given
    named : values of parameters by name, in the order given
    chosen : the parameter that ``--parameter`` chose, or None
    """

    value: float | None = None
    named: Mapping[str, float] = msgspec.field(default_factory=dict)
    chosen: str | None = None

    @property
    def parameter(self) -> str | None:
        """The parameter of the target: the chosen one, else p, else the first one named."""
        return self.chosen or main_parameter(self.named)


def parse_target(
    target: float | str | None,
    at: Mapping[str, float] | str | None = None,
    parameter: str | None = None,
) -> Target:
    """Return the target of ``--target``, ``--at`` and ``--parameter``, as `Question.scale`."""
    listed = as_option(at) if isinstance(at, Mapping) else at
    if target is not None and listed is not None:
        names = {part.partition("=")[0].strip() for part in listed.split(",")}
        if (parameter or "p") in names:
            raise UsageError("--target and --at give the same value", hint="give one of them")
        raise UsageError(
            "--target and --at exclude each other",
            hint="give all values with --at " + shell_word(f"{parameter or 'p'}={target},{listed}"),
        )
    if target is not None:
        return Target(_scale(target) if isinstance(target, str) else target_of(target))
    named = settings_of(at, "at") if isinstance(at, Mapping) else _named(at)
    found = Target(named=named, chosen=parameter if parameter in named else None)
    if sum(np.isinf(list(named.values()))) > (np.isinf(named.get(found.parameter or "", 1.0))):
        raise UsageError(
            f"--at {listed!r}: only {found.parameter} may be infinite",
            hint="give the others a value",
        )
    return found


def _named(at: str | None) -> dict[str, float]:
    """Return the values of parameters in the text of ``--at``."""
    named: dict[str, float] = {}
    for part in at.split(",") if at is not None else ():
        name, _, text = (piece.strip() for piece in part.partition("="))
        if not name or not text or name in named:
            raise UsageError(f"--at {at!r} is malformed", hint="e.g. --at p=4096 or p=4096,n=1e6")
        named[name] = _scale(text)
    return named


def _scale(text: str) -> float:
    if "=" in text:
        message = f"target: {shortened(text, 40)!r} names a parameter; --target is a number alone"
        raise UsageError(message, hint=f"--at {shell_word(text)}")
    return target_of(parse_number(text, "target"), text)


def parse_pairs(pairs: Iterable[Pair | str]) -> tuple[Pair, ...]:
    """Return the two scales of each ``--pair``."""
    return tuple(_pair(each) if isinstance(each, str) else each for each in pairs)


def _pair(text: str) -> Pair:
    scales = text.split(",")
    if len(scales) != 2:
        raise UsageError(f"--pair {text!r} is malformed", hint="two scales, e.g. --pair 8,128")
    return parse_number(scales[0], "--pair"), parse_number(scales[1], "--pair")


def slice_at(fitted: Fitted, target: Target) -> Fitted:
    """Return the models along the parameter of the target, with its values of the others.

    Raises
    ------
    UsageError
        If the target names a parameter that the models do not have.
    """
    check_names(fitted, target.named)
    chosen = target.parameter or fitted.parameter
    held = {name: value for name, value in target.named.items() if name != chosen}
    return fitted.holding(held, chosen)


def check_names(fitted: Fitted, names: Iterable[str]) -> None:
    """Raise `UsageError` if the models lack one of the parameters."""
    for name in names:
        if name not in fitted.parameters:
            hint = f"parameters: {', '.join(fitted.parameters)}"
            raise UsageError(f"the models have no parameter {name!r}", hint=hint)


def checked_target(fitted: Fitted, value: float) -> float:
    """Return a target at which the models can be evaluated.

    Raises
    ------
    UsageError
        If it is a fraction of a process, or if a prediction overflows.
    """
    if value < 1 <= fitted.points[0]:
        raise UsageError(
            f"target {parameter_value(value)} is below 1, but the runs are not",
            hint="e.g. --target 4096",
        )
    if np.isfinite(value) and np.isinf(np.nansum(fitted.models.values(np.array([value])))):
        raise UsageError(
            f"at {setting_text({fitted.parameter: value})} the models predict more than any number",
            hint="--target inf ranks by growth alone",
        )
    return value


def findings_at(fitted: Fitted, target: float) -> tuple[Finding, ...]:
    """Return the findings about data, models and target."""
    found = [*fitted.experiment.findings, *fitted.findings]
    for name, value in fitted.at(target).items():
        factor = value / fitted.measured_range(name)[1]
        if FAR <= factor < np.inf:
            times = f"{factor_text(factor)} times the largest run"
            message = f"{setting_text({name: value})} is {times}"
            found.append(Finding("CPM205", "target", message))
    apart = fitted.never_combined(target)
    if apart and not any(finding.code == "CPM207" for finding in found):
        values = " and ".join(f"{name} >= {parameter_value(at)}" for name, at in apart.items())
        found.append(Finding("CPM214", "target", f"no run has {values}"))
    return (*found, *slice_findings(fitted.held, fitted.assumed))


def findings_of(answer: Answer) -> tuple[Finding, ...]:
    """Return the findings about data, models and target of an answer, and its bottlenecks."""
    from callpath_modeler.analysis.gpu_bottlenecks import bottlenecks

    return (*findings_at(answer.fitted, answer.target), *bottlenecks(answer))


def slice_findings(
    held: Mapping[str, float], assumed: Sequence[str], why: str = "the largest measured"
) -> tuple[Finding, ...]:
    """Return findings about held values of parameters that the user did not choose."""
    return tuple(
        Finding("CPM206", "target", f"{setting_text({name: held[name]})}, {why}")
        for name in assumed
    )


def target_of_efficiency(target: float | None) -> float | None:
    """Return a target of an efficiency; None = the user named none.

    Raises
    ------
    UsageError
        If it is infinite.
    """
    if target is not None and np.isinf(target):
        raise UsageError(
            "efficiency has no value at infinity", hint="give a scale, e.g. --target 65536"
        )
    return target
