/* leading_vectors.c -- see leading_vectors.h.
 *
 * Step j multiplies the matrix by the basis vector q_j and makes what comes out orthogonal to all
 * before it, twice, because once is not enough in floating point; what is left is q_{j+1}. In this
 * basis the matrix is tridiagonal, and its eigenvectors (GSL's) turn the basis into the wanted
 * vectors. Where nothing is left, the basis spans an invariant space, and a fresh vector goes on
 * beside it. */
#include "kernels/heads/leading_vectors.h"

#include "base/pcg.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_eigen.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Steps for `count` vectors: enough that the last of them has settled where eigenvalues lie
 * close. */
#define STEPS_EACH 2
#define STEPS_MORE 24

struct lanczos {
    const double *matrix;
    size_t n, steps;
    double *basis;                      /* steps x n */
    double *next;                       /* n */
    gsl_matrix *tridiagonal, *rotation; /* steps x steps */
    gsl_vector *values;
    gsl_eigen_symmv_workspace *work;
    struct pcg chance;
};

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

static double take_off_basis(const struct lanczos *l, double *x, size_t vectors)
{
    for (int round = 0; round < 2; round++)
        for (size_t j = 0; j < vectors; j++) {
            const double *q = l->basis + j * l->n;
            double share = dot(q, x, l->n);
            for (size_t i = 0; i < l->n; i++)
                x[i] -= share * q[i];
        }
    return sqrt(dot(x, x, l->n));
}

static void set_vector(struct lanczos *l, size_t j, const double *x, double length)
{
    for (size_t i = 0; i < l->n; i++)
        l->basis[j * l->n + i] = x[i] / length;
}

/* A vector outside what the first j span: there is one as long as j < n. */
static void fresh_vector(struct lanczos *l, size_t j)
{
    double length = 0;
    while (length < 1e-3) {
        for (size_t i = 0; i < l->n; i++)
            l->next[i] = (double)pcg_below(&l->chance, 2000001) / 1e6 - 1.0;
        length = take_off_basis(l, l->next, j);
    }
    set_vector(l, j, l->next, length);
}

static void iterate(struct lanczos *l)
{
    gsl_matrix_const_view a = gsl_matrix_const_view_array(l->matrix, l->n, l->n);
    gsl_vector_view next = gsl_vector_view_array(l->next, l->n);
    double scale = 0;
    for (size_t i = 0; i < l->n; i++)
        scale += l->matrix[i * l->n + i];
    fresh_vector(l, 0);
    for (size_t j = 0; j < l->steps; j++) {
        gsl_vector_const_view q = gsl_vector_const_view_array(l->basis + j * l->n, l->n);
        gsl_blas_dsymv(CblasUpper, 1.0, &a.matrix, &q.vector, 0.0, &next.vector);
        gsl_matrix_set(l->tridiagonal, j, j, dot(l->basis + j * l->n, l->next, l->n));
        double left = take_off_basis(l, l->next, j + 1);
        if (j + 1 == l->steps)
            break;
        if (left > 1e-14 * scale) {
            set_vector(l, j + 1, l->next, left);
        } else {
            fresh_vector(l, j + 1);
            left = 0;
        }
        gsl_matrix_set(l->tridiagonal, j, j + 1, left);
        gsl_matrix_set(l->tridiagonal, j + 1, j, left);
    }
}

static void turn_basis(const struct lanczos *l, double *vectors, double *values, size_t count)
{
    gsl_matrix_view basis = gsl_matrix_view_array(l->basis, l->steps, l->n);
    gsl_matrix_const_view leading = gsl_matrix_const_submatrix(l->rotation, 0, 0, l->steps, count);
    gsl_matrix_view out = gsl_matrix_view_array(vectors, count, l->n);
    gsl_blas_dgemm(CblasTrans, CblasNoTrans, 1.0, &leading.matrix, &basis.matrix, 0.0, &out.matrix);
    for (size_t i = 0; i < count; i++) {
        double value = gsl_vector_get(l->values, i);
        values[i] = value > 0 ? value : 0;
    }
}

static bool lanczos_new(struct lanczos *l)
{
    l->basis = malloc(l->steps * l->n * sizeof *l->basis);
    l->next = malloc(l->n * sizeof *l->next);
    l->tridiagonal = gsl_matrix_calloc(l->steps, l->steps);
    l->rotation = gsl_matrix_alloc(l->steps, l->steps);
    l->values = gsl_vector_alloc(l->steps);
    l->work = gsl_eigen_symmv_alloc(l->steps);
    return l->basis && l->next && l->tridiagonal && l->rotation && l->values && l->work;
}

static void lanczos_free(struct lanczos *l)
{
    free(l->basis);
    free(l->next);
    gsl_matrix_free(l->tridiagonal);
    gsl_matrix_free(l->rotation);
    gsl_vector_free(l->values);
    if (l->work)
        gsl_eigen_symmv_free(l->work);
}

enum status leading_vectors(double *vectors, double *values, const double *matrix, size_t n,
                            size_t count, struct diag *dg)
{
    size_t steps = STEPS_EACH * count + STEPS_MORE;
    struct lanczos l = {.matrix = matrix, .n = n, .steps = steps < n ? steps : n};
    enum status st = ST_NO_MEMORY;
    pcg_seed(&l.chance, 1, 1);
    if (lanczos_new(&l)) {
        iterate(&l);
        gsl_eigen_symmv(l.tridiagonal, l.values, l.rotation, l.work);
        gsl_eigen_symmv_sort(l.values, l.rotation, GSL_EIGEN_SORT_VAL_DESC);
        turn_basis(&l, vectors, values, count);
        st = ST_OK;
    }
    lanczos_free(&l);
    return st == ST_OK ? st : diag_no_memory(dg);
}
