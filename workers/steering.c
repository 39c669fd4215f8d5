/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/steering.h"

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>

#include "config/config.h"
#include "crypto/packet.h"

/* Offset 0 of the program is the first byte behind the UDP header. A load past the end of the
 * packet ends it with 0, the acceptor. So does everything that is not plainly a data packet: what
 * goes astray is passed on in user space, so it may be late but is not lost. */

#define NETWORK_HEADER ((uint32_t)SKF_NET_OFF)
#define IPV4_SOURCE_AT 12
#define IPV6_NEXT_AT   6
#define IPV6_SOURCE_AT 8
#define IPV6_PORT_AT   40
#define PROTOCOL_UDP   17
#define ADDRESS_WORDS  4 /* of IPv6 */

/* The hash of a source: for each word and the port h = (h + word) * STEP, then a mix that brings
 * the high bits down to where the modulus looks. STEP is odd, so that no bit of the sum gets lost.
 */
#define HASH_STEP	0x9e3779b1u
#define HASH_MIX	0x85ebca6bu
#define HASH_FOLD_FIRST 15
#define HASH_FOLD_LAST	16

#define PROGRAM_MAX 1024 /* the worst slot table takes 3 * 256 */

struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned len;
};

void slot_table_init(struct slot_table *t, unsigned worker_count)
{
	/* In runs, which make a short program. */
	for (unsigned slot = 0; slot < STEERING_SLOTS; slot++)
		t->owner[slot] = (uint8_t)(slot * worker_count / STEERING_SLOTS + 1);
}

static void emit(struct program *p, unsigned code, uint32_t k)
{
	assert(p->len < PROGRAM_MAX);
	p->code[p->len++] = (struct sock_filter){.code = (uint16_t)code, .k = k};
}

/* If A `comparison` k, go to where the returned jump will land, however far that is: a comparison
 * itself reaches only 255 instructions. */
static unsigned emit_go_if(struct program *p, unsigned comparison, uint32_t k)
{
	emit(p, BPF_JMP | comparison | BPF_K, k);
	p->code[p->len - 1].jf = 1;
	emit(p, BPF_JMP | BPF_JA, 0);
	return p->len - 1;
}

static void land(struct program *p, unsigned jump)
{
	p->code[jump].k = p->len - jump - 1;
}

static void emit_return(struct program *p, uint32_t index)
{
	emit(p, BPF_RET | BPF_K, index);
}

/* X = (X + word of the IP header at `at`) * STEP */
static void emit_hash_word(struct program *p, uint32_t at)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, NETWORK_HEADER + at);
	emit(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	emit(p, BPF_ALU | BPF_MUL | BPF_K, HASH_STEP);
	emit(p, BPF_MISC | BPF_TAX, 0);
}

/* A ^= A >> bits */
static void emit_fold(struct program *p, uint32_t bits)
{
	emit(p, BPF_MISC | BPF_TAX, 0);
	emit(p, BPF_ALU | BPF_RSH | BPF_K, bits);
	emit(p, BPF_ALU | BPF_XOR | BPF_X, 0);
}

/* X = hash of the address, A = port: return the worker. */
static void emit_choice(struct program *p, unsigned worker_count)
{
	emit(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	emit(p, BPF_ALU | BPF_MUL | BPF_K, HASH_STEP);
	emit_fold(p, HASH_FOLD_FIRST);
	emit(p, BPF_ALU | BPF_MUL | BPF_K, HASH_MIX);
	emit_fold(p, HASH_FOLD_LAST);
	emit(p, BPF_ALU | BPF_MOD | BPF_K, worker_count);
	emit(p, BPF_ALU | BPF_ADD | BPF_K, 1);
	emit(p, BPF_RET | BPF_A, 0);
}

/* IPv4 options shift the UDP header. M[0] keeps the hash while its place is computed. */
static void emit_source_ipv4(struct program *p, unsigned worker_count)
{
	emit(p, BPF_LDX | BPF_IMM, 0);
	emit_hash_word(p, IPV4_SOURCE_AT);
	emit(p, BPF_STX, 0);
	emit(p, BPF_LD | BPF_B | BPF_ABS, NETWORK_HEADER);
	emit(p, BPF_ALU | BPF_AND | BPF_K, 0xf);
	emit(p, BPF_ALU | BPF_LSH | BPF_K, 2);
	emit(p, BPF_MISC | BPF_TAX, 0);
	emit(p, BPF_LD | BPF_H | BPF_IND, NETWORK_HEADER);
	emit(p, BPF_LDX | BPF_MEM, 0);
	emit_choice(p, worker_count);
}

/* Behind extension headers the port stands elsewhere: such packets go to the acceptor, which passes
 * them on by steering_by_source. */
static void emit_source_ipv6(struct program *p, unsigned worker_count)
{
	emit(p, BPF_LD | BPF_B | BPF_ABS, NETWORK_HEADER + IPV6_NEXT_AT);
	unsigned is_udp = emit_go_if(p, BPF_JEQ, PROTOCOL_UDP);
	emit_return(p, 0);
	land(p, is_udp);
	emit(p, BPF_LDX | BPF_IMM, 0);
	for (uint32_t word = 0; word < ADDRESS_WORDS; word++)
		emit_hash_word(p, IPV6_SOURCE_AT + 4 * word);
	emit(p, BPF_LD | BPF_H | BPF_ABS, NETWORK_HEADER + IPV6_PORT_AT);
	emit_choice(p, worker_count);
}

static void emit_source(struct program *p, unsigned worker_count)
{
	emit(p, BPF_LD | BPF_B | BPF_ABS, NETWORK_HEADER);
	emit(p, BPF_ALU | BPF_RSH | BPF_K, 4);
	unsigned is_ipv6 = emit_go_if(p, BPF_JEQ, 6);
	emit_source_ipv4(p, worker_count);
	land(p, is_ipv6);
	emit_source_ipv6(p, worker_count);
}

/* The slot of first+1..last that begins a run of another owner and is nearest to the middle; 0 if
 * all of first..last have one owner. */
static unsigned split_of(const struct slot_table *t, unsigned first, unsigned last)
{
	unsigned best = 0, best_distance = UINT32_MAX;

	for (unsigned slot = first + 1; slot <= last; slot++) {
		unsigned below = slot - first, above = last + 1 - slot;
		unsigned distance = below > above ? below - above : above - below;
		if (t->owner[slot] != t->owner[slot - 1] && distance < best_distance) {
			best = slot;
			best_distance = distance;
		}
	}
	return best;
}

/* A = slot, one of first..last: return its owner, by binary search among the runs. */
static void emit_slots(struct program *p, const struct slot_table *t, unsigned first, unsigned last)
{
	unsigned split = split_of(t, first, last);
	if (split == 0) {
		emit_return(p, t->owner[first]);
		return;
	}
	unsigned is_above = emit_go_if(p, BPF_JGE, split);
	emit_slots(p, t, first, split - 1);
	land(p, is_above);
	emit_slots(p, t, split, last);
}

static void emit_program(struct program *p, const struct slot_table *t, unsigned worker_count)
{
	emit(p, BPF_LD | BPF_B | BPF_ABS, 0);
	emit(p, BPF_ALU | BPF_RSH | BPF_K, 3);
	unsigned is_v2 = emit_go_if(p, BPF_JEQ, OPCODE_DATA_V2);
	unsigned is_v1 = emit_go_if(p, BPF_JEQ, OPCODE_DATA_V1);
	emit_return(p, 0);

	land(p, is_v2);
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0);
	emit(p, BPF_ALU | BPF_AND | BPF_K, PEER_ID_NONE);
	unsigned has_no_id = emit_go_if(p, BPF_JEQ, PEER_ID_NONE);
	emit(p, BPF_ALU | BPF_AND | BPF_K, STEERING_SLOTS - 1);
	emit_slots(p, t, 0, STEERING_SLOTS - 1);

	land(p, is_v1);
	land(p, has_no_id);
	emit_source(p, worker_count);
}

int steering_attach(int fd, const struct slot_table *t, unsigned worker_count)
{
	if (worker_count < 1 || worker_count > WORKERS_MAX)
		return -EINVAL;
	struct program p = {.len = 0};
	emit_program(&p, t, worker_count);
	struct sock_fprog fprog;
	memset(&fprog, 0, sizeof(fprog)); /* the kernel is shown its padding, too */
	fprog.len = (unsigned short)p.len;
	fprog.filter = p.code;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &fprog, sizeof(fprog)) != 0)
		return -errno;
	return 0;
}

/* The words that the program reads from the IP header; returns their number. A mapped address came
 * in an IPv4 packet. */
static unsigned source_words(const union sockaddr_any *remote, uint32_t words[ADDRESS_WORDS])
{
	if (remote->sa.sa_family == AF_INET) {
		words[0] = ntohl(remote->in4.sin_addr.s_addr);
		return 1;
	}
	uint32_t be32[ADDRESS_WORDS];
	memcpy(be32, &remote->in6.sin6_addr, sizeof(be32));
	if (IN6_IS_ADDR_V4MAPPED(&remote->in6.sin6_addr)) {
		words[0] = ntohl(be32[3]);
		return 1;
	}
	for (unsigned i = 0; i < ADDRESS_WORDS; i++)
		words[i] = ntohl(be32[i]);
	return ADDRESS_WORDS;
}

unsigned steering_by_source(const union sockaddr_any *remote, unsigned worker_count)
{
	uint32_t words[ADDRESS_WORDS], hash = 0;
	unsigned count = source_words(remote, words);

	for (unsigned i = 0; i < count; i++)
		hash = (hash + words[i]) * HASH_STEP;
	hash = (hash + endpoint_port(remote)) * HASH_STEP;
	hash ^= hash >> HASH_FOLD_FIRST;
	hash *= HASH_MIX;
	hash ^= hash >> HASH_FOLD_LAST;
	return hash % worker_count + 1;
}
