/* model_print.c -- see model_print.h. */
#include "cli/model_print.h"

#include "base/quantity.h"
#include "models/model_schema.h"
#include "models/shape.h"
#include "models/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Different shapes of attention, or formats of a group, that the screen tells apart. */
#define KINDS_MAX 8

static const char *size(char *buffer, uint64_t bytes)
{
    return quantity_round(buffer, bytes, DIM_SIZE);
}

/* 30.5 B, 305 M: three digits. */
static const char *count(char *buffer, uint64_t n)
{
    static const struct {
        uint64_t unit;
        const char *name;
    } units[] = {{1000000000000, "T"}, {1000000000, "B"}, {1000000, "M"}, {1000, "k"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        uint64_t unit = units[i].unit;
        if (n < unit)
            continue;
        unsigned whole = (unsigned)(n / unit), decimals = whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
        snprintf(buffer, QUANTITY_TEXT_MAX, "%.*f %s", (int)decimals, (double)n / (double)unit,
                 units[i].name);
        return buffer;
    }
    snprintf(buffer, QUANTITY_TEXT_MAX, "%" PRIu64, n);
    return buffer;
}

/* Distinct texts with the number of layers each stands for, in order of first appearance. */
struct kinds {
    char text[KINDS_MAX][160];
    uint64_t layers[KINDS_MAX];
    size_t used;
    uint64_t more; /* layers of kinds beyond the last */
};

static void kinds_add(struct kinds *k, const char *text)
{
    for (size_t i = 0; i < k->used; i++)
        if (strcmp(k->text[i], text) == 0) {
            k->layers[i]++;
            return;
        }
    if (k->used == KINDS_MAX) {
        k->more++;
        return;
    }
    snprintf(k->text[k->used], sizeof k->text[0], "%s", text);
    k->layers[k->used++] = 1;
}

struct format_scan {
    const struct model *m;
    enum tensor_group group;
    size_t layer;
    struct kinds *kinds;
};

static void scan_format(void *self, const struct tensor *t)
{
    const struct format_scan *s = self;
    if (t->group != s->group || t->vector)
        return;
    const struct quant_format *f =
        quant_mix_format(&s->m->quant, (int)t->group, t->part, s->layer, s->m->layer_count);
    kinds_add(s->kinds, quant_fit(f, t->cols)->name);
}

/* "q4_k" or, where a mix or a row length makes it so, "q4_k q6_k". */
static void group_format(char *out, size_t room, const struct model *m, enum tensor_group g)
{
    struct kinds kinds = {.used = 0};
    if (m->bytes_exact) {
        snprintf(out, room, "as stored");
        return;
    }
    if (g == GROUP_EMBEDDING || g == GROUP_HEAD || g == GROUP_OTHER) {
        enum tensor_group as = g == GROUP_EMBEDDING && m->tied_embeddings ? GROUP_HEAD : g;
        const struct quant_format *f =
            quant_mix_format(&m->quant, (int)as, QUANT_ANY, 0, m->layer_count);
        snprintf(out, room, "%s", quant_fit(f, m->hidden)->name);
        return;
    }
    for (size_t i = 0; i < m->layer_count; i++) {
        struct format_scan s = {m, g, i, &kinds};
        shape_layer(&m->layers[i], m->hidden, scan_format, &s);
    }
    out[0] = 0;
    for (size_t i = 0, used = 0; i < kinds.used && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%s", i ? " " : "", kinds.text[i]);
}

static void print_row(const char *name, const char *format, uint64_t params, uint64_t bytes)
{
    char p[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    printf("  %-13s  %9s  %9s", name, count(p, params), size(b, bytes));
    if (params)
        printf("  %6.3f bit", 8.0 * (double)bytes / (double)params);
    printf("%s%s\n", format[0] ? "  " : "", format);
}

static void print_groups(const struct model *m)
{
    uint64_t params[GROUP_MAX] = {0}, bytes[GROUP_MAX] = {0}, stored = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        for (int g = 0; g < GROUP_MAX; g++) {
            params[g] += m->layers[i].params[g];
            bytes[g] += m->layers[i].weight_bytes[g];
        }
    params[GROUP_EMBEDDING] += m->params_embedding;
    bytes[GROUP_EMBEDDING] += m->bytes_embedding;
    params[GROUP_HEAD] += m->params_head;
    bytes[GROUP_HEAD] += m->bytes_head;
    params[GROUP_OTHER] += m->params_final;
    bytes[GROUP_OTHER] += m->bytes_final;
    printf("  group          parameters      bytes     average  format\n");
    for (int g = 0; g < GROUP_MAX; g++) {
        char format[96];
        stored += params[g];
        if (params[g] == 0)
            continue;
        group_format(format, sizeof format, m, (enum tensor_group)g);
        print_row(tensor_group_name((enum tensor_group)g), format, params[g], bytes[g]);
    }
    print_row("all", "", stored, model_weight_bytes(m));
    if (stored != model_params_total(m))
        printf("  published totals leave the indexer out\n");
}

static void describe_experts(char *out, size_t room, const struct ffn *f)
{
    if (f->experts == 0) {
        snprintf(out, room, "dense, width %" PRIu64, f->dense_width);
        return;
    }
    int used = snprintf(out, room, "%" PRIu64 " experts, top %" PRIu64 ", width %" PRIu64,
                        f->experts, f->top_k, f->expert_width);
    if (f->shared_width && used > 0 && (size_t)used < room)
        snprintf(out + used, room - (size_t)used, ", shared width %" PRIu64, f->shared_width);
}

static void describe_attention(char *out, size_t room, const struct attention *a)
{
    const char *family = model_family_name(a->family);
    char window[48] = "", ratio[48] = "";
    if (a->window)
        snprintf(window, sizeof window, ", window %" PRIu64, a->window);
    switch (a->family) {
    case ATTENTION_GQA:
        snprintf(out, room,
                 "%s: %" PRIu64 " heads of %" PRIu64 ", %" PRIu64 " for keys and values%s", family,
                 a->heads, a->head_dim, a->kv_heads, window);
        break;
    case ATTENTION_MLA:
        snprintf(out, room, "%s: %" PRIu64 " heads, latent %" PRIu64 " + %" PRIu64 "%s", family,
                 a->heads, a->kv_lora_rank, a->rope_head_dim,
                 !a->index_heads     ? ""
                 : a->index_borrowed ? ", borrowed index"
                                     : ", index");
        break;
    case ATTENTION_COMPRESSED:
        if (a->compress_ratio)
            snprintf(ratio, sizeof ratio, ", %" PRIu64 ":1%s", a->compress_ratio,
                     a->borrows_cache ? " borrowed" : "");
        snprintf(out, room, "%s: %" PRIu64 " heads of %" PRIu64 "%s%s", family, a->heads,
                 a->head_dim, ratio, window);
        break;
    case ATTENTION_LINEAR:
        snprintf(out, room, "%s: %" PRIu64 " heads of %" PRIu64 " x %" PRIu64, family,
                 a->linear_value_heads, a->linear_key_dim, a->linear_value_dim);
        break;
    case ATTENTION_CONV:
        snprintf(out, room, "%s: %" PRIu64 " channels of %" PRIu64, family, a->conv_channels,
                 a->conv_kernel);
        break;
    case ATTENTION_NONE:
        snprintf(out, room, "%s", family);
        break;
    }
}

/* What a token adds to one layer's cache, as a product: "2 x 4 x 128 x 2 B". */
static void describe_growth(char *out, size_t room, const struct attention *a)
{
    char index[48] = "";
    uint64_t values = a->v_head_dim ? a->v_head_dim : a->head_dim;
    out[0] = 0;
    if (a->borrows_cache || (a->window && a->family != ATTENTION_COMPRESSED))
        return;
    if (a->index_heads && !a->index_borrowed)
        snprintf(index, sizeof index, " + %" PRIu64, a->index_dim);
    if (a->family == ATTENTION_GQA && a->keys_are_values)
        snprintf(out, room, "%" PRIu64 " x %" PRIu64 " x 2 B", a->kv_heads, a->head_dim);
    else if (a->family == ATTENTION_GQA && values == a->head_dim)
        snprintf(out, room, "2 x %" PRIu64 " x %" PRIu64 " x 2 B", a->kv_heads, a->head_dim);
    else if (a->family == ATTENTION_GQA)
        snprintf(out, room, "%" PRIu64 " x (%" PRIu64 " + %" PRIu64 ") x 2 B", a->kv_heads,
                 a->head_dim, values);
    else if (a->family == ATTENTION_MLA)
        snprintf(out, room, "(%" PRIu64 " + %" PRIu64 "%s) x 2 B", a->kv_lora_rank,
                 a->rope_head_dim, index);
    else if (a->family == ATTENTION_COMPRESSED && a->compress_ratio)
        snprintf(out, room, "(%" PRIu64 "%s) x 2 B / %" PRIu64, a->head_dim, index,
                 a->compress_ratio);
}

static void print_layers(const struct model *m)
{
    struct kinds attention = {.used = 0}, ffn = {.used = 0};
    char text[160];
    for (size_t i = 0; i < m->layer_count; i++) {
        describe_attention(text, sizeof text, &m->layers[i].attention);
        kinds_add(&attention, text);
        describe_experts(text, sizeof text, &m->layers[i].ffn);
        kinds_add(&ffn, text);
    }
    for (size_t i = 0; i < attention.used; i++)
        printf("  %-13s  %4" PRIu64 " x %s\n", i ? "" : "attention", attention.layers[i],
               attention.text[i]);
    for (size_t i = 0; i < ffn.used; i++)
        printf("  %-13s  %4" PRIu64 " x %s\n", i ? "" : "feed-forward", ffn.layers[i], ffn.text[i]);
    if (attention.more || ffn.more)
        printf("  and %" PRIu64 " further layers\n", attention.more + ffn.more);
}

static void print_state(const struct model *m, uint64_t context)
{
    struct kinds growth = {.used = 0};
    char text[160], fixed[QUANTITY_TEXT_MAX], total[QUANTITY_TEXT_MAX];
    for (size_t i = 0; i < m->layer_count; i++) {
        describe_growth(text, sizeof text, &m->layers[i].attention);
        if (text[0])
            kinds_add(&growth, text);
    }
    uint64_t thousandths = state_millibytes_per_token(m, STATE_BITS_F16);
    printf("  state          %" PRIu64, thousandths / 1000);
    if (thousandths % 1000)
        printf(".%03" PRIu64, thousandths % 1000);
    printf(" B a token");
    for (size_t i = 0; i < growth.used; i++)
        printf(" %s %" PRIu64 " x %s", i ? "+" : "=", growth.layers[i], growth.text[i]);
    printf("\n                 %s fixed; %s at %" PRIu64 " tokens, 16-bit\n",
           size(fixed, state_fixed_bytes(m, STATE_BITS_F16)),
           size(total, state_bytes(m, context, STATE_BITS_F16)), context);
}

static void print_totals(const struct model *m)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX], c[QUANTITY_TEXT_MAX];
    printf("  parameters     %s in all, %s active for a token\n", count(a, model_params_total(m)),
           count(b, model_params_active(m)));
    uint64_t experts = model_experts_bytes(m);
    if (experts == 0)
        return;
    printf("  experts        %s each at most, %s in all; %s everything else\n",
           size(a, model_expert_bytes_max(m)), size(b, experts),
           size(c, model_weight_bytes(m) - experts));
    printf("  token cycle    T = %s: what one token reads of experts; LRU below it hits nothing\n",
           size(a, model_token_cycle_bytes(m)));
}

void model_print(const struct model *m, uint64_t context)
{
    char bytes[QUANTITY_TEXT_MAX];
    printf("%s (%s), %s, %s\n", m->title, m->name, m->quant.name ? m->quant.name : "as stored",
           size(bytes, model_weight_bytes(m)));
    printf(
        "  %zu layers, hidden %" PRIu64 ", vocabulary %" PRIu64 "%s, context up to %" PRIu64 "\n",
        m->layer_count, m->hidden, m->vocab, m->tied_embeddings ? " (tied)" : "", m->max_context);
    if (m->source)
        printf("  source: %s", m->source);
    printf("%s%s%s\n", m->grade ? " (grade " : "", m->grade ? m->grade : "", m->grade ? ")" : "");
    if (m->note)
        printf("  note: %s\n", m->note);
    printf("\n");
    print_layers(m);
    printf("\n");
    print_groups(m);
    printf("\n");
    print_totals(m);
    print_state(m, context);
}
