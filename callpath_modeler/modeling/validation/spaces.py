"""Search spaces: the growths that measurements are compared with, for a given expectation.

See docs/explanation/expectations.md, 'Growth'.
"""

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
"""The space for MPI in the literature, for all expectations.

It holds quarters and thirds up to 2, each with and without a logarithm. The space of O(log p)
itself has nothing above log^2 p.
"""


def search_space(expected: Growth, steps: int = 2) -> tuple[Growth, ...]:
    """Return the growths to compare, between the boundaries O(1) and E squared.

    The leading factor of E is raised to exponents from 0 to 2, found by recursive halving. It is
    combined with the next lower class as a factor, or stands alone. For E = p the growths are 1,
    log p, p^(1/4), p^(1/4) log p, ..., p, p log p, ..., p^(7/4) log p, p^2. The exponent of the
    lower class rises in whole steps from 0 to one above that of E. It ends at 1 for p, at 2 for p
    log p, and at 4 for k^3 2^k. The lowest class are logarithms.

    For E = O(1) both boundaries are O(1), and everything would match. So `MPI_SPACE` is used, as in
    the literature.

    Parameters
    ----------
    expected : Growth
        The expected growth E, rising or falling.
    steps : int
        How many times the exponents between 1 and E, and between E and its square, are halved.

    Returns
    -------
    tuple of Growth
        The growths, slowest first.

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
    """Return the leading factor, and the factors of the next lower class that multiply it."""
    if expected.rate:
        return Growth(_ZERO, 0, expected.rate), _ladder(Growth(_ONE, 0), expected.exponent)
    if expected.exponent:
        return Growth(expected.exponent, 0), _ladder(Growth(_ZERO, 1), Fraction(expected.log))
    return expected, (CONSTANT_GROWTH,)


def _ladder(lower: Growth, own: Fraction) -> tuple[Growth, ...]:
    """Return whole powers of the lower class up to one above that of E, and that of E itself."""
    steps = {own, *(Fraction(step) for step in range(max(int(own), 0) + 2))}
    return tuple(lower**step for step in sorted(steps))
