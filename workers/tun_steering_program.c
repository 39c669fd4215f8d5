/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/tun_steering_program.h"

#include <assert.h>
#include <linux/bpf.h>

/* The kernel shows the program a packet as it will be read, but without virtio header: offset 0 is
 * the IP header. A load past the end of the packet (BPF_LD | BPF_ABS) ends the program with queue
 * 0, whose worker counts what is no packet. Copies (skb_load_bytes) leave zeros there. */

#define IPV4_FRAGMENT_AT    6
#define IPV4_FRAGMENT_MASK  0x3fff /* more fragments, or not the first: the ports are not in all */
#define IPV4_PROTOCOL_AT    9
#define IPV4_SOURCE_AT	    12
#define IPV4_DESTINATION_AT 16
#define IPV6_NEXT_AT	    6
#define IPV6_SOURCE_AT	    8
#define IPV6_DESTINATION_AT 24
#define IPV6_HEADER_LEN	    40
#define PROTOCOL_TCP	    6
#define PROTOCOL_UDP	    17

/* The stack, below the frame pointer: the trie's key is the prefix length and behind it the
 * address, which alone is the key of the hosts. Then what else is hashed. */
#define ADDRESS_AT (-16)
#define KEY_AT	   (ADDRESS_AT - 4)
#define SOURCE_AT  (KEY_AT - 16)

/* As in the steering of sockets: for each word h = (h + word) * STEP, then a mix that brings the
 * high bits down to where the modulus looks. */
#define HASH_STEP	0x9e3779b1u
#define HASH_MIX	0x85ebca6bu
#define HASH_FOLD_FIRST 15
#define HASH_FOLD_LAST	16

/* R0 to R5 are lost in calls and loads from the packet. */
#define RESULT	BPF_REG_0
#define ARG1	BPF_REG_1
#define ARG2	BPF_REG_2
#define ARG3	BPF_REG_3
#define ARG4	BPF_REG_4
#define PACKET	BPF_REG_6 /* where loads from the packet want it */
#define HASH	BPF_REG_7
#define SCRATCH BPF_REG_8
#define FRAME	BPF_REG_10

/* Instructions. ALU and comparisons on 32 bits, unless a pointer is meant. */
#define COPY(to, from)                                                                             \
	((struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from)})
#define SET(to, value)                                                                             \
	((struct bpf_insn){                                                                        \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (int32_t)(value)})
#define FRAME_POINTER_ADD(reg, value)                                                              \
	((struct bpf_insn){.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (reg), .imm = (value)})
#define ALU(operation, reg, value)                                                                 \
	((struct bpf_insn){                                                                        \
		.code = BPF_ALU | (operation) | BPF_K, .dst_reg = (reg), .imm = (int32_t)(value)})
#define ALU_REG(operation, reg, other)                                                             \
	((struct bpf_insn){                                                                        \
		.code = BPF_ALU | (operation) | BPF_X, .dst_reg = (reg), .src_reg = (other)})
/* RESULT = byte or half-word of the packet, in host order */
#define PACKET_LOAD(size, at) ((struct bpf_insn){.code = BPF_LD | (size) | BPF_ABS, .imm = (at)})
/* reg = u32 at pointer + at */
#define WORD_LOAD(reg, pointer, at)                                                                \
	((struct bpf_insn){.code = BPF_LDX | BPF_W | BPF_MEM,                                      \
			   .dst_reg = (reg),                                                       \
			   .src_reg = (pointer),                                                   \
			   .off = (int16_t)(at)})
#define WORD_STORE(at, value)                                                                      \
	((struct bpf_insn){.code = BPF_ST | BPF_W | BPF_MEM,                                       \
			   .dst_reg = FRAME,                                                       \
			   .off = (int16_t)(at),                                                   \
			   .imm = (value)})
#define CALL(function) ((struct bpf_insn){.code = BPF_JMP | BPF_CALL, .imm = (function)})
#define EXIT	       ((struct bpf_insn){.code = BPF_JMP | BPF_EXIT})
/* The target is filled in where the jump lands. */
#define GO_IF(comparison, reg, value)                                                              \
	((struct bpf_insn){                                                                        \
		.code = BPF_JMP | (comparison) | BPF_K, .dst_reg = (reg), .imm = (value)})

struct program {
	struct bpf_insn *code;
	unsigned len, queue_count;
};

/* What differs between the families. */
struct family {
	int hosts, nets; /* descriptors of the maps */
	int source_at, destination_at, words;
};

/* Returns where it stands, for `land`. */
static unsigned emit(struct program *p, struct bpf_insn insn)
{
	assert(p->len < TUN_STEERING_PROGRAM_MAX);
	p->code[p->len] = insn;
	return p->len++;
}

/* The jump at `jump` goes to what is emitted next. */
static void land(struct program *p, unsigned jump)
{
	p->code[jump].off = (int16_t)(p->len - jump - 1);
}

/* Copy bytes of the packet from `at`, or from where register SCRATCH says, to the stack. */
static void emit_copy(struct program *p, struct bpf_insn at, int stack_at, int len)
{
	emit(p, COPY(ARG1, PACKET));
	emit(p, at);
	emit(p, COPY(ARG3, FRAME));
	emit(p, FRAME_POINTER_ADD(ARG3, stack_at));
	emit(p, SET(ARG4, len));
	emit(p, CALL(BPF_FUNC_skb_load_bytes));
}

/* RESULT = pointer to the value of the key at `key_at` of the stack, or NULL. */
static void emit_lookup(struct program *p, int map, int key_at)
{
	/* A descriptor is loaded as a 64-bit immediate, which takes two instructions. */
	emit(p, (struct bpf_insn){.code = BPF_LD | BPF_DW | BPF_IMM,
				  .dst_reg = ARG1,
				  .src_reg = BPF_PSEUDO_MAP_FD,
				  .imm = map});
	emit(p, (struct bpf_insn){.code = 0});
	emit(p, COPY(ARG2, FRAME));
	emit(p, FRAME_POINTER_ADD(ARG2, key_at));
	emit(p, CALL(BPF_FUNC_map_lookup_elem));
}

/* Return the destination's queue; go on if it has none, or is to be spread. */
static void emit_destination(struct program *p, const struct family *f)
{
	emit(p, WORD_STORE(KEY_AT, f->words * 32));
	emit_copy(p, SET(ARG2, f->destination_at), ADDRESS_AT, f->words * 4);
	emit_lookup(p, f->hosts, ADDRESS_AT);
	unsigned is_host = emit(p, GO_IF(BPF_JNE, RESULT, 0));
	emit_lookup(p, f->nets, KEY_AT);
	unsigned is_unknown = emit(p, GO_IF(BPF_JEQ, RESULT, 0));
	land(p, is_host);
	emit(p, WORD_LOAD(RESULT, RESULT, 0));
	unsigned is_spread = emit(p, GO_IF(BPF_JEQ, RESULT, TUN_STEERING_SPREAD));
	emit(p, EXIT);
	land(p, is_unknown);
	land(p, is_spread);
}

/* HASH = (HASH + word of the stack) * STEP, for each word */
static void emit_hash(struct program *p, int stack_at, int words)
{
	for (int word = 0; word < words; word++) {
		emit(p, WORD_LOAD(SCRATCH, FRAME, stack_at + 4 * word));
		emit(p, ALU_REG(BPF_ADD, HASH, SCRATCH));
		emit(p, ALU(BPF_MUL, HASH, HASH_STEP));
	}
}

/* HASH ^= HASH >> bits */
static void emit_fold(struct program *p, int bits)
{
	emit(p, ALU_REG(BPF_MOV, SCRATCH, HASH));
	emit(p, ALU(BPF_RSH, SCRATCH, bits));
	emit(p, ALU_REG(BPF_XOR, HASH, SCRATCH));
}

static void emit_hash_addresses(struct program *p, const struct family *f)
{
	emit(p, SET(HASH, 0));
	emit_hash(p, ADDRESS_AT, f->words);
	emit_copy(p, SET(ARG2, f->source_at), SOURCE_AT, f->words * 4);
	emit_hash(p, SOURCE_AT, f->words);
}

/* With the ports of TCP and UDP, which begin where SCRATCH says; the protocol stands at
 * `protocol_at`. */
static void emit_hash_ports(struct program *p, int protocol_at)
{
	emit(p, PACKET_LOAD(BPF_B, protocol_at));
	unsigned is_tcp = emit(p, GO_IF(BPF_JEQ, RESULT, PROTOCOL_TCP));
	unsigned is_other = emit(p, GO_IF(BPF_JNE, RESULT, PROTOCOL_UDP));
	land(p, is_tcp);
	emit_copy(p, COPY(ARG2, SCRATCH), SOURCE_AT, 4);
	emit_hash(p, SOURCE_AT, 1);
	land(p, is_other);
}

static void emit_choice(struct program *p)
{
	emit_fold(p, HASH_FOLD_FIRST);
	emit(p, ALU(BPF_MUL, HASH, HASH_MIX));
	emit_fold(p, HASH_FOLD_LAST);
	emit(p, ALU(BPF_MOD, HASH, p->queue_count));
	emit(p, ALU_REG(BPF_MOV, RESULT, HASH));
	emit(p, EXIT);
}

/* All fragments of a datagram go one way, so none of them by its ports. Options shift these. */
static void emit_ipv4(struct program *p, const struct tun_steering_maps *maps)
{
	const struct family f = {.hosts = maps->hosts4,
				 .nets = maps->nets4,
				 .source_at = IPV4_SOURCE_AT,
				 .destination_at = IPV4_DESTINATION_AT,
				 .words = 1};
	emit_destination(p, &f);
	emit_hash_addresses(p, &f);
	emit(p, PACKET_LOAD(BPF_H, IPV4_FRAGMENT_AT));
	emit(p, ALU(BPF_AND, RESULT, IPV4_FRAGMENT_MASK));
	unsigned is_fragment = emit(p, GO_IF(BPF_JNE, RESULT, 0));
	emit(p, PACKET_LOAD(BPF_B, 0));
	emit(p, ALU(BPF_AND, RESULT, 0xf));
	emit(p, ALU(BPF_LSH, RESULT, 2));
	emit(p, COPY(SCRATCH, RESULT));
	emit_hash_ports(p, IPV4_PROTOCOL_AT);
	land(p, is_fragment);
	emit_choice(p);
}

/* Packets with extension headers, so fragments too, go by their addresses. */
static void emit_ipv6(struct program *p, const struct tun_steering_maps *maps)
{
	const struct family f = {.hosts = maps->hosts6,
				 .nets = maps->nets6,
				 .source_at = IPV6_SOURCE_AT,
				 .destination_at = IPV6_DESTINATION_AT,
				 .words = 4};
	emit_destination(p, &f);
	emit_hash_addresses(p, &f);
	emit(p, SET(SCRATCH, IPV6_HEADER_LEN));
	emit_hash_ports(p, IPV6_NEXT_AT);
	emit_choice(p);
}

unsigned tun_steering_program(const struct tun_steering_maps *maps, unsigned queue_count,
			      struct bpf_insn *code)
{
	struct program p = {.code = code, .queue_count = queue_count};
	emit(&p, COPY(PACKET, ARG1));
	emit(&p, PACKET_LOAD(BPF_B, 0));
	emit(&p, ALU(BPF_RSH, RESULT, 4));
	unsigned is_ipv4 = emit(&p, GO_IF(BPF_JEQ, RESULT, 4));
	unsigned is_ipv6 = emit(&p, GO_IF(BPF_JEQ, RESULT, 6));
	emit(&p, SET(RESULT, 0));
	emit(&p, EXIT);
	land(&p, is_ipv4);
	emit_ipv4(&p, maps);
	land(&p, is_ipv6);
	emit_ipv6(&p, maps);
	return p.len;
}
