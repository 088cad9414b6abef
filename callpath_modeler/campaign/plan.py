"""Plans of series: scales and repetitions in a random order, and the directories of runs."""

from __future__ import annotations

import math
import os
import random
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from callpath_modeler.campaign.profilers import PROFILERS, profiler
from callpath_modeler.errors import InputError, UsageError, nearest_or_all
from callpath_modeler.printable import printable, shortened
from callpath_modeler.readers.tokens import NameWord, word_of
from callpath_modeler.support.atomic import write_file

STATE = ".series"
"""Directory for the plan, running and failed runs, below that of the series.

Its name begins with a point, so that no reader looks for profiles there.
"""
PLAN = "series.json"

MOST_RUNS = 10_000
_MOST_PLAN = 1_000_000
"""Largest size of a stored plan in bytes."""
_LARGEST = 10**12
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_LAUNCHERS = frozenset({
    "srun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "aprun", "jsrun", "lrun",
    "ibrun", "env", "numactl", "taskset", "nice", "time", "timeout", "singularity", "apptainer",
})  # fmt: skip
_INTERPRETERS = re.compile(r"(python|perl|ruby|bash|sh|julia|node|java)[\d.]*")
DIRECTORY = "dir"
"""Placeholder for the directory of a run."""
WRAPPER = "profiler"
"""Placeholder for the command of the profiler."""


class PlannedRun(Struct, frozen=True):
    """One run of a series.

    Attributes
    ----------
    parameters : value of each parameter by name; the first one is p
    repetition : number of the repetition, from 1
    """

    parameters: Mapping[str, int]
    repetition: int

    @property
    def name(self) -> str:
        """The name of its directory, such as ``p8.n30.r1``."""
        words = [f"{name}{value}" for name, value in self.parameters.items()]
        return ".".join([*words, f"r{self.repetition}"])

    @property
    def processes(self) -> int:
        """The number of processes."""
        return self.parameters["p"]


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """What a series measures, as its directory states it.

    Attributes
    ----------
    place : directory of the series when its plan was stored
    command : words of the command, with placeholders such as ``{p}``
    folder : working directory of the command
    scales : numbers of processes
    varied : values of the other parameters by name
    repetitions : number of runs of each setting
    profiler : name of the profiler
    seed : seed of the order of runs
    time_limit : longest time of a run in seconds; 0 = none
    submit : name of the scheduler, or "" for this machine
    scheduler_options : further options of the scheduler
    until : the band that is narrow enough, as the user writes it; "" = all runs are made
    budget : largest cost of all runs, as the user writes it; "" = no limit
    profile_once : True = a first run chooses the functions that the others do not measure
    """

    schema: int
    place: str
    command: list[str]
    folder: str
    scales: list[int]
    varied: dict[str, list[int]]
    repetitions: int
    profiler: str
    seed: int
    time_limit: float = 0.0
    submit: str = ""
    scheduler_options: list[str] = []
    until: str = ""
    budget: str = ""
    profile_once: bool = False

    @property
    def program(self) -> str:
        """The name of the program without its directory."""
        return program_name(self.command)

    def settings(self) -> Iterator[dict[str, int]]:
        """Yield the values of all parameters, for each combination of them."""
        names = ["p", *self.varied]
        for values in product(self.scales, *self.varied.values()):
            yield dict(zip(names, values, strict=True))

    def runs(self) -> list[PlannedRun]:
        """Return all runs in their random order, which depends on the seed only."""
        runs = [
            PlannedRun(setting, repetition)
            for setting in self.settings()
            for repetition in range(1, self.repetitions + 1)
        ]
        random.Random(self.seed).shuffle(runs)
        return runs

    def words(self, run: PlannedRun, folder: Path, wrapper: Sequence[str] = ()) -> list[str]:
        """Return the words of the command of one run.

        Parameters
        ----------
        run : the run
        folder : directory of its results
        wrapper : words in front of the program, or where the command has ``{profiler}``
        """
        command = list(self.command)
        marked = f"{{{WRAPPER}}}"
        at = command.index(marked) if marked in command else program_position(command)
        command[at : at + (marked in command)] = wrapper
        return [filled(word, run, folder) for word in command]

    def full_words(self, run: PlannedRun, folder: Path) -> list[str]:
        """Return the words of the command of one run with those of the profiler."""
        before = profiler(self.profiler).words_before(folder, self.command[0])
        return self.words(run, folder, before)

    def longest(self, limit: float) -> float:
        """Return the longest time of a run: a limit, or that of the plan; 0 = none."""
        return min((each for each in (limit, self.time_limit) if each), default=0.0)


def filled(word: str, run: PlannedRun, folder: Path) -> str:
    """Return a word with the values of its placeholders; other braces stay as they are."""
    values: dict[str, object] = {**run.parameters, DIRECTORY: folder}
    return _PLACEHOLDER.sub(
        lambda found: str(values.get(found[1], found[0])),
        word,
    )


def program_position(command: Sequence[str]) -> int:
    """Return the position of the program behind its launchers, e.g. 3 for ``srun -n {p} ./app``.

    A word with a slash that is a file comes first, then a command of the search path that does not
    follow an option. The first word is the program if it is no launcher.
    """
    if Path(command[0]).name not in _LAUNCHERS:
        return 0
    behind = [
        (position, word)
        for position, word in enumerate(command)
        if position and not word.startswith(("-", "{")) and Path(word).name not in _LAUNCHERS
    ]
    commands = [
        position
        for position, word in behind
        if _INTERPRETERS.fullmatch(Path(word).name)
        or ("/" in word and Path(word).is_file())
        or ("/" not in word and not command[position - 1].startswith("-") and shutil.which(word))
    ]
    return commands[0] if commands else 0


def program_name(command: Sequence[str]) -> str:
    """Return the name of the program, or of the script or module that an interpreter runs."""
    position = program_position(command)
    name = Path(command[position]).name
    rest = [*command[position + 1 :], ""]
    if _INTERPRETERS.fullmatch(name) and "-c" not in rest:
        scripts = [word for word in rest if not word.startswith("-")]
        name = Path(scripts[0]).name or name
    return printable(name) or "program"


def whole_numbers(text: str, what: str) -> list[int]:
    """Return positive whole numbers that are separated by commas, ascending.

    Raises
    ------
    UsageError
        If there is anything else.
    """
    found = []
    for part in text.split(","):
        word = part.strip()
        if not (word.isascii() and word.isdigit() and len(word) < 14 and 0 < int(word) <= _LARGEST):
            raise UsageError(
                f"{what}: {shortened(part)!r} is not a positive whole number", hint="e.g. 8,16,32"
            )
        found.append(int(word))
    return sorted(set(found))


def varied_parameters(texts: Sequence[str]) -> dict[str, list[int]]:
    """Return the values of further parameters from texts such as ``n=10,20``.

    Raises
    ------
    UsageError
        If a name is not suited for the names of runs, or a value is not a whole number.
    """
    found: dict[str, list[int]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        kinds = {NameWord.SIZE, NameWord.OTHER, NameWord.THREADS, NameWord.NODES}
        is_letters = name.isascii() and name.isalpha() and len(name) <= 40
        taken = {"p", "r", DIRECTORY, WRAPPER, *found}
        if not is_letters or name in taken or word_of(name) not in kinds:
            raise UsageError(
                f"--vary {shortened(text)!r}: the name of the parameter is not possible",
                hint="use letters, such as n or size, and no word for processes or repetitions",
            )
        found[name] = whole_numbers(values, f"--vary {name}")
    return found


def check_command(plan: Plan) -> None:
    """Raise `UsageError` if a command would run the same at all scales, or cannot run."""
    known = {"p", *plan.varied, DIRECTORY, WRAPPER}
    used = {name for word in plan.command for name in _PLACEHOLDER.findall(word)}
    for name in ("p", *plan.varied):
        if name not in used and not (name == "p" and _scheduler_starts(plan)):
            raise UsageError(
                f"the command does not contain {{{name}}}: "
                f"all values of {name} would be the same run",
                hint=f"e.g. cpmodel run --scales 2,4,8 -- mpirun -n {{{name}}} ./app",
            )
    odd = sorted(name for name in used - known if len(name) < 20)
    if odd:
        raise UsageError(
            f"the command contains {{{odd[0]}}}, which has no value",
            hint=f"add --vary {odd[0]}=1,2,4; {nearest_or_all(odd[0], sorted(known))}",
        )
    if any("\0" in word for word in plan.command):
        raise UsageError("the command contains a NUL character", hint="remove it")
    program = plan.command[0]
    if not plan.submit and "{" not in program and shutil.which(program) is None:
        raise UsageError(
            f"no program {shortened(program)!r} that can be executed",
            hint="check its name, its permission to execute (chmod +x), and the search path",
        )
    count = math.prod(map(len, [plan.scales, *plan.varied.values()])) * plan.repetitions
    if count > MOST_RUNS:
        raise UsageError(
            f"the series has {count} runs, the limit is {MOST_RUNS}", hint="use fewer values"
        )


def _scheduler_starts(plan: Plan) -> bool:
    """Return whether the scheduler knows the number of processes, as with srun in a job."""
    return bool(plan.submit) and Path(plan.command[0]).name == "srun"


def read_plan(series: Path) -> Plan | None:
    """Return the plan that a directory stores; None = there is none.

    Raises
    ------
    InputError
        If it is damaged.
    """
    path = series / STATE / PLAN
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_PLAN + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        plan = msgspec.json.decode(content[:_MOST_PLAN], type=Plan)
        _check_stored(plan)
    except (ValueError, UsageError) as cause:
        raise InputError(
            f"{path}: the plan of this series is damaged: {cause}",
            hint="begin another series with -o DIR",
        ) from None
    return plan


def _check_stored(plan: Plan) -> None:
    """Raise `ValueError` or `UsageError` for values that no command line could make."""
    if plan.schema != 1:
        raise ValueError(f"schema {plan.schema} is not known")
    if not plan.command or not plan.scales:
        raise ValueError("it has no command or no scales")
    numbers = [plan.repetitions, *plan.scales, *chain.from_iterable(plan.varied.values())]
    if not all(0 < number <= _LARGEST for number in numbers):
        raise ValueError("a scale, a value or a number of repetitions is not possible")
    if plan.profiler not in PROFILERS or plan.submit not in {"", "slurm"}:
        raise ValueError("its profiler or its scheduler is not known")
    check_options(plan.scheduler_options)
    varied_parameters([f"{name}={_listed(values)}" for name, values in plan.varied.items()])


def check_options(options: Sequence[str]) -> None:
    """Raise `UsageError` if an option of sbatch is not one line that begins with a minus sign."""
    for each in options:
        if not each.startswith("-") or not each.isprintable():
            raise UsageError(
                f"--sbatch {shortened(each)!r} is not an option of sbatch",
                hint="e.g. --sbatch=--partition=short",
            )


def require_own(series: Path, plan: Plan) -> None:
    """Raise `UsageError` if a command that only a directory states should not be executed.

    The directory may come from somebody else, e.g. in an archive.
    """
    is_mine = (series / STATE / PLAN).stat().st_uid == os.geteuid()
    if not is_mine or plan.place != os.path.realpath(series):
        why = "was made or moved here from elsewhere" if is_mine else "belongs to another user"
        raise UsageError(
            f"{series}: this series {why}, so its command is not executed",
            hint="state the command: cpmodel run -o DIR --scales 2,4,8 -- COMMAND",
        )


def _listed(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def write_plan(series: Path, plan: Plan) -> None:
    """Store a plan in the directory of its series.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    text = msgspec.json.format(msgspec.json.encode(plan), indent=2)
    write_file(series / STATE / PLAN, text + b"\n", overwrite=True)


def joined_plan(stored: Plan, asked: Plan) -> Plan:
    """Return the plan with the scales, values and repetitions of both.

    Raises
    ------
    UsageError
        If they measure different commands, or with different profilers.
    """
    for field, what in (("command", "command"), ("folder", "directory of the program"),
                        ("profiler", "profiler")):  # fmt: skip
        if getattr(stored, field) != getattr(asked, field):
            raise UsageError(
                f"the directory holds a series with another {what}: "
                f"{shortened(str(getattr(stored, field)))}",
                hint="choose another directory with -o, or go on with cpmodel run --again DIR",
            )
    if [*stored.varied] != [*asked.varied]:
        raise UsageError(
            "the directory holds a series with other parameters: "
            f"{', '.join(['p', *stored.varied])}",
            hint="choose another directory with -o",
        )
    varied = {name: sorted({*stored.varied[name], *asked.varied[name]}) for name in stored.varied}
    return structs.replace(
        asked,
        scales=sorted({*stored.scales, *asked.scales}),
        varied=varied,
        repetitions=max(stored.repetitions, asked.repetitions),
        seed=stored.seed,
        profile_once=stored.profile_once or asked.profile_once,
    )
