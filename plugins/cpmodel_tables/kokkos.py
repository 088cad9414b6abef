"""JSON of the kernel timers of Kokkos Tools: times and calls of kernels."""

from __future__ import annotations

import re
from pathlib import Path

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import RunSource
from cpmodel_tables.results import Results
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, whole_text

_SIGN = re.compile(r'\s*\{\s*"kokkos-kernel-data"\s*:')
_ROOT = "application"


def is_one(text: str) -> bool:
    """Return whether JSON is a result of a kernel timer, by its beginning."""
    return bool(_SIGN.match(text))


def read(path: Path) -> list[RunSource]:
    """Return the run: kernels below the application, and the time outside of all kernels.

    Raises
    ------
    InputError
        If the file has no kernels.
    """
    document = json_of(path, whole_text(path, is_json=True))
    held = document.get("kokkos-kernel-data") if isinstance(document, dict) else None
    data = held if isinstance(held, dict) else {}
    kernels = data.get("kernel-perf-info")
    if not isinstance(kernels, list):
        raise InputError(f"{path}: there are no kernels", hint=COPY_IT_AGAIN)
    results = Results(path, "Kokkos", place="kernel")
    run: dict[str, object] = {"program": _ROOT}
    whole, of_kernels = data.get("total-app-time"), data.get("total-kernel-times")
    if isinstance(whole, int | float) and isinstance(of_kernels, int | float):
        results.add(run, (), "time (exc)", max(0.0, whole - of_kernels), "s", 0)
    for number, kernel in enumerate(kernels, 1):
        results.listed += 1
        if not (isinstance(kernel, dict) and isinstance(kernel.get("kernel-name"), str)):
            raise InputError(f"{path}: kernel {number} has no name", hint=COPY_IT_AGAIN)
        region = str(kernel.get("region") or "")
        names = (*([region] if region else []), str(kernel["kernel-name"]))
        results.add(run, names, "time (exc)", kernel.get("total-time"), "s", number)
        results.add(run, names, "visits", kernel.get("call-count"), "1", number)
    return results.runs()
