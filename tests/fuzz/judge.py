"""Permitted outcomes of an input: it is read, or refused with an error of this project, in bounds.

The bounds are 2 s of processor time per 100 KiB and 512 MB of memory, for a whole process.
"""

from __future__ import annotations

import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from callpath_modeler.errors import CallpathModelerError, PluginError

if TYPE_CHECKING:
    from fuzz.targets import Target

SECONDS_PER_100_KIB = 2.0
MEMORY = 512 * 10**6
LONGEST_MESSAGE = 2000
"""Maximum characters of an error without the path; messages shorten quoted text."""

_HOME = Path(__file__).resolve().parents[1]
SLOWER = 10
"""So many times the bound a process with instruments may take before it is stopped."""
HUNG = 600.0
"""Seconds after which a test that would never end is stopped, however slow the machine."""


class ExcessError(AssertionError):
    """An input took more time or memory than its size allows."""


class Hang(BaseException):
    """An input is still being read after its time. No reader may catch this."""


def seconds_for(content: bytes) -> float:
    """Return the maximum processor time of an input."""
    return SECONDS_PER_100_KIB * max(1.0, len(content) / 102400)


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise `Hang` in a block that takes more processor time."""

    def ring(_number: int, _frame: object) -> None:
        raise Hang(f"still not done after {seconds:.0f} s of processor time")

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def attempt(target: Target, content: bytes, scratch: Path, seconds: float = HUNG) -> bool | None:
    """Read an input.

    Parameters
    ----------
    seconds : of processor time after which it is stopped

    Returns
    -------
    bool or None
        True if it was read, False if it was refused; None = not an input of this target.

    Raises
    ------
    Exception
        Any exception that is not an error of this project.
    """
    for left in scratch.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    path = target.form.place(content, scratch)
    if path is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            with stopped_after(seconds):
                target.read(path)
        except PluginError:
            # A reader must not raise these exceptions.
            raise
        except CallpathModelerError as error:
            check_refusal(error, path)
            return False
    return True


def check_refusal(error: CallpathModelerError, path: Path) -> None:
    """Check that an error is one short line, with a hint."""
    message, hint = error.message.replace(str(path), ""), error.hint or ""
    assert len(message) <= LONGEST_MESSAGE, (
        f"a message of {len(message)} characters: {message[:99]}"
    )
    assert len(hint) <= LONGEST_MESSAGE, f"a hint of {len(hint)} characters: {hint[:99]}"
    assert "\n" not in message, message
    assert hint, f"no hint: {message}"


def costs(target: str, file: Path) -> tuple[float, int]:
    """Return the processor time in s and the peak memory in bytes of an input.

    A separate process without instruments measures them, because instruments multiply the time.
    """
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.judge", target, str(file)],
        cwd=_HOME,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise ExcessError(f"{target}: {file}: status {done.returncode}: {done.stderr[-2000:]}")
    seconds, memory = done.stdout.split()[-2:]
    return float(seconds), int(memory)


def check_costs(target: str, file: Path) -> None:
    """Raise `ExcessError` if an input exceeds its bounds."""
    seconds, memory = costs(target, file)
    allowed = seconds_for(file.read_bytes())
    if seconds > allowed:
        raise ExcessError(f"{seconds:.1f} s of processor time, {allowed:.1f} s are allowed")
    if memory > MEMORY:
        raise ExcessError(f"{memory / 1e6:.0f} MB of memory, {MEMORY / 1e6:.0f} MB are allowed")


def peak_memory() -> int:
    """Return the largest resident set of this process in bytes.

    The value of `getrusage` includes that of the parent process.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        if found:
            return int(found[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _main(name: str, file: str) -> None:
    from fuzz.targets import TARGETS

    target = TARGETS[name]
    content = Path(file).read_bytes()
    with tempfile.TemporaryDirectory() as scratch:
        # The first input includes the time of imports, so a seed is read first.
        attempt(target, target.seeds()[0], Path(scratch))
        before = time.process_time()
        attempt(target, content, Path(scratch))
        seconds = time.process_time() - before
    sys.stdout.write(f"{seconds} {peak_memory()}\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
