"""Virtual environments of the peers, under ``benchmarks/.work``.

A peer never runs in our process and never shares our libraries: each gets the versions that it
asks for itself.
"""

from __future__ import annotations

import shutil
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

WORK = Path(__file__).resolve().parent / ".work"
"""Everything that benchmarks write besides their results."""

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
    """A program that we compare with.

    Attributes
    ----------
    name : what tables call it
    package : its name on PyPI
    version : the release that is compared
    """

    name: str
    package: str
    version: str

    @property
    def directory(self) -> Path:
        """Where its environment is."""
        return WORK / "environments" / f"{self.package}-{self.version}"

    def executable(self, name: str = "python") -> Path:
        """Return a program of its environment, which is made if it is not there."""
        if not (self.directory / _COMPLETE).exists():
            self._install()
        return self.directory / "bin" / name

    def libraries(self) -> str:
        """Return the versions of Python and, if it needs it, numpy that it runs with."""
        command: list[str | Path] = [self.executable(), "-c", _LIBRARIES]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def _install(self) -> None:
        print(f"installing {self.package} {self.version} ...", flush=True)
        # An installation that was interrupted cannot be told from a good one.
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
PEERS = (EXTRAP, PYCUBEXR, HATCHET, CALIPER)


if __name__ == "__main__":
    for peer in PEERS:
        peer.executable()
        print(f"{peer.name} {peer.version}: {peer.libraries()}")
