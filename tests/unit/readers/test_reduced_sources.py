"""Profiles whose locations were reduced when they were written."""

from __future__ import annotations

import pytest

from callpath_modeler.errors import DataError
from callpath_modeler.profile.schema import Extent, Reduction
from callpath_modeler.readers.assemble import ReadOptions, assemble
from synthetic import TIME, FakeMax, FakeMean, FakeReader, FakeSource, call_tree, registry

PATHS = ["main", "main/f"]


@pytest.fixture
def reader():
    return FakeReader()


def files(reader, directory, *kinds):
    return [
        reader.add(directory, f"app.p{p}", kind(call_tree(PATHS), {TIME: [1.0, p]}, Extent(p)))
        for p, kind in zip((2, 4, 8), kinds, strict=True)
    ]


def test_what_a_profile_holds_is_taken_where_nobody_asks(reader, tmp_path):
    made = assemble(files(reader, tmp_path, *[FakeMean] * 3), registry(reader), ReadOptions())
    assert made.reduction is Reduction.MEAN


def test_a_reduction_that_a_profile_holds_can_be_asked_for(reader, tmp_path):
    options = ReadOptions(locations=Reduction.SUM)
    made = assemble(files(reader, tmp_path, *[FakeMean] * 3), registry(reader), options)
    assert made.reduction is Reduction.SUM


def test_a_reduction_that_a_profile_lacks_is_refused_with_those_it_holds(reader, tmp_path):
    options = ReadOptions(locations=Reduction.MAX)
    with pytest.raises(DataError, match="holds no max over processes") as caught:
        assemble(files(reader, tmp_path, *[FakeMean] * 3), registry(reader), options)
    assert caught.value.hint == "--locations mean or sum"


def test_a_series_is_reduced_in_one_way_or_not_at_all(reader, tmp_path):
    mixed = files(reader, tmp_path, FakeSource, FakeMax, FakeMax)
    with pytest.raises(DataError, match=r"app\.p4\.fake: holds no mean"):
        assemble(mixed, registry(reader), ReadOptions())
    made = assemble(mixed, registry(reader), ReadOptions(locations=Reduction.MAX))
    assert made.reduction is Reduction.MAX
    assert assemble(files(reader, tmp_path, FakeSource, FakeMean, FakeMean), registry(reader),
                    ReadOptions()).reduction is Reduction.MEAN  # fmt: skip
