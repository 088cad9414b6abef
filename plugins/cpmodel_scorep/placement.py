"""Ranks, compute nodes and Cartesian topologies in the definitions of a profile."""

from __future__ import annotations

import re
from math import prod
from xml.parsers import expat

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.profile.schema import Placement, Topology
from cpmodel_scorep.anchor_expat import GROUPS, LOCATIONS, NODES
from cpmodel_scorep.definitions import Locations

_SYSTEM = re.compile(rb"<system[\s>]")
_END = b"</system>"
_MOST_TOPOLOGIES = 4
"""Largest number of topologies that are returned."""
_LARGEST = 1 << 31
"""Ranks and sizes of dimensions are smaller."""

_Cart = tuple[str, list[int], dict[int, str]]
"""Name, sizes of the dimensions, and coordinates by location id."""


def placement_of(text: bytes, locations: Locations) -> Placement:
    """Return the placement of the processes of a profile.

    Parameters
    ----------
    text : definitions as well-formed XML in UTF-8
    locations : the locations in these definitions

    Returns
    -------
    Placement
        Processes in the order of `columns_of`. What the definitions do not state is not known.
    """
    group_of = locations.process_of_threads
    used = np.unique(group_of[group_of >= 0])
    unknown = Placement.unknown(len(used))
    begin, end = _SYSTEM.search(text), text.rfind(_END)
    if begin is None or end < begin.start():
        return unknown
    found = _System()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = found.start
    parser.EndElementHandler = found.end
    parser.CharacterDataHandler = found.characters
    try:
        parser.Parse(text[begin.start() : end + len(_END)], True)
    except expat.ExpatError:
        return unknown
    if len(found.ranks) != len(locations.is_process):
        return unknown
    ranks = np.array([found.ranks[group] for group in used.tolist()], np.intp)
    nodes = tuple(found.nodes[group] for group in used.tolist())
    process = np.searchsorted(used, group_of)
    of_location = {
        number: place
        for number, place, group in zip(
            locations.ids.tolist(), process.tolist(), group_of.tolist(), strict=True
        )
        if group >= 0
    }
    topologies = (_topology(cart, of_location, len(used)) for cart in found.carts)
    whole = [each for each in topologies if each is not None]
    return Placement.stated(ranks, nodes, tuple(whole[:_MOST_TOPOLOGIES]))


class _System:
    """The handlers of the parser, and what they found.

    Attributes
    ----------
    ranks, nodes : of each location group in document order; -1 and "" = not stated
    carts : Cartesian topologies of two or more dimensions
    """

    def __init__(self) -> None:
        self.ranks: list[int] = []
        self.nodes: list[str] = []
        self.carts: list[_Cart] = []
        self._owners: list[str] = []
        self._places: list[list[str]] = []
        self._cart: _Cart | None = None
        self._text: list[str] | None = None
        self._location = -1

    def start(self, element: str, attributes: dict[str, str]) -> None:
        self._text = None
        if element in NODES:
            self._places.append(["", element])
            self._owners.append(element)
        elif element in GROUPS:
            self.ranks.append(-1)
            self.nodes.append(self._node)
            self._owners.append(element)
        elif element in LOCATIONS:
            self._owners.append(element)
        elif element in {"name", "class", "rank"}:
            self._text = []
        elif element == "cart":
            is_large = _number(attributes.get("ndims", "")) > 1
            self._cart = (attributes.get("name", ""), [], {}) if is_large else None
        elif element == "dim" and self._cart is not None:
            self._cart[1].append(_number(attributes.get("size", "")))
        elif element == "coord" and self._cart is not None:
            self._location = _number(attributes.get("locId") or attributes.get("thrdId") or "")
            self._text = []

    @property
    def _node(self) -> str:
        """Name of the innermost compute node around a process."""
        named = (name for name, kind in reversed(self._places) if kind.lower() == "node")
        return next(named, "").removeprefix("node ")

    def characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def end(self, element: str) -> None:
        text = "".join(self._text or ()).strip()
        self._text = None
        owner = self._owners[-1] if self._owners else ""
        if element in NODES:
            self._places.pop()
            self._owners.pop()
        elif element in GROUPS or element in LOCATIONS:
            self._owners.pop()
        elif element in {"name", "class"} and owner in NODES:
            self._places[-1][element == "class"] = text
        elif element == "rank" and owner in GROUPS:
            self.ranks[-1] = _number(text)
        elif element == "coord" and self._cart is not None:
            self._cart[2][self._location] = text
        elif element == "cart" and self._cart is not None:
            self.carts.append(self._cart)
            self._cart = None


def _number(text: str) -> int:
    """Return a number that is not negative; -1 = there is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def _topology(cart: _Cart, of_location: dict[int, int], processes: int) -> Topology | None:
    """Return a topology in which every process has its own coordinates, or None."""
    name, sizes, stated = cart
    if sum(size > 1 for size in sizes) < 2 or min(sizes) < 1 or prod(sizes) >= _LARGEST:
        return None
    coordinates = np.full((processes, len(sizes)), -1, np.intp)
    for location, text in stated.items():
        numbers = [_number(word) for word in text.split()]
        process = of_location.get(location)
        if process is None or len(numbers) != len(sizes) or coordinates[process, 0] >= 0:
            return None
        coordinates[process] = numbers
    is_valid = (coordinates >= 0).all() and (coordinates < np.array(sizes)).all()
    if not is_valid or len(_cells(coordinates, sizes)) < processes:
        return None
    return Topology(name, tuple(sizes), coordinates)


def _cells(coordinates: IntArray, sizes: list[int]) -> IntArray:
    """Return the distinct cells of coordinates, as numbers."""
    found: IntArray = np.unique(np.ravel_multi_index(tuple(coordinates.T), tuple(sizes)))
    return found
