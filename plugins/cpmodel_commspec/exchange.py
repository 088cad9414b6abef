"""Specifications as JSON, written and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from callpath_modeler.errors import InputError
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_commspec import collectives
from cpmodel_commspec.collectives import NAMES
from cpmodel_commspec.computation import Computation, Share
from cpmodel_commspec.expressions import RANK, Expression, Relation, size_of
from cpmodel_commspec.operations import COLLECTIVES, Half, Kind, Mode, Shape
from cpmodel_commspec.specification import Loop, Specification, Step, walk

_SCHEMA = 3
_READ = (2, _SCHEMA)
"""Schema 2 has no computation."""

_MOST_LOOPS = 100
"""So many loops may lie in each other."""
_MOST_OPERATIONS = 2**48
_WIDEST = 1000.0
_MOST_SECONDS = 1e9
_MOST_KEY = 2**48
_MOST_SHARES = 1000
"""So many groups of ranks may have a computation of their own; `computation.find` makes fewer."""
_MOST_BYTES = 2**53
"""Numbers of a specification are smaller, so that sums of them are exact."""

_NAMES = {
    Kind.SEND: frozenset(Mode),
    Kind.ISEND: frozenset(Mode),
    Kind.EXCHANGE: frozenset(Half),
    Kind.COLLECTIVE: frozenset(NAMES),
    Kind.ICOLLECTIVE: frozenset(NAMES),
}
_HINT = "write it again with cpmodel trace spec -f json"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    schema: int
    specification: Specification


def to_json(told: Specification) -> str:
    """Return a specification as JSON."""
    return msgspec.json.encode(_File(_SCHEMA, told)).decode() + "\n"


def read_json(path: Path, known: int = 0) -> Specification:
    """Read a specification.

    Parameters
    ----------
    known : number of operations that another input of the command has anyway, such as a trace

    Raises
    ------
    InputError
        If it cannot be read, or is none, or has more operations than its size allows.
    """
    try:
        content = path.read_bytes()
    except OSError as cause:
        raise InputError(f"{path}: {cause.strerror}", hint="check the file") from cause
    limits = InputLimits.of(path, len(content))
    try:
        file = msgspec.json.decode(content, type=_File)
        _require(file.schema in _READ, f"schema {file.schema} is not {_SCHEMA}")
        told = file.specification
        # Communicators list their ranks, so a specification of many is long.
        _require(told.processes <= len(content), f"{told.processes} ranks are too many")
        _check(told)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as cause:
        raise InputError(f"{path}: no specification: {cause}", hint=_HINT) from cause
    # Commands expand the operations, and walk all lines and the loops around them for each rank.
    fewer = "write fewer rounds"
    if told.operations > known:
        limits.check(Work.OPERATIONS, told.operations, fewer)
    visits = told.processes * sum(1 + len(around) for _, around in walk(told.body))
    limits.check(Work.LINES, visits, fewer)
    return told


def _check(told: Specification) -> None:
    """Raise `ValueError` if parts of a specification do not fit together."""
    known = range(told.processes)
    words = [told.program, *told.left_out, *(one.name for one in told.communicators)]
    _require(all(map(str.isprintable, words)), "a name with control characters")
    members_of = [
        {rank: len(group) for group in one.groups for rank in group} for one in told.communicators
    ]
    for communicator in told.communicators:
        members = [rank for group in communicator.groups for rank in group]
        _require(len(set(members)) == len(members), "a rank is in a communicator twice")
        _require(all(rank in known for rank in members), "a communicator of unknown ranks")
        _require(bool(members) and all(communicator.groups), "a communicator without ranks")
    for shape in told.shapes:
        _check_shape(told, shape)
    counts = 0
    members_in: dict[int, frozenset[int]] = {}
    for node, around in walk(told.body):
        ranks = node.ranks
        _require(len(around) <= _MOST_LOOPS, "loops lie in each other too deeply")
        _require(bool(ranks) and all(rank in known for rank in ranks), "an unknown rank")
        _require(all(a < b for a, b in pairwise(ranks)), "ranks out of order")
        if around:
            within = all(map(_members(around[-1], members_in), ranks))
            _require(within, "a rank that is not in the loop around")
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
            _check_step(told, node, counted, members_of)
            _check_computation(node.computing, ranks, counted)
            calls = len(ranks) * size_of(counted)
            _require(_is_time(node.calling / calls), "an impossible time of calls")
    _require(counts == told.operations, f"{counts} operations are not {told.operations}")
    _check_computation(told.ending, tuple(known), ())
    _require(_is_time(told.seconds) and _is_time(told.run_time), "an impossible run time")
    bands = told.band, told.run_time_band
    _require(all(0 <= band <= _WIDEST for band in bands), "an impossible band")


def _members(loop: Loop, known: dict[int, frozenset[int]]) -> Callable[[int], bool]:
    """Return whether ranks take part in a loop; `known` keeps the ranks of loops."""
    if id(loop) not in known:
        known[id(loop)] = frozenset(loop.ranks)
    return known[id(loop)].__contains__


def _check_shape(told: Specification, shape: Shape) -> None:
    comms = range(len(told.communicators))
    _require(shape.kind is Kind.WAIT or shape.comm in comms, "an unknown communicator")
    _require(all(place >= 0 for place in shape.places), "a place below zero")
    _require(len(set(shape.places)) == len(shape.places), "a place twice")
    names = _NAMES.get(shape.kind)
    _require(names is None or shape.name in names, f"an unknown name of a {shape.kind}")
    has_form = shape.kind not in COLLECTIVES or collectives.has_form(shape.name, shape.form)
    _require(has_form, f"an unknown form of {shape.name}")
    _require(shape.name.isprintable(), "a name with control characters")
    _require(all(0 < abs(size) < _MOST_BYTES for size in shape.grid), "a grid of no size")


def _check_step(
    told: Specification, step: Step, counts: Sequence[int], members_of: Sequence[Mapping[int, int]]
) -> None:
    _require(step.shape in range(len(told.shapes)), "an unknown shape")
    shape = told.shapes[step.shape]
    _require(set(step.numbers) == set(shape.fields), f"a {shape.kind} of other numbers")
    partners = {end.peer for end in shape.ends}
    _require(partners == set(step.partners), f"a {shape.kind} of other partners")
    for partner in step.partners.values():
        is_torus = partner.relation is Relation.TORUS
        _require(
            not is_torus
            or (size_of(partner.dimensions) == told.processes and min(partner.dimensions) > 0),
            "a torus of other sizes",
        )
    size_of_group: Mapping[int, int] = {}
    if shape.comm >= 0:
        size_of_group = members_of[shape.comm]
        is_member = all(rank in size_of_group for rank in step.ranks)
        _require(is_member, "a rank outside of its communicator")
    lengths = {RANK: len(step.ranks), **dict(enumerate(counts))}
    for field, number in step.numbers.items():
        sizes = tuple(lengths.get(axis, -1) for axis in number.axes)
        fits = sizes == number.sizes and list(number.axes) == sorted(set(number.axes))
        fits &= len(number.table) == (size_of(sizes) if sizes else 0)
        _require(fits and len(number.steps) <= len(counts), "a table of other sizes")
        for rank, (low, high) in zip(step.ranks, _bounds(number, step.ranks, counts), strict=True):
            most = told.processes if field in partners else _MOST_BYTES
            if field == "root":
                most = size_of_group[rank]
            is_distance = field in partners and step.partners[field].relation is Relation.DISTANCE
            shift = rank if is_distance else 0
            _require(low + shift >= 0 and high + shift < most, f"a {field} out of range")


def _bounds(
    number: Expression, ranks: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield the least and the most number of each rank, which loops need not be expanded for."""
    ends = [
        sorted((0, step * (count - 1))) for step, count in zip(number.steps, counts, strict=False)
    ]
    least, most = (number.base + sum(end[k] for end in ends) for k in (0, 1))
    row = len(number.table) // len(ranks) if RANK in number.axes else 0
    ends_of_all = min(number.table, default=0), max(number.table, default=0)
    for place, rank in enumerate(ranks):
        own = number.table[place * row : (place + 1) * row]
        low, high = (min(own), max(own)) if row else ends_of_all
        shift = number.rank * rank
        yield least + shift + low, most + shift + high


def _check_computation(
    told: Computation | None, ranks: Sequence[int], counts: Sequence[int]
) -> None:
    if told is None:
        return
    _require(0 < told.key <= _MOST_KEY and told.key % 2 == 0, "a key that cannot be")
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
    _require(len(shares) <= _MOST_SHARES, "too many shares of computation")
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
