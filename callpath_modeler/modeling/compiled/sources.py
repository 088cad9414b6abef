"""Sources of the libraries, and the names of the libraries, for the build and for the loader."""

from __future__ import annotations

import hashlib
from pathlib import Path

PROCESSORS = ("any", "haswell", "skylake-avx512")
"""Kinds of processors, in the order of the numbers of `processor` in ``processor.c``.

All names except the first one are known to compilers.
"""


def sources(folder: Path) -> list[Path]:
    """Return the C files of a folder, in order."""
    return sorted((*folder.glob("*.c"), *folder.glob("*.h")))


def libraries(folder: Path) -> dict[str, Path]:
    """Return the path of the library for each kind of processor, whether or not it exists.

    Libraries of other sources have other names.
    """
    digest = hashlib.sha256()
    for source in sources(folder):
        digest.update(source.read_bytes())
    made = digest.hexdigest()[:16]
    return {kind: folder / f"modeler-{made}-{kind}.so" for kind in PROCESSORS}
