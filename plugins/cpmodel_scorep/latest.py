"""What the profiles of one program share: their call paths, and the layout of their call tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from callpath_modeler.profile.schema import Region
from cpmodel_scorep.definitions import CallPaths, Definitions
from cpmodel_scorep.tree import TreeLayout, layout_of


@dataclass(slots=True)
class Latest:
    """Call paths and layout of the profile before; profiles of one program often agree in them.

    A reader has one, so this memory is free when the reader is no longer needed. Threads may share
    a reader: each attribute is replaced as a whole.
    """

    _read: tuple[bytes, CallPaths] | None = None
    _laid_out: tuple[CallPaths, Mapping[int, Region], TreeLayout] | None = None

    def call_paths(self, key: bytes) -> CallPaths | None:
        """Return the call paths whose text has the hash `key`, if they are the latest."""
        held = self._read
        return held[1] if held is not None and held[0] == key else None

    def keep(self, key: bytes, call_paths: CallPaths | None) -> None:
        """Keep call paths, read-only, instead of those before; None = the text is of no use."""
        self._read = self._laid_out = None
        if call_paths is not None:
            columns = call_paths.ids, call_paths.regions, call_paths.parents, call_paths.lines
            for column in columns:
                column.flags.writeable = False
            self._read = key, call_paths

    def layout_of(self, definitions: Definitions) -> TreeLayout:
        """Return the layout of the call tree, the one before if the definitions are the same.

        Raises
        ------
        MalformedError
            As in `layout_of`.
        """
        held, regions = self._laid_out, definitions.regions
        if held is not None and held[0] is definitions.call_paths and held[1] == regions:
            return held[2]
        layout = layout_of(definitions)
        self._laid_out = definitions.call_paths, regions, layout
        return layout
