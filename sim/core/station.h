/* station.h -- k equal servers before one waiting room: who comes first is served first.
 *
 * A job carries its work in units (ns of latency, bytes, page reads) and every server does `speed`
 * units per second, so a job that starts at t and is left alone ends at t + ceil(work x 10^9 /
 * speed). With speed NS_PER_S work is simply nanoseconds. A job of STATION_HELD work keeps its
 * server until station_finish(): a place in a queue that is given back when something else has
 * happened.
 *
 * Waiting jobs are taken by level, 0 first, and within a level in the order in which they came
 * there. A job that has started is never interrupted, so demand reads (level 0) overtake prefetch
 * reads (level 1) that wait, and no others. station_promote() moves a waiting job to another level,
 * station_withdraw() takes it back.
 *
 * Servers and speed may change at any time (throttling). A changed speed holds for jobs in service
 * from that instant on: the work done is counted exactly, in nano-units, and only the end of a job
 * is rounded, up to the next nanosecond. Fewer servers than jobs in service let those finish and
 * start no other until there is room.
 *
 * A job that finds an idle server starts at once, so of jobs that come at one instant the one whose
 * event fires first goes first. At the end of a job its `done` runs before the freed server looks
 * for the next, so what `done` submits competes by level with those who wait.
 */
#ifndef SIM_CORE_STATION_H
#define SIM_CORE_STATION_H

#include "sim/core/evq.h"
#include "sim/core/meter.h"

#define STATION_LEVELS_MAX 4
#define STATION_HELD       UINT64_MAX

struct station_setup {
    uint32_t servers;     /* 0 is allowed: nothing starts until station_set_servers() */
    uint64_t speed_per_s; /* units of work a second and server; 0 is allowed: a standstill */
    uint32_t levels;      /* 1..STATION_LEVELS_MAX */
    uint32_t jobs_max;    /* waiting and in service at once, 1..2^20 */
};

struct station_job {
    uint64_t work;  /* in units, or STATION_HELD */
    uint32_t level; /* below setup.levels */
    uint64_t tag;   /* goes into the queue's fingerprint when the job ends */
    evq_fn
        *start; /* called when it gets its server, perhaps before station_submit returns; or NULL */
    evq_fn *done; /* called when it ends; or NULL */
    void *self;
};

struct station;

/* Reserves jobs_max events in `q`, which must outlive the station. */
MUST_CHECK enum status station_new(struct station **out, struct evq *q,
                                   const struct station_setup *s, struct diag *dg);
void station_free(struct station *st); /* NULL is allowed; not while its events are to fire */

/* ST_RANGE if jobs_max jobs are there already. `ticket` may be NULL; it is written before
 * job->start is called, is never 0 and never given out twice. */
MUST_CHECK enum status station_submit(struct station *st, const struct station_job *job,
                                      uint64_t *ticket);
/* These three return false if the job is not, or no longer, in the state they speak of. */
bool station_promote(struct station *st, uint64_t ticket, uint32_t level); /* waiting */
bool station_withdraw(struct station *st, uint64_t ticket);                /* waiting */
bool station_finish(struct station *st, uint64_t ticket);                  /* in service, held */

/* May start waiting jobs before it returns. */
void station_set_servers(struct station *st, uint32_t servers);
void station_set_speed(struct station *st, uint64_t speed_per_s);

uint32_t station_waiting(const struct station *st, uint32_t level);
uint32_t station_serving(const struct station *st);

/* What a level's jobs went through since the start. */
struct station_level {
    uint64_t submitted, started, finished, withdrawn;
    wide wait_ns; /* sum over the jobs started, counted at their start, by the level they
                   * started from */
    uint64_t wait_ns_max;
};
const struct station_level *station_level(const struct station *st, uint32_t level);

/* Little's law as an identity between integers, at any instant of any run:
 *     area_waiting + area_serving = sojourn_left + sojourn_present */
struct station_little {
    wide area_waiting;    /* jobs waiting x ns */
    wide area_serving;    /* jobs in service x ns */
    wide sojourn_left;    /* sum of (departure - arrival) over jobs finished or withdrawn */
    wide sojourn_present; /* sum of (now - arrival) over those still there */
};
struct station_little station_little(const struct station *st);

/* Levels: jobs waiting; jobs in service. The latter's meter counts finished jobs and their work as
 * passed (a held job passes with 0). */
const struct meter *station_meter_waiting(const struct station *st);
const struct meter *station_meter_serving(const struct station *st);

#endif
