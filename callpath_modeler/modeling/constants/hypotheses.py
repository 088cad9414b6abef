"""Constants of hypotheses: shapes, priors, screening, and slices along one parameter.

See docs/explanation/hypotheses.md, and docs/explanation/several-parameters.md, 'Slices'.
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


SHARPNESS = 3.0
"""Exponent of gradual breaks: 1 would give a sum, infinity the larger of both.

Unit: exponent. Evidence: ablation, gradual breaks.
"""

JUST_BELOW = 1 - 1e-9
"""Factor that keeps rounding from lifting log_3(9) by a level.

Unit: ratio. Evidence: by convention.
"""

FEWEST_BEYOND = 4
"""Smallest number of points beyond a change point for a separate law there.

Unit: points. Evidence: ablation, laws beyond a change point.
"""

MOST_OFF = 0.3
"""Largest relative deviation of measurements from two laws that a change point separates.

Unit: ratio. Evidence: ablation, laws beyond a change point.
"""

FEWEST_BEFORE = 2
"""Smallest number of points before a change point; one point may be a law or an outlier.

Unit: points. Evidence: ablation, laws beyond a change point.
"""

LEAPS = ((-6, 0), (-4, 0), (-3, 0), (0, 1), (2, 0), (3, 0), (4, 0), (6, 0), (6, 1))
"""Terms that leap: sixths of their power, and the power of the logarithm.

Unit: sixths, count. Evidence: ablation, leaps.
"""

FEWEST_FOR_THREE = 5
"""Points needed to distinguish a law with three numbers from one point that is unlike the others.

Such laws are gradual changes, leaps, easings with a constant, a constant with two whole powers, and
exponentials with a constant.

Unit: points. Evidence: by convention.
"""

MOST_FOR_LEAPS = 40
"""Largest number of points with leaps at all places; else leaps precede the last point.

Unit: points. Evidence: ablation, leaps.
"""

SORTED_ITEMS, FEWEST_ITEMS = (20, 23, 26, 30, 36), 16
"""Logarithms of the number of items sorted together, and the fewest items of a process.

Unit: powers of two, items. Evidence: ablation, sorted shares.
"""

MOST_PLACES = 380
"""Largest number of places of each kind that are tried.

Unit: count. Evidence: ablation, breaks that begin at a capacity.
"""

PLACES_BETWEEN = 4
"""Places, per pair of neighbouring points, of breaks that begin at a capacity.

Unit: count. Evidence: ablation, breaks that begin at a capacity.
"""

EARLY = 8.0
"""Largest first point for these differences.

From 16 on, p - 1 equals p within noise and deviations, and other terms represent the rest.

Unit: processes. Evidence: by convention.
"""

FROM_TWO = 2.0, 16.0
"""Range of the first point within which it differs from 1/p; added growth is small there.

Unit: processes. Evidence: by convention.
"""

RATES = Fraction(1, 2), Fraction(1)
"""Rates of the exponentials that are compared.

Unit: exponent. Evidence: by convention.
"""

POWERS = range(6)
"""Whole powers that are multiplied by an exponential.

Unit: exponent. Evidence: by convention.
"""

MISSED = 0.02
"""Relative error (root mean square) of a model above which exponentials are tried.

Unit: ratio. Evidence: by convention.
"""

BETTER = 4.0
"""Smallest ratio of the error of the model to that of the exponential.

Unit: ratio. Evidence: by convention.
"""

VARIES = 1e-9
"""Share of the square of a column below which it equals another column.

Unit: share. Evidence: by convention.
"""


TIED = 1e-5
"""Largest relative difference of residuals that are equal except for rounding.

Unit: ratio. Evidence: by convention.
"""

ROUNDING = 1e-12
"""Residual below which only rounding remains: an exact fit under one drift is exact under all.

Unit: ratio. Evidence: by convention.
"""

FEWEST_FOR_PAIRS = 3
"""Points needed for pairs with shared work in one parameter; all other pairs need one more.

Unit: points. Evidence: by convention.
"""

FALLS = 0.5
"""Ratio of the last to the largest value below which the pairs of a row are always tried.

With shared work even the smallest shares are probable.

Unit: ratio. Evidence: by convention.
"""

OUT_OF_QUESTION = 25.0
"""Distance of the bound of a fan from the best one, in nats, beyond which no pair of it matters.

Unit: nats. Evidence: by convention.
"""

EVEN = 1e-3
"""Largest difference of the bounds of fans that are equal except for rounding, in nats.

Unit: nats. Evidence: by convention.
"""

WITHIN = 3.0
"""Largest factor between fitted and measured value where weights come from fitted values.

Unit: ratio. Evidence: by convention.
"""

UNEXPLAINED = 0.4
"""Share of the variation that a shape may leave unexplained if weights come from it.

Unit: share. Evidence: by convention.
"""

SCATTERED = 0.1
"""Relative deviation of measurements from models above which weights are uncertain.

Unit: ratio. Evidence: by convention.
"""

EVERY = 10**6
"""Number of closest shapes that are kept where all are kept.

Unit: shapes. Evidence: by convention.
"""

CLOSEST_WHILE_LEARNING = 100
"""Number of closest shapes that are kept while priors are learnt in one parameter.

Unit: shapes. Evidence: measured, the error for real programs is 7.5 to 7.7 % with 55 to 75 shapes.
"""

CLOSEST_PAIRS = 7
"""Number of closest pairs with positive coefficients that are kept, per point.

The more places breaks have, the more pairs fit by chance.

Unit: pairs per point. Evidence: by convention.
"""

NATS = 6.2
"""Distance from the best bound beyond which a hypothesis is left out.

Unit: nats. Evidence: measured, with 7 models take a tenth longer, and bands are an eighth wider.
"""


AS_CLOSE, AS_CLOSE_UNREPEATED = 1.25, 2.0
"""Largest distance of a slice from the runs that keeps it, relative to the model of the line.

The second number holds without repetitions, when models follow the noise of few points closely.

Unit: ratio. Evidence: ablation, runs instead of slices.
"""

DEVIATES = 0.5
"""Largest part of the variance about a slice, beyond the noise, that keeps it.

Unit: share. Evidence: ablation, doubts about slices and runs.
"""

DOUBT = 0.2
"""Largest probability of the alternatives: the line for a slice, or the slice for a line.

Unit: probability. Evidence: ablation, doubts about slices and runs.
"""
