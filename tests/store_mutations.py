"""Structural changes of a store, with correct checksums."""

from __future__ import annotations

import io
import json
import random
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HEADER, CHECKSUMS = "header.json", "checksums.json"
TYPES = (
    "f8",
    "f4",
    "i8",
    "i4",
    "i2",
    "i1",
    "u2",
    "u1",
    "?",
    "c16",
    ">f8",
    ">i2",
    "S4",
    "U2",
    "M8[s]",
)
NUMBERS = (
    *(np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 2.0, -2.0, 1.5, 7.0, 100.0, 32767.0, -32768.0),
    *(1e308, -1e308, 5e-324, 2**31 - 1, -(2**31), 2**63, 1e-300),
)


@dataclass(frozen=True)
class Mutant:
    """A changed store, with a description of the change."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} of {self.where}"


class Stored:
    """A store in memory that can be changed and written."""

    def __init__(self, path: Path) -> None:
        self.header: dict[str, Any] = json.loads((path / HEADER).read_bytes())
        self.arrays = {name: np.load(path / f"{name}.npy") for name in self.header["arrays"]}

    def write(self, path: Path) -> None:
        """Write the store with correct checksums, types and shapes."""
        path.mkdir()
        sums = {}
        for name, array in self.arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            (path / f"{name}.npy").write_bytes(content.getvalue())
            sums[f"{name}.npy"] = zlib.crc32(content.getvalue())
            if isinstance(self.header.get("arrays"), dict):
                self.header["arrays"][name] = [array.dtype.str, list(array.shape)]
        content = json.dumps(self.header).encode("utf-8", "surrogatepass")
        (path / HEADER).write_bytes(content)
        (path / CHECKSUMS).write_text(json.dumps({**sums, HEADER: zlib.crc32(content)}))


def mutate(stored: Stored, rng: random.Random) -> Mutant:
    """Change a store at one, two or three places."""
    made = [_mutate_once(stored, rng) for _ in range(rng.choice((1, 1, 1, 1, 2, 3)))]
    return Mutant(", ".join(m.what for m in made), ", ".join(m.where for m in made))


def _mutate_once(stored: Stored, rng: random.Random) -> Mutant:
    if rng.random() < 0.35:
        return _change_header(stored, rng)
    name = rng.choice(sorted(stored.arrays))
    change = rng.choice(_OF_ARRAYS)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Mutant(change(stored, name, rng), name)


def _retype(stored: Stored, name: str, rng: random.Random) -> str:
    kind = rng.choice(TYPES)
    try:
        stored.arrays[name] = stored.arrays[name].astype(kind)
    except (TypeError, ValueError):
        stored.arrays[name] = np.zeros(stored.arrays[name].shape, kind)
    return f"type {kind}"


def _reinterpret(stored: Stored, name: str, rng: random.Random) -> str:
    array, kind = (
        np.ascontiguousarray(stored.arrays[name]),
        rng.choice(("f8", "f4", "i4", "i2", "u1")),
    )
    try:
        stored.arrays[name] = array.view(kind)
    except (TypeError, ValueError):
        stored.arrays[name] = np.frombuffer(array.tobytes(), "u1")
    return f"bytes read as {kind}"


def _lengthen(stored: Stored, name: str, rng: random.Random) -> str:
    array = stored.arrays[name]
    if not array.ndim:
        return _add_axis(stored, name, rng)
    axis, count = rng.randrange(array.ndim), rng.choice((1, 1, 2, 5, 40, 1000))
    size = array.shape[axis]
    if not size or array.size * (count + 1) > 10**6:
        stored.arrays[name] = np.zeros([max(n, 1) for n in array.shape], array.dtype)
    else:
        stored.arrays[name] = array.take([k % size for k in range(size + count)], axis)
    return f"{count} more along {axis}"


def _shorten(stored: Stored, name: str, rng: random.Random) -> str:
    array = stored.arrays[name]
    if not array.ndim:
        return _add_axis(stored, name, rng)
    axis = rng.randrange(array.ndim)
    left = rng.choice((0, 1, max(array.shape[axis] - 1, 0)))
    stored.arrays[name] = array.take(range(min(left, array.shape[axis])), axis)
    return f"{left} left along {axis}"


def _add_axis(stored: Stored, name: str, rng: random.Random) -> str:
    array = stored.arrays[name]
    axis = rng.randrange(array.ndim + 1)
    stored.arrays[name] = np.expand_dims(array, axis)
    return f"new axis {axis}"


def _reorder(stored: Stored, name: str, rng: random.Random) -> str:
    array = stored.arrays[name]
    how = rng.choice(("transposed", "flat", "order of Fortran", "scalar", "rows reversed"))
    stored.arrays[name] = {
        "transposed": array.T,
        "flat": array.ravel(),
        "order of Fortran": np.asfortranarray(array),
        "scalar": array.ravel()[:1].reshape(()) if array.size else array,
        "rows reversed": array[::-1],
    }[how]
    return how


def _set_values(stored: Stored, name: str, rng: random.Random) -> str:
    array, value = stored.arrays[name].copy(), rng.choice(NUMBERS)
    share = rng.choice((0.0, 0.0, 0.3, 1.0))
    if array.dtype.kind not in "fiub" or not array.size:
        return _retype(stored, name, rng)
    chosen = [k for k in range(array.size) if rng.random() < share] or [rng.randrange(array.size)]
    flat = array.reshape(-1)
    flat[chosen] = np.array(value).astype(array.dtype)
    stored.arrays[name] = array
    return f"{len(chosen)} values {value}"


def _scale(stored: Stored, name: str, rng: random.Random) -> str:
    array, factor = stored.arrays[name], rng.choice((-1.0, 2.0, 1e9, 1e-9, 1e300, 0.0))
    if array.dtype.kind not in "fiu":
        return _retype(stored, name, rng)
    stored.arrays[name] = (array * factor).astype(array.dtype)
    return f"times {factor}"


def _flip_bits(stored: Stored, name: str, rng: random.Random) -> str:
    array = np.ascontiguousarray(stored.arrays[name])
    content = bytearray(array.tobytes())
    if not content:
        return _lengthen(stored, name, rng)
    for _ in range(rng.choice((1, 3, 50))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    stored.arrays[name] = np.frombuffer(bytes(content), array.dtype).reshape(array.shape)
    return "bits flipped"


def _step(stored: Stored, name: str, rng: random.Random) -> str:
    array = stored.arrays[name].copy()
    if array.dtype.kind not in "iu" or not array.size:
        return _set_values(stored, name, rng)
    array.reshape(-1)[rng.randrange(array.size)] += rng.choice((-1, 1))
    stored.arrays[name] = array
    return "an index one off"


def _swap(stored: Stored, name: str, rng: random.Random) -> str:
    other = rng.choice(sorted(stored.arrays))
    arrays = stored.arrays
    arrays[name], arrays[other] = arrays[other], arrays[name]
    return f"exchanged with {other}"


def _drop(stored: Stored, name: str, rng: random.Random) -> str:  # noqa: ARG001
    del stored.arrays[name]
    return "file gone"


_OF_ARRAYS: tuple[Callable[[Stored, str, random.Random], str], ...] = (
    *(_retype, _reinterpret, _lengthen, _shorten, _add_axis, _reorder, _set_values, _set_values),
    *(_set_values, _scale, _flip_bits, _step, _step, _swap, _drop),
)
_TEXTS = ("", "x", "time", "p", "\x1b[31m", "\ud800", "a" * 3000, "../../etc", "<f8", "weak", "1e9")
_ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 3, 1.5, -1.5, 1e308, 2**31, 2**63, 2**64, 10**400, "x", "", "1"),
    *([], {}, [[]], [1], [None], {"a": 1}, "mixture", "classic", "mean", "time"),
)


def _places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value of a header; each kind of place is equally frequent."""
    items = node.items() if isinstance(node, dict) else enumerate(node[:3])
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from _places(value, (*path, key))


def _change_header(stored: Stored, rng: random.Random) -> Mutant:
    places = [place for place in _places(stored.header) if place[0] != "arrays"]
    kinds = sorted({tuple("#" if isinstance(k, int) else k for k in place) for place in places})
    kind = rng.choice(kinds)
    place = rng.choice(
        [p for p in places if tuple("#" if isinstance(k, int) else k for k in p) == kind]
    )
    holder: Any = stored.header
    for key in place[:-1]:
        holder = holder[key]
    return Mutant(_change_value(holder, place[-1], rng), "header " + "/".join(map(str, place)))


def _change_value(holder: Any, key: Any, rng: random.Random) -> str:
    value = holder[key]
    if rng.random() < 0.3:
        holder[key] = rng.choice(_ODD)
        return f"{str(holder[key])[:20]!r} in place of a {type(value).__name__}"
    if rng.random() < 0.15:
        del holder[key]
        return "dropped"
    if isinstance(value, dict) and value:
        return _change_keys(holder, key, rng)
    if isinstance(value, list) and value:
        return _change_order(holder, key, rng)
    if isinstance(value, bool) or value is None:
        holder[key] = not value
    elif isinstance(value, str):
        holder[key] = rng.choice(_TEXTS)
    elif isinstance(value, int | float):
        others = (value + 1, value - 1, -value, value * 2, 0, 1e308, 1e-308, 10**30)
        holder[key] = rng.choice(others)
    return f"{str(holder[key])[:20]!r} in place of {str(value)[:20]!r}"


def _change_keys(holder: Any, key: Any, rng: random.Random) -> str:
    value = holder[key]
    name, how = rng.choice(sorted(value)), rng.choice(("renamed", "reversed", "added"))
    if how == "renamed":
        value[f"{name}x"] = value.pop(name)
    elif how == "reversed":
        holder[key] = dict(reversed(value.items()))
    else:
        value["new"] = value[name]
    return f"a key {how}"


def _change_order(holder: Any, key: Any, rng: random.Random) -> str:
    value, how = holder[key], rng.choice(("reversed", "shortened", "doubled", "shuffled"))
    if how == "shuffled":
        rng.shuffle(value)
    else:
        others = {"reversed": value[::-1], "shortened": value[:-1], "doubled": value * 2}
        holder[key] = others[how]
    return how
