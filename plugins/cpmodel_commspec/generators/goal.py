"""Schedules in the textual GOAL format, for LogGOPSim and ATLAHS.

A rank has operations with labels, and each operation requires others. Schedules have no loops and
no collective operations, so these are messages here, by the algorithms that the heading names. The
format is that of Hoefler, Siebert and Lumsdaine (ICPP 2009) as ``txt2bin`` of LogGOPSim reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callpath_modeler.printable import printable
from cpmodel_commspec.generators import schedules
from cpmodel_commspec.generators.interface import Generator, Options
from cpmodel_commspec.generators.statements import heading
from cpmodel_commspec.specification import Specification

_NANOSECONDS = 1e9


class Goal(Generator):
    """Writer of GOAL schedules."""

    name = "goal"
    description = "a schedule in GOAL, for LogGOPSim and ATLAHS"
    endings = (".goal",)

    def write(self, told: Specification, options: Options) -> str:  # noqa: ARG002
        """Return the schedule.

        Raises
        ------
        DataError
            If no messages stand for a collective operation.
        """
        schedule, tags = schedules.Schedule(told), schedules.Tags(told)
        parts = [f"// {printable(line)}".rstrip() for line in _heading(told)]
        parts.append(f"num_ranks {told.processes}")
        for rank in range(told.processes):
            parts.append(f"\nrank {rank} {{")
            parts += _Rank(rank, tags).lines(schedule)
            parts.append("}")
        return "\n".join(parts) + "\n"


def _heading(told: Specification) -> Iterator[str]:
    commands = ["txt2bin -i THIS_FILE.goal -o schedule.bin", "LogGOPSim -f schedule.bin"]
    yield from heading(told, commands, has_calls=False)
    yield "Times are nanoseconds. Messages of 0 bytes have 1 byte here: simulators count from it."
    for name, algorithm in schedules.collectives_of(told):
        yield f"{name} is messages by the algorithm {algorithm}."


class _Rank:
    """The operations of one rank.

    The next operation requires all of `_ready`, and starts after `_last` has started.
    """

    def __init__(self, rank: int, tags: schedules.Tags) -> None:
        self._rank, self._tags = rank, tags
        self._lines: list[str] = []
        self._count = 0
        self._ready: list[int] = []
        self._last = 0
        self._requests: dict[int, list[int]] = {}

    def lines(self, schedule: schedules.Schedule) -> list[str]:
        """Return the lines of the rank."""
        for event in schedule.events(self._rank):
            if isinstance(event, schedules.Compute):
                nanoseconds = round(event.seconds * _NANOSECONDS)
                if nanoseconds:
                    self._ready = [self._add(f"calc {nanoseconds}", self._ready)]
            elif isinstance(event, schedules.Start):
                tag = self._tags.of(event.channel)
                label = self._message(event.is_sent, event.peer, event.bytes, tag, self._ready)
                if event.is_blocking:
                    self._ready = [label]
                else:
                    self._requests[event.request] = [label]
            elif isinstance(event, schedules.Finish):
                done = [label for one in event.requests for label in self._requests.pop(one)]
                self._ready = self._joined(list(dict.fromkeys([*self._ready, *done])))
            else:
                self._together(event)
        return self._lines

    def _add(self, text: str, after: Sequence[int]) -> int:
        """Add an operation, and return its label."""
        self._count += 1
        self._lines.append(f"l{self._count}: {text}")
        self._lines += [f"l{self._count} requires l{label}" for label in after]
        if self._last and self._last not in after:
            self._lines.append(f"l{self._count} irequires l{self._last}")
        self._last = self._count
        return self._count

    def _message(self, is_sent: bool, peer: int, size: int, tag: int, after: Sequence[int]) -> int:
        word = f"send {max(size, 1)}b to" if is_sent else f"recv {max(size, 1)}b from"
        return self._add(f"{word} {peer} tag {tag}", after)

    def _joined(self, labels: list[int]) -> list[int]:
        """Return one operation that requires several, or these if they are one at most."""
        return [self._add("calc 0", labels)] if len(labels) > 1 else labels

    def _together(self, event: schedules.Together) -> None:
        ready, tag = self._ready, self._tags.of_collectives + event.comm
        for one in event.messages:
            labels = [self._message(*own, tag, ready) for own in one]
            ready = self._joined(labels)
        if event.is_blocking:
            self._ready = ready
        else:
            self._requests[event.request] = ready
