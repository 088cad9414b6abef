"""Parts of the run time of processes with threads."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.profile.balance import Part, parts_of


def parts(computation, communication, threading, process=None):
    """Return the parts of threads of one process, or of the given processes."""
    time = np.zeros((4, len(computation)))
    time[:3] = computation, communication, threading
    process = np.zeros(len(computation), int) if process is None else np.array(process)
    found = parts_of(time, process)
    assert (found >= 0).all()
    whole = (time[0] + time[1] + time[2]).max()
    assert found.sum() == pytest.approx(whole)
    return dict(zip(Part, found.tolist(), strict=True))


@pytest.mark.parametrize("recorded", [0.0, 1.0, 3.2])
def test_workers_that_wait_for_the_mpi_of_their_master_are_lost_to_mpi(recorded):
    found = parts([1, 1], [3.2, 0], [0, recorded])
    assert found[Part.USEFUL] == 1
    assert found[Part.COMMUNICATION] == pytest.approx(3.2)
    assert found[Part.SERIAL] == found[Part.REGIONS] == found[Part.IMBALANCE] == 0


def test_workers_that_wait_for_the_computation_of_their_master_are_lost_to_threads():
    # The worker waits 1 s for the computation of the master and 2 s for its MPI.
    found = parts([2, 1], [2, 0], [0, 3])
    assert found[Part.COMMUNICATION] == pytest.approx(2)
    assert found[Part.REGIONS] == pytest.approx(0.5)
    assert found[Part.SERIAL] == pytest.approx(0)
    unrecorded = parts([2, 1], [2, 0], [0, 0])
    assert unrecorded[Part.COMMUNICATION] == pytest.approx(2)
    assert unrecorded[Part.SERIAL] == pytest.approx(0.5)


def test_computation_of_workers_hides_communication():
    found = parts([1, 4], [3, 0], [0, 0])
    assert found[Part.COMMUNICATION] == 0
    assert found[Part.USEFUL] == 2.5
    assert found[Part.SERIAL] == pytest.approx(1.5)


def test_a_master_that_waits_for_a_communicating_thread_is_lost_to_mpi():
    found = parts([1, 0], [0, 4], [3, 0])
    assert found[Part.COMMUNICATION] == pytest.approx(3)
    assert found[Part.USEFUL] == 0.5


def test_all_threads_may_communicate():
    found = parts([1, 2], [3, 2], [0, 0])
    assert found[Part.COMMUNICATION] == pytest.approx(2)
    assert found[Part.SERIAL] == pytest.approx(0.5)


def test_waiting_without_communication_is_lost_to_threads():
    found = parts([4, 1], [0, 0], [0, 3])
    assert found[Part.REGIONS] == pytest.approx(1.5)
    assert found[Part.COMMUNICATION] == 0


def test_each_process_has_its_own_communication():
    found = parts([1, 1, 3, 3], [3, 0, 1, 0], [0, 3, 0, 1], [0, 0, 1, 1])
    assert found[Part.USEFUL] == 2
    assert found[Part.IMBALANCE] == pytest.approx(1)
    assert found[Part.COMMUNICATION] == pytest.approx(1)
    assert found[Part.REGIONS] == found[Part.SERIAL] == 0
