"""`cpmodel watch`: records of commits, alarms, and the next commit to measure."""

from __future__ import annotations

import csv
import io
import json
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler.history import history_store
from callpath_modeler.history import predictions as prediction_store
from callpath_modeler.history.history_store import HistoryRecord
from efficient_runs import message_passing, uneven, write_run

NAMES = ("main", *"abcdefghi")
ROWS = len(NAMES)
SCALES = (2, 4, 8, 16)
SLOW = 11
"""First commit with the planted change of most histories."""


@pytest.fixture
def profiles(tmp_path):
    """Write profiles of one commit; `factor` multiplies the time of main/c."""

    def profiles(commit, factor=1.0, *, scales=SCALES, repetitions=2, seed=0):
        random = np.random.default_rng([seed, *map(ord, commit)])
        tree = cw.Tree([-1] + [0] * (ROWS - 1), list(NAMES))
        for p in scales:
            for k in range(repetitions):
                run = np.exp(0.1 * random.standard_normal())
                noise = run * np.exp(0.02 * random.standard_normal((ROWS, 1)))
                time = np.arange(1.0, ROWS + 1)[:, None] * noise * np.ones((1, p))
                time[3] *= factor
                folder = tmp_path / commit / f"app.p{p}.r{k + 1}"
                folder.mkdir(parents=True)
                metrics = [cw.MetricToWrite("time", time, unit="sec")]
                cw.write(folder / "profile.cubex", tree, metrics, cw.Machine([1] * p))
        return tmp_path / commit

    return profiles


def kept(path, commits, change=None, *, own=0.02, rows=20, seed=0, labels=None):
    """Keep records of commits without profiles; `change` edits values [n, K, R] of a commit."""
    for k, commit in enumerate(commits):
        random = np.random.default_rng([seed, k])
        shape = (rows, len(SCALES), 3)
        size = np.linspace(1, 5, rows)[:, None, None]
        noise = own * random.standard_normal(shape) + 0.1 * random.standard_normal(shape[1:])
        values = size * np.exp(noise)
        if change is not None:
            change(values, k)
        scales = np.array(SCALES, float)
        record = HistoryRecord(
            commit, float(k), "time", "s", "p", "mean", scales,
            tuple(f"main/f{row}" for row in range(rows)), values, scales * 100.0,
            labels=labels or {},
        )  # fmt: skip
        assert history_store.add(path, record)


@pytest.fixture
def history(tmp_path):
    return tmp_path / "history.db"


def commits(number=16):
    return [f"c{k:02}" for k in range(number)]


def slower(values, commit):
    if commit >= SLOW:
        values[3] *= 1.5


def rows(run, *words):
    done = run("watch", *words, "-f", "csv")
    return done.status, list(csv.DictReader(io.StringIO(done.out)))


def test_profiles_are_added_once_and_a_slowdown_fails(run, profiles, history):
    for k in range(12):
        done = run("watch", "add", history, profiles(f"c{k:02}", 1.5 if k >= 10 else 1.0),
                   "--commit", f"c{k:02}", "--time", k, "--label", "machine=A")  # fmt: skip
        assert (done.status, done.out) == (0, "")
        assert "10 call paths: added" in done.err
    words = (history, history.parent / "c05", "--commit", "c05", "--label", "machine=A")
    again = run("watch", "add", *words)
    assert (again.status, "in the history already" in again.err) == (0, True)
    done = run("watch", "status", history)
    assert done.status == 1
    assert "1 call path is worse at commit c11" in done.out
    assert "main/c" in done.out
    assert "since commit c10" in done.out
    record = history_store.read(history)[0]
    assert record.labels == {"machine": "A"}
    assert record.seconds[0] > 2 * record.values[:, 0].min()
    assert record.target is None


def test_an_unchanged_history_passes(run, history):
    kept(history, commits())
    done = run("watch", "status", history)
    assert done.status == 0
    assert "No call path is worse at commit c15" in done.out
    assert "at most 5 % of histories" in done.out


def test_the_table_dates_and_measures_the_change(run, history):
    kept(history, commits(), slower)
    status, (row,) = rows(run, "status", history)
    assert status == 1
    assert (row["status"], row["callpath"], row["failed"]) == ("worse", "main/f3", "true")
    assert row["commit_before"] == "c10"
    assert row["commit_earliest"] <= "c11" <= row["commit_latest"]
    assert row["alarm"] in {"c11", "c12"}
    assert float(row["low"]) < 0.5 < float(row["high"])
    header = json.loads(run("watch", "status", history, "-f", "json").out)
    assert (header["passed"], header["records"], header["commit"]) == (False, 16, "c15")


def test_an_accepted_change_and_one_made_good_do_not_fail(run, history):
    kept(history, commits(), slower)
    status, (row,) = rows(run, "status", history, "--accept", "c15")
    assert (status, row["status"]) == (0, "past")
    assert run("watch", "status", history, "--accept", "c03").status == 1
    run("watch", "status", history, "--accept", "nix").fails(2, "no record of commit 'nix'")
    mended = history.with_name("mended.db")

    def change(values, commit):
        if SLOW <= commit < SLOW + 8:
            values[3] *= 1.5

    kept(mended, commits(30), change)
    status, found = rows(run, "status", mended)
    assert status == 0
    assert {row["status"] for row in found} == {"past", "better"}


def test_a_smaller_rate_of_false_alarms_needs_more_evidence(run, history):
    def slightly(values, commit):
        if commit >= SLOW:
            values[3] *= 1.12

    kept(history, commits(40), slightly)
    assert run("watch", "status", history).status == 1
    assert run("watch", "status", history, "--false-alarms", "1e-40").status == 0
    run("watch", "status", history, "--false-alarms", "0").fails(2, "--false-alarms")


def test_what_all_call_paths_share_is_common_and_does_not_fail(run, history):
    def upgraded(values, commit):
        if commit >= SLOW:
            values *= 2

    kept(history, commits(24), upgraded)
    status, found = rows(run, "status", history)
    assert status == 0
    assert [row["status"] for row in found] == ["common"]
    assert found[0]["callpath"] == "all call paths"
    assert "the machine, a library or the whole program" in run(
        "watch", "status", history
    ).out.replace("\n", " ")


def test_one_deviating_record_is_suspected(run, history):
    def newest(values, commit):
        if commit == 15:
            values[3] *= 2

    kept(history, commits(), newest)
    status, (row,) = rows(run, "status", history)
    assert (status, row["status"]) == (0, "suspected")
    assert "measure commit c15 once more" in row["message"]


def test_labels_and_metrics_select_records(run, history):
    kept(history, commits(), labels={"machine": "A"})
    kept(history, [f"b{k}" for k in range(16)], slower, seed=1, labels={"machine": "B"})
    assert run("watch", "status", history, "--label", "machine=A").status == 0
    done = run("watch", "status", history, "--label", "machine=B")
    assert done.status == 1
    assert "16 records of other metrics or labels not judged" in done.out.replace("\n", " ")
    run("watch", "status", history, "--label", "machine=C").fails(4, "no such record")
    run("watch", "status", history, "-m", "visits").fails(2, "no record of metric 'visits'", "time")


def test_growth_and_target_are_judged(run, history):
    def growing(values, commit):
        if commit >= SLOW:
            values[3] *= (np.array(SCALES)[:, None] / 2) ** 0.3

    kept(history, commits(20), growing, own=0.01)
    _, (row,) = rows(run, "status", history, "--target", "256")
    assert float(row["growth_change"]) == pytest.approx(0.3, abs=0.05)
    assert float(row["change_at_target"]) == pytest.approx(128**0.3 - 1, rel=0.2)
    run("watch", "status", history, "--target", "inf").fails(2, "--target inf")


def test_predictions_at_a_target_are_kept(run, profiles, history):
    done = run("watch", "add", history, profiles("c1"), "--commit", "c1", "--target", "64")
    assert done.status == 0
    (record,) = history_store.read(history)
    assert record.target == 64
    (kept_predictions,) = prediction_store.predictions(history)
    assert kept_predictions.scale == 64
    assert len(kept_predictions.callpaths) == ROWS
    assert all(low <= value <= high for value, low, high in kept_predictions.bands)
    assert "target 64" in run("watch", "status", history).out


def test_bisection_proposes_the_cheapest_deciding_run(run, history, tmp_path):
    kept(history, commits(), slower)
    done = run("watch", "bisect", history)
    assert done.status == 0
    assert "git rev-list --reverse c10..c11" in done.out.replace("\n  ", " ")
    listed = tmp_path / "commits.txt"
    listed.write_text("c10\nx1\nx2\nx3\nc11\nc12\n")
    _, (row,) = rows(run, "bisect", history, "--commits", listed)
    assert (row["callpath"], row["good"], row["bad"]) == ("main/f3", "c10", "c11")
    assert (row["commit"], row["commits"], row["scale"]) == ("x2", "4", "2.0")
    assert float(row["core_hours"]) == pytest.approx(int(row["repetitions"]) * 200 / 3600)
    assert "measure commit x2" in run("watch", "bisect", history, "--commits", listed).out


@pytest.mark.parametrize(("factor", "next_commit"), [(1.5, "x1"), (1.0, "x3")])
def test_a_bisection_goes_on_after_a_run_at_a_small_scale(
    run, history, tmp_path, factor, next_commit
):
    kept(history, commits(), slower)
    first = history_store.read(history)[10]
    values = first.values[:, :1].copy()
    values[3] *= factor
    fields = {name: getattr(first, name) for name in HistoryRecord.__dataclass_fields__}
    fields |= {"commit": "x2", "time": 10.5, "values": values}
    fields |= {"scales": first.scales[:1], "seconds": first.seconds[:1]}
    assert history_store.add(history, HistoryRecord(**fields))
    listed = tmp_path / "commits.txt"
    listed.write_text("c10\nx1\nx2\nx3\nc11\nc12\n")
    _, (row,) = rows(run, "bisect", history, "--commits", listed)
    assert row["commit"] == next_commit


def test_nothing_to_bisect_is_said(run, history):
    kept(history, commits())
    assert "no commit to look for" in run("watch", "bisect", history).out


def test_errors_have_a_hint(run, profiles, history, tmp_path):
    add = ("watch", "add", history)
    runs = profiles("c1", scales=(2, 4), repetitions=1)
    run(*add, runs, "--commit", " ").fails(2, "--commit")
    run(*add, runs, "--commit", "c1", "--time", "noon").fails(2, "--time 'noon' is no time")
    run(*add, runs, "--commit", "c1", "--time", "nan").fails(2, "--time")
    run(*add, runs, "--commit", "c1", "--label", "x").fails(2, "--label 'x' is malformed")
    run(*add, runs, "--commit", "c1", "--label", "x=1", "--label", "x=2").fails(2, "given twice")
    run(*add, runs, "--commit", "c1", "--target", "inf").fails(2, "--target inf")
    run(*add, runs, "--commit", "c1", "--target", "64").fails(4, "p")
    run("watch", "status", history).fails(3, "no such history", "watch add")
    text = tmp_path / "text.db"
    text.write_text("text")
    run("watch", "status", text).fails(3, "no history, or a damaged one")
    run("watch", "add", text, runs, "--commit", "c1").fails(3, "no history")
    run("watch", "add", tmp_path / "none" / "h.db", runs, "--commit", "c1").fails(6, "written")
    kept(history, commits(3))
    run("watch", "bisect", history, "--commits", tmp_path / "none").fails(3, "cannot be read")


def test_a_commit_is_printed_without_its_control_characters(run, history):
    kept(history, [*commits(15), "bad\x1b[31mname".replace("\x1b", "\\x1b")])
    assert "\x1b" not in run("watch", "status", history).out


def test_a_truncated_profile_is_not_recorded(run, profiles, history):
    runs = profiles("c1")
    profile = next(runs.glob("*/profile.cubex"))
    profile.write_bytes(profile.read_bytes()[:200])
    run("watch", "add", history, runs, "--commit", "c1").fails(3, "could not be used")
    assert not history.exists()


def mixed(values, commit):
    """Plant a regression, an improvement, and a deviation of the newest of 16 commits."""
    slower(values, commit)
    if commit >= 6:
        values[7] /= 1.6
    if commit == 15:
        values[5] *= 1.6


def test_a_comment_has_the_verdict_first_and_a_folded_table(run, history):
    kept(history, commits(), mixed)
    done = run("watch", "status", history, "-f", "comment")
    assert done.status == 1
    visible, _, folded = done.out.partition("<details>")
    lines = visible.strip().splitlines()
    assert lines[0] == "**1 call path is worse at commit c15 than before.**"
    assert len(lines) <= 10
    assert "- worse: main/f3: +5" in visible
    assert folded.count("\n| worse | main/f3 |") == 1
    assert folded.count("\n| better | main/f7 |") == 1
    assert folded.rstrip().endswith("</details>")


def test_a_comment_stays_short_and_shows_names_literally(run, history):
    names = [f"main/<img src=x>|`f{k}`](http://x)" for k in range(200)]
    for k in range(16):
        random = np.random.default_rng(k)
        values = np.exp(0.02 * random.standard_normal((200, 1, 3)))
        if k >= 10:
            values[:15] *= 2
        record = HistoryRecord(f"c{k:02}", k, "time", "s", "p", "mean", np.array([4.0]),
                               tuple(names), values, np.array([1.0]),
                               {"machine": "A"})  # fmt: skip
        history_store.add(history, record)
    out = run("watch", "status", history, "-f", "comment").out
    assert "15 call paths are worse" in out
    visible = out.partition("<details>")[0].strip().splitlines()
    assert len(visible) <= 10
    assert "others in the table" in visible[-3]
    for sign in ("<img", "](http", "`f"):
        assert all(out[at - 1] == "\\" for at in range(1, len(out)) if out.startswith(sign, at))


def test_annotations_name_what_fails(run, history):
    kept(history, commits(), mixed)
    github = run("watch", "status", history, "-f", "github").out.splitlines()
    assert github[0].startswith("::error title=WORSE main/f3::+5")
    assert [line.split(" ")[0] for line in github[:-1]] == ["::error", "::warning", "::notice"]
    issues = json.loads(run("watch", "status", history, "-f", "gitlab").out)
    assert [each["severity"] for each in issues] == ["major", "minor", "info"]
    for each in issues:
        assert set(each) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert each["location"] == {"path": "history.db", "lines": {"begin": 1}}
    assert len({each["fingerprint"] for each in issues}) == 3
    again = json.loads(run("watch", "status", history, "-f", "gitlab").out)
    assert again == issues


def test_junit_has_a_case_for_each_call_path(run, history, tmp_path):
    kept(history, commits(), mixed)
    path = tmp_path / "watch.xml"
    assert run("watch", "status", history, "--junit", path).status == 1
    suites = ET.fromstring(path.read_text())  # noqa: S314 - our own output
    counts = {key: suites.get(key) for key in ("tests", "failures", "skipped")}
    assert counts == {"tests": "20", "failures": "1", "skipped": "1"}
    (failed,) = [
        case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None
    ]
    assert failed == "main/f3"
    run("watch", "status", history, "--junit", path).fails(6, "exists", "--force")


@pytest.mark.parametrize(("change", "text"), [(None, "not worse"), (mixed, "1 worse")])
def test_a_badge_says_the_verdict(run, history, tmp_path, change, text):
    kept(history, commits(), change)
    path = tmp_path / "badge.svg"
    run("watch", "status", history, "-o", path)
    badge = ET.fromstring(path.read_text())  # noqa: S314 - our own output
    assert badge.find("{http://www.w3.org/2000/svg}title").text == f"performance: {text}"
    assert float(badge.get("width")) < 200


def test_a_page_needs_no_other_file_and_charts_each_call_path(run, history, tmp_path):
    kept(history, commits(), mixed)
    path = tmp_path / "history.html"
    assert run("watch", "status", history, "-o", path).status == 1
    page = path.read_text()
    assert "1 call path is worse at commit c15 than before." in page
    assert page.count("<svg") == 21
    assert page.count('class="band"') == 2
    assert "default-src &#x27;none&#x27;" in page
    assert re.findall(r'(?:src|href)="(?!#|data:)', page) == []
    assert "<script" not in page


def write_efficient(folder, balance, communication):
    """Write runs of known efficiency at p = 2, 4 and 8."""
    for p in (2, 4, 8):
        longest = 1.0 / balance
        time = message_passing(uneven(p, 1.0, longest), longest / communication)
        write_run(folder, f"app.p{p}.r1", [1] * p, time)
    return folder


def test_factors_of_efficiency_are_rows_of_text_comment_and_page(run, history, tmp_path):
    for commit, balance in (("c1", 0.9), ("c2", 0.9), ("c3", 0.8)):
        runs = write_efficient(tmp_path / commit, balance, 0.75)
        done = run("watch", "add", history, runs, "--commit", commit, "--time", commit[1])
        assert done.status == 0, done.err
    done = run("watch", "status", history)
    line = next(line for line in done.out.splitlines() if line.endswith("load balance"))
    assert line.split()[:3] == ["80.0", "%", "(-10.0)"]
    assert "75.0 %" in next(
        line for line in done.out.splitlines() if line.endswith("communication efficiency")
    )
    found = json.loads(run("watch", "status", history, "-f", "json").out)["efficiency"]
    assert found["load_balance"] == pytest.approx([0.8] * 3)
    assert found["parallel_efficiency"] == pytest.approx([0.6] * 3)
    comment = run("watch", "status", history, "-f", "comment").out
    assert "| load balance | 80.0 % (-10.0) |" in comment
    page = run("watch", "status", history, "-f", "html").out
    assert "80.0 % (-10.0)" in page


def test_profiles_without_communication_have_no_rows_of_efficiency(run, profiles, history):
    assert run("watch", "add", history, profiles("c1"), "--commit", "c1").status == 0
    assert json.loads(run("watch", "status", history, "-f", "json").out)["efficiency"] == {}
    assert "fficiency" not in run("watch", "status", history, "-f", "comment").out


@pytest.mark.parametrize("factors", [[[2.0] * 4] * 3, [[-1.0] * 4] * 3, [[0.5] * 4], [[0.5]] * 3])
def test_impossible_factors_are_refused(history, factors):
    with pytest.raises(ValueError, match="efficiency"):
        history_store.add(
            history,
            HistoryRecord(
                "c1", 0.0, "time", "s", "p", "mean", np.array(SCALES, float), ("main",),
                np.ones((1, 4, 1)), np.ones(4), efficiency=np.array(factors),
            ),
        )  # fmt: skip


def beside_control(values, commit):
    if commit >= SLOW:
        values[:14] *= 1.3


CONTROL = ("--control", "main/f1{4,5,6}", "--control", "f1{7,8,9}")


def test_a_slower_program_beside_a_control_fails_everywhere(run, history, tmp_path):
    kept(history, commits(24), beside_control)
    assert run("watch", "status", history).status == 0
    words = ("watch", "status", history, *CONTROL)
    done = run(*words, "--junit", tmp_path / "watch.xml")
    assert done.status == 1
    assert "The program is worse at commit c23 than before, relative to the control." in done.out
    text = " ".join(done.out.split())
    assert re.search(r"control of 6 call paths: [-+][\d.]+ % now", text)
    assert "WORSE the program, relative to the control +" in text
    found = json.loads(run(*words, "-f", "json").out)
    assert found["control"]["callpaths"] == [f"main/f{k}" for k in range(14, 20)]
    assert abs(found["control"]["change"]) < 0.3
    assert 0.01 < found["control"]["least_change"] < 0.2
    said = re.search(r"a slowdown of the program by (\d+) % is named within three commits", text)
    assert float(said[1]) == round(100 * found["control"]["least_change"])
    assert "The program scatters much" not in text
    row = found["rows"][0]
    assert (row["status"], row["failed"]) == ("worse", True)
    assert row["low"] < 0.3 < row["high"]
    comment = run(*words, "-f", "comment").out
    assert comment.startswith("**The program is worse at commit c23")
    assert "control of 6 call paths" in comment
    page = run(*words, "-f", "html").out
    assert "relative to the control" in page
    assert page.count('class="band"') >= 1
    assert "::error title=WORSE the program" in run(*words, "-f", "github").out
    assert "1 worse" in run(*words, "-f", "badge").out
    suites = ET.parse(tmp_path / "watch.xml").getroot()  # noqa: S314 - our own output
    failed = [
        each.get("name") for each in suites.iter("testcase") if each.find("failure") is not None
    ]
    assert failed == ["the program, relative to the control"]
    bisected = run("watch", "bisect", history, *CONTROL)
    assert bisected.status == 0
    assert "the program, relative to the control" in bisected.out
    accepted = run(*words, "--accept", "c23")
    assert accepted.status == 0
    assert "PAST" in accepted.out


def test_a_slowdown_that_the_control_shares_is_that_of_the_machine(run, history):
    def upgraded(values, commit):
        if commit >= SLOW:
            values *= 2

    kept(history, commits(24), upgraded)
    done = run("watch", "status", history, *CONTROL)
    text = " ".join(done.out.split())
    assert done.status == 0
    assert "nor is the program relative to the control" in text
    assert "COMMON the control +" in text
    assert "come from the machine or a library" in text


def test_a_noisy_control_says_that_it_shows_little(run, history):
    def noisy(values, commit):
        scatter = np.random.default_rng(commit).standard_normal((6, *values.shape[1:2], 1))
        values[14:] *= np.exp(0.2 * scatter)

    kept(history, commits(24), noisy)
    done = run("watch", "status", history, *CONTROL)
    assert "The program scatters much relative to the control" in " ".join(done.out.split())
    kept(history.with_name("new.db"), commits(3))
    done = run("watch", "status", history.with_name("new.db"), *CONTROL)
    assert "too few records to name a slowdown of the program" in " ".join(done.out.split())


def test_call_paths_that_become_slower_together_are_in_the_verdict(run, history):
    """Without a control, this may be the machine, so it is no failure."""

    def slower(values, commit):
        if commit >= SLOW:
            values[:7] *= np.linspace(1.3, 1.5, 7)[:, None, None]

    kept(history, commits(24), slower)
    done = run("watch", "status", history)
    assert done.status == 0
    verdict = "No call path is worse on its own at commit c23 than before"
    assert f"{verdict}, but 7 of 20 call paths changed together." in done.out
    assert "JOINT" in done.out
    accepted = run("watch", "status", history, "--accept", "c23").out
    assert "No call path is worse at commit c23 than before." in accepted
    assert run("watch", "status", history, *CONTROL).status == 1


def test_a_factor_of_all_call_paths_is_in_the_verdict(run, history):
    def slower(values, commit):
        if commit >= SLOW:
            values *= 2

    kept(history, commits(24), slower)
    done = run("watch", "status", history)
    assert done.status == 0
    assert "worse on its own at commit c23 than before, but all changed by one factor." in done.out


def test_a_control_that_names_nothing_or_too_few_or_all_is_an_error(run, history):
    kept(history, commits(6))
    status = ("watch", "status", history, "--control")
    run(*status, "nix").fails(2, "no judged call path matches 'nix'", "--junit FILE")
    run(*status, "main").fails(2, "no judged call path matches 'main'", "--junit FILE")
    run(*status, "f33").fails(2, "did you mean")
    run(*status, "f{1,2}").fails(2, "2 call paths", "name 3 or more")
    run(*status, "**").fails(2, "nothing is left to judge")
    run(*status, "").fails(2, "empty call-path pattern")


def test_a_newest_commit_without_values_of_the_control_is_an_error(run, history):
    def gone(values, commit):
        if commit == 5:
            values[14:18] = np.nan

    kept(history, commits(6), gone)
    done = run("watch", "status", history, *CONTROL)
    done.fails(4, "commit c05 has fewer than 3 call paths of the control", "all commits have")


def test_earlier_records_without_values_of_the_control_are_counted(run, history):
    def missing(values, commit):
        if commit < 2:
            values[14:18] = np.nan

    kept(history, commits(), missing)
    done = run("watch", "status", history, *CONTROL)
    assert done.status == 0
    assert "2 records with too few values of the control not judged" in " ".join(done.out.split())


def grouped(history, rows, factors, **labels):
    """Write a history of eight call paths, some of which become slower at the tenth of 13."""
    random, names = np.random.default_rng(95), tuple(f"main/f{k}" for k in range(8))
    for k in range(13):
        values = np.exp(0.02 * random.standard_normal((8, 3, 3)))
        values *= np.arange(1.0, 9.0)[:, None, None]
        if k >= 9:
            values[list(rows)] *= np.reshape(factors, (-1, 1, 1))
        record = HistoryRecord(f"c{k:02}", k, "time", "s", "p", "mean", np.array([4.0, 8.0, 16.0]),
                               names, values, np.ones(3), labels)  # fmt: skip
        history_store.add(history, record)


def test_two_of_eight_call_paths_that_become_slower_fail_as_a_group(run, history, tmp_path):
    grouped(history, (2, 5), (1.5, 1.9))
    done = run("watch", "status", history, "--junit", tmp_path / "watch.xml")
    assert done.status == 1
    assert done.out.startswith("2 of 8 call paths are worse together at commit c12 than before.")
    assert "WORSE     2 of 8 call paths: main/f2, main/f5" in done.out
    assert "the program or the machine" in done.out
    assert (tmp_path / "watch.xml").read_text().count("<failure") == 1
    bisected = run("watch", "bisect", history)
    assert bisected.out.startswith("2 of 8 call paths: main/f2, main/f5")
    assert run("watch", "status", history, "--accept", "c12").status == 0


def test_equal_labels_of_the_machine_name_each_call_path(run, history):
    grouped(history, (2, 5), (1.5, 1.9), machine="A")
    done = run("watch", "status", history)
    assert done.status == 1
    assert done.out.startswith("2 call paths are worse at commit c12 than before.")


def test_three_of_eight_by_one_factor_are_probably_the_machine(run, history):
    grouped(history, (1, 2, 5), (1.1, 1.1, 1.1))
    done = run("watch", "status", history)
    assert done.status == 0
    assert "JOINT     3 of 8 call paths" in done.out
    assert "by one factor: probably the machine" in done.out
