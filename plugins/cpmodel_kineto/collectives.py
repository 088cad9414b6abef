"""Collective operations of training: their names, and the bytes that a process gives to them."""

from __future__ import annotations

import math
import re
from enum import IntEnum
from functools import lru_cache

import msgspec

from cpmodel_kineto.json_events import Arguments

_UNKNOWN = float("nan")
_MOST = 1e18
"""Largest plausible number of elements."""


class Origin(IntEnum):
    """Layers that record a collective operation, the innermost first.

    Several layers record one operation. Only the innermost one of a file has bytes, so
    that they are counted once.

    Attributes
    ----------
    BACKEND : the library that communicates, such as Gloo or NCCL
    PARAMETERS : the event with the parameters of a call of NCCL
    DISPATCHER : the operator of PyTorch
    """

    BACKEND = 0
    PARAMETERS = 1
    DISPATCHER = 2


_BACKEND = re.compile(r"(?:nccl|rccl|gloo|mpi|ucc|xccl|hccl|oneccl|mccl):\w+")
_OTHERS = {"record_param_comms": Origin.PARAMETERS}
_NO_MESSAGE = re.compile(r"wait|barrier|init|split|coalesced_(?:start|end)", re.IGNORECASE)

_SIZES = {
    **dict.fromkeys(("bool", "byte", "char", "int8", "uint8", "unsigned char", "signed char",
                     "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                     "c10::float8_e4m3fn", "c10::float8_e5m2"), 1),
    **dict.fromkeys(("short", "short int", "int16", "half", "float16", "bfloat16", "c10::half",
                     "c10::bfloat16"), 2),
    **dict.fromkeys(("int", "int32", "float", "float32", "chalf", "c10::complex<c10::half>"), 4),
    **dict.fromkeys(("long", "long int", "int64", "long long", "double", "float64", "cfloat",
                     "c10::complex<float>"), 8),
    **dict.fromkeys(("cdouble", "c10::complex<double>"), 16),
}  # fmt: skip
"""Bytes of an element, by the name of its type in lower case."""


@lru_cache(maxsize=4096)
def origin_of(name: str) -> Origin | None:
    """Return which layer recorded a call; None = it is not a collective operation with a message.

    >>> origin_of("gloo:all_reduce"), origin_of("c10d::allgather_"), origin_of("aten::add")
    (<Origin.BACKEND: 0>, <Origin.DISPATCHER: 2>, None)
    """
    if len(name) > 100 or _NO_MESSAGE.search(name):
        return None
    if _BACKEND.fullmatch(name):
        return Origin.BACKEND
    return Origin.DISPATCHER if name.startswith("c10d::") else _OTHERS.get(name)


def bytes_of(args: Arguments | None) -> float:
    """Return the bytes that a process gives to an operation; NaN = not known."""
    if args is None:
        return _UNKNOWN
    elements = args.elements_in
    if isinstance(elements, int) and isinstance(args.dtype, str) and 0 <= elements < _MOST:
        size = _SIZES.get(args.dtype.lower())
        return _UNKNOWN if size is None else float(elements * size)
    try:
        dims = msgspec.json.decode(bytes(args.dims)) if args.dims else None
        types = msgspec.json.decode(bytes(args.types)) if args.types else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _UNKNOWN
    if not isinstance(dims, list) or not isinstance(types, list) or len(dims) != len(types):
        return _UNKNOWN
    sizes = [_SIZES.get(t.lower()) if isinstance(t, str) else None for t in types]
    # The operators of PyTorch name outputs before inputs, so the last tensor is the input.
    for shape, size in zip(reversed(dims), reversed(sizes), strict=True):
        if size is not None and _is_shape(shape):
            count = math.prod(shape)
            return float(count * size) if count < _MOST else _UNKNOWN
    return _UNKNOWN


def _is_shape(shape: object) -> bool:
    """Return whether a value is the shape of a tensor with at most 64 dimensions."""
    return (
        isinstance(shape, list)
        and len(shape) <= 64
        and all(type(each) is int and 0 <= each < _MOST for each in shape)
    )
