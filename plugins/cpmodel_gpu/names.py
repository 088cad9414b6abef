"""Readable names of kernels, copies and calls, as regions with their classes."""

from __future__ import annotations

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
    short = without_arguments(name)
    return Region(short, mangled=name if name != short else "", paradigm=paradigm, role="kernel")


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
