"""Descriptions of numbers in names, for findings and errors."""

from __future__ import annotations

from collections.abc import Sequence

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.runs import RunNumber
from callpath_modeler.readers.inference import Decision, Role
from callpath_modeler.units import parameter_value

_MOST = 5
"""Maximum number of values in a list."""


def named_number(decision: Decision) -> RunNumber:
    """Return a number in names, with its values and its role as text."""
    column = decision.column
    values = sorted({value for value in column.values if value is not None})
    shown = [parameter_value(value) for value in values]
    if len(shown) > _MOST:
        shown = [*shown[:2], "...", shown[-1]]
    role, constant = decision.reason, ""
    if decision.role is Role.CONSTANT:
        role = "never varies, not modelled"
        constant = decision.name if column.common else ""
    return RunNumber(column.label or "number", " ".join(shown), column.place, role, constant)


def refuse_undecided(decisions: Sequence[Decision], runs: Sequence[str]) -> None:
    """Raise `UsageError` for the first number whose role cannot be decided."""
    for decision in decisions:
        if decision.role is not Role.UNDECIDED:
            continue
        number = named_number(decision)
        name = decision.column.label
        if name and None in decision.column.values:
            lacking = runs[decision.column.values.index(None)]
            raise UsageError(
                f"{lacking}: no parameter {name!r} in the name of this run",
                hint="give a pattern (--name 'app.p{p}.n{n}.r{rep}') or a manifest runs.toml, "
                f"or exclude the number with --param {name}=none",
            )
        option = name or "n"
        what = f"{number.name} = {number.values}" if name else f"the numbers {number.values}"
        leave = f", --param {name}=none if it is not" if name else ""
        raise UsageError(
            f"{what} in {number.place} may be a parameter or not: {decision.reason}",
            hint=f"--param {option}=name if it is a parameter{leave}, "
            "or --name 'PATTERN' with braces around each number, e.g. '{p}/{n}'",
        )
