from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def expectations(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("expectations") / "e.toml"
    path.write_text(
        'schema = 1\n[[expect]]\ncallpath = "main/MPI_Init"\ngrowth = "<= O(1)"\n'
        '[[expect]]\ncallpath = "main"\nmetric = "visits"\ngrowth = "<= O(1)"\n'
    )
    return path


def data(text: str, section: str) -> list[float]:
    part = re.search(rf'<section id="{section}".*?</section>', text, re.DOTALL)[0]
    return [float(value) for value in re.findall(r'<data value="([^"]+)"', part)]


def test_a_page_tells_what_rank_and_show_tell(run, stored, tmp_path):
    path = tmp_path / "r.html"
    done = run("report", stored, "--target", 1000, "-o", path, "-n", 3)
    assert (done.status, done.out) == (0, "")
    text = path.read_text(encoding="utf-8")
    ranked = json.loads(run("rank", stored, "--target", 1000, "-f", "json").out)
    rows, numbers = ranked["rows"], data(text, "ranking")
    assert numbers[:2] == [1, rows[0]["value_at_largest"]]
    assert {row["value_at_target"] for row in rows[:10]} <= set(numbers)
    for row in rows[:3]:
        shown = run("show", stored, row["id"], "--target", 1000).out
        formula = next(line for line in shown.splitlines() if line.startswith("time(p) = "))
        card = re.search(rf'id="c-{row["id"][1:]}">.*?</article>', text)[0]
        plain = html.unescape(re.sub("<[^>]+>", "", card))
        assert formula.partition("   at ")[0] in plain
        assert f"cpmodel show {stored} {row['id']} --target 1000" in plain


def test_cards_say_whether_call_paths_do_more_or_wait(run, series):
    runs = series()
    text = html.unescape(re.sub("<[^>]+>", "", run("report", runs, "--target", 64).out))
    shown = " ".join(run("show", runs, "main/g", "--target", 64).out.split())
    verdict = shown[shown.index("Requirements do not grow") : shown.index(" at p = 64.")]
    assert verdict in " ".join(text.split())
    assert "Requirements" in text


def test_the_page_goes_through_a_pipe(run, stored):
    done = run("report", stored, "--target", 1000)
    assert done.status == 0
    assert done.out.startswith("<!DOCTYPE html>\n")
    assert done.out.endswith("</html>\n")


def test_how_models_were_made_is_told_in_words(run, stored):
    making = re.search(r'<section id="making".*', run("report", stored).out, re.DOTALL)[0]
    hypotheses = re.search(r"<dt>hypotheses</dt><dd>(.*?)</dd>", making)[1]
    assert hypotheses.startswith(
        "exponents: 0, 1/2, 1, 3/2, 2, 5/2, 3; logs: 0, 1, 2; max terms: 2"
    )
    assert not set(hypotheses) & set('{}[]"')


def test_without_a_target_it_is_four_times_the_largest_scale(run, stored):
    text = run("report", stored).out.replace("\N{NO-BREAK SPACE}", " ")
    assert "at p = 500 (4 × the largest run; " in text


def test_two_pages_of_the_same_are_the_same_to_the_last_byte(run, stored, tmp_path):
    for name in "ab":
        run("report", stored, "--target", 1000, "-o", tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_inputs_are_named_with_their_hashes(run, series):
    folder = series()
    text = run("report", folder).out
    assert len(re.findall(r"<code>[0-9a-f]{64}</code>", text)) == 5
    profile = folder / "app.p16.r1" / "profile.cubex"
    profile.write_bytes(profile.read_bytes() + b"\0" * 512)
    changed = run("report", folder).out
    kept = set(re.findall(r"<code>[0-9a-f]{64}</code>", text + changed))
    assert len(kept) == 6


def test_expectations_may_be_about_other_metrics(run, lulesh, expectations):
    done = run("report", lulesh, "--target", 1000, "--expect", expectations)
    assert done.status == 0, done.err
    part = re.search(r'<section id="expectations".*?</section>', done.out, re.DOTALL)[0]
    checked = run("check", lulesh, expectations, "--target", 1000).out
    for line in checked.splitlines()[:1]:
        status, _, rest = line.partition(" ")
        assert f">{status}<" in part
        assert html.escape(rest.split("  ")[-1].strip()) in part
    assert "1 failed" in part
    assert "--expect" in re.search(r'<section id="making".*', done.out, re.DOTALL)[0]


def test_an_expectation_file_that_is_not_understood_is_refused_before_anything_is_read(
    run, tmp_path
):
    path = tmp_path / "e.toml"
    path.write_text("schema = 1\n[[expect]]\ngrowht = 3\n")
    run("report", tmp_path / "nothing", "--expect", path).fails(3, "e.toml:3", "growht")


def test_a_file_that_exists_is_kept_unless_forced(run, stored, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("mine")
    run("report", stored, "-o", path).fails(6, "exists")
    assert path.read_text() == "mine"
    assert run("report", stored, "-o", path, "--force").status == 0
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_page_has_the_factors_of_efficiency(run, lulesh):
    page = run("report", lulesh, "--target", "1000").out.replace("\N{NO-BREAK SPACE}", " ")
    section = page.partition('<section id="efficiency"')[2].partition("</section>")[0]
    assert "predicted at p = 1000" in section
    assert "communication efficiency" in section
    assert "LagrangeLeapFrog" in section


def test_the_page_of_a_count_has_no_factors(run, lulesh):
    assert 'id="efficiency"' not in run("report", lulesh, "-m", "visits").out
