"""From merged programs to a specification with formulas for everything that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable
from callpath_modeler.units import counted
from cpmodel_commspec.compression.merging import Line, Merged, Rounds, placed
from cpmodel_commspec.formulas import variable
from cpmodel_commspec.operations import FIELDS, End, Shape
from cpmodel_commspec.scalable import conditions
from cpmodel_commspec.scalable.choice import Choice
from cpmodel_commspec.scalable.conditions import Condition, Part
from cpmodel_commspec.scalable.forms import POWERS, Form, Relation
from cpmodel_commspec.scalable.numbers import Misfit, Number, Sample, find
from cpmodel_commspec.scalable.quantities import whole
from cpmodel_commspec.scalable.scales import AXES, ENDS, ODD, PARTNERS, PEER, RANK, ROUNDS, features
from cpmodel_commspec.scalable.specification import Loop, Node, Step
from cpmodel_commspec.scalable.tables import Joint, Table
from cpmodel_commspec.scalable.times import Rows
from cpmodel_commspec.scalable.tokens import Meaning, Tokens

_UNKNOWN = Number(whole(0))


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that has no formula.

    Attributes
    ----------
    line : number of the line, from 1
    call : the call path
    what : the number, or the condition
    reason : the values in the traces
    """

    line: int
    call: str
    what: str
    reason: str

    def __str__(self) -> str:
        """Return the problem in one line."""
        return f"line {self.line} ({self.call}): {self.what}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Programs:
    """The different sequences of ranks.

    Attributes
    ----------
    trace_of : the trace of each program
    ranks_of : the ranks of each program
    """

    trace_of: Sequence[int]
    ranks_of: Sequence[Int64Array]


class UnexplainedError(DataError):
    """Lines have no formula.

    Attributes
    ----------
    problems : one for each number
    """

    def __init__(self, problems: Sequence[Problem], hint: str) -> None:
        rest = len(problems) - 1
        more = f"; {counted(rest, 'more number')} without a formula" if rest else ""
        super().__init__(f"no formula: {problems[0]}{more}", hint=hint)
        self.problems = tuple(problems)


_Places = Mapping[int, Int64Array]
"""By program, the numbers of its operations in a node, [rounds of all loops around x n]."""

_Counts = Mapping[int, tuple[int, ...]]
"""By program, the rounds of each loop around."""


class Builder:
    """Builder of the specification; `problems` are the lines without a formula."""

    def __init__(
        self, joint: Joint, tables: Sequence[Table], choice: Choice, tokens: Tokens,
        programs: Programs,
        element: int = 0,
    ) -> None:  # fmt: skip
        self._joint, self._tables, self._choice = joint, tables, choice
        self._tokens, self._programs = tokens, programs
        self._shapes: dict[Shape, int] = {}
        self._line, self._element = 0, element
        self._axes = AXES[: choice.dimensions] if choice.dimensions > 1 else ()
        self.problems: list[Problem] = []
        self.lines: dict[int, list[Rows]] = {}

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the lines so far."""
        return tuple(self._shapes)

    def nodes(self, merged: Sequence[Merged]) -> tuple[Node, ...]:
        """Return the program with its formulas."""
        places, counts = {}, {}
        for program, (trace, ranks) in enumerate(
            zip(self._programs.trace_of, self._programs.ranks_of, strict=True)
        ):
            begins = self._tables[trace].begins
            n = int(begins[ranks[0] + 1] - begins[ranks[0]])
            places[program], counts[program] = np.arange(n)[np.newaxis], ()
        domain = [np.arange(table.processes) for table in self._tables]
        return self._filled(merged, places, counts, domain)

    def _filled(
        self, merged: Sequence[Merged], places: _Places, counts: _Counts,
        domain: Sequence[Int64Array],
    ) -> tuple[Node, ...]:  # fmt: skip
        filled: list[Node] = []
        for node, here in placed(merged, places):
            inside = {program: counts[program] for program in here}
            self._line += 1
            pair = self._pair(node, here)
            if pair is not None:
                for half in (0, 1):
                    self._line += half
                    own = {k: x[:, half : half + 1] for k, x in here.items()}
                    filled.append(self._step(pair, own, inside, domain))
            elif isinstance(node, Rounds):
                filled.append(self._loop(node, here, inside, domain))
            else:
                filled.append(self._step(node, here, inside, domain))
        return tuple(filled)

    def _pair(self, node: Merged, here: _Places) -> Line | None:
        """Return the operation of a loop that is two statements, with different numbers each."""
        if not isinstance(node, Rounds) or set(node.counts.values()) != {2} or len(node.body) != 1:
            return None
        line = node.body[0]
        if not isinstance(line, Line) or self._tokens.meanings[line.token].is_free:
            return None
        for program, places in here.items():
            table = self._tables[self._programs.trace_of[program]]
            for rank in self._programs.ranks_of[program].tolist():
                values = table.values[table.begins[rank] + places]
                if (values[:, 0] != values[:, 1]).any():
                    return line
        return None

    def _loop(
        self, node: Rounds, here: _Places, counts: _Counts, domain: Sequence[Int64Array]
    ) -> Node:
        line, meanings = self._line, self._tokens.meanings
        lines = [meanings[x.token] for x in node.body if isinstance(x, Line)]
        is_rounds = any(form.relation in POWERS for one in lines for form in one.forms)
        chosen = self._ranks(node.who)
        condition = self._condition(domain, chosen, (), f"loop around {self._call(lines)}")
        samples = []
        for k, ranks in enumerate(chosen):
            own = np.zeros(self._tables[k].processes, np.int64)
            for program, count in node.counts.items():
                if self._programs.trace_of[program] == k:
                    own[self._programs.ranks_of[program]] = count
            scale = self._choice.scales[k]
            samples.append(Sample(scale, own[ranks], features(scale, ranks, ())))
        names = (*ROUNDS, *self._axes, RANK)
        rounds = self._number(
            samples, names, "rounds", self._call(lines), line, is_rounds=is_rounds
        )
        inner = {k: x.reshape(x.shape[0] * node.counts[k], -1) for k, x in here.items()}
        within = {k: (*counts[k], node.counts[k]) for k in here}
        return Loop(rounds, condition, self._filled(node.body, inner, within, chosen))

    def _step(
        self, node: Line, here: _Places, counts: _Counts, domain: Sequence[Int64Array]
    ) -> Step:
        meaning = self._tokens.meanings[node.token]
        shape = self._joint.shapes[meaning.shape]
        call = _path(shape)
        chosen = self._ranks(node.who)
        condition = self._condition(domain, chosen, meaning.forms, call)
        rows, known = self._rows(node, here, counts)
        found: dict[str, Number] = {}
        forms: dict[str, Form] = {}
        for end, (field, told) in enumerate(
            zip((x.peer for x in shape.ends), meaning.forms, strict=True)
        ):
            forms[field] = told
            constant = meaning.constants[end]
            if constant is not None:
                found[field] = Number(whole(constant, self._choice.dimensions))
            else:
                given = [self._tokens.given[k][at, end] for k, at in enumerate(rows)]
                names = (*self._loops(counts), *PARTNERS, *self._axes, RANK)
                found[field] = self._number(
                    self._samples(given, known), names, field, call, self._line
                )
        for field in shape.fields:
            if field not in found:
                found[field] = self._field(field, shape, meaning, rows, known, counts, call)
        loops = self._loops(counts)
        firsts = [of[loops[0]] == 0 if loops else np.ones(len(of[RANK]), np.bool_) for of in known]
        self.lines[self._line] = [
            Rows(at, is_first) for at, is_first in zip(rows, firsts, strict=True)
        ]
        number = self._shape(shape, rows)
        return Step(number, condition, found, forms)

    def _field(
        self, field: str, shape: Shape, meaning: Meaning, rows: Sequence[Int64Array],
        known: Sequence[Mapping[str, Int64Array]], counts: _Counts, call: str,
    ) -> Number:  # fmt: skip
        end = next((x for x in shape.ends if field in x), None)
        is_any = end is not None and meaning.forms[shape.ends.index(end)].relation is Relation.ANY
        is_size = field in {"bytes", "received"}
        if is_any and is_size:
            # The message that it takes has the size.
            return _UNKNOWN
        column = FIELDS.index(field)
        values = [self._tables[k].values[at, column] for k, at in enumerate(rows)]
        if end is not None:
            known = self._with_peers(end, rows, known)
        peer = [PEER] if end is not None and not is_any else []
        # Sizes depend on the partner only where the places of both are no grid.
        names = [*self._loops(counts), *([] if is_size else [*peer, ODD]), *self._axes, RANK]
        names += [*peer, *ENDS] if is_size else []
        return self._number(
            self._samples(values, known), names, field, call, self._line, is_size=is_size,
            loops=self._loops(counts) if is_size else (),
        )  # fmt: skip

    def _with_peers(
        self, end: End, rows: Sequence[Int64Array], known: Sequence[Mapping[str, Int64Array]]
    ) -> list[Mapping[str, Int64Array]]:
        peer = FIELDS.index(end.peer)
        return [
            {**of, PEER: self._tables[k].values[at, peer]}
            for k, (at, of) in enumerate(zip(rows, known, strict=True))
        ]

    def _samples(
        self, values: Sequence[Int64Array], known: Sequence[Mapping[str, Int64Array]]
    ) -> list[Sample]:
        return [
            Sample(scale, own, of)
            for scale, own, of in zip(self._choice.scales, values, known, strict=True)
        ]

    def _rows(
        self, node: Line, here: _Places, counts: _Counts
    ) -> tuple[list[Int64Array], list[Mapping[str, Int64Array]]]:
        """Return by trace the operations of a line, [n], and their features."""
        depth = len(next(iter(counts.values()))) if counts else 0
        rows: list[list[Int64Array]] = [[] for _ in self._tables]
        rounds: list[list[list[Int64Array]]] = [[[] for _ in range(depth)] for _ in self._tables]
        for program in sorted(node.who):
            k, ranks = self._programs.trace_of[program], self._programs.ranks_of[program]
            at = here[program][:, 0]
            indices = np.indices(counts[program]).reshape(depth, -1) if depth else np.empty((0, 1))
            for rank in ranks.tolist():
                rows[k].append(self._tables[k].begins[rank] + at)
                for level in range(depth):
                    rounds[k][level].append(indices[level])
        found, known = [], list[Mapping[str, Int64Array]]()
        nothing = np.empty(0, np.int64)
        for k, table in enumerate(self._tables):
            joined = np.concatenate([nothing, *rows[k]])
            loops = [np.concatenate([nothing, *own]) for own in rounds[k]]
            found.append(joined)
            known.append(features(self._choice.scales[k], table.ranks[joined], loops))
        return found, known

    @staticmethod
    def _loops(counts: _Counts) -> list[str]:
        """Return the variables of the loops around, the innermost first."""
        depth = len(next(iter(counts.values()))) if counts else 0
        return [variable(k) for k in reversed(range(depth))]

    def _ranks(self, who: frozenset[int]) -> list[Int64Array]:
        """Return by trace the ranks of programs, in order."""
        found = []
        for k in range(len(self._tables)):
            own = [self._programs.ranks_of[x] for x in who if self._programs.trace_of[x] == k]
            found.append(np.sort(np.concatenate([np.empty(0, np.int64), *own])))
        return found

    def _condition(
        self, domain: Sequence[Int64Array], chosen: Sequence[Int64Array], forms: Sequence[Form],
        call: str,
    ) -> Condition:  # fmt: skip
        parts = [
            Part(scale, ranks, np.isin(ranks, own))
            for scale, ranks, own in zip(self._choice.scales, domain, chosen, strict=True)
        ]
        found = conditions.find(parts, self._choice.dimensions, forms)
        if found is None:
            told = (
                f"{_list(own)} at {part.scale}" for part, own in zip(parts, chosen, strict=True)
            )
            self.problems.append(Problem(self._line, call, "who takes part", ", ".join(told)))
            return Condition()
        return found

    def _number(
        self, samples: Sequence[Sample], names: Sequence[str], what: str, call: str, line: int, *,
        is_size: bool = False, is_rounds: bool = False, loops: Sequence[str] = (),
    ) -> Number:  # fmt: skip
        found = find(
            samples, self._choice.dimensions, names, is_size=is_size, is_rounds=is_rounds,
            unit=self._element * is_size, loops=loops,
        )  # fmt: skip
        if isinstance(found, Misfit):
            self.problems.append(Problem(line, call, what, found.reason))
            return _UNKNOWN
        return found

    def _shape(self, shape: Shape, rows: Sequence[Int64Array]) -> int:
        """Return the number of the shape of a line with all its call sites."""
        sites: dict[tuple[str, ...], None] = {}
        for k, at in enumerate(rows):
            own = np.concatenate([x.shapes for x in self._joint.traces[k].ranks])[at]
            for number in np.unique(own).tolist():
                sites[self._joint.shapes[number].site] = None
        first, *others = sites or {shape.site: None}
        told = msgspec.structs.replace(shape, site=first, others=tuple(others))
        return self._shapes.setdefault(told, len(self._shapes))

    def _call(self, lines: Sequence[Meaning]) -> str:
        return _path(self._joint.shapes[lines[0].shape]) if lines else "loops"


def _path(shape: Shape) -> str:
    name = shape.call or shape.name or str(shape.kind)
    return printable("/".join((*shape.site[1:], name)))


_SHOWN = 6


def _list(ranks: Int64Array) -> str:
    if not len(ranks):
        return "no rank"
    shown = " ".join(map(str, ranks[:_SHOWN].tolist()))
    more = f" and {len(ranks) - _SHOWN} more" if len(ranks) > _SHOWN else ""
    return f"rank{'s' * (len(ranks) > 1)} {shown}{more}"
