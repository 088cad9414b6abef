"""Roles of the numbers that come with runs: parameter, repetition, run number or identifier.

The numbers are in names of files and directories, or in columns of a table. Their roles follow from
the design of the experiment, not only from their words:

- A number that never varies is a constant.
- A number that equals the processes, threads or nodes of the profile confirms the profile.
- A number that the known parameters determine, such as a total size under weak scaling, depends on
  them.
- A number that differs in every run, while other parameters determine the scales, is a run number.
- A number whose values recur at several settings is a parameter. However, small numbers that count
  the runs of each setting from 1 are numbers of repetitions, unless their word denotes a size.
- The only number that varies is a parameter, unless it counts the runs or looks like an identifier.

If the runs fit two interpretations, a finding reports the doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.runs import RunNumber
from callpath_modeler.readers.tokens import NameWord, NumberColumn
from callpath_modeler.units import parameter_value


class Role(StrEnum):
    """Role of a number."""

    PARAMETER = "parameter"
    REPETITION = "repetition"
    RUN_NUMBER = "run number"
    CONSTANT = "constant"
    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    DEPENDENT = "dependent"
    UNUSED = "unused"
    UNDECIDED = "undecided"


class Decision(Struct, frozen=True):
    """The role of one number.

    Attributes
    ----------
    column : values of the number in every run
    role : its role
    reason : reason for the role, as the end of a sentence about the number
    name : name of the parameter; "" for other roles
    is_doubtful : True if another role is possible, or if the number varies and is not used
    """

    column: NumberColumn
    role: Role
    reason: str
    name: str = ""
    is_doubtful: bool = False


NUMBERS_REPETITIONS = "numbers the repetitions"
"""Beginning of the reason for the role of numbers of repetitions."""

_ORDER = (
    NameWord.PROCESSES, NameWord.CORES, NameWord.THREADS, NameWord.NODES, NameWord.SIZE,
    NameWord.OTHER, NameWord.NONE, NameWord.IDENTIFIER, NameWord.REPETITION,
)  # fmt: skip
_NAMES = {
    NameWord.PROCESSES: "p",
    NameWord.CORES: "p",
    NameWord.THREADS: "threads",
    NameWord.NODES: "nodes",
}
_DENSE = 1.5
"""Largest ratio of range to number of values at which numbers count the runs.

Some runs may be missing.
"""
_ALIKE = (0.05, 0.25)
"""Largest relative range of identifiers of 4 digits, and of 6 digits."""
_GROWTH = 1.5
"""Smallest ratio of the largest to the smallest value of a size that depends on p."""
_ALMOST_ALL = 0.8
"""Share of distinct values from which on the others recur by chance."""


def infer(
    columns: Sequence[NumberColumn],
    given: Mapping[str, Sequence[float]],
    *,
    counts: Mapping[str, Sequence[float]] | None = None,
    required: Collection[str] = (),
) -> list[Decision]:
    """Return the role of every number.

    Parameters
    ----------
    columns : numbers of all runs, at least one
    given : parameters that the profiles state, [runs], by name
    counts : further counts of the profiles, such as nodes, [runs]; a number may confirm them
    required : names of parameters that the user takes from these numbers

    Returns
    -------
    list of Decision
        In the order of `columns`.
    """
    state = _State(columns, given, counts or {})
    decided: dict[int, Decision] = {}
    for k in _required(columns, required):
        name = columns[k].label if columns[k].label in required else next(iter(required))
        name = _NAMES.get(columns[k].word, name) if name not in required else name
        decided[k] = Decision(columns[k], Role.PARAMETER, "a parameter, as given", name)
        state.add(name, columns[k])
    order = sorted(range(len(columns)), key=lambda k: _ORDER.index(columns[k].word))
    for k in order:
        if k not in decided:
            decided[k] = state.decide(columns[k])
            if decided[k].role is Role.PARAMETER:
                state.add(decided[k].name, columns[k])
    return [decided[k] for k in range(len(columns))]


def _required(columns: Sequence[NumberColumn], required: Collection[str]) -> list[int]:
    """Return the columns that the user named, or for another name, the only unlabelled column."""
    found = []
    for name in required:
        named = [k for k, c in enumerate(columns) if c.label == name or _NAMES.get(c.word) == name]
        bare = [k for k, c in enumerate(columns) if c.word in {NameWord.NONE, NameWord.OTHER}
                and len({*c.values}) > 1 and None not in c.values]  # fmt: skip
        found += named[:1] or (bare if len(bare) == 1 else [])
    return found


class _State:
    """The parameters that are known while columns are decided one after the other."""

    def __init__(
        self,
        columns: Sequence[NumberColumn],
        given: Mapping[str, Sequence[float]],
        counts: Mapping[str, Sequence[float]],
    ) -> None:
        self.runs = len(columns[0].values) if columns else 0
        self.known = {name: tuple(values) for name, values in given.items()}
        self.counts = {name: tuple(values) for name, values in counts.items()}
        # Next to a number of processes, ``t`` means threads, unless the profiles state the threads.
        words = {column.word for column in columns} | {_word(column) for column in columns}
        self.is_t = NameWord.PROCESSES in words and "threads" not in {*given, *counts}

    def add(self, name: str, column: NumberColumn) -> None:
        """Add a column to the known parameters."""
        self.known[name] = tuple(value if value is not None else -1.0 for value in column.values)

    def settings(self) -> list[tuple[float, ...]]:
        """Return the values of the varying known parameters, for each run."""
        varying = [values for values in self.known.values() if len({*values}) > 1]
        return [tuple(values[run] for values in varying) for run in range(self.runs)]

    def decide(self, column: NumberColumn) -> Decision:  # noqa: PLR0911 - one per role
        """Return the role of one column."""
        word = self._word(column)
        present = {value for value in column.values if value is not None}
        if None in column.values:
            return self._incomplete(column, word, present)
        values = tuple(value for value in column.values if value is not None)
        same = self._same(word, values)
        if same:
            return Decision(column, Role.CONFIRMED, f"equals {same}")
        if self._name(column, word) in self.known and word is not NameWord.NONE:
            name = self._name(column, word)
            return Decision(column, Role.CONTRADICTED, f"differs from {name} in the profile", name)
        if word is NameWord.REPETITION:
            return self._repetition(column, values)
        if len(present) == 1:
            role = Role.CONSTANT if self._is_telling(column, word) else Role.UNUSED
            return Decision(column, role, "never varies", self._name(column, word))
        if word is NameWord.IDENTIFIER:
            return Decision(column, Role.RUN_NUMBER, "an identifier of the runs", "", True)
        settings = self.settings()
        if len({*settings}) < 2:
            return self._only(column, word, values)
        return self._beside(column, word, values, settings)

    def _word(self, column: NumberColumn) -> NameWord:
        return NameWord.THREADS if column.label == "t" and self.is_t else _word(column)

    def _name(self, column: NumberColumn, word: NameWord) -> str:
        if word is NameWord.CORES and "p" in self.known:
            return column.label
        return _NAMES.get(word, column.label)

    @staticmethod
    def _is_telling(column: NumberColumn, word: NameWord) -> bool:
        return word in _NAMES or (
            column.joined and word not in {NameWord.IDENTIFIER, NameWord.NONE}
        )

    def _same(self, word: NameWord, values: tuple[float, ...]) -> str:
        """Return the count of the profile that equals a column in every run, or ""."""
        if len({*values}) == 1 and word not in _NAMES:
            return ""
        told = {**self.counts, **self.known}
        p, threads = told.get("p"), told.get("threads")
        products = (
            {"p x threads": tuple(a * b for a, b in zip(p, threads, strict=True))}
            if p and threads
            else {}
        )
        for name, known in {**told, **products}.items():
            if known == values:
                return name
        return ""

    def _incomplete(self, column: NumberColumn, word: NameWord, present: set[float]) -> Decision:
        missing = sum(value is None for value in column.values)
        reason = f"{missing} of {self.runs} runs have no such number"
        if word is NameWord.REPETITION:
            return Decision(column, Role.REPETITION, NUMBERS_REPETITIONS)
        if len(present) == 1 or self._is_confirmed_where_present(column, word):
            return Decision(column, Role.UNUSED, reason)
        if word in {NameWord.SIZE, *_NAMES} and _NAMES.get(word, "") not in self.known:
            return Decision(column, Role.UNDECIDED, reason, self._name(column, word), True)
        return Decision(column, Role.UNUSED, reason, "", word is not NameWord.NONE)

    def _is_confirmed_where_present(self, column: NumberColumn, word: NameWord) -> bool:
        known = self.known.get(_NAMES.get(word, column.label))
        pairs = zip(column.values, known or (), strict=False)
        return known is not None and all(value in {None, other} for value, other in pairs)

    def _repetition(self, column: NumberColumn, values: tuple[float, ...]) -> Decision:
        alone = len({*self.settings()}) < 2 and not _is_counting({*values}) and self.runs > 1
        return Decision(column, Role.REPETITION, NUMBERS_REPETITIONS, "",
                        alone and len({*values}) > 1)  # fmt: skip

    def _only(self, column: NumberColumn, word: NameWord, values: tuple[float, ...]) -> Decision:
        """Return the role of a number that varies while all known parameters are constant."""
        distinct = {*values}
        loose = word is NameWord.NONE or (word is NameWord.OTHER and not column.joined)
        if word in {NameWord.OTHER, NameWord.NONE} and (
            _is_counting(distinct) or _are_identifiers(distinct)
        ):
            reason = "treated as a run number, because it only counts the runs"
            if not _is_counting(distinct):
                reason = "treated as an identifier, because its values lie close together"
            return Decision(column, Role.RUN_NUMBER, reason, "", True)
        reason = "a parameter, because it is the only number that varies"
        if not loose:
            return Decision(column, Role.PARAMETER, reason, self._name(column, word))
        if "p" not in self.known:
            doubt = "used as the number of processes, because it is the only number that varies"
            return Decision(column, Role.PARAMETER, doubt, "p", True)
        if not column.label:
            return Decision(column, Role.UNDECIDED, "the only number that varies", "", True)
        return Decision(column, Role.PARAMETER, reason, column.label, True)

    def _beside(  # noqa: PLR0911 - one per role
        self,
        column: NumberColumn,
        word: NameWord,
        values: tuple[float, ...],
        settings: Sequence[tuple[float, ...]],
    ) -> Decision:
        """Return the role of a number that varies together with known parameters."""
        distinct = {*values}
        groups: dict[tuple[float, ...], list[float]] = {}
        for setting, value in zip(settings, values, strict=True):
            groups.setdefault(setting, []).append(value)
        name = self._name(column, word)
        if all(len({*group}) == 1 for group in groups.values()):
            return self._following(column, word, values, groups)
        if len(distinct) == len(values):
            if _is_ambiguous(column, word, groups.values()):
                reason = "differs in every run, and much between runs of one setting"
                return Decision(column, Role.UNDECIDED, reason, name, True)
            reason = "a run number, because it differs in every run"
            return Decision(column, Role.RUN_NUMBER, reason, "", True)
        loose = word in {NameWord.OTHER, NameWord.NONE}
        if loose and _numbers_repetitions(groups.values()):
            reason = f"{NUMBERS_REPETITIONS}, because it counts the runs of each setting"
            return Decision(
                column, Role.REPETITION, reason, "", word is NameWord.OTHER and column.joined
            )
        by_chance = len(distinct) > _ALMOST_ALL * len(values) and len(values) >= 10
        if loose and (by_chance or _are_identifiers(distinct)):
            return Decision(
                column, Role.RUN_NUMBER, "treated as an identifier of the runs", "", True
            )
        reason = "a parameter, because its values recur"
        if word is NameWord.NONE:
            return Decision(column, Role.UNDECIDED, reason, "", True)
        return Decision(column, Role.PARAMETER, reason, name)

    def _following(
        self,
        column: NumberColumn,
        word: NameWord,
        values: tuple[float, ...],
        groups: Mapping[tuple[float, ...], Sequence[float]],
    ) -> Decision:
        """Return the role of a number with a single value at each setting."""
        distinct = {*values}
        telling = (
            word is NameWord.SIZE or word in _NAMES or (word is NameWord.OTHER and column.joined)
        )
        counts = _is_counting(distinct) and word not in _NAMES
        if telling and not counts and _is_monotone(groups) and _spans(distinct):
            along = " and ".join(name for name, known in self.known.items() if len({*known}) > 1)
            reason = f"depends on {along}, so it is not modelled separately"
            return Decision(column, Role.DEPENDENT, reason, self._name(column, word))
        if len(distinct) == len(values):
            reason = "a run number, because it differs in every run"
            return Decision(column, Role.RUN_NUMBER, reason, "", True)
        return Decision(
            column, Role.UNUSED, "each scale has its own value", "", word is not NameWord.NONE
        )


def _word(column: NumberColumn) -> NameWord:
    return NameWord.PROCESSES if column.label == "p" else column.word


def _is_counting(values: set[float]) -> bool:
    """Return whether integers fill their range, as run numbers do."""
    if not all(value == int(value) for value in values) or len(values) < 2:
        return False
    width = max(values) - min(values) + 1
    return width <= (_DENSE * len(values) if len(values) > 3 else len(values))


def _are_identifiers(values: set[float]) -> bool:
    """Return whether numbers are long and close together, as job numbers are."""
    if not all(value == int(value) for value in values):
        return False
    least, most = min(values), max(values)
    share = (most - least) / most if most > 0 else 1.0
    return (least >= 1e3 and share <= _ALIKE[0]) or (least >= 1e5 and share <= _ALIKE[1])


def _is_monotone(groups: Mapping[tuple[float, ...], Sequence[float]]) -> bool:
    """Return whether a number increases, or decreases, along the first known parameter."""
    along = [values[0] for _, values in sorted(groups.items())]
    return along in (sorted(along), sorted(along, reverse=True))


def _spans(values: set[float]) -> bool:
    return min(values) > 0 and max(values) >= _GROWTH * min(values)


def _is_ambiguous(column: NumberColumn, word: NameWord, groups: Iterable[Sequence[float]]) -> bool:
    """Return whether a size that differs in every run may be a parameter.

    This is the case if it varies much at each setting with several runs.
    """
    several = [group for group in groups if len(group) > 1]
    counts = _is_counting({value for value in column.values if value is not None})
    return word is NameWord.SIZE and not counts and all(_spans({*group}) for group in several)


def _numbers_repetitions(groups: Iterable[Sequence[float]]) -> bool:
    """Return whether numbers count the runs of each setting from 0 or 1; some may be missing."""
    sizes = [*groups]
    most = max(map(len, sizes))
    every = {value for group in sizes for value in group}
    return (
        all(len({*group}) == len(group) for group in sizes)
        and all(value == int(value) for value in every)
        and min(every) in {0, 1}
        and max(every) <= most + 1
    )


_MOST = 5
"""Maximum number of values in a list."""


def named_number(decision: Decision) -> RunNumber:
    """Return a number in names, with its values and its role as text."""
    column = decision.column
    values = sorted({value for value in column.values if value is not None})
    shown = [parameter_value(value) for value in values]
    if len(shown) > _MOST:
        shown = [*shown[:2], "...", shown[-1]]
    role, constant = decision.reason, ""
    if decision.role is Role.CONSTANT:
        role = "never varies, not modelled"
        constant = decision.name if column.common else ""
    return RunNumber(column.label or "number", " ".join(shown), column.place, role, constant)


def refuse_undecided(decisions: Sequence[Decision], runs: Sequence[str]) -> None:
    """Raise `UsageError` for the first number whose role cannot be decided."""
    for decision in decisions:
        if decision.role is not Role.UNDECIDED:
            continue
        number = named_number(decision)
        name = decision.column.label
        if name and None in decision.column.values:
            lacking = runs[decision.column.values.index(None)]
            raise UsageError(
                f"{lacking}: no parameter {name!r} in the name of this run",
                hint="give a pattern (--name 'app.p{p}.n{n}.r{rep}') or a manifest runs.toml, "
                f"or exclude the number with --param {name}=none",
            )
        option = name or "n"
        what = f"{number.name} = {number.values}" if name else f"the numbers {number.values}"
        leave = f", --param {name}=none if it is not" if name else ""
        raise UsageError(
            f"{what} in {number.place} may be a parameter or not: {decision.reason}",
            hint=f"--param {option}=name if it is a parameter{leave}, "
            "or --name 'PATTERN' with braces around each number, e.g. '{p}/{n}'",
        )
