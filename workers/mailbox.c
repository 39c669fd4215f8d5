/* SPDX-License-Identifier: Apache-2.0 */
#include "workers/mailbox.h"

#include <assert.h>
#include <ck_ring.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "config/config.h"
#include "workers/tsan.h"

#define THREADS_MAX   (WORKERS_MAX + 1)
#define DATA_SLOTS    256
#define CONTROL_SLOTS 1024
#define WORD_BITS     64
#define WORDS	      ((THREADS_MAX + WORD_BITS - 1) / WORD_BITS)
#define LINE	      64

/* The deterministic scheduler of the unit test switches threads here. */
#ifndef MAILBOX_STEP
#define MAILBOX_STEP() ((void)0)
#endif

CK_RING_PROTOTYPE(message, message)

/* Its ends are of two threads; size and mask, which both read, share no line with a slot. */
struct ring {
	struct ck_ring ends;
	_Alignas(LINE) struct message slots[];
};
static_assert(offsetof(struct ck_ring, p_tail) / LINE != offsetof(struct ck_ring, c_head) / LINE,
	      "a line of its own for each end");
static_assert(offsetof(struct ck_ring, p_tail) / LINE == offsetof(struct ck_ring, p_head) / LINE,
	      "the producer has one line");

/* One thread's end: as receiver, and as sender. */
struct box {
	/* Bit n: the ring from thread n has messages. Set by the senders with release after the
	 * enqueue, cleared by the owner before it looks into the ring. */
	_Alignas(LINE) _Atomic uint64_t pending[WORDS];
	/* 1: the owner blocks, or is about to. Set by the owner; taken back by it, or by the one
	 * sender that then writes the eventfd. */
	_Atomic uint32_t sleeping;
	int fd;

	/* The owner's alone. */
	_Alignas(LINE) uint64_t sent_to[WORDS]; /* since the last flush */
	unsigned next;				/* ring to visit first */

	/* From thread n; NULL until it first talks. Written by the sender with release. */
	_Alignas(LINE) _Atomic(struct ring *) rings[THREADS_MAX];
};

static_assert(offsetof(struct box, sent_to) % LINE == 0 &&
		      offsetof(struct box, rings) % LINE == 0 && sizeof(struct box) % LINE == 0,
	      "what senders write shares no line with what is the owner's alone");

struct mailboxes {
	unsigned count;
	struct box boxes[];
};

static void bit_set(uint64_t *words, unsigned n)
{
	words[n / WORD_BITS] |= 1ULL << (n % WORD_BITS);
}

/* Lowest bit from `from` on, or -1. */
static int bit_next(uint64_t words[WORDS], unsigned from)
{
	for (unsigned w = from / WORD_BITS; w < WORDS; w++) {
		uint64_t bits = words[w];
		if (w == from / WORD_BITS)
			bits &= ~0ULL << (from % WORD_BITS);
		if (bits)
			return (int)(w * WORD_BITS) + __builtin_ctzll(bits);
	}
	return -1;
}

int mailboxes_new(unsigned count, struct mailboxes **out)
{
	assert(count >= 2 && count <= THREADS_MAX);
	size_t len = sizeof(struct mailboxes) + count * sizeof(struct box);
	struct mailboxes *m = aligned_alloc(LINE, (len + LINE - 1) / LINE * LINE);
	if (!m)
		return -ENOMEM;
	*m = (struct mailboxes){.count = 0};
	for (unsigned i = 0; i < count; i++) {
		m->boxes[i] = (struct box){.fd = eventfd(0, EFD_CLOEXEC)};
		if (m->boxes[i].fd < 0) {
			int err = -errno;
			mailboxes_free(m);
			return err;
		}
		m->count++;
	}
	*out = m;
	return 0;
}

void mailboxes_free(struct mailboxes *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->count; i++) {
		for (unsigned from = 0; from < THREADS_MAX; from++)
			free(atomic_load_explicit(&m->boxes[i].rings[from], memory_order_acquire));
		close(m->boxes[i].fd);
	}
	free(m);
}

static struct ring *ring_new(unsigned slots)
{
	size_t len = sizeof(struct ring) + slots * sizeof(struct message);
	struct ring *r = aligned_alloc(LINE, (len + LINE - 1) / LINE * LINE);
	if (r)
		ck_ring_init(&r->ends, slots);
	return r;
}

/* The sender's view: the ring, made now if the pair never talked; NULL if there is no memory. */
static struct ring *ring_get(struct mailboxes *m, unsigned from, unsigned to)
{
	_Atomic(struct ring *) *slot = &m->boxes[to].rings[from];
	struct ring *r = atomic_load_explicit(slot, memory_order_relaxed);
	if (r)
		return r;
	r = ring_new(from == ACCEPTOR || to == ACCEPTOR ? CONTROL_SLOTS : DATA_SLOTS);
	if (r)
		atomic_store_explicit(slot, r, memory_order_release);
	return r;
}

/* Only if clear, so that senders do not fight for the line. The fence puts the look at the bit
 * after the enqueue: either we see that the owner cleared it, or the owner sees our message. */
static void mark_pending(struct box *b, unsigned from)
{
	_Atomic uint64_t *word = &b->pending[from / WORD_BITS];
	uint64_t bit = 1ULL << (from % WORD_BITS);
	MAILBOX_STEP();
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(word, memory_order_relaxed) & bit)
		return;
	MAILBOX_STEP();
	atomic_fetch_or_explicit(word, bit, memory_order_release);
}

bool mailbox_send(struct mailboxes *m, unsigned from, unsigned to, const struct message *msg)
{
	assert(from < m->count && to < m->count && from != to);
	struct ring *r = ring_get(m, from, to);
	if (!r)
		return false;
	struct message copy = *msg;
	copy.from = (uint16_t)from;
	MAILBOX_STEP();
	TSAN_RELEASE(r);
	if (!ck_ring_enqueue_spsc_message(&r->ends, r->slots, &copy))
		return false;
	mark_pending(&m->boxes[to], from);
	bit_set(m->boxes[from].sent_to, to);
	return true;
}

static void wake_if_asleep(struct box *b)
{
	if (!atomic_load_explicit(&b->sleeping, memory_order_relaxed))
		return;
	MAILBOX_STEP();
	if (!atomic_exchange_explicit(&b->sleeping, 0, memory_order_relaxed))
		return;
	MAILBOX_STEP();
	/* Fails only if the count is near its limit, in which case the descriptor is readable. */
	if (eventfd_write(b->fd, 1) != 0)
		return;
}

void mailbox_flush(struct mailboxes *m, unsigned from)
{
	struct box *own = &m->boxes[from];
	/* Puts the look at `sleeping` after the marks; pairs with mailbox_sleep. */
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned w = 0; w < WORDS; w++) {
		for (uint64_t bits = own->sent_to[w]; bits; bits &= bits - 1) {
			MAILBOX_STEP();
			wake_if_asleep(&m->boxes[w * WORD_BITS + (unsigned)__builtin_ctzll(bits)]);
		}
		own->sent_to[w] = 0;
	}
}

/* Take up to `max` from one ring. The mark is cleared before the look, and set again if the look
 * did not reach the end. */
static unsigned drain(struct box *b, unsigned from, struct message *out, unsigned max)
{
	_Atomic uint64_t *word = &b->pending[from / WORD_BITS];
	uint64_t bit = 1ULL << (from % WORD_BITS);
	atomic_fetch_and_explicit(word, ~bit, memory_order_acq_rel);
	atomic_thread_fence(memory_order_seq_cst);
	MAILBOX_STEP();
	struct ring *r = atomic_load_explicit(&b->rings[from], memory_order_acquire);
	unsigned n = 0;
	while (n < max && ck_ring_dequeue_spsc_message(&r->ends, r->slots, &out[n]))
		n++;
	if (n)
		TSAN_ACQUIRE(r);
	MAILBOX_STEP();
	if (n == max && ck_ring_size(&r->ends) > 0)
		atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
	return n;
}

/* The next ring with messages, from b->next on and around; -1: none. */
static int pending_next(struct box *b)
{
	uint64_t words[WORDS];
	for (unsigned w = 0; w < WORDS; w++)
		words[w] = atomic_load_explicit(&b->pending[w], memory_order_acquire);
	int from = bit_next(words, b->next);
	return from >= 0 ? from : bit_next(words, 0);
}

unsigned mailbox_receive(struct mailboxes *m, unsigned me, struct message *out, unsigned max)
{
	struct box *b = &m->boxes[me];
	unsigned quota = max > 1 ? max / 2 : 1;
	unsigned n = 0;
	while (n < max) {
		int from = pending_next(b);
		if (from < 0)
			break;
		MAILBOX_STEP();
		unsigned want = max - n < quota ? max - n : quota;
		n += drain(b, (unsigned)from, out + n, want);
		b->next = ((unsigned)from + 1) % THREADS_MAX;
	}
	return n;
}

bool mailbox_sleep(struct mailboxes *m, unsigned me)
{
	struct box *b = &m->boxes[me];
	atomic_store_explicit(&b->sleeping, 1, memory_order_relaxed);
	/* Either we see the mark, or the sender's flush sees us asleep. */
	atomic_thread_fence(memory_order_seq_cst);
	MAILBOX_STEP();
	if (pending_next(b) < 0)
		return true;
	MAILBOX_STEP();
	mailbox_awake(m, me);
	return false;
}

void mailbox_awake(struct mailboxes *m, unsigned me)
{
	atomic_store_explicit(&m->boxes[me].sleeping, 0, memory_order_relaxed);
}

int mailbox_fd(const struct mailboxes *m, unsigned me)
{
	return m->boxes[me].fd;
}

unsigned mailbox_depth(const struct mailboxes *m, unsigned me)
{
	unsigned depth = 0;
	for (unsigned from = 0; from < m->count; from++) {
		const struct ring *r =
			atomic_load_explicit(&m->boxes[me].rings[from], memory_order_acquire);
		depth += r ? ck_ring_size(&r->ends) : 0;
	}
	return depth;
}

unsigned mailbox_capacity(void)
{
	return DATA_SLOTS;
}
