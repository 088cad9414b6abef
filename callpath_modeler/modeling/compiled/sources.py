"""Which libraries belong to the sources beside this file; known to the build and to the loader."""

from __future__ import annotations

import hashlib
from pathlib import Path

PROCESSORS = ("any", "haswell", "skylake-avx512")
"""What libraries are compiled for, in the order of what `processor` in ``processor.c`` returns; but
for the first, names that compilers know."""


def sources(folder: Path) -> list[Path]:
    """Return the files in C of a folder, in order."""
    return sorted((*folder.glob("*.c"), *folder.glob("*.h")))


def libraries(folder: Path) -> dict[str, Path]:
    """Return where the library for each kind of processor is, or would be.

    What was made of other sources has other names.
    """
    digest = hashlib.sha256()
    for source in sources(folder):
        digest.update(source.read_bytes())
    made = digest.hexdigest()[:16]
    return {kind: folder / f"modeler-{made}-{kind}.so" for kind in PROCESSORS}
