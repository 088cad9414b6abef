"""Hashes of call paths in C and in Python."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from callpath_modeler.modeling.kernels import kernels
from implementations import in_numpy, needs_library

NAMES = [b"program", b"main", "übung".encode(), b"", b"x" * 127, b"y" * 128, b"z" * 1000]


def trees(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return names and depths of call paths in preorder."""
    random = np.random.default_rng(3)
    depth = [0]
    while len(depth) < count:
        depth.append(int(random.integers(0, depth[-1] + 2)))
    return random.integers(0, len(NAMES), count), np.array(depth)


@needs_library
@pytest.mark.parametrize("program", [0, -1])
def test_both_are_the_same(program: int) -> None:
    asked = NAMES, *trees(3000), program
    found = kernels().path_hashes(*asked)
    with in_numpy():
        expected = kernels().path_hashes(*asked)
    np.testing.assert_array_equal(found, expected)


def test_a_hash_is_that_of_the_joined_names() -> None:
    name, depth = np.array([0, 1, 4, 5, 6]), np.arange(5)
    found = kernels().path_hashes(NAMES, name, depth, 0)
    for row in range(1, 5):
        path = b"/".join(NAMES[k] for k in name[1 : row + 1])
        assert found[row].tobytes() == hashlib.blake2b(path, digest_size=16).digest()


def test_no_call_path_has_no_hash() -> None:
    nothing = np.empty(0, np.intp)
    assert kernels().path_hashes([], nothing, nothing, -1).shape == (0, 16)
