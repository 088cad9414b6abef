"""Expected costs, relative to which excess work is defined.

Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
(ICS 2007). With p < q processes, cost C per process, an expected cost E at q and run time T,

    X = (C_q - E_q) / T_q

Perfect weak scaling expects E_q = C_p, perfect strong scaling E_q = C_p p / q. An expected growth g
generalises both: E_q = C_p g(q) / g(p). Another experiment states E_q itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted, Ideal
from callpath_modeler.modeling import Function
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.runs import worker_parameter
from callpath_modeler.profile.scaling_kind import AS_TOLD
from callpath_modeler.units import counted, parameter_value, percent, setting_text


def ideal_cost(scaling: Scaling, base: float, scale: float, cost: FloatArray) -> FloatArray:
    """Return the cost per process at `scale` under perfect scaling, from `cost` at the base.

    Raises
    ------
    UsageError
        If the kind of scaling is unclear.
    """
    if scaling is Scaling.UNCLEAR:
        raise UsageError(f"no excess work: {_UNCLEAR}", hint=_REMEDY)
    return cost * (base / scale) if scaling is Scaling.STRONG else cost


def scaling_over(experiment: Experiment, parameter: str) -> Scaling:
    """Return the kind of scaling; without more workers, costs are compared as they are."""
    return experiment.scaling if counts_workers(experiment, parameter) else Scaling.WEAK


def counts_workers(experiment: Experiment, parameter: str) -> bool:
    """Return whether a parameter counts workers, so that the kind of scaling applies to it.

    A user who chooses the kind means the parameter that varies, whatever its name is, unless
    another one counts workers.
    """
    if worker_parameter([parameter]) is not None:
        return True
    is_told = experiment.scaling_reason == AS_TOLD
    return is_told and worker_parameter(each.name for each in experiment.parameters) is None


_UNCLEAR = "the kind of scaling is unclear: choose it with --scaling weak or --scaling strong"
_REMEDY = "weak if the problem grows with the number of workers, strong if it stays the same"
_FORMULAS = {
    Scaling.STRONG: "(q C_q - p C_p) / (q T_q)",
    Scaling.WEAK: "(C_q - C_p) / T_q",
}
_GROWN = "(C_q - C_p g(q) / g(p)) / T_q"


@dataclass(frozen=True, slots=True)
class ScalingIdeal(Ideal):
    """Perfect weak or strong scaling.

    Attributes
    ----------
    kind : weak or strong
    """

    kind: Scaling

    @property
    def formula(self) -> str:
        """Formula of excess work between p and q."""
        return _FORMULAS[self.kind]

    @property
    def meaning(self) -> str:
        """The name of the scaling."""
        return f"{self.kind} scaling"

    @property
    def scaling(self) -> Scaling:
        """Weak or strong."""
        return self.kind

    def factor(self, base: float, scale: float) -> float:
        """Return the factor of all call paths."""
        return float(ideal_cost(self.kind, base, scale, np.ones(1))[0])

    def cost(self, base: float, scale: float, cost: FloatArray) -> FloatArray:
        """Return the cost at `scale` under perfect scaling."""
        return ideal_cost(self.kind, base, scale, cost)


class UnclearIdeal(Ideal):
    """No expected cost, because the kind of scaling is unclear."""

    formula = "?"
    """The formula is not known."""

    meaning = "unclear scaling"
    """The name of the scaling."""

    remedy = _REMEDY
    """Options that state the kind."""

    def cost(self, base: float, scale: float, cost: FloatArray) -> FloatArray:
        """Return no costs."""
        return ideal_cost(Scaling.UNCLEAR, base, scale, cost)

    def gap(self, base: float, scale: float) -> str:
        """Return that the kind of scaling is unclear."""
        del base, scale
        return _UNCLEAR


def perfect(kind: Scaling) -> Ideal:
    """Return the expected costs of perfect scaling of a kind."""
    return UnclearIdeal() if kind is Scaling.UNCLEAR else ScalingIdeal(kind)


def _no_value(function: Function, text: str, parameter: str, scales: tuple[float, float]) -> str:
    """Return why costs cannot grow like a function between two scales; "" = they can."""
    if not np.isnan(function.ratio(*scales)):
        return ""
    values = []
    for scale in scales:
        try:
            values.append(function(scale))
        except OverflowError:
            values.append(np.inf)
    wrong = [at for at, value in zip(scales, values, strict=True) if not 0 < value < np.inf]
    listed = " and ".join(setting_text({parameter: at}) for at in dict.fromkeys(wrong or scales))
    return f"{text} is not a finite number above zero at {listed}"


@dataclass(frozen=True, slots=True, eq=False)
class GrowthIdeal(Ideal):
    """One expected growth of all call paths.

    Attributes
    ----------
    text : the growth as the user wrote it
    function : the growth
    parameter : parameter of the scales
    """

    text: str
    function: Function
    parameter: str

    formula = _GROWN
    """Formula of excess work between p and q."""

    @property
    def meaning(self) -> str:
        """The growth."""
        return f"expected g({self.parameter}) = {self.text}"

    def factor(self, base: float, scale: float) -> float:
        """Return the factor of all call paths."""
        return self.function.ratio(base, scale)

    def cost(self, base: float, scale: float, cost: FloatArray) -> FloatArray:
        """Return the cost at the base, grown to `scale`."""
        return cost * self.factor(base, scale)

    def gap(self, base: float, scale: float) -> str:
        """Return why the growth has no value at one of the scales."""
        return _no_value(self.function, self.text, self.parameter, (base, scale))


@dataclass(frozen=True, slots=True, eq=False)
class CallPathIdeal(Ideal):
    """Expected growths of some call paths; the others scale perfectly.

    Attributes
    ----------
    source : the file of the expectations
    functions : distinct growths, each with its text
    which : [call paths] number of the growth; -1 = perfect scaling
    others : scaling of call paths without a growth
    parameter : parameter of the scales
    without : number of expected growths that select no call path
    """

    source: str
    functions: tuple[tuple[str, Function], ...]
    which: IntArray
    others: Scaling
    parameter: str
    without: int = 0

    formula = _GROWN
    """Formula of excess work between p and q."""

    @property
    def meaning(self) -> str:
        """The file."""
        return f"expected growths g of {self.source}"

    @property
    def notes(self) -> tuple[str, ...]:
        """How many call paths have an expected growth."""
        rest = {Scaling.WEAK: "1", Scaling.STRONG: f"1/{self.parameter}"}.get(self.others, "?")
        some = counted(int((self.which >= 0).sum()), "call path")
        told = (
            f"{self.source}: growths of {some}; of all others, g = {rest} ({self.others} scaling)"
        )
        if self.without:
            told += f"; {counted(self.without, 'growth')} for no call path of these runs"
        return (told,)

    def cost(self, base: float, scale: float, cost: FloatArray) -> FloatArray:
        """Return the costs at the base, each grown to `scale`."""
        factors = [function.ratio(base, scale) for _, function in self.functions]
        factors.append(float(ideal_cost(self.others, base, scale, np.ones(1))[0]))
        factor: FloatArray = np.array(factors)[self.which]
        return cost * (factor if cost.ndim == 1 else factor[:, None])

    def run_time(self, base: float, scale: float, run_time: float, cost: FloatArray) -> float:
        """Return the expected run time; its rest scales as call paths without a growth."""
        rest = ideal_cost(self.others, base, scale, np.array([run_time - cost.sum()]))
        return float(self.cost(base, scale, cost).sum() + rest[0])

    @property
    def remedy(self) -> str:
        """Advice if the scaling of the other call paths is unclear."""
        return _REMEDY if self.others is Scaling.UNCLEAR else ""

    def gap(self, base: float, scale: float) -> str:
        """Return why one of the growths has no value at one of the scales."""
        if self.others is Scaling.UNCLEAR and (self.which < 0).any():
            return _UNCLEAR
        told = (_no_value(one, text, self.parameter, (base, scale)) for text, one in self.functions)
        return next(filter(None, told), "")


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceIdeal(Ideal):
    """The costs of another experiment at the same scale.

    Attributes
    ----------
    source : the other experiment, as the user named it
    parameter : parameter of the scales
    costs : [call paths] costs per process, by scale
    measured : [call paths, runs] costs of the runs, by measured scale
    predicted : [call paths, columns] additive numbers for bands, by predicted scale
    moved : share of the other experiment's cost at its largest scale in call paths that do not
        occur here; it belongs to their callers
    lost : the same for call paths without a caller that occurs here; it is not expected anywhere
    predict : function that returns the costs at another scale, and their additive numbers; its
        results are kept in `costs` and `predicted`. None = there are no models
    run_time_at : function that returns the run time of the other experiment at a scale; NaN = not
        known. None = it has none
    """

    source: str
    parameter: str
    costs: dict[float, FloatArray]
    measured: dict[float, FloatArray] = field(default_factory=dict)
    predicted: dict[float, FloatArray] = field(default_factory=dict)
    moved: float = 0.0
    lost: float = 0.0
    predict: Callable[[float], tuple[FloatArray, FloatArray] | None] | None = None
    run_time_at: Callable[[float], float] | None = None

    formula = "(C_q - E_q) / T_q"
    """Formula of excess work at q."""

    is_relative = False
    """False: the other experiment states the expected cost."""

    @property
    def meaning(self) -> str:
        """The other experiment."""
        return f"expected E of {self.source}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The scales with measured and with predicted expected costs."""
        kinds = {"measured": self.measured, "predicted by its models": self.predicted}
        told = [
            f"{how} at {self.parameter} = {', '.join(map(parameter_value, sorted(at)))}"
            for how, at in kinds.items()
            if at
        ]
        notes = [f"E: cost in {self.source} at the same scale, {', '.join(told)}"]
        if self.moved:
            notes.append(
                f"{percent(self.moved)} of the cost in {self.source} is in call paths that do not "
                "occur here; it is expected in their callers"
            )
        if self.lost:
            notes.append(
                f"{percent(self.lost)} of the cost in {self.source} is in call paths without a "
                "caller here; nothing is expected for them"
            )
        return tuple(notes)

    def cost(self, base: float, scale: float, cost: FloatArray) -> FloatArray:
        """Return the costs of the other experiment at `scale`."""
        del base
        found = self._at(scale)
        assert found is not None
        return found if cost.ndim == 1 else found[:, None]

    def run_time(self, base: float, scale: float, run_time: float, cost: FloatArray) -> float:
        """Return the run time of the other experiment; the sum of its costs if it has none."""
        del run_time
        found = np.nan if self.run_time_at is None else self.run_time_at(scale)
        return float(self.cost(base, scale, cost).sum()) if np.isnan(found) else found

    def _at(self, scale: float) -> FloatArray | None:
        """Return the costs at a scale; None = they are not known."""
        if scale not in self.costs and self.predict is not None and np.isfinite(scale):
            found = self.predict(scale)
            if found is not None:
                self.costs[scale], self.predicted[scale] = found
        return self.costs.get(scale)

    def runs(self, base: float, scale: float, runs: FloatArray) -> FloatArray | None:
        """Return the costs of the other experiment's runs at `scale`."""
        del base, runs
        return self.measured.get(scale)

    def added(self, scale: float) -> FloatArray | None:
        """Return additive numbers for bands of predicted costs."""
        self._at(scale)
        return self.predicted.get(scale)

    def gap(self, base: float, scale: float) -> str:
        """Return that the other experiment says nothing about `scale`."""
        del base
        at = setting_text({self.parameter: scale})
        unknown = f"{self.source} was not measured at {at}, and it has no models"
        return unknown if self._at(scale) is None else ""


def ideal_of(fitted: Fitted) -> Ideal:
    """Return the expected costs of models: those the user chose, else perfect scaling."""
    return fitted.ideal or perfect(scaling_over(fitted.experiment, fitted.parameter))
