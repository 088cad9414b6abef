"""One series of profiles with many namings: the same ranking, or a clear question."""

from __future__ import annotations

import csv
import io

import pytest

from cells import cells

SCALES = (1, 8, 27, 64, 125)
RUNS = [(p, r) for p in SCALES for r in (1, 2, 3)]
DATES = [f"2026-11-{day:02}" for day in range(1, 16)]


NAMINGS = {
    "jobs": [f"slurm-{48000 + 7 * k}.cubex" for k in range(15)],
    "repetition first": [f"r{r}.p{p}.cubex" for p, r in RUNS],
    "folders of jobs": [f"job.{90210 + 7 * k}/profile.cubex" for k in range(15)],
    "nested numbers": [f"{p}/{r}/profile.cubex" for p, r in RUNS],
}
"""A few of the namings in tests/unit/readers/test_run_names.py."""


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


@cells("naming", NAMINGS)
def test_names_do_not_change_the_ranking(run, profiles, expected, tmp_path, naming):
    for name, profile in zip(NAMINGS[naming], profiles, strict=True):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(profile)
    assert ranking(run, tmp_path) == expected


IDENTIFIERS = {
    "jobid": [48309 + 13 * k for k in range(15)],
    "job": list(range(1, 16)),
    "profile": [3735928559 + 101 * k for k in range(15)],
    "hash": [f"{2654435761 * (k + 1) % 2**32:08x}" for k in range(15)],
    "date": DATES,
}


@cells("title", list(IDENTIFIERS))
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
