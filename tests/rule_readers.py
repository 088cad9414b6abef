"""How libraries read files of rules: recognisers of each format, and the algorithm at a place."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from math import inf

_COUNT = 22
"""Number of collectives that Open MPI counts."""


@dataclass(frozen=True)
class Row:
    """The parameters of a rule: algorithm, fan-out and size of segments."""

    algorithm: int
    fan_out: int = 0
    segment: int = 0


def open_mpi_4(text: str) -> dict[int, list[tuple[int, list[tuple[int, Row]]]]]:
    """Return the rules in the text of Open MPI 4 and 5, by the number of the collective.

    The library takes everything that is a number, and skips comments and other characters.
    """
    assert text.isascii()
    assert text.endswith("\n")
    told = "\n".join(line.partition("#")[0] for line in text.split("\n"))
    assert re.fullmatch(r"[\d\s]*", told), "only numbers stand outside of comments"
    numbers = iter([int(number) for number in told.split()])
    found: dict[int, list[tuple[int, list[tuple[int, Row]]]]] = {}
    count = next(numbers)
    assert 0 < count <= _COUNT
    for _ in range(count):
        collective = next(numbers)
        assert collective < _COUNT
        assert collective not in found
        entries = []
        for _ in range(next(numbers)):
            processes = next(numbers)
            rows = []
            for _ in range(next(numbers)):
                size = next(numbers)
                rows.append((size, Row(next(numbers), next(numbers), next(numbers))))
            assert rows[0][0] == 0, "the first size has to be 0"
            assert [size for size, _ in rows] == sorted({size for size, _ in rows})
            entries.append((processes, rows))
        assert [p for p, _ in entries] == sorted({p for p, _ in entries})
        found[collective] = entries
    assert next(numbers, None) is None, "nothing follows the last rule"
    return found


def at_in_open_mpi_4(rules, collective: int, processes: int, size: int) -> Row | None:
    """Return the row that decides; None = the library decides by itself."""
    entries = rules.get(collective)
    if entries is None:
        return None
    # Fewer processes than in the first entry also use the first entry.
    (_, rows), *others = entries
    for least, told in others:
        if least <= processes:
            rows = told
    row = [each for least, each in rows if least <= size][-1]
    return row if row.algorithm else None


_COLLECTIVE = re.compile(
    "allgather|allreduce|alltoall|alltoallv|alltoallw|barrier|bcast|exscan|gather|gatherv|reduce|"
    "reducescatter|reducescatterblock|scan|scatter|scatterv"
)
_MOST_INT = 2**31 - 1


def open_mpi_6(text: str) -> dict[str, list[dict]]:
    """Return the rules of a document that the schema of Open MPI 6 accepts.

    The facts are those of ``docs/tuning-apps/tuned_dynamic_file_schema.json``: required and allowed
    properties, and their types. Its list of collectives has no ``allgatherv``.
    """
    document = json.loads(text)
    assert {"rule_file_version", "module", "collectives"} <= {*document}
    assert {*document} <= {"rule_file_version", "module", "collectives", "$schema"}
    assert document["rule_file_version"] == 3
    assert document["module"] == "tuned"
    for name, entries in document["collectives"].items():
        assert _COLLECTIVE.fullmatch(name)
        assert isinstance(entries, list)
        for entry in entries:
            assert "rules" in entry
            assert {*entry} <= {"rules", "comm_size_min", "comm_size_max", "comm_rank_distribution"}
            for key in ("comm_size_min", "comm_size_max"):
                assert _is_whole_or_infinite(entry.get(key, 0))
            for rule in entry["rules"]:
                assert "alg" in rule
                assert {*rule} <= {"msg_size_min", "msg_size_max", "alg", "reqs", "faninout",
                                   "seg_size", "bine_imp"}  # fmt: skip
                assert isinstance(rule["alg"], str) or _is_whole(rule["alg"])
                assert all(_is_whole(rule.get(k, 0)) for k in ("reqs", "faninout", "seg_size"))
                for key in ("msg_size_min", "msg_size_max"):
                    assert _is_whole_or_infinite(rule.get(key, 0))
    return document["collectives"]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_whole_or_infinite(value: object) -> bool:
    return _is_whole(value) or value in {"inf", "INF", "Inf"}


def at_in_open_mpi_6(rules, collective: str, processes: int, size: int) -> Row | None:
    """Return the first rule that matches; None = the library decides by itself."""
    for entry in rules.get(collective, ()):
        if entry.get("comm_size_min", 0) <= processes <= entry.get("comm_size_max", _MOST_INT):
            # Only the first entry that matches a communicator counts.
            for rule in entry["rules"]:
                most = rule.get("msg_size_max", "inf")
                if rule.get("msg_size_min", 0) <= size <= (inf if most == "inf" else most):
                    return Row(rule["alg"], rule.get("faninout", 0), rule.get("seg_size", 0))
            return None
    return None


def pgmpitunelib(text: str) -> tuple[str, int, list[tuple[int, int, str]]]:
    """Return the function, the number of processes and the ranges of a profile.

    The library takes the first words of each line, and skips lines that begin with ``#``.
    """
    assert text.isascii()
    lines = text.split("\n")
    assert lines.pop() == ""
    assert all(lines), "blank lines are not allowed"
    told = iter([line.split() for line in lines if not line.startswith("#")])
    function, processes, count = next(told)[0], int(next(told)[0]), int(next(told)[0])
    assert len(function) < 40
    assert processes > 0
    names = {}
    for _ in range(count):
        number, name = next(told)[:2]
        assert len(name) < 60
        names[int(number)] = name
    number = int(next(told)[0])
    assert number > 0
    ranges = []
    for _ in range(number):
        low, high, which = map(int, next(told)[:3])
        assert 0 <= low <= high <= _MOST_INT
        ranges.append((low, high, names[which]))
    assert next(told, None) is None
    return function, processes, ranges


def at_in_pgmpitunelib(of, processes: int, size: int) -> str | None:
    """Return the mock-up that replaces a call; None = the library's own function."""
    _, told, ranges = of
    if told != processes or size <= 0:
        return None
    return next((name for low, high, name in ranges if low <= size <= high), None)
