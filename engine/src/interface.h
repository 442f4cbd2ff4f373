/* An AF_PACKET interface as the far end of a link.
 *
 * In: recvmmsg in batches into pool packets; a VLAN tag that the kernel took off is put back, a checksum that a local
 * sender left to its "hardware" (CHECKSUM_PARTIAL, told by virtio_net_hdr) is completed, a super-frame (TSO, UFO) or a
 * frame beyond PLAIT_MAX_FRAME is dropped and counted: turn segmentation offload off at the sender
 * (`ethtool -K <its interface> tso off gso off`).  Frames then pass `port`, which serialises them at the link's rate
 * from a bounded queue, as the peer's NIC would.  With priority flow control on the switch that NIC obeys the pauses
 * which the peer is sent: having one queue, it stops for a pause of any class; what the peer's MAC sends itself passes
 * by the queue. Out: sendmmsg in batches from `out`.  When the kernel has no room the
 * rest waits and is tried again; what exceeds PLAIT_INTERFACE_BACKLOG is dropped and counted.
 *
 * Invariant: every frame read or given is delivered, waiting, or in one of the drop counters.
 */
#ifndef PLAIT_INTERFACE_H
#define PLAIT_INTERFACE_H

#include "api.h"
#include "fabric.h"
#include "tm.h"

#define PLAIT_INTERFACE_BATCH   64u
#define PLAIT_INTERFACE_BACKLOG 4096u

struct plait_interface {
    struct plait_fabric *fabric;
    struct plait_interface *next;
    struct plait_interface *next_active; /* in the loop's list of interfaces with something to do */
    bool active;
    char name[16];
    int fd_in, fd_out;
    bool readable;          /* the last poll or a full batch says that there is more */
    struct plait_port port; /* the peer's NIC queue, feeds wire 1 */
    const struct plait_switch *sw; /* what the link leads to */
    struct plait_list out;
    uint32_t out_length;
    bool out_blocked; /* the kernel had no room; `retry` ends it */
    struct plait_event retry;
    struct plait_interface_stats stats;
    struct plait_interface_batch *batch;
};

int plait_interface_open(struct plait_fabric *fabric, const char *name, struct plait_interface **interface,
                         struct plait_error *error);
void plait_interface_free(struct plait_interface *interface);
/* The interface's own address, where it has one of six bytes; else `address` stays. */
void plait_interface_address(const struct plait_interface *interface, uint8_t address[6]);
/* Closes the sockets of all interfaces; they are only to be freed afterwards. */
void plait_interfaces_close(struct plait_fabric *fabric);
/* As plait_wire.deliver: queues for the next flush. */
void plait_interface_send(void *interface, uint32_t port, struct plait_pkt *pkt);
/* Puts it on the loop's list, where it stays until a turn finds it neither readable nor with frames to send. */
void plait_interface_activate(struct plait_interface *interface);
/* Reads one batch, returns how many frames. */
uint32_t plait_interface_receive(struct plait_interface *interface);
void plait_interface_flush(struct plait_interface *interface);
void plait_interface_read_kernel_drops(struct plait_interface *interface);
/* A packet socket bound to `name`; protocol 0 receives nothing. */
int plait_packet_socket(const char *name, int protocol, int *fd, struct plait_error *error);

#endif
