/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admin/http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "server/admin/http_listen.h"
#include "server/admin/http_request.h"
#include "server/admin/metrics.h"

#define REQUEST_TIME_S	2
#define ANSWER_TIME_S	10 /* for the client to take it */
#define PAUSE_TIME_S	1  /* after a failed accept, e.g. without descriptors */
#define CONNECTIONS_MAX 64
#define STALE_MS	15000 /* an acceptor that published nothing for so long does not live */

struct http;

/* One connection: a request is read, then an answer written, then it is closed. */
struct connection {
	struct http *http;
	struct bufferevent *bev; /* NULL: the place is free */
	struct event *deadline;
	bool is_answered;
};

struct http {
	struct observer *observer;
	struct evconnlistener *listener;
	struct event *pause;
	struct connection connections[CONNECTIONS_MAX];
};

struct answer {
	int status;
	const char *type;
	char *text; /* allocated; NULL: the status says it */
	size_t len;
};

static void connection_close(struct connection *c)
{
	(void)event_del(c->deadline);
	bufferevent_free(c->bev);
	c->bev = NULL;
}

static void connection_limit(struct connection *c, int seconds)
{
	const struct timeval time = {.tv_sec = seconds};
	(void)event_add(c->deadline, &time);
}

static const char *status_text(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Bad Request";
	}
}

static void text_free(const void *data, size_t len, void *text)
{
	(void)data;
	(void)len;
	free(text);
}

/* Queue the whole answer. The text is taken over, and not copied. */
static void answer_send(struct connection *c, const struct answer *a, bool is_head)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	const char *text = a->text != NULL ? a->text : status_text(a->status);
	size_t len = a->text != NULL ? a->len : strlen(text);
	(void)evbuffer_add_printf(out,
				  "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
				  "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
				  "%sConnection: close\r\n\r\n",
				  a->status, status_text(a->status), a->type, len,
				  a->status == 405 ? "Allow: GET, HEAD\r\n" : "");
	bool is_taken = false;
	if (!is_head && a->text != NULL)
		is_taken = evbuffer_add_reference(out, text, len, text_free, a->text) == 0;
	else if (!is_head)
		(void)evbuffer_add(out, text, len);
	if (!is_taken)
		free(a->text);
	c->is_answered = true;
	connection_limit(c, ANSWER_TIME_S);
}

static struct answer answer_plain(int status)
{
	return (struct answer){.status = status, .type = "text/plain; charset=utf-8"};
}

static struct answer answer_metrics(const struct http *h, const struct http_request *r,
				    enum metrics_scope scope)
{
	enum metrics_format format =
		r->is_openmetrics_wanted ? METRICS_OPENMETRICS : METRICS_TEXT_004;
	struct answer a = {.status = 200};
	a.type = format == METRICS_OPENMETRICS
			 ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			 : "text/plain; version=0.0.4; charset=utf-8";
	a.text = metrics_of(h->observer, format, scope, &a.len);
	return a.text != NULL ? a : answer_plain(503);
}

static struct answer answer_health(const struct http *h)
{
	(void)observer_snapshot(h->observer);
	return answer_plain(observer_snapshot_age_ms(h->observer) < STALE_MS ? 200 : 503);
}

static struct answer answer_request(const struct http *h, const struct http_request *r)
{
	if (strcmp(r->path, "/metrics/peers") == 0)
		return answer_metrics(h, r, METRICS_PEERS);
	if (strcmp(r->path, "/metrics") == 0)
		return answer_metrics(h, r,
				      strcmp(r->query, "scope=peers") == 0 ? METRICS_PEERS
									   : METRICS_SERVER);
	if (strcmp(r->path, "/healthz") == 0)
		return answer_health(h);
	return answer_plain(404);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct connection *c = arg;
	struct http_request r = {0};
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t len = evbuffer_get_length(in);
	const char *text = (const char *)evbuffer_pullup(in, -1);
	int status = text != NULL ? http_request_parse(text, len, &r) : 0;
	if (status == 0)
		return;
	/* What comes after the head is nobody's. */
	(void)bufferevent_disable(bev, EV_READ);
	struct answer a = status == 200 ? answer_request(c->http, &r) : answer_plain(status);
	answer_send(c, &a, r.is_head);
}

/* Everything queued was written. */
static void on_written(struct bufferevent *bev, void *arg)
{
	struct connection *c = arg;
	(void)bev;
	if (c->is_answered)
		connection_close(c);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	(void)what;
	connection_close(arg);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	connection_close(arg);
}

static struct connection *connection_find_free(struct http *h)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (h->connections[i].bev == NULL)
			return &h->connections[i];
	return NULL;
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from,
		      int from_len, void *arg)
{
	struct http *h = arg;
	struct connection *c = connection_find_free(h);
	(void)from;
	(void)from_len;
	struct bufferevent *bev = NULL;
	if (c != NULL)
		bev = bufferevent_socket_new(evconnlistener_get_base(l), fd, BEV_OPT_CLOSE_ON_FREE);
	if (bev == NULL) {
		close(fd);
		return;
	}
	c->bev = bev;
	c->is_answered = false;
	bufferevent_setcb(bev, on_read, on_written, on_event, c);
	bufferevent_setwatermark(bev, EV_READ, 0, HTTP_HEAD_MAX);
	(void)bufferevent_enable(bev, EV_READ | EV_WRITE);
	connection_limit(c, REQUEST_TIME_S);
}

/* Without a pause the loop would spin on a connection that cannot be accepted. */
static void on_accept_error(struct evconnlistener *l, void *arg)
{
	const struct timeval time = {.tv_sec = PAUSE_TIME_S};
	struct http *h = arg;
	(void)evconnlistener_disable(l);
	(void)event_add(h->pause, &time);
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;
	(void)fd;
	(void)what;
	(void)evconnlistener_enable(h->listener);
}

static void http_close(void *ctx)
{
	struct http *h = ctx;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *c = &h->connections[i];
		if (c->bev != NULL)
			bufferevent_free(c->bev);
		if (c->deadline != NULL)
			event_free(c->deadline);
	}
	if (h->listener != NULL)
		evconnlistener_free(h->listener);
	if (h->pause != NULL)
		event_free(h->pause);
	free(h);
}

static int timers_new(struct http *h, struct event_base *base)
{
	h->pause = evtimer_new(base, on_pause_over, h);
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *c = &h->connections[i];
		c->http = h;
		c->deadline = evtimer_new(base, on_deadline, c);
		if (c->deadline == NULL)
			return -ENOMEM;
	}
	return h->pause != NULL ? 0 : -ENOMEM;
}

static int listener_new(struct http *h, struct event_base *base, int fd)
{
	h->listener = evconnlistener_new(base, on_accept, h,
					 LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (h->listener == NULL) {
		close(fd);
		return -ENOMEM;
	}
	evconnlistener_set_error_cb(h->listener, on_accept_error);
	return 0;
}

static int http_open(struct observer *o, struct event_base *base, const struct config *c,
		     void **ctx, char *why, size_t why_len)
{
	struct http *h = calloc(1, sizeof(*h));
	if (h == NULL)
		return -ENOMEM;
	h->observer = o;
	int err = timers_new(h, base);
	int fd = err == 0 ? http_listen(c, why, why_len) : err;
	err = fd < 0 ? fd : listener_new(h, base, fd);
	if (err != 0) {
		http_close(h);
		return err;
	}
	*ctx = h;
	return 0;
}

const struct observer_ops http_ops = {.open = http_open, .close = http_close};
