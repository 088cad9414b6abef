"""Groups of processes: conditions on ranks that users write, and groups found from times.

Conditions are such as ``rank % 4 == 0`` or ``rank > 0 and rank < p / 2``. Numbers are evaluated in
double precision, so no input overflows. A division is rounded down; a division by zero makes the
comparison false.

The processes of a run are clustered by k-means, from their times in call paths. A number of
clusters is accepted if the clusters are farther apart than a continuous distribution of process
times can be divided, and if repetitions agree. Clusters of different runs belong together if the
same call paths deviate in the same direction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.support.expression import END, Cursor, ExpressionError

_TOKEN = re.compile(r"(?P<number>\d{1,15})|(?P<word>[A-Za-z]{1,10})|(?P<sign>[=!<>]=|[-+*/%()=<>])")
_LONGEST = 500
_DEEPEST = 20

_Value = Callable[[FloatArray, float], FloatArray]
_Truth = Callable[[FloatArray, float], BoolArray]

_COMPARISONS: Mapping[str, Callable[[FloatArray, FloatArray], BoolArray]] = {
    "==": np.equal,
    "=": np.equal,
    "!=": np.not_equal,
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "<": np.less,
    ">": np.greater,
}
_SUMS: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "+": np.add,
    "-": np.subtract,
}
_PRODUCTS: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "*": np.multiply,
    "/": np.floor_divide,
    "%": np.mod,
}


class _ConditionError(ExpressionError):
    """Syntax error in a condition on ranks."""


class RankCondition(Struct, frozen=True):
    """A condition on ranks.

    Attributes
    ----------
    text : the condition as the user wrote it, with single blanks
    """

    text: str

    def __post_init__(self) -> None:
        structs.force_setattr(self, "text", " ".join(self.text.split()))
        _parsed(self.text)

    def of(self, processes: int) -> BoolArray:
        """Return which ranks fulfil the condition, [processes]."""
        ranks = np.arange(processes, dtype=np.float64)
        with np.errstate(all="ignore"):
            return np.broadcast_to(_parsed(self.text)(ranks, float(processes)), ranks.shape)


def rank_condition(text: str, option: str) -> RankCondition:
    """Return the condition in the value of an option.

    Raises
    ------
    UsageError
        If the text is not a condition.
    """
    try:
        return RankCondition(text)
    except _ConditionError as error:
        raise UsageError(f"{option}: {error}", hint=f"e.g. {option} 'rank % 4 == 0'") from None


def _parsed(text: str) -> _Truth:
    if len(text) > _LONGEST:
        raise _ConditionError(text, _LONGEST, f"the condition is longer than {_LONGEST} characters")
    cursor = Cursor(text, _TOKEN, _ConditionError)
    found = _any(cursor)
    if cursor.ahead.kind != END:
        cursor.fail("expected 'and', 'or' or the end")
    return found


def _any(cursor: Cursor) -> _Truth:
    parts = [_all(cursor)]
    while cursor.accept("or"):
        parts.append(_all(cursor))
    return lambda ranks, p: np.logical_or.reduce([part(ranks, p) for part in parts])


def _all(cursor: Cursor) -> _Truth:
    parts = [_comparison(cursor)]
    while cursor.accept("and"):
        parts.append(_comparison(cursor))
    return lambda ranks, p: np.logical_and.reduce([part(ranks, p) for part in parts])


def _comparison(cursor: Cursor) -> _Truth:
    left = _sum(cursor, 0)
    sign = cursor.accept(*_COMPARISONS) or cursor.fail("expected ==, !=, <, <=, > or >=")
    right, compare = _sum(cursor, 0), _COMPARISONS[sign.text]
    return lambda ranks, p: _known(compare, left(ranks, p), right(ranks, p), ranks)


def _known(
    compare: Callable[[FloatArray, FloatArray], BoolArray],
    left: FloatArray,
    right: FloatArray,
    ranks: FloatArray,
) -> BoolArray:
    """Return a comparison for every rank, which is false if a side is not a number."""
    known = np.isfinite(left) & np.isfinite(right)
    return np.broadcast_to(compare(left, right) & known, ranks.shape)


def _sum(cursor: Cursor, depth: int) -> _Value:
    return _chain(cursor, depth, _product, _SUMS)


def _product(cursor: Cursor, depth: int) -> _Value:
    return _chain(cursor, depth, _atom, _PRODUCTS)


def _chain(
    cursor: Cursor,
    depth: int,
    part: Callable[[Cursor, int], _Value],
    signs: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]],
) -> _Value:
    first, more = part(cursor, depth), []
    while sign := cursor.accept(*signs):
        more.append((signs[sign.text], part(cursor, depth)))

    def value(ranks: FloatArray, p: float) -> FloatArray:
        found = first(ranks, p)
        for apply, each in more:
            found = apply(found, each(ranks, p))
        return found

    return value


def _atom(cursor: Cursor, depth: int) -> _Value:
    if depth > _DEEPEST:
        cursor.fail(f"more than {_DEEPEST} parentheses in each other")
    if number := cursor.accept("number"):
        constant = np.float64(number.text)
        return lambda ranks, p: np.asarray(constant)  # noqa: ARG005
    if cursor.accept("("):
        inside = _sum(cursor, depth + 1)
        cursor.expect(")", "expected )")
        return inside
    if cursor.accept("rank"):
        return lambda ranks, p: ranks  # noqa: ARG005
    if cursor.accept("p"):
        return lambda ranks, p: np.asarray(p)  # noqa: ARG005
    return cursor.fail("expected rank, p or a number")


_MOST = 4
"""Largest number of groups."""
_APART = 6.0
"""Smallest distance of two centres, in standard deviations inside both clusters.

The halves of a uniform distribution are 3.5 apart, those of a normal distribution 2.7.
"""
_MATTERS = 0.02
"""Smallest distance of two centres, as a fraction of the mean time of a process."""
_STARTS = 4
_FEW = 4
"""Largest number of processes that show no groups."""
_AGREEING = 0.8
"""Smallest overlap of a group in one repetition with the group in most repetitions."""
_SAMPLE = 4000
"""Number of processes from which centres are computed."""
_SEED = 20_240_601


class ProcessTimes(Struct, frozen=True, eq=False):
    """Times of the processes of one run.

    Attributes
    ----------
    names : [f] call paths, the costliest ones of the run
    values : [processes, f] exclusive times, seconds
    whole : mean time of a process over all call paths, seconds
    """

    names: tuple[str, ...]
    values: FloatArray
    whole: float


class ProcessGroups(Struct, frozen=True, eq=False):
    """Groups of the processes of several runs.

    Attributes
    ----------
    names : a condition on ranks, or a description, for each group; the largest group comes first
    labels : group of every process of each run, [processes] each
    """

    names: tuple[str, ...]
    labels: tuple[IntArray, ...]


def groups_of_processes(runs: Sequence[ProcessTimes]) -> ProcessGroups | None:
    """Return groups of processes that differ in all runs.

    Parameters
    ----------
    runs : in ascending order of the number of processes

    Returns
    -------
    ProcessGroups or None
        None if the processes have no groups: clusters are not apart in most runs, or their members
        change from run to run.
    """
    parts = [_normalised(run) for run in runs]
    counts = [_number_of_clusters(part) for part in parts]
    # Groups may become different at larger scales only, and few processes show no groups.
    scales = sorted({len(part) for part in parts if len(part) > _FEW})
    large = scales[len(scales) // 2 :]
    telling = [count for count, part in zip(counts, parts, strict=True) if len(part) in large]
    count = max(counts, default=1)
    while count > 1 and sum(each >= count for each in telling) * 3 < 2 * len(telling):
        count -= 1
    if count == 1 or not telling:
        return None
    labels = [
        _clusters(part, count)[0] if each >= count else None
        for part, each in zip(parts, counts, strict=True)
    ]
    found = _matched(runs, parts, labels, count)
    processes = [len(part) for part in parts]
    of_scale = {p: _agreed([g for g in found if g is not None and len(g) == p]) for p in processes}
    known = [p for p, group in of_scale.items() if group is not None]
    if len({*known} & {*large}) * 3 < 2 * len(large):
        return None
    names, everywhere = [], []
    for k in range(count):
        members = [np.flatnonzero(of_scale[p] == k) for p in known]
        rule = rule_of(members, known)
        share = len(members[-1]) / known[-1]
        names.append(rule or f"group {k + 1} ({share:.0%} of the processes)")
        everywhere.append(rule)
    if not _is_certain(found, everywhere):
        return None
    selected = [_by_rules(everywhere, of_scale[p], p) for p in processes]
    if any(group is None for group in selected):
        return None
    return ProcessGroups(tuple(names), tuple(group for group in selected if group is not None))


def _agreed(groups: Sequence[IntArray]) -> IntArray | None:
    """Return the group of each process by the majority of repetitions; None = they disagree."""
    if not groups:
        return None
    votes = np.stack([np.bincount(column).argmax() for column in np.stack(groups).T])
    shared = [_overlap(group == k, votes == k) for group in groups for k in np.unique(group)]
    return votes if min(shared) >= _AGREEING else None


def _overlap(one: BoolArray, other: BoolArray) -> float:
    """Return the number of processes in both groups, over the number in any of them."""
    return float((one & other).sum() / max((one | other).sum(), 1))


def _is_certain(found: Sequence[IntArray | None], rules: Sequence[str]) -> bool:
    """Return whether the groups are no accident: a rule selects them, or repetitions agree."""
    if sum(not rule for rule in rules) <= 1:
        return True  # the rules of the others select the last group
    sizes = [len(group) for group in found if group is not None]
    return len(sizes) > len(set(sizes))


def _by_rules(rules: Sequence[str], voted: IntArray | None, processes: int) -> IntArray | None:
    """Return the group of each process of a run: by rules where they exist, else as voted."""
    if sum(not rule for rule in rules) > 1:
        return voted
    rest = next((k for k, rule in enumerate(rules) if not rule), 0)
    group = np.full(processes, rest, np.intp)
    for k, rule in enumerate(rules):
        if rule and k != rest:
            group[RankCondition(rule).of(processes)] = k
    return group


def _normalised(run: ProcessTimes) -> FloatArray:
    """Return deviations from the mean process as fractions of its time, [processes, f]."""
    whole = run.whole if run.whole > 0 else 1.0
    found: FloatArray = (run.values - run.values.mean(axis=0)) / whole
    return found


def _number_of_clusters(part: FloatArray) -> int:
    """Return the largest number of clusters that are all apart from each other; 1 = no groups."""
    for count in range(min(_MOST, len(part) - 1), 1, -1):
        labels, _ = _clusters(part, count)
        if len(np.unique(labels)) == count and _are_apart(part, labels, count):
            return count
    return 1


def _clusters(part: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Return the cluster of each process, [processes], and the centres, [count, f]."""
    chosen = np.random.default_rng(_SEED)
    sample = part
    if len(part) > _SAMPLE:
        # Few processes may be special: those with the largest deviations are in the sample.
        far = np.argsort(-np.abs(part).max(axis=1), kind="stable")[: _SAMPLE // 2]
        others = chosen.choice(len(part), _SAMPLE // 2, replace=False)
        sample = part[np.union1d(far, others)]
    from scipy.cluster.vq import ClusterError, kmeans2

    best: tuple[float, FloatArray] | None = None
    for _ in range(_STARTS):
        try:
            centres, _ = kmeans2(sample, count, minit="++", rng=chosen, missing="raise")
        except ClusterError:
            continue
        distance = float(_distances(sample, centres).min(axis=1).sum())
        if best is None or distance < best[0]:
            best = distance, centres
    if best is None:
        return np.zeros(len(part), np.intp), part[:1]
    labels = _distances(part, best[1]).argmin(axis=1)
    return labels.astype(np.intp), best[1]


def _distances(part: FloatArray, centres: FloatArray) -> FloatArray:
    """Return squared distances, [processes, clusters]."""
    return np.stack([((part - centre) ** 2).sum(axis=1) for centre in centres], axis=1)


def _are_apart(part: FloatArray, labels: IntArray, count: int) -> bool:
    """Return whether any two clusters are apart along the line that joins their centres."""
    members = [part[labels == k] for k in range(count)]
    for k, one in enumerate(members):
        for other in members[:k]:
            line = one.mean(axis=0) - other.mean(axis=0)
            distance = float(np.linalg.norm(line))
            if distance < _MATTERS:
                return False
            along = [each @ line / distance for each in (one, other)]
            squares = sum(float(((each - each.mean()) ** 2).sum()) for each in along)
            freedom = len(one) + len(other) - 2
            if freedom < 1 or distance < _APART * np.sqrt(squares / freedom):
                return False
            if along[0].min() <= along[1].max():
                return False
    return True


def _matched(
    runs: Sequence[ProcessTimes],
    parts: Sequence[FloatArray],
    labels: Sequence[IntArray | None],
    count: int,
) -> list[IntArray | None]:
    """Return labels with the same meaning in all runs, the largest group of the last run first."""
    from scipy.optimize import linear_sum_assignment

    last, of_last = [(k, each) for k, each in enumerate(labels) if each is not None][-1]
    order = np.argsort(-np.bincount(of_last, minlength=count), kind="stable")
    models = [_direction(runs[last].names, parts[last][of_last == k]) for k in order]
    found: list[IntArray | None] = []
    for run, part, label in zip(runs, parts, labels, strict=True):
        if label is None:
            found.append(None)
            continue
        own = [_direction(run.names, part[label == k]) for k in range(count)]
        cost = np.array([[-_likeness(one, model) for model in models] for one in own])
        rows, columns = linear_sum_assignment(cost)
        renamed = np.zeros(len(own), np.intp)
        renamed[rows] = columns
        found.append(renamed[label])
    return found


def _direction(names: Sequence[str], part: FloatArray) -> dict[str, float]:
    """Return the mean deviation of a cluster by call path, with a length of 1."""
    mean = part.mean(axis=0) if len(part) else np.zeros(len(names))
    length = float(np.linalg.norm(mean)) or 1.0
    return dict(zip(names, (mean / length).tolist(), strict=True))


def _likeness(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the cosine between two directions."""
    return sum(value * other.get(name, 0.0) for name, value in one.items())


def rule_of(members: Sequence[IntArray], processes: Sequence[int]) -> str:
    """Return a condition on ranks that selects exactly the members in every run; "" = none.

    Parameters
    ----------
    members : ranks in the group, for each run
    processes : number of processes of each run
    """
    for text, ranks in _rules(members, processes):
        if all(np.array_equal(a, b) for a, b in zip(members, ranks, strict=True)):
            return text
    return ""


def _rules(
    members: Sequence[IntArray], processes: Sequence[int]
) -> list[tuple[str, list[IntArray]]]:
    """Return conditions that might select the members, with the ranks that they select."""
    found = [
        ("rank == 0", [np.array([0]) for _ in processes]),
        ("rank == p - 1", [np.array([p - 1]) for p in processes]),
        ("rank > 0", [np.arange(1, p) for p in processes]),
        ("rank < p - 1", [np.arange(p - 1) for p in processes]),
    ]
    last = members[-1]
    if len(last) > 1:
        step, first = int(last[1] - last[0]), int(last[0])
        if step > 1:
            found.append(
                (
                    f"rank % {step} == {first % step}",
                    [np.arange(first % step, p, step) for p in processes],
                )
            )
        gaps = np.setdiff1d(np.arange(processes[-1]), last)
        if len(gaps) > 1 and (step := int(gaps[1] - gaps[0])) > 1:
            first = int(gaps[0]) % step
            found.append(
                (
                    f"rank % {step} != {first}",
                    [np.flatnonzero(np.arange(p) % step != first) for p in processes],
                )
            )
    for share in (2, 4):
        found.append((f"rank < p / {share}", [np.arange(p // share) for p in processes]))
        found.append((f"rank >= p / {share}", [np.arange(p // share, p) for p in processes]))
    return found
