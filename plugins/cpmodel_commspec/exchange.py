"""Specifications as JSON, written and read back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from callpath_modeler.errors import InputError
from cpmodel_commspec.computation import Computation, Share
from cpmodel_commspec.expressions import RANK, size_of
from cpmodel_commspec.operations import Half, Kind
from cpmodel_commspec.partners import Relation
from cpmodel_commspec.specification import Loop, Specification, Step, walk

_SCHEMA = 3
_READ = (2, _SCHEMA)
"""Schema 2 has no computation."""

_MOST_LOOPS = 100
"""So many loops may lie in each other."""
_MOST_OPERATIONS = 2**48
_MOST_SECONDS = 1e9
_MOST_KEY = 2**48
_HINT = "write it again with cpmodel trace spec -f json"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    schema: int
    specification: Specification


def to_json(told: Specification) -> str:
    """Return a specification as JSON."""
    return msgspec.json.encode(_File(_SCHEMA, told)).decode() + "\n"


def read_json(path: Path) -> Specification:
    """Read a specification.

    Raises
    ------
    InputError
        If it cannot be read, or is none.
    """
    try:
        content = path.read_bytes()
    except OSError as cause:
        raise InputError(f"{path}: {cause.strerror}", hint="check the file") from cause
    try:
        file = msgspec.json.decode(content, type=_File)
        _require(file.schema in _READ, f"schema {file.schema} is not {_SCHEMA}")
        told = file.specification
        # Communicators list their ranks, so a specification of many is long.
        _require(told.processes <= len(content), f"{told.processes} ranks are too many")
        _check(told)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as cause:
        raise InputError(f"{path}: no specification: {cause}", hint=_HINT) from cause
    return file.specification


def _check(told: Specification) -> None:
    """Raise `ValueError` if parts of a specification do not fit together."""
    known = range(told.processes)
    for communicator in told.communicators:
        members = [rank for group in communicator.groups for rank in group]
        _require(len(set(members)) == len(members), "a rank is in a communicator twice")
        _require(all(rank in known for rank in members), "a communicator of unknown ranks")
    comms = range(len(told.communicators))
    for shape in told.shapes:
        _require(shape.kind is Kind.WAIT or shape.comm in comms, "an unknown communicator")
        _require(all(place >= 0 for place in shape.places), "a place below zero")
        is_half = shape.kind is not Kind.EXCHANGE or shape.name in set(Half)
        _require(is_half, "an unknown half of an exchange")
    counts = 0
    for node, around in walk(told.body):
        ranks = node.ranks
        _require(len(around) <= _MOST_LOOPS, "loops lie in each other too deeply")
        _require(bool(ranks) and all(rank in known for rank in ranks), "an unknown rank")
        _require(all(a < b for a, b in pairwise(ranks)), "ranks out of order")
        if around:
            _require(set(ranks) <= set(around[-1].ranks), "a rank that is not in the loop around")
        if isinstance(node, Loop):
            _require(node.count > 0, "a loop without rounds")
            # Rounds count even where a rank has no operation in them.
            rounds = size_of([node.count, *(loop.count for loop in around)])
            _require(rounds <= _MOST_OPERATIONS, "there are too many rounds")
        else:
            counted = [loop.count for loop in around]
            # These are numbers of any size; those of arrays are not.
            counts += len(ranks) * size_of(counted)
            _require(counts <= _MOST_OPERATIONS, "there are too many operations")
            _check_step(told, node, counted)
            _check_computation(node.computing, ranks, counted)
    _require(counts == told.operations, f"{counts} operations are not {told.operations}")
    _check_computation(told.ending, tuple(known), ())
    _require(_is_time(told.seconds), "an impossible run time")


def _check_step(told: Specification, step: Step, counts: Sequence[int]) -> None:
    _require(step.shape in range(len(told.shapes)), "an unknown shape")
    shape = told.shapes[step.shape]
    _require(set(step.numbers) == set(shape.fields), f"a {shape.kind} of other numbers")
    partners = {end.peer for end in shape.ends}
    _require(partners == set(step.partners), f"a {shape.kind} of other partners")
    for partner in step.partners.values():
        is_torus = partner.relation is Relation.TORUS
        _require(
            not is_torus or size_of(partner.dimensions) == told.processes, "a torus of other sizes"
        )
    lengths = {RANK: len(step.ranks), **dict(enumerate(counts))}
    for number in step.numbers.values():
        sizes = tuple(lengths.get(axis, -1) for axis in number.axes)
        fits = sizes == number.sizes and list(number.axes) == sorted(set(number.axes))
        fits &= len(number.table) == (size_of(sizes) if sizes else 0)
        _require(fits and len(number.steps) <= len(counts), "a table of other sizes")


def _check_computation(
    told: Computation | None, ranks: Sequence[int], counts: Sequence[int]
) -> None:
    if told is None:
        return
    _require(0 <= told.key <= _MOST_KEY and told.key % 2 == 0, "a key that cannot be")
    rounds = size_of(counts)
    inner = counts[-1] if counts else 1
    _require(not told.first or inner > 1, "first rounds of no loop")
    first = rounds // inner if told.first else 0
    _check_shares(told.usual, ranks, rounds - first)
    if told.first:
        _check_shares(told.first, ranks, first)


def _check_shares(shares: Sequence[Share], ranks: Sequence[int], rounds: int) -> None:
    members = sorted(rank for share in shares for rank in share.ranks)
    _require(members == list(ranks), "computation of other ranks")
    for share in shares:
        told = share.seconds
        _require(bool(share.ranks), "computation of no rank")
        _require(all(a < b for a, b in pairwise(share.ranks)), "ranks out of order")
        _require(len(told.counts) == len(told.means), "a histogram of other sizes")
        _require(all(count > 0 for count in told.counts), "an empty bin")
        _require(told.count == rounds * len(share.ranks), "computation of other rounds")
        seconds = (told.least, *told.means, told.most)
        _require(all(map(_is_time, seconds)), "an impossible time")
        _require(all(a <= b for a, b in pairwise(seconds)), "times out of order")


def _is_time(seconds: float) -> bool:
    """Tell whether a program can compute for so long; not a number compares as False."""
    return 0 <= seconds <= _MOST_SECONDS


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)
