"""A folder of profiles may hold programs: none of them runs, whoever starts a process there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import working
from hostile_folder import LATE, HostileFolder, environment

SCRIPT = Path(sys.executable).with_name("cpmodel")
RANK = ("rank", ".", "--target", "2000", "-f", "csv", "--no-header")
SEVERAL_WORKERS = 500
"""Scales, of two runs each, for which the command starts processes."""

STARTED_IN = """
import os, sys
from pathlib import Path
import numpy, click, queue, signal, pickle, msgspec, multiprocessing.resource_tracker
from callpath_modeler.support.parallel import WorkerPool
from callpath_modeler.readers.registry import offered
import callpath_modeler.support.parallel

sys.path.insert(0, "")
os.chdir(sys.argv[1])
asked = "[__import__('os').getpid(), __import__('sys').path, __import__('numpy').__file__]"
with WorkerPool(2) as pool:
    found = list(pool.map(eval, [asked] * 4))
children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
trackers = children.read_text().split() if children.exists() else []
variables = [Path(f"/proc/{each}/environ").read_text().split(chr(0)) for each in trackers]
print(__import__("json").dumps({
    "here": os.getpid(), "workers": found, "variables": variables, "path": sys.path,
    "readers": [each.name for each in offered()],
}))
"""


@pytest.fixture
def folder(tmp_path):
    return HostileFolder(tmp_path / "download")


def started(folder, *command, **variables):
    """Run a command in a folder, and return what it wrote."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=working.HUNG,
        env=environment(**variables),
    )
    assert not folder.ran, folder.ran
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_processes_of_the_command_run_no_file_of_the_folder(tmp_path):
    folder = HostileFolder(tmp_path / "download", scales=SEVERAL_WORKERS)
    assert "main/a" in started(folder, SCRIPT, "--no-progress", *RANK, "-j", "2")


def test_an_empty_entry_of_pythonpath_leads_no_worker_into_the_folder(tmp_path):
    folder = HostileFolder(tmp_path / "download", LATE, SEVERAL_WORKERS)
    words = ("--no-progress", *RANK, "-j", "2")
    assert "main/a" in started(folder, SCRIPT, *words, PYTHONPATH=":/nowhere")


def test_the_package_as_a_module_runs_no_other_file_of_the_folder(tmp_path):
    # Python itself imports a package of the folder, and modules that it needs before that.
    late = (*LATE, "numpy", "click", "msgspec", "pickle", "queue")
    folder = HostileFolder(tmp_path / "download", late, SEVERAL_WORKERS)
    words = ("-m", "callpath_modeler", "--no-progress", *RANK, "-j", "2")
    assert "main/a" in started(folder, sys.executable, *words)


def test_workers_of_a_notebook_import_nothing_from_its_folder(folder, tmp_path):
    script = tmp_path / "elsewhere" / "notebook.py"
    script.parent.mkdir()
    script.write_text(STARTED_IN)
    done = subprocess.run(
        [sys.executable, str(script), str(folder.path)],
        cwd=tmp_path / "elsewhere",
        capture_output=True,
        text=True,
        check=False,
        timeout=working.HUNG,
        env=environment(),
    )
    assert not folder.ran, folder.ran
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["path"][0] == ""
    for pid, path, numpy in told["workers"]:
        assert pid != told["here"]
        assert "" not in path
        assert str(folder.path) not in path
        assert not numpy.startswith(str(folder.path))
    assert "beside" not in told["readers"]
    assert "folded" in told["readers"]
    # The tracker of resources outlives the workers.
    assert told["variables"] or not sys.platform.startswith("linux")
    assert all("PYTHONSAFEPATH=1" in each for each in told["variables"])


def test_a_folder_adds_no_plugin(folder):
    assert "beside" not in started(folder, SCRIPT, "plugins", "-f", "csv")
    assert "beside" not in started(folder, SCRIPT, "--help")


def test_a_client_of_dask_runs_no_file_of_the_folder(folder):
    distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster:
        address = f"dask:{cluster.scheduler_address}"
        words = ("rank", folder.path, *RANK[2:], "--executor", address)
        assert "main/a" in started(folder, SCRIPT, *words)


def test_ranks_of_mpi_run_no_file_of_the_folder(folder):
    launcher = shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("mpiexec is not installed")
    told = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False)
    words = ["--oversubscribe", "--allow-run-as-root"] * ("open" in told.stdout.lower())
    # Importing it here would make this process a rank, which cannot start others.
    code = [sys.executable, "-c", "import mpi4py.MPI"]
    if subprocess.run(code, capture_output=True, check=False).returncode:
        pytest.skip("mpi4py or its MPI library is not installed")
    command = (launcher, *words, "-n", "3", SCRIPT, "--no-progress", *RANK, "--executor", "mpi")
    assert "main/a" in started(folder, *command)


def test_no_program_is_taken_from_the_folder_for_an_entry_of_the_path(folder, tmp_path):
    from cpmodel_commspec.replay import smpi

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder.path)
        for path in ("", ".", f":{tmp_path}", f"{tmp_path}:."):
            patch.setenv("PATH", path)
            with pytest.raises(smpi.UsageError, match="smpicc is not installed"):
                smpi.smpi_run("int main(void) { return 0; }", 1, tmp_path / "x.xml", "ompi")
    assert not folder.ran


def test_a_matplotlibrc_of_the_folder_sets_nothing(folder):
    pytest.importorskip("matplotlib", reason="the extra [plot] is not installed")
    (folder.path / "matplotlibrc").write_text("backend: module://beside_plugin\nfont.size: 99\n@@")
    words = ("rank", ".", "--target", "2000", "--where", "p<20")
    done = subprocess.run(
        [str(SCRIPT), *words, "--plot", "with.svg"],
        cwd=folder.path, capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "matplotlibrc" not in done.stderr
    (folder.path / "matplotlibrc").unlink()
    started(folder, SCRIPT, *words, "--plot", "without.svg")
    with_file, without = (folder.path / f"{name}.svg" for name in ("with", "without"))
    assert with_file.read_bytes() == without.read_bytes()
