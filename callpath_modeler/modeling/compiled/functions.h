/* Elementary functions without branches, so that loops over them become vector instructions.

   Accurate to a few units in the last place. All are inlined, or the loops would be calls. */
#ifndef CALLPATH_MODELER_FUNCTIONS_H
#define CALLPATH_MODELER_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE double of_bits(uint64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

INLINE uint64_t bits_of(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

INLINE double larger(double a, double b) { return a > b ? a : b; }

INLINE double smaller(double a, double b) { return a < b ? a : b; }

/* Natural logarithm; -inf of what is below the least normal number, NaN of NaN, inf of inf.

   With x = 2^k m, sqrt(1/2) <= m < sqrt(2), log m = 2 atanh((m - 1) / (m + 1)). */
INLINE double log_of(double x)
{
    const uint64_t half_sqrt = 0x3fe6a09e667f3bcdULL;
    uint64_t shifted = bits_of(x) - half_sqrt;
    /* An exponent in the low bits of 2^52 is that number as a double; the bias keeps it positive. */
    double k = of_bits((((shifted >> 52) & 0xfff) ^ 0x800) | 0x4330000000000000ULL)
               - (4503599627370496.0 + 2048.0);
    double m = of_bits((shifted & 0x000fffffffffffffULL) + half_sqrt);
    double s = (m - 1) / (m + 1), z = s * s;
    double tail = 1.0 / 19;
    tail = tail * z + 1.0 / 17;
    tail = tail * z + 1.0 / 15;
    tail = tail * z + 1.0 / 13;
    tail = tail * z + 1.0 / 11;
    tail = tail * z + 1.0 / 9;
    tail = tail * z + 1.0 / 7;
    tail = tail * z + 1.0 / 5;
    tail = tail * z + 1.0 / 3;
    double found = k * 0.69314718036912382 + (k * 1.9082149292705877e-10 + 2 * s * z * tail) + 2 * s;
    found = x < 2.2250738585072014e-308 ? -INFINITY : found;
    return x < INFINITY ? found : x;
}

/* Exponential function; 0 below -708, inf above 709. */
INLINE double exp_of(double x)
{
    double near = x < -708 ? -708 : (x > 709 ? 709 : x);
    /* Added to 1.5 x 2^52, a number is rounded to a whole one, which is in the low bits. */
    double whole = near * 1.4426950408889634 + 6755399441055744.0;
    uint64_t power = bits_of(whole) << 52;
    whole -= 6755399441055744.0;
    double r = near - whole * 0.69314718036912382;
    r -= whole * 1.9082149292705877e-10;
    double sum = 1.0 / 6227020800.0;
    sum = sum * r + 1.0 / 479001600.0;
    sum = sum * r + 1.0 / 39916800.0;
    sum = sum * r + 1.0 / 3628800.0;
    sum = sum * r + 1.0 / 362880.0;
    sum = sum * r + 1.0 / 40320.0;
    sum = sum * r + 1.0 / 5040.0;
    sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0;
    sum = sum * r + 1.0 / 24.0;
    sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 0.5;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    double found = of_bits(bits_of(sum) + power);
    found = x < -708 ? 0 : found;
    return x <= 709 ? found : (x > 709 ? INFINITY : x);
}

/* log(1 + x) of x >= 0. */
INLINE double log1p_of(double x)
{
    double whole = 1 + x;
    /* What was rounded away. */
    double left = whole < 1e15 ? (x - (whole - 1)) / whole : 0;
    return log_of(whole) + left;
}

/* log(erfc(x) exp(x^2)) of x >= 0: log t and a Chebyshev series in t = 2 / (2 + x), which takes all
   of x to (0, 1]. Coefficients computed with 50 digits. */
INLINE double log_erfcx(double x)
{
    static const double series[] = {
        -1.3026537197817094342, 0.6419697923564902603, 0.019476473204185836312,
        -0.0095615147868086316419, -0.0009465953444820368663, 0.00036683949785276145187,
        0.000042523324806907771645, -0.000020278578112534243154, -1.6242900046470255135e-6,
        1.3036558355805232018e-6, 1.5626441722066143178e-8, -8.5238095914926542525e-8,
        6.5290544390988514964e-9, 5.0593434955514689418e-9, -9.9136415649303308674e-10,
        -2.2736512229318358557e-10, 9.646791102015526802e-11, 2.3940380830391147447e-12,
        -6.8860275264975533984e-12, 8.9448792730907257167e-13, 3.1309213993429580783e-13,
        -1.1270822361367252365e-13, 3.8109052551892320678e-16, 7.1060976136092369431e-15,
        -1.5230282014571041472e-15, -9.4574945712912544535e-17, 1.2102371892242730222e-16,
    };
    double t = 2 / (2 + x), twice = 4 * t - 2, last = 0, sum = 0;
    /* A loop within would keep the one around it from becoming vector instructions. */
#pragma GCC unroll 32
    for (int k = (int)(sizeof series / sizeof *series) - 1; k > 0; k--) {
        double next = twice * sum - last + series[k];
        last = sum;
        sum = next;
    }
    return log_of(t) + (0.5 * (twice * sum + series[0]) - last);
}

/* The standard normal distribution, and its logarithm, which is exact far in the tail. */
INLINE double normal_share(double z)
{
    double x = fabs(z) * 0.70710678118654752440;
    double tail = 0.5 * exp_of(log_erfcx(x) - x * x);
    return z < 0 ? tail : 1 - tail;
}

INLINE double log_normal_share(double z)
{
    double x = fabs(z) * 0.70710678118654752440;
    double tail = log_erfcx(x) - x * x - 0.69314718055994530942;
    double rest = exp_of(tail);
    /* Near 1 the difference 1 - e loses what e has. */
    double near = -rest * (1 + rest * (1.0 / 2 + rest * (1.0 / 3 + rest / 4)));
    double above = rest < 1e-3 ? near : log_of(1 - rest);
    return z < 0 ? tail : above;
}

#endif
