"""Files with rules that a library loads.

Sources: ``coll_tuned_dynamic_file.c`` and ``coll_tuned_dynamic_rules.c`` of Open MPI 4.1.4 for the
text, ``docs/tuning-apps/tuned_dynamic_file_schema.json`` of Open MPI 6 for JSON, and
``pgmpi_profile_reader.c`` for profiles of PGMPITuneLib.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from callpath_modeler.errors import DataError
from callpath_modeler.printable import in_one_line, shortened
from callpath_modeler.units import parameter_value, percent
from cpmodel_guidelines.tuning.choices import (
    COUNTED,
    ProcessRange,
    Rules,
    SizeRange,
    Unwritten,
    What,
)
from cpmodel_guidelines.tuning.gains import Gain, Place
from cpmodel_guidelines.tuning.open_mpi import COLLECTIVES, Algorithm

_DEFAULT = (0, 0, 0)
"""Algorithm, fan-out and segment size with which Open MPI decides by itself."""
_JSON_VERSION = 3
_NOT_IN_THE_SCHEMA = frozenset({"Allgatherv"})
"""Functions that the published schema leaves out, so that files with them are not valid."""
_LONGEST_COMMENT = 150


def open_mpi_text(rules: Rules) -> str:
    """Return the rules as text of version 1, which Open MPI 4 and 5 load.

    A rule holds from its number of processes and from its size on. So rules that give the choice
    back to the library stand where no gain was shown. The first entry also holds for fewer
    processes, and the first size has to be 0.
    """
    lines = [f"# {line}" for line in _heading(rules, rules.written)]
    lines.append(f"{len(rules.ranges)} # number of collectives")
    for function in sorted(rules.ranges, key=lambda name: COLLECTIVES[name].number):
        lines.append(f"{COLLECTIVES[function].number} # collective: MPI_{function}")
        entries = [*_entries(rules.ranges[function])]
        lines.append(f"{len(entries)} # number of entries for processes")
        for processes, sizes in entries:
            lines.append(f"{processes} # from this number of processes on")
            rows = [*_thresholds(sizes)]
            lines.append(f"{len(rows)} # number of sizes; then: size, algorithm, fan-out, segment")
            for start, what in rows:
                numbers = _DEFAULT if what is None else (what.number, what.fan_out, what.segment)
                told = "the library decides" if what is None else what.title
                lines.append(f"{' '.join(map(str, (start, *numbers)))} # {told}")
    return "\n".join([*lines, ""])


def in_the_schema(rules: Rules) -> Rules:
    """Return the rules of functions that the schema of Open MPI 6 knows."""
    unknown = {function for function in rules.ranges if function in _NOT_IN_THE_SCHEMA}
    reason = "the schema of Open MPI 6 does not have this function"
    added = (
        Unwritten(gain, reason)
        for place, (_, gain) in rules.written.items()
        if place.function in unknown
    )
    return replace(
        rules,
        ranges={name: of for name, of in rules.ranges.items() if name not in unknown},
        written={p: what for p, what in rules.written.items() if p.function not in unknown},
        unwritten=(*rules.unwritten, *added),
    )


def open_mpi_json(rules: Rules) -> str:
    """Return the rules as JSON of version 3, which Open MPI 6 loads.

    The schema allows no comments. Where no rule matches, the library decides.

    Parameters
    ----------
    rules : rules from `in_the_schema`
    """
    collectives = {
        function.lower().replace("_", ""): [_json_entry(each) for each in rules.ranges[function]]
        for function in sorted(rules.ranges, key=lambda name: COLLECTIVES[name].number)
    }
    document = {"rule_file_version": _JSON_VERSION, "module": "tuned", "collectives": collectives}
    return json.dumps(document, indent=2) + "\n"


def _json_entry(of: ProcessRange) -> dict[str, object]:
    return {
        "comm_size_min": of.low,
        "comm_size_max": of.high,
        "rules": [
            {
                "msg_size_min": each.low,
                "msg_size_max": "inf" if each.high is None else each.high,
                "alg": _algorithm(each).number,
                "faninout": _algorithm(each).fan_out,
                "seg_size": _algorithm(each).segment,
            }
            for each in of.sizes
        ],
    }


def profiles(rules: Rules) -> dict[str, str]:
    """Return profiles of PGMPITuneLib by their paths, such as ``p4/allgather.prf``.

    The library reads all profiles of a folder, and keeps one for each function. So each number of
    processes has its own folder.
    """
    written: dict[tuple[str, int], dict[Place, tuple[What, Gain]]] = {}
    for place, chosen in rules.written.items():
        written.setdefault((place.function, place.processes), {})[place] = chosen
    found = {}
    for function, entries in sorted(rules.ranges.items()):
        name = function.lower().replace("_", "")
        for entry in entries:
            heading = _heading(rules, written.get((function, entry.low), {}))
            found[f"p{entry.low}/{name}.prf"] = _profile(heading, function, entry)
    return found


def _profile(heading: Sequence[str], function: str, entry: ProcessRange) -> str:
    """Return the profile of a function on a number of processes."""
    names = [*dict.fromkeys(str(each.what) for each in entry.sizes)]
    lines = [f"# {line}" for line in heading]
    if function in COUNTED:
        lines.append("# Sizes are numbers of elements. They were measured with elements of a byte.")
    lines += [f"MPI_{function} # collective", f"{entry.low} # number of processes"]
    lines.append(f"{len(names)} # number of mock-ups")
    lines += [f"{number} {name}" for number, name in enumerate(names, 1)]
    lines.append(f"{len(entry.sizes)} # number of ranges; then: first and last size, and mock-up")
    lines += [f"{e.low} {e.high} {names.index(str(e.what)) + 1}" for e in entry.sizes]
    # Blank lines are not allowed.
    return "\n".join([*lines, ""])


def require_rules(rules: Rules, so: str = "nothing is written") -> None:
    """Raise an error if there is no rule.

    Parameters
    ----------
    so : what follows from that, for the message

    Raises
    ------
    DataError
        If there is no rule, with the reason for the largest gain.
    """
    if rules.ranges:
        return
    why = "no gain is shown"
    if rules.unwritten:
        first = max(rules.unwritten, key=lambda each: each.gain.low)
        place = first.gain.place
        why = f"{place.function} <= {first.gain.way}: {first.reason}"
    raise DataError(
        f"no rule, so {so}: {why}",
        hint="'cpmodel guidelines tune' without -f lists all gains",
    )


def _heading(rules: Rules, written: Mapping[Place, tuple[What, Gain]]) -> list[str]:
    """Return the lines at the beginning of a file: its origin, and the gains that were measured."""
    library = shortened("/".join(rules.group))
    lines = [f"Rules by cpmodel guidelines tune{f' for {library}' if library else ''}"]
    for place, (what, gain) in written.items():
        told = what.title if isinstance(what, Algorithm) else what
        where = f"{place.function} at p={place.processes}, {parameter_value(place.size)} bytes"
        lines.append(f"{where}: {told} saves {percent(gain.share)}")
    return [ascii_comment(line) for line in lines]


def ascii_comment(text: str) -> str:
    r"""Return a text as one short line of ASCII, which cannot end a comment.

    >>> ascii_comment("MPI\n4 µ")
    'MPI 4 \\xb5'
    """
    line = in_one_line(text).encode("ascii", "backslashreplace").decode("ascii")
    return shortened(line, _LONGEST_COMMENT)


def _entries(ranges: Sequence[ProcessRange]) -> Iterator[tuple[int, tuple[SizeRange, ...]]]:
    """Yield the first number of processes of each entry, and its ranges; none = no choice."""
    start = 1
    for each in ranges:
        if each.low > start:
            yield start, ()
        yield each.low, each.sizes
        start = each.high + 1
    yield start, ()


def _thresholds(sizes: Sequence[SizeRange]) -> Iterator[tuple[int, Algorithm | None]]:
    """Yield the first size of each rule, and its algorithm; None = the library decides."""
    start: int | None = 0
    for each in sizes:
        if start is not None and each.low > start:
            yield start, None
        yield each.low, _algorithm(each)
        start = None if each.high is None else each.high + 1
    if start is not None:
        yield start, None


def _algorithm(of: SizeRange) -> Algorithm:
    assert isinstance(of.what, Algorithm), "rules of Open MPI select algorithms"
    return of.what
