"""Runs of a program, the parameters that vary between them, and the words that tell cases apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NoReturn, Protocol

from msgspec import Struct

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import printable, shell_word, shortened
from callpath_modeler.profile.schema import Extent
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
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
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
    words = re.findall(r"[0-9a-z]+", _CAMEL.sub(" ", _BRACKETS.sub("", title)).lower())
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
