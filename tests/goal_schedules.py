"""Recogniser of GOAL schedules, and a run of their operations."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from dataclasses import dataclass, field

_OPERATION = re.compile(
    r"l(\d+): (?:(send) (\d+)b to (\d+) tag (\d+)|(recv) (\d+)b from (\d+) tag (\d+)|calc (\d+))"
)
_REQUIRES = re.compile(r"l(\d+) (requires|irequires) l(\d+)")


@dataclass
class Operation:
    """An operation of a rank; `verb` is send, recv or calc."""

    verb: str
    size: int
    peer: int = -1
    tag: int = -1
    after: list[int] = field(default_factory=list)


def read(text):
    """Return the operations of each rank by label; fail for what is not in the format."""
    lines = [line for line in text.split("\n") if line and not line.startswith("//")]
    head = re.fullmatch(r"num_ranks (\d+)", lines[0])
    ranks, here = [], None
    for line in lines[1:]:
        if line == f"rank {len(ranks)} {{" and here is None:
            here = {}
        elif line == "}" and here is not None:
            ranks.append(here)
            here = None
        elif found := _OPERATION.fullmatch(line):
            assert int(found[1]) not in here
            here[int(found[1])] = (
                Operation(found[2], *map(int, found.group(3, 4, 5)))
                if found[2]
                else Operation(found[6], *map(int, found.group(7, 8, 9)))
                if found[6]
                else Operation("calc", int(found[10]))
            )
        else:
            found = _REQUIRES.fullmatch(line)
            assert found, line
            # txt2bin knows labels that come before, so that no circle can be.
            assert int(found[3]) < int(found[1])
            if found[2] == "requires":
                here[int(found[1])].after.append(int(found[3]))
    assert here is None
    assert len(ranks) == int(head[1])
    return ranks


def messages(ranks):
    """Return sizes of messages by sender, receiver and tag; sends and receives have to match."""
    sent, received = defaultdict(list), defaultdict(list)
    for rank, operations in enumerate(ranks):
        for one in operations.values():
            if one.verb == "send":
                sent[rank, one.peer, one.tag].append(one.size)
            elif one.verb == "recv":
                received[one.peer, rank, one.tag].append(one.size)
    assert sent == received
    return sent


def run(ranks):
    """Run all operations, where a send is complete with its receive; fail if some are left."""
    left = [{label: len(one.after) for label, one in each.items()} for each in ranks]
    next_ = [defaultdict(list) for _ in ranks]
    for rank, each in enumerate(ranks):
        for label, one in each.items():
            for before in one.after:
                next_[rank][before].append(label)
    ready = deque((r, label) for r, each in enumerate(left) for label, n in each.items() if not n)
    waiting = defaultdict(deque)
    done = 0
    while ready:
        rank, label = ready.popleft()
        one = ranks[rank][label]
        finished = [(rank, label)]
        if one.verb != "calc":
            is_sent = one.verb == "send"
            ends = (rank, one.peer) if is_sent else (one.peer, rank)
            others = waiting[(*ends, one.tag, not is_sent)]
            if not others:
                waiting[(*ends, one.tag, is_sent)].append((rank, label))
                continue
            finished.append(others.popleft())
        for owner, ended in finished:
            done += 1
            for label_ in next_[owner][ended]:
                left[owner][label_] -= 1
                if not left[owner][label_]:
                    ready.append((owner, label_))
    assert done == sum(map(len, ranks)), "operations that never end"
