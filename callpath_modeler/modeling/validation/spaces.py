"""Among which growths that of a measurement is looked for, given what is expected."""

from __future__ import annotations

from fractions import Fraction

from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth

_ONE, _ZERO = Fraction(1), Fraction(0)

MPI_SPACE = tuple(
    sorted(
        Growth(exponent, log)
        for exponent in {
            Fraction(part, denominator)
            for denominator in (3, 4)
            for part in range(2 * denominator + 1)
        }
        for log in (0, 1)
    )
)
"""The space declared for MPI in the literature, whatever is expected: quarters and thirds up to 2,
each with and without a logarithm. In the space of O(log p) itself nothing is above log^2 p."""


def search_space(expected: Growth, steps: int = 2) -> tuple[Growth, ...]:
    """Return the growths to look among, between the boundaries O(1) and E squared.

    The leading factor of E, to exponents from 0 to 2 of its own found by recursive halving, alone
    and with the next lower class as a factor: of E = p these are 1, log p, p^(1/4),
    p^(1/4) log p, ..., p, p log p, ..., p^(7/4) log p, p^2. The exponent of the lower class goes
    in whole steps from 0 to one above that of E: 1 for p, 2 for p log p, 4 for k^3 2^k. There is no
    class below logarithms.

    Of E = O(1) both boundaries are O(1), and everything would match: `MPI_SPACE` is taken, as in
    the literature.

    Parameters
    ----------
    expected : Growth
        E, rising or falling.
    steps : int
        How many times the exponents between 1 and E, and between E and its square, are halved.

    Returns
    -------
    tuple of Growth
        Slowest first.

    Raises
    ------
    ValueError
        If `steps` is below 0 or above 10.
    """
    if not 0 <= steps <= 10:
        raise ValueError(f"{steps} steps of halving; expected 0 to 10")
    if expected == CONSTANT_GROWTH:
        return MPI_SPACE
    least, most = sorted((CONSTANT_GROWTH, expected**2))
    shares = [Fraction(part, 2**steps) for part in range(2 ** (steps + 1) + 1)]
    leading, factors = _classes(expected)
    found = {leading**share * factor for share in shares for factor in factors}
    return tuple(sorted({growth for growth in found if least <= growth <= most} | {expected}))


def _classes(expected: Growth) -> tuple[Growth, tuple[Growth, ...]]:
    """Return the leading factor, and what of the next lower class it is multiplied by."""
    if expected.rate:
        return Growth(_ZERO, 0, expected.rate), _ladder(Growth(_ONE, 0), expected.exponent)
    if expected.exponent:
        return Growth(expected.exponent, 0), _ladder(Growth(_ZERO, 1), Fraction(expected.log))
    return expected, (CONSTANT_GROWTH,)


def _ladder(lower: Growth, own: Fraction) -> tuple[Growth, ...]:
    """Return whole powers of the lower class to one above E's own, and that itself."""
    steps = {own, *(Fraction(step) for step in range(max(int(own), 0) + 2))}
    return tuple(lower**step for step in sorted(steps))
