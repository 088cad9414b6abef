"""The event stream of a trace, by the library itself or by the package's public interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cpmodel_otf2.anchor import check_anchor

if TYPE_CHECKING:
    from cpmodel_otf2.events import EventSource


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
