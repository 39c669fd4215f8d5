/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

/* A loaded configuration: one arena, immutable after config_check. A reload builds a second one
 * and swaps. Strings and arrays live in the arena and die with it. Absent strings are NULL. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/addr.h"
#include "config/directive.h"
#include "crypto/aead.h"

#define SHARDVPN_VERSION "0.1.0"
#define OPENVPN_COMPAT_VERSION                                                                     \
	"2.6.14" /* what tools take us for (operations: the version is an API) */
#define WORKERS_MAX 64

struct arena;

/* A file named in the configuration, or its inline text. Both NULL: not given. */
struct config_file {
	const char *path;
	const char *text; /* inline block, verbatim */
	size_t text_len;
};

enum topology { TOPOLOGY_NET30, TOPOLOGY_P2P, TOPOLOGY_SUBNET };
enum listen_family { LISTEN_IPV4, LISTEN_IPV6_DUAL, LISTEN_IPV6_ONLY };

struct listen_spec {
	const char *host; /* literal or name to bind to; NULL: any */
	uint16_t port;
	enum listen_family family;
};

enum mssfix_mode { MSSFIX_OFF, MSSFIX_PLAIN, MSSFIX_MTU, MSSFIX_FIXED };
enum client_cert { CLIENT_CERT_REQUIRE, CLIENT_CERT_OPTIONAL, CLIENT_CERT_NONE };
enum remote_cert_tls { REMOTE_CERT_ANY, REMOTE_CERT_CLIENT, REMOTE_CERT_SERVER };
enum io_engine_choice { IO_ENGINE_AUTO, IO_ENGINE_URING, IO_ENGINE_EPOLL };
/* `mtu-disc`: how the system finds the MTU of a path (ip(7), IP_MTU_DISCOVER). */
enum mtu_disc {
	MTU_DISC_SYSTEM, /* not given: its own setting stays */
	MTU_DISC_NO,
	MTU_DISC_MAYBE,
	MTU_DISC_YES, /* nothing is ever fragmented */
};
enum route_gateway { ROUTE_GATEWAY_VPN, ROUTE_GATEWAY_NET, ROUTE_GATEWAY_ADDR };

/* Bits of `offload`: what may be left to the kernel where it is able to. */
enum offload {
	OFFLOAD_TSO = 1 << 0,	  /* TCP super-packets on the tun device */
	OFFLOAD_USO = 1 << 1,	  /* UDP super-packets there */
	OFFLOAD_UDP_GRO = 1 << 2, /* super-datagrams received */
	OFFLOAD_UDP_GSO = 1 << 3, /* super-datagrams sent */
	OFFLOAD_ALL = (1 << 4) - 1,
};

/* Bits of `disable-feature`: probed kernel features that are treated as absent. */
enum feature {
	FEATURE_URING = 1 << 0,
	FEATURE_URING_RECV_MULTISHOT = 1 << 1,
	FEATURE_URING_READ_MULTISHOT = 1 << 2,
	FEATURE_RECVMMSG = 1 << 3, /* epoll engine: one call a datagram */
	FEATURE_STEERING_CBPF = 1 << 4,
	FEATURE_HUGE_PAGES = 1 << 5,
	FEATURE_TUN_TSO = 1 << 6,
	FEATURE_TUN_USO = 1 << 7,
	FEATURE_UDP_GRO = 1 << 8,
	FEATURE_UDP_GSO = 1 << 9,
	FEATURE_STEERING_EBPF = 1 << 10,
};

struct route_spec {
	struct ip_prefix net;
	enum route_gateway kind;
	struct ip_addr gateway; /* for ROUTE_GATEWAY_ADDR */
	uint32_t metric;	/* 0: kernel's default */
};

/* What one client may use up. */
struct client_rate {
	uint64_t up_bytes_s, down_bytes_s; /* from and to the client; 0: no limit */
	uint32_t burst_bytes;		   /* 0: what bucket_init takes for the rate */
};

/* A `setenv`, for the environment of scripts. */
struct config_env {
	const char *name, *value; /* value may be "" */
};

/* Where a directive was given last. */
struct config_place {
	const char *file; /* NULL: command line */
	unsigned line;
	bool is_given;
};

struct config {
	struct arena *arena;
	struct config_place *places; /* by directive: for messages, and to know what was given */
	bool is_server;		     /* `mode server`, also by a macro */
	bool is_tls_server;

	/* process */
	const char *config_path; /* of the first file, for log and env */
	const char *cd_dir;
	const char *user, *group;
	bool is_daemon;
	const char *daemon_name; /* also the syslog name; NULL: "openvpn" */
	bool is_syslog;
	const char *log_path;
	bool is_log_append;
	const char *pid_path;
	int verb, mute;
	bool is_timestamps_off;
	const char *status_path;
	uint32_t status_interval_s; /* 60; 0: only written at exit and on demand */
	int status_version;	    /* 1..3, default 1 */
	const struct config_env *env;
	size_t env_count;

	/* transport */
	struct listen_spec listen;
	bool is_multihome; /* explicit; wildcard binds behave so anyway */
	enum mtu_disc mtu_disc;
	uint32_t sndbuf, rcvbuf;		 /* bytes; 0: system default */
	int explicit_exit_notify;		 /* 0 off, 1 RESTART, 2 RESTART,[N] */
	uint32_t connect_freq_n, connect_freq_s; /* 0: off */
	uint32_t connect_freq_initial_n, connect_freq_initial_s; /* 0: built-in buckets */

	/* device and addressing */
	const char *dev;     /* "tun", "tun3" or any name */
	uint32_t tun_mtu;    /* 1500 */
	uint32_t txqueuelen; /* 0: our default of 1000 */
	bool is_persist_tun;
	enum topology topology;
	struct ip_addr ifconfig_local;	/* family 0: none */
	struct ip_addr ifconfig_remote; /* peer address (net30, p2p) */
	uint8_t ifconfig_bits;		/* subnet topology */
	struct ip_addr ifconfig_ipv6_local;
	uint8_t ifconfig_ipv6_bits;
	struct ip_addr ifconfig_ipv6_remote;
	struct ip_addr route_gateway; /* family 0: none */
	const struct route_spec *routes;
	size_t route_count;
	enum mssfix_mode mssfix_mode;
	uint32_t mssfix;

	/* server */
	bool has_pool;
	struct ip_addr pool_start, pool_end; /* inclusive */
	uint8_t pool_bits;		     /* netmask pushed with subnet topology */
	bool has_pool6;
	struct ip_addr pool6_base;
	uint8_t pool6_bits;
	const char *pool_persist_path;
	uint32_t pool_persist_s; /* 600; 0: never written */
	const char *const *push; /* texts as they go on the wire, in order */
	size_t push_count;
	bool is_client_to_client;
	bool is_duplicate_cn;
	uint32_t max_clients;	 /* 1024 */
	uint32_t ping_s;	 /* 0: off */
	uint32_t ping_restart_s; /* 0: off; already doubled by keepalive */

	/* TLS and keys */
	struct config_file ca, cert, key, extra_certs, dh, crl;
	bool is_crl_dir;
	bool is_dh_none;
	struct config_file tls_auth, tls_crypt;
	int tls_auth_direction; /* -1, 0, 1 (word of tls-auth, or key-direction) */
	enum client_cert client_cert;
	enum remote_cert_tls remote_cert_tls;
	int tls_version_min, tls_version_max; /* 10, 11, 12, 13; max 0: library's */
	const char *tls_cipher, *tls_ciphersuites, *tls_groups, *tls_cert_profile;
	const char *auth;		   /* "SHA1"; normalised upper case */
	const char *cipher;		   /* as configured; NULL: not given */
	const char *data_ciphers;	   /* normalised colon list, AEAD only, in order */
	const char *data_ciphers_fallback; /* NULL: none */
	uint32_t replay_window;		   /* 64 */
	uint32_t replay_time_s;		   /* 15 */
	bool is_replay_mute;
	uint32_t reneg_sec_max, reneg_sec_min;		      /* 3600, 90 % of it; 0: never */
	uint64_t reneg_bytes, reneg_pkts;		      /* 0: off */
	uint32_t hand_window_s, tran_window_s, tls_timeout_s; /* 60, 3600, 2 */
	uint32_t max_packet_size;			      /* 1250 */

	/* ours */
	uint32_t workers;	/* 1..WORKERS_MAX; auto (0) is resolved by config_load */
	const int *worker_cpus; /* one per worker, or NULL: by affinity */
	size_t worker_cpu_count;
	uint32_t handshake_threads; /* auto (0) is resolved by config_load */
	enum io_engine_choice io_engine;
	enum aead_choice aead_engine;
	const char *metrics_host; /* NULL: no endpoint */
	uint16_t metrics_port;
	bool is_metrics_remote_ok;
	uint64_t worker_memory;	    /* bytes of packet buffers a worker; default 8 MiB */
	uint32_t disabled_features; /* enum feature */
	uint32_t offloads;	    /* enum offload; default all */
	uint32_t busy_poll_us;	    /* a worker spins so long before it sleeps; 0: not at all */
	struct client_rate client_rate;
};

/* Faults and warnings of one load, in order of appearance, as complete lines
 * ("FILE:LINE: DIRECTIVE: reason"). */
struct config_report {
	char **faults;
	size_t fault_count;
	char **warnings;
	size_t warning_count;
	bool is_out_of_memory;
};

enum config_action {
	CONFIG_RUN,
	CONFIG_TEST,	/* --test-config */
	CONFIG_VERSION, /* --version */
	CONFIG_HELP,	/* --help */
};

/* Load from a command line as OpenVPN takes it (argv[0] is skipped): options left to right,
 * `--config FILE` expanded in place, a single word that is no option is a file. Parses, applies
 * macros, runs config_check. All faults are collected in `report` (config_report_fini).
 * Returns 0 and a config; -EINVAL with at least one fault; -ENOMEM. `*action` is always set; with
 * CONFIG_VERSION and CONFIG_HELP nothing is checked. Reads files; changes directory for `cd`. */
__attribute__((warn_unused_result)) int config_load(int argc, char *const *argv,
						    enum config_action *action,
						    struct config_report *report,
						    struct config **out);
/* The same for the text of one file, called `name` in messages. Opens no file at all: a `config` in
 * it is a fault, files that it names need not exist, numbers that depend on the machine stay 0.
 * Returns 0 and a config; -EINVAL with at least one fault; -ENOMEM. */
__attribute__((warn_unused_result)) int config_parse(const char *name, const char *text, size_t len,
						     struct config_report *report,
						     struct config **out);

/* Defaults in an arena of its own; NULL if there is no memory. */
struct config *config_new(void);
void config_free(struct config *c);

/* Add a line to the report: "FILE:LINE: DIRECTIVE: reason", with the place where `id` was given,
 * or "DIRECTIVE: reason" if it was not. */
void config_fault(struct config_report *r, const struct config *c, enum directive_id id,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void config_warn(struct config_report *r, const struct config *c, enum directive_id id,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Add a finished line; control characters become '_'. */
void config_report_fault(struct config_report *r, const char *line);
void config_report_warning(struct config_report *r, const char *line);
void config_report_fini(struct config_report *r);

/* Text of a file option: the inline text, or the file's content (at most 1 MiB). The result is
 * allocated and NUL-terminated (the NUL is not counted); the caller frees it, wiping if secret.
 * Returns 0 or -errno. */
__attribute__((warn_unused_result)) int config_file_read(const struct config_file *f, char **text,
							 size_t *len);

/* First line of --version, and TITLE of status files: "OpenVPN 2.6.14 ... [shardvpn 0.1.0] ...". */
const char *config_version_line(void);
/* Text of --help: every directive with its arguments. Allocated; the caller frees it. */
char *config_help_text(void);

#endif
