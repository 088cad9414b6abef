from __future__ import annotations

import gzip

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import MetricStatus, Reduction
from callpath_modeler.readers.base import Match
from cells import cells
from cpmodel_scorep import CubexReader

TREE = cw.random_tree(20, roots=2, seed=6)
MACHINE = cw.Machine([2, 1, 2])
COST = np.random.default_rng(1).random((20, 5))
METRICS = [
    cw.MetricToWrite("time", COST, unit="sec"),
    cw.MetricToWrite("nothing", np.zeros((20, 5))),
]
DOCUMENT = cw.cube3(TREE, METRICS, MACHINE)


@pytest.mark.parametrize("packed", [False, True])
def test_cube_3_profiles_are_read_plain_and_packed(tmp_path, packed):
    path = tmp_path / ("a.cube.gz" if packed else "a.cube")
    path.write_bytes(gzip.compress(DOCUMENT) if packed else DOCUMENT)
    assert CubexReader().match(path) is Match.CONTENT
    with CubexReader().open(path) as profile:
        assert profile.extent.processes == 3
        assert profile.extent.threads == 2
        assert profile.extent.nodes == 1
        assert profile.call_tree.parent.tolist() == TREE.parents
        got = profile.reduce("time", Reduction.SUM)
        # The longest threads of the processes are these, as the sums of the columns show.
        longest = [0 if COST[:, 0].sum() >= 0.98 * COST[:, 1].sum() else 1, 2]
        longest.append(3 if COST[:, 3].sum() >= 0.98 * COST[:, 4].sum() else 4)
        np.testing.assert_allclose(got.exclusive, COST[:, longest].sum(axis=1))
        np.testing.assert_array_equal(profile.per_location("time", inclusive=False), COST)
        assert profile.reduce("nothing", Reduction.SUM).total == 0
        names = [metric.metric.name for metric in profile.metrics]
        assert names == ["time", "nothing", "time of all threads"]
        assert [metric.status for metric in profile.metrics] == [MetricStatus.DATA] * 3
        sums = profile.reduce("time of all threads", Reduction.SUM)
        np.testing.assert_allclose(sums.exclusive, COST.sum(axis=1))
        assert not profile.findings()


def test_a_stray_ampersand_is_repaired(tmp_path):
    path = tmp_path / "a.cube"
    path.write_bytes(DOCUMENT.replace(b"<name>f1</name>", b"<name>f & g</name>"))
    with CubexReader().open(path) as profile:
        assert [finding.code for finding in profile.findings()] == ["CPM111"]


@cells(
    ("old", "new", "word"),
    [
        (b'<row cnodeId="0">', b'<row cnodeId="77">', "call path 77"),
        (b'<row cnodeId="0">', b'<row cnodeId="0">1 ', "6 values"),
        (b'<row cnodeId="0">', b'<row cnodeId="0">x', "float"),
        (b"<system>", b"<mistake>", "definitions"),
        (b"</severity>\n</cube>\n", b"", "cut off"),
    ],
)
def test_broken_values_are_refused(tmp_path, old, new, word):
    path = tmp_path / "a.cube"
    path.write_bytes(DOCUMENT.replace(old, new, 1))
    with pytest.raises(InputError, match=word) as caught, CubexReader().open(path):
        pass
    assert str(path) in caught.value.message
