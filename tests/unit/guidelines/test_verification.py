from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.studies.data_frame import from_frame
from cells import cells
from collectives import PROCESSES, by_size, experiment, latencies, rows
from cpmodel_guidelines.answer import BETWEEN, COMPOSED, POOLED, PREDICTED
from cpmodel_guidelines.benchmark import benchmark_of
from cpmodel_guidelines.judge import GuidelineVerdict
from cpmodel_guidelines.rules import GuidelineKind, patterns
from cpmodel_guidelines.verification import Ask, verify
from cpmodel_guidelines.verification_text import headline

SEEDS = 40


def slow_allreduce(p):
    times = latencies(p)
    return times | {"Allreduce": 1.1 * (times["Reduce"] + times["Bcast"])}


def slow_gather(p):
    times = latencies(p)
    return times | {"Gatherv": times["Gather"] / 1.1}


def equal(p):
    """Every replacement takes exactly as long as the collective."""
    times = latencies(p)
    times["Allreduce"] = times["Barrier"] = times["Reduce"] + times["Bcast"]
    times |= {name: times[name.removesuffix("v")] for name in ("Gatherv", "Allgatherv")}
    return times | {"Scan": times["Exscan"] + times["Reduce_local"]}


def crossing(p):
    """Allgather is slower than Alltoall from p = 430 on."""
    steps = np.log2(p)
    return {"Allgather": 2 + 0.1 * p, "Alltoall": 10 + 4 * steps, "Gather": 1 + 0.05 * p,
            "Reduce": 2 * steps, "Allreduce": 3 * steps, "Bcast": 1.5 * steps}  # fmt: skip


def verified(made, **options):
    return verify(benchmark_of(made), patterns(), **options)


def violated(found):
    return {row.guideline.text for row in found.rows_that_are(GuidelineVerdict.VIOLATED)}


def row_of(found, text):
    (row,) = [row for row in found.rows if row.guideline.text == text]
    return row


# At measured scales.


@pytest.mark.parametrize(
    ("laws", "planted"),
    [(slow_allreduce, "Allreduce <= Reduce + Bcast"), (slow_gather, "Gather <= Gatherv")],
)
def test_ten_percent_at_five_percent_noise_are_found_and_nothing_else(laws, planted):
    found = [violated(verified(experiment(laws, seed=seed))) for seed in range(SEEDS)]
    assert sum(planted in each for each in found) >= 0.85 * SEEDS
    assert not any(each - {planted} for each in found)


def test_calls_that_are_disturbed_hide_nothing():
    found = [
        violated(verified(experiment(slow_gather, seed=seed, repetitions=10, disturbed=0.05)))
        for seed in range(20)
    ]
    assert sum("Gather <= Gatherv" in each for each in found) >= 15
    assert not any(each - {"Gather <= Gatherv"} for each in found)


def test_where_all_is_equal_a_violation_is_hardly_ever_told():
    found = [violated(verified(experiment(equal, seed=seed))) for seed in range(SEEDS)]
    assert sum(bool(each) for each in found) <= 0.1 * SEEDS


def test_without_noise_every_verdict_is_right():
    found = verified(experiment(latencies, noise=1e-4))
    assert {row.here.verdict for row in found.rows} == {GuidelineVerdict.HOLDS}
    found = verified(experiment(slow_gather, noise=1e-4))
    row = row_of(found, "Gather <= Gatherv")
    assert (row.here.violated, len(row.here.checks)) == (5, 5)
    assert found.here.verdicts.factor[list(row.here.checks)] == pytest.approx(1.1, rel=1e-3)
    assert violated(found) == {"Gather <= Gatherv"}


def test_a_violation_below_the_tolerance_is_none():
    made = experiment(slow_gather, noise=1e-4)
    assert violated(verified(made, tolerance=0.2)) == set()
    assert (
        row_of(verified(made, tolerance=0.2), "Gather <= Gatherv").here.verdict
        is GuidelineVerdict.HOLDS
    )


def test_what_was_measured_once_has_the_deviations_from_models_for_noise():
    once = experiment(slow_gather, repetitions=1, noise=0.005)
    assert "Gather <= Gatherv" in violated(verified(once))
    two = experiment(slow_gather, PROCESSES[:2], repetitions=1, noise=0.005)
    found = verified(two)
    assert {row.here.verdict for row in found.rows} == {GuidelineVerdict.OPEN}


def test_given_intervals_stand_for_repetitions():
    table = rows(slow_gather, repetitions=1, noise=0.0)
    for width, number in ((0.01, 5), (0.2, 0)):
        bounds = {
            "low": table["latency_us"] * (1 - width),
            "high": table["latency_us"] * (1 + width),
        }
        made = from_frame(
            table.assign(**bounds), callpath="call", parameters=["p"],
            metrics={"latency_us": "us", "low": "us", "high": "us"},
        )  # fmt: skip
        found = verify(benchmark_of(made, interval=("low", "high")), patterns())
        assert row_of(found, "Gather <= Gatherv").here.violated == number


def test_ends_that_are_no_interval_are_refused():
    made = from_frame(
        rows(latencies, repetitions=1).assign(a=1.0, b=2.0), callpath="call", parameters=["p"],
        metrics={"latency_us": "us", "a": "s", "b": "s"},
    )  # fmt: skip
    with pytest.raises(DataError, match="a and b do not enclose latency"):
        benchmark_of(made, interval=("a", "b"))
    with pytest.raises(UsageError, match="--interval cannot be used with repetitions"):
        benchmark_of(experiment(latencies), interval=("latency", "latency"))


# Sizes of messages.

SIZES = (8, 64, 512, 4096, 32768)


def test_emulations_have_their_own_sizes():
    found = verified(experiment(by_size, PROCESSES, SIZES, noise=1e-3))
    checks = row_of(found, "Allgather <= Gather + Bcast(p*m)").here.checks
    sides = {
        tuple(place.setting for place in (check.left, *check.right)): found.here.basis[k]
        for k, check in enumerate(found.here.checks)
        if k in checks
    }
    assert sides[(8.0, 8.0), (8.0, 8.0), (8.0, 64.0)] == COMPOSED
    assert sides[(16.0, 8.0), (16.0, 8.0), (16.0, 128.0)] == BETWEEN
    # 128 processes times 512 bytes exceed all measured sizes.
    assert max(left for left, *_ in sides) == (128.0, 64.0)


def test_what_lies_between_sizes_decides_only_where_both_do():
    def laws(p, m):
        return by_size(p, m) | {"Allgather": 4.5 * np.log2(p) + 3e-3 * m * p}

    found = verified(experiment(laws, (16,), (8, 64, 512), noise=1e-3))
    row = row_of(found, "Allgather <= Gather + Bcast(p*m)")
    # 16 times 8 lies between 64 and 512, with which a broadcast takes 8.08 and 8.61.
    first = row.here.checks[0]
    assert found.here.basis[first] == BETWEEN
    assert found.here.right[first] == pytest.approx((4 + 0.128 + 8.25) * 1e-6, rel=0.01)
    assert row.here.verdict is GuidelineVerdict.VIOLATED


def test_messages_that_take_longer_if_shorter_or_in_one_piece_are_found():
    def laws(p, m):
        times = by_size(p, m)
        slow = {64: 3.0, 32768: 9.0}.get(m, 1.0)
        return times | {"Bcast": slow * times["Bcast"]}

    found = verified(experiment(laws, PROCESSES, SIZES, noise=0.01))
    longer, pieces = (
        row_of(found, f"Bcast <= {what}") for what in ("longer messages", "in pieces")
    )
    assert {found.here.checks[k].left.setting[1] for k in longer.here.checks
            if found.here.verdicts.violated[k]} == {64.0}  # fmt: skip
    assert pieces.here.verdict is GuidelineVerdict.VIOLATED
    # The largest smaller size that shows the violation decides, here the next one.
    worst = found.here.checks[pieces.here.worst]
    assert (worst.left.setting[1], worst.right[0].setting[1], worst.times) == (32768, 4096, 8.0)


def test_fewer_processes_that_take_longer_are_found():
    def laws(p):
        return latencies(p) | {"Reduce": 20.0 if p == 16 else 2.2 * np.log2(p)}

    found = verified(experiment(laws, noise=0.01))
    row = row_of(found, "Reduce <= more processes")
    assert (row.here.violated, found.here.checks[row.here.worst].left.setting) == (1, (16.0,))


def test_without_sizes_longer_messages_can_only_show_that_a_guideline_holds():
    found = verified(experiment(latencies, noise=1e-3))
    texts = {row.guideline.text for row in found.rows}
    assert "Gather <= Reduce(p*m)" not in texts
    assert ("Gather <= Reduce(p*m)", ("Reduce(p*m)",)) in {
        (each.guideline.text, each.lacking) for each in found.missing
    }
    fast = verified(experiment(lambda p: latencies(p) | {"Gather": 0.1 * p**0.5}, noise=1e-3))
    assert row_of(fast, "Gather <= Reduce(p*m)").here.verdict is GuidelineVerdict.HOLDS


def test_a_barrier_is_compared_with_the_shortest_messages():
    table = rows(lambda p, m: by_size(p, m) | ({"Barrier": 9 * np.log2(p)} if m == 8 else {}),
                 PROCESSES, SIZES, noise=0.01)  # fmt: skip
    table.loc[table["call"] == "MPI_Barrier", "size"] = 0
    made = from_frame(table, callpath="call", parameters=["p", "size"], repetition="repetition",
                      metrics={"latency_us": "us"})  # fmt: skip
    found = verified(made, ask=Ask(1024.0))
    row = row_of(found, "Barrier(0) <= Allreduce(0)")
    assert (row.here.violated, row.ahead.verdict) == (5, GuidelineVerdict.VIOLATED)
    check = found.here.checks[row.here.worst]
    assert (check.left.setting[1], check.right[0].setting[1]) == (0.0, 8.0)


# At a target.


def test_a_crossing_beyond_the_measurements_is_predicted_with_its_place():
    turning, crossings, false = 0, [], 0
    for seed in range(20):
        found = verified(experiment(crossing, seed=seed), ask=Ask(2048.0))
        row = row_of(found, "Allgather <= Alltoall")
        turning += row.turns
        crossings.append(row.crossing.likely)
        false += sum(other.turns for other in found.rows if other is not row)
    assert turning >= 15
    assert np.median(crossings) == pytest.approx(430, rel=0.1)
    assert false == 0


@cells(
    ("processes", "words"),
    [
        (
            4096.0,
            "At p = 4096, 1 of 4 checks is likely violated (above 50 %), 1 of them above 80 %",
        ),
        (150.0, "At p = 150, no violation is likely: the likeliest is "),
    ],
)
def test_the_first_sentences_say_how_much_is_likely_at_the_target(processes, words):
    found = verified(experiment(crossing, noise=0.01), ask=Ask(processes))
    assert words in headline(found)


def test_what_holds_for_ever_is_predicted_to_hold():
    found = verified(experiment(crossing, noise=0.01), ask=Ask(512.0))
    assert row_of(found, "Reduce <= Allreduce").ahead.verdict is GuidelineVerdict.HOLDS
    assert row_of(found, "Gather <= Allgather").ahead.verdict is GuidelineVerdict.HOLDS
    assert set(found.ahead.basis) == {PREDICTED}


def test_a_target_that_was_run_is_told_as_measured_unless_models_are_asked():
    made = experiment(slow_gather, noise=0.01)
    found = verified(made, ask=Ask(64.0))
    assert found.is_run
    row = row_of(found, "Gather <= Gatherv")
    assert (row.ahead.verdict, len(row.ahead.checks), row.crossing) == (
        GuidelineVerdict.VIOLATED,
        1,
        None,
    )
    found = verified(made, ask=Ask(64.0, predicted=True))
    assert not found.is_run
    assert set(found.ahead.basis) <= {PREDICTED, POOLED}


def test_predictions_are_made_for_every_size_or_for_one():
    made = experiment(by_size, PROCESSES, SIZES, noise=0.01)
    ahead = row_of(verified(made, ask=Ask(512.0)), "Reduce <= Allreduce").ahead
    assert len(ahead.checks) == len(SIZES)
    one = verified(made, ask=Ask(512.0, {"size": 64.0}))
    assert {check.left.setting for check in one.ahead.checks} == {(512.0, 64.0)}
    # At p = 8, the smallest, messages of 8 times 8192 bytes were not measured.
    text = "Allgather <= Gather + Bcast(p*m)"
    found = verified(made, ask=Ask(512.0))
    assert {found.ahead.checks[k].left.setting[1] for k in row_of(found, text).ahead.checks} == {
        8.0, 64.0, 512.0, 4096.0,
    }  # fmt: skip


def test_one_number_of_processes_is_enough_if_its_noise_is_known():
    found = verified(experiment(slow_gather, processes=(8,)), ask=Ask(16.0))
    row = row_of(found, "Gather <= Gatherv")
    assert found.ahead.basis[row.ahead.worst] == POOLED
    share = {text: found.ahead.likeliest(row_of(found, text).ahead)
             for text in ("Gather <= Gatherv", "Gather <= Allgather")}  # fmt: skip
    assert share["Gather <= Gatherv"] > 2 * share["Gather <= Allgather"]
    with pytest.raises(DataError, match="single runs at so few numbers"):
        verified(experiment(slow_gather, processes=(8,), repetitions=1), ask=Ask(16.0))


def test_only_guidelines_between_functions_are_predicted():
    found = verified(experiment(crossing), ask=Ask(2048.0))
    assert {check.guideline.kind for check in found.ahead.checks} == {GuidelineKind.PATTERN}


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (Ask(np.inf), "number of processes"),
        (Ask(64.0, {"q": 1.0}), "no parameter 'q'"),
    ],
)
def test_a_target_that_makes_no_sense_is_refused(ask, words):
    with pytest.raises(UsageError, match=words):
        verified(experiment(latencies), ask=ask)


# Guidelines that cannot be checked.


def test_without_any_collective_or_any_counterpart_it_is_said():
    def laws(p):
        return {"Send": 1.0 * p}

    with pytest.raises(DataError, match="no call path is an MPI collective"):
        benchmark_of(experiment(laws))
    lonely = experiment(lambda p: {"Reduce_local": 1.0 * p})
    with pytest.raises(DataError, match="no guideline can be checked with Reduce_local"):
        verified(lonely)


def test_where_a_counterpart_is_lacking_it_is_said_in_which_group():
    def laws(p):
        return {"main/MPI_Barrier": 1.0 * p, "step/MPI_Allreduce": 1.0 * p}

    words = r"Barrier\(0\) <= Allreduce\(0\) needs Allreduce in MPI_main"
    with pytest.raises(DataError, match=words):
        verified(experiment(laws, processes=(8,)))


def test_two_call_paths_of_one_collective_have_to_be_told_apart():
    table = rows(latencies)
    twice = table.assign(call=table["call"].str.replace("MPI_Gatherv", "mpi_gather_"))
    made = from_frame(twice, callpath="call", parameters=["p"], repetition="repetition",
                      metrics={"latency_us": "us"})  # fmt: skip
    with pytest.raises(DataError, match="2 call paths are Gather"):
        benchmark_of(made)
    assert len(benchmark_of(made, select="MPI_*").functions) == 12


def test_times_of_zero_or_less_in_a_table_of_profiles_are_told():
    table = rows(latencies)
    table.loc[(table["call"] == "MPI_Bcast") & (table["p"] == 8), "latency_us"] = -1.0
    made = from_frame(table, callpath="call", parameters=["p"], repetition="repetition",
                      metrics={"latency_us": "us"})  # fmt: skip
    (found,) = [each for each in benchmark_of(made).findings() if each.code == "CPM303"]
    assert found.message == "1 setting: Bcast at p=8"
