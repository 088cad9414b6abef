"""Distance of models of measured programs from the measurements, above all at the largest scale."""

from __future__ import annotations

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.fitted import Fitted, sliced
from callpath_modeler.modeling import MIN_POINTS

MEASURED = (
    "scorep/amg.weak",
    "scorep/comd.weak",
    "scorep/lulesh.weak",
    "scorep/npb_ft.strong",
    "scorep/snap.weak",
    "third_party/caliper/lulesh_opal_weak.jsonl",
    "third_party/caliper/lulesh_quartz_weak_p8-125.jsonl",
    "third_party/caliper/sort/team16_bitonic_random.jsonl",
    "third_party/caliper/sort/team22_samplesort_random.jsonl",
    "third_party/caliper/sort/team6_mergesort_random.jsonl",
    "third_party/extrap_text/relearn_p32-256.txt",
    "third_party/mpi_collectives/mpi_data.jsonl",
)

_CARRIES = 0.02
"""Share of the whole program at some scale; smaller costs are mostly noise."""
_WILD = 10.0
"""A factor that repetitions do not explain."""


def lines_of(fitted: Fitted) -> list[Fitted]:
    """Return the models along each parameter, at all measured values of the others."""
    surface = fitted.surface
    if surface is None:
        return [fitted]
    found = []
    for axis, name in enumerate(surface.parameters):
        others = [other for other in surface.parameters if other != name]
        for at in np.unique(np.delete(surface.models.points, axis, axis=1), axis=0).tolist():
            held = dict(zip(others, at, strict=True))
            line = sliced(fitted.experiment, fitted.metric, surface, {}, (), name, held)
            found += [line] * (len(line.points) >= MIN_POINTS["mixture"])
    return found


def at_largest(fitted: Fitted) -> np.ndarray:
    """Return value, low, high and measurement, [4, call paths that carry cost]."""
    measured = fitted.measured
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num(measured / np.nansum(measured, axis=0)).max(axis=1)
    there = (share > _CARRIES) & (measured[:, -1] > 0)
    band = fitted.models.predict(fitted.points[-1:])
    ends = (each[there, 0] for each in (band.value, band.low, band.high))
    return np.stack([*ends, measured[there, -1]])


def assert_near(fitted: Fitted) -> None:
    found = [at_largest(line) for line in lines_of(fitted)]
    value, low, high, measured = np.concatenate(found, axis=1)
    assert measured.size
    off = np.abs(np.log(value / measured))
    assert np.median(off) < 0.13
    assert ((low <= measured) & (measured <= high)).mean() > 0.93
    assert off.max() < np.log(_WILD)


@pytest.mark.parametrize("name", MEASURED)
def test_models_of_measured_programs_end_where_measurements_do(shared_data, name):
    assert_near(cpm.fit(cpm.load(shared_data / name)))


@pytest.mark.parametrize("name", ["lulesh", "snap"])
def test_models_of_the_samples_end_where_measurements_do(samples, name):
    assert_near(cpm.fit(cpm.load(samples / name)))


def test_a_line_that_its_surface_is_far_from_has_a_model_of_its_own(tmp_path):
    """Large messages use another protocol, and all measurements scatter by factors."""
    table = tmp_path / "app.csv"
    lines = ["callpath,p,n,time"]
    for p in (8, 16, 32, 64, 128):
        for n in (10, 20, 30, 40, 50):
            sent = 0.5 * p if n == 50 else 1e-3 * n
            lines += [
                f"main/f{k},{p},{n},{sent * np.exp(np.sin(k + p * n + p / 3))}" for k in range(8)
            ]
    table.write_text("\n".join(lines) + "\n")
    fitted = cpm.fit(cpm.load(table))
    assert fitted.held == {"n": 50}
    band = fitted.models.predict([128.0])
    of_calls = slice(1, None)
    assert np.abs(np.log(band.value[of_calls, 0] / 64)).max() < np.log(8)
    assert np.median(np.abs(np.log(band.value[of_calls, 0] / 64))) < np.log(3)
