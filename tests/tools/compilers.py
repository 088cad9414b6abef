"""Compile the C library with every compiler of this machine, and test each result.

``python tests/tools/compilers.py ZIG`` uses ``gcc``, ``clang`` and the package ziglang in
the folder ZIG. A compiler that is missing is named.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("tests/unit/modeling/compiled", "tests/unit/modeling/test_mixture.py")
"""Tests that compare the library with its equations."""


def compilers(zig: Path) -> dict[str, str]:
    """Return the commands of the compilers that this machine has."""
    found = {name: name for name in ("gcc", "clang") if shutil.which(name)}
    if (zig / "ziglang").is_dir():
        words = ["env", f"PYTHONPATH={zig}", sys.executable, "-m", "ziglang", "cc"]
        found["zig"] = shlex.join(words)
    return found


def test(name: str, command: str, folder: Path) -> bool:
    """Compile a copy of the package with one compiler, and return whether the tests pass."""
    package = folder / "callpath_modeler"
    shutil.copytree(
        ROOT / "callpath_modeler", package, ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    build = package / "modeling" / "compiled"
    code = f"import pathlib, build; build.compile_libraries(pathlib.Path({str(build)!r}))"
    environment = {**os.environ, "CC": command, "PYTHONPATH": f"{folder}:{ROOT / 'plugins'}"}
    tests = ["-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    for words, where in ((["-c", code], build), (tests, ROOT)):
        done = subprocess.run([sys.executable, *words], cwd=where, env=environment, check=False)
        if done.returncode:
            print(f"{name}: failed: {command}", file=sys.stderr)
            return False
    print(f"{name}: compiled and tested", flush=True)
    return True


def main(zig: Path) -> None:
    """Compile and test with each compiler."""
    found = compilers(zig)
    for name in ("gcc", "clang", "zig"):
        if name not in found:
            print(f"{name}: skipped, because this machine does not have it")
    if not {"clang", "zig"} & set(found):
        print("neither Clang nor Zig was tried: install clang, or make a package index reachable")
    passed = []
    for name, command in found.items():
        with tempfile.TemporaryDirectory(prefix="compiled-") as folder:
            passed.append(test(name, command, Path(folder)))
    sys.exit(not all(passed))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
