/* `_rounds` in mixture/expectation_maximization.py: priors of an application by expectation
   maximisation. */
#include "functions.h"
#include "memory.h"

/* Candidates, ordered by row. Deviations fill whole vectors; additional ones in the last vector
   have a probability of zero. */
typedef struct {
    int64_t rows, vectors;
    const int64_t *start, *place; /* [rows + 1]: start of each row; [M] hypotheses */
    Vector *likely;                /* [M, vectors] */
    double *share, *prior;        /* [M]: of one row */
} Seen;

/* Priors of hypotheses [W] and deviations [vectors], and the counts of a round. */
typedef struct {
    int64_t places, kinds;
    double by_one;
    const int64_t *kind;                /* [W] */
    const double *held, *of_hypothesis; /* [W], [kinds] */
    const double *of_kind;              /* [kinds] */
    const Vector *held_deviation;        /* [vectors] */
    double *prior, *count, *most;       /* [W]; most: largest count by one row */
    Vector *deviation, *seen;            /* [vectors] */
    double *counted, *factor;           /* [kinds] */
} Believed;

/* Fill up the last vector of `size` numbers. */
static void widen(const double *numbers, int64_t size, int64_t vectors, Vector *wide)
{
    for (int64_t d = 0; d < vectors * WIDTH; d++)
        wide[d / WIDTH][d % WIDTH] = d < size ? numbers[d] : 0;
}

static void take_exponentials(const double *log_evidence, int64_t candidates, int64_t deviations,
                              Seen *of)
{
    for (int64_t i = 0; i < candidates; i++) {
        double *likely = (double *)(of->likely + i * of->vectors);
#pragma omp simd
        for (int64_t d = 0; d < deviations; d++)
            likely[d] = exp_of(log_evidence[i * deviations + d]);
    }
}

INLINE double sum_of(const Vector *numbers)
{
    double sum = 0;
    for (int d = 0; d < WIDTH; d += 2)
        sum += (*numbers)[d] + (*numbers)[d + 1];
    return sum;
}

/* Add the counts of a row, with a total of one. */
static void listen(const Seen *of, int64_t row, Believed *all)
{
    const int64_t begin = of->start[row], count = of->start[row + 1] - begin;
    const int64_t vectors = of->vectors, *place = of->place + begin;
    const Vector *likely = of->likely + begin * vectors;
    double *restrict share = of->share, *restrict prior = of->prior, whole = 0;
    for (int64_t i = 0; i < count; i++) {
        Vector under = {0};
        for (int64_t v = 0; v < vectors; v++)
            under += likely[i * vectors + v] * all->deviation[v];
        prior[i] = all->prior[place[i]];
        share[i] = prior[i] * sum_of(&under);
        whole += share[i];
    }
    const double part = 1 / whole;
    for (int64_t v = 0; v < vectors; v++) {
        Vector sum = {0};
        for (int64_t i = 0; i < count; i++)
            sum += likely[i * vectors + v] * (prior[i] * part);
        all->seen[v] += sum;
    }
    for (int64_t i = 0; i < count; i++)
        all->count[place[i]] += share[i] * part;
    for (int64_t i = 0; i < count; i++)
        all->most[place[i]] = larger(share[i] * part, all->most[place[i]]);
}

/* Compute priors from the counts and the pseudo-counts. */
static void believe(int64_t vectors, Believed *all)
{
    double whole = 0, *counted = all->counted, *factor = all->factor;
    for (int64_t w = 0; w < all->places; w++)
        counted[all->kind[w]] += all->count[w];
    for (int64_t k = 0; k < all->kinds; k++) {
        factor[k] = counted[k] + all->of_kind[k];
        whole += factor[k];
    }
    for (int64_t w = 0; w < all->places; w++) {
        const double beyond = larger(0, all->most[w] - all->by_one * all->held[w]);
        all->count[w] -= beyond;
        counted[all->kind[w]] -= beyond;
    }
    for (int64_t k = 0; k < all->kinds; k++)
        factor[k] /= whole * (counted[k] + all->of_hypothesis[k]);
    for (int64_t w = 0; w < all->places; w++)
        all->prior[w] = (all->count[w] + all->held[w]) * factor[all->kind[w]];
    double seen = 0;
    for (int64_t v = 0; v < vectors; v++) {
        all->deviation[v] = all->deviation[v] * all->seen[v] + all->held_deviation[v];
        seen += sum_of(all->deviation + v);
    }
    for (int64_t v = 0; v < vectors; v++)
        all->deviation[v] /= seen;
}

/* Take `count` vectors from the memory at `*next`. */
static void *take(Vector **next, int64_t count)
{
    Vector *found = *next;
    *next += count;
    return found;
}

/* Arguments are as in the types above, for M candidates and D deviations; `held_deviation` is
   [D]. `prior` [W] and `deviation` [D] are the priors before and after. `factor` [kinds] is the
   prior per counted call path of each kind. */
int64_t learn(int64_t rounds, int64_t rows, int64_t candidates, int64_t deviations, int64_t places,
              int64_t kinds, double by_one, const int64_t *start, const int64_t *place,
              const double *log_evidence, const int64_t *kind, const double *held,
              const double *of_hypothesis, const double *of_kind, const double *held_deviation,
              double *prior, double *deviation, double *factor)
{
    const int64_t vectors = (deviations + WIDTH - 1) / WIDTH, most = candidates / WIDTH + 1;
    const int64_t of_places = places / WIDTH + 1, of_kinds = kinds / WIDTH + 1;
    const int64_t counts = 2 * of_places + of_kinds + vectors;
    Vector *all = new_zeros(((candidates + 2) * vectors + 2 * most + counts) * WIDTH);
    Vector *next = all;
    if (!all)
        return -1;
    Seen seen = {rows, vectors, start, place, take(&next, candidates * vectors),
                 take(&next, most), take(&next, most)};
    Vector *wide = take(&next, vectors), *now = take(&next, vectors), *zero = next;
    Believed believed = {.places = places, .kinds = kinds, .by_one = by_one, .kind = kind,
                         .held = held, .of_hypothesis = of_hypothesis, .of_kind = of_kind,
                         .held_deviation = wide, .prior = prior, .deviation = now,
                         .factor = factor};
    believed.count = take(&next, of_places), believed.most = take(&next, of_places);
    believed.counted = take(&next, of_kinds), believed.seen = take(&next, vectors);
    widen(held_deviation, deviations, vectors, wide);
    widen(deviation, deviations, vectors, now);
    take_exponentials(log_evidence, candidates, deviations, &seen);
    for (int64_t round = 0; round < rounds; round++) {
        memset(zero, 0, (size_t)counts * sizeof *zero);
        for (int64_t row = 0; row < rows; row++)
            listen(&seen, row, &believed);
        believe(vectors, &believed);
    }
    memcpy(deviation, now, (size_t)deviations * sizeof *deviation);
    free(all);
    return 0;
}
