/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_CLIENT_LISTS_H
#define SERVER_CLIENT_LISTS_H

/* Lists and hash chains through the clients themselves: `links` names the pair of links in struct
 * client. Nothing is allocated. */

struct client;

/* A list in the order of insertion. */
struct client_list {
	struct client *first, *last;
};

#define LIST_APPEND(list, c, links)                                                                \
	do {                                                                                       \
		(c)->links.next = NULL;                                                            \
		(c)->links.prev = (list)->last;                                                    \
		if ((list)->last)                                                                  \
			(list)->last->links.next = (c);                                            \
		else                                                                               \
			(list)->first = (c);                                                       \
		(list)->last = (c);                                                                \
	} while (0)

#define LIST_REMOVE(list, c, links)                                                                \
	do {                                                                                       \
		if ((c)->links.prev)                                                               \
			(c)->links.prev->links.next = (c)->links.next;                             \
		else                                                                               \
			(list)->first = (c)->links.next;                                           \
		if ((c)->links.next)                                                               \
			(c)->links.next->links.prev = (c)->links.prev;                             \
		else                                                                               \
			(list)->last = (c)->links.prev;                                            \
	} while (0)

#define CHAIN_ADD(head, c, links)                                                                  \
	do {                                                                                       \
		(c)->links.prev = NULL;                                                            \
		(c)->links.next = *(head);                                                         \
		if (*(head))                                                                       \
			(*(head))->links.prev = (c);                                               \
		*(head) = (c);                                                                     \
	} while (0)

#define CHAIN_REMOVE(head, c, links)                                                               \
	do {                                                                                       \
		if ((c)->links.prev)                                                               \
			(c)->links.prev->links.next = (c)->links.next;                             \
		else                                                                               \
			*(head) = (c)->links.next;                                                 \
		if ((c)->links.next)                                                               \
			(c)->links.next->links.prev = (c)->links.prev;                             \
	} while (0)

#endif
