/* Do not edit; generated from p4src/include/headers.p4 and p4src/include/codes.p4 by wire/generate.py. */
#ifndef PLAIT_WIRE_NAMES_H
#define PLAIT_WIRE_NAMES_H

#include "wire.h"

/* Names of codes for user-space C; a code without a name gives "UNKNOWN". */

static inline const char *wire_ether_type_name(unsigned code)
{
	switch (code) {
	case WIRE_ETHER_TYPE_IPV4:
		return "IPV4";
	case WIRE_ETHER_TYPE_ARP:
		return "ARP";
	case WIRE_ETHER_TYPE_MAC_CTRL:
		return "MAC_CTRL";
	case WIRE_ETHER_TYPE_LLDP:
		return "LLDP";
	}
	return "UNKNOWN";
}

static inline const char *wire_ip_proto_name(unsigned code)
{
	switch (code) {
	case WIRE_IP_PROTO_ICMP:
		return "ICMP";
	case WIRE_IP_PROTO_TCP:
		return "TCP";
	case WIRE_IP_PROTO_UDP:
		return "UDP";
	}
	return "UNKNOWN";
}

static inline const char *wire_ecn_name(unsigned code)
{
	switch (code) {
	case WIRE_ECN_NOT_ECT:
		return "NOT_ECT";
	case WIRE_ECN_ECT_1:
		return "ECT_1";
	case WIRE_ECN_ECT_0:
		return "ECT_0";
	case WIRE_ECN_CE:
		return "CE";
	}
	return "UNKNOWN";
}

static inline const char *wire_bth_opcode_name(unsigned code)
{
	switch (code) {
	case WIRE_BTH_OPCODE_RC_SEND_FIRST:
		return "RC_SEND_FIRST";
	case WIRE_BTH_OPCODE_RC_SEND_MIDDLE:
		return "RC_SEND_MIDDLE";
	case WIRE_BTH_OPCODE_RC_SEND_LAST:
		return "RC_SEND_LAST";
	case WIRE_BTH_OPCODE_RC_SEND_LAST_IMM:
		return "RC_SEND_LAST_IMM";
	case WIRE_BTH_OPCODE_RC_SEND_ONLY:
		return "RC_SEND_ONLY";
	case WIRE_BTH_OPCODE_RC_SEND_ONLY_IMM:
		return "RC_SEND_ONLY_IMM";
	case WIRE_BTH_OPCODE_RC_WRITE_FIRST:
		return "RC_WRITE_FIRST";
	case WIRE_BTH_OPCODE_RC_WRITE_MIDDLE:
		return "RC_WRITE_MIDDLE";
	case WIRE_BTH_OPCODE_RC_WRITE_LAST:
		return "RC_WRITE_LAST";
	case WIRE_BTH_OPCODE_RC_WRITE_LAST_IMM:
		return "RC_WRITE_LAST_IMM";
	case WIRE_BTH_OPCODE_RC_WRITE_ONLY:
		return "RC_WRITE_ONLY";
	case WIRE_BTH_OPCODE_RC_WRITE_ONLY_IMM:
		return "RC_WRITE_ONLY_IMM";
	case WIRE_BTH_OPCODE_RC_READ_REQUEST:
		return "RC_READ_REQUEST";
	case WIRE_BTH_OPCODE_RC_READ_RESPONSE_FIRST:
		return "RC_READ_RESPONSE_FIRST";
	case WIRE_BTH_OPCODE_RC_READ_RESPONSE_MIDDLE:
		return "RC_READ_RESPONSE_MIDDLE";
	case WIRE_BTH_OPCODE_RC_READ_RESPONSE_LAST:
		return "RC_READ_RESPONSE_LAST";
	case WIRE_BTH_OPCODE_RC_READ_RESPONSE_ONLY:
		return "RC_READ_RESPONSE_ONLY";
	case WIRE_BTH_OPCODE_RC_ACKNOWLEDGE:
		return "RC_ACKNOWLEDGE";
	case WIRE_BTH_OPCODE_RC_ATOMIC_ACKNOWLEDGE:
		return "RC_ATOMIC_ACKNOWLEDGE";
	case WIRE_BTH_OPCODE_RC_COMPARE_SWAP:
		return "RC_COMPARE_SWAP";
	case WIRE_BTH_OPCODE_RC_FETCH_ADD:
		return "RC_FETCH_ADD";
	case WIRE_BTH_OPCODE_RC_SEND_LAST_INVALIDATE:
		return "RC_SEND_LAST_INVALIDATE";
	case WIRE_BTH_OPCODE_RC_SEND_ONLY_INVALIDATE:
		return "RC_SEND_ONLY_INVALIDATE";
	case WIRE_BTH_OPCODE_RC_READ_ACKNOWLEDGE:
		return "RC_READ_ACKNOWLEDGE";
	case WIRE_BTH_OPCODE_CNP:
		return "CNP";
	}
	return "UNKNOWN";
}

static inline const char *wire_bth_extension_name(unsigned code)
{
	switch (code) {
	case WIRE_BTH_EXTENSION_NONE:
		return "NONE";
	case WIRE_BTH_EXTENSION_DATA:
		return "DATA";
	case WIRE_BTH_EXTENSION_ACK:
		return "ACK";
	}
	return "UNKNOWN";
}

static inline const char *wire_aeth_kind_name(unsigned code)
{
	switch (code) {
	case WIRE_AETH_KIND_ACK:
		return "ACK";
	case WIRE_AETH_KIND_RNR_NAK:
		return "RNR_NAK";
	case WIRE_AETH_KIND_NAK:
		return "NAK";
	}
	return "UNKNOWN";
}

static inline const char *wire_nak_code_name(unsigned code)
{
	switch (code) {
	case WIRE_NAK_CODE_PSN_SEQUENCE_ERROR:
		return "PSN_SEQUENCE_ERROR";
	case WIRE_NAK_CODE_INVALID_REQUEST:
		return "INVALID_REQUEST";
	case WIRE_NAK_CODE_REMOTE_ACCESS_ERROR:
		return "REMOTE_ACCESS_ERROR";
	case WIRE_NAK_CODE_REMOTE_OPERATIONAL_ERROR:
		return "REMOTE_OPERATIONAL_ERROR";
	case WIRE_NAK_CODE_INVALID_RD_REQUEST:
		return "INVALID_RD_REQUEST";
	}
	return "UNKNOWN";
}

static inline const char *wire_nic_event_name(unsigned code)
{
	switch (code) {
	case WIRE_NIC_EVENT_PASSED_TO_KERNEL:
		return "PASSED_TO_KERNEL";
	case WIRE_NIC_EVENT_REQUEST_PLACED:
		return "REQUEST_PLACED";
	case WIRE_NIC_EVENT_REQUEST_DUPLICATE:
		return "REQUEST_DUPLICATE";
	case WIRE_NIC_EVENT_REQUEST_SEQ_ERROR:
		return "REQUEST_SEQ_ERROR";
	case WIRE_NIC_EVENT_ACK_RECEIVED:
		return "ACK_RECEIVED";
	case WIRE_NIC_EVENT_NAK_RECEIVED:
		return "NAK_RECEIVED";
	case WIRE_NIC_EVENT_ACK_STALE:
		return "ACK_STALE";
	case WIRE_NIC_EVENT_DROP_TRUNCATED:
		return "DROP_TRUNCATED";
	case WIRE_NIC_EVENT_DROP_BAD_HEADER:
		return "DROP_BAD_HEADER";
	case WIRE_NIC_EVENT_DROP_UNKNOWN_QP:
		return "DROP_UNKNOWN_QP";
	case WIRE_NIC_EVENT_DROP_WRONG_PEER:
		return "DROP_WRONG_PEER";
	case WIRE_NIC_EVENT_DROP_QP_STATE:
		return "DROP_QP_STATE";
	case WIRE_NIC_EVENT_DROP_BAD_OPCODE:
		return "DROP_BAD_OPCODE";
	case WIRE_NIC_EVENT_NAK_OPCODE_SEQ:
		return "NAK_OPCODE_SEQ";
	case WIRE_NIC_EVENT_NAK_LENGTH:
		return "NAK_LENGTH";
	case WIRE_NIC_EVENT_NAK_RKEY:
		return "NAK_RKEY";
	case WIRE_NIC_EVENT_NAK_BOUNDS:
		return "NAK_BOUNDS";
	case WIRE_NIC_EVENT_CNP_RECEIVED:
		return "CNP_RECEIVED";
	case WIRE_NIC_EVENT_REQUEST_OUT_OF_ORDER:
		return "REQUEST_OUT_OF_ORDER";
	case WIRE_NIC_EVENT_REQUEST_BEYOND:
		return "REQUEST_BEYOND";
	case WIRE_NIC_EVENT_REQUEST_NO_BITMAP:
		return "REQUEST_NO_BITMAP";
	case WIRE_NIC_EVENT_REQUEST_EARLY_FAULT:
		return "REQUEST_EARLY_FAULT";
	case WIRE_NIC_EVENT_SYNCHRONISE_REFUSED:
		return "SYNCHRONISE_REFUSED";
	case WIRE_NIC_EVENT_RNR_NAK_SENT:
		return "RNR_NAK_SENT";
	case WIRE_NIC_EVENT_RESPONSE_PLACED:
		return "RESPONSE_PLACED";
	case WIRE_NIC_EVENT_RESPONSE_OUT_OF_ORDER:
		return "RESPONSE_OUT_OF_ORDER";
	case WIRE_NIC_EVENT_RESPONSE_DUPLICATE:
		return "RESPONSE_DUPLICATE";
	case WIRE_NIC_EVENT_RESPONSE_SEQ_ERROR:
		return "RESPONSE_SEQ_ERROR";
	case WIRE_NIC_EVENT_SACK_RECEIVED:
		return "SACK_RECEIVED";
	case WIRE_NIC_EVENT_DROP_BAD_ICRC:
		return "DROP_BAD_ICRC";
	case WIRE_NIC_EVENT_PAUSE_RECEIVED:
		return "PAUSE_RECEIVED";
	}
	return "UNKNOWN";
}

static inline const char *wire_qp_state_name(unsigned code)
{
	switch (code) {
	case WIRE_QP_STATE_RESET:
		return "RESET";
	case WIRE_QP_STATE_INIT:
		return "INIT";
	case WIRE_QP_STATE_RTR:
		return "RTR";
	case WIRE_QP_STATE_RTS:
		return "RTS";
	case WIRE_QP_STATE_SQE:
		return "SQE";
	case WIRE_QP_STATE_ERROR:
		return "ERROR";
	}
	return "UNKNOWN";
}

#endif
