"""Definitions by patterns and arrays: ten times faster, for the layout of current writers.

Every function returns None if the text has another layout. Then `anchor_expat` reads it.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, ByteArray, Int64Array, IntArray
from callpath_modeler.profile.schema import Region
from cpmodel_scorep import anchor_expat
from cpmodel_scorep.definitions import (
    CREATOR,
    GPU_TYPES,
    PLACES,
    CallPaths,
    Definitions,
    Locations,
    call_lines,
    parents_from_depths,
    place_name,
)
from cpmodel_scorep.tree import Latest

_REGION = re.compile(
    rb'<region id="(\d{1,18})" mod="([^"]*)" begin="(-?\d{1,18})" end="[^"]*">\s*'
    rb"<name>([^<]*)</name>\s*"
    rb"(?:<mangled_name>([^<]*)</mangled_name>\s*)?"
    rb"(?:<paradigm>([^<]*)</paradigm>\s*)?"
    rb"(?:<role>([^<]*)</role>)?"
)
_PARAMETER = re.compile(
    rb'<parameter partype="\w+" parkey="([^"]*)" parvalue="([^"]*)"\s*/>|<parameter'
)
_CREATOR = re.compile(rb'<attr key="%b" value="([^"<]*)"\s*/>' % CREATOR.encode())
_PLACE = re.compile(rb' (?:line|mod)="[^"]*"')
_LINE = re.compile(rb' line="(-?\d{1,18})"')
_NAME = re.compile(rb"<name>([^<]*)</name>\s*")
_CLASS = re.compile(rb"<class>([^<]*)</class>")
_LONGEST_TAG, _LONGEST_NUMBER, _SPACE = 64, 18, 32
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))
_ONLY_DIGITS = bytes(c if c in b"0123456789" else 32 for c in range(256))


class Sections(Struct, frozen=True):
    """Sections of the text that are read by patterns, and the rest, which is XML.

    Attributes
    ----------
    regions, system : definitions of regions, and of locations
    call_paths : definitions of call paths, which are most of the text
    key : hash of `call_paths`
    beside : the text without `call_paths`
    rest : the text without all of these sections
    """

    regions: bytes
    system: bytes
    call_paths: memoryview
    key: bytes
    beside: bytes
    rest: bytes


def parse(text: bytes) -> Definitions | None:
    """Return the definitions; None if the text has another layout.

    Raises
    ------
    MalformedError
        If the text outside of regions, call paths and locations is not well-formed.
    """
    sections = cut(text)
    return None if sections is None else parsed(sections, Latest())


def parsed(sections: Sections, latest: Latest) -> Definitions | None:
    """Return the definitions in sections that `cut` returned, as `parse` does.

    Call paths come from `latest` if they have the same text, and else are kept there.
    """
    regions = _regions(sections.regions)
    call_paths = latest.call_paths(sections.key)
    if call_paths is None:
        call_paths = _call_paths(bytes(sections.call_paths))
        latest.keep(sections.key, call_paths)
    locations = _locations(sections.system)
    if regions is None or call_paths is None or locations is None:
        return None
    builder = anchor_expat.run(sections.rest)
    metrics = anchor_expat.metrics(builder.records)
    return Definitions(builder.attributes, metrics, regions, call_paths, locations)


def cut(text: bytes) -> Sections | None:
    """Return the sections of the text; None if it has another layout."""
    # Search from both ends, because most of the text is call paths.
    program, end = text.find(b"<program>"), text.rfind(b"</program>")
    cnode = text.find(b"<cnode ", program)
    system, last = text.find(b"<system>", end), text.rfind(b"</system>")
    if not 0 <= program < cnode < end < system < last:
        return None
    beside = text[:cnode] + text[end:]
    if beside.count(b"<system>") + beside.count(b"<program>") != 2:
        return None
    if b"<!" in text[program:cnode] or b"<!" in text[end:]:
        return None
    topologies = text.find(b"<topologies>", system, last)
    # Call paths take many megabytes, and are mostly those of the profile before.
    call_paths = memoryview(text)[cnode:end]
    return Sections(
        text[program:cnode],
        text[system : topologies if topologies >= 0 else last],
        call_paths,
        hashlib.sha256(call_paths).digest(),
        beside,
        text[:program] + text[last + len(b"</system>") :],
    )


def _unescaped(text: str) -> str:
    if "&" not in text:
        return text
    if "&#" in text:
        return html.unescape(text)
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


def _string(raw: bytes) -> str:
    return _unescaped(raw.decode()).strip()


def _regions(section: bytes) -> dict[int, Region] | None:
    found = _REGION.findall(section)
    if len(found) != section.count(b"<region "):
        return None
    if not found:
        return {}
    numbers, files, lines, *columns = zip(*found, strict=True)
    names, mangled, paradigms, roles = map(_strings, columns)
    regions = map(Region, names, mangled, _strings(files), map(int, lines), paradigms, roles)
    return dict(zip(map(int, numbers), regions, strict=True))


def _strings(raw: Iterable[bytes]) -> Iterator[str]:
    # Thousands of texts are decoded together. XML cannot contain the zero byte that separates them.
    return map(str.strip, _unescaped(b"\0".join(raw).decode()).split("\0"))


def _call_paths(section: bytes) -> CallPaths | None:
    parameters = _parameters(section)
    if parameters is None:
        return None
    if parameters:
        section = _PARAMETER.sub(b"", section)
    if b"<attr" in section or b"/>" in section:
        return None
    lines: list[int] = []
    if b' line="' in section or b' mod="' in section:
        lines = [int(line) for line in _LINE.findall(section)]
        section = _PLACE.sub(b"", section)
    characters = np.frombuffer(section, np.uint8)
    tags = np.flatnonzero(characters == ord("<"))
    opens = characters[tags + 1] == ord("c")
    n = int(np.count_nonzero(opens))
    shape_is_known = (
        section.count(b'<cnode id="') == n
        and section.count(b'" calleeId="') == n
        and section.count(b"</cnode>") == n
        and len(tags) == 2 * n
    )
    if not shape_is_known:
        return None
    numbers = np.fromstring(section.translate(_ONLY_DIGITS), np.int64, sep=" ")
    depth = np.cumsum(np.where(opens, 1, -1))
    if len(numbers) != 2 * n or depth.min() < 0 or len(lines) not in {0, n}:
        return None
    parents = parents_from_depths(depth[opens] - 1)
    ids, regions = numbers[0::2].copy(), numbers[1::2].copy()
    return CallPaths(ids, regions, parents, parameters, call_lines(lines or np.full(n, -1)))


def _parameters(section: bytes) -> dict[int, tuple[tuple[str, str], ...]] | None:
    if b"<parameter" not in section:
        return {}
    opens = np.array([found.start() for found in re.finditer(rb"<cnode ", section)])
    collected: dict[int, list[tuple[str, str]]] = {}
    for found in _PARAMETER.finditer(section):
        if found[1] is None:
            return None
        # A parameter follows the start tag of its call path, before the callees.
        row = int(np.searchsorted(opens, found.start())) - 1
        collected.setdefault(row, []).append((_string(found[1]), _string(found[2])))
    return {row: tuple(pairs) for row, pairs in collected.items()}


def _locations(section: bytes) -> Locations | None:
    """Return the locations by the positions of their tags; there may be hundreds of thousands.

    Every group and location must have a start tag, a name, a rank and a type, in this order.
    """
    text = np.frombuffer(section + bytes(_LONGEST_TAG), np.uint8)
    tags = np.flatnonzero(text == ord("<"))
    openers = _starting(text, tags, b"<location")
    at = np.searchsorted(tags, openers)
    if not len(at) or at[-1] + 6 >= len(tags):
        return None
    in_order = all(
        len(_starting(text, tags[at + k], tag)) == len(at)
        for k, tag in ((1, b"<name>"), (3, b"<rank>"), (5, b"<type>"))
    )
    groups = _starting(text, openers, b'<locationgroup Id="')
    locations = _starting(text, openers, b'<location Id="')
    if not in_order or not len(groups) or len(groups) + len(locations) != len(openers):
        return None
    is_group = np.isin(openers, groups, assume_unique=True)
    if not is_group[0] or not len(locations):
        return None
    ids = _numbers_at(text, locations + len(b'<location Id="'))
    names, starts, ends = at[~is_group], tags[at + 5] + len("<type>"), tags[at + 6]
    if ids is None or np.any(text[starts] <= _SPACE) or np.any(text[ends - 1] <= _SPACE):
        return None
    creators = _creators(section, openers, is_group)
    if creators is None:
        return None
    name_starts, name_ends = tags[at + 1][is_group] + len("<name>"), tags[at + 2][is_group]
    pairs = zip(name_starts.tolist(), name_ends.tolist(), strict=True) if creators else ()
    is_gpu = [_equal_to(text, starts, ends, kind.encode()) for kind in GPU_TYPES]
    return Locations(
        ids,
        np.cumsum(is_group)[~is_group] - 1,
        _equal_to(text, starts, ends, b"thread")[~is_group],
        np.any(is_gpu, axis=0)[~is_group],
        frozenset(_distinct(text, tags[names + 1] + len("<name>"), tags[names + 2])),
        _equal_to(text, starts, ends, b"process")[is_group],
        _equal_to(text, starts, ends, b"accelerator")[is_group],
        tuple(_string(section[start:end]) for start, end in pairs),
        creators,
        *_places(section),
    )


def _creators(section: bytes, openers: IntArray, is_group: BoolArray) -> dict[int, str] | None:
    """Return the name of the creator of location groups by their number; None = another layout."""
    found: dict[int, str] = {}
    count = section.count(CREATOR.encode())
    if not count:
        return found
    numbers = np.cumsum(is_group) - 1
    for attribute in _CREATOR.finditer(section):
        # The attributes of a group follow its type, before its locations.
        place = int(np.searchsorted(openers, attribute.start())) - 1
        if place < 0 or not is_group[place]:
            return None
        found.setdefault(int(numbers[place]), _string(attribute[1]))
        count -= 1
    return None if count else found


def _places(section: bytes) -> tuple[int, frozenset[str]]:
    """Return the number of compute nodes and the names of the machines."""
    found, end = [], 0
    for kind in _CLASS.finditer(section):
        # Most names are of locations, so names are only sought before a class.
        start = section.rfind(b"<name>", end, kind.start())
        name = _NAME.fullmatch(section, start, kind.start()) if start >= 0 else None
        found.append((_string(name[1]) if name else "", _string(kind[1]).lower()))
        end = kind.end()
    named = {place_name(name, kind) for name, kind in found if name and kind in PLACES}
    return sum(kind == "node" for _, kind in found), frozenset(named)


def _starting(text: ByteArray, places: IntArray, pattern: bytes) -> IntArray:
    """Return the elements of `places` at which `pattern` starts."""
    for k, character in enumerate(pattern):
        places = places[text[places + k] == character]
    return places


def _numbers_at(text: ByteArray, places: IntArray) -> Int64Array | None:
    """Return the numbers that end with a quote; None if one of them does not."""
    numbers = np.zeros(len(places), np.int64)
    going = np.ones(len(places), np.bool_)
    for k in range(_LONGEST_NUMBER + 1):
        digit = text[places + k].astype(np.int64) - ord("0")
        is_digit = (digit >= 0) & (digit <= 9)
        stopping = places[going & ~is_digit]
        if len(stopping) and (k == 0 or np.any(text[stopping + k] != ord('"'))):
            return None
        going &= is_digit
        if not going.any():
            return numbers
        numbers[going] = numbers[going] * 10 + digit[going]
    return None


def _equal_to(text: ByteArray, starts: IntArray, ends: IntArray, word: bytes) -> BoolArray:
    """Return whether each text from start to end is `word`."""
    begins_so = np.isin(starts, _starting(text, starts, word), assume_unique=True)
    equal: BoolArray = begins_so & (ends - starts == len(word))
    return equal


def _distinct(text: ByteArray, starts: IntArray, ends: IntArray) -> set[str]:
    """Return the distinct texts from start to end, grouped by length for speed."""
    found: set[str] = set()
    lengths = ends - starts
    for length in np.unique(lengths).tolist():
        windows = text[starts[lengths == length, np.newaxis] + np.arange(length)]
        raw = windows.tobytes()
        found.update(
            _string(piece)
            for piece in {raw[k : k + length] for k in range(0, len(raw), max(1, length))}
        )
    return found or {""}
