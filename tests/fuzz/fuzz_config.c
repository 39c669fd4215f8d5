/* SPDX-License-Identifier: Apache-2.0 */
/* A whole configuration file from memory: no file is opened, whatever it names. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void expect(bool is_so)
{
	if (!is_so)
		abort();
}

/* What is accepted can be used: a consumer trusts these without another look. */
static void expect_usable(const struct config *c)
{
	expect(c->is_server && c->is_tls_server && c->dev && strlen(c->dev) < 16);
	expect(c->data_ciphers[0] && strlen(c->data_ciphers) < 128);
	expect(c->max_clients >= 1 && c->replay_window <= 4096 && c->replay_time_s <= 600);
	expect(c->workers <= WORKERS_MAX && c->worker_cpu_count <= WORKERS_MAX);
	expect(c->reneg_sec_min <= c->reneg_sec_max);
	expect(c->tls_version_min >= 10 && c->tls_version_min <= 13);
	for (size_t i = 0; i < c->push_count; i++)
		expect(c->push[i][0] && !strpbrk(c->push[i], ",\n"));
	for (size_t i = 0; i < c->route_count; i++) {
		struct ip_prefix net = c->routes[i].net;
		ip_prefix_mask(&net);
		expect(ip_addr_equal(&net.addr, &c->routes[i].net.addr));
	}
	if (c->has_pool)
		expect(ip_addr_to_host32(&c->pool_start) <= ip_addr_to_host32(&c->pool_end));
}

static void expect_lines(char *const *lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect(lines[i][0] && !strpbrk(lines[i], "\n\r\x1b"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct config_report report = {0};
	struct config *config = NULL;
	int rc = config_parse("fuzz", (const char *)data, len, &report, &config);
	expect((rc == 0) == (config != NULL));
	expect((rc == 0) == (report.fault_count == 0));
	expect_lines(report.faults, report.fault_count);
	expect_lines(report.warnings, report.warning_count);
	if (config)
		expect_usable(config);
	config_free(config);
	config_report_fini(&report);
	return 0;
}
