"""Golden outputs: what each command prints and writes; `make golden` writes them again.

They record what users see, and do not say whether it is right. Other tests do that.
"""

from __future__ import annotations

import pytest
from golden_cases import Case, all_cases, all_sessions
from golden_files import AGAIN, EXPECTED, compare
from golden_inputs import INPUTS
from normal_form import normalised

CASES = all_cases()
SESSIONS = all_sessions()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}/{case.name}")
def test_the_output_is_the_golden_one(perform, written, inputs, case: Case):
    text = "".join(perform(step) for step in case.steps) + written()
    compare(case.file, normalised(text, inputs.folder))


def test_every_golden_output_has_a_case():
    left = set(EXPECTED.rglob("*.txt")) - {case.file for case in (*CASES, *SESSIONS)}
    if AGAIN:
        for path in left:
            path.unlink()
    else:
        assert not left, "`make golden` deletes them"


def test_every_input_has_a_command():
    lines = [step.line for case in CASES for step in case.steps]
    words = " ".join([*lines, *(session.step.line for session in SESSIONS)])
    assert not [name for name in INPUTS if name not in words]
