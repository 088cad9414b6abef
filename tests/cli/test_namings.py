"""One series of profiles with many namings: the same ranking, or a clear question."""

from __future__ import annotations

import csv
import io

import pytest

from cells import cells

SCALES = (1, 8, 27, 64, 125)
RUNS = [(p, r) for p in SCALES for r in (1, 2, 3)]
DATES = [f"2026-11-{day:02}" for day in range(1, 16)]


def one_by_one(form):
    """Name the runs by their number in order."""
    return [form.format(k=k) for k in range(1, 16)]


def by_setting(form):
    """Name the runs by processes and repetition."""
    return [form.format(p=p, r=r, k=k) for k, (p, r) in enumerate(RUNS, 1)]


FILES = {
    **{name: one_by_one(f"{name}{{k}}.cubex") for name in (
        "profile", "summary", "n", "x", "bench", "result", "run", "lulesh", "test_")},
    "zero-padded": one_by_one("{k:03}.cubex"),
    "letters and zeros": one_by_one("job{k:06}.cubex"),
    "jobs": [f"slurm-{48000 + 7 * k}.cubex" for k in range(15)],
    "dates": [f"lulesh_{date}.cubex" for date in DATES],
    "processes": by_setting("lulesh.p{p}.r{r}.cubex"),
    "equals": by_setting("lulesh-p={p}-r={r}.cubex"),
    "ranks behind": by_setting("lulesh-{p}ranks-rep{r}.cubex"),
    "cores behind": by_setting("lulesh_{p}cores_run{r}.cubex"),
    "apart": by_setting("ntasks_{p}_trial{r}.cubex"),
    "np": by_setting("np{p}.rep{r}.cubex"),
    "version": by_setting("lulesh2.0-p{p}-r{r}.cubex"),
    "repetition first": by_setting("r{r}.p{p}.cubex"),
    "with a job": by_setting("p{p}.r{r}.job{k}.cubex"),
    "constant size": by_setting("lulesh.n30.p{p}.r{r}.cubex"),
    "capitals": by_setting("LULESH-P{p}-R{r}.cubex"),
}  # fmt: skip
DIRECTORIES = {
    "job1001": [f"job{1000 + k}" for k in range(1, 16)],
    "job by sevens": [f"job.{90210 + 7 * k}" for k in range(15)],
    "numbers": one_by_one("{k}"),
    "padded numbers": one_by_one("{k:04}"),
    "experiments": one_by_one("exp_{k}"),
    "scorep": [f"scorep-20261124_1{k:03}_{10**14 + 7919 * k}" for k in range(15)],
    "dates": DATES,
    "processes": by_setting("lulesh.p{p}.r{r}"),
    "ranks": by_setting("{p}ranks.{r}"),
    "nested": by_setting("p{p}/r{r}"),
    "nested numbers": by_setting("{p}/{r}"),
    "nested runs": by_setting("{p}ranks/run{r}"),
    "tasks": by_setting("ntasks_{p}_threads_1_rep{r}"),
    "program": by_setting("lulesh-{p}cores/rep_{r}"),
    "hosts": by_setting("node{k:03}/lulesh.p{p}.r{r}"),
    "seeds": by_setting("p{p}.seed{r}"),
    "tags": by_setting("lulesh-v1.2-p{p}-r{r}"),
}


@pytest.fixture(scope="module")
def profiles(samples):
    return [samples / "lulesh" / f"lulesh.p{p}.r{r}" / "profile.cubex" for p, r in RUNS]


def ranking(run, folder):
    told = run("rank", folder, "--target", "1000", "-f", "csv")
    if told.status != 0:
        # A question names the way to answer it.
        assert told.status == 2, told.err
        assert "--param" in told.err or "--name" in told.err
        return None
    rows = csv.DictReader(io.StringIO(told.out))
    return [(row["callpath"], row["growth"], row["value_at_target[s]"]) for row in rows]


@pytest.fixture(scope="module")
def told():
    return {}


@pytest.fixture
def expected(run, samples, told):
    """Rank the samples with their original names, once."""
    if not told:
        told["rows"] = ranking(run, samples / "lulesh")
    return told["rows"]


@cells("naming", list(FILES))
def test_names_of_files_do_not_change_the_ranking(run, profiles, expected, tmp_path, naming):
    for name, profile in zip(FILES[naming], profiles, strict=True):
        (tmp_path / name).symlink_to(profile)
    assert ranking(run, tmp_path) == expected


@cells("naming", list(DIRECTORIES))
def test_names_of_directories_do_not_change_the_ranking(run, profiles, expected, tmp_path, naming):
    for name, profile in zip(DIRECTORIES[naming], profiles, strict=True):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "profile.cubex").symlink_to(profile)
    assert ranking(run, tmp_path) == expected


IDENTIFIERS = {
    "jobid": [48309 + 13 * k for k in range(15)],
    "job": list(range(1, 16)),
    "profile": [3735928559 + 101 * k for k in range(15)],
    "hash": [f"{2654435761 * (k + 1) % 2**32:08x}" for k in range(15)],
    "date": DATES,
}


@pytest.mark.parametrize("title", list(IDENTIFIERS))
def test_a_column_of_identifiers_does_not_change_the_ranking(run, tmp_path, title):
    def table(name, *, with_identifiers):
        lines = [f"callpath,p,{title},time" if with_identifiers else "callpath,p,time"]
        for (p, r), one in zip(RUNS, IDENTIFIERS[title], strict=True):
            middle = f",{one}" if with_identifiers else ""
            lines += [f"{path},{p}{middle},{(1 + 0.1 * r) * cost}"
                      for path, cost in (("main", 2.0), ("main/f", 0.5 * p))]  # fmt: skip
        (tmp_path / name).write_text("\n".join([*lines, ""]))
        return tmp_path / name

    assert ranking(run, table("with.csv", with_identifiers=True)) == ranking(
        run, table("without.csv", with_identifiers=False)
    )
