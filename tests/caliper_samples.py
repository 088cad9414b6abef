"""Caliper files of samples, with lines of calls and of samples."""

from __future__ import annotations

import caliper_writer as cw

FUNCTION, FRAME = "source.function#callpath.address", "sourceloc#callpath.address"
SAMPLE, MODULE = "sourceloc#cali.sampler.pc", "module#callpath.address"
# Samples per process of `main`, and of its three calls of `exchange`, by number of processes.
COSTS = {4: (20, 4, 7, 10), 64: (20, 60, 10, 10)}
SITES = (31, 57, 80)
MAIN, EXCHANGE = "/src/main.c", "/src/exchange.c"


class Samples(cw.Writer):
    """Records of samples below frames of the call stack."""

    def __init__(self, *, places=True, modules=True):
        super().__init__()
        self._has = places, modules
        self._stack = {(): -1}
        self._samples = {}

    def stack(self, frames):
        """Write functions with the line of their address, outermost first; return the node."""
        frames = tuple(frames)
        if frames not in self._stack:
            above = self.stack(frames[:-1])
            name, place = frames[-1]
            places, modules = self._has
            # Caliper writes the module, then the function, then its line.
            if modules:
                above = self.node(self.attribute(MODULE, cw.STRING, 20), "app", above)
            above = self.node(self.attribute(FUNCTION, cw.STRING, 20), name, above)
            if places and place:
                above = self.node(self.attribute(FRAME, cw.STRING, 20), place, above)
            self._stack[frames] = above
        return self._stack[frames]

    def sample(self, frames, count, *, rank=0, place=None):
        refs = [self.stack(frames)]
        if place is not None:
            if place not in self._samples:
                attribute = self.attribute(SAMPLE, cw.STRING, 20)
                self._samples[place] = self.node(attribute, place)
            refs.append(self._samples[place])
        ref = "=".join(map(str, refs))
        numbers = (self.attribute("mpi.rank", cw.INT, 65), self.attribute("count", cw.UINT, 85))
        attributes = "=".join(map(str, numbers))
        self.lines.append(f"__rec=ctx,ref={ref},attr={attributes},data={rank}={count}")


def run_of(processes, **options):
    writer = Samples(**options)
    own, *calls = COSTS[processes]
    for rank in range(processes):
        writer.sample([("main", f"{MAIN}:14")], own, rank=rank)
        for site, count in zip(SITES, calls, strict=True):
            frames = [("main", f"{MAIN}:{site}"), ("exchange", f"{EXCHANGE}:5")]
            writer.sample(frames, count, rank=rank)
    writer.globals({"mpi.world.size": processes})
    return writer.text()
