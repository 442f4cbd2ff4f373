// Which ports are up: PORT_UP(up, port) sets `up` to 1 or 0.
//
// plait-switch binds the register by name to its links. Compiled with PLAIT_FEEDBACK, for a switch that cannot (BMv2),
// the controller names the dead ports.

#ifndef PLAIT_PORT_UP_P4
#define PLAIT_PORT_UP_P4

#include "roce_parser.p4"

#ifdef PLAIT_FEEDBACK

control dead_ports(inout metadata_t meta) {
    action set_dead_ports(bit<256> mask) {
        meta.dead_ports = mask;
    }

    table port_liveness {
        actions = { set_dead_ports; }
        default_action = set_dead_ports(0);
    }

    apply {
        port_liveness.apply();
    }
}  // control dead_ports

#define PORT_UP(up, port) up = (bit<1>)1 ^ (bit<1>)((meta.dead_ports >> (bit<8>)(port)) & 1)

#else

@name("plait.port_up")
register<bit<1>>(512) port_up;

#define PORT_UP(up, port) port_up.read(up, (bit<32>)(port))

#endif

#endif
