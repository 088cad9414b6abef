"""Profile files: tar archives, gzip files and plain XML, with random access to their content."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from callpath_modeler.errors import DISK_IS_FULL, InputError, OutputError, reading, reason_of
from callpath_modeler.support.input_limits import GZIP, budget_of, unpacked_pieces

BLOCK = 512
_SCAN = 1 << 20
_OCTAL = re.compile(rb"[ \0]*+([0-7]*+)[ \0]*+\Z")
_PAX_SIZE = re.compile(rb"(?:^|\n)\d+ size=(\d{1,18})\n")
_ROWS = re.compile(r"(.*)\.(data|index)")

COPY_IT_AGAIN = "copy the profile again, or repeat the run"
_CHECK_IT = "check its name and permissions"

ANCHOR = "anchor.xml"
"""Name of the member with the definitions."""


class ContainerShape(Enum):
    """Kind of a file, by its first bytes."""

    TAR = "tar"
    GZIP = "gzip"
    XML = "xml"
    UNKNOWN = "unknown"


class Member(Struct, frozen=True):
    """A range of the file.

    Attributes
    ----------
    name : member name without a leading ``./``
    offset : position of the first byte
    size : number of bytes that exist; the last member of a cut-off file is shorter than declared
    """

    name: str
    offset: int
    size: int


def shape_of(head: bytes) -> ContainerShape:
    """Return the kind of a file, by its first block."""
    if head.startswith(GZIP):
        return ContainerShape.GZIP
    if _is_header(head[:BLOCK]):
        return ContainerShape.TAR
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"<?xml", b"<cube")):
        return ContainerShape.XML
    return ContainerShape.UNKNOWN


class Container:
    """An open profile file with named members. Threads may read it together.

    Attributes
    ----------
    path : file, for messages
    shape : `ContainerShape.TAR` or `ContainerShape.XML`; gzip files are unpacked
    members : members by name; an XML file is a single member with the name ``""``
    resynchronised : whether headers were not where the previous sizes say
    is_direct : whether the file itself is a tar archive, so that any part of it can be read alone
    """

    def __init__(
        self, path: Path, stream: BinaryIO, shape: ContainerShape, *, unpacked: bool = False
    ) -> None:
        self.path = path
        self.is_direct = shape is ContainerShape.TAR and not unpacked
        self.shape = shape
        self._file = stream.fileno()
        self.size = stream.seek(0, io.SEEK_END)
        self.resynchronised = False
        if shape is ContainerShape.TAR:
            self.members, self.resynchronised = _members(self)
        else:
            self.members = {"": Member("", 0, self.size)}

    def read_into(self, offset: int, target: memoryview) -> int:
        """Fill `target` from `offset` on, and return the number of bytes read."""
        filled = 0
        with reading(self.path, _CHECK_IT):
            while filled < len(target):
                count = os.preadv(self._file, [target[filled:]], offset + filled)
                if not count:
                    break
                filled += count
        return filled

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on."""
        size = max(0, min(size, self.size - offset))
        pieces: list[bytes] = []
        with reading(self.path, _CHECK_IT):
            # One call mostly returns everything, which is not copied.
            while size and (piece := os.pread(self._file, size, offset)):
                pieces.append(piece)
                size -= len(piece)
                offset += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def content(self, member: Member) -> bytes:
        """Return all bytes of `member`."""
        return self.read(member.offset, member.size)


@contextmanager
def opened(path: Path) -> Iterator[Container]:
    """Open `path` as a container.

    A gzip file is unpacked into an unnamed temporary file, so that its size does not count as
    memory.

    Raises
    ------
    InputError
        If the file cannot be read, or is neither tar nor XML nor gzip of one of them.
    """
    with reading(path, _CHECK_IT):
        # Opening a pipe would block until another process opens its other end.
        if not stat.S_ISREG(path.stat().st_mode):
            what = f"{path}: this is a directory or device, not a profile"
            raise InputError(what, hint="give the profile.cubex of the run")
        stream: BinaryIO = path.open("rb", buffering=0)
    with stream:
        shape = _checked_shape(path, stream)
        if shape is not ContainerShape.GZIP:
            yield Container(path, stream, shape)
            return
        with tempfile.TemporaryFile(buffering=0) as unpacked:
            _unpack(path, stream, unpacked)
            inner = _checked_shape(path, unpacked)
            if inner is ContainerShape.GZIP:
                raise InputError(
                    f"{path}: compressed with gzip twice", hint="uncompress the file once"
                )
            yield Container(path, unpacked, inner, unpacked=True)


def _checked_shape(path: Path, stream: BinaryIO) -> ContainerShape:
    with reading(path, _CHECK_IT):
        stream.seek(0)
        head = stream.read(BLOCK)
    if not head:
        raise InputError(f"{path}: the file is empty", hint=COPY_IT_AGAIN)
    shape = shape_of(head)
    if shape is ContainerShape.UNKNOWN:
        raise InputError(
            f"{path}: not a Cube profile: neither a tar archive nor XML",
            hint="a .cubex file starts with a tar header, a .cube file with '<?xml'",
        )
    return shape


def _unpack(path: Path, stream: BinaryIO, target: BinaryIO) -> None:
    with reading(path, _CHECK_IT):
        try:
            stream.seek(0)
            for piece in unpacked_pieces(stream, budget_of(path)):
                left = memoryview(piece)
                # A file without a buffer takes a part of a piece if the disk is full then.
                while left:
                    left = left[target.write(left) :]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            what = f"{path}: the gzip data are broken: {error}"
            raise InputError(what, hint=COPY_IT_AGAIN) from None
        except OSError as error:
            if error.errno in DISK_IS_FULL:
                raise _no_room(path, error) from error
            raise


def _no_room(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"{path}: cannot be unpacked to {tempfile.gettempdir()}: {reason_of(error)}",
        hint="name a directory with room: TMPDIR=DIR cpmodel ...",
    )


def _is_header(block: bytes) -> bool:
    # Checksums are ignored, because some versions of the writer compute them wrongly.
    return len(block) == BLOCK and block[257:262] == b"ustar" and _octal(block[124:136]) is not None


def _octal(field: bytes) -> int | None:
    found = _OCTAL.match(field)
    return int(found[1] or b"0", 8) if found else None


def _members(container: Container) -> tuple[dict[str, Member], bool]:
    members, orderly = _walk(container)
    if orderly and _complete(members):
        return members, False
    return _search(container), True


def _complete(members: dict[str, Member]) -> bool:
    rows: dict[str, set[str]] = {}
    for name in members:
        if found := _ROWS.fullmatch(name):
            rows.setdefault(found[1], set()).add(found[2])
    return "anchor.xml" in members and all(len(parts) == 2 for parts in rows.values())


def _walk(container: Container) -> tuple[dict[str, Member], bool]:
    """Return the members found from header to header, and whether every header was in its place."""
    members: dict[str, Member] = {}
    offset, long_size = 0, None
    while offset + BLOCK <= container.size:
        block = container.read(offset, BLOCK)
        if not any(block):
            # Some writers insert an empty block between members, so it does not end the archive.
            offset = _after_zeros(container, offset)
            continue
        if not _is_header(block):
            return members, False
        offset += BLOCK
        size = _octal(block[124:136]) or 0
        if block[156:157] in b"xg":
            found = _PAX_SIZE.search(container.read(offset, min(size, _SCAN)))
            long_size = int(found[1]) if found else None
        else:
            size = size if long_size is None else long_size
            long_size = None
            _remember(members, block, Member("", offset, min(size, container.size - offset)))
        offset += -(-size // BLOCK) * BLOCK
    return members, True


def _after_zeros(container: Container, offset: int) -> int:
    while block := container.read(offset, _SCAN):
        zeros = len(block) - len(block.lstrip(b"\0"))
        offset += zeros
        if zeros < len(block):
            return offset // BLOCK * BLOCK
    return container.size


def _remember(members: dict[str, Member], header: bytes, place: Member) -> None:
    name = header[:100].split(b"\0")[0].decode("utf-8", "replace").removeprefix("./")
    members.setdefault(name, Member(name, place.offset, place.size))


def _search(container: Container) -> dict[str, Member]:
    """Return the members found by searching for headers, without using their sizes.

    A writer that compresses rows may store the planned size in the header. So data members extend
    to the next header, and other members extend to it at most.
    """
    offsets: list[int] = []
    for start in range(0, container.size, _SCAN):
        chunk = container.read(start, _SCAN)
        place = chunk.find(b"ustar")
        while place >= 0:
            if place % BLOCK == 257 and _is_header(chunk[place - 257 : place + 255]):
                offsets.append(start + place - 257)
            place = chunk.find(b"ustar", place + 1)
    members: dict[str, Member] = {}
    for offset, after in zip(offsets, [*offsets[1:], container.size], strict=True):
        header = container.read(offset, BLOCK)
        room = after - offset - BLOCK
        is_data = header[:100].rstrip(b"\0").endswith(b".data")
        size = room if is_data else min(room, _octal(header[124:136]) or 0)
        _remember(members, header, Member("", offset + BLOCK, size))
    return members
