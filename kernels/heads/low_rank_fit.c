/* low_rank_fit.c -- see low_rank_fit.h. */
#include "kernels/heads/low_rank_fit.h"

#include "kernels/heads/gram.h"
#include "kernels/heads/leading_vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fit {
    const float *e;
    const float *weight;
    size_t rows, cols, rank, side; /* side: the smaller of rows and cols */
    const struct isa *isa;
    float *scaled;   /* the weighted matrix, or its transpose: the smaller side are its rows */
    float *vector;   /* rank x side: leading_vectors as floats */
    double *product; /* side x side */
    double *leading, *values;
};

static float root_weight(const struct fit *f, size_t col)
{
    return f->weight ? sqrtf(f->weight[col]) : 1.0f;
}

static void scale_columns(const struct fit *f)
{
    bool upright = f->rows <= f->cols;
    for (size_t c = 0; c < f->cols; c++) {
        float root = root_weight(f, c);
        for (size_t r = 0; r < f->rows; r++)
            f->scaled[upright ? r * f->cols + c : c * f->rows + r] = root * f->e[r * f->cols + c];
    }
}

/* Wide: E' = U (U' E'), of which U' E is taken with the weights not in it. */
static void project_rows(const struct fit *f, float *down, float *up)
{
    for (size_t i = 0; i < f->rank; i++) {
        float *to = down + i * f->cols;
        float size = sqrtf(sqrtf((float)f->values[i]));
        memset(to, 0, f->cols * sizeof *to);
        if (size <= 0)
            size = 1;
        for (size_t r = 0; r < f->rows; r++) {
            float x = f->vector[i * f->side + r];
            f->isa->add_scaled(to, f->e + r * f->cols, x / size, f->cols);
            up[r * f->rank + i] = x * size;
        }
    }
}

/* Tall: E' = (E' V) V', of which V' loses the weights again. */
static void project_columns(const struct fit *f, float *down, float *up)
{
    for (size_t i = 0; i < f->rank; i++) {
        const float *v = f->vector + i * f->side;
        float size = sqrtf(sqrtf((float)f->values[i]));
        float *scaled = f->scaled; /* no longer needed as a matrix: E' V comes from E */
        if (size <= 0)
            size = 1;
        for (size_t c = 0; c < f->cols; c++) {
            scaled[c] = v[c] * root_weight(f, c) / size;
            down[i * f->cols + c] = v[c] / root_weight(f, c) * size;
        }
        for (size_t r = 0; r < f->rows; r++)
            up[r * f->rank + i] = f->isa->dot(f->e + r * f->cols, scaled, f->cols);
    }
}

static bool fit_new(struct fit *f)
{
    f->scaled = malloc(f->rows * f->cols * sizeof *f->scaled);
    f->vector = malloc(f->rank * f->side * sizeof *f->vector);
    f->product = malloc(f->side * f->side * sizeof *f->product);
    f->leading = malloc(f->rank * f->side * sizeof *f->leading);
    f->values = malloc(f->rank * sizeof *f->values);
    return f->scaled && f->vector && f->product && f->leading && f->values;
}

enum status low_rank_fit(float *down, float *up, const float *e, size_t rows, size_t cols,
                         const float *weight, size_t rank, const struct isa *isa, struct diag *dg)
{
    struct fit f = {.e = e,
                    .weight = weight,
                    .rows = rows,
                    .cols = cols,
                    .rank = rank,
                    .side = rows < cols ? rows : cols,
                    .isa = isa};
    enum status st = fit_new(&f) ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK) {
        scale_columns(&f);
        gram(f.product, isa, f.scaled, f.side, rows < cols ? cols : rows);
        st = leading_vectors(f.leading, f.values, f.product, f.side, rank, dg);
    }
    if (st == ST_OK) {
        for (size_t i = 0; i < rank * f.side; i++)
            f.vector[i] = (float)f.leading[i];
        (rows <= cols ? project_rows : project_columns)(&f, down, up);
    }
    free(f.scaled);
    free(f.vector);
    free(f.product);
    free(f.leading);
    free(f.values);
    return st;
}

double low_rank_left(const float *e, const float *down, const float *up, size_t rows, size_t cols,
                     const float *weight, size_t rank, const struct isa *isa, float *scratch)
{
    double sum = 0;
    for (size_t r = 0; r < rows; r++) {
        memcpy(scratch, e + r * cols, cols * sizeof *scratch);
        for (size_t i = 0; up && i < rank; i++)
            isa->add_scaled(scratch, down + i * cols, -up[r * rank + i], cols);
        for (size_t c = 0; c < cols; c++)
            sum += (double)(weight ? weight[c] : 1.0f) * (double)scratch[c] * (double)scratch[c];
    }
    return sum;
}
