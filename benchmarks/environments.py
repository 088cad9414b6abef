"""Virtual environments of the peers, under ``benchmarks/.work``.

A peer never runs in the process of a benchmark and never shares its libraries. Each environment has
the versions that the peer requires.
"""

from __future__ import annotations

import shutil
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

WORK = Path(__file__).resolve().parent / ".work"
"""Folder of all files of the benchmarks except their results."""

_COMPLETE = "complete"
_LIBRARIES = """
import platform
from importlib import metadata
told = f"Python {platform.python_version()}"
try:
    told += f", numpy {metadata.version('numpy')}"
except metadata.PackageNotFoundError:
    pass
print(told)
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A program that is compared with cpmodel.

    Attributes
    ----------
    name : name in tables
    package : name on PyPI
    version : the compared release
    """

    name: str
    package: str
    version: str

    @property
    def directory(self) -> Path:
        """Folder of the environment."""
        return WORK / "environments" / f"{self.package}-{self.version}"

    def executable(self, name: str = "python") -> Path:
        """Return a program of the environment, which is created if it is missing."""
        if not (self.directory / _COMPLETE).exists():
            self._install()
        return self.directory / "bin" / name

    def libraries(self) -> str:
        """Return the versions of Python and, if the peer needs it, NumPy."""
        command: list[str | Path] = [self.executable(), "-c", _LIBRARIES]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def _install(self) -> None:
        print(f"installing {self.package} {self.version} ...", flush=True)
        # An interrupted installation looks like a complete one.
        shutil.rmtree(self.directory, ignore_errors=True)
        venv.create(self.directory, with_pip=True)
        requirement = f"{self.package}=={self.version}"
        python = self.directory / "bin" / "python"
        pip: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", requirement], check=True)
        (self.directory / _COMPLETE).touch()


EXTRAP = Peer("Extra-P", "extrap", "4.2.5")
PYCUBEXR = Peer("pycubexr", "pycubexr", "2.1.1")
HATCHET = Peer("Hatchet", "llnl-hatchet", "2026.2.0")
CALIPER = Peer("caliper-reader", "caliper-reader", "0.4.1")
HTA = Peer("HolisticTraceAnalysis", "HolisticTraceAnalysis", "0.5.0")
OTAVA = Peer("Apache Otava", "apache-otava", "0.8.0")
PEERS = (EXTRAP, PYCUBEXR, HATCHET, CALIPER, HTA, OTAVA)


if __name__ == "__main__":
    for peer in PEERS:
        peer.executable()
        print(f"{peer.name} {peer.version}: {peer.libraries()}")
