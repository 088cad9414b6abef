"""Formulas of the number of processes: quantities, forms, conditions, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.errors import DataError
from cells import cells
from communication import WORLD, recorded, traced
from cpmodel_commspec.checking import differences
from cpmodel_commspec.operations import Traced
from cpmodel_commspec.scalable.building import UnexplainedError
from cpmodel_commspec.scalable.conditions import Part
from cpmodel_commspec.scalable.conditions import find as find_condition
from cpmodel_commspec.scalable.expansion import expanded, scale_at
from cpmodel_commspec.scalable.extrapolation import extrapolate
from cpmodel_commspec.scalable.numbers import Sample, find
from cpmodel_commspec.scalable.quantities import Unfit, fit
from cpmodel_commspec.scalable.scales import Order, Scale, even, features, other_grids
from cpmodel_commspec.scalable.times import ENDING, Key
from patterns import even_grid, stencil2, stencil3
from trace_writer import Comm

LINE = [Scale(p) for p in (4, 8, 16)]
GRID = [Scale(2, 2), Scale(2, 4), Scale(4, 4)]


def texts(scales, values, dimensions, **options):
    return [str(one) for one in fit(scales, values, dimensions, **options)]


@cells(
    ("scales", "values", "text"),
    [
        (LINE, (7, 7, 7), "7"),
        (LINE, (3, 7, 15), "p - 1"),
        ([*LINE, Scale(32)], (12, 18, 42, 138), "10 + (p * p) / 8"),
        ([*LINE, Scale(24)], (2, 3, 4, 5), "ceil(log2(p)) | ceil(sqrt(p))"),
        ([*LINE, Scale(32)], (2, 3, 4, 5), "log2(p)"),
        ([*LINE, Scale(32)], (2, 3, 4, 6), "ceil(sqrt(p))"),
        ([*LINE, Scale(12)], (2, 3, 4, 3), "floor(log2(p))"),
        ([*GRID, Scale(4, 8)], (221184, 110592, 27648, 13824), "1769472 / (p * x)"),
        (LINE, (2, 3, 4), "log2(p) | ceil(sqrt(p))"),
        (LINE, (2**18, 2**16, 2**14), "4194304 / (p * p)"),
        (LINE, (2, 4, 8), "p / 2"),
        (LINE, (104, 56, 32), "8 + 384 / p"),
        (GRID, (2048, 2048, 1024), "4096 / x"),
        (GRID, (2, 4, 4), "y"),
    ],
)
def test_a_formula_is_exact_and_the_simplest(scales, values, text):
    found = texts(scales, values, (scales[0] != Scale(4) and 2) or 1)
    assert " | ".join(found) == text


def test_numbers_that_the_largest_trace_refutes_have_no_formula():
    assert fit(LINE, (100, 37, 1000), 1) == []
    # Two terms fit the first two traces, and the third one is a test of them.
    assert fit(LINE, (3, 7, 16), 1) == []
    # A difference of two growths fits these traces, and is below zero at p = 64.
    grids = [*GRID, Scale(8, 4)]
    assert (
        fit(grids, [1327104 // x.processes - 110592 // x.y for x in grids], 2, is_size=True) == []
    )


def test_a_logarithm_and_a_quotient_have_values_where_these_are_whole():
    [rounds] = fit([*LINE, Scale(32)], (2, 3, 4, 5), 1)
    assert rounds.value(Scale(64)) == 6
    with pytest.raises(Unfit, match=r"log2\(p\) is no whole number"):
        rounds.value(Scale(12))
    [half] = fit(LINE, (2, 4, 8), 1)
    with pytest.raises(Unfit, match="p / 2 is no whole number"):
        half.value(Scale(9))


def test_sizes_are_rounded_down_to_whole_elements_of_given_bytes():
    [size] = fit(GRID, (2048, 2048, 1024), 2, is_size=True)
    with pytest.raises(Unfit, match="no trace tells how it is rounded"):
        size.value(Scale(3, 3))
    [size] = fit(GRID, (2048, 2048, 1024), 2, is_size=True, unit=8)
    assert [size.value(Scale(x, 3)) for x in (3, 5, 8)] == [1360, 816, 512]
    assert [size.is_rounded(Scale(x, 3)) for x in (3, 5, 8)] == [True, True, False]
    # Whole bytes can be parts of elements.
    [size] = fit(LINE, (28000, 14000, 7000), 1, is_size=True, unit=8)
    assert size.value(Scale(32)) == 3496
    [size] = fit(LINE, (28000, 14000, 7000), 1, is_size=True)
    assert (size.value(Scale(32)), size.is_part(Scale(32))) == (3500, True)


def test_traces_with_quotients_of_elements_decide_how_sizes_are_rounded():
    scales = [Scale(p) for p in (4, 9, 12, 16)]
    values = [512 // scale.x * 8 for scale in scales]
    samples = [
        Sample(scale, np.full(2, value), {}) for scale, value in zip(scales, values, strict=True)
    ]
    size = find(samples, 1, (), is_size=True)
    assert str(size) == "8 * (512 / p)"
    for p in (5, 7, 11):
        assert size.values(Scale(p), {}, 1).tolist() == [512 // p * 8]
    # Elements of another size that fit as well are known.
    assert str(size.others[0]) == "16 * (256 / p)"


@cells(
    ("share", "text"),
    [
        (lambda n, p, r: n // p + (r < n % p), "8 * (1000 / p + (rank < 1000 % p))"),
        (
            lambda n, p, r: (r + 1) * n // p - r * n // p,
            "8 * ((rank + 1) * 1000 / p - rank * 1000 / p)",
        ),
        (
            lambda n, p, r: n // p + (r == p - 1) * (n % p),
            "8 * (1000 / p + (rank == p - 1) * (1000 % p))",
        ),
        (
            lambda n, p, r: np.clip(n - r * -(-n // p), 0, -(-n // p)),
            "8 * (block_up(1000, p, rank))",
        ),
    ],
)
def test_uneven_blocks_are_found(share, text):
    samples = [
        Sample(Scale(p), 8 * share(1000, p, np.arange(p)), features(Scale(p), np.arange(p), ()))
        for p in (4, 8, 16, 32)
    ]
    found = find(samples, 1, ("rank",), is_size=True)
    assert str(found) == text
    at_12 = found.values(Scale(12), features(Scale(12), np.arange(12), ()), 12)
    assert at_12.tolist() == (8 * share(1000, 12, np.arange(12))).tolist()


def test_quotients_by_several_sizes_are_not_rounded():
    [size] = fit(GRID, (65536 // 4, 65536 // 8, 65536 // 16), 2, is_size=True, unit=8)
    assert size.value(Scale(8, 8)) == 1024
    with pytest.raises(Unfit, match="no trace tells how it is rounded"):
        size.value(Scale(3, 4))


def test_equally_simple_formulas_are_all_returned():
    squares = [Scale(n, n) for n in (2, 3, 4)]
    assert texts(squares, (12, 8, 6), 2) == ["24 / x", "24 / y"]


@cells("processes", [1, 6, 12, 24, 36, 64, 72, 97])
def test_an_even_grid_is_the_most_even_one(processes):
    for dimensions in (1, 2, 3):
        grid = even(processes, dimensions, Order.DOWN)
        assert grid.processes == processes
        assert list(grid.sizes[:dimensions]) == sorted(grid.sizes[:dimensions], reverse=True)
        assert (
            even(processes, dimensions, Order.UP).sizes[:dimensions]
            == (grid.sizes[:dimensions][::-1])
        )
    assert even(72, 2, Order.DOWN) == Scale(9, 8)


def test_conditions_hold_on_every_grid():
    def parts(chosen):
        found = []
        for scale in GRID:
            ranks = np.arange(scale.processes)
            x, y, _ = scale.places(ranks)
            found.append(Part(scale, ranks, chosen(scale, x, y)))
        return found

    for chosen in (
        lambda _s, x, _y: x > 0,
        lambda s, x, y: (x == 0) | (y == s.y - 1),
        lambda s, x, y: (x > 0) & (y < s.y - 1),
        lambda _s, x, y: x == y,
        lambda s, x, y: (x + s.x * y) % 2 == 1,
    ):
        found = find_condition(parts(chosen), 2)
        assert found is not None
        scale = Scale(4, 8)
        x, y, z = scale.places(np.arange(32))
        of = {"rank": np.arange(32), "x": x, "y": y, "z": z}
        assert (found.holds(scale, of) == chosen(scale, x, y)).all()
    noise = np.random.default_rng(3)
    assert find_condition(parts(lambda _s, x, _y: noise.random(len(x)) < 0.5), 2) is None


def test_formulas_that_fit_all_traces_and_differ_elsewhere_are_refused(tmp_path):
    # x is y in all traces.
    traces = [recorded(traced(tmp_path / str(p), p, stencil3)) for p in (8, 16, 64)]
    told = extrapolate(traces).told
    with pytest.raises(
        DataError, match=r"18432 / \(x \* z\) and 18432 / \(y \* z\) fit all traces"
    ):
        expanded(told, scale_at(told, 32))
    there = expanded(told, scale_at(told, 128, (4, 4, 8)))
    assert there.processes == 128


def test_ranks_without_a_common_condition_are_named(tmp_path):
    def program(rank):
        with rank.region("odd"):
            if rank.rank in {4: (1, 2), 8: (0, 3, 4), 16: (2, 7, 11, 12)}[rank.ranks]:
                rank.collective("allreduce", 8, 8, comm=alone)

    alone = Comm("alone")
    traces = [recorded(traced(tmp_path / str(p), p, program, {"alone": None})) for p in (4, 8, 16)]
    with pytest.raises(UnexplainedError) as caught:
        extrapolate(traces)
    [problem] = [one for one in caught.value.problems if one.what == "who takes part"]
    assert problem.reason == ("ranks 1 2 at p = 4, ranks 0 3 4 at p = 8, ranks 2 7 11 12 at p = 16")


def computing(seconds):
    """Return a program that computes before a barrier, and before rounds of sums."""

    def program(rank):
        first, further = seconds(rank.ranks)
        rank._now += int(2e9 * first)
        rank.collective("barrier", 0, 0)
        for step in range(4):
            rank._now += int(1e9 * (3 * further if step == 0 else further))
            rank.collective("allreduce", 8 * rank.ranks, 8 * rank.ranks)

    return program


def test_computation_follows_a_performance_model(tmp_path):
    def seconds(p):
        return 1e-3 + 8e-3 / p, 1e-4 * np.log2(p)

    traces: list[Traced] = [
        recorded(traced(tmp_path / str(p), p, computing(seconds))) for p in (4, 8, 16, 32)
    ]
    found = extrapolate(traces)
    scale = scale_at(found.told, 128)
    bands = found.times.bands(scale)
    first, further = seconds(128)
    for key, value in (
        (Key(1), 2 * first),
        (Key(3, True), 3 * further),
        (Key(3, False), further),
    ):
        assert bands[key].value == pytest.approx(value, rel=0.05)
        assert bands[key].low <= value * 1.01
        assert bands[key].high >= value * 0.99
    assert Key(ENDING) in bands
    there = expanded(found.told, scale, found.times)
    assert [*differences(there, there)] == []
    for one in there.ranks:
        assert one.computing.sum() == pytest.approx(2 * first + 6 * further, rel=0.05)


def computation_at(folder, program, processes, traces=(4, 8, 16)):
    """Return the seconds that each rank computes at another scale."""
    found = extrapolate([recorded(traced(folder / str(p), p, program)) for p in traces])
    there = expanded(found.told, scale_at(found.told, processes), found.times)
    return np.array([one.computing.sum() + one.last for one in there.ranks])


def test_time_before_the_first_message_of_a_step_counts_once_on_ranks_at_borders(tmp_path):
    def program(rank):
        # Ranks at the border leave out the first calls of the others.
        rank._now += int(1e9 * 0.064 / rank.ranks)
        stencil2(rank)

    found = computation_at(tmp_path, program, 64)
    assert found == pytest.approx(np.full(64, 0.001), rel=0.03)


def test_serial_work_of_one_rank_grows_with_the_processes(tmp_path):
    def program(rank):
        p, is_root = rank.ranks, rank.rank == 0
        for _ in range(5):
            rank.collective("allreduce", 8 * p, 8 * p)
            rank._now += int(5e3 * p) * is_root
            rank.collective("bcast", 8 * p * is_root, 8, root=0)

    found = computation_at(tmp_path, program, 64)
    assert found[0] == pytest.approx(5 * 320e-6, rel=0.02)
    assert (found[1:] < 1e-6).all()


def test_a_loop_of_more_rounds_shares_the_work_of_all(tmp_path):
    def program(rank):
        p, rounds = rank.ranks, rank.ranks.bit_length() - 1
        for _ in range(3):
            for k in range(rounds):
                rank._now += int(1e9 * 0.048 / p / rounds)
                sent = ("mpi_send", rank.rank ^ 1 << k, WORLD, 0, 8)
                rank.call("MPI_Sendrecv", sent, ("mpi_recv", rank.rank ^ 1 << k, WORLD, 0, 8))
            rank.collective("barrier", 0, 0)

    found = computation_at(tmp_path, program, 64)
    assert found == pytest.approx(np.full(64, 3 * 0.048 / 64), rel=0.02)


@pytest.mark.parametrize("name", ["ring", "stencil", "ft", "cg", "subcomm", "lu", "master"])
def test_measured_traces_give_the_one_of_32_processes(name, shared_data):
    from cpmodel_commspec.simulation.wildcards import resolved

    folder = shared_data / "traces"
    found = extrapolate([recorded(folder / f"{name}.{p}" / "traces.otf2") for p in (4, 8, 16)])
    there = expanded(found.told, scale_at(found.told, 32), found.times)
    trace = resolved(recorded(folder / f"{name}.32" / "traces.otf2")).traced
    assert list(differences(there, trace)) == []


def test_partners_over_an_end_that_does_not_meet_the_other_do_not_exist(tmp_path):
    def pairs(rank):
        with rank.region("pairs"):
            for _ in range(3):
                if rank.rank % 2:
                    rank.receive(rank.rank - 1, 56)
                else:
                    rank.send(rank.rank + 1, 56)

    told = extrapolate(traces_of(pairs, tmp_path)).told
    with pytest.raises(DataError, match="rank 8 has no partner"):
        expanded(told, scale_at(told, 9))


def test_a_sum_and_a_block_that_differ_are_told_with_the_trace_that_decides(tmp_path):
    def ghosts(rank):
        p = rank.ranks
        for _ in range(3):
            rank.exchange((rank.rank + 1) % p, (rank.rank - 1) % p, 8 * (256 // p + 2))

    told = extrapolate(traces_of(ghosts, tmp_path)).told
    with pytest.raises(DataError, match="fit all traces, and differ here") as caught:
        expanded(told, scale_at(told, 12))
    assert "p = 5, which decides" in caught.value.hint


def answers(rank):
    for _ in range(3):
        with rank.region("serve"):
            if rank.rank:
                rank.send(0, 32)
                rank.receive(0, 64, tag=1)
            else:
                for source in range(1, rank.ranks):
                    rank.receive(source, 32)
                    rank.send(source, 64, tag=1)


def test_ranks_that_answer_each_message_are_refused_unless_receives_name_their_sources(tmp_path):
    traces = traces_of(answers, tmp_path)
    with pytest.raises(DataError, match="rank 0 answers the source of each message") as caught:
        extrapolate(traces)
    assert "--named-sources" in caught.value.hint
    told = extrapolate(traces, is_named=True).told
    there = recorded(traced(tmp_path / "12", 12, answers))
    assert list(differences(expanded(told, scale_at(told, 12)), there)) == []


def test_a_program_that_the_smaller_traces_give_otherwise_is_refused(tmp_path):
    def few_rows(rank):
        p, me = rank.ranks, rank.rank
        x = even_grid(p, 2)[1]
        begin = me // x * x
        for _ in range(3):
            with rank.region("columns"):
                rank.exchange((me + x) % p, (me - x) % p, 400)
            if me // x < 4:
                with rank.region("rows"):
                    rank.exchange(begin + (me + 1) % x, begin + (me - 1) % x, 200)

    with pytest.raises(DataError, match="the smaller traces give another program of p = 32"):
        extrapolate(traces_of(few_rows, tmp_path, (4, 8, 16, 32)))


def test_grids_that_libraries_choose_otherwise_are_named():
    assert other_grids(GRID, 2, Order.UP, Scale(8, 8)) == []
    [told] = other_grids(GRID, 2, Order.UP, Scale(8, 9))
    assert "Open MPI may choose p = 72 (6 x 12)" in told
    [told] = other_grids(GRID, 2, Order.UP, Scale(3, 3))
    assert "SimGrid and old Open MPI may choose p = 9 (1 x 9)" in told
    assert other_grids([*GRID, Scale(3, 3)], 2, Order.UP, Scale(5, 5)) == []


def traces_of(program, folder, processes=(4, 8, 16)):
    return [recorded(traced(folder / str(p), p, program)) for p in processes]
