"""Build hook of hatchling that compiles the inner loops for a wheel.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = Path(__file__).parent
_FLAGS = (
    *("-std=gnu11", "-O3", "-fPIC", "-shared", "-fopenmp-simd", "-fno-math-errno"),
    *("-fno-trapping-math", "-Wall", "-Wextra"),
    # A fault in the library ends the process before a hostile file can use it.
    *("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"),
)
"""Options of the compiler."""
_HARDENING = ("-fstack-clash-protection", "-Wl,-z,relro,-z,now,-z,noexecstack")
"""Further options, for compilers and linkers that know them."""
_X86 = ("x86_64", "amd64")
# Tuned for these processors, compilers use gather instructions. They are slow on AMD's processors,
# and on Intel's since microcode keeps them from leaking.
_ONLY_X86 = {
    "haswell": ("-march=haswell", "-mtune=generic"),
    "skylake-avx512": ("-march=skylake-avx512", "-mtune=generic", "-mprefer-vector-width=512"),
}
"""Further options for the kinds of processors that only x86 has."""


class CompiledHook(BuildHookInterface[Any]):
    """Hook that adds the compiled libraries to a wheel, beside their sources.

    Without a compiler the wheel has no libraries.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile the libraries before files are collected."""
        if self.target_name != "wheel":
            return
        try:
            compile_libraries(_FOLDER)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = str(getattr(error, "stderr", None) or error).strip()
            self.app.display_warning(f"not compiled, models will be made in numpy: {reason}")
            return
        # Libraries are added only now: those of an earlier build are not part of a wheel for all
        # platforms.
        libraries = (_FOLDER / "modeler-*.so").relative_to(self.root)
        build_data["artifacts"].append(libraries.as_posix())
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"


def compile_libraries(folder: Path) -> None:
    """Compile the sources of a folder with ``$CC`` and ``$CFLAGS``, for each kind of processor.

    The folder gets all libraries, or none.

    Raises
    ------
    OSError
        If there is no compiler.
    subprocess.CalledProcessError
        If the compiler fails.
    """
    known = runpy.run_path(str(_FOLDER / "sources.py"))
    libraries: dict[str, Path] = known["libraries"](folder)
    compiler = shlex.split(os.environ.get("CC") or "cc")
    own = shlex.split(os.environ.get("CFLAGS", ""))
    units = [str(source) for source in known["sources"](folder) if source.suffix == ".c"]
    for old in folder.glob("modeler-*.so"):
        old.unlink()
    x86 = sysconfig.get_platform().endswith(_X86)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        (Path(work) / known["HEADER"]).write_text(known["header"](), encoding="ascii")
        hardening = _known_flags(compiler, Path(work))
        for kind, library in libraries.items():
            if kind in _ONLY_X86 and not x86:
                continue
            flags = [*_FLAGS, *hardening, *_ONLY_X86.get(kind, ()), *own]
            where = ["-I", work, "-o", str(Path(work) / library.name)]
            command = [*compiler, *flags, *units, *where, "-lm"]
            subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
        # Another process may have loaded the earlier library, so it is replaced, not overwritten.
        for made in Path(work).glob("*.so"):
            made.replace(folder / made.name)


def _known_flags(compiler: list[str], folder: Path) -> list[str]:
    """Return the flags of `_HARDENING` with which the compiler makes a library."""
    empty = folder / "empty.c"
    empty.write_text("int nothing;\n", encoding="ascii")
    out = folder / "empty.library"
    known = []
    for flag in _HARDENING:
        command = [*compiler, "-Werror", "-fPIC", "-shared", flag, "-o", str(out), str(empty)]
        if not subprocess.run(command, check=False, capture_output=True).returncode:  # noqa: S603
            known.append(flag)
    return known
