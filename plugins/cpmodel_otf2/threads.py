"""Position of threads in the call tree: below the call path that started them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_otf2.events import Switch
from cpmodel_otf2.paths import OUTSIDE, PathTable

_Switches = Sequence[tuple[int, int, int, int]]


class Forks:
    """Call paths that started threads, of all locations read until now.

    Attributes
    ----------
    teams : by reference of a team: call path at the beginning of each of its episodes
    created : by reference of the contingent and number of the thread: call path
    """

    def __init__(self) -> None:
        self.teams: dict[int, list[int]] = defaultdict(list)
        self.created: dict[tuple[int, int], int] = {}


class Context:
    """Callers of the outermost calls of one location, from event to event."""

    def __init__(self, paths: PathTable, forks: Forks) -> None:
        self._paths, self._forks = paths, forks
        self._episodes: dict[int, int] = defaultdict(int)
        self._above = OUTSIDE
        self._is_first = False

    def start_below(self, path: int) -> None:
        """Set the caller of the next outermost calls."""
        self._above = path

    def state(self) -> tuple[dict[int, int], int, bool]:
        """Return the state for `reset`."""
        return dict(self._episodes), self._above, self._is_first

    def reset(self, state: tuple[dict[int, int], int, bool]) -> None:
        """Restore an earlier state."""
        episodes, self._above, self._is_first = state
        self._episodes = defaultdict(int, episodes)

    def of_calls(
        self, switches: _Switches, region: Int64Array, depth: Int64Array
    ) -> tuple[Int64Array, list[tuple[int, int, int, int]]]:
        """Return the call path that is the caller of each outermost call of a batch.

        Parameters
        ----------
        switches : events of threads, see `Batch`
        region : [n], region of each call
        depth : [n + 1], number of open regions of this location before each call, and after the
            last one

        Returns
        -------
        above : [n], ids of call paths
        starts : switches at which this location started threads
        """
        above = np.empty(len(region), np.int64)
        starts, done = [], 0
        for switch in switches:
            kind, at, _, _ = switch
            if depth[at] > 0 or kind == Switch.CREATE:
                starts.append(switch)
                continue
            self._fill(above, region, done, at)
            done = at
            self._change(switch)
        self._fill(above, region, done, len(region))
        return above, starts

    def note(self, starts: _Switches, path_before: Int64Array) -> None:
        """Record where this location started threads; `path_before` is [n + 1] as `depth`."""
        for kind, at, team, thread in starts:
            path = int(path_before[at])
            if kind == Switch.TEAM_BEGIN:
                self._episodes[team] += 1
                self._forks.teams[team].append(path)
            elif kind == Switch.CREATE:
                self._forks.created[team, thread] = path

    def _change(self, switch: tuple[int, int, int, int]) -> None:
        kind, _, team, thread = switch
        if kind == Switch.TEAM_BEGIN:
            episode = self._episodes[team]
            self._episodes[team] += 1
            known = self._forks.teams[team]
            self._above = known[episode] if episode < len(known) else OUTSIDE
        elif kind == Switch.BEGIN:
            self._above = self._forks.created.get((team, thread), OUTSIDE)
        else:
            self._above = OUTSIDE
        self._is_first = True

    def _fill(self, above: Int64Array, region: Int64Array, first: int, stop: int) -> None:
        if stop == first:
            return
        # Threads of a team enter the region of their master again. It is the same region.
        if self._is_first and self._paths.region[self._above] == region[first]:
            self._above = int(self._paths.parent[self._above])
        self._is_first = False
        above[first:stop] = self._above
