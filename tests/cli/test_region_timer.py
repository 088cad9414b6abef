"""The region timer in C and Python: regions of each rank, as `rank` reads them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

C_PROGRAM = """
#include "cpmodel_timer.h"
void exchange(int);
int main(int argc, char **argv) {
    for (int i = 0; i < 3; i++) {
        cpm_begin("solve");
        usleep(1000 * atoi(argv[argc - 1]));
        exchange(i);
        cpm_end("solve");
    }
    cpm_begin("odd \\"name\\"\\n");
    cpm_end("odd \\"name\\"\\n");
    return 0;
}
"""
C_PART = """
#include "cpmodel_timer.h"
void exchange(int i) { cpm_begin("exchange"); usleep(500); if (i < 9) cpm_end("exchange"); }
"""
PYTHON_PROGRAM = """
import sys, time
from callpath_modeler.timer import region
@region("exchange")
def exchange():
    time.sleep(0.0005)
for i in range(3):
    with region("solve"):
        time.sleep(0.001 * int(sys.argv[1]))
        exchange()
"""
MPI_PROGRAM = """
#include <mpi.h>
#include "cpmodel_timer.h"
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cpm_begin("work");
    usleep(20000 * (1 + rank));
    cpm_end("work");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def header(run) -> Path:
    return Path(run("run", "--timer-header").out.strip())


def compiled(header: Path, compiler: str, *texts: str, suffix: str = "c") -> None:
    names = []
    for number, text in enumerate(texts):
        name = f"part{number}.{suffix}"
        Path(name).write_text(text)
        names.append(name)
    words = [compiler, "-Wall", "-Wextra", "-Werror", f"-I{header.parent}", *names, "-o", "app"]
    subprocess.run(words, check=True)


@pytest.mark.parametrize(("compiler", "suffix"), [("cc", "c"), ("c++", "cc")])
def test_regions_in_several_files_of_a_program(run, place, header, compiler, suffix):  # noqa: ARG001
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} is installed")
    compiled(header, compiler, C_PROGRAM, C_PART, suffix=suffix)
    done = run("run", "--scales", "1,2,4", "--repeat", "1", "--profiler", "timer", "--",
               "./app", "{p}")  # fmt: skip
    assert done.status == 0, done.err
    lines = Path("runs/p4.r1/profile.0.0.0").read_text().splitlines()
    assert [line.split('" ')[0] for line in lines[2:-1]] == [
        '"app', '"app => solve', '"app => solve => exchange', '"app => odd _name__',
    ]  # fmt: skip
    calls, callees, own, inside = map(float, lines[3].split('" ')[1].split()[:4])
    assert (calls, callees) == (3, 3)
    assert 3 * 4000 <= own < inside
    told = run("info", "runs").out
    assert "4 call paths" in told


def test_without_the_directory_nothing_is_written(place, header):
    if shutil.which("cc") is None:
        pytest.skip("no cc is installed")
    compiled(header, "cc", C_PROGRAM, C_PART)
    before = {*place.iterdir()}
    environment = {k: v for k, v in os.environ.items() if k != "CPM_RUN_DIRECTORY"}
    subprocess.run(["./app", "1"], check=True, env=environment)
    assert {*place.iterdir()} == before


def test_an_end_without_a_begin_is_named_and_changes_nothing(place, header):
    if shutil.which("cc") is None:
        pytest.skip("no cc is installed")
    compiled(header, "cc", '#include "cpmodel_timer.h"\nint main(void) { cpm_begin("a"); '
             'cpm_end("b"); return 0; }')  # fmt: skip
    done = subprocess.run(["./app"], check=True, capture_output=True, text=True,
                          env={**os.environ, "CPM_RUN_DIRECTORY": str(place)})  # fmt: skip
    assert done.stderr == 'cpmodel_timer.h: cpm_end("b") inside of "a" is ignored\n'
    assert '"program => a" 1 0 ' in (place / "profile.0.0.0").read_text()


def test_regions_in_python(run, place):  # noqa: ARG001
    Path("app.py").write_text(PYTHON_PROGRAM)
    done = run("run", "--scales", "1,2,4", "--repeat", "1", "--profiler", "timer", "--",
               sys.executable, "app.py", "{p}")  # fmt: skip
    assert done.status == 0, done.err
    lines = Path("runs/p2.r1/profile.0.0.0").read_text().splitlines()
    found = {line.split('" ')[0][1:]: line.split('" ')[1].split() for line in lines[2:-1]}
    assert list(found) == ["app.py", "app.py => solve", "app.py => solve => exchange"]
    assert float(found["app.py => solve"][2]) >= 6000
    assert [found["app.py => solve => exchange"][k] for k in (0, 1)] == ["3", "0"]
    assert run("rank", "runs", "--target", "16").status == 0


def test_regions_of_python_threads_and_errors_are_closed(place):
    text = (
        "import threading\nfrom callpath_modeler.timer import region\n"
        "def other():\n    with region('thread'): pass\n"
        "for _ in range(2):\n    try:\n        with region('a'):\n"
        "            t = threading.Thread(target=other); t.start(); t.join(); raise ValueError\n"
        "    except ValueError: pass\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True,
                   env={**os.environ, "CPM_RUN_DIRECTORY": str(place)})  # fmt: skip
    told = (place / "profile.0.0.0").read_text()
    assert '"program => a" 2 0 ' in told
    assert "thread" not in told


needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or shutil.which("mpicc") is None, reason="no MPI is installed"
)


def mpirun(monkeypatch) -> tuple[str, ...]:
    """Return a launcher for more ranks than cores; Open MPI refuses them, and root, by default."""
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("OMPI_MCA_rmaps_base_oversubscribe", "1")
    monkeypatch.setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
    return ("mpirun", "-n", "{p}")


@needs_mpi
def test_each_rank_of_an_mpi_program_writes_its_regions(run, place, header, monkeypatch):  # noqa: ARG001
    compiled(header, "mpicc", MPI_PROGRAM)
    done = run("run", "--scales", "1,2,3", "--repeat", "1", "--profiler", "timer", "--time-limit",
               "60s", "--", *mpirun(monkeypatch), "./app")  # fmt: skip
    assert done.status == 0, done.err + done.out
    assert len([*Path("runs/p3.r1").glob("profile.*.0.0")]) == 3
    for rank in range(3):
        line = Path(f"runs/p3.r1/profile.{rank}.0.0").read_text().splitlines()[3]
        assert line.startswith('"app => work" 1 0 ')
        assert float(line.split('" ')[1].split()[2]) >= 20_000 * (1 + rank)
    told = json.loads(run("rank", "runs", "--target", "12", "-f", "json").out)
    assert {row["callpath"] for row in told["rows"]} == {"app", "app/work"}


@needs_mpi
def test_python_under_mpi4py(run, place, monkeypatch):  # noqa: ARG001
    pytest.importorskip("mpi4py")
    Path("app.py").write_text(
        "from mpi4py import MPI\nfrom callpath_modeler.timer import region\nimport time\n"
        "with region('work'): time.sleep(0.01 * (1 + MPI.COMM_WORLD.rank))\n"
    )
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK"):
        monkeypatch.delenv(name, raising=False)
    done = run("run", "--scales", "1,2", "--repeat", "1", "--profiler", "timer", "--time-limit",
               "60s", "--", *mpirun(monkeypatch), sys.executable, "app.py")  # fmt: skip
    assert done.status == 0, done.err + done.out
    assert len([*Path("runs/p2.r1").glob("profile.*.0.0")]) == 2
