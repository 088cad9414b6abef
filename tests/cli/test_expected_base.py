"""`--expect` as the base of excess work in every command that shows it."""

from __future__ import annotations

import csv
import html
import io
import json

import networkx as nx
import numpy as np
import pytest

from callpath_modeler.cli import browse
from callpath_modeler.cli.console import Console
from callpath_modeler.errors import UsageError
from callpath_modeler.studies.study import Study

SCALES = (1, 2, 4, 8, 16)
WEAK, STRONG = ("--scaling", "weak"), ("--scaling", "strong")
LOSING = "main/solve"


def costs(p, factor=1.0):
    """Return the time per process of each call path."""
    return {"main": 2.0, LOSING: factor * (1 + 0.5 * p), "main/reduce": 1 + np.log2(p)}


def table(path, scales=SCALES, factor=1.0):
    lines = ["callpath,p,time"]
    for p in scales:
        lines += [f"{name},{p},{value:.17g}" for name, value in costs(p, factor).items()]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def runs(tmp_path):
    return table(tmp_path / "new.csv")


@pytest.fixture
def limits(tmp_path):
    path = tmp_path / "limits.toml"
    path.write_text('schema = 1\n[[expect]]\ncallpath = "main/solve"\ngrowth = "<= O(p)"\n')
    return path


def lines(done):
    assert done.status == 0, done.err
    return list(csv.DictReader(io.StringIO(done.out)))


def shares(done, name="excess_exclusive"):
    """Return a column of excess work, by call path."""
    found = {}
    for row in lines(done):
        path = row.get("callpath") or row["path"]
        found[path] = float(row[name])
    return found


def words(done):
    assert done.status == 0, done.err
    return " ".join(done.out.replace("\N{NO-BREAK SPACE}", " ").split())


def lost(p, q, grown, factor=1.0):
    """Return the excess work of each call path, if each may grow by a factor."""
    total = sum(costs(q).values())
    return {name: (costs(q)[name] - grown * costs(p, factor)[name]) / total for name in costs(p)}


ASKED = [
    ("--pair", "2,8"),
    ("--target", "16"),
    ("--target", "64"),
    ("--pair", "2,8", "--target", "64"),
]
TABLES = [("rank",), ("views",), ("export", "--what", "ranking")]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("command", TABLES)
def test_weak_is_the_growth_1_and_strong_the_growth_1_over_p_to_the_last_bit(
    run, runs, command, asked
):
    name, *more = command
    for growth, scaling in (("1", WEAK), ("1/p", STRONG)):
        # The expectation replaces the scaling, whatever that is.
        for other in (WEAK, STRONG):
            expected = lines(
                run(name, runs, *more, *asked, *other, "--expect", growth, "-f", "csv")
            )
            perfect = lines(run(name, runs, *more, *asked, *scaling, "-f", "csv"))
            assert len(expected) == len(perfect) >= 3
            columns = [each for each in perfect[0] if each.startswith(("excess", "loss"))]
            assert len(columns) >= 6
            for mine, theirs in zip(expected, perfect, strict=True):
                assert [mine[each] for each in columns] == [theirs[each] for each in columns]


@pytest.mark.parametrize("command", TABLES)
def test_a_pair_is_compared_with_a_growth(run, runs, command):
    name, *more = command
    asked = ("--pair", "4,16", "--pair", "2,8", "--expect", "O(p^½)", "-f", "csv")
    found = run(name, runs, *more, *WEAK, *asked)
    assert shares(found, "excess_exclusive") == pytest.approx(lost(2, 8, 2.0))
    assert shares(found, "excess_4_16_exclusive") == pytest.approx(lost(4, 16, 2.0))
    pairs = [(p, q) for p in SCALES for q in SCALES if p < q]
    means = [lost(p, q, np.sqrt(q / p)) for p, q in pairs]
    assert shares(found, "excess_ensemble_exclusive") == pytest.approx(
        {path: np.mean([each[path] for each in means]) for path in costs(1)}
    )


@pytest.mark.parametrize("command", TABLES)
def test_a_target_is_compared_with_a_growth_with_a_band(run, runs, command):
    name, *more = command
    done = run(name, runs, *more, *WEAK, "--target", "64", "--expect", "O(p^½)", "-f", "csv")
    found = shares(done)
    assert found == pytest.approx(lost(1, 64, 8.0), abs=0.02)
    ends = "_exclusive" * (name == "views")
    for row in lines(done):
        path = row.get("callpath") or row["path"]
        low, high = (float(row[f"excess_{end}{ends}"]) for end in ("low", "high"))
        assert low <= found[path] <= high


def test_all_commands_agree_on_the_excess_work_at_a_target(run, runs):
    asked = (*WEAK, "--expect", "O(p^½)", "--target", "64", "-f", "csv")
    of_rank = shares(run("rank", runs, *asked))
    assert shares(run("views", runs, *asked)) == pytest.approx(of_rank, rel=1e-12)
    of_excess = {
        row["path"]: float(row["excess_exclusive"])
        for row in lines(run("excess", runs, *asked))
        if row["scale"] == "64.0"
    }
    assert of_excess == pytest.approx(of_rank, rel=1e-12)


def test_the_base_is_the_smallest_scale_from_which_a_cost_is_expected(run, runs):
    """log p is zero at p = 1."""
    asked = (*WEAK, "--target", "64", "--expect", "log p")
    found = json.loads(run("rank", runs, *asked, "-f", "json").out)
    assert found["base"] == 2
    assert found["expected"]["meaning"] == "expected g(p) = log p"
    by_path = {row["callpath"]: row for row in found["rows"]}
    assert by_path[LOSING]["value_at_base"] == costs(2)[LOSING]
    true = lost(2, 64, 6.0)
    assert by_path[LOSING]["excess_exclusive"] == pytest.approx(true[LOSING], abs=0.02)
    assert "since p = 2" in words(run("rank", runs, *asked))
    shown = words(run("show", runs, LOSING, *asked))
    assert "2 → 16" in shown
    assert "1 → 2" not in shown
    run("rank", runs, "--pair", "1,8", "--expect", "log p").fails(2, "above zero at p = 1")


@pytest.mark.parametrize("asked", [("--pair", "2,8"), ("--target", "64")])
def test_every_table_says_what_is_expected(run, runs, asked):
    for command in (("rank",), ("views",), ("show", LOSING), ("report",)):
        name, *more = command
        told = html.unescape(words(run(name, runs, *more, *WEAK, *asked, "--expect", "O(p^½)")))
        assert "expected g(p) = O(p^(1/2))" in told or "expected g(p) = O(p^½)" in told, command
        assert "T_q, weak scaling" not in told
        assert "superlinear" not in told
        # The page has the factors of parallel efficiency as well.
        assert name == "report" or "efficiency" not in told


def test_the_next_command_has_the_same_expectation(run, runs):
    told = words(run("rank", runs, *WEAK, "--target", "64", "--expect", "O(p^½)"))
    assert told.count("--expect 'O(p^½)'") == 1


def test_graphs_flames_and_cubes_are_relative_to_the_expectation(run, runs, tmp_path):
    asked = (*WEAK, "--expect", "O(p^½)")
    found = run("export", runs, *asked, "--pair", "2,8", "-f", "graphml")
    graph = nx.read_graphml(io.BytesIO(found.out.encode()))
    of_graph = {node["callpath"]: node["excess_exclusive"] for _, node in graph.nodes.items()}
    true = lost(2, 8, 2.0)
    assert of_graph[LOSING] == pytest.approx(true[LOSING])
    for target in ((), ("--pair", "2,8"), ("--target", "64")):
        picture = run("export", runs, *asked, *target, "-f", "svg")
        assert "expected g(p) = O(p^½)" in html.unescape(picture.out)
        assert "weak scaling" not in picture.out
    path = tmp_path / "models.cubex"
    assert run("export", runs, *asked, "--target", "64", "-o", path).status == 0
    assert b"expected g(p) = O(p^" in path.read_bytes()
    for form in ("folded", "extra-p"):
        run("export", runs, "--expect", "O(p)", "-f", form).fails(2, "neither excess work nor")


def test_a_file_adds_verdicts_and_the_growths_that_it_expects(run, runs, limits):
    asked = (*WEAK, "--target", "64", "--expect", limits)
    found = json.loads(run("rank", runs, *asked, "-f", "json").out)
    assert found["expectations"]
    by_path = {row["callpath"]: row for row in found["rows"]}
    assert by_path[LOSING]["verdict"] == "pass"
    total = sum(costs(64).values())
    assert by_path[LOSING]["excess_exclusive"] == pytest.approx((33 - 1.5 * 64) / total, abs=0.02)
    # All others scale perfectly.
    assert by_path["main/reduce"]["excess_exclusive"] == pytest.approx(6 / total, abs=0.02)
    assert "others, g = 1 (weak scaling)" in found["expected"]["notes"][0]
    assert f"expected growths g of {limits}" in words(run("rank", runs, *asked))


def test_a_file_without_growths_only_adds_verdicts(run, runs, tmp_path):
    path = tmp_path / "values.toml"
    path.write_text('schema = 1\n[[expect]]\nvalue = "<= 1 h"\n')
    asked = (*WEAK, "--target", "64")
    plain = shares(run("rank", runs, *asked, "-f", "csv"))
    assert shares(run("rank", runs, *asked, "--expect", path, "-f", "csv")) == plain
    run("views", runs, *asked, "--expect", path).fails(2, "states no growth in p")


@pytest.mark.parametrize("is_file", [True, False])
def test_a_configured_file_adds_verdicts_alone(run, runs, limits, monkeypatch, is_file):
    """Its limits are for tests, so they do not hide losses unless the user says so."""
    if is_file:
        monkeypatch.setenv("CPMODEL_EXPECT", str(limits))
        before = ()
    else:
        config = limits.with_name("c.toml")
        config.write_text('[defaults]\nexpect = "limits.toml"\n')
        before = ("--config", config)
    asked = (*WEAK, "--target", "64", "-f", "csv")
    done = run(*before, "rank", runs, *asked)
    assert {row["callpath"]: row["verdict"] for row in lines(done)}[LOSING] == "pass"
    found = shares(done)
    assert found == pytest.approx(lost(1, 64, 1.0), abs=0.02)
    for command in ("views", "excess"):
        done = run(*before, command, runs, *asked)
        named = {row["path"]: row for row in lines(done)}  # the last row is the target
        assert float(named[LOSING]["excess_exclusive"]) == pytest.approx(found[LOSING], rel=1e-12)


def test_another_version_states_the_expected_cost_of_a_pair_and_of_a_target(run, runs, tmp_path):
    old = table(tmp_path / "old.csv", factor=0.5)
    for command in ("rank", "views"):
        found = shares(run(command, runs, *WEAK, "--pair", "2,8", "--expect", old, "-f", "csv"))
        total = sum(costs(8).values())
        assert found == pytest.approx({"main": 0, "main/reduce": 0, LOSING: 2.5 / total})
        told = words(run(command, runs, *WEAK, "--pair", "2,8", "--expect", old))
        assert "At p = 8" in told
        asked = (*WEAK, "--target", "64", "--expect", old)
        done = run(command, runs, *asked, "-f", "csv")
        total = sum(costs(64).values())
        assert shares(done)[LOSING] == pytest.approx(16.5 / total, abs=0.02)
        # The band has the errors of both predictions.
        alone = run(command, runs, *WEAK, "--target", "64", "--expect", "1", "-f", "csv")
        low = "excess_low" + "_exclusive" * (command == "views")
        high = low.replace("low", "high")
        both, one = (
            shares(each, high)[LOSING] - shares(each, low)[LOSING] for each in (done, alone)
        )
        assert both > one > 0


def test_few_scales_of_another_version_expect_nothing_elsewhere(run, runs, tmp_path):
    few = table(tmp_path / "few.csv", scales=(1, 16))
    told = words(run("rank", runs, *WEAK, "--target", "64", "--expect", few))
    assert "no excess work" in told
    assert "it has no models" in told
    done = run("rank", runs, *WEAK, "--target", "64", "--expect", few, "-f", "csv")
    assert {row["excess_exclusive"] for row in lines(done)} == {""}


def test_at_infinity_nothing_is_expected(run, runs):
    told = words(run("rank", runs, *WEAK, "--target", "inf", "--expect", "O(p)", "--by", "loss"))
    assert "no excess work: no cost is expected at infinity" in told


@pytest.mark.parametrize("command", ["rank", "views", "report"])
@pytest.mark.parametrize(
    ("expect", "status", "message"),
    [
        (("--expect", "weak"), 2, "a kind of scaling"),
        (("--expect", "O(n)"), 2, "is in n, but the scales are values of p"),
        (("--expect", "p^"), 2, "neither a growth nor an existing path"),
        (("--expect", "no.toml"), 3, "No such file"),
        (("--expect", "0"), 2, "no excess work"),
        (("--expect", "O(p)", "--where", "p=8"), 2, "runs of one scale have no excess work"),
    ],
)
def test_what_cannot_be_expected_is_one_error(run, runs, command, expect, status, message):
    target = () if "--where" in expect else ("--target", "64")
    done = run(command, runs, *WEAK, *target, *expect)
    done.fails(status, message)
    assert "Traceback" not in done.err


def test_values_of_single_processes_are_not_compared(run, runs):
    run("show", runs, LOSING, "--per-process", "--expect", "O(p)").fails(2, "--expect")


def test_the_browser_keeps_the_expectation_for_other_pairs(run, runs, clean):  # noqa: ARG001
    line = [str(runs), *WEAK, "--expect", "O(p^½)", "--target", "64"]
    ctx = browse.command.make_context("browse", line, obj=Console())
    with ctx:
        given = browse.browser_services(Console(), ctx, Study(runs))
        fitted = given.models_of("time", "2,8")
        assert fitted.ideal.meaning == "expected g(p) = O(p^½)"
        with_models = given.models_of("time", "2,8 64")
        assert with_models.pairs == ((2.0, 8.0),)
        assert with_models.ideal.meaning == "expected g(p) = O(p^½)"
    line = [str(runs), *WEAK, "--expect", "log p"]
    ctx = browse.command.make_context("browse", line, obj=Console())
    with ctx:
        given = browse.browser_services(Console(), ctx, Study(runs))
        for pairs in ("1,8", "1,8 64"):
            with pytest.raises(UsageError, match="above zero at p = 1"):
                given.models_of("time", pairs)
