"""Bytes of collective operations in measurements, converted to the shares of processes."""

from __future__ import annotations

import pytest

from cells import cells
from cpmodel_commspec.collectives import NAMES, Form, booked, share

N, M = 5, 24
# Bytes sent and received of m = 24 on 5 processes, at the root and on rank 3.
TABLE = {
    "barrier": ((0, 0), (0, 0)),
    "bcast": ((N * M, M), (0, M)),
    "scatter": ((N * M, M), (0, M)),
    "gather": ((M, N * M), (M, 0)),
    "reduce": ((M, N * M), (M, 0)),
    "allgather": ((N * M, N * M), (N * M, N * M)),
    "alltoall": ((N * M, N * M), (N * M, N * M)),
    "allreduce": ((N * M, N * M), (N * M, N * M)),
    "reduce_scatter_block": ((N * M, N * M), (N * M, N * M)),
    "scan": ((5 * M, 1 * M), (2 * M, 4 * M)),
    "exscan": ((4 * M, 0), (1 * M, 3 * M)),
}


@cells("name", TABLE)
def test_each_process_gave_as_much(name):
    for place, (sent, received) in zip((0, 3), TABLE[name], strict=True):
        size = 0 if name == "barrier" else M
        assert share(name, N, place, 0, sent, received) == (Form.EACH, size, 0)
        assert booked(name, Form.EACH, N, place, 0, size, 0) == (sent, received)


@pytest.mark.parametrize("name", ["allgather", "alltoall", "allreduce", "reduce_scatter_block"])
def test_who_works_in_place_leaves_itself_out(name):
    assert share(name, N, 2, 0, 4 * 7, 4 * 7) == (Form.IN_PLACE, 7, 0)


def test_roots_that_work_in_place_move_nothing_of_their_own():
    assert share("reduce", N, 1, 1, 0, 4 * M) == (Form.IN_PLACE, M, 0)
    assert share("scatter", N, 1, 1, 4 * M, 0) == (Form.IN_PLACE, M, 0)


@pytest.mark.parametrize("name", ["gatherv", "scatterv", "alltoallv", "reduce_scatter"])
def test_sizes_that_differ_are_told_as_they_are(name):
    assert share(name, N, 0, 0, 100, 300) == (Form.TOTAL, 100, 300)


def test_whatever_was_measured_is_told_exactly():
    for name in NAMES:
        for sent in range(0, 40, 3):
            for received in range(0, 40, 4):
                form, size, more = share(name, 4, 1, 1, sent, received)
                assert booked(name, form, 4, 1, 1, size, more) == (sent, received)


def test_a_communicator_of_one_process_has_no_others():
    assert share("allreduce", 1, 0, 0, 8, 8) == (Form.EACH, 8, 0)
    assert share("exscan", 1, 0, 0, 0, 0) == (Form.EACH, 0, 0)
