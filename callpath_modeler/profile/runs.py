"""Runs of a program, their parameters, targets, and lines through the parameter space."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NoReturn, Protocol

import msgspec
import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import printable, shell_word, shortened
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import CAMEL, PROGRAM, Extent
from callpath_modeler.units import counted


@dataclass(frozen=True, slots=True)
class Run:
    """One profile: one execution of the program.

    Attributes
    ----------
    source : path of the profile, as the user gave it
    reader : name of the reader that opened it
    extent : numbers of processes, threads and nodes
    parameters : value of every parameter, by name
    repetition : number among the runs of the same point, from 1
    metadata : further entries of the profile
    """

    source: str
    reader: str
    extent: Extent
    parameters: Mapping[str, float]
    repetition: int
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(map(str.isprintable, self.parameters)):
            safe = {printable(name): value for name, value in self.parameters.items()}
            object.__setattr__(self, "parameters", safe)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that varies between the runs.

    Attributes
    ----------
    name : ``"p"`` for the number of processes
    values : distinct values, ascending
    origin : source of the values, such as the names of files or a column
    """

    name: str
    values: tuple[float, ...]
    origin: str

    def __post_init__(self) -> None:
        if not self.name.isprintable():
            object.__setattr__(self, "name", printable(self.name))


class RunNumber(Struct, frozen=True):
    """A number in the names of runs, and its interpretation.

    Attributes
    ----------
    name : the word next to the number
    values : its values, as text
    place : its position: file names, directory names, or a column
    reason : the interpretation, with the reason for it
    common_constant : the constant that only the name of the directory of all runs states; "" = none
    """

    name: str
    values: str
    place: str
    reason: str
    common_constant: str = ""


def split_parameters(
    runs: Sequence[Run], origins: Mapping[str, str]
) -> tuple[tuple[Parameter, ...], dict[str, float]]:
    """Return the parameters that vary between runs, and the values of the others."""
    varying, constants = [], {}
    for name, origin in origins.items():
        values = sorted({run.parameters[name] for run in runs})
        if len(values) > 1:
            varying.append(Parameter(name, tuple(values), origin))
        elif values:
            constants[name] = values[0]
    return tuple(varying), constants


SEVERAL = "CPM184"
"""Code of findings about runs of several cases; the subject is the key of the metadata."""

_CASE_WORDS = frozenset(
    {"case", "input", "inputs", "algorithm", "algo", "study", "type", "kind", "class", "variant",
     "version", "machine", "cluster", "system", "platform", "architecture", "arch", "compiler",
     "commit", "branch", "build", "dataset", "data", "config", "configuration", "problem",
     "workload", "size", "scenario", "experiment", "test", "model", "scheme", "strategy", "method",
     "solver", "preconditioner", "implementation", "impl", "library", "backend", "mode", "scaling",
     "series", "setup", "mesh", "grid", "matrix", "molecule", "language", "network", "precision",
     "dtype", "datatype", "format", "layout", "policy", "schedule", "partitioner", "distribution",
     "order", "mpi", "program", "application", "executable", "app", "benchmark", "code", "binary",
     "suite"}
)  # fmt: skip
_BRACKETS = re.compile(r"[\[(][^\[(\])]*[\])]")
_MOST = 5
"""Maximum number of cases in a text."""


NO_VALUE = "(none)"
"""Name of a case whose runs lack an entry of the metadata that other runs have."""


class _Described(Protocol):
    @property
    def metadata(self) -> Mapping[str, str]: ...


def names_a_case(title: str) -> bool:
    """Return whether a title announces texts about programs, inputs or machines.

    >>> [names_a_case(title) for title in ("Matrix Size", "InputType", "compiler", "host")]
    [True, True, True, False]
    """
    words = re.findall(r"[0-9a-z]+", CAMEL.sub(" ", _BRACKETS.sub("", title)).lower())
    return not _CASE_WORDS.isdisjoint(words)


def case_names(keys: Iterable[str], runs: Sequence[_Described]) -> list[str]:
    """Return the name of the case of each run: its values of the keys that vary.

    >>> runs = [Run("", "", Extent(1, 1), {}, 1, {"sort": "quick", "input": each}) for each in "ab"]
    >>> case_names(["sort", "input"], runs)
    ['a', 'b']
    """
    varying = varying_keys(keys, runs)
    return ["/".join(_value(run, key) for key in varying) for run in runs]


def varying_keys(keys: Iterable[str], runs: Sequence[_Described]) -> list[str]:
    """Return the keys of the metadata that have several values in the runs."""
    return [key for key in dict.fromkeys(keys) if len(_values(key, runs)) > 1]


def of_case(keys: Sequence[str], runs: Sequence[_Described], text: str) -> list[bool]:
    """Return which runs a text chooses: a word of their case, its name, or words in any order.

    ``*`` and ``?`` stand for any letters; upper and lower case are equal.

    Raises
    ------
    UsageError
        If the text chooses no run. The error lists the cases.
    """
    names = case_names(keys, runs)
    every = [{_value(run, key) for key in keys} for run in runs]
    told = [{*own, name} for own, name in zip(every, names, strict=True)]
    found = [text in own for own in told]
    if not any(found):
        like = printable(text).lower()
        found = [any(fnmatchcase(printable(each).lower(), like) for each in own) for own in told]
    if not any(found):
        words = set(text.split("/"))
        found = [words <= own for own in every]
    if not any(found):
        refuse_unknown_case(text, [each for each in dict.fromkeys(names) if each])
    return found


def refuse_unknown_case(text: str, known: Sequence[str] = ()) -> NoReturn:
    """Raise the `UsageError` of a case that no run is of; `known` are the names of the cases."""
    hint = f"cases: {_listed(known)}" if known else "all runs are of one case: omit --case"
    raise UsageError(f"no case {printable(text)!r}", hint=hint)


def case_findings(keys: Iterable[str], runs: Sequence[_Described]) -> list[Finding]:
    """Return a finding for each key of the metadata that tells several cases apart."""
    several = varying_keys(keys, runs)
    return [
        Finding(SEVERAL, key, f"{_listed(values)}; {_choice(several, runs)}", len(values))
        for key, values in ((key, _values(key, runs)) for key in several)
    ]


def case_keys(findings: Iterable[Finding]) -> list[str]:
    """Return the keys of the metadata that tell cases apart, from the findings of an experiment."""
    return [*dict.fromkeys(each.subject for each in findings if each.code == SEVERAL)]


def refuse_several_cases(
    keys: Iterable[str], runs: Sequence[_Described], *, are_selected: bool = False
) -> None:
    """Raise an error if runs of several cases would be repetitions of each other.

    Parameters
    ----------
    keys : keys of the metadata that tell cases apart
    runs : runs of the experiment
    are_selected : whether options have selected the runs, so that the error asks for one more

    Raises
    ------
    UsageError
        If there are several cases. The error lists them, and explains how to choose one.
    """
    several = varying_keys(keys, runs)
    if several:
        told = "; ".join(
            f"{counted(len(values), 'case')} of {printable(key)!r}: {_listed(values)}"
            for key, values in ((key, _values(key, runs)) for key in several)
        )
        choice = _choice(several, runs, are_selected=are_selected)
        raise UsageError(
            f"{told}; runs of several cases are not repetitions of each other",
            hint=f"{choice}; if they are repetitions, add --param {shell_word(several[0])}=none",
        )


def _values(key: str, runs: Sequence[_Described]) -> list[str]:
    return list(dict.fromkeys(run.metadata.get(key, "") for run in runs))


def _value(run: _Described, key: str) -> str:
    return printable(run.metadata.get(key, "")) or NO_VALUE


def _listed(values: Sequence[str]) -> str:
    shown = [shortened(printable(value) or NO_VALUE, 40) for value in values]
    more = f", and {len(shown) - _MOST} more" if len(shown) > _MOST else ""
    return ", ".join(shown[:_MOST]) + more


def _choice(keys: Sequence[str], runs: Sequence[_Described], *, are_selected: bool = False) -> str:
    """Return the option that chooses one case, and the command that compares all."""
    chosen = max(runs, key=lambda run: [bool(run.metadata.get(key)) for key in keys])
    name = shell_word("/".join(_value(chosen, key) for key in keys))
    with_option = "by adding" if are_selected else "with"
    return f"choose one {with_option} --case {name}, or compare all with `cpmodel rank`"


_SAME_PROGRAM = 0.5
"""Smallest share of functions of the smaller program that the other one has as well."""

PROGRAM_KEY = "program"
"""Key of the metadata for the name of the program."""

_MOST_PROGRAMS = 4
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
        for of in groups[:_MOST_PROGRAMS]
    )
    more = f"; {len(groups) - _MOST_PROGRAMS} more" if len(groups) > _MOST_PROGRAMS else ""
    raise UsageError(
        f"profiles of {len(groups)} programs: {listed}{more}", hint=_choice_of_program(groups)
    )


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


def _choice_of_program(groups: Sequence[Sequence[_Read]]) -> str:
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


_WORKERS = (
    (
        "p",
        "np",
        "proc",
        "procs",
        "processes",
        "processors",
        "ranks",
        "tasks",
        "pe",
        "pes",
        "mpi",
        "prozesse",
        "prozessoren",
        "processus",
        "procesos",
        "processi",
    ),
    ("core", "cores", "cpu", "cpus", "kerne", "coeurs"),
    ("gpu", "gpus", "gcd", "gcds", "devices", "accelerators"),
    ("thread", "threads", "workers", "omp"),
    ("nodes", "hosts", "knoten", "noeuds", "nodos", "instances"),
)
"""Words for workers. The first groups divide a program most finely, so they have priority."""
_COUNTS = frozenset(
    {"n", "nb", "num", "nr", "no", "number", "of", "count", "total", "mpi", "used", "requested",
     "allocated", "anzahl", "nombre", "de", "numero"}
)  # fmt: skip
"""Words that do not change what is counted."""
_CAMEL_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_NO_LETTERS = re.compile(r"[^a-z]+")


def worker_parameter(varying: Iterable[str]) -> str | None:
    """Return the parameter that counts workers; None = none.

    Processes have priority, then cores, GPUs, threads and nodes.

    >>> [worker_parameter([name]) for name in ("p", "nGPUs", "num_nodes", "cores_per_node", "size")]
    ['p', 'nGPUs', 'num_nodes', None, None]
    """
    found = {name: _worker_group(name) for name in varying}
    counting = [name for name, group in found.items() if group is not None]
    return min(counting, key=lambda name: found[name] or 0, default=None)


def _worker_group(name: str) -> int | None:
    """Return the number of the group in `_WORKERS` to which the workers belong; None = none."""
    bare = _BRACKETS.sub(" ", name)
    words = _NO_LETTERS.sub(" ", _CAMEL_WORDS.sub(" ", bare).lower()).split()
    words = [word for word in words if word not in _COUNTS] or words[-1:]
    if len(words) != 1:
        return None
    spelled = {words[0], *(words[0].removeprefix(start) for start in ("n", "num", "nb"))}
    return next((k for k, group in enumerate(_WORKERS) if not spelled.isdisjoint(group)), None)


def main_parameter(names: Iterable[str]) -> str | None:
    """Return the default parameter: p, or else the first one; None = no parameters."""
    listed = list(names)
    return "p" if "p" in listed else next(iter(listed), None)


class ParameterLine(Struct, frozen=True):
    """A varying parameter, and the fixed values of the others.

    Attributes
    ----------
    parameter : the varying parameter
    held : fixed values of the other parameters
    measured_at : measured values nearest to `held`
    assumed : fixed parameters whose value the user did not give
    """

    parameter: str
    held: Mapping[str, float] = msgspec.field(default_factory=dict)
    measured_at: Mapping[str, float] = msgspec.field(default_factory=dict)
    assumed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All parameters, the varying one first."""
        return self.parameter, *self.held

    def at(self, scale: float) -> dict[str, float]:
        """Return the values of all parameters at a scale."""
        return {self.parameter: scale, **self.held}


def nearest_line(
    names: Sequence[str], settings: FloatArray, held: Mapping[str, float]
) -> ParameterLine:
    """Return the line with fixed values, and the measured settings nearest to them.

    Parameters
    ----------
    names : the varying parameter, then the others
    settings : [m, names] measured settings, above zero; m > 0
    held : fixed values; the default is the largest measured value
    """
    parameter, *others = names
    largest = dict(zip(others, settings[:, 1:].max(axis=0).tolist(), strict=True))
    at = {name: held.get(name, value) for name, value in largest.items()}
    near = _nearest(settings[:, 1:], np.array([*at.values()]))
    measured_at = dict(zip(others, near, strict=True))
    return ParameterLine(
        parameter, at, measured_at, tuple(name for name in others if name not in held)
    )


def _nearest(settings: FloatArray, at: FloatArray) -> list[float]:
    """Return the setting nearest to `at` [D] by ratio; of two equally near ones, the larger."""
    distance = np.abs(np.log(settings / at)).sum(axis=1)
    near = settings[distance <= distance.min() + 1e-9]
    nearest: list[float] = near[np.lexsort(near.T[::-1])[-1]].tolist() if len(at) else []
    return nearest


LIMITS = (1e-30, 1e30)
"""Bounds of a finite target, so that its powers do not overflow."""

_EXAMPLES = "e.g. 4096, 1e6 or inf"


def target_of(value: object, text: str | None = None, what: str = "target") -> float:
    """Return a target as a number at which models can be evaluated.

    Parameters
    ----------
    value : a number above zero, or infinity
    text : the number as the user wrote it
    what : name of the value for messages

    Raises
    ------
    UsageError
        If it is not a number, not above zero, or out of bounds.
    """
    said = f"{what} {text or repr(value)}"
    number = _numbers(value, said)
    if number.ndim:
        raise UsageError(f"{said} is not one number", hint=_EXAMPLES)
    return _checked(float(number), said, text)


def targets_of(values: object) -> FloatArray:
    """Return one target or several, [targets], each checked by `target_of`."""
    numbers = np.atleast_1d(_numbers(values, f"target {values!r}"))
    if numbers.ndim > 1:
        raise UsageError("targets must be one list of numbers", hint="e.g. [4096, 8192]")
    if not len(numbers):
        raise UsageError("there is no target", hint=_EXAMPLES)
    return np.array([_checked(each, f"target {each:g}") for each in numbers.tolist()])


def settings_of(values: Mapping[str, object], what: str = "target") -> dict[str, float]:
    """Return values of parameters by name, each checked by `target_of`."""
    if not isinstance(values, Mapping):
        raise UsageError(f"{what} {values!r} names no parameters", hint="e.g. {'n': 1000}")
    return {name: target_of(value, what=f"{what} {name} =") for name, value in values.items()}


def _numbers(values: object, said: str) -> FloatArray:
    try:
        found = np.asarray(values)
    except ValueError:
        # The lists have different lengths.
        found = np.array("")
    # numpy would convert texts, and None to NaN, but a caller does not mean that.
    if found.dtype.kind not in "iuf" and found.size:
        raise UsageError(f"{said} is not a number", hint=_EXAMPLES)
    return found.astype(np.float64)


def _checked(value: float, said: str, text: str | None = None) -> float:
    if not value > 0:
        raise UsageError(f"{said} is not positive", hint=_EXAMPLES)
    # A number that overflows was not meant to be infinite.
    is_meant = np.isinf(value) and (text is None or "inf" in text.lower())
    if not (LIMITS[0] <= value <= LIMITS[1] or is_meant):
        raise UsageError(f"{said} is out of bounds", hint="inf ranks by growth alone")
    return value
