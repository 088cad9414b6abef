from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler import store
from command_line import clean, run, spawn  # noqa: F401

SCALES = (1, 2, 4, 8, 16)


@pytest.fixture(scope="session")
def lulesh() -> Path:
    return Path(__file__).resolve().parents[2] / "sample_profiles" / "lulesh"


@pytest.fixture(scope="session")
def stored(lulesh, tmp_path_factory) -> Path:
    """The sample profiles with models of their time, stored for fast rankings."""
    from callpath_modeler.studies.loading import LoadOptions, load
    from callpath_modeler.studies.pipeline import fit

    path = tmp_path_factory.mktemp("stored") / "lulesh.cpm"
    store.write([fit(load([lulesh], LoadOptions().with_requirements()))], path)
    return path


@pytest.fixture
def write(tmp_path):
    """Write a table into a folder of its own."""

    def written(text: str, name: str = "runs.csv") -> Path:
        path = tmp_path / "runs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return written


@pytest.fixture
def series(tmp_path):
    """Write one small Cube profile per scale; `change` may edit the metrics of each."""

    def series(change=None, *, names=("main", "f", "g"), name="app") -> Path:
        tree = cw.Tree([-1, 0, 0], list(names))
        for p in SCALES:
            growing = np.array([[1.0], [2.0], [0.5 * p]]) * np.ones((1, p))
            metrics = [
                cw.MetricToWrite("time", growing, unit="sec"),
                cw.MetricToWrite("visits", np.ones((3, p)), dtype="UINT64"),
            ]
            folder = tmp_path / "series" / f"{name}.p{p}.r1"
            folder.mkdir(parents=True)
            machine = cw.Machine([1] * p)
            metrics = metrics if change is None else change(metrics, p)
            cw.write(folder / "profile.cubex", tree, metrics, machine)
        return tmp_path / "series"

    return series
