/* drive_model.h -- the inside of drive.h: what the front (drive.c) and the models share.
 *
 * The front owns places, waiting room, priorities, counts and the distance of starts; a model gets
 * a read when it has its place, and says when it is over. Both models end in the same pipe.
 */
#ifndef SIM_PIPELINE_DRIVE_MODEL_H
#define SIM_PIPELINE_DRIVE_MODEL_H

#include "base/pcg.h"
#include "sim/core/station.h"
#include "sim/pipeline/drive.h"
#include "sim/pipeline/drive_pipe.h"

struct read {
    struct parcel parcel; /* first, so that a parcel is its read */
    struct drive *drive;
    struct drive_read order;
    uint64_t ticket;
    uint32_t slot, next_free;
    bool in_flight;
    uint64_t passed_bytes; /* through the pipe */
    uint64_t event;        /* of the model, pending; 0: none */
    union {
        struct
        { /* its stream: `done` nano-bytes at start_ns, which may be ahead, and B1 from then on */
            uint64_t start_ns;
            wide done;
        } stream;
        struct {              /* its pages */
            uint64_t unit;    /* first multi-plane page on the drive */
            uint64_t at_pipe; /* bytes that wait for the pipe or pass it */
            bool asks;        /* has a chunk in the pipe's queue */
        } pages;
    };
};

struct drive_model {
    const char *name;
    enum status (*open)(struct drive *d, const struct storage *s, struct diag *dg);
    void (*close)(struct drive *d);
    void (*begin)(struct drive *d, struct read *r);  /* it has its place: latency comes first */
    void (*passed)(struct drive *d, struct read *r); /* its chunk has left the pipe */
    void (*set_speed)(struct drive *d);
};
extern const struct drive_model drive_model_curve, drive_model_nand;

struct drive {
    struct evq *q;
    const struct drive_model *model;
    void *state; /* the model's own */
    struct station *places;
    uint32_t place_count;
    struct drive_pipe pipe;
    uint64_t pipe_Bps; /* of the description, at full speed */
    uint32_t speed_e3;
    uint64_t latency_ns;
    uint32_t jitter_e3;
    struct pcg jitter;
    uint64_t iops; /* 0: no limit */
    uint64_t next_start_ns, next_start_rest;
    bool start_blocked;
    struct meter present;
    uint64_t finished_bytes, finished_reads;
    uint32_t free_head;
    struct read *read; /* reads_max */
    uint32_t reads_max;
};

/* The latency of the read that starts now: t0, as chance has it, and what the read adds itself. */
uint64_t drive_draw_latency_ns(struct drive *d, const struct read *r);
/* A rate at the present speed, at least 1 B/s. */
uint64_t drive_scaled_Bps(const struct drive *d, uint64_t rate_Bps);
/* Calls the owner; the read is gone. */
void drive_end_read(struct drive *d, struct read *r);
/* Schedules fn(q, r) and remembers its ticket in r->event. */
void drive_read_at(struct read *r, uint64_t when_ns, evq_fn *fn);

#endif
