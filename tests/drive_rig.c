/* drive_rig.c -- see drive_rig.h. */
#include "tests/drive_rig.h"

#include "tests/support.h"

struct drive_rig rig;

struct value rig_value(uint64_t amount)
{
    return (struct value){.amount = amount, .given = true};
}

struct storage rig_nand(uint64_t channels, uint64_t dies, uint64_t planes, uint64_t page,
                        uint64_t read_ns, uint64_t bus_Bps, uint64_t link_Bps)
{
    struct storage s = {.name = "test", .model = STORAGE_NAND};
    s.channels = rig_value(channels);
    s.dies_per_channel = rig_value(dies);
    s.planes = rig_value(planes);
    s.page_bytes = rig_value(page);
    s.read_time = rig_value(read_ns);
    s.bus_bandwidth = rig_value(bus_Bps);
    if (link_Bps)
        s.link_bandwidth = rig_value(link_Bps);
    return s;
}

void rig_open_net(uint64_t dram_Bps)
{
    struct diag dg;
    assert_int_equal(evq_new(&rig.q, 1000), ST_OK);
    assert_ok(flow_net_new(&rig.net, rig.q, 16, &dg));
    assert_ok(flow_resource_add(rig.net, dram_Bps, &rig.dram, &dg));
    memset(rig.end_ns, 0xff, sizeof rig.end_ns);
    rig.landed = 0;
}

void rig_open(const struct storage *s, uint32_t lanes)
{
    struct diag dg;
    rig_open_net(1000 * GBS);
    const struct drive_setup setup = {.storage = s,
                                      .name = "storage0",
                                      .lanes = lanes,
                                      .reads_max = 256,
                                      .net = rig.net,
                                      .dram = rig.dram,
                                      .dram_weight = 1};
    assert_ok(drive_new(&rig.drive, rig.q, &setup, &dg));
}

void rig_close(void)
{
    drive_free(rig.drive);
    rig.drive = NULL;
    flow_net_free(rig.net);
    evq_free(rig.q);
}

void rig_mark(struct evq *queue, void *self)
{
    rig.end_ns[(uintptr_t)self] = evq_now_ns(queue);
    rig.order[rig.landed++] = (uintptr_t)self;
}

void rig_submit(uintptr_t number, uint64_t bytes, uint32_t level)
{
    const struct drive_read r = {
        .bytes = bytes, .place = number, .level = level, .done = rig_mark, .self = (void *)number};
    assert_int_equal(drive_submit(rig.drive, &r, &rig.ticket[number]), ST_OK);
}

void rig_drain(void)
{
    while (evq_step(rig.q))
        ;
}
