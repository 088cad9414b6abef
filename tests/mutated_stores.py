"""Stores with changes and correct checksums, read as users read them: `make mutate-stores`.

A changed store has one of three outcomes:

- cpmodel refuses it with one of its own errors.
- cpmodel returns the results of the original store.
- The store is valid, with other numbers or names. The C library must then return the results of
  NumPy, because it must not read memory outside the store.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from callpath_modeler import store
from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.report.experiment_text import info_table, info_text
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.ranking_table import all_rows, ranking_table
from callpath_modeler.report.ranking_text import ShownRanking
from callpath_modeler.report.table_formats import to_json
from callpath_modeler.studies import loading
from callpath_modeler.studies.loading import LoadOptions
from callpath_modeler.studies.pipeline import FitOptions, fit
from callpath_modeler.studies.question import findings_at
from callpath_modeler.studies.study import Study
from implementations import in_numpy
from store_mutations import Stored, mutate

REFUSED, SAME, OTHER = "refused", "same", "other"
_FOR_PEOPLE = "--- for people ---"
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def answers(path: Path) -> str:
    """Return the output of `info` and `rank` for a store, as JSON and as text."""
    everything = LoadOptions(read=ReadOptions(metrics=None))
    experiment = loading.load([path], everything)
    ranking = Study(path).ranking(target=64)
    findings = findings_at(ranking.fitted, ranking.target)
    rows = all_rows(ranking)
    texts = [
        to_json(info_table(experiment)),
        to_json(ranking_table(ranking, rows, findings)),
        _FOR_PEOPLE,
        *info_text(experiment),
        *map(
            str,
            ShownRanking(ranking, rows).text(
                TextStyle(width=120, full_names=True, ascii_only=True)
            ),
        ),
    ]
    return "\n".join(texts)


def outcome(path: Path, before: str) -> str:
    """Return the outcome of reading a changed store.

    Raises
    ------
    AssertionError
        If the results of the C library and of NumPy differ.
    """
    try:
        found = answers(path)
    except CallpathModelerError:
        return REFUSED
    found = found.replace(str(path), "STORE")
    if found == before:
        return SAME
    with in_numpy():
        expected = answers(path).replace(str(path), "STORE")
    assert _alike(found, expected), "results of the C library and of NumPy differ"
    return OTHER


def _alike(one: str, other: str) -> bool:
    """Return whether two results differ only by rounding; texts for people are not compared."""
    one, other = (each.partition(_FOR_PEOPLE)[0] for each in (one, other))
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    numbers = ([float(text) for text in _NUMBER.findall(each)] for each in (one, other))
    return bool(np.allclose(*numbers, rtol=0.02, atol=1e-290))


def bases(folder: Path) -> list[Path]:
    """Write stores of all forms: one parameter, the classic method, two parameters."""
    rng = np.random.default_rng(1)
    lines = {"p": ["callpath,p,rep,time[s],calls[1]"], "pn": ["callpath,p,n,rep,time[s]"]}
    laws = {"main": 3.0, "main/solve": 0.5, "main/solve/send": 0.1, "main/late": 0.2}
    for k, (path, size) in enumerate(laws.items()):
        for p in (2, 4, 8, 16, 32):
            for rep in (1, 2, 3):
                noise = 1 + 0.02 * rng.normal()
                if path != "main/late" or p > 8:
                    value = size * (p ** (k / 2) + 1) * noise
                    lines["p"].append(f"{path},{p},{rep},{value!r},{k + p}")
                if rep == 1:
                    lines["pn"] += [
                        f"{path},{p},{n},1,{size * (n + p ** (k / 2)) * noise!r}"
                        for n in (10, 20, 30, 40)
                    ]
    made = []
    for name, table, options in (
        ("one", "p", FitOptions()),
        ("classic", "p", FitOptions(method="classic")),
        ("two", "pn", FitOptions()),
    ):
        source = folder / f"{name}.csv"
        source.write_text("\n".join([*lines[table], ""]))
        path = folder / f"{name}.cpm"
        experiment = loading.load([source], LoadOptions(read=ReadOptions(metrics=None)))
        if name == "one":
            experiment = _of_processes(experiment)
        store.write([fit(experiment, metric, options) for metric in experiment.columns], path)
        made.append(path)
    return made


def _of_processes(experiment: Experiment) -> Experiment:
    """Add the data of profiles with many processes: imbalance and run time."""
    columns = dict(experiment.columns)
    for name, values in columns.items():
        imbalance = np.where(np.isnan(values.exclusive), np.nan, 1.2).astype(np.float32)
        run_time = values.total * 1.1 if values.metric.is_time else None
        columns[name] = replace(values, imbalance=imbalance, run_time=run_time)
    return replace(experiment, columns=columns)


def run(folder: Path, seeds: range, made: list[Path]) -> tuple[Counter[str], list[str]]:
    """Change stores, read them, and count the outcomes.

    Returns
    -------
    outcomes : dict
        Number of each outcome.
    failures : list
        Seed and reason of each mutant that was neither refused nor read correctly.
    """
    before = {}
    for path in made:
        before[path] = answers(path).replace(str(path), "STORE")
    outcomes: Counter[str] = Counter()
    failures = []
    for seed in seeds:
        rng = random.Random(seed)
        source = made[seed % len(made)]
        changed = Stored(source)
        mutant = mutate(changed, rng)
        path = folder / source.name.replace(".cpm", "-changed.cpm")
        shutil.rmtree(path, ignore_errors=True)
        changed.write(path)
        # Columns of large stores are checked when they are used.
        size = store._SOON_READ if seed % 2 else 0
        try:
            with patch.object(store, "_SOON_READ", size), warnings.catch_warnings():
                warnings.simplefilter("error")
                # Numbers near the limits of double precision; the command does not show these.
                warnings.simplefilter("ignore", RuntimeWarning)
                result = outcome(path, before[source])
        except Exception as error:  # noqa: BLE001 - every other exception is a failure
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            result = f"FAILED {type(error).__name__} {where}"
            failures.append(f"seed {seed}: {source.name}: {mutant}: {error!r:.200} at {where}")
        outcomes[result] += 1
    return outcomes, failures


def main() -> None:
    """Change a number of stores, and print the outcomes."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outcomes, failures = run(folder, range(first, first + count), bases(folder))
    for failure in failures:
        print(failure)  # noqa: T201
    for result, number in outcomes.most_common():
        print(f"{number:6} {result}")  # noqa: T201
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
