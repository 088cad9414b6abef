"""Reader of OTF2 traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import API_VERSION, Agreement, Match
from callpath_modeler.support.input_limits import first_block
from cpmodel_otf2.anchor import MAGIC, check_anchor

if TYPE_CHECKING:
    from cpmodel_otf2.events import EventSource
    from cpmodel_otf2.profile import TraceProfile


@contextmanager
def opened(path: Path) -> Iterator[EventSource]:
    """Open a trace as a stream of events.

    Raises
    ------
    InputError
        If it is no trace, or its definitions make no sense.
    PluginError
        If the library of the package `otf2` does not load.
    """
    from cpmodel_otf2 import archive, library

    check_anchor(path)
    try:
        loaded = library.load()
    except library.InternalsChangedError:
        from cpmodel_otf2.highlevel import HighLevelArchive

        yield HighLevelArchive(path)
        return
    with archive.opened(path, loaded) as source:
        yield source


class TraceReader:
    """Reader of traces of Score-P and other tools that write OTF2."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "otf2"
    description: ClassVar[str] = "OTF2 traces, replayed into profiles"
    suffixes: ClassVar[tuple[str, ...]] = (".otf2",)

    def match(self, path: Path) -> Match:
        """Return whether `path` is the anchor of a trace, by its first bytes."""
        head = first_block(path, 6)
        if head[1:] in MAGIC:
            return Match.CONTENT
        return Match.NAME if head and path.name.lower().endswith(self.suffixes) else Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[TraceProfile]:
        """Open `path` and replay the trace.

        Raises
        ------
        InputError
            If the file is not a trace, or cannot be read to its end.
        PluginError
            If the library of the package `otf2` cannot be loaded.
        """
        from cpmodel_otf2.profile import TraceProfile

        with opened(path) as source:
            profile = TraceProfile(path, source)
        yield profile

    def verify(self, path: Path) -> Sequence[Agreement]:
        """Return the comparison of every value with a replay through the interface of `otf2`."""
        return verify(path)


def verify(path: Path) -> list[Agreement]:
    """Return the comparison of the exclusive values of every call path, metric and thread."""
    from cpmodel_otf2.highlevel import HighLevelArchive
    from cpmodel_otf2.profile import TraceProfile

    with opened(path) as source:
        ours = TraceProfile(path, source)
    metrics = [
        declared.metric.name
        for declared in ours.metrics
        if declared.status.is_readable and not declared.metric.is_of_all_threads
    ]
    try:
        theirs = TraceProfile(path, HighLevelArchive(path))
    except InputError as error:
        return [Agreement(name, 0, 0, f"otf2 cannot read it: {error.message}") for name in metrics]
    return [_compare(name, _by_path(ours, name), _by_path(theirs, name)) for name in metrics]


def _by_path(profile: TraceProfile, metric: str) -> dict[str, FloatArray]:
    tree, values = profile.call_tree, profile.per_location(metric)
    return {tree.path(row): values[row] for row in range(len(tree))}


def _compare(
    name: str,
    ours: Mapping[str, FloatArray],
    theirs: Mapping[str, FloatArray],
) -> Agreement:
    compared = differing = 0
    for path in ours.keys() | theirs.keys():
        pair = [side[path] for side in (ours, theirs) if path in side]
        compared += len(pair[0])
        differing += len(pair[0]) if len(pair) == 1 else int(np.count_nonzero(pair[0] != pair[1]))
    return Agreement(name, compared, differing)
