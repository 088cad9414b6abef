"""The sequences of all ranks in common tokens: what may become one line has one token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.scalable.choice import Choice, Chooser, Told, form_of
from cpmodel_commspec.scalable.forms import (
    POWERS,
    Form,
    Relation,
    Step3,
    distances,
    is_step,
    numbers,
    wrapped,
)
from cpmodel_commspec.scalable.scales import Scale
from cpmodel_commspec.scalable.tables import Messages, Statement, Table

_MOST_ENDS = 2


class Meaning(NamedTuple):
    """The meaning of a token.

    Attributes
    ----------
    shape : number of the shape
    forms : of the partner of each end
    constants : the number of each end that all its messages have; None if a formula gives it
    is_free : whether ranks of one trace may repeat it a different number of times
    """

    shape: int
    forms: tuple[Form, ...] = ()
    constants: tuple[int | None, ...] = ()
    is_free: bool = False


@dataclass
class Tokens:
    """The tokens of all traces.

    Attributes
    ----------
    of_traces : of each trace, the token of each operation, [n]
    given : of each trace, the numbers of partners that formulas give, [n x ends]
    meanings : of each token
    """

    of_traces: list[Int64Array]
    given: list[Int64Array]
    meanings: list[Meaning] = field(default_factory=list)

    @property
    def families(self) -> frozenset[int]:
        """The tokens whose partners are series, as those at powers of two."""
        meanings = enumerate(self.meanings)
        return frozenset(
            k
            for k, x in meanings
            if x.is_free and None in x.constants and Form(Relation.OTHER) not in x.forms
        )


def tokens(
    tables: Sequence[Table], statements: Sequence[Statement], choice: Choice, chooser: Chooser
) -> Tokens:
    """Return the tokens of all operations."""
    found = Tokens(
        [np.zeros(len(table.ranks), np.int64) for table in tables],
        [np.zeros((len(table.ranks), _MOST_ENDS), np.int64) for table in tables],
    )
    family = {number: k for k, one in enumerate(choice.families) for number in one.statements}
    known: dict[tuple[int, ...], int] = {}
    for number, (shape, _) in enumerate(statements):
        ends = chooser.messages(number)
        coded = [
            _coded(one, told, choice.scales)
            for one, told in zip(ends, choice.told.get(number, ()), strict=True)
        ]
        serves = chooser.serves(number)
        group = (1, family[number]) if number in family else (0, number)
        for k, table in enumerate(tables):
            rows = table.rows.get(number)
            if rows is None:
                continue
            codes = [one.codes[k] for one in coded]
            for end, one in enumerate(coded):
                if one.told.is_valued:
                    found.given[k][rows, end] = one.given[k]
            table_of = np.stack([*codes, np.zeros_like(rows)], axis=1)
            own, inverse = np.unique(table_of, axis=0, return_inverse=True)
            token = []
            for row in map(tuple, own.tolist()):
                key = (*group, *row)
                if key not in known:
                    known[key] = len(found.meanings)
                    meaning = _meaning(shape, coded, row, ends, choice.scales)
                    free = meaning.is_free or serves
                    found.meanings.append(meaning._replace(is_free=free))
                token.append(known[key])
            found.of_traces[k][rows] = np.array(token, np.int64)[inverse.ravel()]
    return found


@dataclass
class _Coded:
    """One end of a statement: a code of each message by trace, which tells lines apart."""

    told: Told
    codes: list[Int64Array]
    given: list[Int64Array]
    steps: list[Step3]


def _coded(messages: Messages, told: Told, scales: Sequence[Scale]) -> _Coded:
    nothing = [np.zeros(len(rows), np.int64) for rows in messages.rows]
    if told.relation in {Relation.GRID, Relation.LINE}:
        steps, codes = _by_step(messages, told.relation, scales)
        return _Coded(told, codes, nothing, steps)
    if told.relation is Relation.ANY:
        return _Coded(told, nothing, nothing, [])
    found = []
    for (ranks, peers), scale in zip(messages.in_order, scales, strict=True):
        own = numbers(told.relation, scale, ranks, peers)
        assert own is not None
        found.append(own)
    return _Coded(told, nothing if told.is_valued else found, found, [])


def _by_step(
    messages: Messages, relation: Relation, scales: Sequence[Scale]
) -> tuple[list[Step3], list[Int64Array]]:
    """Return distances, and the number of the distance of each message by trace.

    On a grid of two places, a neighbour is at both sides. Then the messages of a rank to it are, in
    turn, those to either side, in the order of the largest trace.
    """
    grids = [Scale(s.processes) for s in scales] if relation is Relation.LINE else scales
    last = max(messages.used())
    steps: dict[Step3, int] = {}
    for a, b, c in distances(grids[last], *messages.in_order[last]).T.tolist():
        steps.setdefault((a, b, c), len(steps))
    around = {step for step in steps if _goes_around(grids[last], *messages.in_order[last], step)}
    codes = []
    for grid, (ranks, peers) in zip(grids, messages.in_order, strict=True):
        fits = np.stack([_fits(grid, ranks, peers, step, step in around) for step in steps])
        missing = np.flatnonzero(fits.sum(axis=0) == 0)
        own = np.zeros(len(ranks), np.int64)
        turn = _occurrence(ranks, peers) % np.maximum(fits.sum(axis=0), 1)
        places = np.cumsum(fits, axis=0) * fits
        if len(ranks):
            own = np.argmax(places == turn + 1, axis=0).astype(np.int64)
        for row, (a, b, c) in zip(
            missing.tolist(),
            distances(grid, ranks[missing], peers[missing]).T.tolist(),
            strict=True,
        ):
            own[row] = steps.setdefault((a, b, c), len(steps))
        codes.append(own)
    return list(steps), codes


def _goes_around(scale: Scale, ranks: Int64Array, peers: Int64Array, step: Step3) -> bool:
    """Tell whether any message at a distance goes over an end of the grid."""
    rows = np.flatnonzero(is_step(scale, ranks, peers, step))
    return any(wrapped(scale, ranks[rows], peers[rows], step))


def _fits(
    scale: Scale, ranks: Int64Array, peers: Int64Array, step: Step3, may_wrap: bool
) -> Int64Array:
    """Return which messages [n] are at a distance; `may_wrap` tells whether ends meet."""
    fits = is_step(scale, ranks, peers, step)
    if not may_wrap:
        moved = scale.places(peers) - scale.places(ranks)
        fits &= (moved == np.array(step)[:, np.newaxis]).all(axis=0)
    return fits


def _occurrence(ranks: Int64Array, peers: Int64Array) -> Int64Array:
    """Return how many messages of a rank to the same partner come before each, [n]."""
    order = np.lexsort((peers, ranks))
    pairs = np.stack([ranks[order], peers[order]], axis=1)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    begins = np.flatnonzero(is_new)
    count = np.arange(len(order)) - np.repeat(begins, np.diff([*begins, len(order)]))
    found = np.empty(len(order), np.int64)
    found[order] = count
    return found


def _meaning(
    shape: int, coded: Sequence[_Coded], codes: Sequence[int], ends: Sequence[Messages],
    scales: Sequence[Scale],
) -> Meaning:  # fmt: skip
    forms, constants = [], list[int | None]()
    for one, code, messages in zip(coded, codes, ends, strict=False):
        relation = one.told.relation
        if relation in {Relation.GRID, Relation.LINE}:
            chosen = [np.flatnonzero(own == code) for own in one.codes]
            forms.append(form_of(messages, relation, one.steps[code], scales, chosen))
            constants.append(0)
        else:
            forms.append(Form(relation))
            constants.append(None if one.told.is_valued else code)
    is_free = any(form.relation in POWERS or form.relation is Relation.ANY for form in forms)
    is_free |= any(one.told.is_series for one in coded)
    return Meaning(shape, tuple(forms), tuple(constants), is_free)
