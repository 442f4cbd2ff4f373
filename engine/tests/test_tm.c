#include "random.h"
#include "tm.h"
#include "unit.h"

struct sink {
    struct plait_pool *pool;
    uint64_t packets, bytes;
    sim_time last_bit;
    uint32_t tags[64];
};

static void receive(void *to, struct plait_pkt *pkt, sim_time last_bit)
{
    struct sink *sink = to;
    CHECK(last_bit >= sink->last_bit);
    if (sink->packets < 64)
        sink->tags[sink->packets] = pkt->packet.std.ingress_port;
    sink->packets++;
    sink->bytes += pkt->packet.length;
    sink->last_bit = last_bit;
    plait_pool_put(sink->pool, pkt);
}

struct bench {
    struct plait_event_queue events;
    struct plait_pool pool;
    struct plait_port port;
    struct sink sink;
};

static void bench_init(struct bench *bench, uint32_t queues, bits_per_second rate)
{
    memset(bench, 0, sizeof *bench);
    plait_event_queue_init(&bench->events);
    plait_pool_init(&bench->pool);
    CHECK_EQUAL(plait_port_init(&bench->port, &bench->events, &bench->pool, queues), 0);
    bench->sink.pool = &bench->pool;
    bench->port.send = receive;
    bench->port.to = &bench->sink;
    bench->port.rate = rate;
}

static void bench_free(struct bench *bench)
{
    plait_port_free(&bench->port);
    CHECK_EQUAL(bench->pool.alive, 0);
    CHECK_EQUAL(bench->events.registered, 0);
    plait_pool_free(&bench->pool);
    plait_event_queue_free(&bench->events);
}

static bool offer(struct bench *bench, uint32_t queue, uint32_t length, uint32_t tag)
{
    struct plait_pkt *pkt = plait_pool_get(&bench->pool);
    pkt->packet.length = length;
    pkt->packet.std.ingress_port = tag;
    bool taken = plait_port_enqueue(&bench->port, queue, pkt);
    if (!taken)
        plait_pool_put(&bench->pool, pkt);
    return taken;
}

static void run(struct bench *bench)
{
    while (bench->events.size)
        plait_event_fire_next(&bench->events);
}

/* N packets take floor(bits / rate), whatever the fraction of a nanosecond each. */
static void rate_is_exact(bits_per_second rate, uint32_t length, uint32_t count)
{
    struct bench bench;
    bench_init(&bench, 1, rate);
    bench.port.queues[0].limit_packets = count;
    for (uint32_t i = 0; i < count; i++)
        CHECK(offer(&bench, 0, length, i));
    run(&bench);
    CHECK_EQUAL(bench.sink.packets, count);
    unsigned __int128 bits = (unsigned __int128)length * 8 * count * NS_PER_SECOND;
    CHECK_EQUAL(bench.sink.last_bit, (uint64_t)(bits / rate));
    bench_free(&bench);
}

static void conservation(uint64_t seed)
{
    struct bench bench;
    struct plait_random random;
    uint64_t offered = 0, refused = 0, bytes_taken = 0;
    plait_random_seed(&random, seed);
    bench_init(&bench, 3, 1000000000);
    for (uint32_t q = 0; q < 3; q++) {
        bench.port.queues[q].limit_packets = 5 + q;
        bench.port.queues[q].limit_bytes = 4000;
    }
    for (int step = 0; step < 20000; step++) {
        uint32_t length = (uint32_t)plait_random_between(&random, 60, 2000);
        offered++;
        if (offer(&bench, (uint32_t)plait_random_between(&random, 0, 2), length, 0))
            bytes_taken += length;
        else
            refused++;
        uint64_t packets = 0, bytes = 0;
        for (uint32_t q = 0; q < 3; q++) {
            CHECK(bench.port.queues[q].packets <= 5 + q && bench.port.queues[q].bytes <= 4000);
            packets += bench.port.queues[q].packets;
            bytes += bench.port.queues[q].bytes;
        }
        CHECK_EQUAL(bench.port.packets, packets);
        CHECK_EQUAL(bench.port.bytes, bytes);
        CHECK_EQUAL(offered, bench.sink.packets + bench.port.packets + refused);
        CHECK_EQUAL(bytes_taken, bench.sink.bytes + bench.port.bytes);
        for (uint64_t n = plait_random_between(&random, 0, 2); n > 0 && bench.events.size; n--)
            plait_event_fire_next(&bench.events);
    }
    CHECK(refused > 0 && bench.sink.packets > 0);
    run(&bench);
    CHECK_EQUAL(bench.port.drops, refused);
    CHECK_EQUAL(offered, bench.sink.packets + refused);
    CHECK_EQUAL(bench.port.packets, 0);
    bench_free(&bench);
}

static void high_priority_goes_first(void)
{
    struct bench bench;
    bench_init(&bench, 8, 1000000);
    CHECK(offer(&bench, 0, 100, 99)); /* being serialised when the rest comes */
    for (uint32_t q = 0; q < 8; q++)
        for (uint32_t n = 0; n < 2; n++)
            CHECK(offer(&bench, q, 100, q));
    run(&bench);
    CHECK_EQUAL(bench.sink.tags[0], 99);
    for (uint32_t i = 0; i < 16; i++)
        CHECK_EQUAL(bench.sink.tags[1 + i], 7 - i / 2);
    bench_free(&bench);
}

static void unlimited_rate_keeps_no_queue(void)
{
    struct bench bench;
    bench_init(&bench, 1, 0);
    for (uint32_t i = 0; i < 5000; i++)
        CHECK(offer(&bench, 0, 1500, i));
    CHECK_EQUAL(bench.sink.packets, 5000);
    CHECK_EQUAL(bench.sink.last_bit, 0);
    bench_free(&bench);
}

/* After an idle gap the first packet starts at once and at a whole nanosecond. */
static void idle_gap_resets_the_fraction(void)
{
    struct bench bench;
    bench_init(&bench, 1, 100000000000);
    CHECK(offer(&bench, 0, 1086, 0)); /* 86.88 ns */
    run(&bench);
    CHECK_EQUAL(bench.sink.last_bit, 86);
    plait_event_advance(&bench.events, 1000);
    CHECK(offer(&bench, 0, 1086, 0));
    CHECK_EQUAL(bench.sink.last_bit, 1086);
    CHECK(offer(&bench, 0, 1086, 0));
    CHECK(bench.port.packets == 1);
    run(&bench);
    CHECK_EQUAL(bench.sink.last_bit, 1173); /* 1000 + 173.76 */
    bench_free(&bench);
}

/* The rate changes again and again while a packet of 10^6 bits is sent: the port sends every bit once. */
static void rates_change_in_service(uint64_t seed)
{
    struct bench bench;
    struct plait_random random;
    plait_random_seed(&random, seed);
    bench_init(&bench, 1, 1000);
    CHECK(offer(&bench, 0, 10000, 0));
    unsigned __int128 bits_left = (unsigned __int128)80000 * NS_PER_SECOND;
    while (bench.port.busy_until > bench.events.now) {
        sim_time step = plait_random_between(&random, 1, 1000000000);
        if (bench.port.rate * (unsigned __int128)step >= bits_left)
            break;
        bits_left -= bench.port.rate * (unsigned __int128)step;
        plait_event_advance(&bench.events, bench.events.now + step);
        plait_port_set_rate(&bench.port, plait_random_between(&random, 1, 5000));
        sim_time end = bench.events.now + (sim_time)(bits_left / bench.port.rate);
        /* What is bits_left of a nanosecond is carried, so that only the last division rounds. */
        CHECK_EQUAL(bench.port.busy_until, end);
    }
    plait_port_set_rate(&bench.port, 0);
    CHECK_EQUAL(bench.port.busy_until, bench.events.now);
    bench_free(&bench);
}

static bool clone_to_itself(void *owner, struct plait_port *port, struct plait_pkt *pkt)
{
    struct bench *bench = owner;
    (void)port;
    CHECK(offer(bench, 0, pkt->packet.length, 0));
    return true;
}

/* A program that clones every packet in egress to its own port never ends, but each of its events does. */
static void endless_egress_takes_turns(void)
{
    struct bench bench;
    bench_init(&bench, 1, 0);
    bench.port.depart = clone_to_itself;
    bench.port.owner = &bench;
    CHECK(offer(&bench, 0, 100, 0));
    for (uint64_t turn = 1; turn < 10; turn++) {
        CHECK_EQUAL(bench.sink.packets, turn * PLAIT_SERVE_BATCH);
        CHECK_EQUAL(bench.events.size, 1);
        plait_event_fire_next(&bench.events);
    }
    CHECK_EQUAL(bench.events.now, 0);
    bench_free(&bench);
}

void test_traffic_manager(void)
{
    rate_is_exact(100000000000, 1086, 10007);
    rate_is_exact(1000000000, 1500, 999);
    rate_is_exact(333333333, 61, 1001);
    rate_is_exact(7, 64, 3);
    for (uint64_t seed = 1; seed <= 5; seed++)
        conservation(seed);
    high_priority_goes_first();
    unlimited_rate_keeps_no_queue();
    idle_gap_resets_the_fraction();
    for (uint64_t seed = 1; seed <= 20; seed++)
        rates_change_in_service(seed);
    endless_egress_takes_turns();
}
