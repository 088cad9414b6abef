"""Reports of TALP, the monitor of DLB: elapsed times of regions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import RunSource
from cpmodel_tables.results import NODES, PROCESSES, Results, counts_of
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, whole_text

_SIGN = re.compile(r'"(?:Application|popMetrics|pop_metrics)"\s*:\s*[\[{]')
_ELAPSED = "elapsedTime"
_REGIONS = ("Application", "popMetrics", "pop_metrics")
_WHOLE = ("Global", "Application", "MPI Execution")
"""Names of the region that is the whole program, in versions of DLB."""
_COUNTS = {"numMpiRanks": PROCESSES, "numNodes": NODES}


def is_one(text: str) -> bool:
    """Return whether JSON is a report, by its beginning."""
    return text.lstrip().startswith("{") and f'"{_ELAPSED}"' in text and bool(_SIGN.search(text))


def read(path: Path) -> list[RunSource]:
    """Return the run. Regions are call paths below the program.

    Raises
    ------
    InputError
        If no region has an elapsed time.
    """
    document = json_of(path, whole_text(path, is_json=True))
    held = document if isinstance(document, dict) else {}
    results = Results(path, "TALP", place="region", all_vary=True)
    resources = held.get("resources")
    run: dict[str, object] = {"program": "program"}
    run |= counts_of(resources if isinstance(resources, dict) else {}, _COUNTS)
    for number, (name, region) in enumerate(_regions(held), 1):
        results.listed += 1
        told = {**counts_of(region, _COUNTS), **run}
        callpath = () if name in _WHOLE else (name,)
        results.add(told, callpath, "time (inc)", region.get(_ELAPSED), "ns", number)
    if not results.listed:
        raise InputError(f"{path}: no region has an elapsed time", hint=COPY_IT_AGAIN)
    return results.runs()


def _regions(document: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield names and values of regions, which are a list or an object."""
    listed = next((document[key] for key in _REGIONS if key in document), None)
    if isinstance(listed, dict):
        regions = [(str(name), region) for name, region in listed.items()]
    else:
        regions = [
            (str(region.get("name")), region)
            for region in (listed if isinstance(listed, list) else [])
            if isinstance(region, dict)
        ]
    yield from ((name, region) for name, region in regions
                if isinstance(region, dict) and _ELAPSED in region)  # fmt: skip
