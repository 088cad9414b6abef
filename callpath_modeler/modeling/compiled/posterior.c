/* `posterior` and `fitted_values` in mixture/posterior.py. */
#include "constants.h"
#include "functions.h"
#include "memory.h"


/* Numbers whose exponentials are computed together. */
enum { TOGETHER = 8 };

/* `Candidates`, ordered by row, and their priors. */
typedef struct {
    int64_t deviations, drifts;               /* D, L */
    const int64_t *chosen;                    /* [M] */
    const double *log_evidence;               /* [M, D] */
    const double *coefficients, *covariance;  /* [M, L, 3], [M, L, 6] */
    const double *prior, *deviation_prior;    /* [H], [D] */
    const double *square;                     /* [D] of the deviations */
    const int64_t *begin;                     /* [L + 1]: start of the deviations of a drift */
    const double *growth;                     /* [L] beyond the points */
} Found;

/* `Posterior`; columns are `size` apart. */
typedef struct {
    int64_t size, count;
    int64_t *row, *chosen;
    double *weight, *coefficients, *covariance; /* [M], [3, M], [6, M] */
    double *variance, *drift;                   /* [n] */
} Believed;

/* Write the joint probabilities of the candidates of a row, [m, D], up to a factor. */
static void weigh(const Found *found, int64_t begin, int64_t end, double *joint)
{
    int64_t cells = found->deviations, size = (end - begin) * cells;
    for (int64_t i = begin; i < end; i++) {
        const double *evidence = found->log_evidence + i * cells;
        double prior = found->prior[found->chosen[i]], *its = joint + (i - begin) * cells;
#pragma omp simd
        for (int64_t d = 0; d < cells; d++)
            its[d] = evidence[d] + (prior + found->deviation_prior[d]);
    }
    for (int64_t i = size; i % TOGETHER; i++)
        joint[i] = 0;
    for (int64_t i = 0; i < size; i += TOGETHER)
#pragma omp simd
        for (int64_t d = i; d < i + TOGETHER; d++)
            joint[d] = exp_of(joint[d]);
}

/* Write the share of a candidate and its sum of squared deviations under each drift, [L]; return
   the total share. */
static double sum_cells(const Found *found, const double *joint, double *share, double *scatter)
{
    double whole = 0;
    for (int64_t drift = 0; drift < found->drifts; drift++) {
        double sum = 0, squares = 0;
        for (int64_t d = found->begin[drift]; d < found->begin[drift + 1]; d++) {
            sum += joint[d];
            squares += joint[d] * found->square[d];
        }
        share[drift] = sum;
        scatter[drift] = squares;
        whole += sum;
    }
    return whole;
}

/* Write the mean of a candidate over drifts, weighted by `share` and `scatter`. */
static void believe(const Found *found, int64_t candidate, const double *share,
                    const double *scatter, double weight, Believed *out)
{
    int64_t size = out->size, place = out->count++;
    const double *coefficients = found->coefficients + 3 * candidate * found->drifts;
    const double *covariance = found->covariance + 6 * candidate * found->drifts;
    double numbers[3] = {0}, elements[6] = {0};
    for (int64_t drift = 0; drift < found->drifts; drift++) {
        /* Numbers that are equal under all drifts keep all digits. */
        for (int j = 0; j < 3; j++)
            numbers[j] += share[drift] * (coefficients[3 * drift + j] - coefficients[j]);
        for (int j = 0; j < 6; j++)
            elements[j] += scatter[drift] * covariance[6 * drift + j];
    }
    out->chosen[place] = found->chosen[candidate];
    out->weight[place] = weight;
    for (int j = 0; j < 3; j++)
        out->coefficients[j * size + place] = coefficients[j] + numbers[j] / weight;
    for (int j = 0; j < 6; j++)
        out->covariance[j * size + place] = elements[j] / weight;
}

/* Compute the posterior of the m candidates of a row, whose variance is `own`. Working memory is
   `joint` [m, D] and `work` [m, 2 L + 1]. */
static void weigh_row(const Found *found, int64_t row, int64_t begin, int64_t end, double own,
                      double *joint, double *work, Believed *out)
{
    int64_t drifts = found->drifts, each = 2 * drifts + 1;
    double total = 0, variance = 0, drifting = 0, noise = 0;
    weigh(found, begin, end, joint);
    for (int64_t i = 0; i < end - begin; i++) {
        double *its = work + i * each;
        its[2 * drifts] = sum_cells(found, joint + i * found->deviations, its, its + drifts);
        total += its[2 * drifts];
    }
    double part = 1 / total;
    for (int64_t i = 0; i < end - begin; i++) {
        double *share = work + i * each, *scatter = share + drifts, weight = 0;
        if (!(share[2 * drifts] * part > OUTCOME_NEGLIGIBLE))
            continue;
        for (int64_t drift = 0; drift < drifts; drift++) {
            share[drift] *= part;
            scatter[drift] = share[drift] * own + scatter[drift] * part;
            weight += share[drift];
            variance += scatter[drift];
            drifting += found->growth[drift] * scatter[drift];
            noise += found->growth[drift] * share[drift];
        }
        out->row[out->count] = row;
        believe(found, begin + i, share, scatter, weight, out);
    }
    out->variance[row] = variance;
    /* Only the deviation beyond the noise drifts. */
    out->drift[row] = larger(drifting - noise * own, 0);
}

/* Arguments are as in the types above; `start` [n + 1] is the start of each row, `variance` [n]
   its variance. Write the number of hypotheses to `count`. */
int64_t posterior(int64_t rows, int64_t size, int64_t deviations, int64_t drifts,
                  const int64_t *start, const int64_t *chosen, const double *log_evidence,
                  const double *coefficients, const double *covariance, const double *variance,
                  const double *prior, const double *deviation_prior, const double *square,
                  const int64_t *begin, const double *growth, int64_t *row_out,
                  int64_t *chosen_out, double *weight_out, double *coefficients_out,
                  double *covariance_out, double *variance_out, double *drift_out, int64_t *count)
{
    Found found = {deviations, drifts, chosen, log_evidence, coefficients, covariance,
                   prior, deviation_prior, square, begin, growth};
    Believed out = {size, 0, row_out, chosen_out, weight_out, coefficients_out,
                    covariance_out, variance_out, drift_out};
    int64_t most = 0;
    for (int64_t row = 0; row < rows; row++)
        most = start[row + 1] - start[row] > most ? start[row + 1] - start[row] : most;
    int64_t cells = most * deviations + TOGETHER;
    double *joint = new_lines(cells + most * (2 * drifts + 1));
    if (!joint)
        return -1;
    for (int64_t row = 0; row < rows; row++)
        weigh_row(&found, row, start[row], start[row + 1], variance[row], joint, joint + cells,
                  &out);
    free(joint);
    *count = out.count;
    return 0;
}

/* Sum models at the points, [n, K], with the shapes `first` and `second` [M] of `table` [S + 1,
   K]; the last shape stands for none. `coefficients` are [3, M]. */
int64_t fitted_values(int64_t rows, int64_t size, int64_t points, const int64_t *row,
                      const int64_t *first, const int64_t *second, const double *weight,
                      const double *coefficients, const double *table, double *fitted)
{
    for (int64_t i = 0; i < rows * points; i++)
        fitted[i] = 0;
    for (int64_t i = 0; i < size; i++) {
        const double *x = table + first[i] * points, *z = table + second[i] * points;
        double constant = weight[i] * coefficients[i];
        double of_x = weight[i] * coefficients[size + i];
        double of_z = weight[i] * coefficients[2 * size + i], *its = fitted + row[i] * points;
#pragma omp simd
        for (int64_t k = 0; k < points; k++)
            its[k] += constant + of_x * x[k] + of_z * z[k];
    }
    return 0;
}
