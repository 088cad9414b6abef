"""Fuzz targets with Atheris: `make fuzz`, or `python -m fuzz.run --help` in tests.

Each target has a corpus that later runs continue. A crash does not end a run. Its input is kept
once for each place in the code, and the run ends with status 1.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

OURS = ("callpath_modeler", "cpmodel_caliper", "cpmodel_commspec", "cpmodel_guidelines",
        "cpmodel_hpctoolkit", "cpmodel_kineto", "cpmodel_otf2", "cpmodel_scorep", "cpmodel_tables",
        "cpmodel_tau")  # fmt: skip
_NOT_INSTALLED = 3
_SIGNS = re.compile(r"#(\d+)\s.*?cov: (\d+) ft: (\d+)")
_MEMORY = 400 << 20
"""Growth of the resident set from which on an input is measured again in a separate process."""


@dataclass
class Tally:
    """Results of fuzzing a target so far, stored next to its corpus.

    Attributes
    ----------
    executions : number of inputs that were read or refused
    edges : largest number of edges of our code in a run
    minutes : processor time
    crashes : number of inputs of distinct places, corrected or not
    """

    executions: int = 0
    edges: int = 0
    minutes: float = 0.0
    crashes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, home: Path) -> Tally:
        """Return the tally in a folder, or a new one."""
        kept = home / "tally.json"
        return cls(**json.loads(kept.read_text())) if kept.is_file() else cls()

    def keep(self, home: Path) -> None:
        """Write the tally."""
        (home / "tally.json").write_text(json.dumps(asdict(self), indent=1) + "\n")


class _Fuzzed:
    """One target while this process fuzzes it."""

    def __init__(self, name: str, home: Path, scratch: Path, seconds: float) -> None:
        from fuzz.targets import TARGETS

        self.end, self.count = time.process_time() + seconds, 0
        self.target, self.home, self.scratch = TARGETS[name], home, scratch
        self.known = {path.name.split("-")[0] for path in (home / "crashes").iterdir()}
        self.places = set[str]()
        self.measured = self.memory = 0

    def take(self, content: bytes) -> None:
        """Read an input, and store it if it fails at a new place."""
        from fuzz import judge

        before = time.process_time()
        if before > self.end:
            self.leave()
        self.count += 1
        try:
            most = judge.SLOWER * judge.seconds_for(content)
            judge.attempt(self.target, content, self.scratch, most)
        except (Exception, judge.Hang) as error:  # noqa: BLE001 - any is a crash
            self._keep(content, _place(error), "".join(traceback.format_exception(error)))
            return
        seconds = time.process_time() - before
        if seconds > judge.seconds_for(content) or self._has_grown():
            self._measure(content)

    def leave(self) -> None:
        """End this process; all results of the fuzzer are on disk."""
        (self.home / "count").write_text(str(self.count))
        sys.stderr.flush()
        os._exit(0)

    def _has_grown(self) -> bool:
        from fuzz import judge

        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
        peak = judge.peak_memory()
        grown = peak > max(_MEMORY, self.memory + (64 << 20))
        self.memory = max(self.memory, peak if grown else resident)
        return grown

    def _measure(self, content: bytes) -> None:
        """Measure an input that seems to exceed its bounds in a separate process."""
        from fuzz import judge

        if self.measured > 200:
            return
        self.measured += 1
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            try:
                judge.check_costs(self.target.name, Path(file.name))
            except (judge.ExcessError, OSError, ValueError) as error:
                self._keep(content, f"excess {str(error)[:12]}", str(error))

    def _keep(self, content: bytes, place: str, told: str) -> None:
        if place in self.places:
            return
        self.places.add(place)
        mark = hashlib.sha256(place.encode()).hexdigest()[:10]
        if mark in self.known:
            return
        name = f"{mark}-{hashlib.sha256(content).hexdigest()[:8]}"
        (self.home / "crashes" / name).write_bytes(content)
        (self.home / f"{name}.txt").write_text(told)
        sys.stderr.write(f"\nCRASH {self.target.name} {name}\n{told}\n")


def _place(error: BaseException) -> str:
    """Return the identity of a crash: its kind, and its place in our code."""
    here = Path(__file__).parent
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent != here
    ]
    ours = [f for f in frames if any(f"/{name}/" in f.filename for name in OURS)] or frames
    last = ours[-1] if ours else None
    return f"{type(error).__name__} {Path(last.filename).name}:{last.name}" if last else repr(error)


def _fuzz(name: str, home: Path, seconds: float, runs: int, seed: int) -> None:
    """Fuzz one target in this process, which ends with it."""
    import atheris

    from fuzz import mutate
    from fuzz.targets import TARGETS

    target = TARGETS[name]
    corpus = home / "corpus"
    for folder in (corpus, home / "crashes"):
        folder.mkdir(parents=True, exist_ok=True)
    for content in target.seeds():
        (corpus / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
    largest = max(target.largest, *(len(content) for content in target.seeds()))
    shared = Path("/dev/shm")  # noqa: S108 - a folder of our own in it
    scratch = Path(tempfile.mkdtemp(prefix="fuzz-", dir=shared if shared.is_dir() else None))
    fuzzed = _Fuzzed(name, home, scratch, seconds)

    def change(content: bytes, size: int, number: int) -> bytes:
        return mutate.mutated(target.form, bytes(content), size, number, atheris.Mutate)

    def cross(one: bytes, other: bytes, size: int, number: int) -> bytes:
        return mutate.crossed(target.form, bytes(one), bytes(other), size, number)

    options = [
        f"-max_len={largest}", f"-seed={seed}", f"-runs={runs}", "-timeout=600",
        "-report_slow_units=600", "-rss_limit_mb=0",
        f"-artifact_prefix={home}/crashes/died-",
        "-print_final_stats=1", "-len_control=0", "-use_value_profile=0", "-detect_leaks=0",
    ]  # fmt: skip
    has_members = type(target.form).__name__ != "Single"
    atheris.Setup(
        ["fuzz", *options, str(corpus)],
        lambda content: fuzzed.take(bytes(content)),
        **({"custom_mutator": change, "custom_crossover": cross} if has_members else {}),
    )
    atexit.register(fuzzed.leave)
    atheris.Fuzz()


def _instrumented() -> None:
    """Import our code with instruments, before this process forks."""
    import atheris

    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stderr(nowhere),
        atheris.instrument_imports(include=[*OURS]),
        tempfile.TemporaryDirectory() as scratch,
    ):
        from fuzz.judge import attempt
        from fuzz.targets import TARGETS

        # Readers import their libraries when they are used.
        for target in TARGETS.values():
            attempt(target, target.seeds()[0], Path(scratch))


def _start(name: str, home: Path, seconds: float, runs: int, seed: int) -> int:
    child = os.fork()
    if child:
        return child
    log = os.open(home / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        _fuzz(name, home, seconds, runs, seed)
    except BaseException:  # noqa: BLE001 - the process ends here, in whichever way
        traceback.print_exc()
        os._exit(70)
    os._exit(0)


def _ended(name: str, home: Path, status: int, minutes: float) -> list[str]:
    """Read the results of a process, and return its errors."""
    log = (home / "log.txt").read_text(errors="replace")
    tally = Tally.of(home)
    counts = [tuple(map(int, found)) for found in _SIGNS.findall(log)]
    count = home / "count"
    # A process that died has written its progress.
    known = [int(count.read_text())] if count.is_file() else [found[0] for found in counts]
    count.unlink(missing_ok=True)
    tally.executions += max(known, default=0)
    tally.edges = max([tally.edges, *(found[1] for found in counts)])
    tally.minutes += minutes
    crashes = sorted(path.name for path in (home / "crashes").iterdir())
    new = [name for name in crashes if name not in tally.crashes]
    tally.crashes = sorted({*tally.crashes, *crashes})
    tally.keep(home)
    sys.stdout.write(f"{name:20} {tally.executions:9} executions, {tally.edges:5} edges, "
                     f"{tally.minutes:6.1f} min, {len(new)} new crashes\n")  # fmt: skip
    sys.stdout.flush()
    wrong = [f"{home}/crashes/{each}" for each in new]
    if status not in (0, 77) and not any("died" in each for each in new):
        wrong.append(f"{name}: ended with status {status}: {log[-500:]}")
    return wrong


def _table(corpus: Path) -> int:
    """Print the tallies as a Markdown table."""
    lines = ["| target | executions | edges | minutes | crashes |", "|---|--:|--:|--:|--:|"]
    for kept in sorted(corpus.glob("*/tally.json")):
        tally = Tally.of(kept.parent)
        found = {name.partition("-")[0] if "died" not in name else name for name in tally.crashes}
        lines.append(f"| {kept.parent.name} | {tally.executions} | {tally.edges} "
                     f"| {tally.minutes:.1f} | {len(found)} |")  # fmt: skip
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Fuzz some targets, one after another or several at once."""
    parser = argparse.ArgumentParser(prog="fuzz.run", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument(
        "--time", type=float, default=60, help="seconds of processor time of each target"
    )
    parser.add_argument("--runs", type=int, default=-1, help="inputs of each target")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--corpus", type=Path, required=True, help="folder that is resumed")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes at once")
    parser.add_argument(
        "--if-possible", action="store_true", help="succeed where Atheris is not installed"
    )
    parser.add_argument("--table", action="store_true", help="print what came of all runs so far")
    given = parser.parse_args(arguments)
    if given.table:
        return _table(given.corpus)
    try:
        import atheris  # noqa: F401 - whether it is there
    except ImportError:
        sys.stderr.write(
            "fuzz: atheris is not installed, so nothing is fuzzed: pip install '.[fuzz]'; "
            "PyPI has wheels for Linux on x86-64\n"
        )
        return 0 if given.if_possible else _NOT_INSTALLED
    _instrumented()
    from fuzz.targets import TARGETS

    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]}; there are {', '.join(TARGETS)}")
    waiting, running, wrong = list(given.targets or TARGETS), {}, []
    while waiting or running:
        while waiting and len(running) < given.jobs:
            name = waiting.pop(0)
            home = given.corpus / name
            (home / "crashes").mkdir(parents=True, exist_ok=True)
            running[_start(name, home, given.time, given.runs, given.seed)] = name, home
        child, status, used = os.wait4(-1, 0)
        if child in running:
            name, home = running.pop(child)
            minutes = (used.ru_utime + used.ru_stime) / 60
            wrong += _ended(name, home, os.waitstatus_to_exitcode(status), minutes)
    for each in wrong:
        sys.stderr.write(f"fuzz: {each}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
