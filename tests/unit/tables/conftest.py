from __future__ import annotations

import pytest

from callpath_modeler.studies import loading


@pytest.fixture
def load(tmp_path):
    """Write a file and load the experiment in it, with all metrics."""

    def read(name, content, **of_load):
        # The name of a directory tells parameters as well.
        path = tmp_path / "runs" / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
        everything = loading.ReadOptions(metrics=None)
        return loading.load([path], loading.LoadOptions(everything, **of_load))

    return read


@pytest.fixture
def value_of():
    """Return one value of an experiment: of a metric, a call path and a setting."""

    def value(experiment, metric, callpath, repetition=1, **setting):
        tree = experiment.tree
        (row,) = [row for row in range(len(tree)) if tree.path(row) == callpath]
        (run,) = [
            k
            for k, run in enumerate(experiment.runs)
            if run.repetition == repetition
            and all(run.parameters[name] == wanted for name, wanted in setting.items())
        ]
        return experiment.values(metric)[row, run]

    return value
