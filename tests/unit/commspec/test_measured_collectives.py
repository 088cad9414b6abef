"""Collectives with measured times in a replay."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from cells import cells
from cpmodel_commspec.collectives import NAMES
from cpmodel_commspec.operations import Communicator, Form, Kind, Recorded, Shape
from cpmodel_commspec.replay.loggp import Call, CollectiveTimes, Stretched, replay
from cpmodel_commspec.replay.measured import Modelled, measured_calls
from cpmodel_commspec.replay.platform import PRESETS, Platform

NETWORK = PRESETS["infiniband"]
FREE = Platform("free", 0, 0, 0, 0, 2**62)
SIZES = (0, 8, 5000, 100_000)


def same(seconds, asked=None):
    """Return a measured time for all calls, executed as the function itself."""

    def measured(name, n, size):
        if asked is not None:
            asked.append((name, n, size))
        return Stretched(((name, size),), seconds)

    return measured


def leaving(call, entered, measured, network=NETWORK):
    n = len(entered)
    found = CollectiveTimes(network, measured=measured)
    return found.leave(call, np.array(entered, float), np.zeros(n))[0]


def call(name, n=5, size=8, root=0):
    return Call(name, root, np.full(n, size, np.int64))


@cells("name", NAMES)
def test_members_that_begin_together_leave_after_the_measured_time(name):
    for size in SIZES:
        for n in (2, 5, 8):
            left = leaving(call(name, n, size), [3.0] * n, same(0.25))
            assert left.max() == pytest.approx(3.25)
            assert left.min() > 3.0


@cells("name", NAMES)
def test_a_late_member_delays_nobody_beyond_the_measured_time(name):
    entered = np.array([0.0, 0.5, 2.0, 0.1, 0.3])
    left = leaving(call(name, size=100), entered, same(0.25))
    assert (left > entered).all()
    assert left.max() <= 2.25 + 1e-12


def test_the_root_of_a_broadcast_does_not_wait_for_the_others():
    left = leaving(call("bcast", root=2), [9.0, 9.0, 0.0, 9.0, 9.0], same(0.25))
    assert left[2] < 1
    assert left.max() < 9.25


def test_all_members_wait_for_all_if_no_function_is_told():
    left = leaving(call("bcast"), [0.0, 4.0, 1.0, 0.0, 0.0], lambda *_: Stretched((), 0.5))
    assert left.tolist() == [4.5] * 5


def test_a_network_without_times_and_a_single_member_take_the_measured_time():
    assert leaving(call("allreduce"), [0.0, 4.0, 1, 0, 0], same(0.5), FREE).tolist() == [4.5] * 5
    assert leaving(call("allreduce", 1), [2.0], same(0.5)).tolist() == [2.5]


def test_another_way_has_the_messages_of_its_parts():
    def way(*_):
        return Stretched((("reduce", 8), ("bcast", 8)), 0.25)

    late = [0.0, 0.0, 0.0, 0.0, 2.0]
    for root in (0, 3):
        assert leaving(call("reduce", root=root), [1.0] * 5, way).max() == pytest.approx(1.25)
    # A reduction alone lets the first leaves go.
    assert leaving(call("reduce"), late, way).min() > 2
    assert leaving(call("reduce"), late, same(0.25)).min() < 1


def shapes(*rows):
    return [Shape(kind, name, 0, form=form) for kind, name, form in rows]


def program(*rows, ranks=4, sizes=None):
    """Return shapes, communicators and ranks that call each operation once, with 8 bytes."""
    n = len(rows)
    values = np.zeros((ranks, n, 7), np.int64)
    values[:, :, 2:4] = 8 if sizes is None else np.array(sizes)[:, None, None]
    every = [Recorded(np.arange(n), values[r], np.full(n, 1e-3)) for r in range(ranks)]
    return shapes(*rows), [Communicator("WORLD", (tuple(range(ranks)),))], every


def test_only_blocking_collectives_of_equal_sizes_are_measured():
    asked = []
    told = program(
        (Kind.COLLECTIVE, "allreduce", Form.EACH),
        (Kind.ICOLLECTIVE, "allreduce", Form.EACH),
        (Kind.WAIT, "", Form.EACH),
        (Kind.HANDLE, "MPI_Comm_dup", Form.EACH),
    )
    found = replay(*told, NETWORK, measured=same(0.5, asked))
    assert asked == [("allreduce", 4, 8)]
    assert {key: one.calls for key, one in found.collectives.items()} == {
        ("allreduce", 4, 8): 1, ("", 4, 8): 1, ("", 4, 0): 1,
    }  # fmt: skip
    assert found.calling[0][0] == pytest.approx(0.5)
    uneven = program((Kind.COLLECTIVE, "allgatherv", Form.TOTAL), sizes=(8, 80, 8, 8))
    found = replay(*uneven, NETWORK, measured=same(0.5, asked))
    assert [*found.collectives] == [("allgatherv", 4, -1)]
    assert len(asked) == 1
    assert found.seconds == replay(*uneven, NETWORK).seconds


class Times:
    """Made times: allreduce is measured and has a faster way, reduce has none."""

    mpiruns, power, findings = 5, "5 mpiruns find all.", ()

    def at(self, name, _n, size):
        way = SimpleNamespace(
            parts=(("reduce", size), ("bcast", size)),
            seconds=(0.16, 0.1, 0.06),
            guideline="Allreduce <= Reduce + Bcast",
        )
        of = {"allreduce": (0.2, way), "reduce": (0.05, None)}
        if name not in of:
            return "not measured"
        value, instead = of[name]
        ends = value / 2, value, value * 2
        return SimpleNamespace(
            parts=((name, size),), seconds=ends, instead=instead, guideline="", is_judged=True
        )


def test_the_cost_of_a_violated_guideline_is_the_difference_of_two_replays():
    told = program(
        *((Kind.COLLECTIVE, name, Form.EACH) for name in ("allreduce", "reduce", "scan"))
    )
    without = replay(*told, NETWORK).seconds
    base, found = measured_calls(
        Times(), ["bench"], lambda known: replay(*told, NETWORK, measured=known), without
    )
    assert (found.calls, found.measured_calls, found.judged_calls, found.other_roots) == (
        3,
        2,
        2,
        0,
    )
    assert found.modelled == (Modelled("scan", 4, "not measured", 1),)
    assert base.seconds == pytest.approx(0.25, rel=0.1)
    assert found.low == pytest.approx(0.125, rel=0.1)
    assert found.high == pytest.approx(0.5, rel=0.1)
    (saving,) = found.savings
    assert (saving.function, saving.calls) == ("allreduce", 1)
    assert saving.guidelines == ("Allreduce <= Reduce + Bcast",)
    # 0.2 - 0.1; lower end 0.1 - 0.16 s, upper end 0.4 - 0.06 s.
    assert (saving.low, saving.seconds, saving.high) == pytest.approx((-0.06, 0.1, 0.34), abs=3e-3)
    assert found.seconds_without == without
