/* sampler.c -- see sampler.h. The largest weights are taken from a heap, as many as the cuts ask
 * for, because sorting a vocabulary of 200000 for every token would cost more than a layer. */
#include "kernels/graph/sampler.h"

#include "base/pcg.h"
#include "kernels/isa/isa.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define WEIGHT_ONE ((float)(UINT64_C(1) << 40))
/* So that the sum of all weights is below 2^64. */
#define TOKENS_MAX ((size_t)1 << 23)
/* Below, weights are 0. */
#define EXPONENT_MIN -80.0

struct sampler {
    struct sampler_options options;
    struct pcg chance;
    size_t tokens_max;
    uint64_t *weights; /* by id */
    uint32_t *heap;    /* ids; the largest weight on top, of equal ones the lowest id */
    uint32_t *kept;    /* ids, the largest weight first */
};

static enum status check_options(const struct sampler_options *o, struct diag *dg)
{
    if (!(o->temperature >= 0) || isinf(o->temperature))
        return diag_set(dg, ST_RANGE, "temperature %g: expected a number from 0 up",
                        o->temperature);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return diag_set(dg, ST_RANGE, "top-p %g: expected a number above 0, up to 1", o->top_p);
    return ST_OK;
}

enum status sampler_new(struct sampler **out, const struct sampler_options *options,
                        size_t tokens_max, struct diag *dg)
{
    assert(tokens_max > 0);
    enum status status = check_options(options, dg);
    if (!status && tokens_max > TOKENS_MAX)
        status = diag_set(dg, ST_RANGE, "a vocabulary of %zu tokens: expected at most %zu",
                          tokens_max, TOKENS_MAX);
    if (status)
        return status;
    struct sampler *s = calloc(1, sizeof *s);
    if (!s)
        return diag_no_memory(dg);
    s->options = *options;
    s->tokens_max = tokens_max;
    pcg_stream(&s->chance, options->seed, "engine/sampler");
    s->weights = calloc(tokens_max, sizeof *s->weights);
    s->heap = calloc(tokens_max, sizeof *s->heap);
    s->kept = calloc(tokens_max, sizeof *s->kept);
    if (!s->weights || !s->heap || !s->kept) {
        sampler_free(s);
        return diag_no_memory(dg);
    }
    *out = s;
    return ST_OK;
}

void sampler_free(struct sampler *s)
{
    if (!s)
        return;
    free(s->weights);
    free(s->heap);
    free(s->kept);
    free(s);
}

static enum status find_largest(size_t *out, const float *logits, size_t n, struct diag *dg)
{
    size_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return diag_set(dg, ST_RANGE, "the logit of token %zu is %s", i,
                            isnan(logits[i]) ? "not a number" : "infinite");
        if (logits[i] > logits[largest])
            largest = i;
    }
    if (logits[largest] == -INFINITY)
        return diag_set(dg, ST_RANGE, "the logits of all %zu tokens are -infinity", n);
    *out = largest;
    return ST_OK;
}

/* Above in the heap, before in the order that the cuts follow. */
static bool heavier(const struct sampler *s, uint32_t a, uint32_t b)
{
    return s->weights[a] != s->weights[b] ? s->weights[a] > s->weights[b] : a < b;
}

static void sift_down(struct sampler *s, size_t at, size_t count)
{
    uint32_t moving = s->heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heavier(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!heavier(s, s->heap[child], moving))
            break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = moving;
}

/* Turns the weights into a heap of those that are not 0; returns how many. */
static size_t build_heap(struct sampler *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (s->weights[i])
            s->heap[count++] = (uint32_t)i;
    for (size_t at = count / 2; at-- > 0;)
        sift_down(s, at, count);
    return count;
}

/* Moves the heaviest into `kept`, in order, until there are `kept_max` or they weigh `enough`;
 * returns their weight, and how many. */
static uint64_t take_heaviest(struct sampler *s, size_t *count, size_t kept_max, double enough)
{
    uint64_t sum = 0;
    size_t left = *count, kept = 0;
    while (left && kept < kept_max && (double)sum < enough) {
        sum += s->weights[s->heap[0]];
        s->kept[kept++] = s->heap[0];
        s->heap[0] = s->heap[--left];
        if (left)
            sift_down(s, 0, left);
    }
    *count = kept;
    return sum;
}

/* The weight that a cut by share must reach. A share of 1 keeps all, whatever rounding says. */
static double share_of(double share, uint64_t total)
{
    return share == 1 ? INFINITY : share * (double)total;
}

/* Cuts `kept` off where the sum reaches the share of `sum`; returns the sum of what stays. */
static uint64_t cut_share(const struct sampler *s, size_t *count, uint64_t sum)
{
    double enough = share_of(s->options.top_p, sum);
    uint64_t part = 0;
    size_t i = 0;
    while (i < *count && (double)part < enough)
        part += s->weights[s->kept[i++]];
    *count = i;
    return part;
}

/* Chooses what may be drawn: `kept` gets *count ids, whose weights sum up to what is returned. */
static uint64_t keep(struct sampler *s, size_t n, uint64_t total, size_t *count)
{
    const struct sampler_options *o = &s->options;
    *count = build_heap(s, n);
    if (!o->top_k || o->top_k >= *count)
        return take_heaviest(s, count, n, share_of(o->top_p, total));
    uint64_t sum = take_heaviest(s, count, o->top_k, INFINITY);
    return cut_share(s, count, sum);
}

/* Sets the weights and returns their sum. */
static uint64_t weigh(struct sampler *s, const float *logits, size_t n, size_t largest)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        double x = ((double)logits[i] - (double)logits[largest]) / s->options.temperature;
        float weight = x < EXPONENT_MIN ? 0 : isa_exp((float)x) * WEIGHT_ONE;
        s->weights[i] = (uint64_t)(weight + 0.5f);
        total += s->weights[i];
    }
    return total;
}

/* A number below `total`, each as likely as the others but for 1 part in 2^64 / total. */
static uint64_t draw_below(struct pcg *chance, uint64_t total)
{
    return (uint64_t)((unsigned __int128)pcg_u64(chance) * total >> 64);
}

enum status sampler_pick(struct sampler *s, uint32_t *token, const float *logits, size_t n,
                         struct diag *dg)
{
    size_t largest = 0, count = n;
    assert(n > 0 && n <= s->tokens_max);
    enum status status = find_largest(&largest, logits, n, dg);
    if (status)
        return status;
    *token = (uint32_t)largest;
    if (s->options.temperature == 0)
        return ST_OK;
    uint64_t sum = weigh(s, logits, n, largest);
    bool all = !s->options.top_k && s->options.top_p == 1;
    if (!all)
        sum = keep(s, n, sum, &count);
    uint64_t at = draw_below(&s->chance, sum);
    for (size_t i = 0; i < count; i++) {
        *token = all ? (uint32_t)i : s->kept[i];
        if (at < s->weights[*token])
            break;
        at -= s->weights[*token];
    }
    return ST_OK;
}
