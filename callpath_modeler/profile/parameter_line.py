"""Lines through what was measured in several parameters: one varies, the others are held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Settings = NDArray[np.float64]


def main_parameter(names: Iterable[str]) -> str | None:
    """Return the parameter that is meant where one is asked for: p, or else the first."""
    listed = list(names)
    return "p" if "p" in listed else next(iter(listed), None)


@dataclass(frozen=True, slots=True)
class ParameterLine:
    """One parameter that varies, and where the others are held.

    Attributes
    ----------
    parameter : the one that varies
    held : values of the others
    measured_at : the values nearest to them that were measured
    assumed : the others that no one said where to hold
    """

    parameter: str
    held: Mapping[str, float] = field(default_factory=dict)
    measured_at: Mapping[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All parameters, the one that varies first."""
        return self.parameter, *self.held

    def at(self, scale: float) -> dict[str, float]:
        """Return the values of all parameters at a scale."""
        return {self.parameter: scale, **self.held}


def nearest_line(
    names: Sequence[str], settings: Settings, held: Mapping[str, float]
) -> ParameterLine:
    """Return the line through the settings that are nearest to where others are to be held.

    Parameters
    ----------
    names : the parameter that varies, then the others
    settings : [m, names], m > 0; what was measured, above zero
    held : values of others; those not named are held at their largest measured value
    """
    parameter, *others = names
    largest = dict(zip(others, settings[:, 1:].max(axis=0).tolist(), strict=True))
    at = {name: held.get(name, value) for name, value in largest.items()}
    near = _nearest(settings[:, 1:], np.array([*at.values()]))
    measured_at = dict(zip(others, near, strict=True))
    return ParameterLine(
        parameter, at, measured_at, tuple(name for name in others if name not in held)
    )


def _nearest(settings: Settings, at: NDArray[np.float64]) -> list[float]:
    """Return the setting next to `at` [D], in ratios; the larger one of two as near."""
    distance = np.abs(np.log(settings / at)).sum(axis=1)
    near = settings[distance <= distance.min() + 1e-9]
    nearest: list[float] = near[np.lexsort(near.T[::-1])[-1]].tolist() if len(at) else []
    return nearest
