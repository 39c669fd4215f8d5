/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_ARENA_H
#define CONFIG_ARENA_H

/* Memory that is given out piece by piece and returned as a whole. It may hold inline private keys
 * and is therefore wiped before it is freed. Running out of memory is sticky: every later request
 * returns NULL as well, and arena_ok tells at the end. */

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* Empty; NULL if there is no memory. */
struct arena *arena_new(void);
/* NULL is accepted. */
void arena_free(struct arena *a);
bool arena_ok(const struct arena *a);
/* `size` zeroed bytes, aligned for any object, or NULL. */
void *arena_alloc(struct arena *a, size_t size);
/* Copies of text with a NUL behind. */
char *arena_strdup(struct arena *a, const char *text);
char *arena_strndup(struct arena *a, const char *text, size_t len);
/* Make room for element `count` (0..) of an array of `size`-byte elements that arena_grow made
 * (`items`, NULL while empty) and return where it stands now, or NULL. */
void *arena_grow(struct arena *a, const void *items, size_t count, size_t size);

#endif
