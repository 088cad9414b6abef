"""Real kernels on this machine over their problem size, with caches and overheads."""

from __future__ import annotations

import gc
import heapq
import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import extrap_models
import networkx as nx
import numpy as np
import pandas as pd
from environments import EXTRAP
from results import Table
from scipy import fft, linalg, ndimage, optimize, signal, sparse, spatial
from scipy.cluster import hierarchy
from scipy.sparse import csgraph
from scipy.sparse.linalg import spsolve

from callpath_modeler import modeling
from callpath_modeler.arrays import FloatArray

Kernel = Callable[[], object]

NOTES = """\
The kernels are from numpy, scipy, pandas, networkx and the standard library. They work on a grid of
n x n values or on n bodies, n = 16, 32, ..., 1024, in one thread and five passes. All kernels are
modelled as the call paths of one program. The largest, two largest or three largest n are kept
back, and n = 1024 is predicted. Line: through the last two points, on logarithmic axes. Held: the
share of 95 % bands that contain the median of the measurements. Width: the median ratio of the ends
of the bands. Smaller sizes do not show how a kernel slows down when it leaves a cache. Every run of
the benchmark measures again.
"""

_SIZES = 16 * 2 ** np.arange(7)
_PASSES = 5
_LEAST_SECONDS = 2e-3
"""Minimum duration of a measurement; faster kernels are repeated."""


def _laplace(n: int) -> sparse.csr_array:
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    one = sparse.eye_array(n)
    return sparse.csr_array(sparse.kron(line, one) + sparse.kron(one, line))


def _sorted_by_heap(values: list[float]) -> list[float]:
    heap = values[:]
    heapq.heapify(heap)
    return [heapq.heappop(heap) for _ in values]


def _longest_common(left: list[int], right: list[int]) -> int:
    above = [0] * (len(right) + 1)
    for one in left:
        here = [0]
        for place, other in enumerate(right):
            longer = above[place] + 1 if one == other else max(above[place + 1], here[-1])
            here.append(longer)
        above = here
    return above[-1]


def _kernels(n: int) -> dict[str, Kernel]:
    """Return the kernels for one size, with their data."""
    rng = np.random.default_rng(n)
    grid, other = rng.random((n, n)), rng.random((n, n))
    flat, bodies, whole = grid.ravel(), rng.random((n, 3)), rng.integers(0, 9, n * n)
    index = rng.permutation(n * n)
    laplace, right = _laplace(n), rng.random(n * n)
    dense = grid @ grid.T + n * np.eye(n)
    listed, text = flat.tolist(), whole.astype(np.uint8).tobytes()
    frame = pd.DataFrame({"key": whole, "value": flat})
    graph = nx.gnm_random_graph(n, 4 * n, seed=1)
    words = whole[:n].tolist()
    return {
        "sum": flat.sum,
        "exp": lambda: np.exp(flat),
        "sort": lambda: np.sort(flat),
        "unique": lambda: np.unique(flat),
        "gather": lambda: flat[index],
        "copy of the transpose": lambda: np.ascontiguousarray(grid.T),
        "product": lambda: grid @ other,
        "product with a vector": lambda: grid @ flat[:n],
        "solve": lambda: linalg.solve(dense, flat[:n]),
        "cholesky": lambda: linalg.cholesky(dense),
        "qr": lambda: linalg.qr(grid),
        "fft": lambda: fft.fft2(grid),
        "convolution": lambda: signal.fftconvolve(flat, flat),
        "stencil": lambda: grid[1:-1, 1:-1] + grid[2:, 1:-1] + grid[:-2, 1:-1],
        "gauss": lambda: ndimage.gaussian_filter(grid, 1.0),
        "median filter": lambda: ndimage.median_filter(grid, 3),
        "labels": lambda: ndimage.label(grid > 0.4),
        "sparse product with a vector": lambda: laplace @ right,
        "sparse product": lambda: laplace @ laplace,
        "sparse solve": lambda: spsolve(_laplace(n // 4), right[: (n // 4) ** 2]),
        "shortest paths": lambda: csgraph.dijkstra(abs(laplace), indices=0),
        "spanning tree": lambda: csgraph.minimum_spanning_tree(abs(laplace)),
        "distances": lambda: spatial.distance.pdist(bodies),
        "neighbours": lambda: spatial.cKDTree(bodies).query(bodies, k=4),
        "triangulation": lambda: spatial.Delaunay(bodies[:, :2]),
        "clusters": lambda: hierarchy.linkage(bodies, "average"),
        "assignment": lambda: optimize.linear_sum_assignment(grid),
        "groups": lambda: frame.groupby("key").agg({"value": "mean"}),
        "rolling median": lambda: frame["value"].rolling(9).median(),
        "pagerank": lambda: nx.pagerank(graph),
        "triangles": lambda: nx.triangles(graph),
        "heap": lambda: _sorted_by_heap(listed[: 16 * n]),
        "common subsequence": lambda: _longest_common(words, words[::-1]),
        "json": lambda: json.loads(json.dumps(listed)),
        "zlib": lambda: zlib.compress(text),
    }


def table(_: Path) -> Table:
    """Measure all kernels, and predict the largest size from the others."""
    p, y = _SIZES.astype(np.float64), _measured()
    head = ("predicted", "points", "error: ours", EXTRAP.name, "line", "held", "width")
    lines = [_line(p, y, len(p) - kept_back) for kept_back in (1, 2, 3)]
    return Table(head, lines, range(1, 7))


def _measured() -> FloatArray:
    """Return seconds, [kernels, sizes, passes]."""
    taken = []
    gc.disable()
    for _ in range(_PASSES):
        sizes = [[_seconds(kernel) for kernel in _kernels(n).values()] for n in _SIZES.tolist()]
        taken.append(sizes)
    gc.enable()
    return np.array(taken).transpose(2, 1, 0)


def _seconds(kernel: Kernel) -> float:
    kernel()
    start, calls = time.perf_counter(), 0
    while (taken := time.perf_counter() - start) < _LEAST_SECONDS or not calls:
        kernel()
        calls += 1
    return taken / calls


def _line(p: FloatArray, y: FloatArray, points: int) -> tuple[str, ...]:
    target, truth = p[-1:], np.median(y[:, -1], axis=1)
    known, values = p[:points], y[:, :points]
    found = modeling.fit(known, values).predict(target)
    theirs, _ = extrap_models.predict(known, values, target)
    before, last = np.log(np.median(values[:, -2:], axis=2)).T
    slope = (last - before) / np.log(known[-1] / known[-2])
    line = np.exp(last + slope * np.log(target / known[-1]))
    low, high = found.low[:, 0], found.high[:, 0]
    predicted = found.value[:, 0], theirs[:, 0], line
    errors = (np.median(np.abs(each / truth - 1)) for each in predicted)
    return (
        f"{target[0] / known[-1]:.0f} x the largest",
        str(points),
        *(f"{error:.3f}" for error in errors),
        f"{np.mean((low <= truth) & (truth <= high)):.0%}",
        f"{np.median(high / low):.2f}",
    )
