/* Elementary functions without branches, so that loops over them become vector instructions.

   They are accurate to a few units in the last place. All are inlined, because calls prevent
   vector instructions. */
#ifndef CALLPATH_MODELER_FUNCTIONS_H
#define CALLPATH_MODELER_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* A vector of as many numbers as a register holds, at any address. Wider vectors would be moved
   between registers and memory. */
#if defined(__AVX512F__)
#define WIDTH 8
#elif defined(__AVX__)
#define WIDTH 4
#else
#define WIDTH 2
#endif
typedef double Vector __attribute__((vector_size(8 * WIDTH), aligned(8)));

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

/* Split a normal number into 2^k m, with sqrt(1/2) <= m < sqrt(2). Return m. */
INLINE double apart(double x, double *k)
{
    const uint64_t half_sqrt = 0x3fe6a09e667f3bcdULL;
    uint64_t shifted = bits_of(x) - half_sqrt;
    /* An exponent in the low bits of 2^52 is 2^52 plus that number; the bias keeps it positive. */
    *k = of_bits((((shifted >> 52) & 0xfff) ^ 0x800) | 0x4330000000000000ULL)
         - (4503599627370496.0 + 2048.0);
    return of_bits((shifted & 0x000fffffffffffffULL) + half_sqrt);
}

/* Natural logarithm; -inf below the smallest normal number, NaN of NaN, inf of inf.

   The logarithm of m is 2 atanh((m - 1) / (m + 1)). */
INLINE double log_of(double x)
{
    double k, m = apart(x, &k), s = (m - 1) / (m + 1), z = s * s;
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

/* Natural logarithm to within 4e-10, without a division, which takes longer than all other steps;
   -inf below the smallest normal number.

   log(1 + f) = f - f^2 / 2 + f^3 P(f). P is the polynomial of ten coefficients that is closest
   for 1 + f between sqrt(1/2) and sqrt(2). */
INLINE double log_near(double x)
{
    double k, f = apart(x, &k) - 1;
    double tail = -0.06201500119018334327;
    tail = tail * f + 0.1053086473893834465;
    tail = tail * f - 0.1064619163819963397;
    tail = tail * f + 0.1103778335905502028;
    tail = tail * f - 0.124507433209117255;
    tail = tail * f + 0.1428652454778664245;
    tail = tail * f - 0.1666800152307192753;
    tail = tail * f + 0.2000001003968497203;
    tail = tail * f - 0.2499999027504218506;
    tail = tail * f + 0.3333333328119924437;
    double found = k * 0.69314718055994530942 + (f + f * f * (f * tail - 0.5));
    return x < 2.2250738585072014e-308 ? -INFINITY : found;
}

INLINE float single_of_bits(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

INLINE uint32_t bits_of_single(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

INLINE float larger_single(float a, float b) { return a > b ? a : b; }

INLINE float smaller_single(float a, float b) { return a < b ? a : b; }

/* `log_near` in single precision: to within 1e-7 of the number or the logarithm. */
INLINE float log_single(float x)
{
    const uint32_t half_sqrt = 0x3f3504f3;
    uint32_t shifted = bits_of_single(x) - half_sqrt;
    float k = (float)((int32_t)shifted >> 23);
    float f = single_of_bits((shifted & 0x007fffff) + half_sqrt) - 1;
    float tail = 0.08672187877f;
    tail = tail * f - 0.1437900844f;
    tail = tail * f + 0.1497799295f;
    tail = tail * f - 0.1656442561f;
    tail = tail * f + 0.1995487574f;
    tail = tail * f - 0.2500169874f;
    tail = tail * f + 0.3333416592f;
    float found = k * 0.6931471806f + (f + f * f * (f * tail - 0.5f));
    return x < 1.17549435e-38f ? -INFINITY : found;
}

/* Exponential function in single precision, of numbers up to zero; 0 below -87. */
INLINE float exp_single(float x)
{
    float near = x < -87 ? -87 : x;
    float whole = near * 1.442695041f + 12582912.0f;
    uint32_t power = bits_of_single(whole) << 23;
    whole -= 12582912.0f;
    float r = near - whole * 0.693359375f;
    r += whole * 2.1219444005e-4f;
    float sum = 0.00139504788f;
    sum = sum * r + 0.008368882239f;
    sum = sum * r + 0.04166620599f;
    sum = sum * r + 0.166665189f;
    sum = sum * r + 0.5000000095f;
    sum = sum * (r * r) + (1 + r);
    return x < -87 ? 0 : single_of_bits(bits_of_single(sum) + power);
}

/* Exponential function; 0 below -708, inf above 709. */
INLINE double exp_of(double x)
{
    double near = x < -708 ? -708 : (x > 709 ? 709 : x);
    /* Adding 1.5 x 2^52 rounds a number to a whole one, which is then in the low bits. */
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
    /* The part that was rounded away. */
    double left = whole < 1e15 ? (x - (whole - 1)) / whole : 0;
    return log_of(whole) + left;
}

/* log(erfc(x) exp(x^2)) of x >= 0: log t and a Chebyshev series in t = 2 / (2 + x), which maps
   all x to (0, 1]. Coefficients computed with 50 digits. */
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
    /* An inner loop would prevent vector instructions in the outer one. */
#pragma GCC unroll 32
    for (int k = (int)(sizeof series / sizeof *series) - 1; k > 0; k--) {
        double next = twice * sum - last + series[k];
        last = sum;
        sum = next;
    }
    return log_of(t) + (0.5 * (twice * sum + series[0]) - last);
}

/* erfc(x) exp(x^2) of x >= 0: t times a polynomial in 2t - 1, t = 2 / (2 + x). Coefficients of the
   Chebyshev series, computed with 60 digits; relative error 4e-16. */
INLINE double erfcx_of(double x)
{
    static const double coefficients[] = {
        -1.9111737285877114148e-9, 6.5973673028926510966e-9, 6.5204346142829986832e-9,
        -5.145629434353416021e-8, 3.6000845292383760784e-8, 1.4971435260212514521e-7,
        -3.2624609353011333033e-7, 1.5720540066942111054e-8, 1.0305699215295247622e-6,
        -1.8350785408982821654e-6, -5.7764236115139591284e-7, 8.067106211220302113e-6,
        -0.000010842985329964307241, -0.000017076638145079597454, 0.000072234188295048040594,
        -0.000017185254170406891856, -0.00033153657669014611945, 0.00041864797106605077244,
        0.0015453060141013286862, -0.0032395925295271532394, -0.010755330944036531378,
        0.018221115753294919315, 0.13973604627801475144, 0.34358034220690671478,
        0.51079135262101152502,
    };
    double t = 2 / (2 + x), u = 2 * t - 1, sum = 0;
#pragma GCC unroll 32
    for (int k = 0; k < (int)(sizeof coefficients / sizeof *coefficients); k++)
        sum = sum * u + coefficients[k];
    return t * sum;
}

/* The standard normal distribution; the first function takes the known `bell`, exp(-z^2 / 2). */
INLINE double normal_share_of(double z, double bell)
{
    double tail = 0.5 * bell * erfcx_of(fabs(z) * 0.70710678118654752440);
    return z < 0 ? tail : 1 - tail;
}

INLINE double normal_bell(double z) { return exp_of(-0.5 * z * z); }

INLINE double normal_share(double z) { return normal_share_of(z, normal_bell(z)); }

/* Quantile of the standard normal distribution; NaN beyond 0 and 1. It comes from three rational
   functions (Wichura: Algorithm AS 241, the percentage points of the normal distribution, 1988),
   all evaluated, so that there is no branch. */
INLINE double normal_quantile(double probability)
{
    double q = probability - 0.5, r = 0.180625 - q * q;
    double over = 2509.0809287301226727, under = 5226.495278852854561;
    over = over * r + 33430.575583588128105, under = under * r + 28729.085735721942674;
    over = over * r + 67265.770927008700853, under = under * r + 39307.89580009271061;
    over = over * r + 45921.953931549871457, under = under * r + 21213.794301586595867;
    over = over * r + 13731.693765509461125, under = under * r + 5394.1960214247511077;
    over = over * r + 1971.5909503065514427, under = under * r + 687.1870074920579083;
    over = over * r + 133.14166789178437745, under = under * r + 42.313330701600911252;
    over = (over * r + 3.387132872796366608) * q, under = under * r + 1;

    double beyond = sqrt(-log_of(q < 0 ? probability : 1 - probability));
    r = beyond - 1.6;
    double a = 7.7454501427834140764e-4, b = 1.05075007164441684324e-9;
    a = a * r + 2.27238449892691845833e-2, b = b * r + 5.475938084995344946e-4;
    a = a * r + 2.4178072517745061177e-1, b = b * r + 1.51986665636164571966e-2;
    a = a * r + 1.27045825245236838258, b = b * r + 1.4810397642748007459e-1;
    a = a * r + 3.64784832476320460504, b = b * r + 6.8976733498510000455e-1;
    a = a * r + 5.7694972214606914055, b = b * r + 1.6763848301838038494;
    a = a * r + 4.6303378461565452959, b = b * r + 2.05319162663775882187;
    a = a * r + 1.42343711074968357734, b = b * r + 1;

    r = beyond - 5;
    double c = 2.01033439929228813265e-7, d = 2.04426310338993978564e-15;
    c = c * r + 2.71155556874348757815e-5, d = d * r + 1.4215117583164458887e-7;
    c = c * r + 1.2426609473880784386e-3, d = d * r + 1.84631831751005468180e-5;
    c = c * r + 2.65321895265761230930e-2, d = d * r + 7.868691311456132591e-4;
    c = c * r + 2.9656057182850489123e-1, d = d * r + 1.48753612908506148525e-2;
    c = c * r + 1.7848265399172913358, d = d * r + 1.3692988092273580531e-1;
    c = c * r + 5.4637849111641143699, d = d * r + 5.9983220655588793769e-1;
    c = c * r + 6.6579046435011037772, d = d * r + 1;

    double tail = beyond <= 5 ? a : c, whole = beyond <= 5 ? b : d;
    over = fabs(q) <= 0.425 ? over : (q < 0 ? -tail : tail);
    under = fabs(q) <= 0.425 ? under : whole;
    return over / under;
}

/* Logarithm of the standard normal distribution, exact far in the tail. */
INLINE double log_normal_share(double z)
{
    double x = fabs(z) * 0.70710678118654752440;
    double tail = log_erfcx(x) - x * x - 0.69314718055994530942;
    double rest = exp_of(tail);
    /* Near 1 the difference 1 - e loses the digits of e. */
    double near = -rest * (1 + rest * (1.0 / 2 + rest * (1.0 / 3 + rest / 4)));
    double above = rest < 1e-3 ? near : log_of(1 - rest);
    return z < 0 ? tail : above;
}

#endif
