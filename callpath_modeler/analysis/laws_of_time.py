"""Hypotheses about the time of call paths: requirements, delays, waiting, cost laws.

A call of a collective operation on p processes costs

    t = c0 + alpha a(p) + beta n b(p)

with latency alpha, cost per byte beta and n bytes per call (Hockney: The communication challenge
for MPP, 1994). The algorithm decides a and b. The cost of computation in reductions has the shape
of one of both terms, so it has no coefficient of its own. Sources:

- TRG: Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH
  (IJHPCA 19, 2005)
- CHPG: Chan, Heimlich, Purkayastha, van de Geijn: Collective communication: theory, practice, and
  experience (CCPE 19, 2007)
- SC13: Calotoiu, Hoefler, Poke, Wolf: Using automated performance modeling to find scalability
  bugs in complex codes (SC 2013), section on requirement models
- HFM: Hensgen, Finkel, Manber: Two algorithms for barrier synchronization (IJPP 17, 1988)
- PY: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms (JPDC 69, 2009)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import reduce

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.cause_needs import Amounts, Need, Needs
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.profile.call_class import CallClass

Shape = Callable[[FloatArray], FloatArray]


class Law(Struct, frozen=True):
    """A function of the number of processes.

    Attributes
    ----------
    text : the function as text
    of : the function
    """

    text: str
    of: Shape


def _log(p: FloatArray) -> FloatArray:
    return np.asarray(np.log2(np.maximum(p, 1.0)))


LOG = Law("log p", _log)
TWICE_LOG = Law("2 log p", lambda p: 2 * _log(p))
LINEAR = Law("p - 1", lambda p: p - 1)
TWICE_LINEAR = Law("2 (p - 1)", lambda p: 2 * (p - 1))
BOTH = Law("log p + p - 1", lambda p: _log(p) + p - 1)
ONE = Law("1", np.ones_like)
ALL_BUT_ONE = Law("(p - 1)/p", lambda p: (p - 1) / p)
TWICE_ALL_BUT_ONE = Law("2 (p - 1)/p", lambda p: 2 * (p - 1) / p)
HALF_LOG = Law("log p / 2", lambda p: _log(p) / 2)
LOG_LESS = Law("log p - (p - 1)/p", lambda p: _log(p) - (p - 1) / p)


class Family(Struct, frozen=True):
    """Algorithms of a collective operation with one cost law.

    Attributes
    ----------
    name : names of the algorithms
    latency : a(p), the number of message latencies
    size : b(p), the number of times that n bytes are sent; None = the operation has no bytes
    source : publication of the law
    prior : how common it is relative to other algorithms. Libraries choose algorithms with p steps
        for few processes or for long messages only
    """

    name: str
    latency: Law
    size: Law | None
    source: str
    prior: float = 1.0

    @property
    def formula(self) -> str:
        """Time of a call as text."""
        latency = f"alpha ({self.latency.text})"
        return latency if self.size is None else f"{latency} + beta n ({self.size.text})"


_RARE, _VERY_RARE = 0.3, 0.1

_BARRIERS = (
    Family("dissemination", LOG, None, "HFM"),
    Family("central counter", LINEAR, None, "HFM", _VERY_RARE),
)

FAMILIES: dict[CallClass, tuple[Family, ...]] = {
    CallClass.BROADCAST: (
        Family("pipelined tree", LOG, ONE, "SC13"),
        Family("binomial tree", LOG, LOG, "TRG"),
        Family("scatter and recursive-doubling allgather", TWICE_LOG, TWICE_ALL_BUT_ONE, "TRG"),
        Family("scatter and ring allgather", BOTH, TWICE_ALL_BUT_ONE, "TRG"),
        Family("chain", LINEAR, ONE, "CHPG", _RARE),
        Family("flat tree", LINEAR, LINEAR, "CHPG", _RARE),
    ),
    CallClass.REDUCE: (
        Family("binomial tree", LOG, LOG, "TRG"),
        Family("Rabenseifner", TWICE_LOG, TWICE_ALL_BUT_ONE, "TRG"),
        Family("chain", LINEAR, ONE, "CHPG", _RARE),
        Family("flat tree", LINEAR, LINEAR, "CHPG", _RARE),
    ),
    CallClass.ALLREDUCE: (
        Family("recursive doubling", LOG, LOG, "TRG"),
        Family("Rabenseifner", TWICE_LOG, TWICE_ALL_BUT_ONE, "TRG"),
        Family("ring", TWICE_LINEAR, TWICE_ALL_BUT_ONE, "PY", _VERY_RARE),
        Family("flat tree", LINEAR, LINEAR, "CHPG", _VERY_RARE),
    ),
    CallClass.ALLGATHER: (
        Family("recursive doubling or Bruck", LOG, ALL_BUT_ONE, "TRG"),
        Family("ring", LINEAR, ALL_BUT_ONE, "TRG"),
    ),
    CallClass.GATHER: (
        Family("binomial tree", LOG, ALL_BUT_ONE, "CHPG"),
        Family("flat tree", LINEAR, ALL_BUT_ONE, "CHPG", _RARE),
    ),
    CallClass.SCATTER: (
        Family("binomial tree", LOG, ALL_BUT_ONE, "CHPG"),
        Family("flat tree", LINEAR, ALL_BUT_ONE, "CHPG", _RARE),
    ),
    CallClass.ALLTOALL: (
        Family("Bruck", LOG, HALF_LOG, "TRG"),
        Family("pairwise exchange", LINEAR, ALL_BUT_ONE, "TRG"),
    ),
    CallClass.REDUCE_SCATTER: (
        Family("recursive halving", LOG, ALL_BUT_ONE, "TRG"),
        Family("recursive doubling", LOG, LOG_LESS, "TRG"),
        Family("pairwise exchange", LINEAR, ALL_BUT_ONE, "TRG"),
    ),
    CallClass.SCAN: (
        Family("recursive doubling", LOG, LOG, "TRG"),
        Family("chain", LINEAR, LINEAR, "CHPG", _RARE),
    ),
    CallClass.BARRIER: _BARRIERS,
    CallClass.MANAGEMENT: _BARRIERS,
    CallClass.COLLECTIVE: (
        Family("tree", LOG, ALL_BUT_ONE, "TRG"),
        Family("ring or pairwise exchange", LINEAR, ALL_BUT_ONE, "TRG"),
    ),
}
"""Laws of each class, in the order in which alternatives are listed.

Unlike those of other operations, n is the size of the whole message of a process: of an allgather
what it receives, of an all-to-all what it sends to all others.
"""

BLOCKS = frozenset({CallClass.ALLGATHER, CallClass.ALLTOALL, CallClass.GATHER, CallClass.SCATTER})
"""Classes whose n consists of one block for each process."""
ROOTED = frozenset({CallClass.BROADCAST, CallClass.REDUCE, CallClass.GATHER, CallClass.SCATTER})
"""Classes in which one process sends to all, or receives from all."""

_SAME = 1e-3
"""Relative range up to which the size of messages is constant."""
_REQUIRED, _DELAYED, _WAITING = 0.5, 0.2, 0.3
"""Priors: requirements alone, a delay by computation, waiting of another kind."""
_VISITS = frozenset(
    {"visits", "calls", "count", "counts", "visit", "#calls", "numcalls", "number of calls"}
)
_POWERS = {
    "^(1/3)": 1 / 3,
    "^(1/2)": 1 / 2,
    "^(2/3)": 2 / 3,
    "": 1.0,
    "^(5/4)": 5 / 4,
    "^(3/2)": 3 / 2,
    "^2": 2.0,
}
"""Powers of the parameter in the growth of waiting."""
_WORDS_OF_MESSAGES = ("message", "msg")


class Driver(StrEnum):
    """The reason why the time of a call path grows.

    Attributes
    ----------
    WORK : more calls or operations of a computation
    MESSAGES : more messages, or more calls of a collective operation
    SIZE : more bytes per message
    LOG, LINEAR : a collective operation over more processes, by growth
    SOURCE : waiting for computation that takes longer on some processes
    WAITS : waiting, or slower messages, that no requirement explains
    SLOWER : slower computation that no requirement explains
    """

    WORK = "more work"
    MESSAGES = "more messages"
    SIZE = "longer messages"
    LOG = "collective log p"
    LINEAR = "collective p"
    SOURCE = "waits for"
    WAITS = "waits"
    SLOWER = "unexplained"

    @property
    def is_required(self) -> bool:
        """True if requirements explain the growth."""
        return self in _OF_REQUIREMENTS


_OF_REQUIREMENTS = frozenset({Driver.WORK, Driver.MESSAGES, Driver.SIZE, Driver.LOG, Driver.LINEAR})


class Factor(Struct, frozen=True, eq=False):
    """A factor of a feature.

    Attributes
    ----------
    driver : what grows if the factor grows
    text : name of the factor in formulas
    values : [n, K + 1] at the points and the target
    """

    driver: Driver
    text: str
    values: FloatArray


class Feature(Struct, frozen=True, eq=False):
    """A product of factors whose cost is a coefficient times its value.

    Attributes
    ----------
    factors : at least one
    values : [n, K + 1] at the points and the target
    error : [n] relative standard error at the target, of the logarithm
    scatter : [n, K] standard error of the values at the points, where it is not negligible
    """

    factors: tuple[Factor, ...]
    values: FloatArray
    error: FloatArray
    scatter: FloatArray | None = None

    @property
    def text(self) -> str:
        """The feature as a formula."""
        return " · ".join(factor.text for factor in self.factors if factor.text)


class Kind(StrEnum):
    """Kind of a hypothesis: what explains the time."""

    REQUIRED = "requirements"
    DELAYED = "delay"
    WAITING = "waiting"


class Hypothesis(Struct, frozen=True, eq=False):
    """The time is a sum of features with positive coefficients.

    Attributes
    ----------
    law : name of the law or of the algorithms
    family : algorithms of a collective operation; None = no such law
    kind : what explains the time
    features : at least one; what requirements do not explain comes last
    prior : probability before the times are known
    """

    law: str
    family: Family | None
    kind: Kind
    features: tuple[Feature, ...]
    prior: float


def feature(*factors: Factor, error: FloatArray | None = None) -> Feature:
    """Return the product of factors."""
    values = reduce(np.multiply, (factor.values for factor in factors))
    none = np.zeros(len(values)) if error is None else error
    return Feature(factors, np.asarray(values, float), none)


def hypotheses(needs: Needs, kind: CallClass) -> list[Hypothesis]:
    """Return the hypotheses about call paths of one class.

    Parameters
    ----------
    needs : times and requirements of call paths of this class
    kind : their class
    """
    required = list(_laws(needs, kind))

    def prior(family: Family | None) -> float:
        return family.prior if family else 1.0

    whole = sum(prior(family) for _, family, _ in required)
    slower = Driver.WAITS if kind.waits else Driver.SLOWER
    # A call path may do nothing but wait.
    bases = [(), *_bases(needs, kind)]
    has_delay = needs.delay is not None and kind.waits and bool((needs.source >= 0).any())
    made = [
        Hypothesis(law, family, Kind.REQUIRED, features, _REQUIRED * prior(family) / whole)
        for law, family, features in required
    ]
    waits = list(_waits(needs, kind, slower))
    each = _WAITING / (len(bases) * len(waits))
    made += [
        Hypothesis(slower.value, None, Kind.WAITING, (*base, wait), each)
        for base in bases
        for wait in waits
    ]
    if has_delay and needs.delay is not None:
        late = _delay(needs.delay)
        each = _DELAYED / len(bases)
        made += [
            Hypothesis(Driver.SOURCE.value, None, Kind.DELAYED, (*base, late), each)
            for base in bases
        ]
    return made


def _delay(delay: Amounts) -> Feature:
    factor = Factor(Driver.SOURCE, "delay", delay.values)
    return Feature((factor,), delay.values, delay.error, delay.scatter)


def _waits(needs: Needs, kind: CallClass, driver: Driver) -> Iterator[Feature]:
    """Yield the shapes of time that requirements do not explain, for each call."""
    calls = _calls(needs, kind)
    x = needs.points / needs.points[0]
    log = np.log2(np.maximum(needs.points, 1.0))
    x_name = needs.parameter
    shapes = {x_name + text: x**power for text, power in _POWERS.items()}
    for text in ("^(1/3)", "^(1/2)", ""):
        shapes[f"{x_name}{text} log {x_name}"] = shapes[x_name + text] * log
    if not kind.is_collective and kind is not CallClass.MANAGEMENT:
        shapes[f"log {x_name}"] = log
    for text, values in shapes.items():
        everywhere = np.broadcast_to(values, calls.values.shape)
        yield feature(*calls.factors, Factor(driver, text, everywhere), error=calls.error)


def _bases(needs: Needs, kind: CallClass) -> list[tuple[Feature, ...]]:
    """Return requirements beside which a call path may wait."""
    calls = _calls(needs, kind)
    if not (kind.is_collective or kind is CallClass.MANAGEMENT):
        sized = _transferred(needs, kind, calls)
        if sized is not None:
            return [(calls,), (sized,), (calls, sized)]
        return [(each,) for each in (calls, *_operations(needs, kind))]
    (log,) = _per_process(needs, calls, (LOG,))
    sizes = _sizes(needs, kind, calls)
    found: list[tuple[Feature, ...]] = [(calls,), (log,), (calls, log)]
    if sizes:
        found += [(calls, sizes[0])]
    return found


def _laws(
    needs: Needs, kind: CallClass
) -> Iterator[tuple[str, Family | None, tuple[Feature, ...]]]:
    """Yield law, algorithms and features of hypotheses without waiting."""
    calls = _calls(needs, kind)
    if kind in FAMILIES:
        yield "time for each call", None, (calls,)
        sizes = _sizes(needs, kind, calls)
        if sizes:
            yield "time for each byte", None, (sizes[0],)
            yield "time for each call and each byte", None, (calls, sizes[0])
        for family in FAMILIES[kind]:
            (latency,) = _per_process(needs, calls, (family.latency,))
            sent = [] if family.size is None else _per_process_and_size(
                needs, sizes, family.size, kind)  # fmt: skip
            for features in _alone_or_together([latency], sent):
                yield family.name, family, features
                yield family.name, family, (calls, *features)
        return
    sized = _transferred(needs, kind, calls)
    if sized is not None:
        yield "time for each call", None, (calls,)
        yield "time for each byte", None, (sized,)
        yield "time for each call and each byte", None, (calls, sized)
        return
    operations = _operations(needs, kind)
    yield "in proportion to requirements", None, (calls,)
    for one in operations:
        yield "in proportion to requirements", None, (one,)
        yield "in proportion to requirements", None, (calls, one)
    for k, one in enumerate(operations):
        for other in operations[k + 1 :]:
            yield "in proportion to requirements", None, (one, other)


def _alone_or_together(
    latency: Sequence[Feature], sent: Sequence[Feature]
) -> Iterator[tuple[Feature, ...]]:
    yield (latency[0],)
    for each in sent:
        yield (each,)
        yield (latency[0], each)


def _per_process(needs: Needs, calls: Feature, laws: Iterable[Law]) -> Iterator[Feature]:
    for law in laws:
        values = np.broadcast_to(law.of(needs.processes), calls.values.shape)
        yield feature(*calls.factors, Factor(_driver(law), law.text, values), error=calls.error)


def _driver(law: Law) -> Driver:
    """Return the driver of a law: linear if it has a term p."""
    small, large = (float(law.of(np.array([p]))[0]) for p in (2.0**10, 2.0**20))
    return Driver.LINEAR if large > 100 * small else Driver.LOG


def _per_process_and_size(
    needs: Needs, sizes: Sequence[Feature], law: Law, kind: CallClass
) -> list[Feature]:
    """Return bytes times the law of an algorithm; blocks are counted for all processes."""
    if kind in BLOCKS:
        law = Law(f"p {law.text}", lambda p, of=law.of: p * of(p))  # type: ignore[misc]
    values = np.broadcast_to(law.of(needs.processes), (len(needs.rows), len(needs.processes)))
    factor = Factor(_driver(law), law.text, values)
    # The values of a size that does not hold are zero, unlike its factors.
    return [Feature((*size.factors, factor), size.values * values, size.error) for size in sizes]


def _calls(needs: Needs, kind: CallClass) -> Feature:
    """Return the number of messages or calls; one call if the profile does not count them."""
    driver = Driver.WORK if not kind.waits else Driver.MESSAGES
    for found in (_messages(needs) if kind is CallClass.POINT_TO_POINT else None, _visits(needs)):
        if found is not None and found.amounts.values.any():
            values = found.amounts.values
            # A call path whose calls are not counted has the same number everywhere.
            counted = np.where(np.asarray(values.any(axis=1))[:, None], values, 1.0)
            return feature(Factor(driver, found.metric.name, counted), error=found.amounts.error)
    shape = (len(needs.rows), len(needs.points))
    return feature(Factor(driver, "", np.ones(shape)))


def steps_and_bytes(
    needs: Needs, kind: CallClass
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return calls, steps, and bytes on the way, of call paths of one class, each [n, K + 1].

    A collective operation has the steps of the algorithm with the fewest. None = calls are not
    counted.
    """
    visits = _visits(needs)
    if visits is None:
        return None
    calls = feature(Factor(Driver.MESSAGES, visits.metric.name, visits.amounts.values))
    steps, moved = calls.values, np.zeros_like(calls.values)
    if kind in FAMILIES:
        family = FAMILIES[kind][0]
        steps = next(_per_process(needs, calls, (family.latency,))).values
        sent = [] if family.size is None else _per_process_and_size(
            needs, _sizes(needs, kind, calls), family.size, kind)  # fmt: skip
        # Bytes are counted in one of two ways, whose smaller size is the safe one.
        known = [np.where(each.values > 0, each.values, np.inf) for each in sent]
        moved = np.min([np.full_like(moved, np.inf), *known], axis=0)
        moved = np.where(np.isfinite(moved), moved, 0.0)
    else:
        sized = _transferred(needs, kind, calls)
        moved = moved if sized is None else sized.values
    return calls.values, steps, moved


def _visits(needs: Needs) -> Need | None:
    named = (each for each in needs.found if each.metric.name.lower() in _VISITS)
    return next(named, None)


def _messages(needs: Needs) -> Need | None:
    for each in needs.found:
        name = each.metric.name.lower()
        if each.metric.unit == "1" and any(word in name for word in _WORDS_OF_MESSAGES):
            return each
    return None


def _operations(needs: Needs, kind: CallClass) -> list[Feature]:
    """Return counted operations; functions that wait execute instructions while they wait."""
    if kind.waits:
        return []
    known = {_visits(needs), _messages(needs)}
    return [
        feature(
            Factor(Driver.WORK, each.metric.name, each.amounts.values), error=each.amounts.error
        )
        for each in needs.found
        if each not in known
    ]


def _bytes(needs: Needs) -> list[Need]:
    return [each for each in needs.found if each.metric.unit == "B"]


def _transferred(needs: Needs, kind: CallClass, calls: Feature) -> Feature | None:
    """Return the bytes of all messages as number times size; None = they are not counted."""
    moved = _bytes(needs)
    if not moved or kind.computes:
        return None
    total = np.sum([each.amounts.values for each in moved], axis=0)
    error = np.max([each.amounts.error for each in moved], axis=0)
    return _sized(total, error, calls, calls.values)


def _sized(total: FloatArray, error: FloatArray, calls: Feature, divisor: FloatArray) -> Feature:
    """Return calls times the size of one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.nan_to_num(np.where(divisor > 0, total / divisor, 0.0))
    driver = Driver.WORK if calls.factors[0].driver is Driver.WORK else Driver.SIZE
    return feature(*calls.factors, Factor(driver, "size", size), error=error)


def _sizes(needs: Needs, kind: CallClass, calls: Feature) -> list[Feature]:
    """Return the possible sizes of the messages of a collective operation, times calls.

    Tools count the bytes of a collective operation in different ways: once, or once for each
    process that they reach. Score-P counts the bytes of an all-reduce p times. If one of both ways
    gives the same size at all points, it holds.
    """
    moved = _bytes(needs)
    if not moved:
        return []
    every = np.array([each.amounts.values for each in moved])
    error = np.max([each.amounts.error for each in moved], axis=0)
    if kind in ROOTED:
        # The root counts the bytes of all processes, the others count their own.
        every = np.where(every > 0, every, np.inf).min(axis=0)
        total = np.where(np.isfinite(every), every, 0.0)
    else:
        total = every.max(axis=0)
    ways = [calls.values, calls.values * needs.processes]
    if kind in ROOTED:
        ways = ways[:1]
    made = [_sized(total, error, calls, way) for way in ways]
    if len(made) == 1:
        return made
    steady = [_is_steady(each.factors[-1].values) for each in made]
    either = np.asarray(np.any(steady, axis=0))
    found = []
    for each, good in zip(made, steady, strict=True):
        chosen = np.where((~either | good)[:, None], each.values, 0.0)
        found.append(Feature(each.factors, chosen, each.error))
    return found


def _is_steady(size: FloatArray) -> BoolArray:
    """Return whether sizes [n, K + 1] are the same at all points."""
    measured = size[:, :-1]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.ptp(measured, axis=1) <= _SAME * measured.max(axis=1))
