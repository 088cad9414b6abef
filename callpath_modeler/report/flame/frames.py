"""Layout of a flame graph: which call paths have frames of their own, and where these are."""

from __future__ import annotations

from dataclasses import dataclass

from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.calltree import CallTree

DEEPEST = 1200
"""Levels that have frames; what is deeper shares one."""
OTHER = -1
"""Stands for the call path of a frame that several share."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A box.

    Attributes
    ----------
    row : its call path, or `OTHER`
    depth : callers above it
    left, width : fractions of the whole
    callpaths : how many it stands for, but for those in frames below it
    """

    row: int
    depth: int
    left: float
    width: float
    callpaths: int = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """The frames of a flame graph.

    Attributes
    ----------
    frames : callers before callees
    least : width from which on a call path has a frame of its own
    without_cost : call paths that cost nothing, with all that they call, and have no frame
    """

    frames: tuple[Frame, ...]
    least: float
    without_cost: int

    @property
    def levels(self) -> int:
        """Number of levels."""
        return 1 + max((frame.depth for frame in self.frames), default=0)

    @property
    def others(self) -> list[Frame]:
        """The frames that several call paths share."""
        return [frame for frame in self.frames if frame.row == OTHER]


def layout(tree: CallTree, inclusive: FloatArray, least: float) -> Layout:
    """Return the frames of a flame graph.

    Parameters
    ----------
    inclusive : [call paths] costs with callees, none below zero
    least : siblings narrower than this fraction of the whole share a frame
    """
    whole = float(inclusive[tree.roots].sum())
    parts, ends = (inclusive / whole).tolist(), tree.end.tolist()
    frames, without = list[Frame](), 0
    todo = [(0, len(tree), 0, 0.0)]
    while todo:
        row, end, depth, left = todo.pop()
        merged, width = 0, 0.0
        while row < end:
            after, part = ends[row], parts[row]
            if part >= least and part > 0 and depth < DEEPEST:
                frames.append(Frame(row, depth, left, part))
                if after > row + 1:
                    todo.append((row + 1, after, depth + 1, left))
                left += part
            elif part > 0:
                merged, width = merged + after - row, width + part
            else:
                without += after - row
            row = after
        if merged:
            frames.append(Frame(OTHER, depth, left, width, merged))
    return Layout(tuple(frames), least, without)
