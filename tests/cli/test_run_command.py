"""`cpmodel run`: from a command line to profiles that the other commands read."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from callpath_modeler.campaign import launch

PROGRAM = """
import sys, time
p = int(sys.argv[1])
print("on", p)
time.sleep(0.01 + 0.08 / p)
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write a program, and work in its directory."""
    monkeypatch.chdir(tmp_path)

    def program(text: str = PROGRAM) -> tuple[str, str]:
        Path("app.py").write_text(text)
        return sys.executable, "app.py"

    return program


def runs(series: str = "runs") -> list[str]:
    return sorted(each.name for each in Path(series).iterdir() if not each.name.startswith("."))


def record(path: str) -> dict[str, object]:
    return msgspec.toml.decode((Path(path) / "run.toml").read_bytes())


def test_a_series_needs_a_command_line_and_is_read_by_rank(run, program):
    done = run("run", "--scales", "1,2,4", "--repeat", "2", "--seed", "7", "--", *program(), "{p}")
    assert done.status == 0, done.err
    assert done.out.splitlines() == [
        "done: 6 of 6 runs, in runs (seed 7)",
        "next: cpmodel rank runs --target 16",
    ]
    assert runs() == ["p1.r1", "p1.r2", "p2.r1", "p2.r2", "p4.r1", "p4.r2"]
    assert Path("runs/p4.r1/stdout").read_text() == "on 4\n"
    told = record("runs/p4.r2")
    assert told["command"] == [sys.executable, "app.py", "4"]
    assert (told["parameters"], told["repetition"], told["status"]) == ({"p": 4}, 2, 0)
    assert 0.03 < told["seconds"] < 60
    assert told["max_memory"] > 1_000_000
    answer = json.loads(run("rank", "runs", "--target", "16", "-f", "json").out)
    assert [row["callpath"] for row in answer["rows"]] == ["app.py"]
    about = run("info", "runs").out
    assert "6 runs of 3 points" in about
    assert "CPM164" not in about  # no reader takes records and outputs for profiles


def test_the_order_is_random_and_follows_from_the_seed(run, program):
    words = program()
    orders = []
    for seed, series in (("1", "a"), ("1", "b"), ("2", "c")):
        told = run("run", "-o", series, "--scales", "1,2,4,8", "--repeat", "2", "--seed", seed,
                   "--dry-run", "--", *words, "{p}").out  # fmt: skip
        orders.append([line.partition(":")[0] for line in told.splitlines()])
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])
    assert orders[0] != sorted(orders[0])
    assert not Path("a").exists()


def test_a_second_command_runs_nothing_and_further_scales_are_added(run, program):
    words = program()
    command = ("run", "--scales", "1,2", "--repeat", "1", "--", *words, "{p}")
    assert run(*command).status == 0
    before = Path("runs/p1.r1/run.toml").read_bytes()
    assert run(*command).out.startswith("done: 2 of 2 runs")
    assert Path("runs/p1.r1/run.toml").read_bytes() == before
    assert run("run", "--again", "runs", "--scales", "4").out.startswith("done: 3 of 3 runs")
    assert run("run", "--again", "runs", "--repeat", "2").out.startswith("done: 6 of 6 runs")
    assert run("run", "--again", "runs").out.startswith("done: 6 of 6 runs")


def test_a_directory_holds_one_series(run, program):
    words = program()
    assert run("run", "--scales", "1", "--repeat", "1", "--", *words, "{p}").status == 0
    run("run", "--scales", "1", "--", *words, "{p}", "x").fails(2, "another command", "-o")
    run("run", "--again", "nowhere").fails(2, "no series of cpmodel run")


def test_further_parameters_are_in_the_names(run, program):
    done = run("run", "--scales", "1,2", "--vary", "n=10,20", "--repeat", "1", "--",
               *program(), "{p}", "{n}")  # fmt: skip
    assert done.status == 0
    assert runs() == ["p1.n10.r1", "p1.n20.r1", "p2.n10.r1", "p2.n20.r1"]
    assert record("runs/p2.n20.r1")["command"][-2:] == ["2", "20"]


def test_options_behind_the_program_are_its_own_and_no_shell_reads_them(run, program):
    words = program("import sys; print(sys.argv)")
    odd = ("-q", "--color", "$(touch made)", "{other}", "a b;c")
    done = run("run", "--scales", "1", "--repeat", "1", *words, "{p}", *odd[:3], *odd[4:])
    assert done.status == 0, done.err
    told = Path("runs/p1.r1/stdout").read_text()
    assert told.strip() == repr(["app.py", "1", *odd[:3], *odd[4:]])
    assert not Path("made").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "no command to run"),
        (("--", "sleep", "{p}"), "no scales"),
        (("--scales", "1,x", "--", "sleep", "{p}"), "'x' is not a positive whole number"),
        (("--scales", "0", "--", "sleep", "{p}"), "'0' is not a positive whole number"),
        (("--scales", "1,2", "--", "sleep", "1"), "does not contain {p}"),
        (("--scales", "1,2", "--", "sleep", "{p}", "{n}"), "{n}, which has no value"),
        (("--scales", "1,2", "--vary", "r=1", "--", "sleep", "{p}"), "name of the parameter"),
        (("--scales", "1,2", "--vary", "n=1,2", "--", "sleep", "{p}"), "does not contain {n}"),
        (("--scales", "1,2", "--", "./absent", "{p}"), "no program './absent'"),
        (("--scales", "1,2", "--time-limit", "5 m", "--", "sleep", "{p}"), "is no time"),
        (("--scales", "1", "--sbatch=-pdebug", "--", "sleep", "{p}"), "needs --submit slurm"),
        (("--scales", "1", "--repeat", "1000", "--vary", "n=1,2,3,4,5,6,7,8,9,10,11", "--",
          "sleep", "{p}{n}"), "the limit is 10000"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_before_anything_is_written(
    run, tmp_path, monkeypatch, words, complaint
):
    monkeypatch.chdir(tmp_path)
    run("run", *words).fails(2, complaint)
    assert not [*tmp_path.iterdir()]


def test_a_failed_run_is_named_and_left_out_and_the_others_are_kept(run, program):
    words = program("import sys; sys.exit('no such input' if sys.argv[1] == '2' else 0)")
    done = run("run", "--scales", "1,2,4", "--repeat", "1", "--", *words, "{p}")
    assert done.status == 1
    assert "done: 2 of 3 runs" in done.out
    assert "left out: p2.r1: exit status 1: no such input" in done.out
    assert runs() == ["p1.r1", "p4.r1"]
    failed = sorted(Path("runs/.series/failed").iterdir())
    assert [each.name for each in failed] == ["p2.r1.1", "p2.r1.2"]
    assert (failed[0] / "stderr").read_text() == "no such input\n"
    words = program("pass")
    assert run("run", "--again", "runs").out.startswith("done: 3 of 3 runs")


def test_a_series_that_only_fails_ends_early_and_can_be_begun_again(run, program):
    words = program("import os; os.abort()")
    done = run("run", "--scales", "1,2,4,8", "--", *words, "{p}")
    assert done.status == 1
    assert "ended early: the first 3 runs failed" in done.out
    assert "ended by SIGABRT" in done.out
    assert run("run", "--scales", "1", "--repeat", "1", "--", "sleep", "0.0{p}").status == 0


def test_a_run_that_hangs_ends_at_the_time_limit_with_its_children(run, program):
    words = program(
        "import signal, subprocess, time\nsignal.signal(15, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '4711']); time.sleep(4711)"
    )
    began = time.monotonic()
    done = run("run", "--scales", "1", "--repeat", "1", "--attempts", "1", "--time-limit", "0.5s",
               "--", *words, "{p}")  # fmt: skip
    assert done.status == 1
    assert "p1.r1: it reached the time limit of 0.5 s" in done.out
    assert time.monotonic() - began < 30
    assert "sleep\x004711" not in "".join(
        path.read_text(errors="replace") for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.parent.name != "self"
    )  # fmt: skip


def test_of_a_long_output_the_beginning_and_the_end_are_kept(run, program, monkeypatch):
    monkeypatch.setattr(launch, "HEAD", 1000)
    words = program("print('first'); print('x' * 300_000); print('last')")
    assert run("run", "--scales", "1", "--repeat", "1", "--", *words, "{p}").status == 0
    told = Path("runs/p1.r1/stdout").read_bytes()
    assert told.startswith(b"first\nxxx")
    assert told.endswith(b"xxx\nlast\n")
    assert b"bytes left out" in told
    assert len(told) < 70_000


def test_a_full_disk_keeps_the_finished_runs(run, program, monkeypatch):
    words = program()
    command = ("run", "--scales", "1,2", "--repeat", "1", "--seed", "1", "--", *words, "{p}")
    write = launch._BoundedFile.write

    def full(self, piece):
        if runs():
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, piece)

    monkeypatch.setattr(launch._BoundedFile, "write", full)
    done = run(*command)
    done.fails(6, "the disk is full", "finished runs are kept")
    assert len(runs()) == 1
    assert not [*Path("runs/.series/running").iterdir()]
    monkeypatch.setattr(launch._BoundedFile, "write", write)
    assert run(*command).out.startswith("done: 2 of 2 runs")


def begun(words: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """Begin a series of two runs, of which the second one waits, and return after its begin."""
    command = [sys.executable, "-m", "callpath_modeler", "run", "--scales", "1,2", "--repeat", "1"]
    process = subprocess.Popen(
        [*command, "--seed", "1", "--", *words, "{p}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    for _ in range(600):
        if Path("runs").exists() and len(runs()) == 1 and Path("waits").exists():
            return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate())


WAITING = """
import os, time
if os.path.isdir("runs/p1.r1") or os.path.isdir("runs/p2.r1"):
    open("waits", "w").close()
    time.sleep(0 if os.path.exists("go") else 4711)
"""


def test_an_interruption_ends_the_program_and_keeps_what_is_done(run, program):
    words = program(WAITING)
    process = begun(words)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert not out
    assert b"interrupted: 1 of 2 runs are kept" in err
    assert b"Traceback" not in err
    assert not [*Path("runs/.series/running").iterdir()]
    Path("go").touch()
    assert run("run", "--again", "runs").out.startswith("done: 2 of 2 runs")


def test_after_a_kill_the_program_that_still_runs_is_named_and_half_a_run_is_no_run(run, program):
    words = program(WAITING)
    process = begun(words)
    process.kill()
    process.communicate()
    assert len(runs()) == 1
    run("run", "--again", "runs").fails(2, "of a killed command still runs", "kill -- -")
    (left,) = Path("runs/.series/running").glob("*/process")
    os.killpg(int(left.read_text().split("-")[1]), signal.SIGKILL)
    Path("go").touch()
    for _ in range(100):
        done = run("run", "--again", "runs")
        if done.status != 2:
            break
        time.sleep(0.05)
    assert done.out.startswith("done: 2 of 2 runs")


def test_a_command_that_only_a_foreign_directory_states_is_not_executed(run, program):
    words = program("open('made', 'a').close()")
    command = ("--scales", "1", "--repeat", "1", "--", *words, "{p}")
    assert run("run", *command).status == 0
    Path("made").unlink()
    shutil.rmtree("runs/p1.r1")
    Path("runs").rename("unpacked")
    run("run", "--again", "unpacked").fails(2, "its command is not executed")
    assert not Path("made").exists()
    assert run("run", "-o", "unpacked", *command).status == 0
    shutil.rmtree("unpacked/p1.r1")
    assert run("run", "--again", "unpacked").status == 0


def test_two_commands_do_not_measure_one_series(run, program):
    words = program(WAITING)
    process = begun(words)
    try:
        run("run", "--again", "runs").fails(2, "another command is measuring this series")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"schema": 2}', "[]", "\x00" * 100, '{"schema":1,"command":[]}']
)
def test_a_damaged_plan_is_refused(run, tmp_path, text):
    state = tmp_path / "runs" / ".series"
    state.mkdir(parents=True)
    (state / "series.json").write_text(text)
    run("run", "--again", tmp_path / "runs").fails(3, "the plan of this series is damaged")


def test_the_memory_is_that_of_the_program(run, program):
    words = program("import sys; text = bytearray(int(sys.argv[1]) * 100_000_000)")
    ballast = bytearray(300_000_000)  # the memory of this process does not count
    assert run("run", "--scales", "1,2", "--repeat", "1", "--", *words, "{p}").status == 0
    one, two = (record(f"runs/p{p}.r1")["max_memory"] for p in (1, 2))
    assert 100e6 < one < 160e6
    assert two - one == pytest.approx(100e6, rel=0.05)
    assert (
        run("run", "-o", "none", "--scales", "1", "--repeat", "1", "--", "true", "{p}").status == 0
    )
    assert record("none/p1.r1")["max_memory"] < 30e6 < len(ballast)


def test_a_program_that_cannot_be_executed_is_named(run, program):
    words = program("import sys; sys.exit(0)")
    Path("broken").write_bytes(b"\x7fELF nothing")
    Path("broken").chmod(0o755)
    done = run("run", "--scales", "1", "--repeat", "1", "--attempts", "1", "--", "./broken", "{p}")
    assert done.status == 1
    assert "left out: p1.r1: ./broken cannot be executed: Exec format error" in done.out
    assert words


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"p" = 1', '"p" = 0'),
        ('"p" = 1', '"q" = 1'),
        ("seconds = ", "seconds = -"),
        ("name", "\x00"),
    ],
)
def test_a_damaged_record_is_left_out_of_estimates(run, program, old, new):
    words = program()
    command = ("run", "--scales", "1,2", "--repeat", "2", "--budget", "1 core-hours", "--", *words)
    assert run(*command, "{p}").status == 0
    path = Path("runs/p1.r1/run.toml")
    path.write_text(path.read_text().replace(old, new, 1))
    shutil.rmtree("runs/p2.r1")
    done = run("run", "--again", "runs")
    assert done.status == 0, done.err
    assert "done: 4 of at most 4 runs" in done.out


def test_secrets_of_the_environment_are_not_recorded(run, program, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("SLURM_JWT", "secret")
    monkeypatch.setenv("MY_TOKEN", "secret")
    assert run("run", "--scales", "1", "--repeat", "1", "--", *program(), "{p}").status == 0
    told = record("runs/p1.r1")["environment"]
    assert told["OMP_NUM_THREADS"] == "3"
    assert "secret" not in told.values()
