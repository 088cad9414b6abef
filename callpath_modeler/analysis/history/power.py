"""The smallest slowdown of the program that a history with a control shows soon."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.history.alarms import AlarmRule
from callpath_modeler.analysis.history.evidence import log_factors, record_weights
from callpath_modeler.analysis.history.judgement import PROGRAM_SHARE, JudgedHistory
from callpath_modeler.modeling.distributions import normal_quantile, student_quantile

SOON = 3
"""Number of records with a change at which it should be named."""

_LEAST_RECORDS = 5
"""Fewest records whose scatter is an estimate."""

_SURE = 0.75
"""Quantile of two kinds of bad luck: noise against the change, and scatter of the control.

With it, about 90 % of changes of the stated size are named so soon in simulated histories.
"""


def least_program_change(found: JudgedHistory, rule: AlarmRule, control: int) -> float:
    """Return the logarithm of the smallest change that is named at the third record with it.

    It is that of the program at the largest scale, relative to the control, and it is named with a
    probability of about 90 %. It follows from the scatter of the records since the last change.
    Infinity = no change is named so soon, or too few records.

    Parameters
    ----------
    found : judgement of a history with a control
    rule : when evidence is an alarm
    control : number of call paths of the control
    """
    levels = found.levels
    assert levels.program is not None
    assert levels.program_error is not None
    begin = max((each.leading.latest for each in found.program), default=0)
    program, error = levels.program[begin:, -1], levels.program_error[begin:, -1]
    there = np.flatnonzero(~np.isnan(program))[-rule.memory :]
    before = len(there)
    if before < _LEAST_RECORDS:
        return float("inf")
    scatter = max(np.var(program[there], ddof=1), np.mean(error[there])) + rule.least_sd**2
    size, dof = before * SOON / (before + SOON), before + SOON - 2.0
    t = np.geomspace(1.0, 1e4, 1_000)
    evidence = log_factors(t, np.full_like(t, dof), np.full_like(t, size))
    number = len(found.program)
    share = PROGRAM_SHARE / found.questions / ((number + 1) * (number + 2))
    prior = record_weights(len(program) + 1)[-1]
    enough = np.flatnonzero(evidence >= -np.log(rule.false_alarms * share * prior))
    if not len(enough):
        return float("inf")
    # If the control scatters more than usual at this time, the evidence counts for less.
    largest = student_quantile(dof, 0.5 + 0.5 * _SURE ** (1.0 / control))
    excess = max(float(largest / student_quantile(dof, 1.0 - 0.25 / control)), 1.0)
    needed = t[enough[0]] * excess + float(normal_quantile(_SURE))
    return float(needed * np.sqrt(scatter / size))
