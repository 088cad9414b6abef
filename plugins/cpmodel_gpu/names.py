"""Readable names of kernels, copies and calls, as regions with their classes."""

from __future__ import annotations

import re

from callpath_modeler.profile.schema import Region
from cpmodel_gpu.activities import Copy

COPY_NAMES = {
    Copy.TO_DEVICE: "copy host to device",
    Copy.TO_HOST: "copy device to host",
    Copy.WITHIN: "copy within device",
    Copy.PEER: "copy peer to peer",
    Copy.OTHER: "other copy",
    Copy.SET: "memory set",
}
_ANONYMOUS = "(anonymous namespace)"
_LONGEST = 2_000
_MANGLED = re.compile(r"_Z(N?)(?=[1-9])")
_LENGTH = re.compile(r"[1-9][0-9]{0,3}")


def copy_region(kind: Copy, paradigm: str = "cuda") -> Region:
    """Return the region of a copy or memory set on a GPU."""
    return Region(COPY_NAMES[kind], paradigm=paradigm, role="gpu copy")


def kernel_region(name: str, paradigm: str = "cuda") -> Region:
    """Return the region of a kernel; its full name is kept as the linker's name.

    Parameters
    ----------
    name : demangled name with the types of results and arguments
    paradigm : ``"cuda"``, ``"hip"`` or another accelerator
    """
    short = without_arguments(_plain(name))
    return Region(short, mangled=name if name != short else "", paradigm=paradigm, role="kernel")


def _plain(name: str) -> str:
    """Return the name in a linker's name of a function without templates; else the name.

    >>> _plain("_Z4testPdmm"), _plain("_ZN3sim4stepEPd"), _plain("_ZSt4sort")
    ('test', 'sim::step', '_ZSt4sort')
    """
    found = _MANGLED.match(name)
    if found is None:
        return name
    parts, place = [], found.end()
    while (number := _LENGTH.match(name, place)) is not None:
        end = number.end() + int(number[0])
        parts.append(name[number.end() : end])
        place = end
        if not found[1]:
            break
    is_whole = place <= len(name) and parts and (not found[1] or name[place : place + 1] == "E")
    return "::".join(parts) if is_whole else name


def without_arguments(name: str) -> str:
    """Return the name of a function without its arguments and its type.

    >>> without_arguments("void add<4, void (*)(int)>(int, std::vector<int>)")
    'add<4, void (*)(int)>'
    >>> without_arguments("(anonymous namespace)::f(int)"), without_arguments("operator()(int)")
    ('(anonymous namespace)::f', 'operator()')
    """
    name = name[:_LONGEST]
    depth, end = 0, len(name)
    place = 0
    while place < len(name):
        each = name[place]
        if each == "<":
            depth += 1
        elif each == ">" and name[place - 1 : place] != "-":
            depth -= 1
        elif each == "(" and depth == 0:
            if name.startswith(_ANONYMOUS, place):
                place += len(_ANONYMOUS)
                continue
            if not name[:place].endswith("operator"):
                end = place
                break
            place += 1
        place += 1
    short = name[:end].strip().removeprefix("void ").strip()
    return short or name or "(unnamed)"
