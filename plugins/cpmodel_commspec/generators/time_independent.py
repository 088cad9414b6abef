"""Time-independent traces for the replay of SimGrid SMPI, one file for each rank.

``smpirun -replay`` runs them. Computation is a number of floating-point operations at a speed of 1
Gflop/s, so that a platform of ``speed="1Gf"`` computes as long as the run did. The format is that
of Desprez, Markomanolis, Quinson and Suter (PSTI 2011) as SimGrid 3.32 reads it: waits name sender,
receiver and tag of a request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable
from cpmodel_commspec.communicators import world_of
from cpmodel_commspec.generators import schedules
from cpmodel_commspec.generators.interface import Generator, Options
from cpmodel_commspec.generators.statements import INSTEAD_OR_IN_C, heading
from cpmodel_commspec.operations import Kind
from cpmodel_commspec.specification import Specification, Step, walk

_SPEED = 1e9
"""Floating-point operations in a second."""

_NATIVE = {
    "barrier": "barrier",
    "bcast": "bcast {size} {root}",
    "reduce": "reduce {size} 0 {root}",
    "allreduce": "allreduce {size} 0",
    "alltoall": "alltoall {size} {size}",
    "gather": "gather {size} {size} {root}",
    "scatter": "scatter {size} {size} {root}",
    "allgather": "allgather {size} {size}",
}
"""Collective operations of all ranks in the format; others are messages."""


class TimeIndependent(Generator):
    """Writer of time-independent traces."""

    name = "simgrid"
    description = "time-independent traces for the replay of SimGrid SMPI"
    endings = (".ti",)
    is_directory = True

    def write(self, told: Specification, options: Options) -> dict[str, str]:  # noqa: ARG002
        """Return the traces by name, with ``index``, which lists them.

        Raises
        ------
        DataError
            If the replay cannot express an operation.
        """
        for node, _ in walk(told.body):
            if isinstance(node, Step) and told.shapes[node.shape].kind is Kind.ICOLLECTIVE:
                name = told.shapes[node.shape].name
                raise DataError(
                    f"no program: the replay of SimGrid has no non-blocking {name}",
                    hint=INSTEAD_OR_IN_C,
                )
        schedule, tags = schedules.Schedule(told), schedules.Tags(told)
        names = [f"rank-{rank}.txt" for rank in range(told.processes)]
        slots = max(
            (_slots(schedule, rank) for rank in range(told.processes)),
            default=1,
        )
        head = "".join(f"# {printable(line)}".rstrip() + "\n" for line in _heading(told))
        files = {"index": "".join(f"{name}\n" for name in names)}
        for rank, name in enumerate(names):
            lines = _Rank(told, rank, tags, slots).lines(schedule)
            files[name] = head + "".join(f"{rank} {line}\n" for line in lines)
        return files


def _heading(told: Specification) -> Iterator[str]:
    smpirun = f"smpirun -np {told.processes} -platform PLATFORM.xml -hostfile HOSTS"
    yield from heading(told, ["cd THIS_DIRECTORY", f"{smpirun} -replay index"], has_calls=False)
    yield "Computation is in floating-point operations at 1 Gflop/s."
    yield "Messages of 0 bytes have 1 byte here. Messages of a rank to itself are left out."
    world = world_of(told.communicators, told.processes)
    is_parted = any(
        isinstance(node, Step) and not told.shapes[node.shape].ends
        and told.shapes[node.shape].comm not in {-1, world}
        for node, _ in walk(told.body)
    )  # fmt: skip
    for name, algorithm in schedules.collectives_of(told):
        if name not in _NATIVE:
            yield f"{name} is messages by the algorithm {algorithm}."
        elif is_parted:
            yield f"{name} on a part of the ranks is messages by the algorithm {algorithm}."


def _slots(schedule: schedules.Schedule, rank: int) -> int:
    """Return how many tags a channel needs, so that all requests under way have different ones."""
    under_way: dict[int, tuple[tuple[bool, int, tuple[int, int]], int]] = {}
    oldest: dict[tuple[bool, int, tuple[int, int]], deque[int]] = {}
    ended: dict[tuple[bool, int, tuple[int, int]], set[int]] = {}
    most = 1
    for event in schedule.events(rank):
        if isinstance(event, schedules.Start) and not event.is_blocking and event.peer != rank:
            key = event.is_sent, event.peer, event.channel
            under_way[event.request] = key, event.number
            waiting = oldest.setdefault(key, deque())
            waiting.append(event.number)
            most = max(most, event.number - waiting[0] + 1)
        elif isinstance(event, schedules.Finish):
            for request in event.requests:
                if request in under_way:
                    key, number = under_way.pop(request)
                    done = ended.setdefault(key, set())
                    done.add(number)
                    while oldest[key] and oldest[key][0] in done:
                        done.remove(oldest[key].popleft())
    return most


class _Rank:
    """The lines of one rank, without its number in front."""

    def __init__(self, told: Specification, rank: int, tags: schedules.Tags, slots: int) -> None:
        self._rank, self._tags, self._slots = rank, tags, slots
        self._world = world_of(told.communicators, told.processes)
        self._waits: dict[int, str] = {}

    def lines(self, schedule: schedules.Schedule) -> Iterator[str]:
        """Yield the lines of the rank."""
        yield "init"
        for event in schedule.events(self._rank):
            if isinstance(event, schedules.Compute):
                flops = round(event.seconds * _SPEED)
                if flops:
                    yield f"compute {flops}"
            elif isinstance(event, schedules.Start):
                yield from self._start(event)
            elif isinstance(event, schedules.Finish):
                for request in event.requests:
                    if request in self._waits:
                        yield self._waits.pop(request)
            else:
                yield from self._together(event)
        # Sends that the run never waits for.
        yield from self._waits.values()
        yield "finalize"

    def _start(self, event: schedules.Start) -> Iterator[str]:
        if event.peer == self._rank:
            return
        tag = self._tags.of(event.channel) * self._slots + event.number % self._slots
        word = "send" if event.is_sent else "recv"
        start = "" if event.is_blocking else "i"
        yield f"{start}{word} {event.peer} {tag} {max(event.bytes, 1)}"
        if not event.is_blocking:
            self._waits[event.request] = self._wait(event.is_sent, event.peer, tag)

    def _wait(self, is_sent: bool, peer: int, tag: int) -> str:
        ends = (self._rank, peer) if is_sent else (peer, self._rank)
        return f"wait {ends[0]} {ends[1]} {tag}"

    def _together(self, event: schedules.Together) -> Iterator[str]:
        if event.comm == self._world and event.is_equal and event.name in _NATIVE:
            yield _NATIVE[event.name].format(size=event.bytes, root=event.root)
            return
        tag = (self._tags.of_collectives + event.comm) * self._slots
        for one in event.messages:
            waits = []
            for is_sent, peer, size in one:
                yield f"{'isend' if is_sent else 'irecv'} {peer} {tag} {max(size, 1)}"
                waits.append(self._wait(is_sent, peer, tag))
            yield from waits
