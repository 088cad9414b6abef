"""Run time of a program with faster communication or computation, from measured times.

The run time is T = T_communication / S_communication + T_computation / S_computation (Wu, Mueller,
Pakin: TOPC 1(1), 2014, section 5.5.4). Computation is the mean over ranks outside MPI.
Communication is the rest of the run time, so it includes waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from callpath_modeler.errors import DataError
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.table_formats import Table
from callpath_modeler.units import factor_text, percent, signed_percent
from cpmodel_commspec.replay.run_time import mean_computation
from cpmodel_commspec.specification import Specification


@dataclass(frozen=True, slots=True)
class Estimate:
    """A run time with other speeds.

    Attributes
    ----------
    program : as it was called, or ""
    communication, computation : measured seconds
    faster_communication, faster_computation : speedups
    """

    program: str
    communication: float
    computation: float
    faster_communication: float
    faster_computation: float

    @property
    def measured(self) -> float:
        """The run time of the trace."""
        return self.communication + self.computation

    @property
    def seconds(self) -> float:
        """The run time with other speeds."""
        return (
            self.communication / self.faster_communication
            + self.computation / self.faster_computation
        )


def estimate(told: Specification, communication: float, computation: float) -> Estimate:
    """Return the run time of a program with other speeds.

    Parameters
    ----------
    communication, computation : speedups, above zero

    Raises
    ------
    DataError
        If the specification has no times.
    """
    if not told.seconds:
        raise DataError(
            "the specification has no run time",
            hint="make it from a trace: cpmodel trace spec TRACE -o SPEC.json",
        )
    computed = min(mean_computation(told), told.seconds)
    return Estimate(told.program, told.seconds - computed, computed, communication, computation)


def estimate_text(found: Estimate, style: TextStyle) -> list[Text]:
    """Return the estimate, its origin and its limits."""
    share = found.computation / found.measured
    change = signed_percent(found.seconds / found.measured - 1)
    lines = [
        (
            f"{style.amount(found.seconds, 's')} ({change}), with communication "
            f"{factor_text(found.faster_communication)} times and computation "
            f"{factor_text(found.faster_computation)} times as fast"
        ),
        (
            f"measured in the trace: {style.amount(found.measured, 's')}, of which computation is "
            f"{percent(share, 1)} and communication with waiting {percent(1 - share, 1)}"
        ),
    ]
    # Each says which way the estimate errs: waiting for slow ranks is not communication.
    if found.faster_communication > 1:
        lines.append(
            "This is a lower bound for faster communication: waiting for ranks that compute longer "
            "does not get shorter."
        )
    if found.faster_computation > 1:
        lines.append(
            "This is an upper bound for faster computation: waiting for ranks that compute longer "
            "gets shorter, too."
        )
    return style.lines(lines)


def estimate_table(found: Estimate) -> Table:
    """Return the estimate as one row."""
    row = {
        "measured": found.measured,
        "communication": found.communication,
        "computation": found.computation,
        "communication_speedup": found.faster_communication,
        "computation_speedup": found.faster_computation,
        "seconds": found.seconds,
    }
    units = dict.fromkeys(("measured", "communication", "computation", "seconds"), "s")
    return Table({name: [value] for name, value in row.items()}, units, {"program": found.program})
