"""What sacct prints about a job: its time, and the memory of its tasks."""

import pytest

from callpath_modeler.campaign import slurm

KIB = 1024


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("", (0, 0)),
        ("garbage\n", (0, 0)),
        ("60|\n60|1.5G\n60|0\n", (60, 1.5 * KIB**3)),
        ("10|16?K\n", (10, 0)),
        # The time of a step is not the one of the job.
        ("unknown|\n7|5M\n", (0, 5 * KIB**2)),
        ("|1K\n7|5M\n", (0, 5 * KIB**2)),
        ("10|\n10|999999999999T\n10|8K\n", (10, 8 * KIB)),
    ],
)
def test_odd_answers_of_sacct_state_nothing_wrong(monkeypatch, answer, found):
    monkeypatch.setattr(slurm, "_answer", lambda _: answer)
    assert slurm._accounted("1") == found
