"""Identification of the program of profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import PROGRAM
from callpath_modeler.units import counted

_SAME_PROGRAM = 0.5
"""Smallest share of functions of the smaller program that the other one has as well."""

PROGRAM_KEY = "program"
"""Key of the metadata for the name of the program."""

_MOST = 4
"""Maximum number of programs in an error."""


class _Read(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def tree(self) -> CallTree: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...


def refuse_several_programs(runs: Sequence[_Read]) -> None:
    """Raise an error if profiles are of several programs.

    Programs are distinguished by the names of their own functions. The name of the executable is
    not compared, because it often contains the number of processes.

    Raises
    ------
    UsageError
        If there are several programs. The error lists them with their runs, and explains how to
        choose one.
    """
    groups = _programs(runs)
    if len(groups) < 2:
        return
    listed = "; ".join(
        f"{_program(of[0])} in {counted(len(of), 'run')} (first {of[0].name})"
        for of in groups[:_MOST]
    )
    more = f"; {len(groups) - _MOST} more" if len(groups) > _MOST else ""
    raise UsageError(f"profiles of {len(groups)} programs: {listed}{more}", hint=_choice(groups))


def are_named_programs(runs: Sequence[_Read]) -> bool:
    """Return whether profiles are of several programs, each with one name and several profiles."""
    known = {run.metadata.get(PROGRAM_KEY, "") for run in runs}
    if len(known) < 2 or 2 * len(known) > len(runs) or "" in known:
        return False
    groups = _programs(runs)
    names = [{_program(run) for run in group} for group in groups]
    recur = all(len(group) > 1 for group in groups)
    return recur and 1 < len(groups) == len(known) and all(len(own) == 1 for own in names)


def _programs(runs: Sequence[_Read]) -> list[list[_Read]]:
    """Return the profiles of each program, the program with most profiles first."""
    trees = {id(run.tree): run.tree for run in runs}
    if len(trees) < 2:
        return [[*runs]]
    functions = {key: _own_functions(tree) for key, tree in trees.items()}
    groups: list[tuple[frozenset[str], list[_Read]]] = []
    for run in runs:
        names = functions[id(run.tree)]
        for known, members in groups:
            if _are_of_one(names, known):
                members.append(run)
                break
        else:
            groups.append((names, [run]))
    return sorted((of for _, of in groups), key=lambda group: -len(group))


def _choice(groups: Sequence[Sequence[_Read]]) -> str:
    """Return the hint how to choose a program: by a unique name, or else by its files."""
    names = [{_program(run) for run in group} for group in groups]
    others = {name for of in names[1:] for name in of}
    first = _program(groups[0][0])
    plain = not set(first) & set(",<>=!") and "program" in groups[0][0].metadata
    if plain and len(names[0]) == 1 and first not in others:
        chosen = shell_word(f"program={first}")
        return f"choose one, e.g. --where {chosen}, or give the files of one program"
    return "give the files or the directory of one program"


def of_one_program(one: CallTree, other: CallTree) -> bool:
    """Return whether two call trees are of one program, as in `refuse_several_programs`."""
    return _are_of_one(_own_functions(one), _own_functions(other))


def _are_of_one(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _SAME_PROGRAM * min(len(one), len(other))


def _own_functions(tree: CallTree) -> frozenset[str]:
    return frozenset(
        region.common_name
        for region in tree.regions
        if region.is_own and region.role != "artificial" and region.name != PROGRAM
    )


def _program(run: _Read) -> str:
    return run.metadata.get(PROGRAM_KEY) or "unnamed"
