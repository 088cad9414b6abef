"""The reader contract as tests that a plugin author subclasses."""

from __future__ import annotations

import functools
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from callpath_modeler.diagnostics import KINDS, Finding
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import Extent, MetricStatus, Reduction, base_unit
from callpath_modeler.readers.assemble import ALTERING
from callpath_modeler.readers.base import (
    API_VERSION,
    CallSiteSource,
    DividingReader,
    LineSource,
    Match,
    PlacedSource,
    ProfileSource,
    Reader,
    RunSource,
    ThreadSource,
    VerifyingReader,
    Workers,
    opened_runs,
)
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.profile_runs import ReadRequest, read_runs
from callpath_modeler.readers.reductions import OF_THE_FIRST
from callpath_modeler.readers.registry import Registry
from callpath_modeler.readers.tokens import REPETITIONS
from callpath_modeler.testing.checks import (
    CLOSE,
    at_most,
    check_call_sites,
    check_error,
    check_lines,
    check_order,
    check_placement,
    check_same,
    check_same_run,
    check_sums_of_threads,
    check_tree,
    check_values,
    contents,
    copy_of,
    damage,
    read_all,
    read_or_refused,
    readable,
    reductions,
)

Runs = Sequence[RunSource]

_FIRST_BLOCK = 1 << 16
_HEAD = 512
"""Length of the prefix that identifies every format, in bytes."""
_STRANGE = (b"", b"hello\n", b"a,b\n1,2\n", b"{}", b"<html/>", bytes(range(256)) * 4)
_HEAVY = ("pandas", "scipy", "networkx", "matplotlib", "pyarrow", "otf2", "pycubexr")


@functools.cache
def _imported_with(module: str) -> frozenset[str]:
    """Return the names of all modules that a new process imports with `module`."""
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys, {module}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return frozenset(done.stdout.split())


def _reductions_of(
    runs: Runs, asked: Iterable[Reduction]
) -> Iterator[tuple[ProfileSource, Reduction]]:
    """Yield each run with each of these reductions that it supports."""
    for run in runs:
        for reduction in asked:
            if reduction in reductions(run.source):
                yield run.source, reduction


class ReaderContract:
    """Tests that every reader of profiles passes.

    Subclass it in a file that pytest collects, with a name that begins with ``Test``. Give the
    reader, the path of a small profile, and a few values that you know::

        class TestMyReader(ReaderContract):
            reader_class = MyReader

            @pytest.fixture
            def profile(self, tmp_path):
                return write_small_profile(tmp_path / "small.mine")

            @pytest.fixture
            def known(self):
                return {("time", "main/solve"): 2.5}

    Use a profile of a few kilobytes: it is damaged and read `damaged` times. For several profiles
    parametrize the fixture `profile`.

    Attributes
    ----------
    reader_class : the reader, made without arguments
    damaged : number of damaged copies that are read
    not_at_import : packages that the import of the reader must not import
    """

    reader_class: ClassVar[type[Reader]]
    damaged: ClassVar[int] = 100
    not_at_import: ClassVar[tuple[str, ...]] = _HEAVY

    # Fixtures of subclasses.

    @pytest.fixture
    def profile(self) -> Path:
        """Return a small profile, a file or a directory."""
        raise NotImplementedError(
            "define a fixture `profile` that returns the path of a small profile"
        )

    @pytest.fixture
    def known(self) -> Mapping[tuple[str, str], float]:
        """Return exclusive values, means over processes, by metric and call path.

        For a file with several runs, they are the values of the first run.
        """
        raise NotImplementedError(
            "define a fixture `known` that returns some values of the profile"
        )

    @pytest.fixture
    def reader(self) -> Reader:
        """Return the reader under test."""
        return self.reader_class()

    @pytest.fixture
    def runs(self, reader: Reader, profile: Path) -> Iterator[Runs]:
        """Open the run or the runs of the profile."""
        with opened_runs(reader, profile) as runs:
            yield runs

    def copy_of(self, profile: Path, folder: Path) -> Path:
        """Copy all files of `profile` into the empty directory `folder`; return the copy.

        Override it if a profile is more than one file or one directory.
        """
        return copy_of(profile, folder)

    # The reader.

    def test_the_reader_says_what_it_is(self, reader: Reader) -> None:
        assert reader.api_version == API_VERSION
        assert reader.name
        assert reader.name == reader.name.strip().lower()
        assert reader.description
        assert "\n" not in reader.description
        assert isinstance(reader.suffixes, tuple)
        assert reader.suffixes
        for suffix in reader.suffixes:
            assert not any(sign in suffix for sign in "/*?"), "give a suffix, not a pattern"

    def test_finding_the_reader_imports_nothing_heavy(self) -> None:
        heavy = {*self.not_at_import} & _imported_with(self.reader_class.__module__)
        assert not heavy, "import them inside the function that needs them"

    def test_the_reader_can_be_sent_to_another_process(self, reader: Reader) -> None:
        assert pickle.loads(pickle.dumps(reader)).name == reader.name  # noqa: S301 - ours

    # Recognition.

    def test_a_profile_is_recognised(self, reader: Reader, profile: Path) -> None:
        assert Registry((reader,)).match(profile) is reader
        assert isinstance(reader.match(profile), Match)

    def test_a_profile_is_recognised_by_its_first_block(
        self, reader: Reader, profile: Path, tmp_path: Path
    ) -> None:
        if profile.is_dir():
            pytest.skip("a directory has no first block")
        copy = self.copy_of(profile, tmp_path / "copy")
        size = copy.stat().st_size
        with copy.open("r+b") as file:
            file.truncate(min(_FIRST_BLOCK, max(size // 2, min(size, _HEAD))))
        assert reader.match(copy) == reader.match(profile)

    def test_a_strange_file_is_not_taken(self, reader: Reader, tmp_path: Path) -> None:
        stranger = tmp_path / "notes.of-no-tool"
        for content in _STRANGE:
            stranger.write_bytes(content)
            assert reader.match(stranger) is Match.NO, content

    def test_an_empty_file_is_not_taken_whatever_its_name(
        self, reader: Reader, tmp_path: Path
    ) -> None:
        for suffix in reader.suffixes:
            empty = tmp_path / f"empty{suffix}"
            empty.touch()
            assert reader.match(empty) is Match.NO

    def test_an_empty_directory_is_not_taken_whatever_its_name(
        self, reader: Reader, tmp_path: Path
    ) -> None:
        for suffix in ("", *reader.suffixes):
            folder = tmp_path / f"folder{suffix}"
            folder.mkdir(exist_ok=True)
            assert reader.match(folder) is Match.NO

    def test_what_is_not_there_is_not_taken(self, reader: Reader, tmp_path: Path) -> None:
        assert reader.match(tmp_path / f"nowhere{reader.suffixes[0]}") is Match.NO

    # Opening.

    def test_what_is_not_there_is_an_input_error(self, reader: Reader, tmp_path: Path) -> None:
        path = tmp_path / f"nowhere{reader.suffixes[0]}"
        with pytest.raises(InputError) as caught, opened_runs(reader, path):
            pass
        check_error(caught.value, path)

    def test_what_was_opened_is_closed(self, reader: Reader, profile: Path) -> None:
        descriptors = Path("/proc/self/fd")
        if not descriptors.is_dir():
            pytest.skip("this system does not list open files")
        before = set(descriptors.iterdir())
        with opened_runs(reader, profile) as runs:
            for run in runs:
                read_all(run.source)
        assert set(descriptors.iterdir()) <= before

    def test_a_profile_can_be_open_twice(self, reader: Reader, profile: Path) -> None:
        with ExitStack() as stack:
            both = [stack.enter_context(opened_runs(reader, profile)) for _ in range(2)]
            for first, second in zip(*both, strict=True):
                assert dict(first.parameters) == dict(second.parameters)
                check_same(first.source, second.source)

    def test_parts_for_workers_give_the_same_as_the_whole(
        self, reader: Reader, profile: Path
    ) -> None:
        if not isinstance(reader, DividingReader):
            pytest.skip("the reader does not divide a profile")
        workers = Workers(map, parts=3)
        with reader.open(profile) as whole, reader.open_for(workers, profile) as divided:
            check_same(whole, divided)

    def test_what_was_read_can_be_sent_to_another_process(
        self, reader: Reader, profile: Path
    ) -> None:
        for read in read_runs(RunFile(profile), Registry((reader,)), ReadRequest(), None):
            sent = pickle.loads(pickle.dumps(read))  # noqa: S301 - ours
            check_same_run(sent, read)

    def test_reading_again_gives_the_same(self, runs: Runs) -> None:
        for source in (run.source for run in runs):
            before = read_all(source)
            findings = list(source.findings())
            assert list(source.findings()) == findings, "reading must not change the findings"
            after = read_all(source)
            for key, reduced in before.items():
                np.testing.assert_array_equal(reduced.exclusive, after[key].exclusive)

    def test_reading_leaves_the_profile_alone(
        self, reader: Reader, profile: Path, tmp_path: Path
    ) -> None:
        copy = self.copy_of(profile, tmp_path / "copy")
        before = contents(tmp_path / "copy")
        with opened_runs(reader, copy) as runs:
            for run in runs:
                read_all(run.source)
        assert contents(tmp_path / "copy") == before

    # Description of the profile, once per run.

    def test_runs_differ_in_parameters_or_repetition(self, runs: Runs) -> None:
        assert runs
        settings = [(frozenset(run.parameters.items()), run.repetition) for run in runs]
        assert len(set(settings)) == len(settings)

    def test_parameters_are_numbers_with_names(self, runs: Runs) -> None:
        for run in runs:
            for name, value in run.parameters.items():
                assert name
                assert name not in REPETITIONS, "state it as `repetition`"
                assert math.isfinite(value)

    def test_the_call_tree_is_in_preorder(self, runs: Runs) -> None:
        for run in runs:
            assert len(run.source.call_tree) > 0
            check_tree(run.source.call_tree)

    def test_names_of_regions_are_text_in_full(self, runs: Runs) -> None:
        for region in (region for run in runs for region in run.source.call_tree.regions):
            assert region.name
            assert region.name == region.name.strip()
            assert not region.name.endswith(("...", "…")), "a name must not be cut"

    def test_metrics_have_one_name_each(self, runs: Runs) -> None:
        for run in runs:
            names = [declared.metric.name for declared in run.source.metrics]
            assert names
            assert all(names)
            assert len(set(names)) == len(names)

    def test_units_are_base_units(self, runs: Runs) -> None:
        for declared in (declared for run in runs for declared in run.source.metrics):
            unit = declared.metric.unit
            assert unit, f"{declared.metric.name}: a number without unit has unit '1'"
            assert base_unit(unit) == (unit, 1.0), "convert the values"

    def test_a_metric_that_cannot_be_read_says_why(self, runs: Runs) -> None:
        for source in (run.source for run in runs):
            assert any(declared.status.is_readable for declared in source.metrics)
            for declared in source.metrics:
                assert isinstance(declared.status, MetricStatus)
                if not declared.status.is_readable:
                    assert declared.note
                    with pytest.raises(KeyError):
                        source.reduce(declared.metric.name, reductions(source)[0])

    def test_the_extent_is_of_this_world(self, runs: Runs) -> None:
        for extent in (run.source.extent for run in runs):
            assert isinstance(extent, Extent)
            assert min(extent.processes, extent.threads, extent.nodes) >= 0

    def test_metadata_are_text(self, runs: Runs) -> None:
        for key, value in (item for run in runs for item in run.source.metadata.items()):
            assert isinstance(key, str)
            assert isinstance(value, str)

    def test_findings_are_known_and_in_one_line(self, runs: Runs) -> None:
        for source in (run.source for run in runs):
            read_all(source)
            for finding in source.findings():
                assert isinstance(finding, Finding)
                assert finding.code in KINDS
                assert finding.subject
                assert "\n" not in finding.message
                assert finding.count >= 1

    # Values.

    def test_known_values_are_read(
        self, runs: Runs, known: Mapping[tuple[str, str], float]
    ) -> None:
        assert any(known.values()), "`known` must have a value that is not zero"
        source = runs[0].source
        tree = source.call_tree
        for (metric, path), value in known.items():
            rows = [row for row in range(len(tree)) if tree.path(row) == path]
            assert rows, f"no call path {path}"
            exclusive = source.reduce(metric, Reduction.MEAN).exclusive
            np.testing.assert_allclose(exclusive[rows].sum(), value, rtol=CLOSE)

    def test_there_is_one_value_per_call_path(self, runs: Runs) -> None:
        for source, reduction in _reductions_of(runs, Reduction):
            for declared in readable(source):
                case = f"{declared.metric.name}, {reduction.value}"
                reduced = source.reduce(declared.metric.name, reduction)
                check_values(reduced, len(source.call_tree), case)
                if declared.metric.additive:
                    negative = (reduced.exclusive < 0).any()
                    assert not negative, f"{case}: negative costs must become zero"
                absent = declared.status is MetricStatus.ABSENT and declared.metric.additive
                if absent and reduction is not Reduction.IMBALANCE:
                    np.testing.assert_array_equal(reduced.exclusive, 0, case)

    def test_exclusive_values_add_up_to_the_total(self, runs: Runs) -> None:
        for source, reduction in _reductions_of(runs, (Reduction.SUM, Reduction.MEAN)):
            read = {d: source.reduce(d.metric.name, reduction) for d in readable(source)}
            # A reader that discards values must report it.
            if any(finding.code in ALTERING for finding in source.findings()):
                continue
            for declared, reduced in read.items():
                metric = declared.metric
                # Streams run side by side, and so do threads that the profile does not count.
                several = source.extent.threads == 0 or metric.is_on_gpu_streams
                folded = metric.is_time and several
                if metric.additive and not folded:
                    parts = np.nansum(reduced.exclusive)
                    case = f"{metric.name}, {reduction.value}"
                    np.testing.assert_allclose(parts, reduced.total, rtol=CLOSE, err_msg=case)

    def test_the_run_time_is_that_of_the_slowest_process(self, runs: Runs) -> None:
        for source in (run.source for run in runs):
            for name in (d.metric.name for d in readable(source) if d.metric.additive):
                told = [source.reduce(name, how).run_time for how in reductions(source)]
                np.testing.assert_array_equal(
                    told, told[0], "the run time must not depend on the reduction"
                )
                if Reduction.MAX in reductions(source) and np.isfinite(told[0]):
                    largest = source.reduce(name, Reduction.MAX).total
                    # The first thread represents its process, although it may be a bit shorter.
                    rounding = CLOSE if source.extent.threads == 1 else OF_THE_FIRST
                    np.testing.assert_allclose(told[0], largest, rtol=rounding)

    def test_reductions_keep_their_order(self, runs: Runs) -> None:
        for source in (run.source for run in runs):
            for declared in readable(source):
                if declared.metric.additive:
                    check_order(source, declared.metric.name)

    def test_an_imbalance_in_passing_is_the_one_asked_for(self, runs: Runs) -> None:
        for source in (run.source for run in runs if Reduction.IMBALANCE in reductions(run.source)):
            for name in (d.metric.name for d in readable(source) if d.metric.additive):
                asked = source.reduce(name, Reduction.IMBALANCE).exclusive
                for reduction in reductions(source):
                    told = source.reduce(name, reduction).imbalance
                    if told is not None:
                        np.testing.assert_allclose(told, asked, rtol=1e-6)

    def test_sums_of_threads_agree_with_the_reductions(self, runs: Runs) -> None:
        for source in (run.source for run in runs):
            if not isinstance(source, ThreadSource):
                pytest.skip("the reader has no values of single threads")
            for metric in (d.metric for d in readable(source) if d.metric.additive):
                check_sums_of_threads(source, metric)

    def test_separate_calls_have_the_cost_of_joined_ones(self, runs: Runs) -> None:
        for source in (run.source for run in runs):
            if not isinstance(source, CallSiteSource):
                pytest.skip("the reader does not separate calls on request")
            check_call_sites(source)

    def test_lines_cost_no_more_than_their_call_paths(self, runs: Runs) -> None:
        for source in (run.source for run in runs):
            if not isinstance(source, LineSource):
                pytest.skip("the reader has no values of lines")
            check_lines(source)

    def test_every_process_has_a_rank_and_a_node(self, runs: Runs) -> None:
        for source in (run.source for run in runs):
            if not isinstance(source, PlacedSource):
                pytest.skip("the reader states no ranks")
            check_placement(source)

    def test_an_unknown_metric_is_a_key_error(self, runs: Runs) -> None:
        for source in (run.source for run in runs):
            with pytest.raises(KeyError):
                source.reduce("no such metric", reductions(source)[0])

    # Damage.

    def test_a_damaged_profile_is_read_or_refused(
        self, reader: Reader, profile: Path, tmp_path: Path
    ) -> None:
        for seed in range(self.damaged):
            folder = tmp_path / str(seed)
            copy = self.copy_of(profile, folder)
            victim = damage(folder, seed)
            try:
                # A reader that never ends is stopped; how fast it is depends on the machine.
                with at_most(600):
                    read_or_refused(reader, copy)
            except BaseException as error:
                error.add_note(f"{victim.relative_to(folder)} as damaged with seed {seed}")
                raise

    # An independent implementation, where there is one.

    def test_an_independent_reader_agrees(self, reader: Reader, profile: Path) -> None:
        if not isinstance(reader, VerifyingReader):
            pytest.skip("there is no independent reader to compare with")
        for found in reader.verify(profile):
            assert found.differing == 0, found.metric
