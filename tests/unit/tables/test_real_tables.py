"""Tables of other projects, compared with an independent reading."""

from __future__ import annotations

import csv
import json
from collections import defaultdict

import numpy as np
import pytest

from callpath_modeler.studies import loading

TABLES = [
    "caliper/lulesh_opal_weak.jsonl",
    "caliper/lulesh_quartz_weak_p8-125.jsonl",
    "caliper/sort/team16_bitonic_random.jsonl",
    "caliper/sort/team22_samplesort_random.jsonl",
    "caliper/sort/team6_mergesort_random.jsonl",
    "mpi_collectives/mpi_data.jsonl",
]


def loaded(path):
    everything = loading.ReadOptions(metrics=None)
    return loading.load([path], loading.LoadOptions(everything))


def by_setting(experiment, metric):
    """Return the values of all repetitions, by call path and setting."""
    found = defaultdict(list)
    values = experiment.values(metric)
    for k, run in enumerate(experiment.runs):
        setting = tuple(sorted(run.parameters.items()))
        for row in range(len(experiment.tree)):
            if not np.isnan(values[row, k]):
                found[experiment.tree.path(row), setting].append(values[row, k])
    return found


@pytest.mark.parametrize("name", TABLES)
def test_every_value_of_measured_json_lines_is_found_again(shared_data, name):
    names = {"time_excl_mean": "time_mean", "latency_us_median": "latency_median"}
    factor = {"latency_us_median": 1e-6}
    expected = defaultdict(lambda: defaultdict(list))
    path = shared_data / "third_party" / name
    for line in path.read_text().splitlines():
        row = json.loads(line)
        of = row["callpath"].replace("/", "\\/").replace("->", "/")
        value = row["value"] * factor.get(row["metric"], 1.0)
        expected[row["metric"]][of, tuple(sorted(row["params"].items()))].append(value)
    experiment = loaded(path)
    compared = 0
    for metric, wanted in expected.items():
        if metric == "time_inc_mean":
            continue  # paired with time_excl_mean
        found = by_setting(experiment, names.get(metric, metric))
        if experiment.constants.get("team"):
            found = {
                (of, tuple(item for item in setting if item[0] != "team")): values
                for (of, setting), values in found.items()
            }
        for key, values in wanted.items():
            np.testing.assert_allclose(found[key], np.maximum(values, 0), rtol=1e-12)
            compared += len(values)
    rows = path.read_text().count("\n")
    assert compared == (rows if "mpi" in name else rows * 2 // 3)


def test_inclusive_means_are_the_totals(shared_data):
    path = shared_data / "third_party/caliper/lulesh_opal_weak.jsonl"
    tops = defaultdict(float)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if row["metric"] == "time_inc_mean" and "->" not in row["callpath"]:
            tops[row["params"]["p"]] += row["value"]
    experiment = loaded(path)
    total = experiment.columns["time_mean"].total
    np.testing.assert_allclose(total, [tops[p] for p in experiment.points("p")])
    assert experiment.findings == ()


def test_measured_collectives_open_without_being_told(shared_data):
    path = shared_data / "third_party/mpi_collectives/mpi_data.csv"
    experiment = loaded(path)
    found = by_setting(experiment, "mean")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 70
    for row in rows:
        key = f"{row['mpi']}/{row['variable']}", (("p", float(row["Ranks"])),)
        assert found[key] == [float(row["mean"])]


def test_measured_text_of_extrap_is_read_whole(shared_data):
    path = shared_data / "third_party/extrap_text/relearn_p32-256.txt"
    experiment = loaded(path)
    assert len(experiment.tree) == 14
    assert len(experiment.runs) == 40
    values = [w for line in path.read_text().splitlines() if line.startswith("DATA")
              for w in line.split()[1:]]  # fmt: skip
    assert len(values) == 14 * 40
    # Regions in order, points in order, repetitions in order: as the experiment has them.
    assert experiment.values("time").ravel().tolist() == [float(word) for word in values]


@pytest.mark.parametrize("name", ["otf2_ping-pong_p2", "hpctoolkit_cpi_p4", "cubex_lulesh_daint"])
def test_tables_of_other_tools_open_without_warning_of_negative_values(shared_data, name):
    experiment = loaded(shared_data / f"third_party/expected/{name}.csv")
    assert "time_sum" in experiment.columns
    assert "CPM105" not in {finding.code for finding in experiment.findings}
