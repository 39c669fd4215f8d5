/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKERS_TSAN_H
#define WORKERS_TSAN_H

/* ThreadSanitizer does not see through ck: its stores are assembly, and right rings are reported.
 * So the edges from writer to reader are announced by hand, and the inside of ck's rings is
 * suppressed (tests/support/tsan.supp). With that right code is silent, and a write after the
 * hand-over is still reported. Without the sanitizer nothing is done. */

#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif

#ifdef HAS_TSAN
#include <sanitizer/tsan_interface.h>
/* What this thread has written is to be seen by who acquires `object` after this. */
#define TSAN_RELEASE(object) __tsan_release((void *)(uintptr_t)(object))
#define TSAN_ACQUIRE(object) __tsan_acquire((void *)(uintptr_t)(object))
#ifndef __clang__
/* Fences order only atomics where this is used, of which TSan needs to know nothing. */
#pragma GCC diagnostic ignored "-Wtsan"
#endif
#else
#define TSAN_RELEASE(object) ((void)(object))
#define TSAN_ACQUIRE(object) ((void)(object))
#endif

#endif
