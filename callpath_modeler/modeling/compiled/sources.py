"""Sources of the libraries, and the names of the libraries, for the build and for the loader.

The build runs this file without the package.

See docs/explanation/architecture.md, 'The engine in C'.
"""

from __future__ import annotations

import hashlib
import runpy
from collections.abc import Mapping
from pathlib import Path

PROCESSORS = ("any", "haswell", "skylake-avx512")
"""Kinds of processors, in the order of the numbers of `processor` in ``processor.c``.

All names except the first one are known to compilers.
"""

HEADER = "constants.h"
"""Name of the header with the constants that the sources share with Python."""

CONSTANTS: Mapping[str, tuple[str, ...]] = {
    "bands": (
        *("ALIKE", "COLUMNS", "CORRELATIONS", "DECADES", "LARGEST", "NEGLIGIBLE", "SCORES"),
        *("STEPS", "WIDE"),
    ),
    "evidence": (
        *("ALIKE", "CONSTANT_FOLDS", "DEVIATES", "FAR_OUT", "LARGE_MISFIT", "LEAST", "LEAST_LEVEL"),
        *("LEAST_RATIO", "LEAST_SHARE", "LEAST_SPREAD", "LOG_2", "LOG_2PI", "NEGLIGIBLE"),
        *("NO_PART", "OUTER", "PAIR_FOLDS", "PARALLEL", "ROUNDING", "SHARE_EDGE", "TINY", "VARIES"),
    ),
    "hypotheses": (
        *("EVEN", "FALLS", "FEWEST_FOR_PAIRS", "OUT_OF_QUESTION", "ROUNDING", "SCATTERED"),
        *("TIED", "UNEXPLAINED", "WITHIN"),
    ),
    "limits": ("ELEMENTS", "NUMBERS", "TERMS", "WHOLE"),
    "noise": (
        "EXACT",
        "EXACT_VARIANCE",
        "LARGEST_COUNT",
        "LARGE_SPREAD",
        "MOST_DOF",
        "WEIGHT_RANGE",
    ),
    "outcome": (
        *("AGREES", "ALTERNATIVES", "COARSE", "FAR_APART", "FAR_BEYOND_NOISE", "MISFIT"),
        *("NEGLIGIBLE", "NOISY_SPREAD", "PARALLEL", "PREDICTED", "ROUNDING", "TAILS", "TIED"),
    ),
}
"""Names of the constants that the sources share with Python, by module of ``constants``.

In C, the name of the module precedes them: ``EVIDENCE_TINY``.
"""

_SINGLE = ("EVIDENCE_ALIKE", "HYPOTHESES_EVEN", "HYPOTHESES_OUT_OF_QUESTION", "HYPOTHESES_TIED")
"""Constants of single precision."""


def header() -> str:
    """Return the text of the header with the constants."""
    folder = Path(__file__).parent.parent / "constants"
    lines = ["/* Made of callpath_modeler/modeling/constants by sources.py. */", "#pragma once"]
    for module, names in CONSTANTS.items():
        values = runpy.run_path(str(folder / f"{module}.py"))
        for name in names:
            full = f"{module}_{name}".upper()
            lines.append(f"#define {full} {_literal(values[name])}{'f' * (full in _SINGLE)}")
    return "\n".join([*lines, ""])


def _literal(value: float | tuple[float, ...]) -> str:
    return f"{{{', '.join(map(repr, value))}}}" if isinstance(value, tuple) else repr(value)


def sources(folder: Path) -> list[Path]:
    """Return the C files of a folder, in order."""
    return sorted((*folder.glob("*.c"), *folder.glob("*.h")))


def libraries(folder: Path) -> dict[str, Path]:
    """Return the path of the library for each kind of processor, whether or not it exists.

    Libraries of other sources, or with other constants, have other names.
    """
    digest = hashlib.sha256(header().encode())
    for source in sources(folder):
        digest.update(source.read_bytes())
    made = digest.hexdigest()[:16]
    return {kind: folder / f"modeler-{made}-{kind}.so" for kind in PROCESSORS}
