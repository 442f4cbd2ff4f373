/* The C API that the Python binding calls.  The binding reads this file (without its # lines) as declarations, so it
 * holds plain C only.  Every function takes the fabric's lock itself; none may be called by the packet path.
 * Failure is a negative errno and text in `error`. */
#ifndef PLAIT_API_H
#define PLAIT_API_H

#include "../pipeline.h"

/* code: an errno; plus PLAIT_SYSTEM_ERROR if it is the operating system's, not the engine's. */
enum { PLAIT_SYSTEM_ERROR = 65536 };
struct plait_error {
    int code;
    char text[252];
};

struct plait_fabric;
struct plait_switch;
struct plait_link;

enum plait_target_kind { PLAIT_TARGET_ACTION, PLAIT_TARGET_MEMBER, PLAIT_TARGET_GROUP };
struct plait_target {
    uint32_t kind;
    uint32_t index;        /* action index, member handle or group handle */
    const uint8_t *params; /* of an action: big-endian (width + 7) / 8 bytes each, in order */
    uint32_t params_length;
};

/* Byte strings have the shape of the key: fields padded to whole bytes, in order. Absent ones are NULL. */
struct plait_match_spec {
    const uint8_t *key;
    uint32_t key_length;
    const uint8_t *mask;
    uint32_t mask_length;
    const uint8_t *high;
    uint32_t high_length;
    int32_t prefix_length; /* of the LPM field, or -1 */
    int32_t priority;      /* larger wins */
};

struct plait_port_spec { /* what one end of a link is given */
    uint64_t rate_bps;   /* 0: unlimited */
    uint64_t delay_ns;
    double loss;           /* probability */
    int64_t queue_packets; /* -1: the default */
    int64_t queue_bytes;   /* -1: unlimited */
};

struct plait_direction_stats {
    uint64_t packets, bytes; /* that reached the end of the wire */
    uint64_t drops_queue, drops_loss, drops_down;
    uint64_t drops_interface; /* to an interface: of `packets`, those it refused; from one: lost before the wire */
    uint64_t max_queue_bytes, max_queue_packets;
    uint64_t queue_bytes, queue_packets; /* now */
};

struct plait_port_stats {
    uint64_t received_packets, received_bytes, sent_packets, sent_bytes, drops_queue;
    uint64_t queue_bytes, queue_packets, max_queue_bytes, max_queue_packets, rate_bps;
    /* Frames of priority flow control; not in sent_packets. Lost: no packet was free. Ignored: other MAC control. */
    uint64_t pauses_sent, pauses_received, pauses_lost, mac_control_ignored;
};

struct plait_switch_stats {
    uint64_t received;  /* packets that entered ingress from a port, the controller or a generator */
    uint64_t copies;    /* made by multicast and clone sessions */
    uint64_t processed; /* runs of ingress, resubmitted and recirculated packets included */
    /* received + copies = sent and drops_queue of all ports + what waits + these, without drops_event. */
    uint64_t drops_ingress, drops_egress, drops_no_port, drops_priority, drops_no_program, drops_oversize, drops_memory,
        drops_loop,          /* resubmitted or recirculated, and too many of these wait */
        drops_reload,        /* waited when another program was loaded */
        drops_unknown_group, /* to a multicast group that does not exist, or has no replicas */
        drops_event;         /* digests, log lines and packets for the control plane, which did not take them in time */
};

struct plait_interface_stats {
    uint64_t received, sent, drops_oversize, drops_kernel, drops_memory, drops_send, send_retries, checksums_completed;
};

struct plait_flow {
    uint32_t source, destination; /* host order */
    uint16_t source_port, destination_port;
    uint32_t protocol;
    uint64_t packets, bytes;
};

enum plait_notice_kind {
    PLAIT_NOTICE_PACKET_IN,
    PLAIT_NOTICE_DIGEST,
    PLAIT_NOTICE_LOG,
    PLAIT_NOTICE_SENT,
    PLAIT_NOTICE_DRAINED
};
struct plait_notice {
    uint32_t kind;
    uint32_t number; /* learn list or port */
    uint64_t tag;    /* of the injected packet it comes from, or of the drain; 0: none */
    uint32_t length;
    uint8_t bytes[];
};

struct plait_fraction {
    uint32_t numerator, denominator;
};

/* Why a packet did not get into its queue. */
enum plait_drop_reason {
    PLAIT_DROP_PACKETS,  /* the queue's depth in packets */
    PLAIT_DROP_BYTES,    /* its depth in bytes */
    PLAIT_DROP_SHARED,   /* its part in the shared buffer */
    PLAIT_DROP_HEADROOM, /* the headroom of a lossless priority at the port where the packet came in */
    PLAIT_DROP_REASONS
};

struct plait_buffer_spec { /* of a switch; see buffer.h */
    uint64_t total_bytes;  /* 0: no shared buffer */
    uint64_t reserved_bytes;      /* of each queue */
    struct plait_fraction alpha;  /* of each queue */
    uint32_t lossless;            /* priorities with flow control, a mask; the rest is theirs */
    uint64_t xoff_bytes;          /* used unless xoff_alpha is given */
    struct plait_fraction xoff_alpha; /* denominator 0: not given */
    uint64_t xon_gap_bytes;
    uint64_t headroom_bytes; /* of each linked port and lossless priority */
    uint32_t pause_quanta;
};

struct plait_buffer_state {
    uint64_t pool_bytes, used_bytes, max_used_bytes;
};

struct plait_queue_change { /* -1 (of alpha: a denominator of 0) leaves a value as it is */
    int64_t rate_bps, rate_pps;
    int64_t depth_packets, depth_bytes;
    int64_t reserved_bytes;
    struct plait_fraction alpha;
};

struct plait_queue_state {
    uint64_t packets, bytes, enqueued_packets;
    uint64_t drops_packets, drops_bytes, drops_shared, drops_headroom;
    uint64_t depth_packets, depth_bytes; /* UINT64_MAX: unlimited */
    uint64_t rate_bps, rate_pps;         /* of the queue itself; 0: none. One of them at the most */
    uint64_t held;                       /* by the control plane: 0 or 1 */
    uint64_t paused, paused_ns;          /* by the peer: 0 or 1, and how long until now */
    /* The rest is 0 without a shared buffer. */
    uint64_t reserved_bytes, alpha_numerator, alpha_denominator;
    uint64_t threshold_bytes; /* what the queue may hold of packets that can be dropped, now */
    uint64_t ingress_bytes, headroom_bytes, max_headroom_bytes; /* came in by this port, this priority, and waits */
    uint64_t xoff, xoffs; /* the peer is asked to pause: 0 or 1, and how often it has been */
};

struct plait_replica {
    uint32_t port, instance;
};

/* Fabric */
struct plait_fabric *plait_fabric_create(int real_time, uint64_t seed, struct plait_error *error);
void plait_fabric_destroy(struct plait_fabric *fabric);
uint64_t plait_fabric_now(struct plait_fabric *fabric);
int plait_fabric_run_real(struct plait_fabric *fabric, struct plait_error *error);
/* Virtual time: fires events up to `until`, at most `limit` of them; returns how many. done tells whether `until` was
 * reached. */
uint64_t plait_fabric_run_until(struct plait_fabric *fabric, uint64_t until, uint64_t limit, int *done);
uint64_t plait_fabric_next_event(struct plait_fabric *fabric);
void plait_fabric_stop(struct plait_fabric *fabric);
uint64_t plait_fabric_packets_alive(struct plait_fabric *fabric);
uint64_t plait_fabric_hops(struct plait_fabric *fabric);
uint64_t plait_fabric_events(struct plait_fabric *fabric);

struct plait_switch *plait_fabric_add_switch(struct plait_fabric *fabric, const char *name, uint32_t drop_port,
                                             uint32_t cpu_port, uint32_t priority_queues, struct plait_error *error);
struct plait_link *plait_fabric_connect(struct plait_fabric *fabric, const char *name, struct plait_switch *a,
                                        uint32_t port_a, struct plait_switch *b, uint32_t port_b,
                                        const struct plait_port_spec *spec, struct plait_error *error);
struct plait_link *plait_fabric_attach(struct plait_fabric *fabric, const char *name, struct plait_switch *a,
                                       uint32_t port_a, const char *interface, const struct plait_port_spec *spec,
                                       struct plait_error *error);

/* Links: direction 0 is a to b, 1 is b to a; b of an attached link is the interface. */
int plait_link_stats(struct plait_link *link, uint32_t direction, struct plait_direction_stats *stats);
int plait_link_interface_stats(struct plait_link *link, struct plait_interface_stats *stats);
void plait_link_set_up(struct plait_link *link, int up);
int plait_link_set(struct plait_link *link, int64_t rate_bps, int64_t delay_ns, double loss, struct plait_error *error);
int plait_link_capture(struct plait_link *link, const char *path, struct plait_error *error);
int plait_link_capture_stop(struct plait_link *link, struct plait_error *error);
int plait_link_record_flows(struct plait_link *link, uint32_t limit, struct plait_error *error);
/* Copies at most `room` flows; returns how many there are. */
uint32_t plait_link_flows(struct plait_link *link, uint32_t direction, struct plait_flow *flows, uint32_t room,
                          uint64_t *unrecorded_packets);

/* Switches */
int plait_switch_load(struct plait_switch *sw, const char *path, struct plait_error *error);
const struct plait_pipeline *plait_switch_pipeline(struct plait_switch *sw);
int plait_switch_inject(struct plait_switch *sw, uint32_t port, uint64_t tag, const uint8_t *frame, uint32_t length,
                        struct plait_error *error);
/* Real time, without interfaces: a PLAIT_NOTICE_DRAINED with this tag comes as soon as no packet is left in the fabric,
 * after the notices of all those packets. A later call replaces one that waits. It is never lost. */
int plait_switch_drain(struct plait_switch *sw, uint64_t tag, struct plait_error *error);
/* What programs read as the state of a port without link. */
int plait_switch_set_port_up(struct plait_switch *sw, uint32_t port, int up, struct plait_error *error);
/* `count` copies of the frame arrive at the port, the first after `start_ns`, one each `interval_ns`. */
int plait_switch_generate(struct plait_switch *sw, uint32_t port, const uint8_t *frame, uint32_t length, uint64_t count,
                          uint64_t start_ns, uint64_t interval_ns, struct plait_error *error);
/* Makes a port without link, whose output becomes PLAIT_NOTICE_SENT. */
int plait_switch_tap(struct plait_switch *sw, uint32_t port, struct plait_error *error);
/* The oldest notice (to be freed with plait_notice_free), or NULL after timeout_ns. */
struct plait_notice *plait_switch_poll(struct plait_switch *sw, uint64_t timeout_ns);
void plait_notice_free(struct plait_notice *notice);
int plait_switch_event_fd(struct plait_switch *sw);

/* Queues; `queue` -1 means all of the port's. A rate_bps for all is the port's rate, one for a queue the most that the
 * queue sends; a rate_pps, in packets a second, holds for each queue by itself, as BMv2's set_queue_rate. */
int plait_switch_set_queue(struct plait_switch *sw, uint32_t port, int32_t queue,
                           const struct plait_queue_change *change, struct plait_error *error);
int plait_switch_hold_queue(struct plait_switch *sw, uint32_t port, int32_t queue, int hold, struct plait_error *error);
int plait_switch_queue_state(struct plait_switch *sw, uint32_t port, uint32_t queue, struct plait_queue_state *state,
                             struct plait_error *error);
int plait_switch_set_buffer(struct plait_switch *sw, const struct plait_buffer_spec *spec, struct plait_error *error);
void plait_switch_buffer_state(struct plait_switch *sw, struct plait_buffer_state *state);
/* Ports that exist; `ports` has room for 512. Returns how many. */
uint32_t plait_switch_ports(struct plait_switch *sw, uint32_t *ports);
int plait_switch_port_stats(struct plait_switch *sw, uint32_t port, struct plait_port_stats *stats,
                            struct plait_error *error);
void plait_switch_stats(struct plait_switch *sw, struct plait_switch_stats *stats);

/* Tables */
int plait_control_entry_insert(struct plait_switch *sw, uint32_t table, const struct plait_match_spec *match,
                               const struct plait_target *target, uint64_t *handle, struct plait_error *error);
/* The same without structs, which take a binding longer to fill than this takes to insert. */
int plait_control_entry_insert_flat(struct plait_switch *sw, uint32_t table, const uint8_t *key, uint32_t key_length,
                                    const uint8_t *mask, uint32_t mask_length, const uint8_t *high,
                                    uint32_t high_length, int32_t prefix_length, int32_t priority,
                                    uint32_t target_kind, uint32_t target_index, const uint8_t *params,
                                    uint32_t params_length, uint64_t *handle, struct plait_error *error);
int plait_control_entry_modify(struct plait_switch *sw, uint32_t table, uint64_t handle,
                               const struct plait_target *target, struct plait_error *error);
int plait_control_entry_delete(struct plait_switch *sw, uint32_t table, uint64_t handle, struct plait_error *error);
int plait_control_entry_count(struct plait_switch *sw, uint32_t table, struct plait_error *error);
int plait_control_entry_counter(struct plait_switch *sw, uint32_t table, uint64_t handle, uint64_t *packets,
                                uint64_t *bytes, uint64_t *last_hit_ns, struct plait_error *error);
int plait_control_entry_counter_set(struct plait_switch *sw, uint32_t table, uint64_t handle, uint64_t packets,
                                    uint64_t bytes, struct plait_error *error);
int plait_control_default_counter(struct plait_switch *sw, uint32_t table, uint64_t *packets, uint64_t *bytes,
                                  struct plait_error *error);
int plait_control_default_set(struct plait_switch *sw, uint32_t table, const struct plait_target *target,
                              struct plait_error *error);
int plait_control_member_create(struct plait_switch *sw, uint32_t action, const uint8_t *params, uint32_t length,
                                uint32_t *handle, struct plait_error *error);
int plait_control_member_modify(struct plait_switch *sw, uint32_t handle, uint32_t action, const uint8_t *params,
                                uint32_t length, struct plait_error *error);
int plait_control_member_delete(struct plait_switch *sw, uint32_t handle, struct plait_error *error);
int plait_control_group_create(struct plait_switch *sw, uint32_t *handle, struct plait_error *error);
int plait_control_group_set(struct plait_switch *sw, uint32_t handle, const uint32_t *members, const uint32_t *weights,
                            uint32_t count, struct plait_error *error);
int plait_control_group_delete(struct plait_switch *sw, uint32_t handle, struct plait_error *error);

/* Arrays. Reads of many cells copy `count` cells from `first` on under one lock. */
int plait_control_counter_read(struct plait_switch *sw, uint32_t index, uint32_t first, uint32_t count,
                               struct plait_counter_cell *cells, struct plait_error *error);
int plait_control_counter_write(struct plait_switch *sw, uint32_t index, uint32_t cell, uint64_t packets,
                                uint64_t bytes, struct plait_error *error);
uint32_t plait_control_register_size(struct plait_switch *sw, uint32_t index);
/* Cells as big-endian strings of (width + 7) / 8 bytes each, one after another. */
int plait_control_register_read(struct plait_switch *sw, uint32_t index, uint32_t first, uint32_t count, uint8_t *bytes,
                                struct plait_error *error);
int plait_control_register_write(struct plait_switch *sw, uint32_t index, uint32_t cell, const uint8_t *bytes,
                                 uint32_t length, struct plait_error *error);
int plait_control_meter_set(struct plait_switch *sw, uint32_t index, uint32_t cell, uint64_t cir, uint64_t cburst,
                            uint64_t pir, uint64_t pburst, struct plait_error *error);
int plait_control_meter_clear(struct plait_switch *sw, uint32_t index, uint32_t cell, struct plait_error *error);
int plait_control_entry_meter_set(struct plait_switch *sw, uint32_t table, uint64_t handle, uint64_t cir,
                                  uint64_t cburst, uint64_t pir, uint64_t pburst, struct plait_error *error);
int plait_control_entry_meter_clear(struct plait_switch *sw, uint32_t table, uint64_t handle,
                                    struct plait_error *error);
/* What a meter marked green, yellow and red: `counts` has PLAIT_COLORS cells. */
enum { PLAIT_COLORS = 3 };
int plait_control_meter_counts(struct plait_switch *sw, uint32_t index, uint32_t cell,
                               struct plait_counter_cell *counts, struct plait_error *error);
int plait_control_meter_counts_set(struct plait_switch *sw, uint32_t index, uint32_t cell,
                                   const struct plait_counter_cell *counts, struct plait_error *error);
int plait_control_entry_meter_counts(struct plait_switch *sw, uint32_t table, uint64_t handle,
                                     struct plait_counter_cell *counts, struct plait_error *error);
int plait_control_entry_meter_counts_set(struct plait_switch *sw, uint32_t table, uint64_t handle,
                                         const struct plait_counter_cell *counts, struct plait_error *error);

/* Replication. `truncate` is bytes, 0 for none; clones wait in queue `priority`. */
int plait_control_multicast_set(struct plait_switch *sw, uint32_t group, const struct plait_replica *replicas,
                                uint32_t count, struct plait_error *error);
int plait_control_multicast_delete(struct plait_switch *sw, uint32_t group, struct plait_error *error);
int plait_control_clone_session_set(struct plait_switch *sw, uint32_t session, const struct plait_replica *replicas,
                                    uint32_t count, uint32_t truncate, uint32_t priority,
                                    struct plait_error *error);
int plait_control_clone_session_delete(struct plait_switch *sw, uint32_t session, struct plait_error *error);

/* Benchmarks without a fabric: the bare forwarder and a source. `stop` is polled. */
int plait_bench_forward(const char *a, const char *b, volatile int *stop, uint64_t *forwarded,
                        struct plait_error *error);
/* ns of one look-up in a table of `entries` random entries with one 32-bit key of kind `match`; all look-ups hit. */
double plait_bench_lookup(uint32_t match, uint32_t entries, uint32_t lookups, struct plait_error *error);
int plait_bench_source(const char *interface, const uint8_t *frame, uint32_t length, uint64_t count, double seconds,
                       volatile int *stop, uint64_t *sent, struct plait_error *error);

#endif
