/* Functions of `modeling/distributions.py`. */
#include "functions.h"

/* The normal distribution at each of `n` numbers. */
int64_t normal_shares(int64_t n, const double *z, double *found)
{
#pragma omp simd
    for (int64_t k = 0; k < n; k++)
        found[k] = normal_share(z[k]);
    return 0;
}

int64_t log_normal_shares(int64_t n, const double *z, double *found)
{
#pragma omp simd
    for (int64_t k = 0; k < n; k++)
        found[k] = log_normal_share(z[k]);
    return 0;
}

int64_t normal_quantiles(int64_t n, const double *probability, double *found)
{
#pragma omp simd
    for (int64_t k = 0; k < n; k++)
        found[k] = normal_quantile(probability[k]);
    return 0;
}

/* Digamma, trigamma and tetragamma functions of x > 0: the asymptotic series (Abramowitz and Stegun:
   Handbook of mathematical functions, 1964, 6.3.18 and 6.4.11), which has all digits beyond 10,
   from where recurrence (6.3.5, 6.4.6) leads down. */
int64_t polygammas(int64_t n, const double *argument, double *first, double *second, double *third)
{
    static const double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66,
                                       -691.0 / 2730, 7.0 / 6};
    for (int64_t k = 0; k < n; k++) {
        double x = argument[k] > 0 ? argument[k] : NAN, t, a = 0, b = 0, c = 0;
        for (; x < 10; x++) {
            t = 1 / x;
            a -= t, b += t * t, c -= 2 * t * t * t;
        }
        t = 1 / x;
        double power = t * t;
        for (int j = 0; j < (int)(sizeof bernoulli / sizeof *bernoulli); j++, power *= t * t) {
            a -= bernoulli[j] * power / (2 * j + 2);
            b += bernoulli[j] * power * t;
            c -= bernoulli[j] * power * t * t * (2 * j + 3);
        }
        first[k] = a + log(x) - t / 2;
        second[k] = b + t + t * t / 2;
        third[k] = c - t * t - t * t * t;
    }
    return 0;
}

/* The incomplete beta function I_x(a, b) divided by its leading factor x^a (1 - x)^b / B(a, b): a
   continued fraction (26.5.8 there) by the method of Lentz, fast if x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    double over = 1, under = 1 / (1 - (a + b) * x / (a + 1)), found = under / a;
    for (int m = 1; m < 10000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        under = 1 / (1 + even * under), over = 1 + even / over, found *= under * over;
        under = 1 / (1 + odd * under), over = 1 + odd / over, found *= under * over;
        if (fabs(under * over - 1) < 1e-15)
            break;
    }
    return found;
}

/* With more degrees of freedom the normal distribution replaces Student's. They differ by less
   than a millionth at the ends of bands. */
static const double MANY = 1e7;

/* The density of Student's distribution at t >= 0 times t. It is also the leading factor of the
   incomplete beta functions that give its tails. */
static double student_density(double dof, double t)
{
    double half = dof / 2, square = t * t / dof;
    /* log Gamma(half + 1/2) - log Gamma(half); the difference of large ones loses digits. */
    double ratio = half < 100 ? lgamma(half + 0.5) - lgamma(half)
                              : 0.5 * log(half) - 0.125 / half + 1 / (192 * half * half * half);
    double root_of_pi = 1.7724538509055160273;
    return exp(ratio - (half + 0.5) * log1p(square)) * sqrt(square) / root_of_pi;
}

/* The share of Student's distribution beyond t >= 0; `density` comes from `student_density`. */
static double student_tail(double dof, double t, double density)
{
    double square = t * t / dof, x = 1 / (1 + square);
    if (x < (dof + 2) / (dof + 5))
        return 0.5 * density * beta_fraction(dof / 2, 0.5, x);
    return 0.5 - 0.5 * density * beta_fraction(0.5, dof / 2, square * x);
}

static double student_share(double dof, double t)
{
    if (!(dof > 0))
        return NAN;
    double size = fabs(t);
    if (dof > MANY || isinf(t))
        return normal_share(t);
    double tail = student_tail(dof, size, student_density(dof, size));
    return t < 0 ? tail : 1 - tail;
}

/* Newton's method for the logarithm of the tail as a function of log t. The function is concave,
   so from the second step on t is too large. */
static double student_quantile(double dof, double probability)
{
    double tail = smaller(probability, 1 - probability);
    if (!(dof > 0 && tail >= 0))
        return NAN;
    double t = tail > 0 ? fabs(normal_quantile(tail)) : INFINITY, step = dof > MANY ? 0 : 1;
    /* Its convergence is quadratic. */
    for (int k = 0; k < 50 && t > 0 && t < INFINITY && fabs(step) > 1e-9; k++) {
        double density = student_density(dof, t), above = student_tail(dof, t, density);
        step = above / density * log(above / tail);
        t *= exp(step);
    }
    return probability < 0.5 ? -t : t;
}

/* Student's distribution with `dof` degrees of freedom at each of `n` numbers. */
int64_t student_shares(int64_t n, const double *dof, const double *t, double *found)
{
    for (int64_t k = 0; k < n; k++)
        found[k] = student_share(dof[k], t[k]);
    return 0;
}

int64_t student_quantiles(int64_t n, const double *dof, const double *probability, double *found)
{
    for (int64_t k = 0; k < n; k++)
        found[k] = student_quantile(dof[k], probability[k]);
    return 0;
}
