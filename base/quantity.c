/* quantity.c -- one table of units per dimension drives reading, printing and the error texts.
 *
 * A number is kept as digits and a power of ten; its factors of two and five are cancelled against
 * the unit's multiplier before anything is multiplied, so the arithmetic is exact in 128 bits. */
#include "base/quantity.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef unsigned __int128 wide;

enum unit_use {
    UNIT_ALIAS,  /* read, but not offered in an error text */
    UNIT_READ,   /* read and offered, never printed */
    UNIT_BINARY, /* printed exactly, where the binary form is the shorter one */
    UNIT_DECIMAL /* printed exactly and rounded */
};

/* One of the unit is multiplier/divisor base units. Within a table each family ascends. */
struct unit {
    const char *name;
    uint64_t multiplier;
    enum unit_use use;
    uint32_t divisor; /* 0 stands for 1 */
};

#define E3           UINT64_C(1000)
#define E6           UINT64_C(1000000)
#define E7           UINT64_C(10000000)
#define E9           UINT64_C(1000000000)
#define E12          UINT64_C(1000000000000)
#define E15          UINT64_C(1000000000000000)
#define POWER_2(n)   (UINT64_C(1) << (n))
#define MULTIPLE_MAX 3 /* decimals of an exact print before a smaller unit is taken */

static const struct unit count_units[] = {{"", 1, UNIT_DECIMAL, 0}, {0}};

static const struct unit size_units[] = {{"B", 1, UNIT_DECIMAL, 0},
                                         {"kB", E3, UNIT_DECIMAL, 0},
                                         {"MB", E6, UNIT_DECIMAL, 0},
                                         {"GB", E9, UNIT_DECIMAL, 0},
                                         {"TB", E12, UNIT_DECIMAL, 0},
                                         {"KiB", POWER_2(10), UNIT_BINARY, 0},
                                         {"MiB", POWER_2(20), UNIT_BINARY, 0},
                                         {"GiB", POWER_2(30), UNIT_BINARY, 0},
                                         {"TiB", POWER_2(40), UNIT_BINARY, 0},
                                         {"KB", E3, UNIT_ALIAS, 0},
                                         {"kiB", POWER_2(10), UNIT_ALIAS, 0},
                                         {0}};

static const struct unit rate_units[] = {{"B/s", 1, UNIT_DECIMAL, 0},
                                         {"kB/s", E3, UNIT_DECIMAL, 0},
                                         {"MB/s", E6, UNIT_DECIMAL, 0},
                                         {"GB/s", E9, UNIT_DECIMAL, 0},
                                         {"TB/s", E12, UNIT_DECIMAL, 0},
                                         {"KiB/s", POWER_2(10), UNIT_BINARY, 0},
                                         {"MiB/s", POWER_2(20), UNIT_BINARY, 0},
                                         {"GiB/s", POWER_2(30), UNIT_BINARY, 0},
                                         {"TiB/s", POWER_2(40), UNIT_BINARY, 0},
                                         {"KB/s", E3, UNIT_ALIAS, 0},
                                         {"kiB/s", POWER_2(10), UNIT_ALIAS, 0},
                                         {0}};

static const struct unit time_units[] = {{"ns", 1, UNIT_DECIMAL, 0},
                                         {"us", E3, UNIT_DECIMAL, 0},
                                         {"ms", E6, UNIT_DECIMAL, 0},
                                         {"s", E9, UNIT_DECIMAL, 0},
                                         {"min", 60 * E9, UNIT_READ, 0},
                                         {"h", 3600 * E9, UNIT_READ, 0},
                                         {0}};

static const struct unit frequency_units[] = {
    {"IOPS", 1, UNIT_DECIMAL, 0},   {"kIOPS", E3, UNIT_DECIMAL, 0},
    {"MIOPS", E6, UNIT_DECIMAL, 0}, {"/s", 1, UNIT_READ, 0},
    {"Hz", 1, UNIT_READ, 0},        {"kHz", E3, UNIT_READ, 0},
    {"MHz", E6, UNIT_READ, 0},      {"GHz", E9, UNIT_READ, 0},
    {"KIOPS", E3, UNIT_ALIAS, 0},   {0}};

static const struct unit compute_units[] = {{"OP/s", 1, UNIT_DECIMAL, 0},
                                            {"MOP/s", E6, UNIT_DECIMAL, 0},
                                            {"GOP/s", E9, UNIT_DECIMAL, 0},
                                            {"TOP/s", E12, UNIT_DECIMAL, 0},
                                            {"POP/s", E15, UNIT_DECIMAL, 0},
                                            {"FLOP/s", 1, UNIT_READ, 0},
                                            {"MFLOP/s", E6, UNIT_READ, 0},
                                            {"GFLOP/s", E9, UNIT_READ, 0},
                                            {"TFLOP/s", E12, UNIT_READ, 0},
                                            {"PFLOP/s", E15, UNIT_READ, 0},
                                            {"GFLOPS", E9, UNIT_ALIAS, 0},
                                            {"TFLOPS", E12, UNIT_ALIAS, 0},
                                            {"PFLOPS", E15, UNIT_ALIAS, 0},
                                            {"GOPS", E9, UNIT_ALIAS, 0},
                                            {"TOPS", E12, UNIT_ALIAS, 0},
                                            {"POPS", E15, UNIT_ALIAS, 0},
                                            {0}};

static const struct unit power_units[] = {{"uW", 1, UNIT_DECIMAL, 0},
                                          {"mW", E3, UNIT_DECIMAL, 0},
                                          {"W", E6, UNIT_DECIMAL, 0},
                                          {"kW", E9, UNIT_DECIMAL, 0},
                                          {0}};

static const struct unit energy_units[] = {{"pJ", 1, UNIT_DECIMAL, 0},
                                           {"nJ", E3, UNIT_DECIMAL, 0},
                                           {"uJ", E6, UNIT_DECIMAL, 0},
                                           {"mJ", E9, UNIT_DECIMAL, 0},
                                           {"J", E12, UNIT_DECIMAL, 0},
                                           {"Wh", 3600 * E12, UNIT_READ, 0},
                                           {0}};

static const struct unit temperature_units[] = {{"mC", 1, UNIT_DECIMAL, 0},
                                                {"C", E3, UNIT_DECIMAL, 0},
                                                {"\xc2\xb0"
                                                 "C",
                                                 E3, UNIT_ALIAS, 0},
                                                {0}};

static const struct unit ratio_units[] = {{"", E9, UNIT_ALIAS, 0}, {"%", E7, UNIT_DECIMAL, 0}, {0}};

static const struct unit token_rate_units[] = {
    {"tok/s", E6, UNIT_DECIMAL, 0}, {"tok/min", E6, UNIT_READ, 60}, {0}};

static const struct {
    const char *name, *base;
    const struct unit *units;
} dimensions[] = {
    [DIM_COUNT] = {"count", "the whole numbers", count_units},
    [DIM_SIZE] = {"size", "bytes", size_units},
    [DIM_RATE] = {"rate", "bytes/s", rate_units},
    [DIM_TIME] = {"time", "nanoseconds", time_units},
    [DIM_FREQUENCY] = {"frequency", "events/s", frequency_units},
    [DIM_COMPUTE] = {"compute", "operations/s", compute_units},
    [DIM_POWER] = {"power", "microwatts", power_units},
    [DIM_ENERGY] = {"energy", "picojoules", energy_units},
    [DIM_TEMPERATURE] = {"temperature", "millidegrees Celsius", temperature_units},
    [DIM_RATIO] = {"ratio", "parts in 10^9", ratio_units},
    [DIM_TOKEN_RATE] = {"token rate", "microtokens/s", token_rate_units},
};

const char *dimension_name(enum dimension dim)
{
    assert((size_t)dim < sizeof dimensions / sizeof *dimensions);
    return dimensions[dim].name;
}

/* ---- reading ---- */

/* digits / 10^decimals, with no zero at the end of the decimals. */
struct number {
    wide digits;
    unsigned decimals;
    bool too_long; /* the digits do not fit in 128 bits */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads `12` or `12.5`; returns where it ends, or NULL if there is no number. */
static const char *number_read(struct number *out, const char *text)
{
    unsigned zeros = 0; /* seen behind the point, not yet known to be followed by a digit */
    bool behind = false;
    const char *c = text;
    *out = (struct number){0};
    if (!is_digit(*c))
        return NULL;
    for (; is_digit(*c) || (*c == '.' && !behind && is_digit(c[1])); c++) {
        if (*c == '.') {
            behind = true;
            continue;
        }
        if (behind && *c == '0') {
            zeros++;
            continue;
        }
        for (unsigned i = 0; i <= zeros && !out->too_long; i++) {
            out->too_long = __builtin_mul_overflow(out->digits, (wide)10, &out->digits);
            out->decimals += behind;
        }
        zeros = 0;
        out->too_long |= __builtin_add_overflow(out->digits, (wide)(*c - '0'), &out->digits);
    }
    return c;
}

/* How number_convert() ended. */
enum conversion { CONVERTED, NOT_WHOLE, TOO_LARGE };

static void cancel(wide *a, wide *b, unsigned *times, unsigned factor)
{
    for (; *times && *a % factor == 0; --*times)
        *a /= factor;
    for (; *times && *b % factor == 0; --*times)
        *b /= factor;
}

static enum conversion number_convert(uint64_t *out, const struct number *n, const struct unit *u)
{
    wide digits = n->digits, multiplier = u->multiplier, product;
    wide divisor = u->divisor ? u->divisor : 1;
    unsigned twos = n->decimals, fives = n->decimals;
    *out = 0;
    if (digits == 0)
        return CONVERTED;
    cancel(&digits, &multiplier, &twos, 2);
    cancel(&digits, &multiplier, &fives, 5);
    if (twos || fives)
        return NOT_WHOLE;
    if (__builtin_mul_overflow(digits, multiplier, &product))
        return TOO_LARGE;
    if (product / divisor > UINT64_MAX)
        return TOO_LARGE;
    if (product % divisor)
        return NOT_WHOLE;
    *out = (uint64_t)(product / divisor);
    return CONVERTED;
}

/* Copies a unit, with either sign for micro written as u. False if it is too long to be one. */
static bool unit_normalise(char *out, size_t room, const char *text)
{
    bool micro = !strncmp(text, "\xc2\xb5", 2) || !strncmp(text, "\xce\xbc", 2);
    int length = snprintf(out, room, "%s%s", micro ? "u" : "", micro ? text + 2 : text);
    return length >= 0 && (size_t)length < room;
}

static const struct unit *unit_find(enum dimension dim, const char *text, size_t length)
{
    for (const struct unit *u = dimensions[dim].units; u->name; u++)
        if (strlen(u->name) == length && !memcmp(u->name, text, length))
            return u;
    return NULL;
}

/* A spelling of bits: b, Gb, Mbit, Gbit/s, Gbps. */
static bool unit_is_bits(const char *text)
{
    static const char *const bits[] = {"b", "bit", "bits", "b/s", "bit/s", "bits/s", "bps"};
    if (*text && strchr("kKMGTP", *text))
        text += text[1] == 'i' && text[2] == 'b' ? 2 : 1;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (!strcmp(text, bits[i]))
            return true;
    return false;
}

static void units_list(char *out, size_t room, enum dimension dim)
{
    size_t used = 0;
    *out = 0;
    for (const struct unit *u = dimensions[dim].units; u->name; u++)
        if (u->use != UNIT_ALIAS && *u->name && used < room)
            used += (size_t)snprintf(out + used, room - used, used ? " %s" : "%s", u->name);
}

/* Why `unit` (of the whole `text`) is none of the dimension's. */
static enum status refuse_unit(struct diag *dg, enum dimension dim, const char *text,
                               const char *unit)
{
    char list[160];
    units_list(list, sizeof list, dim);
    if (!*unit)
        return diag_set(dg, ST_PARSE, "'%.80s': a unit is required (%s)", text, list);
    if (*unit == '.' || *unit == ',')
        return diag_set(dg, ST_PARSE,
                        "'%.80s': a number has digits on both sides of one decimal point", text);
    size_t length = strcspn(unit, " ");
    if (unit[length] && unit_find(dim, unit, length))
        return diag_set(dg, ST_PARSE, "'%.80s': unexpected '%.40s' after the unit", text,
                        unit + length + strspn(unit + length, " "));
    if (dim == DIM_COUNT)
        return diag_set(dg, ST_PARSE, "'%.80s': unexpected '%.40s' after a plain whole number",
                        text, unit);
    if ((dim == DIM_SIZE || dim == DIM_RATE) && unit_is_bits(unit))
        return diag_set(dg, ST_PARSE,
                        "'%.80s': '%.40s' counts bits, and 8 bits are 1 byte; write bytes (%s)",
                        text, unit, list);
    return diag_set(dg, ST_PARSE, "'%.80s': unknown unit '%.40s' (%s)", text, unit, list);
}

enum status quantity_parse(uint64_t *out, enum dimension dim, const char *text,
                           enum quantity_rule rule, struct diag *dg)
{
    struct number n;
    char unit[48];
    assert((size_t)dim < sizeof dimensions / sizeof *dimensions);
    *out = 0;
    if (*text == '-' || *text == '+')
        return diag_set(dg, ST_RANGE, "'%.80s': a number without a sign is expected", text);
    const char *end = number_read(&n, text);
    if (!end)
        return diag_set(dg, ST_PARSE, "'%.80s': a number is expected", text);
    const char *rest = end + strspn(end, " ");
    if (end != rest && !*rest)
        return diag_set(dg, ST_PARSE, "'%.80s': unexpected blank at the end", text);
    if (!unit_normalise(unit, sizeof unit, rest))
        return diag_set(dg, ST_PARSE, "'%.80s': unexpected '%.40s' after the number", text, rest);
    const struct unit *u = unit_find(dim, unit, strlen(unit));
    if (!u && !*unit && dim == DIM_SIZE && rule == QUANTITY_BARE_ALLOWED)
        u = unit_find(dim, "B", 1);
    if (!u)
        return refuse_unit(dg, dim, text, unit);
    bool plain = dim == DIM_COUNT;
    if (n.too_long && n.decimals)
        return diag_set(dg, ST_RANGE, "'%.80s': has more digits than can be kept exactly", text);
    switch (n.too_long ? TOO_LARGE : number_convert(out, &n, u)) {
    case NOT_WHOLE:
        return diag_set(dg, ST_RANGE, "'%.80s': is not a whole number%s%s", text,
                        plain ? "" : " of ", plain ? "" : dimensions[dim].base);
    case TOO_LARGE:
        return diag_set(dg, ST_RANGE, "'%.80s': is too large, the limit is 2^64 - 1%s%s", text,
                        plain ? "" : " ", plain ? "" : dimensions[dim].base);
    case CONVERTED:
        break;
    }
    return ST_OK;
}

/* ---- printing ---- */

/* Decimals that `value` needs in unit `u` to be exact. Printed units are powers of 10 or of 2. */
static unsigned decimals_needed(uint64_t value, const struct unit *u)
{
    wide rest = value % u->multiplier;
    unsigned decimals = 0;
    for (; rest; decimals++)
        rest = rest * 10 % u->multiplier;
    return decimals;
}

/* value / unit, rounded half up to `decimals`. */
static void print_in(char buffer[QUANTITY_TEXT_MAX], uint64_t value, const struct unit *u,
                     unsigned decimals)
{
    uint64_t scale = 1;
    for (unsigned i = 0; i < decimals; i++)
        scale *= 10;
    wide scaled = ((wide)value * scale + u->multiplier / 2) / u->multiplier;
    int used = snprintf(buffer, QUANTITY_TEXT_MAX, "%" PRIu64, (uint64_t)(scaled / scale));
    if (decimals)
        used += snprintf(buffer + used, QUANTITY_TEXT_MAX - (size_t)used, ".%0*" PRIu64,
                         (int)decimals, (uint64_t)(scaled % scale));
    if (*u->name)
        snprintf(buffer + used, QUANTITY_TEXT_MAX - (size_t)used, " %s", u->name);
}

/* The largest unit of one family that is not above `value` and shows it in MULTIPLE_MAX decimals. */
static const struct unit *unit_pick(uint64_t value, enum dimension dim, enum unit_use use)
{
    const struct unit *best = NULL;
    for (const struct unit *u = dimensions[dim].units; u->name; u++)
        if (u->use == use && u->multiplier <= value && decimals_needed(value, u) <= MULTIPLE_MAX)
            best = u;
    return best;
}

static const struct unit *unit_smallest(enum dimension dim)
{
    const struct unit *u = dimensions[dim].units;
    while (u->use != UNIT_DECIMAL)
        u++;
    return u;
}

const char *quantity_print(char buffer[QUANTITY_TEXT_MAX], uint64_t value, enum dimension dim)
{
    char other[QUANTITY_TEXT_MAX];
    assert((size_t)dim < sizeof dimensions / sizeof *dimensions);
    const struct unit *decimal = unit_pick(value, dim, UNIT_DECIMAL);
    const struct unit *binary = unit_pick(value, dim, UNIT_BINARY);
    if (!decimal)
        decimal = unit_smallest(dim);
    print_in(buffer, value, decimal, decimals_needed(value, decimal));
    if (!binary)
        return buffer;
    print_in(other, value, binary, decimals_needed(value, binary));
    /* The i of KiB does not count: 1 KiB is as short as 1 kB. */
    size_t length = strlen(buffer) + (decimal->multiplier > 1);
    if (strlen(other) < length || (strlen(other) == length && dim == DIM_SIZE))
        memcpy(buffer, other, sizeof other);
    return buffer;
}

const char *quantity_round(char buffer[QUANTITY_TEXT_MAX], uint64_t value, enum dimension dim)
{
    assert((size_t)dim < sizeof dimensions / sizeof *dimensions);
    const struct unit *u = unit_smallest(dim);
    for (const struct unit *next = u; next->name; next++) {
        /* From 999.5 of the smaller unit on: three digits of it would read 1000. */
        if (next->use == UNIT_DECIMAL && (wide)value * 2000 >= (wide)next->multiplier * 1999)
            u = next;
    }
    unsigned decimals = 0;
    wide scale = 1;
    /* 99.95 is shown as 100, hence 999.5 of the last digit rather than 1000. */
    while (value && scale < u->multiplier &&
           (wide)value * scale * 20 < (wide)u->multiplier * 1999) {
        decimals++;
        scale *= 10;
    }
    print_in(buffer, value, u, decimals);
    return buffer;
}
