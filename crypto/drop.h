/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_DROP_H
#define CRYPTO_DROP_H

/* Every reason to drop a packet. The value is a counter's index, the word its metrics label.
 * A new way to drop gets a new reason, never a shared "error". */

#define DROP_REASONS(X)                                                                            \
	X(NONE, "none")                                                                            \
	X(SHORT, "short")                                                                          \
	X(BAD_OPCODE, "bad_opcode")                                                                \
	X(UNKNOWN_PEER, "unknown_peer")                                                            \
	X(NO_KEY, "no_key")                                                                        \
	X(KEY_EXPIRED, "key_expired")                                                              \
	X(CONTROL_HMAC, "control_hmac")                                                            \
	X(CONTROL_REPLAY, "control_replay")                                                        \
	X(CONTROL_MALFORMED, "control_malformed")                                                  \
	X(CONTROL_SESSION, "control_session")                                                      \
	X(COOKIE, "cookie")                                                                        \
	X(DECRYPT, "decrypt")                                                                      \
	X(REPLAY_DUPLICATE, "replay_duplicate")                                                    \
	X(REPLAY_OLD, "replay_old")                                                                \
	X(SOURCE_SPOOFED, "source_spoofed")                                                        \
	X(NO_ROUTE, "no_route")                                                                    \
	X(CLIENT_TO_CLIENT_DENIED, "client_to_client_denied")                                      \
	X(BAD_IP, "bad_ip")                                                                        \
	X(MTU, "mtu")                                                                              \
	X(FRAGMENT, "fragment")                                                                    \
	X(DECOMPRESS, "decompress")                                                                \
	X(QUEUE_FULL, "queue_full")                                                                \
	X(HANDOFF_FULL, "handoff_full")                                                            \
	X(BUFFERS, "buffers")                                                                      \
	X(TUN_WRITE, "tun_write")                                                                  \
	X(LINK_SEND, "link_send")                                                                  \
	X(PEER_CLOSING, "peer_closing")                                                            \
	X(RATE_LIMITED, "rate_limited")                                                            \
	X(FOREIGN_SOURCE, "foreign_source")                                                        \
	X(FILTERED, "filtered")

/* clang-format off */
enum drop {
#define X(name, word) DROP_##name,
	DROP_REASONS(X)
#undef X
	DROP_COUNT
};
/* clang-format on */

/* The word of a reason, as in the metrics; `d` < DROP_COUNT. */
const char *drop_name(enum drop d);

#endif
