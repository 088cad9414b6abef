"""`cpmodel excess --expect` and `--target`, and `--pair` of several commands."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

SCALES = (1, 2, 4, 8, 16)


def costs(p, factor=1.0):
    """Return the time per process of each call path."""
    return {"main": 2.0, "main/solve": factor * (1 + 0.5 * p), "main/reduce": 1 + np.log2(p)}


def table(path, scales=SCALES, factor=1.0, without=(), extra=None):
    lines = ["callpath,p,time"]
    for p in scales:
        known = {**costs(p, factor), **(extra or {})}
        lines += [
            f"{name},{p},{value:.17g}" for name, value in known.items() if name not in without
        ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def runs(tmp_path):
    return table(tmp_path / "new.csv")


def rows(done):
    assert done.status == 0, done.err
    return list(csv.DictReader(io.StringIO(done.out)))


def number(row, name):
    return float(next(value for key, value in row.items() if key.partition("[")[0] == name))


ASKED = ("--scaling", "weak")


def test_a_growth_is_expected_of_every_call_path(run, runs):
    found = rows(run("excess", runs, *ASKED, "--expect", "O(p^½)", "-f", "csv"))
    assert {row["scale"] for row in found} == {"2.0", "4.0", "8.0", "16.0"}
    for row in found:
        p, q, name = float(row["base"]), float(row["scale"]), row["path"]
        grown = costs(p)[name] * np.sqrt(q / p)
        lost = (costs(q)[name] - grown) / sum(costs(q).values())
        assert number(row, "excess_exclusive") == pytest.approx(lost)
        assert number(row, "cost_expected_exclusive") == pytest.approx(grown)
        assert row["efficiency"] == ""  # 1 - X is no efficiency
        assert row["basis"] == "measured"


def test_text_names_the_expectation_by_its_formula_and_claims_no_efficiency(run, runs):
    told = " ".join(run("excess", runs, *ASKED, "--expect", "p log p").out.split())
    assert "beyond the expectation" in told or "below expectation" in told
    assert "expected g(p) = p log p" in told
    assert "X = (C_q - C_p g(q) / g(p)) / T_q" in told
    assert "negative: less than expected" in told
    assert "not compared: p = 1, because p log p is not a finite number above zero" in told
    for wrong in ("efficiency", "superlinear", "weak scaling"):
        assert wrong not in told


def test_weak_scaling_is_the_growth_1(run, runs):
    one = rows(run("excess", runs, *ASKED, "-f", "csv"))
    other = rows(run("excess", runs, *ASKED, "--expect", "1", "-f", "csv"))
    for mine, theirs in zip(one, other, strict=True):
        assert mine.pop("efficiency") != theirs.pop("efficiency") == ""
        assert mine == theirs
    strong = rows(run("excess", runs, "--scaling", "strong", "-f", "csv"))
    inverse = rows(run("excess", runs, *ASKED, "--expect", "1/p", "-f", "csv"))
    for mine, theirs in zip(strong, inverse, strict=True):
        assert mine["excess_inclusive"] == theirs["excess_inclusive"]


def test_a_file_expects_growths_and_all_others_scale(run, runs, tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(
        'schema = 1\n[[expect]]\ncallpath = "main/solve"\ngrowth = "<= O(p)"\n'
        '[[expect]]\ncallpath = "**/no*thing"\ngrowth = "O(1)"\n'
    )
    done = run("excess", runs, *ASKED, "--expect", path, "--pair", "2,8", "-f", "json")
    found = json.loads(done.out)
    by_path = {row["path"]: row["excess_exclusive"] for row in found["rows"]}
    total = sum(costs(8).values())
    assert by_path["main/solve"] == pytest.approx((5 - 2 * 4) / total)
    assert by_path["main/reduce"] == pytest.approx((4 - 2) / total)
    assert by_path["main"] == 0
    assert found["formula"] == "expected"
    assert "growths of 1 call path" in found["expected"]["notes"][0]
    assert "1 growth for no call path" in found["expected"]["notes"][0]
    path.write_text('schema = 1\n[[expect]]\ncallpath = "**/no*thing"\ngrowth = "O(1)"\n')
    run("excess", runs, "--expect", path).fails(2, "states no growth in p")


def test_another_version_states_the_expected_cost(run, runs, tmp_path):
    old = table(tmp_path / "old.csv", factor=0.5, extra={"main/solve/gone": 0.25})
    found = rows(run("excess", runs, *ASKED, "--expect", old, "-f", "csv"))
    by_scale = {(row["path"], row["scale"]): row for row in found}
    for q in SCALES[1:]:
        total = sum(costs(q).values())
        row = by_scale["main/solve", f"{q:.1f}"]
        # What does not occur any more is expected in its caller.
        gain = costs(q)["main/solve"] - costs(q, 0.5)["main/solve"] - 0.25
        assert number(row, "excess_exclusive") == pytest.approx(gain / total)
        assert number(by_scale["main/reduce", f"{q:.1f}"], "excess_exclusive") == 0
    told = run("excess", runs, *ASKED, "--expect", old).out
    assert told.startswith("At p = 16, ")
    assert "in call paths that do not occur here" in " ".join(told.split())


def test_the_models_of_another_version_predict_what_it_did_not_measure(run, runs, tmp_path):
    old = table(tmp_path / "old.csv", scales=(1, 2, 3, 4, 6))
    asked = ("--expect", old, "--pair", "1,16", "-f", "json")
    found = json.loads(run("excess", runs, *ASKED, *asked).out)
    assert "predicted by its models at p = 8, 16" in found["expected"]["notes"][0]
    assert found["pairs"][0]["excess"] == pytest.approx(0, abs=0.05)
    few = table(tmp_path / "few.csv", scales=(1, 2))
    run("excess", runs, *ASKED, "--expect", few, "--pair", "1,16").fails(2, "it has no models")


@pytest.mark.parametrize("expect", [(), ("--expect", "O(p)")])
def test_a_target_is_a_further_pair_with_a_band(run, runs, expect):
    asked = ("excess", runs, *ASKED, "--target", "64", *expect)
    found = json.loads(run(*asked, "-f", "json").out)
    assert [pair["basis"] for pair in found["pairs"]] == ["measured"] * 4 + ["predicted"]
    last = found["pairs"][-1]
    assert (last["base"], last["scale"]) == (1, 64)
    assert last["low"] <= last["excess"] <= last["high"]
    for row in found["rows"]:
        is_target = row["scale"] == 64
        for kind in ("inclusive", "exclusive"):
            low, high = row[f"excess_low_{kind}"], row[f"excess_high_{kind}"]
            assert (low is not None) == is_target
            assert not is_target or low <= row[f"excess_{kind}"] <= high
    true = costs(64)
    spent = {name: cost * (64 if expect else 1) for name, cost in costs(1).items()}
    lost = sum(true.values()) - sum(spent.values())
    assert last["excess"] == pytest.approx(lost / sum(true.values()), rel=0.02)
    assert "64 is predicted" in run(*asked).out
    if not expect:
        ranked = json.loads(run("rank", runs, *ASKED, "--target", "64", "-f", "json").out)
        of_rank = {row["callpath"]: row for row in ranked["rows"]}
        for row in found["rows"]:
            if row["scale"] == 64:
                same = of_rank[row["path"]]
                assert row["excess_exclusive"] == pytest.approx(same["excess_exclusive"])
                assert row["excess_low_exclusive"] == pytest.approx(same["excess_low"])
                assert row["excess_high_exclusive"] == pytest.approx(same["excess_high"])


def mean_over_pairs(name):
    pairs = [(p, q) for p in SCALES for q in SCALES if p < q]
    return np.mean([(costs(q)[name] - costs(p)[name]) / sum(costs(q).values()) for p, q in pairs])


def test_every_table_has_the_mean_over_all_pairs(run, runs):
    asked = (runs, *ASKED, "-f", "csv")
    tables = [
        rows(run("excess", *asked)),
        rows(run("rank", *asked, "--target", "64")),
        rows(run("views", *asked, "--target", "64")),
        rows(run("rank", *asked, "--pair", "2,8")),
        rows(run("export", *asked, "--target", "64", "--what", "ranking")),
    ]
    for found in tables:
        assert len(found) >= 3
        for row in found:
            name = row.get("path") or row["callpath"]
            mean = mean_over_pairs(name)
            assert number(row, "excess_ensemble_exclusive") == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("target", [(), ("--target", "64")])
def test_several_pairs_have_columns_without_and_with_models(run, runs, target):
    asked = ("--pair", "2,8", "--pair", "16,4", *target)
    for command, key in (("rank", "callpath"), ("views", "path")):
        found = json.loads(run(command, runs, *ASKED, *asked, "-f", "json").out)
        for p, q in ((2, 8), (4, 16)):
            for row in found["rows"]:
                name = row[key]
                lost = (costs(q)[name] - costs(p)[name]) / sum(costs(q).values())
                assert row[f"excess_{p}_{q}_exclusive"] == pytest.approx(lost, abs=1e-12)
        assert [(pair["base"], pair["scale"]) for pair in found["pairs"]] == [(2, 8), (4, 16)]
        assert found["target"] == (64 if target else 16)
        assert found["ensemble"]["pairs"] == 10
        text = run(command, runs, *ASKED, *asked).out
        assert "2→8" in text
        assert ("4→16" in text) == bool(target)  # else the last pair is the comparison itself
        assert "its mean over all 10 pairs" in " ".join(text.split())
    shown = run("show", runs, "main/solve", *ASKED, *asked).out
    assert "2 → 8" in shown
    assert "mean of 10 pairs" in shown


def test_a_page_has_the_pairs(run, runs):
    page = run("report", runs, *ASKED, "--target", "64", "--pair", "2,8").out
    assert ">2→8<" in page
    assert "mean of 10 pairs" in page


def test_the_next_command_repeats_pairs_target_and_expectation(run, runs):
    asked = ("--pair", "2,8", "--pair", "4,16", "--target", "64", "--expect", "1 + p")
    told = " ".join(run("excess", runs, *ASKED, *asked).out.split())
    assert told.count("--pair 2,8 --pair 4,16") == 1
    assert "--expect '1 + p'" in told
    assert "--target 64" in told


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--expect", "strong"), 2, "a kind of scaling"),
        (("--expect", "O(n)"), 2, "is in n, but the scales are values of p"),
        (("--expect", "p^"), 2, "neither a growth nor an existing path"),
        (("--expect", "x\x1b[31m"), 2, "neither a growth nor an existing path"),
        (("--expect", "no.toml"), 3, "No such file"),
        (("--expect", "log p", "--pair", "1,8"), 2, "not a finite number above zero at p = 1"),
        (("--expect", "0"), 2, "no excess work"),
        (("--target", "inf"), 2, "no excess work at infinity"),
        (("--target", "16"), 2, "p = 16 was measured"),
        (("--target", "x"), 2, "'x' is not a number"),
        (("--pair", "1,2", "--pair", "1,3"), 2, "no run at p = 3"),
        (("--pair", "1,2", "--base", "1"), 2, "exclude each other"),
    ],
)
def test_what_cannot_be_answered_is_one_error(run, runs, words, status, message):
    done = run("excess", runs, *words)
    done.fails(status, message)
    assert "\x1b" not in done.err
    assert "Traceback" not in done.err


def test_a_configured_target_or_file_of_verdicts_does_not_change_excess(run, runs, tmp_path):
    plain = run("excess", runs, "-f", "csv").out
    config = tmp_path / "c.toml"
    config.write_text('[defaults]\ntarget = 64\nexpect = "e.toml"\n')
    assert run("--config", config, "excess", runs, "-f", "csv").out == plain


# Costs per process with the excess work that Coarfa et al. (ICS 2007) publish.
LBMHD = {
    "mhd": (720, 67, 0.53),
    "mhd/caf_allsum_dp": (16, 18, 0.17),
    "mhd/decomp": (16, 15, 0.14),
}
MILC = {
    "main": (64, 65, 0.33),
    "main/wait_gather": (2, 24, 0.22),
    "main/do_gather": (1, 11, 0.10),
}
PUBLISHED = {"1/p": LBMHD, "1": MILC}


@pytest.mark.parametrize(("growth", "scaling"), [("1/p", "strong"), ("1", "weak")])
def test_growths_give_the_published_excess_work_of_weak_and_strong_scaling(
    run, tmp_path, growth, scaling
):
    """LBMHD on 4 and 64 processors under strong scaling, MILC under weak scaling."""
    path = tmp_path / "runs.csv"
    lines = [
        f"{name},{p},{value}"
        for name, values in PUBLISHED[growth].items()
        for p, value in zip((4, 64), values[:2], strict=True)
    ]
    path.write_text("\n".join(["callpath,p,time", *lines]) + "\n")
    for words in (("--expect", growth, "--scaling", "weak"), ("--scaling", scaling)):
        found = rows(run("excess", path, *words, "-f", "csv"))
        for row in found:
            share = PUBLISHED[growth][row["path"]][2]
            assert number(row, "excess_inclusive") == pytest.approx(share, abs=1e-12)


def test_columns_that_do_not_fit_are_named(run, runs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    pairs = [word for q in (2, 4, 8, 16) for word in ("--pair", f"1,{q}")]
    for command in ("rank", "views"):
        told = " ".join(run(command, runs, *ASKED, "--target", "64", *pairs).out.split())
        assert "not shown for lack of space: 1→2, 1→4, 1→8, 1→16; use --wide or -f csv" in told
        wide = run(command, runs, *ASKED, "--target", "64", *pairs, "--wide").out
        assert "1→16" in wide
        assert "not shown" not in wide


def test_a_hostile_name_of_another_experiment_stays_text(run, runs, tmp_path):
    old = table(tmp_path / "old\x1b[31m\n.csv")
    done = run("excess", runs, *ASKED, "--expect", old)
    assert done.status == 0, done.err
    assert "\x1b" not in done.out
