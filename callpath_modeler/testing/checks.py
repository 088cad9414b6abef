"""Checks of opened profiles, and damaged profiles."""

from __future__ import annotations

import random
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import numpy as np

from callpath_modeler.errors import DataError, InputError
from callpath_modeler.profile.calltree import NO_LINE, ROOT, CallTree, subtree_ends
from callpath_modeler.profile.pruning import SUMS, without_call_sites
from callpath_modeler.profile.schema import COMPUTED, DeclaredMetric, Metric, Reduction
from callpath_modeler.profile.unify import unify
from callpath_modeler.readers.base import (
    CallSiteSource,
    LineSource,
    PlacedSource,
    ProfileSource,
    Reader,
    Reduced,
    ReducedSource,
    ThreadSource,
    opened_runs,
)
from callpath_modeler.readers.profile_runs import ReadRun
from callpath_modeler.readers.reductions import Columns, Fold
from callpath_modeler.readers.threads import with_longest_threads

CLOSE = 1e-9
"""Relative tolerance of sums, because the order of additions may differ."""


def readable(source: ProfileSource) -> list[DeclaredMetric]:
    """Return the metrics whose values can be read."""
    return [declared for declared in source.metrics if declared.status.is_readable]


def reductions(source: ProfileSource) -> tuple[Reduction, ...]:
    """Return the reductions that `source` supports."""
    return tuple(source.reductions if isinstance(source, ReducedSource) else COMPUTED)


def read_all(source: ProfileSource) -> dict[tuple[str, Reduction], Reduced]:
    """Return every readable metric, each with up to two reductions."""
    return {
        (declared.metric.name, reduction): source.reduce(declared.metric.name, reduction)
        for declared in readable(source)
        for reduction in reductions(source)[:2]
    }


def contents(folder: Path) -> dict[Path, bytes]:
    """Return the content of every file below `folder`."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_tree(tree: CallTree) -> None:
    """Check that the columns of a call tree are consistent."""
    columns = (tree.parent, tree.end, tree.region, tree.annotation, tree.site)
    for column in columns:
        assert column.dtype == np.int32
        assert column.shape == tree.parent.shape
        assert not column.flags.writeable
    assert (tree.parent < np.arange(len(tree))).all(), "callers come before callees"
    assert (tree.parent >= ROOT).all()
    np.testing.assert_array_equal(tree.end, subtree_ends(tree.parent))
    assert np.isin(tree.region, np.arange(len(tree.regions))).all()
    assert np.isin(tree.annotation, np.arange(len(tree.annotations))).all()
    assert tree.annotations[0] == ""
    assert (tree.site >= NO_LINE).all()
    assert (tree.site != 0).all(), "lines are numbered from 1"


def check_values(reduced: Reduced, rows: int, case: str = "") -> None:
    """Check the shapes of the result of `reduce`; messages name the `case`."""
    assert isinstance(reduced, Reduced), case
    assert reduced.exclusive.dtype == np.float64, case
    assert reduced.exclusive.shape == (rows,), case
    assert isinstance(reduced.total, float), case
    assert isinstance(reduced.run_time, float), case


def check_same(first: ProfileSource, second: ProfileSource) -> None:
    """Check that opening a profile twice gives the same result."""
    tree, other = first.call_tree, second.call_tree
    assert tree.regions == other.regions
    for column in ("parent", "end", "region", "annotation", "site"):
        np.testing.assert_array_equal(getattr(tree, column), getattr(other, column))
    assert list(first.metrics) == list(second.metrics)
    assert first.extent == second.extent
    assert dict(first.metadata) == dict(second.metadata)
    again = read_all(second)
    for key, reduced in read_all(first).items():
        np.testing.assert_array_equal(reduced.exclusive, again[key].exclusive)
        np.testing.assert_array_equal(reduced.total, again[key].total)


def check_same_run(first: ReadRun, second: ReadRun) -> None:
    """Check that two runs are the same, bit for bit."""
    for run in (first, second):
        check_tree(run.tree)
    assert first.tree.is_same_as(second.tree)
    for name in ("name", "file", "stated", "reader", "extent", "metadata", "declared"):
        assert getattr(first, name) == getattr(second, name), name
    assert (first.reduction, first.findings) == (second.reduction, second.findings)
    assert list(first.values) == list(second.values)
    for reduced, other in zip(first.values.values(), second.values.values(), strict=True):
        np.testing.assert_array_equal(reduced.exclusive, other.exclusive)
        np.testing.assert_array_equal(reduced.total, other.total)
        np.testing.assert_array_equal(reduced.run_time, other.run_time)
        assert (reduced.imbalance is None) == (other.imbalance is None)
        if reduced.imbalance is not None:
            np.testing.assert_array_equal(reduced.imbalance, other.imbalance)


def check_order(source: ProfileSource, metric: str) -> None:
    """Check the order of the reductions of an additive metric."""
    value = {how: source.reduce(metric, how).exclusive for how in reductions(source)}
    low, high = value.get(Reduction.MIN), value.get(Reduction.MAX)
    for how in {Reduction.MEAN, Reduction.MEDIAN, Reduction.GEOMEAN} & value.keys():
        slack = CLOSE * np.abs(value[how])
        assert high is None or not (value[how] > high + slack).any(), f"{how} above the maximum"
        assert low is None or not (value[how] < low - slack).any(), f"{how} below the minimum"
    processes = source.extent.processes
    if processes and {Reduction.SUM, Reduction.MEAN} <= value.keys():
        total = value[Reduction.MEAN] * processes
        np.testing.assert_allclose(value[Reduction.SUM], total, rtol=CLOSE)


def check_call_sites(source: ProfileSource) -> None:
    """Check that separate calls have the cost of the joined ones."""
    assert isinstance(source, CallSiteSource)
    apart = source.with_call_sites()
    check_tree(apart.call_tree)
    joined, separate = unify([source.call_tree, without_call_sites(apart.call_tree)]).rows
    for metric in (d.metric for d in readable(source) if d.metric.additive):
        reduction = next(r for r in reductions(source) if r in SUMS)
        # Maxima over GPU streams, and over threads that the profile does not count, depend on what
        # is joined.
        several = source.extent.threads == 0 or metric.is_on_gpu_streams
        equal = not (metric.is_time and several)
        rows = max(joined.max(), separate.max()) + 1
        of_all, of_each = (
            np.bincount(place, np.nan_to_num(each.reduce(metric.name, reduction).exclusive), rows)
            for place, each in ((joined, source), (separate, apart))
        )
        size = np.abs(of_all).sum()
        assert (of_each >= of_all - CLOSE * size).all(), metric.name
        assert not equal or np.allclose(of_each, of_all, rtol=CLOSE, atol=CLOSE * size)


def check_lines(source: ProfileSource) -> None:
    """Check that the lines of a call path do not cost more than the call path."""
    assert isinstance(source, LineSource)
    for metric in (d.metric for d in readable(source) if d.metric.additive):
        reduction = next(r for r in reductions(source) if r in SUMS)
        found = source.line_costs(metric.name, reduction)
        columns = (found.row, found.file, found.line, found.exclusive)
        assert len({len(column) for column in columns}) == 1
        assert ((found.row >= 0) & (found.row < len(source.call_tree))).all()
        assert np.isin(found.file, np.arange(len(found.files))).all()
        assert (found.line > 0).all()
        own = np.nan_to_num(source.reduce(metric.name, reduction).exclusive)
        sums = np.bincount(found.row, np.nan_to_num(found.exclusive), len(own))
        if not metric.is_time or source.extent.threads == 1:
            assert (sums <= own + CLOSE * own.sum()).all(), metric.name


def check_sums_of_threads(source: ProfileSource, metric: Metric) -> None:
    """Check the sums of threads over groups of call paths, if the profile has such values."""
    assert isinstance(source, ThreadSource)
    rows = len(source.call_tree)
    each = np.arange(rows)
    refused: DataError | None = None
    try:
        alone = source.sums_of_threads(metric.name, each, rows)
    except DataError as error:
        refused = error
    if refused is not None:
        assert refused.message
        assert "\n" not in refused.message
        assert refused.hint, "the error needs a hint with the remedy"
        return
    process = alone.process
    assert alone.values.shape == (rows, len(process))
    assert (alone.values >= 0).all(), "negative costs must become zero"
    assert (np.diff(process) >= 0).all(), "threads are in the order of their processes"
    np.testing.assert_array_equal(np.unique(process), np.arange(process[-1] + 1))
    assert source.extent.processes in {0, process[-1] + 1}
    # The third group is empty, and a third of the call paths is in no group.
    group = each % 3 - 1
    some = source.sums_of_threads(metric.name, group, 3)
    np.testing.assert_array_equal(some.process, process)
    for number in range(3):
        expected = alone.values[group == number].sum(axis=0)
        np.testing.assert_allclose(some.values[number], expected, rtol=CLOSE, atol=1e-300)
    columns = with_longest_threads(Columns.of(process), source, source.metrics, rows)
    folded = columns.fold(alone.values, Fold.LONGEST if metric.can_be_run_time else Fold.SUM)
    for how in {Reduction.MAX, Reduction.SUM} & set(reductions(source)):
        expected = np.nan_to_num(source.reduce(metric.name, how).exclusive)
        found = folded.max(axis=1) if how is Reduction.MAX else folded.sum(axis=1)
        np.testing.assert_allclose(found, expected, rtol=CLOSE, atol=1e-300)


def check_placement(source: ProfileSource) -> None:
    """Check the ranks and places of processes, if the profile states them."""
    assert isinstance(source, PlacedSource)
    found, processes = source.placement(), source.extent.processes
    assert found.ranks.shape == (processes,), "every process has one rank"
    assert len(np.unique(found.ranks)) == processes, "ranks are all different"
    assert (found.ranks >= 0).all(), "ranks are not negative"
    assert len(found.nodes) == processes, "every process has one node, or an empty name"
    for topology in found.topologies:
        shape = (processes, len(topology.dimensions))
        assert topology.coordinates.shape == shape, "every process has coordinates"
        assert (topology.coordinates >= 0).all(), "coordinates are not negative"
        assert (topology.coordinates < np.array(topology.dimensions)).all(), "beyond the dimension"


def _sum_threads(source: ProfileSource) -> None:
    """Sum the values of threads over all call paths, if the profile has such values."""
    if isinstance(source, ThreadSource):
        group = np.zeros(len(source.call_tree), np.intp)
        for metric in (d.metric.name for d in readable(source) if d.metric.additive):
            with suppress(DataError):
                source.sums_of_threads(metric, group, 1)


def check_error(error: InputError, path: Path) -> None:
    """Check that an error names its file, in one line."""
    assert path.name in error.message
    assert "\n" not in error.message
    assert error.hint, "the error needs a hint with the remedy"


def read_or_refused(reader: Reader, path: Path) -> None:
    """Read everything, or get one `InputError` that names the file."""
    try:
        with opened_runs(reader, path) as runs:
            for source in (run.source for run in runs):
                check_tree(source.call_tree)
                for reduced in read_all(source).values():
                    check_values(reduced, len(source.call_tree))
                _sum_threads(source)
                if isinstance(source, CallSiteSource):
                    check_tree(source.with_call_sites().call_tree)
                if isinstance(source, LineSource):
                    for metric in (d.metric for d in readable(source) if d.metric.additive):
                        source.line_costs(metric.name, reductions(source)[0])
                source.findings()
    except InputError as error:
        check_error(error, path)


def copy_of(profile: Path, folder: Path) -> Path:
    """Copy a profile, file or directory, into `folder` and return the copy."""
    target = folder / profile.name
    if profile.is_dir():
        shutil.copytree(profile, target)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(profile, target)
    return target


def damage(folder: Path, seed: int) -> Path:
    """Damage one file below `folder`, always in the same way for one `seed`.

    A file is truncated, loses a range, or has a range or single bytes overwritten.

    Returns
    -------
    Path
        The damaged file.
    """
    rng = random.Random(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    # Large files have most of the content; damage to small ones, the definitions, is worst.
    victim = rng.choice(files)
    content = bytearray(victim.read_bytes())
    if content:
        _damage(content, rng, seed % 4)
    victim.write_bytes(content)
    return victim


def _damage(content: bytearray, rng: random.Random, kind: int) -> None:
    at = rng.randrange(len(content))
    if kind == 0:
        del content[at:]
    elif kind == 1:
        del content[at : at + rng.randrange(1, 64)]
    elif kind == 2:
        content[at : at + 8] = rng.randbytes(8)
    else:
        for _ in range(rng.randrange(1, 20)):
            content[rng.randrange(len(content))] = rng.randrange(256)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise `TimeoutError` in code that runs for longer, if the system has alarms."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"still not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
