"""Constants of models in several parameters, and of the classic method.

See docs/explanation/several-parameters.md.

See docs/explanation/modeling.md, 'The classic method'.
"""

from __future__ import annotations

from fractions import Fraction

ASKED = 0.1
"""Probability of laws in two parameters or more above which sums of products are tried.

Unit: probability. Evidence: ablation, sums of products.
"""

BEYOND_NOISE = 4.0
"""Variance about the models of a row, relative to the noise, above which sums may be tried.

Unit: ratio. Evidence: by convention.
"""

FOLLOWS, TERMS_OF_A_CHECK = 0.9, 8
"""Part of the variance along lines above which one of some terms explains it; number of these.

Unit: share, count. Evidence: by convention.
"""

MATTERS = 1e-3
"""Probability of all sums of a row below which they are left out.

Unit: probability. Evidence: ablation, sums of products.
"""

FEWEST_IN_SUMS = 3
"""Smallest number of parameters; in two parameters, pairs are such sums.

Unit: parameters. Evidence: ablation, sums of products.
"""

FEWEST_ON_A_LINE = 3
"""Fewest points of a line along which only one parameter varies.

Unit: points. Evidence: by convention.
"""

PRIOR_OF_SUMS = 0.3
"""Prior of all sums of products together, before an application is known.

Unit: probability. Evidence: ablation, sums of products.
"""

NATS_ON_LINES = 9.0
"""Distance from the best term of a parameter along lines, beyond which a term is left out.

Unit: nats. Evidence: ablation, sums of products.
"""

DIGITS_OF_NATS = 6
"""Decimal digits of log probabilities that choose terms and sums.

Unit: digits. Evidence: by convention.
"""

MOST_COMBINED = 4000
"""Largest number of combinations of a term of each parameter that are tried in all structures.

Unit: combinations. Evidence: ablation, sums of products.
"""

NATS_OF_SUMS = 9.0
"""Distance from the best sum of a row, beyond which a sum is left out.

Unit: nats. Evidence: ablation, sums of products.
"""

MOST_SUMS = 400
"""Largest number of sums of a row that are evaluated.

Unit: sums. Evidence: ablation, sums of products.
"""

SINGULAR = 1e-13
"""Part of the diagonal that is added, so that equations that rounding makes equal can be solved.

Unit: ratio. Evidence: by convention.
"""

MENDED = 3
"""Number of solutions of the equations of a sum: each one corrects the rounding of those before.

Unit: count. Evidence: by convention.
"""

MOST_OF_TWO = 8500
"""Largest number of products of two factors, which two parameters do not reach.

Unit: count. Evidence: by convention.
"""

MOST_OF_MORE = 1000
"""Largest number of products of three factors, and of four; sums of products have all others.

Unit: count. Evidence: by convention.
"""

LARGEST_PRODUCT = 4
"""Largest number of factors of a product outside of sums of products.

Unit: factors. Evidence: by convention.
"""

MOST_FACTORS = {3: 16, 4: 8}
"""Factors of a parameter in products of three and of four; further terms are not plain.

Unit: count. Evidence: by convention.
"""

MOST_BESIDE_BREAKS = 2
"""Largest number of plain factors that are multiplied with a break.

Unit: factors. Evidence: by convention.
"""

MOST_SELDOM = 1000
"""Largest number of products with a rare factor, for each number of factors.

Unit: count. Evidence: by convention.
"""

SECOND_CLASS = 0.5
"""Prior of a secondary exponent relative to a primary one, in each factor.

Unit: relative prior. Evidence: by convention.
"""

SELDOM = 2.0
"""Intricacy that a rare factor adds to a product, in powers of two of the prior.

Unit: powers of two. Evidence: by convention.
"""

NEIGHBOURS = 1.0
"""Further intricacy of factors of neighbours, which resemble a plain factor under noise.

Unit: powers of two. Evidence: by convention.
"""

PLAIN, PLAINEST = 1.0, 0.25
"""Largest intricacy of the other factors with a rare factor: of one factor, and of several.

Unit: powers of two. Evidence: by convention.
"""

MOST_BROKEN_OF_TWO = 1800
"""Largest number of products with a break in two parameters: all, up to five values of each.

Unit: count. Evidence: ablation, breaks along a parameter.
"""

MOST_BROKEN = 1200
"""The same in more parameters.

Unit: count. Evidence: ablation, breaks along a parameter.
"""

FRACTION = 0.1
"""Intricacy that roots add.

Unit: powers of two. Evidence: by convention.
"""

FALLING = 0.1
"""Intricacy that decreasing factors add.

Unit: powers of two. Evidence: by convention.
"""

STEEPEST, STEEP = 3, 2.0
"""Steepest usual power, and the intricacy that each further power adds.

A break is a more probable reason for an outlying last run of a parameter than a power beyond cubes.

Unit: exponent, powers of two. Evidence: by convention.
"""

FURTHER_FACTOR = 0.1
"""Intricacy that each further factor adds, for each parameter beyond the first.

The number of products grows with the number of parameters.

Unit: powers of two. Evidence: by convention.
"""

OPENED = 250
"""Largest number of fans that are evaluated for a row; twice as many find little more.

Unit: fans. Evidence: by convention.
"""

BROKEN = 10.0
"""Prior of laws with a break: this number divided by the number of products, at most 0.04.

Laws with breaks are plain. A plain law has to be more probable than a part of it, or more of it,
from some value on.

Unit: relative prior. Evidence: by convention.
"""

MORE_THAN_SHARED = 0.25
"""Prior of n^3 log2(p) or n^3/sqrt(p) together with the shared work n^3/p, relative to n^3.

In one parameter, too, a constant is the most probable term with 1/p.

Unit: relative prior. Evidence: by convention.
"""

HELD = 0.1
"""Weight of the prior of each hypothesis within its kind, in call paths.

There are thousands of pairs. One call path must not raise the prior of those that happen to suit
it.

Unit: call paths. Evidence: by convention.
"""

BESIDE_BREAKS = 0.5
"""Largest intricacy of the other factors of a law with a break: up to cubes.

Unit: powers of two. Evidence: ablation, breaks along a parameter.
"""

PLAIN_BESIDE_BREAKS = 0.4
"""Largest intricacy of a factor that is combined with a step of the same parameter.

Unit: powers of two. Evidence: ablation, breaks along a parameter.
"""

KINKED = Fraction(1, 2), Fraction(1)
"""Powers of plateaus and floors that bend between two values.

Unit: exponent. Evidence: ablation, breaks along a parameter.
"""

MOST_PAIRED = 400
"""Largest number of products of several factors that are paired with each other.

Unit: products. Evidence: ablation, products that follow from others.
"""

MOST_FIXED = 8000
"""Largest number of such pairs.

Unit: pairs. Evidence: ablation, products that follow from others.
"""

MOST_ACCOMPANIED = 1200
"""Largest number of products from which others follow: with a rare factor, and with shared work.

Unit: products. Evidence: ablation, products that follow from others.
"""

SURFACES = (Fraction(2, 3), Fraction(1, 2))
"""Exponent that turns a volume into its surface, in three dimensions and in two.

Unit: exponent. Evidence: ablation, pairs of shared work.
"""

CLOSEST_OF_SEVERAL = 250
"""Number of closest shapes that are kept while priors are learnt in several parameters.

Unit: shapes. Evidence: by convention.
"""

PRIOR = {
    "CONSTANT": 0.36,
    "FACTOR": 0.15,
    "PRODUCT": 0.12,
    "FALLING": 0.05,
    "OFFSET_FACTOR": 0.04,
    "OFFSET_PRODUCT": 0.03,
    # A program that computes and communicates has one term for each parameter.
    "SUM": 0.08,
    "SHARED": 0.06,
    "BESIDE": 0.06,
    "ONE_PARAMETER": 0.01,
    "PRODUCTS": 0.04,
    # The ratio to laws that only fall is the same as in one parameter.
    "RISING": 0.03,
    # Such a sum is as probable as its falling product with a term of one parameter.
    "OF_A_SHARE": 0.002,
    "NEVER": 0.0,
}
"""Prior of each kind except breaks, before the application is known.

Unit: probability. Evidence: by convention.
"""

BREAK_COSTS = {
    "STEP": 0.5,
    "DROP": 0.5,
    "ONCE": 0.5,
    "ONSET": 0.5,
    "LEAP": 0.502,
    "BEND": 1.0,
    "PLATEAU": 1.0,
    "FLOOR": 1.0,
}
"""Intricacy of a break along one of several parameters, by its kind.

That of leaps differs from that of steps, so that rounding does not choose between the two.

Unit: powers of two. Evidence: ablation, breaks along a parameter.
"""

EXCLUDED = 6.0
"""Difference in Akaike's criterion from which on a hypothesis is excluded: exp(-3) is 5 %.

Unit: units of Akaike's criterion. Evidence: by convention.
"""

KEEP_CONSTANT = 4.0
"""F-ratio, about the 5 % level, below which a constant with growing terms is noise.

Unit: ratio. Evidence: by convention.
"""

CLASSIC_ALTERNATIVES = 3
"""Number of alternatives that are kept per row.

Unit: count. Evidence: by convention.
"""

CLASSIC_CHUNK = 1024
"""Rows that are fitted together.

Unit: rows. Evidence: by convention.
"""

COLLINEAR = 1e-9
"""Determinant, relative to the product of the squares, of two terms that are one curve.

Unit: ratio. Evidence: by convention.
"""

SIGN_TOLERANCE = 1e-9
"""Negative value that counts as zero, since it may be rounding.

Unit: ratio. Evidence: by convention.
"""

VALIDATED = 4
"""Number of best pairs that are solved again in full precision and cross-validated.

Unit: count. Evidence: by convention.
"""

HINTS = 7
"""Number of terms that are tried for a hint of growth.

Unit: count. Evidence: by convention.
"""

CLASSIC_SECOND_CLASS = 2.0
"""Factor by which the error of a second-class hypothesis has to be smaller.

Unit: ratio. Evidence: by convention.
"""

FULL_LEVERAGE = 1e-8
"""Smallest distance of a leverage from 1, for divisions.

Unit: ratio. Evidence: by convention.
"""

RIDGE = 1e-14
"""Number that is added to the diagonal of scaled normal equations.

Unit: ratio. Evidence: by convention.
"""

SMALLEST = 1e-12
"""Share of the largest value of a row below which all values have the same weight.

Unit: share. Evidence: by convention.
"""

LEVEL = 0.02
"""Largest probability of a false first term, for all hypotheses together.

Unit: probability. Evidence: paper, Hotelling 1939; Johansen and Johnstone 1990.
"""

HINT_LEVEL = 0.2
"""The same for the change that the points before the largest have to show.

Unit: probability. Evidence: by convention.
"""

MORE_LEVEL = 0.005
"""The same for a second and further term: a false one of high power ruins an extrapolation.

Unit: probability. Evidence: by convention.
"""

LACK_LEVEL = 0.05
"""Level of the test for lack of fit.

Unit: probability. Evidence: by convention.
"""

USUAL_SPREAD = 0.1
"""Relative standard deviation of the noise that is assumed without repetitions.

Few programs vary by more than a tenth from run to run.

Unit: ratio. Evidence: by convention.
"""

USUAL_DOF = 1.0
"""Weight of this assumption, in degrees of freedom: that of one residual.

Unit: degrees of freedom. Evidence: by convention.
"""

RATIOS_TOGETHER = 2**20
"""Coefficients, times settings, of ratios of sums that are computed together; each takes 100 bytes.

Unit: count. Evidence: by convention.
"""

LEAST_SUM = 1e-6
"""Smallest sum of predictions of another hypothesis, relative to that of the models.

Unit: ratio. Evidence: by convention.
"""
