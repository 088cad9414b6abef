"""Archives read with libotf2, and checks of their files before.

libotf2 allocates memory for as many properties as the anchor declares, one by one. For a file of 72
bytes that declares a billion properties, this takes 15 seconds and all memory.

After a damaged record, libotf2 goes on behind the end of the file, in memory that may still hold
another file. Then a damaged trace gets the answer of the other one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.errors import InputError
from cpmodel_otf2.anchor import COPY_IT_AGAIN, cut_off, damage_of
from cpmodel_otf2.definitions import (
    UNRESOLVED,
    Location,
    Raw,
    TraceDefinitions,
    is_any_source,
    resolve,
)
from cpmodel_otf2.events import BATCH_EVENTS, Batch, Recorder
from cpmodel_otf2.library import Library, definition_callbacks, event_callbacks, raising

_LARGEST_CHUNK = 1 << 28
"""Maximum chunk size in bytes. The format allows 2^24, but libotf2 allocates any declared size."""

_DEFINITIONS_PER_BYTE = 16
"""Maximum number of definitions per byte of a file. A definition has several bytes, but may be
compressed.
"""

_NOT_COMPRESSED = 1


@contextmanager
def opened(path: Path, library: Library) -> Iterator[Archive]:
    """Open an archive by its anchor.

    Raises
    ------
    InputError
        If the archive cannot be opened, or its definitions are inconsistent.
    """
    with library.quiet():
        handle = library.functions.Reader_Open(str(path).encode(errors="surrogateescape"))
        if not handle:
            raise InputError(f"{path}: libotf2 cannot open the anchor", hint=COPY_IT_AGAIN)
        try:
            yield Archive(path, library, handle)
        finally:
            library.functions.Reader_Close(handle)


class Archive:
    """An opened archive; implements `EventSource`."""

    def __init__(self, path: Path, library: Library, handle: int) -> None:
        self._path, self._library, self._handle = path, library, handle
        self._notices = Notices(str(path))
        self._check(library.functions.Reader_SetSerialCollectiveCallbacks(handle), path.name)
        self._block_of_definitions = self._check_blocks()
        self._is_compressed = self._read_compression() != _NOT_COMPRESSED
        self.creator = self._read_creator()
        try:
            self.definitions: TraceDefinitions = resolve(self._read_definitions())
        except ValueError as error:
            raise self._broken(f"{path.stem}.def", str(error)) from None
        self._open_events()

    def batches(self, location: Location) -> Iterator[Batch]:
        """Yield the events of a location in order; see `EventSource`."""
        functions = self._library.functions
        name = f"{self._path.stem}/{location.reference}.evt"
        if not location.events and not (self._path.parent / name).exists():
            return
        self._require_none(name, cut_off)
        reader = functions.Reader_GetEvtReader(self._handle, location.reference)
        if not reader:
            raise self._broken(name, "the events of this location are missing")
        recorder = Recorder(self.definitions, location)
        table = functions.EvtReaderCallbacks_New()
        callbacks = event_callbacks(recorder, self.definitions.strings, self._is_any_source)
        kept = self._library.set_callbacks("EvtReader", table, callbacks)
        try:
            code = functions.Reader_RegisterEvtCallbacks(self._handle, reader, table, None)
            self._check(code, name)
            yield from self._read_events(reader, recorder, location, name)
        finally:
            functions.Reader_CloseEvtReader(self._handle, reader)
            functions.EvtReaderCallbacks_Delete(table)
            kept.clear()

    def findings(self) -> Sequence[Finding]:
        """Return the findings about the archive."""
        return self._notices.findings()

    def _is_any_source(self, attributes: int | None) -> bool:
        """Tell whether a receive with these attributes takes messages of any source."""
        reference = self.definitions.posted_source
        if not attributes or reference == UNRESOLVED:
            return False
        kind, bits = self._library.attribute(attributes, reference)
        return is_any_source(kind, bits, self.definitions.strings)

    def _read_events(
        self, reader: int, recorder: Recorder, location: Location, name: str
    ) -> Iterator[Batch]:
        count, done = ctypes.c_uint64(), 0
        # A damaged file may never end. If no number of events is defined, each takes one byte or
        # more.
        most = location.events or (self._path.parent / name).stat().st_size
        while done <= most:
            with raising():
                code = self._library.functions.Reader_ReadLocalEvents(
                    self._handle, reader, BATCH_EVENTS, ctypes.byref(count)
                )
            done += count.value
            self._check(code, name, f" after {done} of {location.events} events")
            yield recorder.take()
            if count.value < BATCH_EVENTS:
                break
        if location.events and done != location.events:
            message = f"{name}: {done} events instead of {location.events}"
            self._notices.note("CPM103", message, about=name)

    def _read_definitions(self) -> Raw:
        functions, handle = self._library.functions, self._handle
        name = f"{self._path.stem}.def"
        self._require_records(name)
        reader = functions.Reader_GetGlobalDefReader(handle)
        if not reader:
            raise self._broken(name, "the definitions cannot be opened")
        raw = Raw()
        table = functions.GlobalDefReaderCallbacks_New()
        kept = self._library.set_callbacks("GlobalDefReader", table, definition_callbacks(raw))
        try:
            code = functions.Reader_RegisterGlobalDefCallbacks(handle, reader, table, None)
            self._check(code, name)
            count, most = ctypes.c_uint64(), self._most_definitions(name)
            with raising():
                code = functions.Reader_ReadGlobalDefinitions(
                    handle, reader, most, ctypes.byref(count)
                )
            self._check(code, name, f" after {count.value} definitions")
            if count.value >= most:
                raise self._broken(name, "the definitions have no end")
        finally:
            functions.Reader_CloseGlobalDefReader(handle, reader)
            functions.GlobalDefReaderCallbacks_Delete(table)
            kept.clear()
        return raw

    def _open_events(self) -> None:
        """Open the event files. Local definitions map references and correct clocks."""
        functions, handle = self._library.functions, self._handle
        for location in self.definitions.locations:
            self._check(functions.Reader_SelectLocation(handle, location.reference), "")
        # Traces of a single process have no local definitions, so there is nothing to map.
        if functions.Reader_OpenDefFiles(handle) == 0:
            for location in self._with_definitions():
                self._read_local_definitions(location)
            functions.Reader_CloseDefFiles(handle)
        self._check(functions.Reader_OpenEvtFiles(handle), f"{self._path.stem}/")

    def _with_definitions(self) -> list[Location]:
        """Return the locations with local definitions, which every location with events needs."""
        there = self._path.parent
        known = [
            (location, (there / self._local(location)).exists())
            for location in self.definitions.locations
        ]
        if any(exists for _, exists in known):
            for location, exists in known:
                if location.events and not exists:
                    raise self._broken(
                        self._local(location), "the file is missing, and the events need it"
                    )
        return [location for location, exists in known if exists]

    def _local(self, location: Location) -> str:
        return f"{self._path.stem}/{location.reference}.def"

    def _read_local_definitions(self, location: Location) -> None:
        functions, handle = self._library.functions, self._handle
        name, count = self._local(location), ctypes.c_uint64()
        self._require_records(name)
        reader = functions.Reader_GetDefReader(handle, location.reference)
        if not reader:
            raise self._broken(name, "the definitions of this location cannot be opened")
        most = self._most_definitions(name)
        code = functions.Reader_ReadLocalDefinitions(handle, reader, most, ctypes.byref(count))
        functions.Reader_CloseDefReader(handle, reader)
        self._check(code, name)

    def _require_records(self, name: str) -> None:
        """Raise an error if a file of definitions is damaged."""
        self._require_none(name, lambda path: damage_of(path, self._block_of_definitions))

    def _require_none(self, name: str, damage: Callable[[Path], str | None]) -> None:
        """Raise an error if an uncompressed file is damaged; a missing one is no damage."""
        path = self._path.parent / name
        if self._is_compressed or not path.is_file():
            return
        try:
            found = damage(path)
        except OSError as error:
            raise self._broken(name, error.strerror or str(error)) from None
        if found:
            raise self._broken(name, found)

    def _read_compression(self) -> int:
        kind = ctypes.c_uint8()
        self._library.functions.Reader_GetCompression(self._handle, ctypes.byref(kind))
        return kind.value

    def _most_definitions(self, name: str) -> int:
        """Return the maximum number of definitions in a file, as damaged files may have no end."""
        return 1 + _DEFINITIONS_PER_BYTE * (self._path.parent / name).stat().st_size

    def _check_blocks(self) -> int:
        """Raise an error if blocks are too large, and return the size of those of definitions."""
        events, definitions = ctypes.c_uint64(), ctypes.c_uint64()
        self._library.functions.Reader_GetChunkSize(
            self._handle, ctypes.byref(events), ctypes.byref(definitions)
        )
        if max(events.value, definitions.value) > _LARGEST_CHUNK:
            raise self._broken(self._path.name, "the block size is too large")
        return definitions.value

    def _read_creator(self) -> str:
        text = ctypes.c_void_p()
        if self._library.functions.Reader_GetCreator(self._handle, ctypes.byref(text)) != 0:
            return ""
        # libotf2 has its own function to free the copy. The text is short, so it is not freed.
        value = ctypes.string_at(text.value) if text.value else b""
        return value.decode(errors="replace")

    def _check(self, code: int, name: str, where: str = "") -> None:
        """Raise an error if libotf2 returned an error code."""
        if code:
            raise self._broken(name, f"{self._library.describe(code)}{where}")

    def _broken(self, name: str, reason: str) -> InputError:
        about = f"{name}: " if name and name != self._path.name else ""
        return InputError(f"{self._path}: {about}{reason}", hint=COPY_IT_AGAIN)
