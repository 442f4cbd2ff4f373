// Packets and bytes per port, both directions, and per queue, read over P4Runtime.

#ifndef PLAIT_PORT_COUNTERS_P4
#define PLAIT_PORT_COUNTERS_P4

#define PORT_COUNT 512   // every value of a bit<9> port

control port_rx_counters(in standard_metadata_t standard_metadata) {
    counter(PORT_COUNT, CounterType.packets_and_bytes) port_rx;

    apply {
        port_rx.count((bit<32>)standard_metadata.ingress_port);
    }
}  // control port_rx_counters

control port_tx_counters(in standard_metadata_t standard_metadata) {
    counter(PORT_COUNT, CounterType.packets_and_bytes) port_tx;
    counter(8 * PORT_COUNT, CounterType.packets_and_bytes) queue_tx;   // by port * 8 + priority

    apply {
        port_tx.count((bit<32>)standard_metadata.egress_port);
        queue_tx.count((bit<32>)(standard_metadata.egress_port ++ standard_metadata.priority));
    }
}  // control port_tx_counters

#endif
