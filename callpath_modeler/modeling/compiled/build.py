"""Build hook of hatchling that compiles the engine of models for a wheel.

If a machine has no C compiler, the build asks for the package ``ziglang``, which contains one. Only
the build needs it.

See docs/explanation/architecture.md, 'The engine in C'.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = Path(__file__).parent
_FLAGS = (
    *("-std=gnu11", "-O3", "-fPIC", "-shared", "-fopenmp-simd", "-fno-math-errno"),
    *("-fno-trapping-math", "-Wall", "-Wextra"),
    # Compilers differ in their defaults: whether a product and a sum are rounded once, whether a
    # loop without vectors is a warning, and Zig's checks end the process.
    *("-ffp-contract=fast", "-Wno-pass-failed", "-fno-sanitize=undefined"),
    # A fault in the library ends the process before a hostile file can use it.
    *("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"),
)
"""Options of the compiler."""
_HARDENING = ("-fstack-clash-protection", "-Wl,-z,relro,-z,now,-z,noexecstack")
"""Further options, for compilers and linkers that know them."""
_X86 = ("x86_64", "amd64")
# Tuned for these processors, compilers use gather instructions. They are slow on AMD's processors,
# and on Intel's since microcode keeps them from leaking.
_PROCESSOR = {
    "any": (),
    "haswell": ("-march=haswell", "-mtune=generic"),
    "skylake-avx512": ("-march=skylake-avx512", "-mtune=generic", "-mprefer-vector-width=512"),
}
"""Further options for each kind of processor; only x86 has the last two."""
_PROCESSOR_OF_ZIG = {
    # Zig compiles for the processor of the build unless another one is named.
    "any": ("-mcpu=baseline",),
    "haswell": ("-mcpu=haswell",),
    "skylake-avx512": ("-mcpu=skylake_avx512", "-mprefer-vector-width=512"),
}
"""The same for Zig, which is Clang with other names of processors."""
_ZIG = "ziglang[or-install-a-C-compiler]>=0.13"
"""Requirement of a build without a C compiler.

The package has no such extra. Installers ignore it, and quote it if they do not find the package.
"""


class CompiledHook(BuildHookInterface[Any]):
    """Hook that adds the compiled libraries to a wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return the compiler that the build needs from the package index, if it has no other."""
        return [] if self.target_name != "wheel" or _own_compiler() else [_ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile the libraries before files are collected."""
        if self.target_name != "wheel":
            return
        try:
            compile_libraries(_FOLDER)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = str(getattr(error, "stderr", None) or error).strip()
            self.app.abort(f"cpmodel cannot be compiled: {reason}")
        # Libraries are added only now: those of an earlier build are not part of the wheel.
        libraries = (_FOLDER / "modeler-*.so").relative_to(self.root)
        build_data["artifacts"].append(libraries.as_posix())
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"


def _own_compiler() -> list[str]:
    """Return the command of the compiler that ``$CC`` names, or ``cc``; [] if neither exists."""
    named = shlex.split(os.environ.get("CC", ""))
    return named or ["cc"] * (shutil.which("cc") is not None)


def compiler() -> list[str]:
    """Return the command of the C compiler of a build.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    found = _own_compiler()
    if not found and importlib.util.find_spec("ziglang"):
        found = [sys.executable, "-m", "ziglang", "cc", "-s"]
    if not found:
        raise FileNotFoundError(
            "there is no C compiler; install one (cc), name one in $CC, or `pip install ziglang`"
        )
    return found


def compile_libraries(folder: Path) -> None:
    """Compile the sources of a folder with `compiler` and ``$CFLAGS``, for each kind of processor.

    A compiler may not know the special kinds; the library for any processor serves them.

    Raises
    ------
    OSError
        If there is no compiler.
    subprocess.CalledProcessError
        If the compiler fails.
    """
    known = runpy.run_path(str(_FOLDER / "sources.py"))
    libraries: dict[str, Path] = known["libraries"](folder)
    command = compiler()
    processors = _PROCESSOR_OF_ZIG if any("zig" in word for word in command) else _PROCESSOR
    own = shlex.split(os.environ.get("CFLAGS", ""))
    units = [str(source) for source in known["sources"](folder) if source.suffix == ".c"]
    for old in folder.glob("modeler-*.so"):
        old.unlink()
    x86 = sysconfig.get_platform().endswith(_X86)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        # Zig keeps what it compiled, by default in the home directory.
        caches = dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), work)
        os.environ |= {name: os.environ.get(name, folder) for name, folder in caches.items()}
        (Path(work) / known["HEADER"]).write_text(known["header"](), encoding="ascii")
        hardening = [flag for flag in _HARDENING if _knows(command, [flag], Path(work))]
        for kind, library in libraries.items():
            special = processors[kind]
            if kind != "any" and not (x86 and _knows(command, special, Path(work))):
                continue
            where = ["-I", work, "-o", str(Path(work) / library.name)]
            words = [*command, *_FLAGS, *hardening, *special, *own, *units, *where, "-lm"]
            subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603
        # Another process may have loaded the earlier library, so it is replaced, not overwritten.
        for made in Path(work).glob("*.so"):
            made.replace(folder / made.name)


def _knows(command: Sequence[str], flags: Sequence[str], folder: Path) -> bool:
    """Return whether a compiler makes a library with some flags."""
    empty, out = folder / "empty.c", folder / "empty.library"
    empty.write_text("int nothing;\n", encoding="ascii")
    words = [*command, "-Werror", "-fPIC", "-shared", *flags, "-o", str(out), str(empty)]
    return not subprocess.run(words, check=False, capture_output=True).returncode  # noqa: S603
