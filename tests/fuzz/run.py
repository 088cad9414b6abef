"""Fuzz one target: ``python tests/fuzz/run.py TARGET --seconds N`` or ``--runs N --seed S``.

The corpus is kept in a directory outside of the repository, and a later run resumes from it.
A finding does not end a run: it is written down once per place in the code, with its input.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]

CPU_PER_INPUT = 2.0
"""Seconds per 100 KiB of input, or a part of that."""
MEMORY = 512
"""MiB that an input may add to the largest resident set."""
_SLOWED = 4.0
"""Times that code takes longer where its branches are counted; the plain code is timed again."""
_PER_PIECE = 100 << 10


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=0, help="wall-clock; 0 for no limit")
    parser.add_argument("--runs", type=int, default=-1, help="executions; -1 for no limit")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations; 0 draws one")
    parser.add_argument(
        "--corpus", type=Path, default=Path.home() / ".cache" / "cpmodel-fuzz", help="kept there"
    )
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    return parser.parse_args()


class Recorder:
    """Runs a target, counts outcomes, and writes down findings."""

    def __init__(self, run, folder: Path) -> None:
        self._run, self._folder = run, folder
        self.counts = {"executions": 0, "read": 0, "refused": 0, "findings": 0}
        self.slowest = 0.0
        self._places: set[str] = set()
        self._peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def __call__(self, data: bytes) -> None:
        self.counts["executions"] += 1
        begun = time.process_time()
        try:
            outcome = "read" if self._run(data) else "refused"
        except Exception as error:
            self._found(data, error)
        else:
            self.counts[outcome] += 1
        spent = time.process_time() - begun
        allowed = _SLOWED * CPU_PER_INPUT * (1 + len(data) // _PER_PIECE)
        if spent > allowed:
            self._note(data, f"slow-{spent:.0f}s", f"{spent:.1f} s of CPU for {len(data)} bytes")
        self.slowest = max(self.slowest, spent)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if peak - self._peak > MEMORY << 10:
            self._note(data, "memory", f"{(peak - self._peak) >> 10} MiB for {len(data)} bytes")
        self._peak = max(self._peak, peak)
        if self.counts["executions"] % 100 == 0:
            self.save()

    def _found(self, data: bytes, error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "cpmodel_" in f.filename or "callpath_modeler" in f.filename]
        last = (ours or frames)[-1]
        place = f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"
        self._note(data, place, "".join(traceback.format_exception(error)))

    def _note(self, data: bytes, place: str, what: str) -> None:
        self.counts["findings"] += 1
        if place in self._places:
            return
        self._places.add(place)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{place}.bin").write_bytes(data)
        (self._folder / f"{place}.txt").write_text(what, "utf-8", "backslashreplace")

    def save(self) -> None:
        """Write down the figures so far."""
        figures = {**self.counts, "places": sorted(self._places), "slowest": round(self.slowest, 3)}
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        (self._folder.parent / "figures.json").write_text(json.dumps(figures))


def _mutator(atheris, framed):
    """Return a mutation of one part of an input, which leaves the other parts whole."""
    from targets import framed as joined
    from targets import parts_of

    def mutate(data: bytes, largest: int, seed: int) -> bytes:
        rng = random.Random(seed)
        parts = parts_of(data)
        if not parts or rng.random() < 0.02:
            return atheris.Mutate(data, largest)
        at = min(2 * rng.randrange((len(parts) + 1) // 2) + (rng.random() < 0.97), len(parts) - 1)
        room = max(1, min(largest - len(data) + len(parts[at]), largest))
        parts[at] = (
            bytes(atheris.Mutate(parts[at], room))
            if rng.random() < 0.8
            else _patched(parts[at], rng)
        )
        return joined(parts)[:largest]

    return mutate if framed else None


def _patched(part: bytes, rng: random.Random) -> bytes:
    """Overwrite a number within a part by an interesting one."""
    if len(part) < 8:
        return part
    size = rng.choice((1, 2, 4, 8))
    place = rng.randrange(len(part) - size + 1)
    number = rng.choice((0, 1, 2**31 - 1, 2**31, 2**63, 2**64 - 1, rng.getrandbits(16)))
    patch = (number & (1 << 8 * size) - 1).to_bytes(size, rng.choice(("little", "big")))
    return part[:place] + patch + part[place + size :]


def main() -> None:
    """Fuzz until the budget is spent."""
    asked = _arguments()
    import atheris

    include = ["callpath_modeler", "cpmodel_tables", "cpmodel_scorep", "cpmodel_caliper",
               "cpmodel_hpctoolkit", "cpmodel_otf2"]  # fmt: skip
    with atheris.instrument_imports(include=include):
        from callpath_modeler.readers.registry import installed, load_entry

        for entry in installed().values():
            load_entry(entry)
        import targets

        target = targets.TARGETS[asked.target]
        home = asked.corpus / asked.target
        corpus = home / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        seeds = target.seeds(asked.data) or [b""]
        recorder = Recorder(target.run, home / "findings")
        for seed in seeds:
            (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
            # What a target imports while it runs has to be imported here, to be instrumented.
            recorder(seed)
    largest = max([4096, *(2 * len(seed) for seed in seeds)])
    arguments = [
        sys.argv[0], f"-max_len={largest}", f"-seed={asked.seed or random.getrandbits(31)}",
        f"-runs={asked.runs}", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-timeout=600",
        "-print_final_stats=1", "-verbosity=1", str(corpus),
    ]  # fmt: skip
    if asked.seconds:
        arguments.insert(1, f"-max_total_time={asked.seconds}")
    options = {}
    if mutate := _mutator(atheris, target.framed):
        options["custom_mutator"] = mutate
    os.chdir(home)
    import atexit

    atexit.register(recorder.save)
    atheris.Setup(arguments, recorder, **options)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
