/* profile.c -- see profile.h. One table of fields is parser, limits and documentation of the format; all
 * keys are required, so an override is an edit of the document and passes the same checks. */
#include "sim/pipeline/profile.h"

#include "base/nearest.h"
#include "base/yaml.h"
#include "sim/policy/cache_policy.h"
#include "sim/policy/prefetch_policy.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX       ".yaml"
#define SUFFIX_BYTES (sizeof SUFFIX - 1)

static const char *const overlap_names[] = {"serial", "expert", "ready", NULL};
static const char *const io_names[] = {"direct", "buffered", "mmap", NULL};
static const char *const dense_names[] = {"resident", "streamed", "page-cache", NULL};
static const char *const site_names[] = {"cpu", "gpu", NULL};
static const char *const home_names[] = {"dram", "vram", NULL};
static const char *const copy_names[] = {"none", "pinned", "pageable", NULL};
static const char *const issuer_names[] = {"threads", "caller", NULL};
static const char *const scope_names[] = {"global", "layer", NULL};
static const char *const evict_names[] = {"before", "after", NULL};

#define ROW(member, of, text)                                                                      \
    .key = #member, .type = of, .offset = offsetof(struct engine_profile, member),                 \
    .required = true, .help = text
#define TEXT(member, text)                                                                         \
    {                                                                                              \
        ROW(member, YAML_TYPE_TEXT, text)                                                          \
    }
#define FLAG(member, text)                                                                         \
    {                                                                                              \
        ROW(member, YAML_TYPE_FLAG, text)                                                          \
    }
#define CHOICE(member, names, text)                                                                \
    {                                                                                              \
        ROW(member, YAML_TYPE_CHOICE, text), .choices = names                                      \
    }
#define VALUE(member, dimension, least, most, text)                                                \
    {                                                                                              \
        ROW(member, YAML_TYPE_VALUE, text), .dim = dimension, .min = least, .max = most            \
    }
#define TIME(member, text)         VALUE(member, DIM_TIME, 0, MAX_TIME, text)
#define COUNT(member, least, text) VALUE(member, DIM_COUNT, least, MAX_COUNT, text)
#define SIZE(member, text)         VALUE(member, DIM_SIZE, 0, MAX_SIZE, text)
#define RATIO(member, least, text) VALUE(member, DIM_RATIO, least, UINT64_C(1000000000), text)

#define MAX_TIME  UINT64_C(1000000000000) /* 1000 s: a token of an engine that streams all */
#define MAX_COUNT UINT64_C(65536)
#define MAX_SIZE  UINT64_C(1099511627776)

static const struct yaml_field profile_fields[] = {
    TEXT(title, "for people"),
    TEXT(source, "where the behaviour was read"),
    CHOICE(overlap, overlap_names, "serial, expert or ready"),
    CHOICE(io, io_names, "direct, buffered or mmap"),
    CHOICE(dense, dense_names, "resident, streamed or page-cache"),
    CHOICE(site, site_names, "cpu or gpu: where experts are computed"),
    CHOICE(cache_home, home_names, "dram or vram: where the expert cache lives"),
    CHOICE(copy, copy_names, "none, pinned or pageable: how weights reach the unit"),
    CHOICE(issuer, issuer_names, "threads or caller: who issues reads and collects them"),
    FLAG(loader_shares_cores, "loader threads run on the kernels' cores"),
    FLAG(overlap_shared_expert, "shared expert and hits run while reads do"),
    FLAG(embed_streamed, "embedding and head are re-read every token"),
    FLAG(expand_experts, "experts are expanded to 16 bits before use"),
    FLAG(await_prefetch, "reads ahead are awaited as one before misses are asked for"),
    TEXT(policy, "cache policy"),
    CHOICE(scope, scope_names, "global or layer"),
    CHOICE(evict, evict_names, "before or after"),
    TEXT(prefetch, "prefetcher, or none"),
    COUNT(prefetch_distance, 1, "layers ahead"),
    COUNT(prefetch_experts, 0, "from one prediction; 0: as many as a token chooses"),
    TIME(predict, "kernel time that one prediction of gate or heads takes"),
    TIME(prefetch_lead, "from the begin of reads ahead to the router's choice; 0: at once"),
    COUNT(lanes, 1, "reads in flight"),
    COUNT(pieces, 1, "reads an expert takes"),
    SIZE(request_max, "largest request; 0: none"),
    COUNT(threads, 0, "compute threads; 0: the device's"),
    COUNT(chunk, 1, "prompt tokens of a prefill pass"),
    COUNT(dense_ahead, 0, "layers of streamed dense weights read in advance"),
    TIME(open, "per expert: opening its file"),
    TIME(submit, "CPU time to submit a read"),
    TIME(complete, "CPU time to complete a read"),
    TIME(wake, "waking the thread that sleeps on a read"),
    TIME(wake_busy, "the same while kernels occupy its core"),
    VALUE(copies, DIM_COUNT, 0, 16, "extra copies of what is read"),
    TIME(fault, "CPU time of a page fault with reclaim"),
    SIZE(readahead, "bytes the kernel reads at once"),
    SIZE(fault_bytes, "what a fault brings once readahead has given up"),
    TIME(layer_overhead, "per layer: graph, synchronisation, launch"),
    TIME(token_overhead, "per token: sampling, cache management"),
    RATIO(kernel_efficiency, 1, "share of memory bandwidth its GEMV reaches"),
    RATIO(copy_rate, 0, "share of the link that copies reach"),
    TIME(copy_sync, "launch and synchronisation of one copy"),
    {.key = NULL}};

bool profile_is_key(const char *text, size_t length)
{
    const struct yaml_field *f = profile_fields;
    while (f->key && (strlen(f->key) != length || memcmp(f->key, text, length) != 0))
        f++;
    return f->key != NULL;
}

/* ---- the catalogue ---- */

static bool ends_with_suffix(const char *text)
{
    size_t n = strlen(text);
    return n > SUFFIX_BYTES && strcmp(text + n - SUFFIX_BYTES, SUFFIX) == 0;
}

/* The last part of a path without .yaml; NULL when there is no memory. */
static const char *stem(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/');
    char *text = arena_text(arena, slash ? slash + 1 : path);
    if (text && ends_with_suffix(text))
        text[strlen(text) - SUFFIX_BYTES] = 0;
    return text;
}

static int is_description(const struct dirent *e)
{
    return ends_with_suffix(e->d_name);
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum status names_of(struct dirent **entries, size_t count, struct arena *arena,
                            const char *const **names, struct diag *dg)
{
    const char **list = arena_alloc(arena, (count + 1) * sizeof *list);
    if (!list)
        return diag_no_memory(dg);
    for (size_t i = 0; i < count; i++)
        if (!(list[i] = stem(entries[i]->d_name, arena)))
            return diag_no_memory(dg);
    *names = list;
    return ST_OK;
}

enum status profile_names(struct arena *arena, const char *catalogue, const char *const **names,
                          size_t *count, struct diag *dg)
{
    struct dirent **entries;
    int n = scandir(catalogue, &entries, is_description, compare_entries);
    if (n < 0)
        return diag_errno(dg, catalogue, "cannot list the engine profiles");
    *count = (size_t)n;
    enum status st = names_of(entries, *count, arena, names, dg);
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return st;
}

static enum status name_missing(const char *name, const char *catalogue, struct arena *arena,
                                struct diag *dg)
{
    const char *const *names;
    size_t count;
    enum status st = profile_names(arena, catalogue, &names, &count, dg);
    if (st != ST_OK)
        return st;
    const char *near = nearest_name(name, names, count);
    return diag_set(
        dg, ST_MISSING, "%s: no engine profile of that name in %s%s%s%s (a path must end in %s)",
        name, catalogue, near ? "; nearest is '" : "", near ? near : "", near ? "'" : "", SUFFIX);
}

/* A slug never leaves the catalogue: no '/', and not "..". */
static bool is_slug(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    return *name && *name != '.' && strspn(name, letters) == strlen(name);
}

static enum status find_path(const char **out, const char *name, const char *catalogue,
                             struct arena *arena, struct diag *dg)
{
    if (ends_with_suffix(name)) {
        *out = arena_text(arena, name);
        return *out ? ST_OK : diag_no_memory(dg);
    }
    if (!is_slug(name))
        return name_missing(name, catalogue, arena, dg);
    size_t room = strlen(catalogue) + 1 + strlen(name) + SUFFIX_BYTES + 1;
    char *path = arena_alloc(arena, room);
    if (!path)
        return diag_no_memory(dg);
    snprintf(path, room, "%s/%s%s", catalogue, name, SUFFIX);
    *out = path;
    return access(path, F_OK) == 0 ? ST_OK : name_missing(name, catalogue, arena, dg);
}

/* ---- loading ---- */

static enum status apply(struct yaml_doc *doc, const char *override, struct diag *dg)
{
    char key[64];
    const char *equals = strchr(override, '=');
    if (!equals || equals == override || (size_t)(equals - override) >= sizeof key)
        return diag_set(dg, ST_USAGE, "--set %s: PATH=VALUE is expected", override);
    memcpy(key, override, (size_t)(equals - override));
    key[equals - override] = 0;
    return yaml_set(doc, key, equals + 1, dg);
}

static yaml_node node_of(const struct yaml_doc *doc, const char *key)
{
    return yaml_find(doc, yaml_root(doc), key);
}

static enum status check(const struct engine_profile *p, const struct yaml_doc *doc,
                         struct diag *dg)
{
    if (!cache_policy_find(p->policy))
        return yaml_error(doc, node_of(doc, "policy"), dg, "policy: no cache policy '%s'",
                          p->policy);
    if (strcmp(p->prefetch, "none") != 0 && !prefetch_policy_find(p->prefetch))
        return yaml_error(doc, node_of(doc, "prefetch"), dg,
                          "prefetch: no prefetcher '%s', and not none", p->prefetch);
    if (p->copy == COPY_NONE && p->cache_home == HOME_VRAM)
        return yaml_error(doc, node_of(doc, "copy"), dg,
                          "copy: a cache in vram is filled by pinned or pageable copies");
    if (p->copy != COPY_NONE && p->copy_rate.amount == 0)
        return yaml_error(doc, node_of(doc, "copy_rate"), dg,
                          "copy_rate: above 0 is expected where there are copies");
    if (p->io == IO_MMAP && p->readahead.amount == 0)
        return yaml_error(doc, node_of(doc, "readahead"), dg,
                          "readahead: a page at least is expected with mmap");
    return ST_OK;
}

static enum status read_document(struct engine_profile *p, struct yaml_doc *doc,
                                 const char *const *overrides, size_t override_count,
                                 struct diag *dg)
{
    for (size_t i = 0; i < override_count; i++) {
        enum status st = apply(doc, overrides[i], dg);
        if (st != ST_OK)
            return st;
    }
    enum status st = yaml_read(doc, yaml_root(doc), profile_fields, p, &p->arena, dg);
    if (st != ST_OK)
        return st;
    p->threads.given = p->threads.amount > 0;
    return check(p, doc, dg);
}

static enum status load(struct engine_profile *p, const char *profile, const char *catalogue,
                        const char *const *overrides, size_t override_count, struct diag *dg)
{
    struct yaml_doc *doc = NULL;
    enum status st = find_path(&p->origin, profile, catalogue, &p->arena, dg);
    if (st == ST_OK)
        st = yaml_open(&doc, p->origin, dg);
    if (st == ST_OK)
        st = read_document(p, doc, overrides, override_count, dg);
    yaml_close(doc);
    if (st != ST_OK)
        return st;
    p->name = stem(p->origin, &p->arena);
    return p->name ? ST_OK : diag_no_memory(dg);
}

enum status profile_load(struct engine_profile **out, const char *profile, const char *catalogue,
                         const char *const *overrides, size_t override_count, struct diag *dg)
{
    struct engine_profile *p = calloc(1, sizeof *p);
    if (!p)
        return diag_no_memory(dg);
    enum status st = load(p, profile, catalogue, overrides, override_count, dg);
    if (st != ST_OK) {
        profile_free(p);
        return st;
    }
    *out = p;
    return ST_OK;
}

void profile_free(struct engine_profile *p)
{
    if (!p)
        return;
    arena_free(&p->arena);
    free(p);
}

void profile_each_value(struct engine_profile *p, profile_value_fn *fn, void *self)
{
    for (const struct yaml_field *f = profile_fields; f->key; f++)
        if (f->type == YAML_TYPE_VALUE)
            fn(self, f->key, (struct value *)((char *)p + f->offset));
}

void profile_each_choice(const struct engine_profile *p, profile_choice_fn *fn, void *self)
{
    for (const struct yaml_field *f = profile_fields; f->key; f++) {
        const void *at = (const char *)p + f->offset;
        if (f->type == YAML_TYPE_CHOICE)
            fn(self, f->key, f->choices[*(const int *)at]);
        else if (f->type == YAML_TYPE_FLAG)
            fn(self, f->key, *(const bool *)at ? "true" : "false");
    }
}
