"""Definitions from an anchor, with repairs of text that is not well-formed XML."""

from __future__ import annotations

import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np

from callpath_modeler.errors import InputError, MalformedError
from callpath_modeler.support.input_limits import UNLIMITED, InputLimits, Work
from cpmodel_scorep import anchor_expat, anchor_fast
from cpmodel_scorep.anchor_fast import Sections
from cpmodel_scorep.container import COPY_IT_AGAIN
from cpmodel_scorep.definitions import Definitions
from cpmodel_scorep.tree import Latest

_LARGEST = 1 << 28  # bytes of unpacked definitions: 20 times the largest known anchor
_ALWAYS, _RATIO = 1 << 23, 64
"""Limits of unpacked definitions: a size in bytes, and a factor of the packed size."""
_MOST_AMPERSANDS = 1 << 20
"""Maximum number of repaired ampersands, because each one splits the text in memory."""
_PIECE = 1 << 20
_LAST = 4096
"""Number of last characters that show whether there is padding."""

_PADDING = b"\0 \t\r\n"
_STRAY_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);)")
_SPACE, _ALLOWED = 32, b"\t\n\r"
_CONTROL = bytes(c for c in range(_SPACE) if c not in _ALLOWED)
_QUESTIONED = bytes(ord("?") if c in _CONTROL else c for c in range(256))
_CONTROL_REFERENCE = re.compile(
    rb"&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01])|x0*(?:[0-8bcef]|1[\da-f]));", re.IGNORECASE
)
_EXPRESSION = rb"cubepl\w*"
_TEXT = rb"name|mangled_name|disp_name|uniq_name|descr|url|uom"
_TAG = re.compile(rb"<[A-Za-z_](?:[^<>\"']|\"[^\"]*\"|'[^']*')*+>")
_VALUE = re.compile(
    rb"(?P<quoted>\"[^\"]*\"|'[^']*')|(?P<key>\s[\w:.-]+=)(?P<bare>[^\s\"'<>/]+)(?=[\s/>])"
)


def parse(
    raw: bytes, where: str, latest: Latest | None = None, limits: InputLimits = UNLIMITED
) -> tuple[Definitions, bool]:
    """Return the definitions in `raw`, and whether they were repaired.

    Parameters
    ----------
    raw : anchor as stored, possibly compressed
    where : file and member, for messages
    latest : call paths of the profile before; it gets those of this one
    limits : limits of the file

    Raises
    ------
    InputError
        If the definitions cannot be read even after repairs, or are too many for the file.
    """
    latest = latest or Latest()
    known = latest.definitions(raw)
    if known is not None:
        return known
    definitions, repaired = _parsed(raw, where, latest, limits)
    latest.keep_definitions(raw, definitions, repaired)
    return definitions, repaired


def _parsed(
    raw: bytes, where: str, latest: Latest, limits: InputLimits
) -> tuple[Definitions, bool]:
    """Return what `parse` does, of an anchor that is not the latest one."""
    text = _without_padding(_unpacked(raw, where))
    limits.check(Work.ELEMENTS, text.count(b"</") + text.count(b"/>"), "unpack the file")
    sections = anchor_fast.cut(text)
    # Call paths take many megabytes. If they are those of the profile before, they are sound.
    is_known = sections is not None and latest.call_paths(sections.key) is not None
    damaged = _is_damaged(sections.beside if sections is not None and is_known else text)
    try:
        if damaged:
            text = repair(text)
            sections = anchor_fast.cut(text)
        try:
            return _parse(text, sections, latest), damaged
        except MalformedError:
            if damaged:
                raise
            repaired = repair(text)
            return _parse(repaired, anchor_fast.cut(repaired), latest), True
    except MalformedError as error:
        raise InputError(
            f"{where}: the definitions cannot be read: {error}", hint=COPY_IT_AGAIN
        ) from None


def readable(raw: bytes, where: str) -> bytes:
    """Return the text of an anchor that `parse` has read, unpacked and repaired.

    Raises
    ------
    InputError
        If it cannot be unpacked.
    """
    text = _without_padding(_unpacked(raw, where))
    return repair(text) if _is_damaged(text) else text


def _parse(text: bytes, sections: Sections | None, latest: Latest) -> Definitions:
    definitions = None if sections is None else anchor_fast.parsed(sections, latest)
    return anchor_expat.parse(text) if definitions is None else definitions


def _without_padding(text: bytes) -> bytes:
    """Return the text without padding; some writers and tar pad the last block with zeros."""
    # Only text that is padded is copied.
    tail = text[-_LAST:]
    return text.rstrip(_PADDING) if b"\0" in tail or not tail.strip(_PADDING) else text


def _unpacked(raw: bytes, where: str) -> bytes:
    # Depending on the writer, the data are gzip (0x1f 0x8b) or a plain zlib stream (0x78).
    if not raw.startswith((b"\x1f\x8b", b"\x78")):
        return raw
    unpacker = zlib.decompressobj(wbits=47)
    try:
        most = min(_LARGEST, max(_ALWAYS, _RATIO * len(raw)))
        text = unpacker.decompress(raw, most)
    except zlib.error as error:
        raise InputError(
            f"{where}: the compressed definitions are broken: {error}", hint=COPY_IT_AGAIN
        ) from None
    if unpacker.unconsumed_tail:
        raise InputError(
            f"{where}: the definitions unpack to more than {most >> 20} MiB, which is too much "
            "for their size",
            hint=COPY_IT_AGAIN,
        )
    if not unpacker.eof:
        raise InputError(f"{where}: the compressed definitions are cut off", hint=COPY_IT_AGAIN)
    return text


def _is_damaged(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return True
    if _has_controls(text):
        return True
    if b"&" not in text:
        return False
    return bool(_CONTROL_REFERENCE.search(text) or _STRAY_AMPERSAND.search(text))


def _has_controls(text: bytes) -> bool:
    """Return whether the text has control characters that XML does not allow."""
    characters = np.frombuffer(text, np.uint8)
    # Pieces stay in the cache of the processor.
    for begin in range(0, len(characters), _PIECE):
        piece = characters[begin : begin + _PIECE]
        allowed = sum(np.count_nonzero(piece == character) for character in _ALLOWED)
        if np.count_nonzero(piece < _SPACE) != allowed:
            return True
    return False


def repair(text: bytes) -> bytes:
    """Return `text` with known violations of XML repaired.

    Bytes that are not UTF-8 are read as Latin-1. Control characters become ``?``. Stray ``&`` and
    ``<`` are escaped, and unquoted attributes are quoted. Expressions of derived metrics are
    removed, because cpmodel does not evaluate them.
    """
    text = _as_utf8(text)
    text = _CONTROL_REFERENCE.sub(b"?", text.translate(_QUESTIONED))
    text = _replace_elements(text, _EXPRESSION, rb"\b[^<>]*+", lambda _name, _content: b"")
    if text.count(b"&") > _MOST_AMPERSANDS:
        raise MalformedError("the definitions have too many errors to repair")
    text = _STRAY_AMPERSAND.sub(b"&amp;", text)
    text = _replace_elements(text, _TEXT, b"", _escape_text)
    return b"".join(_TAG.sub(_quote, piece) for piece in _pieces(text))


def _pieces(text: bytes) -> Iterator[bytes]:
    """Yield pieces of the text that end after a tag, to limit the memory for matches."""
    begin = 0
    while begin < len(text):
        end = text.find(b">", begin + _PIECE) + 1 or len(text)
        yield text[begin:end]
        begin = end


def _replace_elements(
    text: bytes, names: bytes, attributes: bytes, replacement: Callable[[bytes, bytes], bytes]
) -> bytes:
    """Return the text with every element replaced, from its start tag to the next end tag.

    A single regular expression for both tags would take quadratic time: it would search the rest of
    the text again for every start tag without an end tag. This function finds each tag once.

    Parameters
    ----------
    names : regular expression of the element names
    attributes : regular expression of the rest of a start tag after the name
    replacement : function of the name and the content of an element that returns its new text
    """
    ends: dict[bytes, list[tuple[int, int]]] = {}
    for found in re.finditer(rb"</(%b)\s*+>" % names, text):
        ends.setdefault(found[1], []).append(found.span())
    if not ends:
        return text
    pieces: list[bytes] = []
    done = 0
    for found in re.finditer(rb"<(%b)%b>" % (names, attributes), text):
        candidates = ends.get(found[1], [])
        k = bisect_left(candidates, (found.end(), 0))
        if found.start() < done or k == len(candidates):
            continue
        start, end = candidates[k]
        pieces += text[done : found.start()], replacement(found[1], text[found.end() : start])
        done = end
    return b"".join([*pieces, text[done:]])


def _as_utf8(text: bytes) -> bytes:
    decoded = text.decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", lambda byte: chr(ord(byte[0]) - 0xDC00), decoded).encode()


def _escape_text(name: bytes, content: bytes) -> bytes:
    inner = content.replace(b"<", b"&lt;").replace(b">", b"&gt;")
    return b"<%b>%b</%b>" % (name, inner, name)


def _quote(found: re.Match[bytes]) -> bytes:
    return _VALUE.sub(_value, found[0]) if b"=" in found[0] else found[0]


def _value(found: re.Match[bytes]) -> bytes:
    if found["quoted"] is not None:
        return found["quoted"].replace(b"<", b"&lt;")
    return b'%b"%b"' % (found["key"], found["bare"])
