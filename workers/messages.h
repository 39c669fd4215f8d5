/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_MESSAGES_H
#define WORKERS_MESSAGES_H

/* Every message between the acceptor (thread 0) and the workers (1..N), with what becomes of the
 * pointer in it. A slot has 16 bytes; key bytes never sit in one. */

#include <assert.h>
#include <stdint.h>

#define ACCEPTOR 0 /* its thread index */

struct buffer;
struct peer;
struct data_key;

enum message_kind {
	MESSAGE_NONE,

	/* acceptor -> worker */
	MESSAGE_PEER_ADD,      /* peer: owned by the worker until MESSAGE_PEER_REMOVED */
	MESSAGE_PEER_REMOVE,   /* peer_id: unlink, forget, then answer MESSAGE_PEER_REMOVED */
	MESSAGE_KEY_INSTALL,   /* peer_id, key: the worker moves the schedules into its slab and
				  answers MESSAGE_KEY_INSTALLED with the same pointer */
	MESSAGE_KEY_SEAL_FROM, /* peer_id, arg = key-id, at_ms: begin to seal with it then;
				  UINT64_MAX: do not */
	MESSAGE_KEY_RETIRE,    /* peer_id, arg = key-id: wipe; no answer */
	MESSAGE_PEER_MOVE, /* peer_id, buffer: take buffer->link as the peer's address; buffer goes
			      home */
	MESSAGE_PATH_MTU,  /* peer_id, path_mtu: what the route to its address takes; 0: unknown */
	MESSAGE_PING,	   /* heartbeat: answer MESSAGE_PONG */
	MESSAGE_STOP,	   /* leave the loop */

	/* worker -> acceptor */
	MESSAGE_CONTROL, /* buffer: a control packet that landed here; the acceptor sends it home */
	MESSAGE_PEER_REMOVED,  /* peer: nothing of it is left here; the acceptor frees it */
	MESSAGE_KEY_INSTALLED, /* peer_id, key: the acceptor frees it; the schedules have moved */
	MESSAGE_FLOAT_REQUEST, /* peer_id, buffer: authenticated data came from buffer->link; answer
				  MESSAGE_PEER_MOVE, or send the buffer home to refuse */
	MESSAGE_PATH_MTU_ASK,  /* peer_id: answer MESSAGE_PATH_MTU */
	MESSAGE_PEER_SILENT,   /* peer_id: nothing received for ping-restart seconds */
	MESSAGE_PEER_EXIT,     /* peer_id: OCC exit message */
	MESSAGE_KEY_EXHAUSTED, /* peer_id, arg = key-id: renegotiate */
	MESSAGE_PONG,
	MESSAGE_FAILED, /* arg = errno: this worker cannot go on */

	/* any -> any */
	MESSAGE_DATAGRAM,    /* buffer: a data packet for a peer that the receiver owns */
	MESSAGE_INNER,	     /* peer_id, buffer: inner packet to seal for a peer of the receiver;
				buffer->generation says which peer was meant. peer_id PEER_ID_NONE: a copy
				for all peers of the receiver but the one named by generation */
	MESSAGE_BUFFER_HOME, /* buffer: a chain by ->next of buffers whose home is the receiver */
};

struct message {
	uint8_t kind; /* enum message_kind */
	uint8_t arg;
	uint16_t from; /* sender's thread index */
	uint32_t peer_id;
	union {
		struct buffer *buffer;
		struct peer *peer;
		struct data_key *key;
		void *pointer;
		uint64_t at_ms; /* CLOCK_BOOTTIME */
		uint32_t path_mtu;
	};
};
static_assert(sizeof(struct message) == 16, "a ring slot has 16 bytes");

#endif
