from __future__ import annotations

import gzip

import numpy as np
import pytest

from callpath_modeler.errors import InputError, UsageError
from cells import cells
from cpmodel_guidelines.nrep import parse_batches, parse_criteria, repetitions_of
from cpmodel_guidelines.statistics.repetition_count import (
    CRITERIA,
    Criterion,
    batches,
    relative_standard_error,
    repetition_count,
    variation_of_means,
    variation_of_medians,
    without_tukey_outliers,
)
from cpmodel_guidelines.suites.files import benchmark_files, read_campaign

PUBLISHED = [10, 25, 50, 95, 180, 345, 670, 1000]
HEAD = (
    "#@nprocs=4\n#@pred_nrep_min=10\n#@pred_nrep_max=1000\n#@pred_nrep_stride=5\n"
    "test nrep count mean_runtime_sec median_runtime_sec pred_method pred_value\n"
)


def times(count, seed=0, noise=0.1):
    return np.exp(noise * np.random.default_rng(seed).standard_normal(count))


def test_batches_are_those_of_the_published_experiments():
    assert batches(10, 1000, 5) == PUBLISHED
    assert batches(10, 10, 5) == [10]
    assert batches(10, 200, 5) == [10, 25, 50, 95, 180, 200]


def test_outliers_are_removed_from_more_than_ten_times():
    few = np.array([*[1.0, 1.1] * 5])
    spiked = np.append(few, 90.0)
    assert without_tukey_outliers(spiked).tolist() == few.tolist()
    assert relative_standard_error(spiked) == pytest.approx(relative_standard_error(few))
    ten = np.append(few[:9], 90.0)
    assert relative_standard_error(ten) == pytest.approx(
        np.std(ten, ddof=1) / np.sqrt(10) / np.mean(ten)
    )


def test_variations_are_of_the_last_prefixes():
    values = times(9)
    means = [values[:n].mean() for n in (9, 8, 7)]
    assert variation_of_means(values, 3) == pytest.approx(np.std(means, ddof=1) / np.mean(means))
    medians = [np.median(values[:n]) for n in (9, 8, 7)]
    assert variation_of_medians(values, 3) == pytest.approx(
        np.std(medians, ddof=1) / np.mean(medians)
    )


def test_medians_keep_outliers_and_means_do_not():
    values = np.append(times(30), [50.0, 60.0])
    prefixes = [values[:n] for n in (32, 31, 30)]
    means = [without_tukey_outliers(each).mean() for each in prefixes]
    assert variation_of_means(values, 3) == pytest.approx(np.std(means, ddof=1) / np.mean(means))
    medians = [np.median(each) for each in prefixes]
    assert variation_of_medians(values, 3) == pytest.approx(
        np.std(medians, ddof=1) / np.mean(medians)
    )


def test_a_window_that_is_longer_than_the_times_is_not_met():
    assert np.isnan(variation_of_means(times(9), 10))
    assert not Criterion("cov_mean", 0.99, 10).is_met(times(9))


def test_all_criteria_have_to_be_strictly_below_their_thresholds():
    values = times(1000)
    exact = relative_standard_error(values[:50])
    for limit, count in ((exact, 95), (np.nextafter(exact, 1), 50)):
        found = repetition_count(values, [Criterion("rse", limit)], [50, 95])
        assert (found.count, found.is_met) == (count, True)
    both = [Criterion("rse", 0.9), Criterion("cov_mean", 1e-9, 20)]
    found = repetition_count(values, both, PUBLISHED)
    assert (found.count, found.is_met) == (1000, False)
    assert set(found.values) == {"rse", "cov_mean"}


@pytest.mark.parametrize("name", CRITERIA)
def test_noisier_times_need_more_repetitions(name):
    criteria = [Criterion(name, 0.01, 20)]
    counts = [
        repetition_count(times(1000, seed=1, noise=noise), criteria, PUBLISHED).count
        for noise in (0.001, 0.05, 1.5)
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_times_that_end_too_early_are_told():
    found = repetition_count(times(30, noise=2.0), [Criterion("rse", 0.001)], PUBLISHED)
    assert (found.count, found.is_met) == (25, False)
    found = repetition_count(times(6), [Criterion("rse", 1e-9)], PUBLISHED)
    assert (found.count, found.is_met) == (6, False)


# Campaigns.


def campaign(tmp_path, *texts):
    for number, text in enumerate(texts):
        (tmp_path / f"r{number}.dat.gz").write_bytes(gzip.compress(text.encode()))
    return read_campaign(benchmark_files([str(tmp_path)]))


def test_the_mpirun_that_needs_the_most_repetitions_decides(tmp_path):
    texts = [
        "#@nprocs=4\ntest nrep count runtime_sec\n"
        + "".join(f"MPI_Bcast {k} 8 {t:.9f}\n" for k, t in enumerate(times(1000, seed, noise)))
        for seed, noise in ((0, 0.01), (1, 0.3), (2, 0.01))
    ]
    (found,) = repetitions_of(campaign(tmp_path, *texts), [Criterion("rse", 0.02)], PUBLISHED)
    alone = [
        repetition_count(times(1000, seed, noise), [Criterion("rse", 0.02)], PUBLISHED).count
        for seed, noise in ((0, 0.01), (1, 0.3), (2, 0.01))
    ]
    assert (found.largest.count, found.mpiruns) == (max(alone), 3)
    assert max(alone) > min(alone)


def test_numbers_that_the_benchmark_predicted_are_used(tmp_path):
    rows = [f"MPI_Bcast {n} 8 9e-6 3e-6 rse 0.01\nMPI_Bcast {n} 8 9e-6 3e-6 cov_mean 0.002\n"
            for n in (50, 180, 25)]  # fmt: skip
    (found,) = repetitions_of(campaign(tmp_path, *(HEAD + row for row in rows)), [], [10])
    assert found.is_predicted
    assert (found.largest.count, found.largest.is_met) == (180, True)
    assert found.largest.values == {"rse": 0.01, "cov_mean": 0.002}


def test_the_maximum_is_no_number_at_which_criteria_are_met(tmp_path):
    row = "MPI_Bcast 1000 8 9e-6 3e-6 rse 0.5\n"
    (found,) = repetitions_of(campaign(tmp_path, HEAD + row), [], [10])
    assert not found.largest.is_met


def test_measured_predictions_are_batches_and_meet_their_thresholds(shared_data):
    home = shared_data / "mpi_guidelines" / "openmpi414_p4_pred"
    found = read_campaign(benchmark_files([str(home / "raw_data")]))
    assert found.mpiruns() == {("", 4): 3}
    known = {}
    for path in sorted((home / "raw_data").iterdir()):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            cells = line.split()
            if len(cells) == 7 and cells[0] != "test":
                key = cells[0], float(cells[2])
                known[key] = max(known.get(key, 0), int(cells[1]))
    cells = repetitions_of(found, [], [10])
    assert {(each.cell.function, each.cell.size): each.largest.count for each in cells} == known
    assert {*known.values()} <= {*PUBLISHED}
    for each in found.measurements:
        if each.predicted.count < 1000:
            assert each.predicted.values["rse"] < 0.025
            assert each.predicted.values["cov_mean"] < 0.01


# Options.


def test_criteria_have_thresholds_and_windows():
    assert parse_criteria("rse=0.025, cov_median=0.01/20") == (
        Criterion("rse", 0.025, 10),
        Criterion("cov_median", 0.01, 20),
    )


@cells(
    "text", ["", "rse", "rse=", "rse=x", "rse=0", "rse=1", "rsf=0.1", "cov_mean=0.1/1",
             "cov_mean=0.1/", "rse=0.1,rse=0.2", "cov_mean=0.1/x"],
)  # fmt: skip
def test_malformed_criteria_are_refused(text):
    with pytest.raises(UsageError, match="--nrep"):
        parse_criteria(text)


@cells("text", ["", "10", "10,1000", "0,10,5", "20,10,5", "10,20,0", "a,b,c"])
def test_malformed_batches_are_refused(text):
    with pytest.raises(UsageError, match="--nrep-batches"):
        parse_batches(text)


def test_means_have_no_repetitions(tmp_path):
    text = "#@nprocs=4\ntest count median_sec\nMPI_Bcast 8 1e-6\n"
    with pytest.raises(UsageError, match="needs observed times"):
        repetitions_of(campaign(tmp_path, text), [], [10])


def test_a_malformed_prediction_is_an_error_at_its_line(tmp_path):
    with pytest.raises(InputError, match="line 6: number of repetitions '0'"):
        campaign(tmp_path, HEAD + "MPI_Bcast 0 8 9e-6 3e-6 rse 0.5\n")
