"""The C library under the address and undefined-behaviour sanitizers: `make sanitize`.

python sanitized.py [FITS [STORES]]

The script builds the library for every kind of processor that this machine has, with sanitizers. It
runs the library in separate processes: fits and predictions of random arrays, and stores with
changes and correct checksums. A process that a sanitizer stops is a failure. Memory leaks are not
checked, because Python itself keeps memory until it exits.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from callpath_modeler import modeling, store
from callpath_modeler.modeling.compiled import c_kernels, library, sources

FOLDER = Path(library.__file__).parent
SANITIZERS = "address,undefined,float-cast-overflow"
FLAGS = f"-O1 -g -fno-omit-frame-pointer -fsanitize={SANITIZERS} -fno-sanitize-recover=all"
SPECIAL = (
    *(np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 5e-324, 2.3e-308, -1e-310, 1e-300, 1e300, 1.7e308),
    *(1.0, 1e15, -1e200),
)
POINTS = (3, 4, 5, 6, 8, 9, 13, 16, 17, 33, 64, 100, 200)
REPETITIONS = (1, 1, 2, 3, 5, 7, 8, 9, 20, 50)
ROWS = (1, 2, 3, 7, 8, 9, 17)
FITS, STORES = 30, 20


def build(folder: Path) -> list[str]:
    """Compile the sources with sanitizers, and return the kinds of processors that run here."""
    for source in sources.sources(FOLDER):
        shutil.copy(source, folder)
    os.environ["CFLAGS"] = FLAGS
    made = runpy.run_path(str(FOLDER / "build.py"))
    made["compile_libraries"](folder)
    best = int(library.engine().processor())
    kinds = list(sources.libraries(folder))[: best + 1]
    return [kind for kind in kinds if sources.libraries(folder)[kind].exists()]


def use(folder: Path, kind: str) -> None:
    """Select one of the libraries of a folder for models."""
    path = sources.libraries(folder)[kind]
    # The loader prefers the last, and falls back to the first if it cannot load the last.
    library.libraries = lambda _: dict.fromkeys(sources.PROCESSORS, path)
    library.engine.cache_clear()
    assert library.engine()._name == str(path), f"{path} is not loaded"
    # Copies of arrays end exactly at their last value; mapped files end with a page.
    mapped = store._array
    store._array = lambda *words: np.array(mapped(*words))


def drive(fits: int) -> None:
    """Fit random arrays, and predict."""
    for seed in range(fits):
        rng = np.random.default_rng(seed)
        several, method = seed % 5 == 4, "classic" if seed % 7 == 6 else "mixture"
        points = _points(rng, seed, several=several)
        values = _values(rng, points, ROWS[seed % len(ROWS)])
        models = modeling.fit(points, values, method="mixture" if several else method)
        targets = np.array([points.max() * 4, 1.0, 1e-3, 1e6])
        if several:
            models.values(np.repeat(targets[:, None], points.shape[1], axis=1))
            continue
        models.predict(targets)
        if method == "mixture":
            mixture = models.mixture(targets)
            mixture.quantile(rng.choice([0.0, 1e-9, 0.3, 1.0]))
            mixture.exceedance(rng.choice(SPECIAL, (len(models), len(targets))))


def _points(rng: np.random.Generator, seed: int, *, several: bool) -> np.ndarray:
    count = POINTS[seed % len(POINTS)]
    if several:
        axes = np.meshgrid(2.0 ** np.arange(3 + seed % 4), 10.0 * np.arange(1, 5 + seed % 3))
        return np.stack([axis.ravel() for axis in axes], axis=1)
    steps = rng.choice([1.0, 0.01, 100.0], count) * rng.uniform(0.5, 2, count)
    return np.unique(rng.choice([1e-9, 1.0, 1e9]) * np.cumsum(steps))


def _values(rng: np.random.Generator, points: np.ndarray, rows: int) -> np.ndarray:
    repetitions = int(rng.choice(REPETITIONS))
    p = points if points.ndim == 1 else points.prod(axis=1)
    law = (p / p.max()) ** rng.choice([-1.0, 0, 0.5, 1, 2], (rows, 1))
    values = law[..., None] * rng.lognormal(0, 0.05, (rows, len(points), repetitions))
    values *= rng.choice([1e-300, 1e-9, 1.0, 1e9, 1e290], (rows, 1, 1))
    if rng.random() < 0.7:
        odd = rng.random(values.shape) < rng.choice([0.01, 0.2, 0.9])
        values = np.where(odd, rng.choice(SPECIAL, values.shape), values)
    return values


def elementwise() -> None:
    """Call the special functions with doubles of every class."""
    every = np.array([*SPECIAL, 0.3, 0.999, 2.0, 40.0, 1e5])
    one, other = (each.ravel() for each in np.meshgrid(every, every))
    for name in ("normal_shares", "log_normal_shares", "normal_quantiles"):
        c_kernels.elementwise(name, one)
    for name in ("student_shares", "student_quantiles"):
        c_kernels.elementwise(name, one, other)
    c_kernels.elementwise("polygammas", one)


def child(folder: Path, kind: str, fits: int, stores: int) -> None:
    """Run one library in this process."""
    from mutated_stores import bases, run

    use(folder, kind)
    warnings.simplefilter("ignore", RuntimeWarning)
    elementwise()
    drive(fits)
    with tempfile.TemporaryDirectory() as name:
        outcomes, failures = run(Path(name), range(stores), bases(Path(name)))
    told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    print(f"{kind}: {fits} fits; {stores} changed stores: {told}")  # noqa: T201
    sys.exit("\n".join(failures) or 0)


def main() -> None:
    """Build the libraries, and run each in a separate process."""
    given = [int(word) for word in sys.argv[1:3]]
    fits, stores = *given, *(FITS, STORES)[len(given) :]
    runtime = subprocess.run(
        [shutil.which("cc") or "gcc", "-print-file-name=libasan.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    with tempfile.TemporaryDirectory() as name:
        kinds, status = build(Path(name)), 0
        for kind in kinds:
            begin = time.monotonic()
            done = subprocess.run(
                [sys.executable, __file__, "--child", name, kind, str(fits), str(stores)],
                check=False,
                env={
                    **os.environ,
                    "LD_PRELOAD": runtime,
                    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
                    "UBSAN_OPTIONS": "print_stacktrace=1",
                },
            )
            took = time.monotonic() - begin
            print(f"{kind}: status {done.returncode} after {took:.0f} s", flush=True)  # noqa: T201
            status = status or done.returncode
    sys.exit(bool(status) or not kinds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
