/* A switch: a program between ports and a traffic manager.
 *
 * The order of decisions is BMv2's.  End of ingress: clone, digest, resubmit > multicast > drop > unicast; end of
 * egress: clone, drop > recirculate > send.
 *
 * Invariants: ports[] entries, once made, stay; a packet in a port's queue of a switch carries a PHV of the program
 * that is loaded (so replacing the program empties the queues); live_* are mirrors that programs read, never
 * authoritative.
 */
#ifndef PLAIT_SWITCH_H
#define PLAIT_SWITCH_H

#include <pthread.h>

#include "buffer.h"
#include "event.h"
#include "link.h"
#include "packet.h"
#include "program.h"
#include "tm.h"

#define PLAIT_PORTS            512u
#define PLAIT_LOOP_NS          100u /* a resubmitted or recirculated packet is back after this long */
#define PLAIT_LOOP_LIMIT       1024u
#define PLAIT_NOTICE_LIMIT     8192u
#define PLAIT_MULTICAST_GROUPS 65536u
#define PLAIT_CLONE_SESSIONS   32768u

enum plait_instance_type {
    PLAIT_NORMAL = 0,
    PLAIT_INGRESS_CLONE = 1,
    PLAIT_EGRESS_CLONE = 2,
    PLAIT_RECIRCULATED = 4,
    PLAIT_REPLICATED = 5,
    PLAIT_RESUBMITTED = 6,
};

struct plait_replicas {
    uint32_t count, truncate;
    uint32_t priority; /* of a clone session: the queue of its copies */
    struct plait_replica list[];
};

struct plait_notice_node {
    struct plait_notice_node *next;
    struct plait_notice notice;
};

struct plait_generator;

struct plait_switch {
    struct plait_fabric *fabric;
    struct plait_switch *next;
    char *name;
    uint32_t drop_port, cpu_port, n_queues;
    /* One control call at a time; taken before the fabric's lock. Only holders change tables, so a holder may prepare a
     * change (allocate, rehash) while packets still flow, and needs the fabric's lock for the switch-over alone. */
    pthread_mutex_t control_lock;
    struct plait_program *program; /* NULL until one is loaded */
    struct plait_port *ports[PLAIT_PORTS];
    struct plait_link *links[PLAIT_PORTS];
    bool serving; /* one of the ports is */
    struct plait_buffer *buffer; /* NULL: queues have limits of their own only */
    uint32_t lossless;           /* priorities with flow control, a mask; 0: MAC control frames are frames like others */
    uint64_t received_packets[PLAIT_PORTS], received_bytes[PLAIT_PORTS];
    uint64_t live_bytes[PLAIT_PORTS], live_packets[PLAIT_PORTS], live_up[PLAIT_PORTS];
    struct plait_replicas **multicast; /* by group, or NULL */
    struct plait_replicas **sessions;  /* clone sessions by id, or NULL */
    struct plait_list loop;            /* resubmitted and recirculated packets, by due time */
    uint32_t loop_length;
    struct plait_event loop_event;
    struct plait_switch_stats stats;
    struct plait_generator *generators;
    bool drain_wanted; /* a PLAIT_NOTICE_DRAINED with drain_tag, when no packet is left */
    uint64_t drain_tag;

    /* Notices have a lock of their own: who waits for one does not hold up packets. */
    pthread_mutex_t notice_lock;
    pthread_cond_t notice_ready;
    struct plait_notice_node *notices, **notices_end;
    uint32_t n_notices;
    uint32_t pollers; /* threads inside plait_switch_poll: the switch is not freed before they have left */
    bool closing;
    int event_fd; /* readable while notices wait */
};

int plait_switch_create(struct plait_fabric *fabric, const char *name, uint32_t drop_port, uint32_t cpu_port,
                        uint32_t n_queues, struct plait_switch **created, struct plait_error *error);
void plait_switch_free(struct plait_switch *sw);
/* Makes port `number`, feeding `link`; without one its packets become notices: the CPU port, or a tapped port. */
int plait_switch_add_port(struct plait_switch *sw, uint32_t number, struct plait_link *link, struct plait_port **port,
                          struct plait_error *error);
/* A port that exists, or NULL with the error filled. */
struct plait_port *plait_switch_port(struct plait_switch *sw, uint32_t number, struct plait_error *error);
/* Of a port that nothing was sent to yet, or of a switch that is freed. Does nothing where there is none. */
void plait_switch_remove_port(struct plait_switch *sw, uint32_t number);
/* A packet arrives: as plait_wire.deliver. Takes the packet. */
void plait_switch_receive(void *sw, uint32_t port, struct plait_pkt *pkt);
/* Queues a notice, if there is room. Returns whether it did. */
bool plait_switch_notify(struct plait_switch *sw, enum plait_notice_kind kind, uint32_t number, uint64_t tag,
                         const uint8_t *bytes, uint32_t length);
/* For the runner: with no packet left in the fabric, answers those who asked by plait_switch_drain. */
void plait_fabric_tell_drained(struct plait_fabric *fabric);
/* Frees what waits to be polled: an old program's digests mean nothing in a new one's schema. */
void plait_switch_forget_notices(struct plait_switch *sw);
/* Sends home who waits in plait_switch_poll: before the switch goes. */
void plait_switch_end_polls(struct plait_switch *sw);
/* Drops what waits in queues and loops: before the program goes. */
void plait_switch_flush(struct plait_switch *sw);

#endif
