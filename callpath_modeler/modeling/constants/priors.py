"""Constants of priors of hypotheses.

See docs/explanation/hypotheses.md, 'How plain a term is'.
"""

from __future__ import annotations

from fractions import Fraction

CEILING = 0.3
"""Prior of a rise towards a ceiling, relative to other offsets.

Three points may look like one because the first point belongs to another regime.

Unit: relative prior. Evidence: by convention.
"""

WITHOUT_CONSTANT = 0.35
"""Share without a constant among hypotheses with one shape and positive coefficients.

Unit: share. Evidence: by convention.
"""

FEWEST_FOR_POWERS = 4
"""Points needed to distinguish a power by tenths, or p^4 to p^7, from other laws.

Unit: points. Evidence: ablation, p^4 to p^7.
"""

ALONE = 0.02
"""Prior of such a law, or of a power between two others, relative to equally plain laws.

Unit: relative prior. Evidence: ablation, p^4 to p^7.
"""

CLASS_STRENGTH = 150.0
"""Smallest weight of the prior within a kind, in call paths.

Unit: call paths. Evidence: ablation, learnt priors.
"""

STEEP, STEEP_IN_PAIRS = 1.0, 0.6
"""Nats for each power above 1, in addition to the intricacy: alone, and in pairs.

Values that are flat and then rise have usually just begun to rise; they do not follow p^3.

Unit: nats per power. Evidence: ablation, plain terms are more probable.
"""

STEEP_BESIDE_SHARED = 1.1
"""Nats for each power above 1 with shared work, in addition to those in pairs.

Anything that makes the last point more expensive looks like a small amount of a steep power.

Unit: nats per power. Evidence: ablation, weights with shared work.
"""

OTHERS_BESIDE_SHARED = 1.0
"""Nats for powers other than 0 and 1 with shared work, in addition to those in pairs.

Shared work with a constant and messages looks like shared work with p^(1/4).

Unit: nats. Evidence: ablation, weights with shared work.
"""

TOGETHER = 2.5
"""Factor of all nats in pairs, since any pair fits the value measured on one process.

Unit: ratio. Evidence: ablation, plain terms are more probable.
"""

SUMS_OF_WHOLE = {2: 1.0, 3: 0.2}
"""Prior of a sum of whole powers by the steeper power, relative to the plainest pair.

The cost of an algorithm over its problem size is such a sum, but no program takes p^3 of its
processes.

Unit: relative prior. Evidence: ablation, sums of whole powers.
"""

BESIDE_OTHERS = {2: 0.3, 3: 0.05}
"""Prior of a square or a cube with another term, relative to that of the other term in pairs.

Unit: relative prior. Evidence: ablation, sums of whole powers.
"""

WITH_LOGARITHM = 0.3
"""Prior of p^2 or p^3 with its product with a logarithm, relative to the plainest pair.

Such sums are transforms with other work on each number.

Unit: relative prior. Evidence: ablation, sums of whole powers.
"""

BETWEEN = 0.1
"""Prior of a power between two others, which is their sum, relative to the plainest pair.

Unit: relative prior. Evidence: ablation, powers between two others.
"""

FLOOR = 0.1
"""Prior of floors and settling, relative to other easings: most work falls towards a constant.

Unit: relative prior. Evidence: ablation, drops, plateaus and floors.
"""

BEGINNING = 0.25
"""Prior of breaks that begin at a capacity and of gradual growth, relative to other breaks.

Many places are tried that are nearly alike.

Unit: relative prior. Evidence: ablation, breaks that begin at a capacity.
"""

FINE = {1: 0.0, 2: 0.0, 3: 0.3}
"""Intricacy of growing terms by the denominator of the power, in nats; 0.6 for others.

Unit: nats. Evidence: ablation, plain terms are more probable.
"""

FASTER_THAN_SHARED = 2.5
"""Intricacy of terms that fall faster than 1/p, in nats: sharing work does not suffice for that.

Unit: nats. Evidence: ablation, plain terms are more probable.
"""

SORTED_PRIOR = 0.05
"""Prior of work that sorts the share of each process, relative to other shared work.

Unit: relative prior. Evidence: ablation, sorted shares.
"""

PLAIN = 0.4
"""Largest intricacy of a term, in nats, that is combined with a break at the last point.

Unit: nats. Evidence: ablation, plain terms are more probable.
"""

MOST_PAIRED = 14
"""Largest number of growing terms that are all used in pairs.

Unit: count. Evidence: ablation, plain terms are more probable.
"""

PAIRED = 1.0
"""Largest intricacy, in nats, of a term in pairs if there are more growing terms.

Pairs of near neighbours are one curve.

Unit: nats. Evidence: ablation, plain terms are more probable.
"""

NEIGHBOURS_APART = Fraction(1, 10)
"""Difference between the exponents of two such neighbours.

Unit: exponent. Evidence: ablation, powers between two others.
"""

FASTEST, SLOWEST = Fraction(-5, 3), Fraction(-1, 2)
"""Range of the powers of falling work other than 1/p; the second one is excluded.

Unit: exponent. Evidence: ablation, other work.
"""

COARSE = 3
"""Largest denominator of falling powers in pairs; finer powers are nearly alike.

Unit: count. Evidence: ablation, other work.
"""

ALIKE = 1e-6
"""Relative difference at the points below which two shapes are the same.

Unit: ratio. Evidence: by convention.
"""

PRIOR = {
    "CONSTANT": 0.40,
    "GROWING": 0.32,
    "FALLING": 0.04,
    "SURFACE": 0.016,
    "RISING": 0.024,
    "BREAK": 0.05,
    "EASING": 0.02,
    "OFFSET": 0.10,
    "PAIR": 0.03,
}
"""Prior of each kind of hypotheses in one parameter, before the application is known.

Unit: probability. Evidence: ablation, learnt priors.
"""

BREAKS_OF_THREE = 0.03
"""Prior of breaks with three points, where the only ones are those at the last point.

Unit: probability. Evidence: by convention.
"""

BESIDE = {"STEP": 0.1, "ONCE": 0.1, "LEAP": 0.1 * 0.999, "PLATEAU": 0.25, "FLOOR": 0.25}
"""Prior of a break with another shape by the kind of the break, relative to other breaks.

A leap is slightly less probable than a step, so that rounding does not choose between the two.

Unit: relative prior. Evidence: ablation, leaps.
"""

BESIDE_FROM_NOTHING = 0.1
"""The same for a break that begins at a capacity.

Unit: relative prior. Evidence: ablation, breaks that begin at a capacity.
"""

FINE_FALLING = {1: 0.0, 2: 0.0, 3: 0.3, 4: 2.0, 5: 3.0, 10: 3.0}
"""Intricacy of a falling term by the denominator of its exponent.

1/p and a constant together fall like many of them.

Unit: nats. Evidence: ablation, plain terms are more probable.
"""
