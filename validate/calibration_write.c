/* calibration_write.c -- a calibration as a device description. Every value says whether it was measured or fitted, and how
 * far its repeats were apart. */
#include "validate/calibration.h"

#include "base/yaml.h"
#include "devices/fit.h"

#include <inttypes.h>

static void line(FILE *f, const char *key, double x, enum dimension dim, const char *kind,
                 const char *source, double spread)
{
    char text[QUANTITY_TEXT_MAX];
    uint64_t amount = x >= 1 ? storage_fit_rounded(x) : 0;
    fprintf(f, "%s: [\"%s\", %s, \"%s\"", key, quantity_print(text, amount, dim), kind, source);
    if (spread > 0)
        fprintf(f, ", %.1f %%", 100 * (spread < 0.9 ? spread : 0.9));
    fputs("]\n", f);
}

static void kernel(FILE *f, const struct calibration *c, const struct kernel_line *k,
                   const char *layout, size_t threads)
{
    const char *rate = c->cached ? "        cache_rate" : "        rate";
    fprintf(f, "      - format: %s\n        layout: %s\n        threads: %zu\n        tokens: 1\n",
            k->format->name, layout, threads);
    line(f, rate, k->rate_Bps, DIM_RATE, "measured", "products on the model's own matrices",
         k->spread);
    line(f, "        call", k->call_ns, DIM_TIME, "fitted",
         "what is left of a run with everything resident", 0);
}

static void write_kernels(FILE *f, const struct calibration *c)
{
    const char *experts = c->packed ? "packed" : "blocks";
    fputs("    kernels:\n", f);
    for (size_t i = 0; i < c->thread_counts; i++) {
        const struct calibration_threads *t = &c->by_threads[i];
        kernel(f, c, &t->expert, experts, t->threads);
        for (size_t d = 0; d < t->dense_count; d++)
            if (!c->packed || t->dense[d].format != t->expert.format)
                kernel(f, c, &t->dense[d], "packed", t->threads);
    }
}

static void write_storage(FILE *f, const struct calibration *c)
{
    const struct station_fit *s = &c->station;
    static const char source[] = "bursts of experts from idle, the simulator's station fitted";
    fputs("storage:\n  - name: this\n    model: curve\n", f);
    line(f, "    latency", s->latency_ns > 1 ? s->latency_ns : 1, DIM_TIME, "fitted", source,
         s->residual_max);
    line(f, "    lane_bandwidth", s->lane_Bps, DIM_RATE, "fitted", source, s->residual_max);
    line(f, "    bandwidth", s->bandwidth_Bps, DIM_RATE, "fitted", source, s->residual_max);
    line(f, "    grain", (double)s->grain_bytes, DIM_SIZE, "fitted", source, 0);
    line(f, "    queue_depth", c->depth, DIM_COUNT, "measured",
         "what the engine keeps in flight at most", 0);
}

static void write_host(FILE *f, const struct calibration *c, const struct calibration_threads *t)
{
    fputs("host:\n  engine: memwall\n", f);
    line(f, "  submit", c->costs.submit_ns, DIM_TIME, "measured",
         "time of the issuing thread a read", 0.2);
    line(f, "  complete", 0, DIM_TIME, "measured", "within the burst's own time", 0);
    line(f, "  wake", c->costs.wake_ns, DIM_TIME, "measured",
         "one expert: sleeping until it is there beside looking for it", 0.3);
    line(f, "  resume", t->resume_ns, DIM_TIME, "fitted",
         "experts of a run that waits in every layer, beside a resident one", 0.3);
    line(f, "  resume_layer", t->resume_layer_ns, DIM_TIME, "fitted",
         "fixed parts of a run that waits in every layer, beside a resident one", 0.3);
    line(f, "  wake_busy", 0, DIM_TIME, "measured", "nobody is woken: the caller looks", 0);
    line(f, "  predict", t->predict_ns, DIM_TIME, "measured",
         "a resident run that guesses beside one that does not", 0.3);
    line(f, "  layer_overhead", t->layer_overhead_ns, DIM_TIME, "fitted",
         "a run with everything resident, without the bytes of its products", t->engine.spread);
    line(f, "  token_overhead", t->token_overhead_ns, DIM_TIME, "fitted",
         "a run with everything resident, without the bytes of its head", t->engine.spread);
}

void calibration_write(FILE *f, const struct calibration *c, size_t threads_idx)
{
    const struct calibration_threads *t = &c->by_threads[threads_idx];
    double most = 0, one = 0;
    for (size_t i = 0; i < c->thread_counts; i++) {
        if (c->by_threads[i].memory_Bps > most)
            most = c->by_threads[i].memory_Bps;
        if (c->by_threads[i].threads == 1)
            one = c->by_threads[i].memory_Bps;
    }
    fputs("# written by memwall calibrate\n", f);
    fprintf(f, "title: this machine, with %s\nclass: server\ndram:\n", c->model);
    line(f, "  capacity", (double)c->memory_bytes, DIM_SIZE, "measured", "the system says so", 0);
    line(f, "  measured_bandwidth", most, DIM_RATE, "measured", "a plain loop over 256 MiB", 0);
    if (one > 0)
        line(f, "  thread_bandwidth", one, DIM_RATE, "measured", "the same, one thread", 0);
    if (c->cache_bytes)
        line(f, "last_level_cache", (double)c->cache_bytes, DIM_SIZE, "measured",
             "read again 1.3 times as fast as memory", 0);
    line(f, "reserve", 0, DIM_SIZE, "measured", "what is free is given to the run", 0);
    write_storage(f, c);
    fputs("compute:\n  - name: cpu\n", f);
    line(f, "    threads", (double)t->threads, DIM_COUNT, "measured", "of this calibration", 0);
    line(f, "    int8", t->peak_ops, DIM_COMPUTE, "measured", "multiply-adds on registers", 0);
    write_kernels(f, c);
    write_host(f, c, t);
}
