"""Outcomes as text, for tables, logs and test reports."""

from __future__ import annotations

from collections.abc import Mapping

from callpath_modeler.analysis.expectations.expectation import (
    Bound,
    CriterionKind,
    GrowthLimit,
    RuleText,
)
from callpath_modeler.analysis.expectations.verdicts import Judgement, Outcome, Verdict
from callpath_modeler.expression import Comparison
from callpath_modeler.fitted import Fitted
from callpath_modeler.printable import printable
from callpath_modeler.profile.omissions import omissions_text
from callpath_modeler.profile.pruning import excluded_call_paths
from callpath_modeler.units import (
    counted,
    interval,
    parameter_value,
    percent,
    quantity,
    rough_value,
    setting_text,
    significant,
)

_MOST = 3
"""Largest number of growths that are named if the data do not decide."""

_FRACTIONS = frozenset({CriterionKind.SHARE, CriterionKind.EXCESS})


_OF_CONTROL: Mapping[Verdict, str] = {
    Verdict.BROKEN: "is broken too: look at the machine before the program",
    Verdict.KEPT: "is kept: it is not the machine",
    Verdict.UNSURE: "does not tell: it may be the machine",
}


def sentence(outcome: Outcome) -> str:
    """Return an outcome as one line of text, without its name and line number."""
    said = _sentence(outcome)
    if outcome.expectation.callpath is None and outcome.omissions:
        return f"{said}, {omissions_text(outcome.omissions)}"
    return said


def _sentence(outcome: Outcome) -> str:
    if outcome.missing:
        meant = f"; did you mean {outcome.meant!r}?" if outcome.meant else ""
        excluded = excluded_call_paths(outcome.fitted.experiment)
        return f"{outcome.missing!r} names no call path{excluded}{meant}"
    if outcome.too_few:
        named = counted(outcome.matched, "call path")
        least = outcome.expectation.at_least
        return f"{outcome.expectation.callpath!r} names {named}, expected {least} or more"
    verdict = outcome.verdict
    found = [_said(one, outcome.fitted) for one in outcome.judgements if one.verdict is verdict]
    said = "; ".join(dict.fromkeys(found)) or "names no call path"
    if verdict is Verdict.KEPT and outcome.matched > 1:
        return f"{counted(outcome.matched, 'call path')}, worst {said}"
    return said


def _said(judgement: Judgement, fitted: Fitted) -> str:
    if not judgement.judged:
        if judgement.target is None:
            return "gone at the largest scale"
        return f"does not occur at {setting_text(fitted.at(judgement.target))}"
    if judgement.unmodelled == 1:
        return "has no model"
    if isinstance(judgement.criterion, GrowthLimit):
        return _growth(judgement, fitted)
    return _bound(judgement, fitted)


def _growth(judgement: Judgement, fitted: Fitted) -> str:
    limit, parameter = judgement.criterion, fitted.parameter
    assert isinstance(limit, GrowthLimit)
    expected = limit.text
    if fitted.held:
        expected += f" at {setting_text(fitted.held)}"
    growths = [growth.text(parameter) for growth, _ in judgement.growths]
    growths[0] = f"{judgement.meaning} {growths[0]}".lstrip()
    if judgement.verdict is Verdict.KEPT:
        return f"{growths[0]}, expected {expected}"
    if judgement.verdict is Verdict.BROKEN:
        divergence = judgement.growths[0][0] / limit.expected
        return f"{growths[0]}, expected {expected}: off by {divergence.text(parameter)}"
    if judgement.alone is not None and judgement.part is not None:
        model, row = judgement.alone.text(parameter), judgement.part
        part = printable(fitted.experiment.tree.path(row))
        disagree = f"{part} grows faster than the model of the sum, {model}"
        return f"{growths[0]}, expected {expected}: {disagree}"
    if judgement.outside:
        return f"{growths[0]}, expected {expected}: no law explains the measurements"
    if len(growths) > _MOST:
        growths = [*growths[:_MOST], "another"]
    listed = growths[0] if len(growths) == 1 else f"{', '.join(growths[:-1])} or {growths[-1]}"
    chance = f"{percent(judgement.beyond or 0.0)} beyond"
    return f"{listed}, expected {expected}: the data do not tell ({chance})"


def _bound(judgement: Judgement, fitted: Fitted) -> str:
    criterion = judgement.criterion
    assert judgement.found is not None
    assert judgement.expected is not None
    assert judgement.target is not None
    fraction = isinstance(criterion, Bound) and criterion.kind in _FRACTIONS
    found = _amount(judgement.found, judgement.unit, fraction=fraction)
    where = f"{judgement.basis} at {setting_text(fitted.at(judgement.target))}"
    what = (
        criterion.kind
        if isinstance(criterion, Bound) and criterion.kind != CriterionKind.VALUE
        else judgement.meaning
    )
    if isinstance(criterion, Comparison | RuleText):
        other = _amount(judgement.expected, judgement.unit, fraction=False)
        said = f"{found} against {other} {where}, expected {criterion.text}"
    else:
        said = f"{what} {found} {where}, expected {criterion.text}".lstrip()
    if judgement.verdict is not Verdict.UNSURE:
        return said
    if judgement.unmodelled > 0 and judgement.unsure:
        return f"{said}: {percent(judgement.unmodelled)} of it has no model"
    return f"{said}: {'the repetitions do not tell' if judgement.measured else 'within the band'}"


def _amount(numbers: tuple[float, float, float], unit: str, *, fraction: bool) -> str:
    """Return a number as text with its band, unless it is exact."""
    value, low, high = numbers
    if fraction:
        band = f"{significant(100 * low)} … {significant(100 * high)} %"
        return f"{significant(100 * value)} % ({band})"
    text = quantity(value, unit)
    return text if low == high else f"{text} ({interval(low, high, unit)})"


def details(outcome: Outcome, control: Outcome | None) -> list[str]:
    """Return lines of text that help to act on an outcome.

    Parameters
    ----------
    control : outcome of its control expectation
    """
    decisive, fitted = outcome.decisive, outcome.fitted
    parameter = fitted.parameter
    lines = []
    if decisive is not None and decisive.judged > 1 and decisive.verdict is not Verdict.KEPT:
        counts = {"broken": decisive.broken, "unsure": decisive.unsure}
        listed = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
        lines.append(f"{listed} of {counted(decisive.judged, 'call path')}")
    if decisive is not None and decisive.broken_at:
        listed = ", ".join(parameter_value(scale) for scale in decisive.broken_at)
        held = f", {setting_text(fitted.measured_at)}" if fitted.measured_at else ""
        lines.append(f"measured to be broken at {parameter} = {listed}{held}")
    if decisive is not None and decisive.in_the_end is not None:
        left, right = (growth.text(parameter) for growth in decisive.in_the_end)
        lines.append(f"in the end {left} against {right}")
    if decisive is not None and decisive.crossing is not None:
        scales = {"likely": decisive.crossing.likely, "surely": decisive.crossing.surely}
        listed = ", ".join(
            f"{word} from about {parameter} = {rough_value(scale)} on"
            for word, scale in scales.items()
            if scale is not None
        )
        if listed:
            held = f" at {setting_text(fitted.held)}" if fitted.held else ""
            lines.append(f"predicted to be broken{held} {listed}")
    lines += _deciding(decisive, fitted) if decisive is not None else []
    if control is not None and outcome.verdict is Verdict.BROKEN:
        lines.append(f"its control {control.name!r} {_OF_CONTROL[control.verdict]}")
    expectation = outcome.expectation
    if expectation.xfail is not None:
        lines.append(f"expected to fail: {expectation.xfail}")
    if outcome.verdict is not Verdict.KEPT:
        lines += [text for text in (expectation.note, expectation.source) if text]
    return lines


def _deciding(judgement: Judgement, fitted: Fitted) -> list[str]:
    """Return the runs that would decide, as text."""
    lines = []
    if judgement.decides is not None:
        lines.append(f"a run at {setting_text(fitted.at(judgement.decides))} would decide")
    if judgement.repetitions is not None and judgement.target is not None:
        runs = f"{judgement.repetitions} repetitions at {setting_text(fitted.at(judgement.target))}"
        lines.append(f"{runs} would decide, if nothing changes")
    return lines
