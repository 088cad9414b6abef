"""The interface of expected costs, relative to which excess work is defined."""

from __future__ import annotations

from abc import ABC, abstractmethod

from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.experiment import Scaling


class Ideal(ABC):
    """Expected cost per process of every call path at a scale, from the cost at a base."""

    @property
    @abstractmethod
    def formula(self) -> str:
        """Formula of excess work between p and q."""

    @property
    @abstractmethod
    def meaning(self) -> str:
        """Name of the expectation, in a few words."""

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
        """True if the expected cost depends on the cost at the base."""
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

    def factor(self, base: float, scale: float) -> float | None:
        """Return the factor from the cost at the base to the expected cost, if all have the same.

        None = call paths have different factors.
        """
        del base, scale
        return None

    def run_time(self, base: float, scale: float, run_time: float, cost: FloatArray) -> float:
        """Return the expected run time at `scale`, per process.

        The rest of the run time without the call paths is expected to scale as they are. Where
        these have different factors, nothing is expected of it.

        Parameters
        ----------
        base, scale : the smaller and the larger scale
        run_time : run time at the base, or the sum of the call paths there
        cost : exclusive cost per process at the base, [call paths]; there is no NaN
        """
        factor = self.factor(base, scale)
        return float(self.cost(base, scale, cost).sum()) if factor is None else run_time * factor

    def runs(self, base: float, scale: float, runs: FloatArray) -> FloatArray | None:
        """Return the expected cost at `scale` of each run, [call paths, runs]; None = not known."""
        return self.cost(base, scale, runs)

    def added(self, scale: float) -> FloatArray | None:
        """Return additive numbers for bands of an expected cost; None = it has no band.

        They are [call paths, columns], as those of `modeling.sums.addable`.
        """
        del scale
        return None

    @property
    def remedy(self) -> str:
        """What to do if no cost is expected; "" = another scale or expectation."""
        return ""

    def gap(self, base: float, scale: float) -> str:
        """Return the reason for no expected cost at `scale`; "" = a cost is expected."""
        del base, scale
        return ""
