"""Computation before an operation: histograms of seconds, and the seconds of every round.

A mean of all rounds and ranks would lose what decides the run time: ranks wait for the one that
computes longest. So ranks of different computation are in shares of their own. The first round of
the innermost loop is apart where it differs, because a program computes there what it has done
since the loop before. Each share has a histogram whose bins halve: the lower half of all seconds,
the next quarter, and so on up to the largest. Bins of nearly the same seconds are one.

A round takes its seconds out of the histogram by a pseudo-random permutation, so the sum over all
rounds is exact, and every program that is made from the histogram computes the same. A share of one
rank, or of ranks that have long rounds at the same time, has them in one order in all lines: at the
begin of a run, or while another program disturbs it, all lines take longer.

The histograms follow ScalaTrace (Noeth et al., JPDC 2009) and Wu, Mueller and Pakin (TOPC 2014).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array, UInt64Array

_NOTICED = 0.005
"""Share of the computation of a rank; what differs by less is one share or one bin."""

_NOTICED_FIRST = 0.001
"""Share of the computation of a rank, from which on first rounds are apart."""

_NOISE = 3
"""Standard errors; ranks whose means differ by less are one share."""

_COMMON = 0.5
"""Correlation between ranks, from which on they have long and short rounds at the same time."""

_COMMON_KEY = 0
"""Key of the order that is common; those of lines are larger."""

_ROUNDS = 4
"""Rounds of a permutation."""


class Histogram(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A distribution of seconds.

    Attributes
    ----------
    counts, means : numbers of seconds in the bins, and their means, in ascending order
    least, most : the smallest and the largest seconds
    """

    counts: tuple[int, ...]
    means: tuple[float, ...]
    least: float
    most: float

    @classmethod
    def of(cls, seconds: FloatArray, noticed: float = 0.0) -> Histogram:
        """Return the histogram of seconds [n], n > 0.

        Parameters
        ----------
        noticed : seconds; bins whose sums change by less are one bin
        """
        ordered = np.sort(seconds)
        counts: list[int] = []
        sums: list[float] = []
        begin = 0
        while begin < len(ordered):
            count = (len(ordered) - begin + 1) // 2
            total = float(ordered[begin : begin + count].sum())
            if counts and total - sums[-1] / counts[-1] * count <= noticed:
                counts[-1] += count
                sums[-1] += total
            else:
                counts.append(count)
                sums.append(total)
            begin += count
        means = (_rounded(total / count) for total, count in zip(sums, counts, strict=True))
        return cls(tuple(counts), tuple(means), _rounded(ordered[0]), _rounded(ordered[-1]))

    @property
    def count(self) -> int:
        """How many seconds there are."""
        return sum(self.counts)

    @property
    def total(self) -> float:
        """The sum of all seconds."""
        return sum(count * mean for count, mean in zip(self.counts, self.means, strict=True))

    @property
    def mean(self) -> float:
        """The mean of all seconds."""
        return self.total / self.count

    def at(self, place: Int64Array) -> FloatArray:
        """Return the seconds at places [n] of the ascending order, from 0."""
        bins = np.searchsorted(np.cumsum(self.counts), place, side="right")
        seconds: FloatArray = np.array(self.means)[bins]
        return seconds


class Share(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Ranks whose computation is alike.

    Attributes
    ----------
    ranks : in order
    seconds : of all rounds of all these ranks
    is_common : whether the ranks have long rounds at the same time: those of the order that all
        such shares of a program have
    """

    ranks: tuple[int, ...]
    seconds: Histogram
    is_common: bool = False

    def key(self, key: int) -> int:
        """Return the key of the order of rounds, from that of the line."""
        return _COMMON_KEY if self.is_common else key

    def of_rank(self, place: int, key: int) -> FloatArray:
        """Return the seconds of all rounds of a rank, [rounds].

        Parameters
        ----------
        place : of the rank among the ranks of the share
        key : of the line
        """
        ranks = len(self.ranks)
        rounds = self.seconds.count // ranks
        if len(self.seconds.means) == 1:
            return np.full(rounds, self.seconds.means[0])
        number = np.arange(rounds, dtype=np.uint64)
        if not self.is_common:
            begin = np.uint64(place * rounds)
            return self.seconds.at(permuted(number + begin, rounds * ranks, key))
        level = permuted(number, rounds, self.key(key)).astype(np.uint64)
        turn = (level + np.uint64(place)) % np.uint64(ranks)
        return self.seconds.at((level * np.uint64(ranks) + turn).astype(np.int64))


class Computation(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The computation before a line.

    Attributes
    ----------
    key : even number above 0 that makes the order of rounds different from that of other lines
    usual : of all rounds, but for those of `first`; each rank of the line is in one share
    first : of the first rounds of the innermost loop, if they differ; else ()
    """

    key: int
    usual: tuple[Share, ...] = ()
    first: tuple[Share, ...] = ()

    @property
    def total(self) -> float:
        """The seconds of all rounds and ranks."""
        return sum(share.seconds.total for share in (*self.usual, *self.first))

    @property
    def numbers(self) -> int:
        """How many bins there are."""
        return sum(len(share.seconds.means) for share in (*self.usual, *self.first))

    def of_rank(self, rank: int) -> FloatArray:
        """Return the seconds before each round of a rank that has the line, in order, [rounds]."""
        usual = _of_rank(self.usual, rank, self.key)
        if not self.first:
            return usual
        first = _of_rank(self.first, rank, self.key + 1)
        rows = np.concatenate([first[:, np.newaxis], usual.reshape(len(first), -1)], axis=1)
        return rows.ravel()


def find(
    seconds: FloatArray, ranks: Sequence[int], rounds: int, key: int, noticed: float
) -> Computation:
    """Return the computation of a line.

    Parameters
    ----------
    seconds : [ranks x rounds of all loops around]
    rounds : of the innermost loop; 1 outside of loops
    key : even, above 0, and different for each line
    noticed : the computation of a whole rank, seconds
    """
    if rounds > 1:
        by_round = seconds.reshape(len(ranks), -1, rounds)
        first, usual = by_round[:, :, 0], by_round[:, :, 1:]
        differs = abs(first.mean() - usual.mean()) * first.shape[1]
        if differs > _NOTICED_FIRST * noticed:
            usual = usual.reshape(len(ranks), -1)
            return Computation(key, _shares(usual, ranks, noticed), _shares(first, ranks, noticed))
    return Computation(key, _shares(seconds, ranks, noticed))


def permuted(number: UInt64Array, count: int, key: int) -> Int64Array:
    """Return the places of numbers [n] below `count` in a pseudo-random order of them all.

    This is a Feistel network on the next power of four. A place that is too large is permuted
    again, so each number has a place of its own.
    """
    half = np.uint64((max(count - 1, 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << int(half)) - 1)
    place = number.copy()
    todo = np.arange(len(number))
    while len(todo):
        left, right = place[todo] >> half, place[todo] & mask
        for turn in range(_ROUNDS):
            left, right = right, left ^ (_mixed(right, key * _ROUNDS + turn) & mask)
        place[todo] = left << half | right
        todo = todo[place[todo] >= count]
    return place.astype(np.int64)


def _mixed(number: UInt64Array, key: int) -> UInt64Array:
    """Return numbers whose bits depend on all bits: the end of SplitMix64 (Steele et al., 2014)."""
    mixed = number + np.uint64(0x9E3779B97F4A7C15 * (key + 1) & 0xFFFFFFFFFFFFFFFF)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _rounded(seconds: float) -> float:
    """Return seconds with the digits that clocks have."""
    return float(f"{seconds:.9g}")


def share_of(shares: Sequence[Share], rank: int) -> tuple[Share, int]:
    """Return the share that a rank is in, and its place there.

    Raises
    ------
    KeyError
        If it is in none.
    """
    for share in shares:
        place = int(np.searchsorted(share.ranks, rank))
        if place < len(share.ranks) and share.ranks[place] == rank:
            return share, place
    raise KeyError(rank)


def levels(
    shares: Sequence[Share], noticed: float, most: int
) -> list[tuple[float, tuple[int, ...]]]:
    """Return the mean seconds of ranks that compute nearly alike, and these ranks.

    Parameters
    ----------
    noticed : seconds of all rounds of a rank; ranks that differ by less have one mean
    most : means; more are joined
    """
    means = np.array([share.seconds.mean for share in shares])
    rounds = shares[0].seconds.count // len(shares[0].ranks)
    found = []
    for group in _alike(means, max(noticed / rounds, float(np.ptp(means)) / most)):
        own = [shares[k] for k in group]
        count = sum(share.seconds.count for share in own)
        total = sum(share.seconds.total for share in own)
        found.append((total / count, tuple(sorted(r for share in own for r in share.ranks))))
    return found


def _alike(means: FloatArray, limit: float) -> list[list[int]]:
    """Return the places of means [n] in ascending order, put together up to a difference."""
    groups: list[list[int]] = []
    for k in np.argsort(means, kind="stable").tolist():
        if groups and means[k] - means[groups[-1][0]] <= limit:
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def _of_rank(shares: Sequence[Share], rank: int, key: int) -> FloatArray:
    share, place = share_of(shares, rank)
    return share.of_rank(place, key)


def _shares(seconds: FloatArray, ranks: Sequence[int], noticed: float) -> tuple[Share, ...]:
    """Return the shares of ranks: neighbours in the order of their means, if they are alike."""
    rounds = seconds.shape[1]
    means = seconds.mean(axis=1)
    error = float(np.median(seconds.std(axis=1))) / np.sqrt(rounds)
    shares = []
    for group in _alike(means, max(_NOTICED * noticed / rounds, _NOISE * error)):
        rows = seconds[sorted(group)]
        least = _NOTICED * max(float(rows.sum()), noticed * len(group) / 10)
        told = Histogram.of(rows.ravel(), least)
        is_common = len(told.means) > 1 and (len(group) == 1 or _is_common(rows))
        shares.append(Share(tuple(ranks[row] for row in sorted(group)), told, is_common))
    return tuple(sorted(shares, key=lambda share: share.ranks))


def _is_common(seconds: FloatArray) -> bool:
    """Tell whether ranks [ranks x rounds] have long rounds at the same time."""
    ranks, rounds = seconds.shape
    if ranks < 2 or rounds < 2:
        return False
    centred = seconds - seconds.mean(axis=1, keepdims=True)
    spread = float(centred.var())
    if spread == 0:
        return False
    # The mean of n independent ranks has a variance of 1 / n, that of equal ones of 1.
    shared = float(centred.mean(axis=0).var()) / spread
    return bool((ranks * shared - 1) / (ranks - 1) > _COMMON)
