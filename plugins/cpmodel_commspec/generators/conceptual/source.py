"""Generator of coNCePTuaL programs: statements about sets of tasks.

The language is that of Pakin (IEEE TPDS 18(10), 2007), version 1.5. It has fewer operations than
MPI. Wu, Mueller and Pakin (ICS 2011, Table I) tell which statements stand for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable
from cpmodel_commspec import formulas
from cpmodel_commspec.computation import Computation, Share
from cpmodel_commspec.generators.conceptual.collectives import Collectives
from cpmodel_commspec.generators.conceptual.phrases import (
    PakinStatement,
    comments_of,
    everyone,
    factor,
    member,
    number,
    statement_lines,
    target,
    tasks,
)
from cpmodel_commspec.generators.statements import INSTEAD_OR_IN_C, heading
from cpmodel_commspec.operations import TOGETHER, End, Kind, Mode, Shape
from cpmodel_commspec.simulation.deadlocks import sites
from cpmodel_commspec.simulation.simulator import completed
from cpmodel_commspec.specification import Loop, Node, Specification, Step, lines_in, walk
from cpmodel_commspec.text import functions_text


@dataclass(frozen=True, slots=True)
class StepMessages:
    """The messages of a step.

    Attributes
    ----------
    ranks : who executes the step, [n]
    peers, tags, sizes : [n x rounds of each loop]
    """

    ranks: Int64Array
    peers: Int64Array
    tags: Int64Array
    sizes: Int64Array

    def of(self, places: Sequence[int]) -> StepMessages:
        """Return the messages of some ranks."""
        rows = list(places)
        return StepMessages(self.ranks[rows], self.peers[rows], self.tags[rows], self.sizes[rows])

    def from_senders(self) -> StepMessages | None:
        """Return received messages as their senders see them; None if these differ by round."""
        flat = self.peers.reshape(len(self.ranks), -1)
        order = np.argsort(flat, axis=0, kind="stable")
        senders = np.take_along_axis(flat, order, 0)
        if (senders != senders[:, :1]).any() or len(np.unique(senders[:, 0])) < len(senders):
            return None

        def sorted_(values: Int64Array) -> Int64Array:
            rows = values.reshape(len(values), -1)
            return np.take_along_axis(rows, order, 0).reshape(values.shape)

        receivers = np.broadcast_to(self.ranks[:, np.newaxis], flat.shape)
        return StepMessages(
            senders[:, 0],
            np.take_along_axis(receivers, order, 0).reshape(self.peers.shape),
            sorted_(self.tags),
            sorted_(self.sizes),
        )

    def equals(self, other: StepMessages) -> bool:
        """Tell whether both are the same messages."""
        mine = (self.ranks, self.peers, self.tags, self.sizes)
        theirs = (other.ranks, other.peers, other.tags, other.sizes)
        return all(map(np.array_equal, mine, theirs))


def message_phrase(messages: StepMessages) -> str:
    """Return the words for a message: its size, and its tag unless all tags are 0."""
    ranks = messages.ranks.tolist()
    size = factor(number(messages.sizes, ranks))
    if not messages.tags.any():
        return f"A {size} BYTE MESSAGE"
    return f"A {size} BYTE MESSAGE USING TAG {factor(number(messages.tags, ranks))}"


def require_distinct_messages(told: Specification) -> None:
    """Raise `DataError` if ranks and tags do not tell messages of communicators apart."""
    seen: dict[int, set[tuple[int, int, int]]] = {}
    for node, around in walk(told.body):
        if not isinstance(node, Step):
            continue
        shape = told.shapes[node.shape]
        counts = [loop.count for loop in around]
        for end in shape.ends:
            if end.is_sent:
                peers = node.numbers[end.peer].values(node.ranks, counts)
                tags = node.numbers[end.tag].values(node.ranks, counts).ravel()
                own = np.repeat(np.array(node.ranks, np.int64), peers[0].size)
                peers = node.partners[end.peer].peer(own, peers.ravel())
                pairs = np.unique(np.stack([own, peers, tags], axis=1), axis=0)
                seen.setdefault(shape.comm, set()).update(map(tuple, pairs.tolist()))
    total = sum(map(len, seen.values()))
    if total > len(set().union(*seen.values())):
        raise DataError(
            "no program: messages of two communicators have the same ranks and tags, and "
            "coNCePTuaL has one communicator",
            hint=INSTEAD_OR_IN_C,
        )


@dataclass(frozen=True, slots=True)
class PartialWaits:
    """The waits that are not for all operations of a rank, as AWAIT is.

    An exchange is a send and a wait, which should not wait for what was started before.

    Attributes
    ----------
    partial : by line, the ranks that wait for some operations only, in any round
    last : by line, those of them that wait for all in the last round of the loop around alone;
        only for lines at the end of a loop
    left : ranks with operations at the end that no AWAIT completes
    """

    partial: dict[int, set[int]]
    last: dict[int, set[int]]
    left: list[int]

    @classmethod
    def of(cls, told: Specification) -> PartialWaits:
        """Find them in the operations of each rank."""
        partial: dict[int, set[int]] = {}
        last: dict[int, set[int]] = {}
        left: list[int] = []
        ends = _ends(told.body, 1)
        starts, completing = {Kind.ISEND, Kind.IRECV}, {Kind.WAIT, Kind.EXCHANGE}
        is_start = np.array([shape.kind in starts for shape in told.shapes], np.bool_)
        is_wait = np.array([shape.kind in completing for shape in told.shapes], np.bool_)
        is_exchange = np.array([shape.kind is Kind.EXCHANGE for shape in told.shapes], np.bool_)
        for rank in range(told.processes):
            shapes = told.of_rank(rank).shapes
            here = is_start[shapes] | is_wait[shapes]
            shapes, lines = shapes[here], told.lines_of_rank(rank)[here]
            is_full = _full(told, shapes.tolist(), starts)
            is_kept = is_wait[shapes] & is_full
            for line in np.unique(lines[is_wait[shapes] & ~is_full]).tolist():
                partial.setdefault(line, set()).add(rank)
                rounds = is_full[lines == line].reshape(-1, ends.get(line, 1))
                is_last = not rounds[:, :-1].any() and bool(rounds[:, -1].all())
                if is_last:
                    last.setdefault(line, set()).add(rank)
                else:
                    is_kept &= lines != line
            waits = np.flatnonzero(is_kept)
            begin = int(waits[-1]) if len(waits) else 0
            is_dropped = is_exchange[shapes] & ~is_kept
            if (is_start[shapes] | is_dropped)[begin:].any():
                left.append(rank)
        return cls(partial, last, left)


def _full(told: Specification, shapes: Sequence[int], starts: Set[Kind]) -> BoolArray:
    """Return whether nothing is under way after each wait of a rank, [n]."""
    found = np.zeros(len(shapes), np.bool_)
    started: list[Shape] = []
    for place, number_ in enumerate(shapes):
        shape = told.shapes[number_]
        if shape.kind in starts:
            started += [shape] * shape.is_awaited
            continue
        if shape.kind is Kind.WAIT:
            _, started = completed(started, shape)
        found[place] = not started
    return found


def _ends(nodes: Sequence[Node], line: int) -> dict[int, int]:
    """Return the lines at the end of loops, with the rounds of the loop; loops nest a few deep."""
    found: dict[int, int] = {}
    for node in nodes:
        if isinstance(node, Loop):
            found |= _ends(node.body, line + 1)
            if isinstance(node.body[-1], Step):
                found[line + lines_in(node) - 1] = node.count
        line += lines_in(node)
    return found


_MICROSECONDS = 1e6


def conceptual_source(told: Specification) -> str:
    """Return the program; `deadlocks.require_safe` says whether it runs to the end.

    Raises
    ------
    DataError
        If the language cannot express an operation.
    """
    return _Source(told).text()


class _Source:
    def __init__(self, told: Specification) -> None:
        self._told = told
        self._collectives = Collectives(told)
        self._waits = PartialWaits.of(told)
        self._line = {id(node): k for k, (node, _) in enumerate(walk(told.body), 1)}
        require_distinct_messages(told)

    def text(self) -> str:
        """Return the program."""
        told = self._told
        statements = self._statements(told.body, ())
        if told.ending is not None:
            statements += self._computed(tuple(range(told.processes)), told.ending, 0)
        if self._waits.left:
            who = everyone(self._waits.left, told.processes)
            about = ["operations that no statement before waits for"]
            statements.append(PakinStatement(f"{who} AWAIT{_s(who)} COMPLETION", about))
        lines = [f"# {printable(line)}".rstrip() for line in self._heading()]
        lines += ["", 'Require language version "1.5".', ""]
        lines.append(
            f'Assert that "this program needs {told.processes} tasks" with '
            f"num_tasks = {told.processes}."
        )
        lines.append("")
        for statement in statements:
            lines += statement_lines(statement, 0, ".")
        return "\n".join(lines) + "\n"

    def _heading(self) -> Iterator[str]:
        commands = [
            "ncptl --backend=c_mpi --output=communicate THIS_FILE.ncptl",
            f"mpirun -n {self._told.processes} ./communicate",
        ]
        yield from heading(self._told, commands, has_calls=False)
        if self._told.ending is not None:
            yield "Computation is the mean of all rounds; less than a microsecond is left out."

    def _statements(self, nodes: Sequence[Node], around: tuple[Loop, ...]) -> list[PakinStatement]:
        found: list[PakinStatement] = []
        k = 0
        while k < len(nodes):
            node = nodes[k]
            if isinstance(node, Loop):
                found += self._loop(node, around)
            elif self._told.shapes[node.shape].kind in TOGETHER:
                steps = self._whole(nodes, k)
                k += len(steps) - 1
                found += self._before(steps, around)
                found += self._together(steps, around)
            elif k + 1 < len(nodes) and (both := self._paired(node, nodes[k + 1], around)):
                pair = [one for one in nodes[k : k + 2] if isinstance(one, Step)]
                k += 1
                found += [*self._before(pair, around), both]
            else:
                found += [*self._before([node], around), *self._single(node, around)]
            k += 1
        return found

    def _before(self, steps: Sequence[Step], around: tuple[Loop, ...]) -> list[PakinStatement]:
        """Return the computation before steps."""
        return [
            one
            for step in steps
            if step.computing is not None
            for one in self._computed(step.ranks, step.computing, len(around))
        ]

    def _computed(
        self, ranks: tuple[int, ...], told: Computation, depth: int
    ) -> list[PakinStatement]:
        """Return the statement that computes for the mean of all rounds, or none."""
        usual, first = (_microseconds(shares, ranks) for shares in (told.usual, told.first))
        if not (usual.any() or first.any()):
            return []
        duration = number(usual, ranks)
        if told.first and (first != usual).any():
            variable = formulas.variable(depth - 1)
            duration = f"({number(first, ranks)} IF {variable} = 0 OTHERWISE {duration})"
        processes = self._told.processes
        is_same = (usual == usual[0]).all() and (first == first[:1]).all()
        who = everyone(ranks, processes) if is_same else tasks(ranks, processes)
        return [PakinStatement(f"{who} COMPUTE{_s(who)} FOR {factor(duration)} MICROSECONDS")]

    def _loop(self, node: Loop, around: tuple[Loop, ...]) -> list[PakinStatement]:
        body = self._statements(node.body, (*around, node))
        variable = formulas.variable(len(around))
        head = f"FOR {node.count} REPETITIONS"
        if node.is_counted(len(around)) or _has_first(node):
            values = ", ".join(map(str, range(node.count)))
            if node.count > 2:
                values = f"0, ..., {node.count - 1}"
            head = f"FOR EACH {variable} IN {{{values}}}"
        loop = PakinStatement(head, body=body)
        waiting = self._waits.last.get(self._line[id(node.body[-1])])
        if not waiting:
            return [loop]
        who = everyone(sorted(waiting), self._told.processes)
        # A loop of nothing but such waits is the last of them.
        kept = [loop] if any(one.is_said for one in body) else comments_of(body)
        return [*kept, PakinStatement(f"{who} AWAIT{_s(who)} COMPLETION")]

    def _place(self, shape: Shape) -> list[str]:
        """Return the comment of a statement."""
        words = ["from any source"] * (
            shape.has_any_source and not all(e.is_sent for e in shape.ends)
        )
        if shape.comm >= 0 and len(self._told.communicators) > 1:
            words.append(f"on {self._told.communicators[shape.comm].name}")
        if shape.functions:
            words.append(f"in {functions_text(shape)}")
        return [", ".join(words)] if words else []

    def _single(self, node: Step, around: tuple[Loop, ...]) -> list[PakinStatement]:
        shape = self._told.shapes[node.shape]
        comments = self._place(shape)
        if shape.kind is Kind.WAIT:
            return [self._await(node, "waits for some operations", comments)]
        if shape.kind is Kind.EXCHANGE:
            comments.append(f"{shape.call or 'MPI_Sendrecv'} is a send and a receive here")
        elif shape.kind in {Kind.SEND, Kind.ISEND} and shape.name != Mode.STANDARD:
            comments.append(f"a {shape.name} send is a usual one here")
        if not shape.is_awaited:
            comments.append("never waited for; here, the next AWAIT waits for it")
        found: list[PakinStatement] = []
        for end in shape.ends:
            is_started = shape.kind in {Kind.ISEND, Kind.IRECV}
            if shape.kind is Kind.EXCHANGE:
                is_started = end.is_sent
            messages = self._messages(node, end, around)
            found += (self._sends if end.is_sent else self._receives)(messages, is_started)
        if shape.kind is Kind.EXCHANGE and any(end.is_sent for end in shape.ends):
            found.append(self._await(node, "started operations before", []))
        found[0].comments = comments
        return found

    def _await(self, node: Step, why: str, comments: list[str]) -> PakinStatement:
        """Return the statement that waits, for those ranks that wait for all their operations."""
        partial = self._waits.partial.get(self._line[id(node)], set())
        left = [rank for rank in node.ranks if rank not in partial]
        if not left:
            return PakinStatement("", [*comments, f"{why}; the next AWAIT completes them"])
        if partial:
            some = member("task", sorted(partial)).lower()
            comments.append(f"{why} if {some}; there, the next AWAIT completes them")
        who = everyone(left, self._told.processes)
        return PakinStatement(f"{who} AWAIT{_s(who)} COMPLETION", comments)

    def _messages(self, node: Step, end: End, around: tuple[Loop, ...]) -> StepMessages:
        counts = [loop.count for loop in around]
        ranks = np.array(node.ranks, np.int64)
        peers, tags, sizes = (
            node.numbers[name].values(node.ranks, counts) for name in (end.peer, end.tag, end.bytes)
        )
        own = np.broadcast_to(ranks.reshape(-1, *[1] * len(counts)), peers.shape)
        peers = node.partners[end.peer].peer(own.ravel(), peers.ravel()).reshape(peers.shape)
        return StepMessages(ranks, peers, tags, sizes)

    def _paired(self, node: Step, after: Node, around: tuple[Loop, ...]) -> PakinStatement | None:
        """Return one statement of a receive and a send that are started together, or None."""
        if not isinstance(after, Step):
            return None
        receive, send = (self._told.shapes[step.shape] for step in (node, after))
        if (receive.kind, send.kind) != (Kind.IRECV, Kind.ISEND) or receive.is_any:
            return None
        if not (receive.is_awaited and send.is_awaited and send.name == Mode.STANDARD):
            return None
        sent = self._messages(after, send.ends[0], around)
        received = self._messages(node, receive.ends[0], around).from_senders()
        if received is None or not received.equals(sent):
            return None
        found = self._sends(sent, True, is_expected=True)
        if len(found) > 1:
            return None
        found[0].comments = self._place(send)
        return found[0]

    def _sends(
        self, sent: StepMessages, is_started: bool, *, is_expected: bool = False
    ) -> list[PakinStatement]:
        """Return the statements that send; `is_expected` posts the receives, too."""
        to = target(sent.ranks.tolist(), sent.peers, self._told.processes)
        if to is None:
            return [
                one
                for k in range(len(sent.ranks))
                for one in self._sends(sent.of([k]), is_started, is_expected=is_expected)
            ]
        ranks = sent.ranks.tolist()
        who = tasks(ranks, self._told.processes)
        verb = f"{'ASYNCHRONOUSLY ' * is_started}SEND{_s(who)}"
        unsuspecting = "" if is_expected else "UNSUSPECTING "
        message = message_phrase(sent)
        return [PakinStatement(f"{who} {verb} {message} TO {unsuspecting}TASK {to}")]

    def _receives(self, received: StepMessages, is_started: bool) -> list[PakinStatement]:
        """Return the statements that receive, each from the view of the senders."""
        ranks, processes = received.ranks.tolist(), self._told.processes
        start = "ASYNCHRONOUSLY " * is_started
        if len(ranks) == 1:
            source = number(received.peers, ranks)
            message = message_phrase(received)
            return [PakinStatement(f"TASK {ranks[0]} {start}RECEIVES {message} FROM TASK {source}")]
        columns = (received.peers, received.tags, received.sizes)
        if all((column == column[:1]).all() for column in columns):
            one = received.of([0])
            source, message = number(one.peers, ranks[:1]), message_phrase(one)
            who = tasks(ranks, processes)
            return [PakinStatement(f"{who} {start}RECEIVE {message} FROM TASK {source}")]
        sent = received.from_senders()
        if sent is not None:
            to = target(sent.ranks.tolist(), sent.peers, processes)
            if to is not None:
                who = tasks(sent.ranks.tolist(), processes)
                return [
                    PakinStatement(f"TASK {to} {start}RECEIVES {message_phrase(sent)} FROM {who}")
                ]
        return [
            one for k in range(len(ranks)) for one in self._receives(received.of([k]), is_started)
        ]

    def _whole(self, nodes: Sequence[Node], at: int) -> list[Step]:
        """Return the steps that together are one collective operation of all members.

        Raises
        ------
        DataError
            If there are none.
        """
        first = nodes[at]
        assert isinstance(first, Step)
        shape = self._told.shapes[first.shape]
        steps, here = [first], set(first.ranks)
        groups = self._told.communicators[shape.comm].groups
        while True:
            touched = [group for group in groups if not here.isdisjoint(group)]
            if here == {rank for group in touched for rank in group}:
                return steps
            after = nodes[at + len(steps)] if at + len(steps) < len(nodes) else None
            if not isinstance(after, Step) or not here.isdisjoint(after.ranks):
                break
            other = self._told.shapes[after.shape]
            if (other.comm, other.name) != (shape.comm, shape.name):
                break
            steps.append(after)
            here |= set(after.ranks)
        where = " or ".join(sites(shape))
        raise DataError(
            f"no program: {shape.name} in {where} is not one line of all its members",
            hint=INSTEAD_OR_IN_C,
        )

    def _together(self, steps: Sequence[Step], around: tuple[Loop, ...]) -> list[PakinStatement]:
        shape = self._told.shapes[steps[0].shape]
        if shape.kind is Kind.ICOLLECTIVE:
            raise DataError(
                f"no program: coNCePTuaL has no non-blocking {shape.name}", hint=INSTEAD_OR_IN_C
            )
        made = self._collectives.statements(steps, [loop.count for loop in around])
        found = []
        for group in made:
            body = [PakinStatement(text) for text in group.texts]
            if group.head:
                found.append(PakinStatement(group.head, body=body))
            else:
                found += body
        found[0].comments = self._place(shape) + [each for group in made for each in group.comments]
        return found


def _has_first(loop: Loop) -> bool:
    """Tell whether the first round of a loop computes otherwise than the others."""
    steps = (node for node in loop.body if isinstance(node, Step))
    return any(
        (_microseconds(told.first, step.ranks) != _microseconds(told.usual, step.ranks)).any()
        for step in steps
        if (told := step.computing) is not None and told.first
    )


def _microseconds(shares: Sequence[Share], ranks: Sequence[int]) -> Int64Array:
    """Return the mean of all rounds of each rank, [ranks]; [ranks] of 0 without shares."""
    means = {
        rank: round(share.seconds.mean * _MICROSECONDS) for share in shares for rank in share.ranks
    }
    return np.array([means.get(rank, 0) for rank in ranks], np.int64)


def _s(who: str) -> str:
    """Return the ending of a verb."""
    return "S" * who.startswith("TASK ")
