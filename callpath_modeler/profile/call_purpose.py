"""Purposes of call paths: kernels, the program's own frame, start-up with input and output."""

from __future__ import annotations

import re
from enum import IntEnum
from itertools import pairwise

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import PROGRAM, Region


class Purpose(IntEnum):
    """Purpose of the exclusive time of a call path.

    Attributes
    ----------
    OTHER : communication, waiting, and other time that is no computation
    ASIDE : start-up, input, output, and all below them
    FRAME : the program itself: its main function, and roots that call others
    KERNEL : other computation
    """

    OTHER = 0
    ASIDE = 1
    FRAME = 2
    KERNEL = 3


GROUP = "group"
"""Role of the regions of groups of processes."""
_ASIDE = re.compile(
    r"(re)?(init\w*|set ?up|start ?up|finali[sz]e\w*|tear ?down|clean ?up|parse\w*|config\w*"
    r"|read\w*|load|write\w*|input|output|io|dump\w*|print\w*|save|checkpoint\w*|restart)"
)
"""Words of start-up, input and output."""
_MAIN = re.compile(r"(?:int |void |program )?(?:main|MAIN__|_start|__libc_start_main\w*)(?:\(.*)?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_LETTERS = re.compile(r"[^A-Za-z]+")


def purposes(tree: CallTree) -> IntArray:
    """Return the purpose of every call path, [n]."""
    of_region = np.array([_purpose(region) for region in tree.regions], np.int8)
    found = of_region[tree.region]
    is_root = tree.parent == ROOT
    is_group = np.array([region.role == GROUP for region in tree.regions], np.bool_)[tree.region]
    callers = np.where(is_root, 0, tree.parent)
    is_root |= is_group[callers] & ~is_root
    calls = tree.end > np.arange(len(tree)) + 1
    found[is_root & calls & (found == Purpose.KERNEL)] = Purpose.FRAME
    found[is_group] = Purpose.OTHER
    for level in tree.levels()[1:]:
        below = (found[tree.parent[level]] == Purpose.ASIDE) & (found[level] != Purpose.OTHER)
        found[level[below]] = Purpose.ASIDE
    return found.astype(np.intp)


def _purpose(region: Region) -> Purpose:
    if not region.call_class.computes:
        return Purpose.OTHER
    name = region.common_name
    if name == PROGRAM or _MAIN.fullmatch(name):
        return Purpose.FRAME
    plain = name.partition("(")[0].rpartition("::")[2]
    words = _NO_LETTERS.sub(" ", _CAMEL.sub(" ", plain)).lower().split()
    pairs = [f"{one} {other}" for one, other in pairwise(words)]
    is_aside = any(_ASIDE.fullmatch(word) for word in (*words, *pairs))
    return Purpose.ASIDE if is_aside else Purpose.KERNEL
