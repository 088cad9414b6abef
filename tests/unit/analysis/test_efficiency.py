"""Factors of parallel efficiency of profiles that are written with known factors."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.efficiency_factors import PopFactor, Scheme
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.balance import PARTS, Activity, Part, activities_of
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.studies.loading import LoadOptions
from callpath_modeler.studies.study import Study
from efficient_runs import (
    BARRIER,
    MPI,
    NAMES,
    OUTPUT,
    PARALLEL,
    SOLVE,
    message_passing,
    uneven,
    write_run,
    write_series,
)

PRODUCT, SUM = Scheme.MULTIPLICATIVE, Scheme.ADDITIVE


def asked(source, target=None, *, required=True, **options):
    return (
        Study(source, **options).efficiency(target=target, is_target_required=required).efficiency
    )


def factor(found, name, estimate=-1, scheme=PRODUCT, subtree=""):
    place = [found.name(k) for k in range(len(found.rows))].index(subtree)
    return found.estimates[estimate].value[scheme, name][place]


def weak(scaling):
    return LoadOptions(ReadOptions(scaling=scaling))


def test_one_run_has_factors_without_models(tmp_path):
    path = write_run(tmp_path, "app.p4", [1] * 4, message_passing([8, 4, 4, 4], 10))
    found = asked(path)
    assert factor(found, PopFactor.BALANCE) == pytest.approx(5 / 8)
    assert factor(found, PopFactor.COMMUNICATION) == pytest.approx(0.8)
    assert factor(found, PopFactor.PARALLEL) == pytest.approx(0.5)
    assert found.factors == (
        PopFactor.PARALLEL,
        PopFactor.BALANCE,
        PopFactor.COMMUNICATION,
    )


def test_a_maximum_of_sums_is_not_a_sum_of_maxima(tmp_path):
    # The process that computes less in `solve` writes the output: together they are balanced.
    time = message_passing([4, 6, 6, 6], 8, output=2)
    found = asked(write_run(tmp_path, "app.p4", [1] * 4, time))
    assert factor(found, PopFactor.BALANCE) == pytest.approx(1)
    assert factor(found, PopFactor.COMMUNICATION) == pytest.approx(6 / 8)
    assert factor(found, PopFactor.BALANCE, subtree="main/solve") == pytest.approx(5.5 / 6)
    assert factor(found, PopFactor.BALANCE, subtree="main/output") == pytest.approx(1 / 4)


def test_losses_add_up_in_the_additive_scheme(tmp_path):
    found = asked(write_run(tmp_path, "app.p4", [1] * 4, message_passing([8, 4, 4, 4], 10)))
    balance, calling = (
        factor(found, f, scheme=SUM) for f in (PopFactor.BALANCE, PopFactor.COMMUNICATION)
    )
    assert (balance, calling) == (pytest.approx(0.7), pytest.approx(0.8))
    assert factor(found, PopFactor.PARALLEL, scheme=SUM) == pytest.approx(balance + calling - 1)


def hybrid_time():
    """Two processes of two threads: 2 s serial, then parallel regions, then MPI up to 20 s."""
    time = np.zeros((len(NAMES), 4))
    time[SOLVE, [0, 2]] = 2
    time[PARALLEL] = 10, 6, 8, 8
    time[BARRIER] = 2, 6, 0, 0
    time[MPI, [0, 2]] = 20 - 14, 20 - 10
    return time


def test_losses_of_processes_and_threads_are_apart(tmp_path):
    found = asked(write_run(tmp_path, "app.p2.t2", [2, 2], hybrid_time()))
    assert found.is_hybrid
    # Outside of MPI: 14 s and 10 s. Both workers idle for 2 s; barriers take 2 s and 6 s.
    useful = (2 + 10 + 6 + 2 + 8 + 8) / 4
    assert factor(found, PopFactor.PARALLEL) == pytest.approx(useful / 20)
    assert factor(found, PopFactor.PROCESSES) == pytest.approx(12 / 20)
    assert factor(found, PopFactor.BALANCE) == pytest.approx(12 / 14)
    assert factor(found, PopFactor.COMMUNICATION) == pytest.approx(14 / 20)
    assert factor(found, PopFactor.THREADS) == pytest.approx(useful / 12)
    assert factor(found, PopFactor.SERIAL) == pytest.approx(11 / 12)
    assert factor(found, PopFactor.REGIONS) == pytest.approx(9 / 11)


def test_both_schemes_of_hybrid_programs_agree_on_the_whole(tmp_path):
    found = asked(write_run(tmp_path, "app.p2.t2", [2, 2], hybrid_time()))
    value = {
        scheme: {f: factor(found, f, scheme=scheme) for f in found.factors} for scheme in Scheme
    }
    product, total = value[PRODUCT], value[SUM]
    assert product[PopFactor.PARALLEL] == pytest.approx(total[PopFactor.PARALLEL])
    assert product[PopFactor.PARALLEL] == pytest.approx(
        product[PopFactor.PROCESSES] * product[PopFactor.THREADS]
    )
    assert total[PopFactor.PARALLEL] == pytest.approx(
        total[PopFactor.PROCESSES] + total[PopFactor.THREADS] - 1
    )
    assert total[PopFactor.SERIAL] == pytest.approx(1 - 1 / 20)
    assert total[PopFactor.REGIONS] == pytest.approx(1 - 2 / 20)


def test_overhead_of_the_measurement_is_no_loss(tmp_path, monkeypatch):
    import efficient_runs

    names = [*NAMES]
    names[OUTPUT] = "TRACE BUFFER FLUSH"
    monkeypatch.setattr(efficient_runs, "NAMES", names)
    time = message_passing([8, 4, 4, 4], 10)
    time[OUTPUT, 2] = 50
    found = asked(write_run(tmp_path, "app.p4", [1] * 4, time))
    assert factor(found, PopFactor.PARALLEL) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("scaling", "mean", "scalability"),
    [
        (Scaling.WEAK, lambda p: 5 * p**0.5, 0.5),
        (Scaling.STRONG, lambda p: 80 * p**-0.5, 0.5),
        (Scaling.STRONG, lambda p: 80 / p, 1.0),
    ],
)
def test_computation_is_compared_as_the_scaling_demands(tmp_path, scaling, mean, scalability):
    folder = write_series(tmp_path, (4, 8, 16), mean, 0.8, lambda _: 0.9)
    found = asked(folder, load_options=weak(scaling))
    assert found.reference.scaling is scaling
    assert factor(found, PopFactor.SCALABILITY, 0) == pytest.approx(1)
    assert factor(found, PopFactor.SCALABILITY) == pytest.approx(scalability)
    assert factor(found, PopFactor.GLOBAL) == pytest.approx(scalability * 0.72)


def test_scaling_is_recognised_as_for_excess_work(tmp_path):
    found = asked(write_series(tmp_path, (4, 8, 16), lambda p: 80 / p, 0.8, lambda _: 0.9))
    assert found.reference.scaling is Scaling.STRONG


def test_counters_explain_the_scalability(tmp_path):
    # Twice the instructions, at half the IPC, at 0.8 of the frequency.
    for p, instructions, cycles, seconds in ((2, 1000, 500, 1.0), (4, 2000, 2000, 5.0)):
        counters = {name: np.zeros((len(NAMES), p)) for name in ("PAPI_TOT_INS", "PAPI_TOT_CYC")}
        counters["PAPI_TOT_INS"][SOLVE] = instructions
        counters["PAPI_TOT_CYC"][SOLVE] = cycles
        # Instructions of waiting are not instructions of the computation.
        counters["PAPI_TOT_INS"][MPI] = 12345
        time = message_passing([seconds] * p, 6)
        write_run(tmp_path, f"app.p{p}", [1] * p, time, counters)
    found = asked(tmp_path, load_options=weak(Scaling.WEAK))
    assert factor(found, PopFactor.INSTRUCTIONS) == pytest.approx(0.5)
    assert factor(found, PopFactor.IPC) == pytest.approx(0.5)
    assert factor(found, PopFactor.FREQUENCY) == pytest.approx(0.8)
    assert factor(found, PopFactor.SCALABILITY) == pytest.approx(0.2)


def test_factors_at_the_target_follow_the_parts(tmp_path):
    # With c = 1 + 0.02 p of communication, the efficiency is 0.8 / 1 of it.
    folder = write_series(
        tmp_path, (4, 8, 16, 32, 64), lambda _: 8.0, 0.8, lambda p: 1 / (1 + 0.02 * p)
    )
    found = asked(folder, "256", load_options=weak(Scaling.WEAK))
    last = found.last
    assert last.is_predicted
    assert factor(found, PopFactor.BALANCE) == pytest.approx(0.8, rel=1e-3)
    assert factor(found, PopFactor.COMMUNICATION) == pytest.approx(1 / 6.12, rel=0.01)
    for name in found.factors:
        low, high = last.low[PRODUCT, name][0], last.high[PRODUCT, name][0]
        assert low <= last.value[PRODUCT, name][0] <= high


def test_bands_hold_the_truth_and_stay_within_the_bounds(tmp_path):
    folder = write_series(
        tmp_path, (4, 8, 16, 32, 64), lambda _: 8.0, 0.8, lambda p: 1 / (1 + 0.02 * p),
        noise=0.03, repetitions=3,
    )  # fmt: skip
    found = asked(folder, "512", load_options=weak(Scaling.WEAK))
    last = found.last
    low, high = (
        last.low[PRODUCT, PopFactor.COMMUNICATION][0],
        last.high[PRODUCT, PopFactor.COMMUNICATION][0],
    )
    assert low <= 1 / (1 + 0.02 * 512) <= high
    for scheme in Scheme:
        for name in (
            PopFactor.PARALLEL,
            PopFactor.BALANCE,
            PopFactor.COMMUNICATION,
        ):
            ends = last.low[scheme, name], last.value[scheme, name], last.high[scheme, name]
            assert all(((end >= 0) & (end <= 1)).all() for end in (e[~np.isnan(e)] for e in ends))
    assert ((last.share >= 0) & (last.share <= 1)).all()


def test_a_measured_target_is_not_predicted(tmp_path):
    folder = write_series(tmp_path, (4, 8, 16, 32), lambda _: 8.0, 0.8, lambda _: 0.9)
    assert not asked(folder, "32").last.is_predicted


def test_repetitions_give_a_range(tmp_path):
    folder = write_series(
        tmp_path, (4, 8), lambda _: 8.0, 0.8, lambda _: 0.9, noise=0.1, repetitions=3
    )
    last = asked(folder).last
    low, high = (
        last.low[PRODUCT, PopFactor.PARALLEL][0],
        last.high[PRODUCT, PopFactor.PARALLEL][0],
    )
    assert low < last.value[PRODUCT, PopFactor.PARALLEL][0] < high


def test_ignored_call_paths_are_no_part_of_the_program(tmp_path):
    path = write_run(tmp_path, "app.p4", [1] * 4, message_passing([8, 4, 4, 4], 10))
    found = asked(path, load_options=LoadOptions(ignore="**/MPI_Allreduce"))
    assert factor(found, PopFactor.COMMUNICATION) == pytest.approx(1)


def test_several_processes_without_communication_have_no_factors(tmp_path):
    time = message_passing([8, 4, 4, 4], 10)
    path = write_run(tmp_path, "app.p4", [1] * 4, time)
    named = (
        path.read_bytes()
        .replace(b"MPI_Allreduce", b"XYZ_Allreduce")
        .replace(b"<paradigm>mpi<", b"<paradigm>usr<")
    )
    path.write_bytes(named)
    with pytest.raises(DataError, match="4 processes, but no call of MPI"):
        asked(path)


def test_one_process_needs_no_communication(tmp_path):
    time = np.zeros((len(NAMES), 2))
    time[SOLVE, 0] = 2
    time[PARALLEL] = 6, 4
    time[BARRIER] = 0, 2
    found = asked(write_run(tmp_path, "app.t2", [2], time))
    assert factor(found, PopFactor.PROCESSES) == pytest.approx(1)
    assert factor(found, PopFactor.THREADS) == pytest.approx(12 / 16)


def test_a_target_needs_enough_scales(tmp_path):
    path = write_run(tmp_path, "app.p4", [1] * 4, message_passing([8, 4, 4, 4], 10))
    with pytest.raises(DataError, match="one scale"):
        asked(path, "1024")
    assert not asked(path, "1024", required=False).last.is_predicted


def test_efficiency_has_no_value_at_infinity(tmp_path):
    folder = write_series(tmp_path, (4, 8, 16, 32), lambda _: 8.0, 0.8, lambda _: 0.9)
    with pytest.raises(UsageError, match="infinity"):
        asked(folder, "inf")


def test_the_memory_limits_the_number_of_subtrees(tmp_path, monkeypatch):
    path = write_run(tmp_path, "app.p4", [1] * 4, message_passing([8, 4, 4, 4], 10))
    whole = asked(path)
    monkeypatch.setattr("callpath_modeler.readers.threads._MOST", 2)
    answer = Study(path).efficiency()
    assert len(answer.efficiency.rows) == 3 < len(whole.rows)
    assert [f.message for f in answer.findings if f.code == "CPM171"] == ["2 subtrees of 4"]
    for name in answer.efficiency.factors:
        assert factor(answer.efficiency, name) == factor(whole, name)


@pytest.mark.parametrize(
    ("name", "factors"),
    [
        ("blast.p64.r1", (0.934, 0.801, 0.748)),
        ("kripke.p8.d2.g32.r1", (0.997, 0.938, 0.935)),
        ("time.p4.n2000.x1.r0", (0.994, 0.440, 0.438)),
    ],
)
def test_measured_profiles_have_the_factors_of_cube(shared_data, name, factors):
    folder = shared_data / "third_party/cubex/pycubexr" / name
    if not folder.is_dir():
        pytest.skip(f"needs {name} in ../shared/data")
    found = asked(folder)
    told = [
        factor(found, f)
        for f in (
            PopFactor.BALANCE,
            PopFactor.COMMUNICATION,
            PopFactor.PARALLEL,
        )
    ]
    assert told == pytest.approx(factors, abs=6e-4)


def test_other_parameters_are_held_at_their_largest_value(tmp_path):
    for size, balance in ((10, 0.5), (20, 0.8)):
        for p in (2, 4, 8):
            longest = 8 / balance
            time = message_passing(uneven(p, 8.0, longest), longest / 0.9)
            write_run(tmp_path, f"app.p{p}.n{size}", [1] * p, time)
    answer = Study(tmp_path).efficiency()
    assert factor(answer.efficiency, PopFactor.BALANCE) == pytest.approx(0.8)
    assert [f.message for f in answer.findings if f.code == "CPM206"]
    other = Study(tmp_path).efficiency(at="n=10").efficiency
    assert factor(other, PopFactor.BALANCE) == pytest.approx(0.5)
    with pytest.raises(UsageError, match="no run is at n = 15"):
        Study(tmp_path).efficiency(at="n=15")


def test_computation_is_not_compared_over_sizes(tmp_path):
    for size in (10, 20, 40):
        time = message_passing([size * 1.0] * 4, size / 0.9)
        write_run(tmp_path, f"app.p4.n{size}", [1] * 4, time)
    found = asked(tmp_path)
    assert found.line.parameter == "n"
    assert found.reference is None
    assert found.factors == (
        PopFactor.PARALLEL,
        PopFactor.BALANCE,
        PopFactor.COMMUNICATION,
    )


def test_threads_are_the_workers_if_the_number_of_processes_is_constant(tmp_path):
    for threads in (1, 2, 4):
        time = np.zeros((len(NAMES), 2 * threads))
        time[PARALLEL] = 8 / threads
        time[MPI, ::threads] = 2
        write_run(tmp_path, f"app.p2.threads{threads}", [threads] * 2, time)
    found = asked(tmp_path, load_options=weak(Scaling.STRONG))
    assert found.line.parameter == "threads"
    assert found.threads.tolist() == [2, 4, 8]
    assert factor(found, PopFactor.SCALABILITY) == pytest.approx(1)
    assert factor(found, PopFactor.PROCESSES) == pytest.approx(2 / 4)
    assert factor(found, PopFactor.THREADS) == pytest.approx(1)


def test_predictions_hold_what_was_measured_at_the_target(samples):
    """A call path with root-only work grows until the target, where the program was measured."""
    found = asked(samples / "stencil", "1024")
    measured = asked(samples / "stencil.p1024")
    truth = {name: factor(measured, name) for name in (PopFactor.PARALLEL, PopFactor.BALANCE)}
    run_time = measured.ingredients[0, 0, 0, :PARTS].sum()
    truth[PopFactor.GLOBAL] = found.reference.ingredients[0, Part.USEFUL] / run_time
    for name in (PopFactor.GLOBAL, PopFactor.PARALLEL, PopFactor.BALANCE):
        low, high = found.last.low[PRODUCT, name][0], found.last.high[PRODUCT, name][0]
        assert low <= truth[name] <= high, name


def test_efficiency_at_a_target_has_the_numbers_of_the_ranking(samples):
    found = asked(samples / "stencil", "1024")
    ranking = Study(samples / "stencil").ranking(target=1024)
    run_time, low, high = ranking.program_total
    base = found.reference.ingredients[0, Part.USEFUL]
    assert factor(found, PopFactor.GLOBAL) == pytest.approx(base / run_time)
    last, name = found.last, (PRODUCT, PopFactor.GLOBAL)
    assert (last.low[name][0], last.high[name][0]) == pytest.approx(
        (base / high, base / low), rel=0.01
    )
    tree = ranking.fitted.experiment.tree
    computes = activities_of(tree) == Activity.COMPUTATION
    useful = np.nansum(ranking.value[computes])
    assert factor(found, PopFactor.SCALABILITY) == pytest.approx(base / useful)
    assert factor(found, PopFactor.PARALLEL) == pytest.approx(useful / run_time)


def test_a_subtree_takes_at_least_its_call_paths_and_at_most_the_program(samples):
    found = asked(samples / "stencil", "1024")
    ranking = Study(samples / "stencil").ranking(target=1024, inclusive=True)
    share = found.last.share
    assert np.nanmax(share) <= 1 + 1e-12
    least = ranking.value[found.rows[1:]] / ranking.program_total[0]
    known = np.isfinite(share[1:] * least)
    assert (share[1:] >= least - 1e-3)[known].all()
    assert known.sum() > 10


def test_far_beyond_the_data_bands_are_wide(samples):
    last = asked(samples / "lulesh", "100000").last
    for name in (PopFactor.GLOBAL, PopFactor.PARALLEL, PopFactor.BALANCE, PopFactor.COMMUNICATION):
        low, value, high = (each[PRODUCT, name][0] for each in (last.low, last.value, last.high))
        assert 0 <= low < value < high <= 1
        assert high > 3 * low
