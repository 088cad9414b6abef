"""Definitions by pattern and array: the layout current writers produce, ten times faster.

Everything here gives up (returns None) as soon as the text is not laid out as expected; the
full parser then has the word.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from xml.sax.saxutils import unescape

import numpy as np

from callpath_modeler.profile.schema import Region
from cpmodel_scorep import anchor_expat
from cpmodel_scorep.definitions import (
    CallPaths,
    Definitions,
    Locations,
    parents_from_depths,
)

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
_PLACE = re.compile(rb' (?:line|mod)="[^"]*"')
_GROUP = re.compile(
    rb'<locationgroup Id="\d+">\s*<name>[^<]*</name>\s*<rank>[^<]*</rank>\s*<type>([^<]*)</type>'
)
_LOCATION = re.compile(
    rb'<location Id="(\d{1,18})">\s*<name>([^<]*)</name>\s*'
    rb"<rank>[^<]*</rank>\s*<type>([^<]*)</type>"
)
_NODE = re.compile(rb"<class>\s*node\s*</class>", re.IGNORECASE)
_QUOTES = {"&quot;": '"', "&apos;": "'"}
_ONLY_DIGITS = bytes(c if c in b"0123456789" else 32 for c in range(256))


@dataclass(frozen=True, slots=True)
class _Sections:
    """The text cut into what is read by pattern, and the rest, which is still XML."""

    regions: bytes
    cnodes: bytes
    system: bytes
    rest: bytes


def parse(text: bytes) -> Definitions | None:
    """Return the definitions, or None if the text is laid out in another way.

    Raises
    ------
    MalformedError
        If what is left beside regions, call paths and locations is not well-formed.
    """
    sections = _cut(text)
    if sections is None:
        return None
    regions = _regions(sections.regions)
    call_paths = _call_paths(sections.cnodes)
    locations = _locations(sections.system)
    if regions is None or call_paths is None or locations is None:
        return None
    builder = anchor_expat.run(sections.rest)
    metrics = anchor_expat.metrics(builder.records)
    return Definitions(builder.attributes, metrics, regions, call_paths, locations)


def _cut(text: bytes) -> _Sections | None:
    program, end = text.find(b"<program>"), text.find(b"</program>")
    system, last = text.find(b"<system>"), text.find(b"</system>")
    cnode = text.find(b"<cnode ", program)
    if not 0 <= program < cnode < end < system < last:
        return None
    if text.count(b"<system>") + text.count(b"<program>") != 2 or text.find(b"<!", program) >= 0:
        return None
    topologies = text.find(b"<topologies>", system, last)
    return _Sections(
        text[program:cnode],
        text[cnode:end],
        text[system : topologies if topologies >= 0 else last],
        text[:program] + text[last + len(b"</system>") :],
    )


def _string(raw: bytes) -> str:
    text = raw.decode().strip()
    if "&" not in text:
        return text
    return html.unescape(text) if "&#" in text else unescape(text, _QUOTES)


def _regions(section: bytes) -> dict[int, Region] | None:
    found = _REGION.findall(section)
    if len(found) != section.count(b"<region "):
        return None
    # Modules, paradigms and roles are few: each is decoded once.
    known: dict[bytes, str] = {}

    def once(raw: bytes) -> str:
        if raw not in known:
            known[raw] = _string(raw)
        return known[raw]

    return {
        int(number): Region(
            _string(name), _string(mangled), once(mod), int(begin), once(paradigm), once(role)
        )
        for number, mod, begin, name, mangled, paradigm, role in found
    }


def _call_paths(section: bytes) -> CallPaths | None:
    parameters = _parameters(section)
    if parameters is None:
        return None
    if parameters:
        section = _PARAMETER.sub(b"", section)
    if b"<attr" in section or b"/>" in section:
        return None
    if b' line="' in section or b' mod="' in section:
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
    if len(numbers) != 2 * n or depth.min() < 0:
        return None
    parents = parents_from_depths(depth[opens] - 1)
    return CallPaths(numbers[0::2].copy(), numbers[1::2].copy(), parents, parameters)


def _parameters(section: bytes) -> dict[int, tuple[tuple[str, str], ...]] | None:
    if b"<parameter" not in section:
        return {}
    opens = np.array([found.start() for found in re.finditer(rb"<cnode ", section)])
    collected: dict[int, list[tuple[str, str]]] = {}
    for found in _PARAMETER.finditer(section):
        if found[1] is None:
            return None
        # A parameter stands before the callees of its call path, right after the opening tag.
        row = int(np.searchsorted(opens, found.start())) - 1
        collected.setdefault(row, []).append((_string(found[1]), _string(found[2])))
    return {row: tuple(pairs) for row, pairs in collected.items()}


def _locations(section: bytes) -> Locations | None:
    groups = _GROUP.findall(section)
    found = _LOCATION.findall(section)
    pieces = section.split(b"<locationgroup ")[1:]
    if not found or len(groups) != len(pieces) or len(found) != section.count(b"<location "):
        return None
    sizes = [piece.count(b"<location ") for piece in pieces]
    if sum(sizes) != len(found):
        return None
    numbers, names, kinds = zip(*found, strict=True)
    return Locations(
        np.fromiter(map(int, numbers), np.int64, len(numbers)),
        np.repeat(np.arange(len(groups)), sizes),
        np.array([kind == b"thread" for kind in kinds]),
        frozenset(_string(name) for name in set(names)),
        np.array([kind == b"process" for kind in groups]),
        len(_NODE.findall(section)),
    )
