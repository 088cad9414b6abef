"""Binary database files, with a check of every read against the file size."""

from __future__ import annotations

import struct
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.errors import InputError

COPY_IT_AGAIN = "copy the database again, or run hpcprof on the measurements again"
_MAGIC = b"HPCTOOLKIT"
_LONGEST_TEXT = 1 << 16
_TEXTS = 1 << 24
"""Maximum number of letters beyond the file size, because texts may share their ends."""
MAJOR = 4


class BinaryFile:
    """An open file of a version 4 database.

    Attributes
    ----------
    path : file, for messages
    size : length in bytes
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._stream = path.open("rb", buffering=0)
            self.size = self._stream.seek(0, 2)
        except OSError as error:
            raise InputError(
                f"{path}: cannot be read: {error.strerror or error}", hint=COPY_IT_AGAIN
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()

    def refuse(self, offset: int, what: str) -> NoReturn:
        """Raise `InputError` about the bytes at `offset`."""
        raise InputError(f"{self.path}: {what} (byte {offset:#x})", hint=COPY_IT_AGAIN)

    def check(self, offset: int, size: int, what: str) -> None:
        """Raise `InputError` unless the file has `size` bytes from `offset` on."""
        if offset < 0 or size < 0 or offset + size > self.size:
            self.refuse(offset, f"{what} of {size} bytes extends beyond the end ({self.size:#x})")

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Return exactly `size` bytes from `offset` on."""
        self.check(offset, size, what)
        pieces = []
        try:
            self._stream.seek(offset)
            while size > 0:
                piece = self._stream.read(size)
                if not piece:
                    self.refuse(offset, f"{what} ends early")
                pieces.append(piece)
                size -= len(piece)
        except OSError as error:
            what = f"{self.path}: cannot be read: {error.strerror or error}"
            raise InputError(what, hint=COPY_IT_AGAIN) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def unpack(self, layout: struct.Struct, offset: int, what: str) -> tuple[int, ...]:
        """Return the numbers of a structure."""
        return layout.unpack(self.read(offset, layout.size, what))

    def array(
        self, dtype: np.dtype[np.void], offset: int, count: int, what: str
    ) -> NDArray[np.void]:
        """Return `count` consecutive structures."""
        size = count * dtype.itemsize
        return np.frombuffer(self.read(offset, size, what), dtype)

    def check_header(self, kind: bytes, footer: bytes) -> None:
        """Raise `InputError` unless this is a complete file of version 4 and of the given kind."""
        if self.size == 0:
            raise InputError(f"{self.path}: the file is empty", hint=COPY_IT_AGAIN)
        head = self.read(0, min(16, self.size), "the header")
        if len(head) < 16 or head[:10] != _MAGIC or head[10:14] != kind:
            self.refuse(0, f"this is not the header of an HPCToolkit {self.path.name}")
        if head[14] != MAJOR:
            raise InputError(
                f"{self.path}: version {head[14]}.{head[15]} of the format is unknown (byte 0xe)",
                hint="run hpcprof of HPCToolkit 2022.10 or later on the measurements",
            )
        if self.read(self.size - 8, 8, "the footer") != footer:
            self.refuse(self.size - 8, f"the file is cut off: {footer.decode()} is missing")


class InMemoryFile(BinaryFile):
    """A binary file in memory, for following pointers.

    Attributes
    ----------
    data : bytes of the file
    words : the same as little-endian 64-bit words, without an incomplete last word
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.data = super().read(0, self.size, "the file")
        self.words = np.frombuffer(self.data, "<u8", self.size // 8)
        self._texts: dict[int, str] = {}
        self._letters = 0

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Return exactly `size` bytes from `offset` on."""
        self.check(offset, size, what)
        return self.data[offset : offset + size]

    def text(self, offset: int, what: str) -> str:
        """Return the text that begins at `offset`; "" at 0."""
        if offset == 0:
            return ""
        if offset in self._texts:
            return self._texts[offset]
        self.check(offset, 1, what)
        end = self.data.find(b"\0", offset, offset + _LONGEST_TEXT)
        if end < 0:
            self.refuse(offset, f"{what} has no end")
        # Overlapping texts could need memory that grows with the square of the file size.
        self._letters += end - offset
        if self._letters > _TEXTS + self.size:
            self.refuse(offset, "texts overlap each other")
        self._texts[offset] = self.data[offset:end].decode("utf-8", "replace")
        return self._texts[offset]
