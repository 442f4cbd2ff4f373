#include "interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "error.h"
#include "pfc.h"
#include "switch.h"

#define SOCKET_BUFFER (16 << 20)
#define RETRY_NS      50000u
#define CLOSERS       16u
#define VLAN_BYTES    4u
#define VNET_BYTES    ((uint32_t)sizeof(struct virtio_net_hdr))
#define CONTROL_BYTES CMSG_SPACE(sizeof(struct tpacket_auxdata))

struct plait_interface_batch {
    struct mmsghdr messages[PLAIT_INTERFACE_BATCH];
    struct iovec vectors[PLAIT_INTERFACE_BATCH];
    _Alignas(8) uint8_t control[PLAIT_INTERFACE_BATCH][CONTROL_BYTES];
    uint8_t nowhere[VNET_BYTES];
    struct plait_pkt *packets[PLAIT_INTERFACE_BATCH]; /* always full between calls, short of memory */
    struct mmsghdr out_messages[PLAIT_INTERFACE_BATCH];
    struct iovec out_vectors[PLAIT_INTERFACE_BATCH];
};

int plait_packet_socket(const char *name, int protocol, int *opened, struct plait_error *error)
{
    unsigned index = if_nametoindex(name);
    if (!index)
        return plait_fail_system(error, ENODEV, "interface %s: %s", name, strerror(errno));
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return plait_fail_system(error, errno, "packet socket for interface %s: %s", name, strerror(errno));
    int size = SOCKET_BUFFER;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons((uint16_t)protocol), .sll_ifindex = (int)index};
    if (bind(fd, (struct sockaddr *)&address, sizeof address)) {
        int code = errno;
        close(fd);
        return plait_fail_system(error, code, "bind to interface %s: %s", name, strerror(code));
    }
    *opened = fd;
    return 0;
}

/* Everything on the wire, but not what we send ourselves; offload state with each frame. */
static int open_in(struct plait_interface *interface, struct plait_error *error)
{
    int one = 1, result = plait_packet_socket(interface->name, 0, &interface->fd_in, error);
    if (result)
        return result;
    unsigned index = if_nametoindex(interface->name);
    struct packet_mreq promiscuous = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
    const char *step = NULL;
    if (setsockopt(interface->fd_in, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one))
        step = "PACKET_IGNORE_OUTGOING";
    else if (setsockopt(interface->fd_in, SOL_PACKET, PACKET_AUXDATA, &one, sizeof one))
        step = "PACKET_AUXDATA";
    else if (setsockopt(interface->fd_in, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one))
        step = "PACKET_VNET_HDR";
    else if (setsockopt(interface->fd_in, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous))
        step = "promiscuous mode";
    else if (bind(interface->fd_in, (struct sockaddr *)&address, sizeof address))
        step = "bind";
    return step ? plait_fail_system(error, errno, "interface %s: %s: %s", interface->name, step, strerror(errno)) : 0;
}

void plait_interface_address(const struct plait_interface *interface, uint8_t address[6])
{
    struct sockaddr_ll bound = {0};
    socklen_t length = sizeof bound;
    if (!getsockname(interface->fd_in, (struct sockaddr *)&bound, &length) && bound.sll_halen == 6)
        memcpy(address, bound.sll_addr, 6);
}

void plait_interface_activate(struct plait_interface *interface)
{
    if (!interface->active) {
        interface->active = true;
        interface->next_active = interface->fabric->active_interfaces;
        interface->fabric->active_interfaces = interface;
    }
}

static void retry(void *context)
{
    struct plait_interface *interface = context;
    interface->out_blocked = false;
    plait_interface_activate(interface);
}

static void prepare(struct plait_interface *interface, uint32_t i)
{
    struct plait_interface_batch *batch = interface->batch;
    if (!batch->packets[i])
        batch->packets[i] = plait_pool_get(&interface->fabric->pool);
    struct plait_pkt *pkt = batch->packets[i];
    /* The virtio_net_hdr goes into the headroom; one byte more than allowed tells an oversize frame from one that fits.
     */
    batch->vectors[i] = pkt ? (struct iovec){pkt->packet.data - VNET_BYTES, VNET_BYTES + PLAIT_MAX_FRAME + 1}
                            : (struct iovec){batch->nowhere, VNET_BYTES};
    batch->messages[i].msg_hdr = (struct msghdr){.msg_iov = &batch->vectors[i],
                                                 .msg_iovlen = 1,
                                                 .msg_control = batch->control[i],
                                                 .msg_controllen = CONTROL_BYTES};
}

int plait_interface_open(struct plait_fabric *fabric, const char *name, struct plait_interface **opened,
                         struct plait_error *error)
{
    struct plait_interface *interface = calloc(1, sizeof *interface);
    if (!interface || !(interface->batch = calloc(1, sizeof *interface->batch))) {
        free(interface);
        return plait_fail(error, ENOMEM, "no memory for interface %s", name);
    }
    interface->fabric = fabric;
    interface->fd_in = interface->fd_out = -1;
    snprintf(interface->name, sizeof interface->name, "%s", name);
    int one = 1, result = 0;
    if (plait_port_init(&interface->port, &fabric->events, &fabric->pool, 1) ||
        plait_event_init(&fabric->events, &interface->retry, retry, interface))
        result = plait_fail(error, ENOMEM, "no memory for interface %s", name);
    interface->port.one_class = true;
    if (!result)
        result = open_in(interface, error);
    if (!result)
        result = plait_packet_socket(name, 0, &interface->fd_out, error);
    if (!result)
        /* Best effort: without it frames pass a qdisc, which only costs time. */
        setsockopt(interface->fd_out, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
    struct epoll_event in = {.events = EPOLLIN, .data.ptr = interface};
    if (!result && epoll_ctl(fabric->epoll_fd, EPOLL_CTL_ADD, interface->fd_in, &in))
        result = plait_fail_system(error, errno, "epoll for interface %s: %s", name, strerror(errno));
    if (result) {
        plait_interface_free(interface);
        return result;
    }
    for (uint32_t i = 0; i < PLAIT_INTERFACE_BATCH; i++)
        prepare(interface, i);
    interface->next = fabric->interfaces;
    fabric->interfaces = interface;
    *opened = interface;
    return 0;
}

static void close_sockets(struct plait_interface *interface)
{
    if (interface->fd_in >= 0)
        close(interface->fd_in); /* leaves the epoll set as well */
    if (interface->fd_out >= 0)
        close(interface->fd_out);
    interface->fd_in = interface->fd_out = -1;
}

struct closer {
    pthread_t thread;
    bool started;
    struct plait_interface *interfaces;
    uint32_t which; /* those with this index, modulo CLOSERS */
};

static void *close_some(void *context)
{
    struct closer *closer = context;
    uint32_t i = 0;
    for (struct plait_interface *at = closer->interfaces; at; at = at->next)
        if (i++ % CLOSERS == closer->which)
            close_sockets(at);
    return NULL;
}

/* The kernel makes each close of a packet socket wait for an RCU grace period, 10 ms and more; closes that wait at the
 * same time share one. */
void plait_interfaces_close(struct plait_fabric *fabric)
{
    struct closer closers[CLOSERS];
    for (uint32_t i = 0; i < CLOSERS; i++) {
        closers[i] = (struct closer){.interfaces = fabric->interfaces, .which = i};
        closers[i].started = pthread_create(&closers[i].thread, NULL, close_some, &closers[i]) == 0;
    }
    for (uint32_t i = 0; i < CLOSERS; i++)
        if (closers[i].started)
            pthread_join(closers[i].thread, NULL);
        else
            close_some(&closers[i]);
}

void plait_interface_free(struct plait_interface *interface)
{
    if (!interface)
        return;
    struct plait_fabric *fabric = interface->fabric;
    for (struct plait_interface **at = &fabric->interfaces; *at; at = &(*at)->next)
        if (*at == interface) {
            *at = interface->next;
            break;
        }
    close_sockets(interface);
    for (uint32_t i = 0; i < PLAIT_INTERFACE_BATCH; i++)
        if (interface->batch->packets[i])
            plait_pool_put(&fabric->pool, interface->batch->packets[i]);
    plait_list_free(&interface->out, &fabric->pool);
    if (interface->port.events)
        plait_port_free(&interface->port);
    plait_event_release(&fabric->events, &interface->retry);
    free(interface->batch);
    free(interface);
}

/* ------------------------------------------------------------------------------------------------------------
 * In */

/* Puts a VLAN tag back that the kernel had moved beside the frame. */
static void restore_vlan(struct plait_pkt *pkt, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
            continue;
        struct tpacket_auxdata aux;
        memcpy(&aux, CMSG_DATA(c), sizeof aux);
        if (!(aux.tp_status & TP_STATUS_VLAN_VALID) || pkt->packet.length < 2 * ETH_ALEN)
            return;
        uint16_t tpid = aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid : ETH_P_8021Q;
        uint8_t *data = pkt->packet.data - VLAN_BYTES;
        memmove(data, pkt->packet.data, 2 * ETH_ALEN);
        data[12] = (uint8_t)(tpid >> 8);
        data[13] = (uint8_t)tpid;
        data[14] = (uint8_t)(aux.tp_vlan_tci >> 8);
        data[15] = (uint8_t)aux.tp_vlan_tci;
        pkt->packet.data = data;
        pkt->packet.length += VLAN_BYTES;
        return;
    }
}

/* Writes the Internet checksum from csum_start on, where the sender left the pseudo-header's sum. */
static bool complete_checksum(struct plait_pkt *pkt, const struct virtio_net_hdr *header)
{
    uint8_t *data = pkt->packet.data;
    uint32_t length = pkt->packet.length, start = header->csum_start;
    if (start >= length || header->csum_offset + 2u > length - start)
        return false;
    uint64_t sum = 0;
    uint32_t i = start;
    for (; i + 1 < length; i += 2)
        sum += (uint32_t)data[i] << 8 | data[i + 1];
    if (i < length)
        sum += (uint32_t)data[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    uint16_t checksum = (uint16_t)~sum;
    uint8_t *field = data + start + header->csum_offset;
    /* UDP says "no checksum" by 0; 0xffff is the same number. */
    if (checksum == 0 && header->csum_offset == 6)
        checksum = 0xffff;
    field[0] = (uint8_t)(checksum >> 8);
    field[1] = (uint8_t)checksum;
    return true;
}

static void take_frame(struct plait_interface *interface, uint32_t i)
{
    struct plait_interface_batch *batch = interface->batch;
    struct plait_pkt *pkt = batch->packets[i];
    uint32_t received = batch->messages[i].msg_len;
    interface->stats.received++;
    if (!pkt) { /* the pool was empty when the batch was prepared */
        interface->stats.drops_memory++;
        return;
    }
    struct virtio_net_hdr header;
    memcpy(&header, pkt->packet.data - VNET_BYTES, sizeof header);
    if (received < VNET_BYTES || (batch->messages[i].msg_hdr.msg_flags & MSG_TRUNC) ||
        received - VNET_BYTES > PLAIT_MAX_FRAME || header.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
        interface->stats.drops_oversize++;
        return; /* the packet serves the next batch */
    }
    pkt->packet.length = received - VNET_BYTES;
    if (header.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
        interface->stats.checksums_completed += complete_checksum(pkt, &header);
    restore_vlan(pkt, &batch->messages[i].msg_hdr);
    if (pkt->packet.length > PLAIT_MAX_FRAME) {
        interface->stats.drops_oversize++;
        pkt->packet.data = pkt->buffer + PLAIT_HEADROOM;
        return;
    }
    batch->packets[i] = NULL;
    if (interface->sw->lossless && plait_is_mac_control(pkt))
        plait_port_send_control(&interface->port, pkt);
    else if (!plait_port_enqueue(&interface->port, 0, pkt))
        plait_pool_put(&interface->fabric->pool, pkt); /* counted by the port */
}

uint32_t plait_interface_receive(struct plait_interface *interface)
{
    struct plait_interface_batch *batch = interface->batch;
    int count = recvmmsg(interface->fd_in, batch->messages, PLAIT_INTERFACE_BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
    if (count <= 0) {
        interface->readable = false;
        return 0;
    }
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        take_frame(interface, i);
        prepare(interface, i);
        plait_fabric_yield(interface->fabric);
    }
    interface->readable = (uint32_t)count == PLAIT_INTERFACE_BATCH;
    return (uint32_t)count;
}

void plait_interface_read_kernel_drops(struct plait_interface *interface)
{
    struct tpacket_stats stats;
    socklen_t length = sizeof stats;
    if (getsockopt(interface->fd_in, SOL_PACKET, PACKET_STATISTICS, &stats, &length) == 0)
        interface->stats.drops_kernel += stats.tp_drops; /* reading resets the kernel's count */
}

/* ------------------------------------------------------------------------------------------------------------
 * Out */

void plait_interface_send(void *context, uint32_t port, struct plait_pkt *pkt)
{
    struct plait_interface *interface = context;
    (void)port;
    if (__builtin_expect(interface->sw->lossless != 0, 0) && plait_is_mac_control(pkt))
        plait_pause_obey(&interface->port, pkt, interface->sw->lossless);
    if (interface->out_length >= PLAIT_INTERFACE_BACKLOG) {
        interface->stats.drops_send++;
        plait_pool_put(&interface->fabric->pool, pkt);
        return;
    }
    plait_list_append(&interface->out, pkt);
    plait_interface_activate(interface);
    if (++interface->out_length >= PLAIT_INTERFACE_BATCH)
        plait_interface_flush(interface);
}

static bool is_temporary(int code) { return code == EAGAIN || code == ENOBUFS || code == EINTR || code == ENOMEM; }

void plait_interface_flush(struct plait_interface *interface)
{
    struct plait_interface_batch *batch = interface->batch;
    while (interface->out.head && !interface->out_blocked) {
        uint32_t count = 0;
        for (struct plait_pkt *pkt = interface->out.head; pkt && count < PLAIT_INTERFACE_BATCH; pkt = pkt->next) {
            batch->out_vectors[count] = (struct iovec){pkt->packet.data, pkt->packet.length};
            batch->out_messages[count].msg_hdr =
                (struct msghdr){.msg_iov = &batch->out_vectors[count], .msg_iovlen = 1};
            count++;
        }
        int sent = sendmmsg(interface->fd_out, batch->out_messages, count, MSG_DONTWAIT);
        if (sent < 0 && is_temporary(errno)) {
            interface->stats.send_retries++;
            interface->out_blocked = true;
            plait_event_schedule(&interface->fabric->events, &interface->retry,
                                 interface->fabric->events.now + RETRY_NS);
            break;
        }
        if (sent < 0) { /* this frame is refused for good: too long for the interface, interface down or gone */
            interface->stats.drops_send++;
            sent = 1;
        } else {
            interface->stats.sent += (uint32_t)sent;
        }
        for (int i = 0; i < sent; i++) {
            plait_pool_put(&interface->fabric->pool, plait_list_take(&interface->out));
            interface->out_length--;
        }
    }
}
