/* The pipeline ABI: what generated C implements and what both clocks call.
 *
 * A program is one `struct plait_pipeline`, exported by its shared object under the name `plait_pipeline`.  Code
 * is shared by all switches that run the program; state is per switch, in a `struct plait_instance`.
 *
 *      engine                         generated code
 *      ------                         --------------
 *      frame arrives    --parse-->    headers into the packet's PHV
 *                       --ingress-->  std.egress_spec, std.mcast_grp, std.clone_*, ...
 *      traffic manager  (queue, rate, drop; fills std.enq_*, std.deq_*)
 *                       --egress-->   may drop
 *                       --deparse-->  headers back in front of the payload
 *      frame leaves
 *
 * The PHV (headers, metadata, locals) is zero when `parse` is called and lives until `deparse`: BMv2 carries
 * metadata and locals from ingress to egress as well.
 *
 * Byte order: PHV fields and standard metadata are host order; keys, and values wider than 64 bits, are big-endian
 * byte strings.  Nothing here reads a clock: the engine writes times into the packet.
 *
 * Threads: one thread runs a fabric.  The control plane touches tables and arrays only while it holds the
 * fabric's lock, so generated code needs no atomics.
 */
#ifndef PLAIT_PIPELINE_H
#define PLAIT_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAIT_PIPELINE_ABI 1 /* raise with any change of layout or meaning below */
#define PLAIT_HEADROOM 576   /* bytes free before a received frame: BMv2's growth limit of 512, and slack */
#define PLAIT_MAX_FRAME 10240

/* ------------------------------------------------------------------------------------------------------------
 * Packets */

/* v1model's standard_metadata and the intrinsic state behind its externs. Names are v1model's. */
struct plait_std {
    uint32_t ingress_port;
    uint32_t egress_spec;
    uint32_t egress_port;
    uint32_t instance_type;      /* BMv2's PKT_INSTANCE_TYPE_*: 0 normal, 1 I2E, 2 E2E, 4 recirculated, 5 replicated, 6 resubmitted */
    uint32_t packet_length;      /* bytes */
    uint32_t enq_timestamp;      /* us since the fabric began, 32 bit */
    uint32_t enq_qdepth;         /* packets, 19 bit */
    uint32_t deq_timedelta;      /* us, 32 bit */
    uint32_t deq_qdepth;         /* packets, 19 bit */
    uint32_t mcast_grp;
    uint32_t egress_rid;
    uint32_t checksum_error;
    uint32_t parser_error;
    uint32_t priority;           /* 0 lowest */
    uint64_t ingress_global_timestamp; /* us, 48 bit */
    uint64_t egress_global_timestamp;  /* us, 48 bit */
    /* Requests of the program to the engine; 0 = none. The last call wins, as in BMv2. */
    uint32_t clone_session;      /* session id, or'ed with PLAIT_CLONE_REQUESTED */
    uint32_t clone_field_list;
    uint32_t resubmit_field_list;    /* field list id + 1 */
    uint32_t recirculate_field_list; /* field list id + 1 */
    uint32_t digest_list;            /* learn list id */
    uint32_t truncate_to;            /* bytes + 1 */
};
#define PLAIT_CLONE_REQUESTED 0x80000000u
#define PLAIT_DROP_PORT 511u /* default of --drop-port */

struct plait_packet {
    uint8_t *data;           /* first byte of the frame; at least PLAIT_HEADROOM bytes are writable before it */
    uint32_t length;         /* bytes from data */
    uint32_t arrival_length; /* bytes when it arrived: what counters and meters count */
    uint32_t payload_offset; /* set by parse: bytes of data that were extracted */
    void *phv;               /* pipeline->phv_size bytes, 16-byte aligned, zeroed before parse */
    struct plait_std std;
};

/* ------------------------------------------------------------------------------------------------------------
 * Tables and arrays: layout shared by engine and generated code */

enum plait_match { PLAIT_EXACT, PLAIT_LPM, PLAIT_TERNARY, PLAIT_RANGE, PLAIT_OPTIONAL };
enum plait_table_kind { PLAIT_TABLE_SIMPLE, PLAIT_TABLE_INDIRECT, PLAIT_TABLE_INDIRECT_SELECTOR };

/* What a hit runs: an action and its data. Also a member of an action profile and a table's default. */
struct plait_action_data {
    uint32_t action;     /* index into pipeline->actions */
    uint32_t reserved;
    uint64_t params[];   /* the action's parameters at the offsets of its plait_param_desc */
};

struct plait_group {
    uint32_t size;                            /* members, repeated by weight; may be 0 */
    struct plait_action_data **members;       /* ordered by handle */
};

struct plait_entry {
    const struct plait_action_data *data; /* the action to run; NULL if `group` decides, or on an empty default */
    const struct plait_group *group;      /* indirect tables with a selector, else NULL */
    uint64_t packets, bytes;              /* direct counter; counted by the generated code on a hit */
    uint64_t last_hit_ns;                 /* for idle timeouts */
    void *meter;                          /* direct meter, or NULL */
};

struct plait_table {
    struct plait_entry *default_entry;    /* never NULL; its data may be NULL: then nothing runs on a miss */
    /* Private to the engine from here on. */
    void *impl;
};

struct plait_counter_cell { uint64_t packets, bytes; };

/* Cells of a register are 8-byte integers up to 64 bits of width, else big-endian strings of cell_bytes. A bound
 * register (plait.queue_bytes, plait.queue_packets, plait.port_up) points into the traffic manager's live state. */
struct plait_register { uint8_t *cells; uint32_t size; uint32_t cell_bytes; };

struct plait_counter { struct plait_counter_cell *cells; uint32_t size; };
/* Meter cell i starts i * PLAIT_METER_CELL_BYTES into cells; what is inside is the engine's. */
#define PLAIT_METER_CELL_BYTES 128
struct plait_meter { void *cells; uint32_t size; };

/* ------------------------------------------------------------------------------------------------------------
 * Services of the engine to generated code, one table of functions so that a program links against nothing */

struct plait_instance;

struct plait_runtime {
    /* The entry that matches `key` (table->key_bytes bytes: each field padded to whole bytes, in order), or NULL. */
    struct plait_entry *(*lookup)(const struct plait_table *table, const uint8_t *key);
    /* Uniform in [low, high]; the fabric's seeded generator. Precondition low <= high. */
    uint64_t (*random)(struct plait_instance *instance, uint64_t low, uint64_t high);
    /* Color (0 green, 1 yellow, 2 red) of an indirect or direct meter cell; a NULL cell is green. */
    uint32_t (*meter_execute)(struct plait_instance *instance, void *cell, const struct plait_packet *packet);
    /* Sends digest `list` with `length` bytes of packed fields to the control plane. */
    void (*digest)(struct plait_instance *instance, uint32_t list, const uint8_t *fields, uint32_t length);
    void (*log)(struct plait_instance *instance, const char *text);
};

struct plait_instance {
    const struct plait_pipeline *pipeline;
    const struct plait_runtime *runtime;
    struct plait_table **tables;       /* by index of pipeline->tables; likewise below */
    struct plait_counter *counters;
    struct plait_register *registers;
    struct plait_meter *meters;
    uint64_t now_us;                   /* engine's clock when the current packet is processed */
    uint64_t now_ns;
    uint32_t drop_port;                /* what mark_to_drop assigns: --drop-port, PLAIT_DROP_PORT by default */
};

/* ------------------------------------------------------------------------------------------------------------
 * Description of a program */

/* Storage of an action parameter: at `offset` bytes in params, always 8-byte aligned; widths <= 64 as uint64_t,
 * wider ones as a big-endian string of (width + 7) / 8 bytes. */
struct plait_param_desc { const char *name; uint32_t width; uint32_t offset; };

struct plait_action_desc {
    const char *name;                     /* as in the JSON, which is the P4Info name */
    uint32_t id;                          /* as in the JSON: several actions may share a name */
    uint32_t n_params, params_bytes;
    const struct plait_param_desc *params;
};

struct plait_key_desc { const char *name; enum plait_match match; uint32_t width; uint32_t offset; };

struct plait_table_desc {
    const char *name;
    enum plait_table_kind kind;
    uint32_t size;                        /* entries that are guaranteed to fit */
    uint32_t n_keys, key_bytes;
    const struct plait_key_desc *keys;
    bool with_counters, support_timeout;
    int32_t direct_meter;                 /* index into meters or -1 */
};

struct plait_array_desc {                 /* counters, registers, meters */
    const char *name;
    uint32_t size;
    uint32_t width;                       /* registers: bits of a cell; meters: 0 bytes, 1 packets */
    bool direct;                          /* direct counters and meters live in table entries: size 0 here */
};

struct plait_learn_desc { uint32_t id; uint32_t n_fields; const uint32_t *widths; };

struct plait_pipeline {
    uint32_t abi;                         /* PLAIT_PIPELINE_ABI: refused on load if it differs */
    uint32_t phv_size;                    /* bytes */
    const char *program;
    uint32_t n_tables, n_actions, n_counters, n_registers, n_meters, n_learn;
    const struct plait_table_desc *tables;
    const struct plait_action_desc *actions;
    const struct plait_array_desc *counters, *registers, *meters;
    const struct plait_learn_desc *learn;

    /* Each works on one packet and never fails: a parser error is std.parser_error, and processing goes on. */
    void (*parse)(struct plait_instance *instance, struct plait_packet *packet);
    void (*ingress)(struct plait_instance *instance, struct plait_packet *packet);
    void (*egress)(struct plait_instance *instance, struct plait_packet *packet);
    /* Rewrites packet->data and packet->length from the PHV; applies truncate_to. */
    void (*deparse)(struct plait_instance *instance, struct plait_packet *packet);
    /* Copies to `to` (a zeroed PHV) the metadata fields of a field list: what survives clone, resubmit, recirculate. */
    void (*copy_field_list)(uint32_t field_list, void *to, const void *from);
    /* Zeroes user metadata and locals, keeps headers: BMv2 does so to clones after they were parsed. May be NULL,
     * then clones keep what the parser (I2E) or egress (E2E) left in the PHV, and field lists change nothing. */
    void (*reset_metadata)(void *phv);
};

#endif
