"""Reader of traces of PyTorch (Kineto), and of other traces in the format of Chrome."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from callpath_modeler.profile.schema import SPLITS
from callpath_modeler.readers.base import API_VERSION, Match, RunSource
from callpath_modeler.support.input_limits import first_block

_BLOCK = 1 << 16
_NAMES = (".pt.trace.json", ".pt.trace.json.gz")
"""Endings of the names that `tensorboard_trace_handler` of PyTorch gives."""
_ENDINGS = (*_NAMES, ".json", ".json.gz")
_EVENTS = re.compile(rb'\s*+\{.*?"traceEvents"\s*+:', re.DOTALL)
_LIST = re.compile(rb'\s*+\[\s*+\{[^{}]*?"ph"\s*+:', re.DOTALL)
_RANK = re.compile(rb'"distributedInfo"\s*+:\s*+\{[^{}\[]*?"rank"\s*+:\s*+(\d{1,8})\b')
_WORLD = re.compile(rb'"distributedInfo"\s*+:\s*+\{[^{}\[]*?"world_size"\s*+:\s*+(\d{1,8})\b')
_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[-_.]?(\d{1,8})(?!\d)", re.IGNORECASE)
_ONLY_RANK = re.compile(r"rank[-_.]?\d+(?:\.pt)?(?:\.trace)?\.json(?:\.gz)?", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"_(\d{1,8})(?=\.)")


class KinetoReader:
    """Reader of one trace, or of a directory with one trace for each rank."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "kineto"
    description: ClassVar[str] = "PyTorch (Kineto) and Chrome traces: .json, .json.gz"
    suffixes: ClassVar[tuple[str, ...]] = _ENDINGS

    def match(self, path: Path) -> Match:
        """Return whether a file is a trace, or a directory has the traces of the ranks of a run."""
        if path.is_dir():
            return Match.CONTENT if _are_of_one_run(_files_in(path)[:2]) else Match.NO
        if not path.name.lower().endswith(_ENDINGS):
            return Match.NO
        head = _head(path)
        if _EVENTS.match(head) or _LIST.match(head):
            return Match.CONTENT
        return Match.NAME if head and path.name.lower().endswith(_NAMES) else Match.NO

    @contextmanager
    def open_runs(self, path: Path) -> Iterator[Sequence[RunSource]]:
        """Open the run of a trace, or of all traces in a directory.

        The number of processes is the one of the whole run, although files of ranks may be missing.

        Raises
        ------
        InputError
            If a file is no trace, or ends too early.
        """
        from cpmodel_kineto.run import KinetoProfile

        files = _files_in(path) if path.is_dir() else [path]
        ranks = _ranks_in_names(files)
        profile = KinetoProfile([(ranks.get(file, -1), file) for file in files], path)
        parameters = {"p": float(profile.world_size)} | profile.parameters
        # Programs without groups of a kind state none.
        yield [RunSource(profile, parameters, defaults=dict.fromkeys(SPLITS, 1.0))]


def _head(path: Path) -> bytes:
    return first_block(path, _BLOCK, unpack=True).removeprefix(b"\xef\xbb\xbf")


def _files_in(directory: Path) -> list[Path]:
    """Return the files of a directory with the names of traces, by name."""
    try:
        found = [path for path in directory.iterdir() if path.name.lower().endswith(_ENDINGS)]
    except OSError:
        return []
    return sorted(path for path in found if path.is_file())


def _ranks_in_names(files: Sequence[Path]) -> Mapping[Path, int]:
    """Return the rank of each file whose name has one; nothing if two names have the same."""
    found: dict[Path, int] = {}
    for file in files:
        named = _RANK_IN_NAME.search(file.name) or _LAST_NUMBER.search(file.name)
        # The only file of a run may have any number.
        if named is not None and (len(files) > 1 or "rank" in named[0].lower()):
            found[file] = int(named[1])
    return found if len({*found.values()}) == len(found) else {}


def _are_of_one_run(files: Sequence[Path]) -> bool:
    """Return whether the first files of a directory have different ranks of one run."""
    heads = [_head(file) for file in files]
    if not heads or not all(_EVENTS.match(head) or _LIST.match(head) for head in heads):
        return False
    if len(files) == 1:
        return _ONLY_RANK.fullmatch(files[0].name) is not None
    worlds = {found[1] if (found := _WORLD.search(head)) else b"" for head in heads}
    ranks = [found[1] if (found := _RANK.search(head)) else b"" for head in heads]
    if all(ranks):
        return len({*ranks}) == len(ranks) and len(worlds) == 1
    names = [_RANK_IN_NAME.search(file.name) for file in files]
    return all(names) and len({found[1] for found in names if found}) == len(names)
