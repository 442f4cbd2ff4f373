#include "link.h"
#include "unit.h"

#define PACKETS 1000

struct end {
    struct plait_event_queue *events;
    struct plait_pool *pool;
    uint32_t count, tags[PACKETS];
    sim_time times[PACKETS];
};

static void receive(void *to, uint32_t port, struct plait_pkt *pkt)
{
    struct end *end = to;
    CHECK_EQUAL(port, 3);
    end->tags[end->count] = pkt->packet.std.ingress_port;
    end->times[end->count++] = end->events->now;
    plait_pool_put(end->pool, pkt);
}

struct bench {
    struct plait_event_queue events;
    struct plait_pool pool;
    struct plait_link link;
    struct plait_wire wire;
    struct end end;
};

static void bench_init(struct bench *bench, sim_time delay, double loss, uint64_t seed)
{
    memset(bench, 0, sizeof *bench);
    plait_event_queue_init(&bench->events);
    plait_pool_init(&bench->pool);
    bench->link.up = true;
    CHECK_EQUAL(plait_wire_init(&bench->wire, &bench->link, &bench->events, &bench->pool, NULL, seed), 0);
    bench->wire.delay = delay;
    plait_wire_set_loss(&bench->wire, loss);
    bench->end = (struct end){.events = &bench->events, .pool = &bench->pool};
    bench->wire.deliver = receive;
    bench->wire.to = &bench->end;
    bench->wire.to_port = 3;
}

static void bench_free(struct bench *bench)
{
    plait_wire_free(&bench->wire);
    CHECK_EQUAL(bench->pool.alive, 0);
    plait_pool_free(&bench->pool);
    plait_event_queue_free(&bench->events);
}

static void send(struct bench *bench, uint32_t tag, sim_time last_bit)
{
    struct plait_pkt *pkt = plait_pool_get(&bench->pool);
    pkt->packet.length = 100;
    pkt->packet.std.ingress_port = tag;
    plait_wire_send(&bench->wire, pkt, last_bit);
}

static void run(struct bench *bench)
{
    while (bench->events.size)
        plait_event_fire_next(&bench->events);
}

static void delay_is_exact_and_order_kept_when_it_shrinks(void)
{
    static struct bench bench;
    bench_init(&bench, 500, 0, 1);
    send(&bench, 0, 10);
    send(&bench, 1, 20);
    bench.wire.delay = 5;
    send(&bench, 2, 30);
    send(&bench, 3, 600);
    run(&bench);
    CHECK_EQUAL(bench.end.count, 4);
    sim_time expected[] = {510, 520, 520, 605};
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQUAL(bench.end.tags[i], i);
        CHECK_EQUAL(bench.end.times[i], expected[i]);
    }
    CHECK_EQUAL(bench.wire.packets, 4);
    CHECK_EQUAL(bench.wire.bytes, 400);
    bench_free(&bench);
}

static uint32_t lost(double loss, uint64_t seed)
{
    static struct bench bench;
    bench_init(&bench, 5, loss, seed);
    for (uint32_t i = 0; i < PACKETS; i++)
        send(&bench, i, i);
    run(&bench);
    CHECK_EQUAL(bench.end.count + bench.wire.drops_loss, PACKETS);
    uint32_t result = (uint32_t)bench.wire.drops_loss;
    bench_free(&bench);
    return result;
}

static void down_loses_what_is_in_flight(void)
{
    static struct bench bench;
    bench_init(&bench, 100, 0, 1);
    send(&bench, 0, 0);
    send(&bench, 1, 50);
    plait_event_fire_next(&bench.events);
    bench.link.up = false;
    run(&bench);
    CHECK_EQUAL(bench.end.count, 1);
    CHECK_EQUAL(bench.wire.drops_down, 1);
    send(&bench, 2, 200); /* frees what is still in flight at the end */
    bench_free(&bench);
}

static void flows_are_bounded_and_frames_may_be_anything(void)
{
    struct plait_flows *flows = plait_flows_create(2);
    uint8_t frame[60] = {0};
    for (uint32_t length = 0; length < 60; length++)
        plait_flows_count(flows, frame, length);
    CHECK_EQUAL(flows->unrecorded, 60);
    frame[12] = 8;
    frame[14] = 0x45;
    frame[23] = 17;
    for (uint8_t i = 0; i < 3; i++) {
        frame[37] = i; /* destination port */
        plait_flows_count(flows, frame, 60);
        plait_flows_count(flows, frame, 60);
    }
    CHECK_EQUAL(flows->count, 2);
    CHECK_EQUAL(flows->unrecorded, 62);
    frame[14] = 0x4f; /* a header of 60 bytes in a frame of 60: no ports */
    plait_flows_count(flows, frame, 60);
    plait_flows_count(flows, frame, 14 + 20);
    frame[12] = 0x81; /* nothing but VLAN tags */
    memset(frame + 12, 0x81, 48);
    for (uint32_t i = 12; i < 60; i += 2)
        frame[i + 1] = 0;
    plait_flows_count(flows, frame, 60);
    plait_flows_free(flows);
}

void test_links(void)
{
    delay_is_exact_and_order_kept_when_it_shrinks();
    CHECK_EQUAL(lost(0, 1), 0);
    CHECK_EQUAL(lost(1, 1), PACKETS);
    CHECK_EQUAL(lost(0.3, 7), lost(0.3, 7)); /* the seed decides */
    CHECK(lost(0.3, 7) > 200 && lost(0.3, 7) < 400);
    down_loses_what_is_in_flight();
    flows_are_bounded_and_frames_may_be_anything();
}
