"""Fuzzing of costs: `make fuzz-cost`, or `python -m fuzz.cost --help` in tests.

The fitness of an input is its processor time and its memory, each as a share of its bound. Inputs
with the largest shares are kept and changed again by `fuzz.growth`. Each input is read in a process
of its own with limits of the system, so no input harms the machine.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import json
import os
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fuzz import judge
from fuzz.growth import grown
from fuzz.targets import TARGETS, Target

LARGEST = 192 << 10
"""Maximum bytes of an input; quadratic costs show between 100 and 200 KiB."""
_KEPT = 24
"""Number of inputs with the largest costs that are changed again, for time and for memory."""
_STOPPED = 3 << 30
"""Bytes of memory at which the process of an input is stopped."""
_WRONG = 70


@dataclass(frozen=True)
class Cost:
    """Cost of an input.

    Attributes
    ----------
    size : bytes of the input
    seconds : processor time
    memory : peak memory of the process, in bytes
    status : status of the process: 0 = read or refused, 70 = another exception, else stopped
    """

    size: int
    seconds: float
    memory: int
    status: int

    @property
    def blocks(self) -> float:
        """Size in KiB, at least 100."""
        return max(100.0, self.size / 1024)

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of the bounds of time and memory."""
        return 10 * self.seconds / self.blocks * 5, self.memory / judge.MEMORY

    @property
    def is_within(self) -> bool:
        """Whether the input was read or refused within its bounds."""
        return self.status == 0 and max(self.shares) <= 1


def measure(target: Target, content: bytes, scratch: Path) -> Cost:
    """Read an input in a child of this process, and return its cost."""
    allowed = judge.SECONDS_PER_100_KIB * max(1.0, len(content) / 102400)
    child = os.fork()
    if not child:
        _read(target, content, scratch, 4 * allowed)
    _, status, used = os.wait4(child, 0)
    unit = 1 if sys.platform == "darwin" else 1024
    seconds = used.ru_utime + used.ru_stime
    return Cost(len(content), seconds, used.ru_maxrss * unit, os.waitstatus_to_exitcode(status))


def _read(target: Target, content: bytes, scratch: Path, seconds: float) -> None:
    """Read an input with limits of the system, and end this process."""
    status = _WRONG
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + _STOPPED, used + _STOPPED))
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            judge.attempt(target, content, scratch, seconds)
        status = 0
    finally:
        os._exit(status)


class _Search:
    """The inputs of one target with the largest costs."""

    def __init__(self, target: Target, home: Path, seed: int) -> None:
        self.target, self.home, self.rng = target, home, random.Random(seed)
        self.runs, self.number = 0, 0
        self.seeds = target.seeds()
        self.kept: list[list[tuple[float, int, bytes]]] = [[], []]
        self.worst: list[tuple[Cost, str]] = []
        home.mkdir(parents=True, exist_ok=True)
        for path in home.glob("worst-*"):
            self.seeds.append(path.read_bytes())

    def run(self, scratch: Path, seconds: float) -> float:
        """Search for some seconds of processor time, and return those that were used."""
        start = _processor_time()
        for content in self.seeds:
            self._take(content, scratch)
        while _processor_time() - start < seconds:
            self._take(self._next(), scratch)
        for kind, name in enumerate(("time", "memory")):
            if self.kept[kind]:
                (self.home / f"worst-{name}").write_bytes(max(self.kept[kind])[2])
        return _processor_time() - start

    def _next(self) -> bytes:
        kept = self.kept[self.rng.randrange(2)]
        if not kept or self.rng.random() < 0.2:
            content = self.rng.choice(self.seeds)
        else:
            content = self.rng.choice(kept)[2]
        return grown(self.target.form, content, self.rng, LARGEST)

    def _take(self, content: bytes, scratch: Path) -> None:
        cost = measure(self.target, content, scratch)
        self.runs += 1
        self.number += 1
        for kind, share in enumerate(cost.shares):
            heap, entry = self.kept[kind], (share, self.number, content)
            if all(content != each[2] for each in heap):
                (heapq.heappush if len(heap) < _KEPT else heapq.heappushpop)(heap, entry)
        if not cost.is_within:
            name = f"excess-{self.number}"
            if len(self.worst) < 20:
                (self.home / name).write_bytes(content)
            self.worst.append((cost, name))
        self.most = self._most(cost)

    most: tuple[Cost, Cost] | None = None

    def _most(self, cost: Cost) -> tuple[Cost, Cost]:
        before = self.most or (cost, cost)
        slowest = max(before[0], cost, key=lambda each: each.shares[0])
        return slowest, max(before[1], cost, key=lambda each: each.shares[1])


def _processor_time() -> float:
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def _searched(name: str, home: Path, seconds: float, seed: int) -> int:
    """Search in this process; write the results next to the inputs, and return their number."""
    target = TARGETS[name]
    shared = Path("/dev/shm")  # noqa: S108 - a folder of our own in it
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as scratch:
        for content in target.seeds():
            # Libraries are imported once, before processes are forked.
            judge.attempt(target, content, Path(scratch))
        # A collection in a child would copy all pages of this process.
        gc.freeze()
        search = _Search(target, home, seed)
        used = search.run(Path(scratch), seconds)
    slowest, largest = search.most or (None, None)
    found = {
        "runs": search.runs, "seconds": used, "excess": len(search.worst),
        "slowest": asdict(slowest) if slowest else {},
        "largest": asdict(largest) if largest else {},
        "inputs": [{"name": each, **asdict(cost)} for cost, each in search.worst[:20]],
    }  # fmt: skip
    (home / "cost.json").write_text(json.dumps(found, indent=1) + "\n")
    return len(search.worst)


def _print_costs(pairs: Sequence[str]) -> int:
    """Print the cost of each TARGET=FILE as a line of JSON."""
    for pair in pairs:
        name, _, file = pair.partition("=")
        with tempfile.TemporaryDirectory() as scratch:
            judge.attempt(TARGETS[name], TARGETS[name].seeds()[0], Path(scratch))
            cost = measure(TARGETS[name], Path(file).read_bytes(), Path(scratch))
        sys.stdout.write(json.dumps(asdict(cost)) + "\n")
    return 0


def _table(corpus: Path) -> str:
    """Return the results of all targets as a Markdown table."""
    lines = ["| target | seconds | inputs | ms per KiB | peak MB | beyond the bounds |",
             "|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    for path in sorted(corpus.glob("*/cost.json")):
        found = json.loads(path.read_text())
        slow, large = Cost(**found["slowest"]), Cost(**found["largest"])
        lines.append(
            f"| {path.parent.name} | {found['seconds']:.0f} | {found['runs']:,} "
            f"| {1000 * slow.seconds / slow.blocks:.1f} | {large.memory / 1e6:.0f} "
            f"| {found['excess']} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Search each target for costly inputs, one after another."""
    parser = argparse.ArgumentParser(prog="fuzz.cost", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--time", type=float, default=180, help="seconds of processor time of each")
    parser.add_argument("--seed", type=int, default=1, help="seed of the changes")
    parser.add_argument(
        "--corpus", type=Path, default=Path(".fuzz-cost"), help="folder of the costliest inputs"
    )
    parser.add_argument("--measure", action="store_true", help="print costs of TARGET=FILE ...")
    given = parser.parse_args(arguments)
    if given.measure:
        return _print_costs(given.targets)
    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]}; there are {', '.join(TARGETS)}")
    wrong = 0
    for name in given.targets or TARGETS:
        child = os.fork()
        if not child:
            try:
                _searched(name, given.corpus / name, given.time, given.seed)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - the process ends here, in whichever way
                traceback.print_exc()
            finally:
                os._exit(_WRONG)
        _, status = os.waitpid(child, 0)
        wrong += bool(status)
        kept = given.corpus / name / "cost.json"
        excess = json.loads(kept.read_text())["excess"] if kept.is_file() else 0
        wrong += excess
        sys.stderr.write(f"fuzz: {name}: {excess} inputs beyond the bounds\n")
    sys.stdout.write(_table(given.corpus))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
