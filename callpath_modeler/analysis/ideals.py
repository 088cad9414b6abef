"""Expected costs, relative to which excess work is defined.

Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
(ICS 2007). With p < q processes, cost C per process, an expected cost E at q and run time T,

    X = (C_q - E_q) / T_q

Perfect weak scaling expects E_q = C_p, perfect strong scaling E_q = C_p p / q. An expected growth g
generalises both: E_q = C_p g(q) / g(p). Another experiment states E_q itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from callpath_modeler.analysis.excess import ideal_cost
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling import Function
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.units import counted, parameter_value, percent, setting_text

_FORMULAS = {
    Scaling.STRONG: "(q C_q - p C_p) / (q T_q)",
    Scaling.WEAK: "(C_q - C_p) / T_q",
}
_GROWN = "(C_q - C_p g(q) / g(p)) / T_q"


class Ideal(ABC):
    """Expected cost per process of every call path at a scale, from the cost at a base."""

    @property
    @abstractmethod
    def formula(self) -> str:
        """Formula of excess work between p and q."""

    @property
    @abstractmethod
    def meaning(self) -> str:
        """What is expected, in a few words."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Further facts for the reader of a table."""
        return ()

    @property
    def scaling(self) -> Scaling | None:
        """Weak or strong scaling; None = another expectation."""
        return None

    @property
    def is_relative(self) -> bool:
        """Whether the expected cost depends on the cost at the base."""
        return True

    @abstractmethod
    def cost(self, base: float, scale: float, cost: FloatArray) -> FloatArray:
        """Return the expected cost at `scale`.

        Parameters
        ----------
        base, scale : the smaller and the larger scale
        cost : exclusive cost per process at the base, [call paths] or [call paths, runs]; there is
            no NaN
        """

    def runs(self, base: float, scale: float, runs: FloatArray) -> FloatArray | None:
        """Return the expected cost at `scale` of each run, [call paths, runs]; None = not known."""
        return self.cost(base, scale, runs)

    def added(self, scale: float) -> FloatArray | None:
        """Return additive numbers for bands of an expected cost; None = it has no band.

        They are [call paths, columns], as those of `analysis.sums.addable`.
        """
        del scale
        return None

    def gap(self, base: float, scale: float) -> str:
        """Return why there is no expected cost at `scale`; "" = there is one."""
        del base, scale
        return ""


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

    def cost(self, base: float, scale: float, cost: FloatArray) -> FloatArray:
        """Return the cost at `scale` under perfect scaling."""
        return ideal_cost(self.kind, base, scale, cost)


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
    listed = " and ".join(setting_text({parameter: at}) for at in wrong or scales)
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

    @property
    def formula(self) -> str:
        """Formula of excess work between p and q."""
        return _GROWN

    @property
    def meaning(self) -> str:
        """The growth."""
        return f"expected g({self.parameter}) = {self.text}"

    def cost(self, base: float, scale: float, cost: FloatArray) -> FloatArray:
        """Return the cost at the base, grown to `scale`."""
        return cost * self.function.ratio(base, scale)

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

    @property
    def formula(self) -> str:
        """Formula of excess work between p and q."""
        return _GROWN

    @property
    def meaning(self) -> str:
        """The file."""
        return f"expected growths g of {self.source}"

    @property
    def notes(self) -> tuple[str, ...]:
        """How many call paths have an expected growth."""
        rest = "1" if self.others is Scaling.WEAK else f"1/{self.parameter}"
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

    def gap(self, base: float, scale: float) -> str:
        """Return why one of the growths has no value at one of the scales."""
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
    """

    source: str
    parameter: str
    costs: Mapping[float, FloatArray]
    measured: Mapping[float, FloatArray] = field(default_factory=dict)
    predicted: Mapping[float, FloatArray] = field(default_factory=dict)
    moved: float = 0.0
    lost: float = 0.0

    @property
    def formula(self) -> str:
        """Formula of excess work at q."""
        return "(C_q - E_q) / T_q"

    @property
    def is_relative(self) -> bool:
        """False: the other experiment states the expected cost."""
        return False

    @property
    def meaning(self) -> str:
        """The other experiment."""
        return f"expected E of {self.source}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the expected costs are measured, and where they are predicted."""
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
        found = self.costs[scale]
        return found if cost.ndim == 1 else found[:, None]

    def runs(self, base: float, scale: float, runs: FloatArray) -> FloatArray | None:
        """Return the costs of the other experiment's runs at `scale`."""
        del base, runs
        return self.measured.get(scale)

    def added(self, scale: float) -> FloatArray | None:
        """Return additive numbers for bands of predicted costs."""
        return self.predicted.get(scale)

    def gap(self, base: float, scale: float) -> str:
        """Return that the other experiment says nothing about `scale`."""
        del base
        at = setting_text({self.parameter: scale})
        unknown = f"{self.source} was not measured at {at}, and it has no models"
        return "" if scale in self.costs else unknown
