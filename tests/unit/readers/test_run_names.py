"""The same 15 profiles with many namings: the same experiment, or a clear question."""

from __future__ import annotations

import hashlib
import random
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callpath_modeler.errors import UsageError
from callpath_modeler.studies.loading import LoadOptions, load
from cells import cells

RANDOM = random.Random(3)
SCALES = (1, 8, 27, 64, 125)
RUNS = [(p, r) for p in SCALES for r in (1, 2, 3)]
SHUFFLED = RANDOM.sample(range(15), 15)

# ruff: noqa: ARG005, S324
NAMINGS = {
    "as in the repository": lambda i, p, r: f"lulesh.p{p}.r{r}/profile.cubex",
    "words alone": lambda i, p, r: f"{'abcdefghijklmno'[i]}.cubex",
    "profileN": lambda i, p, r: f"profile{i + 1}.cubex",
    "profileN_shuffled": lambda i, p, r: f"profile{SHUFFLED[i] + 1}.cubex",
    "jobN": lambda i, p, r: f"job{1001 + i}/profile.cubex",
    "jobN_gaps": lambda i, p, r: f"job{48295 + 7 * i + i * i}/profile.cubex",
    "summaryN": lambda i, p, r: f"summary{i + 1}.cubex",
    "nN": lambda i, p, r: f"n{i + 1}.cubex",
    "xN": lambda i, p, r: f"x{i + 1}.cubex",
    "benchN": lambda i, p, r: f"bench{i + 1}.cubex",
    "runN": lambda i, p, r: f"run{i + 1}.cubex",
    "001": lambda i, p, r: f"{i + 1:03}.cubex",
    "001dir": lambda i, p, r: f"{i + 1:03}/profile.cubex",
    "ntasks": lambda i, p, r: f"ntasks_{p}_threads_1_{r}/profile.cubex",
    "ranks": lambda i, p, r: f"{p}ranks/rep{r}/profile.cubex",
    "cores": lambda i, p, r: f"lulesh-{p}cores-{r}/profile.cubex",
    "bare": lambda i, p, r: f"{p}/{r}/profile.cubex",
    "barefile": lambda i, p, r: f"{p}/{r}.cubex",
    "pdotr": lambda i, p, r: f"lulesh.p{p}.{r}.cubex",
    "p_dot_bare": lambda i, p, r: f"lulesh-{p}.{r}.cubex",
    "caps": lambda i, p, r: f"LULESH.P{p}.R{r}.cubex",
    "zero": lambda i, p, r: f"lulesh_p{p:05}_r{r:03}.cubex",
    "iso": lambda i, p, r: f"2024-05-{i + 1:02}T10-22-{i:02}/profile.cubex",
    "scorepdef": lambda i, p, r: (
        f"scorep-20240517_{1000 + i * 13}_{123456789 + i * 7777777}/profile.cubex"
    ),
    "uuid": lambda i, p, r: f"{uuid.UUID(int=RANDOM.getrandbits(128))}/profile.cubex",
    "hash": lambda i, p, r: hashlib.sha1(str(i).encode()).hexdigest()[:10] + ".cubex",
    "slurm": lambda i, p, r: f"slurm-{4829512 + i * 3}.cubex",
    "host": lambda i, p, r: f"node{100 + (i * 37) % 64:03}-{i}/profile.cubex",
    "hostjob": lambda i, p, r: f"r{i:02}c{i % 4}n{i % 7}.job{9000 + i}/profile.cubex",
    "repfirst": lambda i, p, r: f"r{r}.p{p}.cubex",
    "plast": lambda i, p, r: f"lulesh_run{r}_{p}.cubex",
    "version": lambda i, p, r: f"lulesh2.0-v1.2-{p}p-{r}.cubex",
    "units": lambda i, p, r: f"lulesh-s12-512MB-{p}procs.{r}.cubex",
    "repdir": lambda i, p, r: f"rep{r}/lulesh.{p}.cubex",
    "datedir": lambda i, p, r: f"2024-05-1{r}/p{p}.cubex",
    "jobdir": lambda i, p, r: f"job{4711 + r}/p{p}.cubex",
    "benchper": lambda i, p, r: f"p{p}/bench{r}.cubex",
    "profper": lambda i, p, r: f"{p}/profile{r}.cubex",
    "weak_n": lambda i, p, r: f"lulesh.n{1728 * p}.{r}.cubex",
    "random": lambda i, p, r: f"{RANDOM.randrange(10**6)}.cubex",
    "n101": lambda i, p, r: f"n{101 + i}.cubex",
    "timestamp": lambda i, p, r: f"prof_{1701223396 + i * 1234}.cubex",
    "deep": lambda i, p, r: f"exp/lulesh/p={p}/seed={1000 + r * 17}/profile.cubex",
    "seed": lambda i, p, r: f"lulesh_{p}_seed{RANDOM.randrange(10**5)}.cubex",
    "grid": lambda i, p, r: (
        f"{round(p ** (1 / 3))}x{round(p ** (1 / 3))}x{round(p ** (1 / 3))}_{r}.cubex"
    ),
    "nodes": lambda i, p, r: f"{max(1, p // 48)}nodes_{p}tasks_{r}.cubex",
    "hhmm": lambda i, p, r: f"run_{10 + i // 2}{(i * 7) % 60:02}.cubex",
    "miss": lambda i, p, r: (
        f"profile{[1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17][i]}.cubex"
    ),
    "ntpn": lambda i, p, r: f"ntasks-per-node_{min(p, 48)}_N{max(1, p // 48)}_{i}.cubex",
    "mixed": lambda i, p, r: f"lulesh.p{p}.r{r}/profile.cubex" if r < 3 else f"other/p{p}-r3.cubex",
    "lulesh64": lambda i, p, r: f"lulesh{p}_{r}.cubex",
    "rank0": lambda i, p, r: f"lulesh_{p}r{r}.cubex",
    "run_in_dir": lambda i, p, r: f"run_{i + 1}_of_15/profile.cubex",
    "size_const": lambda i, p, r: f"size30.p{p}.job{777 + i * 3}/profile.cubex",
    "rack and slot": lambda i, p, r: f"x1000c{i % 4}s{i % 8}b0n{i % 2}/{i}.cubex",
    "timestamps of day": lambda i, p, r: f"10-{10 + i}-{(i * 7) % 60:02}.cubex",
    "seeds": lambda i, p, r: f"seed{RANDOM.randrange(10**6)}/{p}ranks.cubex",
    "size before p": lambda i, p, r: f"s12_i25_n{p}_run{r}.cubex",
    "cluster and job": lambda i, p, r: f"frontier.{2848123 + 11 * i}.out.d/profile.cubex",
    "words of several letters": lambda i, p, r: f"experiment_{i}/lulesh.cubex",
    "trials": lambda i, p, r: f"ntasks_{p}_trial{r}.cubex",
    "tests": lambda i, p, r: f"test_{i + 1}.cubex",
    "padded jobs": lambda i, p, r: f"job{i + 1:06}.cubex",
    "equals": lambda i, p, r: f"lulesh-p={p}-r={r}.cubex",
    "experiments": lambda i, p, r: f"exp_{i + 1}/profile.cubex",
    "hosts in order": lambda i, p, r: f"node{i + 1:03}/lulesh.p{p}.r{r}/profile.cubex",
    "tags": lambda i, p, r: f"lulesh-v1.2-p{p}-r{r}/profile.cubex",
    "repetition in between": lambda i, p, r: f"lulesh/{r}/np{p}/profile.cubex",
}
"""File names by run number, scale and repetition."""


def place(directory, samples, naming, order=None):
    for i, (p, r) in enumerate(RUNS if order is None else [RUNS[k] for k in order]):
        target = directory / naming(i, p, r)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(samples / "lulesh" / f"lulesh.p{p}.r{r}" / "profile.cubex")
    return directory


def content(experiment):
    """Return the total times at each p, in any order of repetitions."""
    totals = experiment.columns["time"].total
    found = {}
    for total, run in zip(totals.tolist(), experiment.runs, strict=True):
        found.setdefault(run.parameters["p"], []).append(total)
    return {p: sorted(values) for p, values in found.items()}


@pytest.fixture(scope="module")
def expected(samples):
    return content(load(samples / "lulesh"))


@cells("naming", NAMINGS.values())
def test_profiles_are_one_experiment_under_any_names(tmp_path_factory, samples, expected, naming):
    experiment = load(place(tmp_path_factory.mktemp("runs"), samples, naming))
    assert content(experiment) == expected
    assert experiment.modelled_parameters() == ("p",)


def test_large_numbers_without_order_are_asked_for(tmp_path_factory, samples):
    # By chance, some numbers differ little between repetitions, and are run numbers.
    numbers = random.Random(1).sample(range(1000, 10**6), 15)
    directory = tmp_path_factory.mktemp("runs")
    place(directory, samples, lambda i, p, r: f"x{numbers[i]}.cubex")
    with pytest.raises(UsageError, match="may be a parameter or not") as caught:
        load(directory)
    assert "--param x=none" in caught.value.hint


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(15)), name=st.sampled_from(["profileN", "jobN", "001dir", "nN"]))
def test_run_numbers_in_any_order_are_one_experiment(
    tmp_path_factory, samples, expected, order, name
):
    directory = place(tmp_path_factory.mktemp("runs"), samples, NAMINGS[name], order)
    assert content(load(directory)) == expected


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(groups=st.lists(st.integers(0, 3), min_size=15, max_size=15))
def test_profiles_grouped_into_any_directories_are_one_experiment(
    tmp_path_factory, samples, expected, groups
):
    directory = tmp_path_factory.mktemp("runs")
    place(directory, samples, lambda i, p, r: f"{'abcd'[groups[i]]}/lulesh_p{p}_r{r}.cubex")
    assert content(load(directory)) == expected


def table(columns):
    """Return CSV of 15 runs of two call paths with further columns."""
    lines = [",".join(["callpath", *columns, "p", "time"])]
    for i, (p, r) in enumerate(RUNS):
        cells = [str(of(i, p, r)) for of in columns.values()]
        for name, seconds in (("main", 1.0), ("main/solve", 2.0 + p / 8)):
            lines.append(",".join([name, *cells, str(p), str(seconds * (1 + 0.01 * r))]))
    return "\n".join(lines) + "\n"


COLUMNS = {
    "job id": {"jobid": lambda i, p, r: 48295 + i},
    "random job id": {"job": lambda i, p, r: 1000 + (7919 * i) % 9973},
    "hash": {"hash": lambda i, p, r: hashlib.sha1(f"{i}".encode()).hexdigest()[:12]},
    "number of a profile": {"profile": lambda i, p, r: (7919**5 * (i + 3)) % (2**31)},
    "timestamp": {"timestamp": lambda i, p, r: f"2024-05-17T10:{i:02}:00"},
    "epoch": {"launchdate": lambda i, p, r: 1701223396 + 1234 * i},
    "uuid": {"run": lambda i, p, r: uuid.UUID(int=i + 10**30)},
    "host and job": {
        "host": lambda i, p, r: f"node{100 + i % 7}",
        "slurm_job_id": lambda i, p, r: 5511 + i,
    },
    "temperature": {"ambient": lambda i, p, r: 20.125 + (i * 37) % 15 / 16},
    "repetition": {"rep": lambda i, p, r: r},
}


@cells("columns", COLUMNS.values())
def test_identifiers_in_tables_are_no_parameters(tmp_path, columns):
    (tmp_path / "runs.csv").write_text(table(columns))
    (tmp_path / "plain.csv").write_text(table({}))
    experiment, plain = load(tmp_path / "runs.csv"), load(tmp_path / "plain.csv")
    assert content(experiment) == content(plain)
    assert experiment.modelled_parameters() == ("p",)
    assert len(experiment.runs) == 15


def test_words_in_tables_choose_runs(tmp_path):
    text = table({"InputType": lambda i, p, r: ("Random", "Sorted", "Sorted")[r - 1]})
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(UsageError, match="2 cases of 'InputType': Random, Sorted"):
        load(tmp_path / "runs.csv").by_point(None, "p")
    for where, runs in {"InputType=Random": 5, "inputtype!=random": 10, "InputType=S*": 10}.items():
        assert len(load(tmp_path / "runs.csv", LoadOptions(where=where)).runs) == runs
    with pytest.raises(UsageError, match="no such metadata"):
        load(tmp_path / "runs.csv", LoadOptions(where="InputTyp=Random"))
