"""Reader of OTF2 traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from callpath_modeler.readers.base import API_VERSION, Agreement, Match
from cpmodel_otf2.anchor import MAGIC
from cpmodel_otf2.event_source import opened

if TYPE_CHECKING:
    from cpmodel_otf2.profile import TraceProfile


class TraceReader:
    """Reader of traces of Score-P and other tools that write OTF2."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "otf2"
    description: ClassVar[str] = "OTF2 traces, replayed into profiles"
    suffixes: ClassVar[tuple[str, ...]] = (".otf2",)

    def match(self, path: Path) -> Match:
        """Return whether `path` is the anchor of a trace, by its first bytes."""
        if not path.is_file():
            return Match.NO
        try:
            head = _head(path)
        except OSError:
            return Match.NO
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
        from cpmodel_otf2.verify import verify

        return verify(path)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(6)
