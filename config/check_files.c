/* SPDX-License-Identifier: Apache-2.0 */
#include "config/check.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct finding {
	const struct config *c;
	struct config_report *report;
};

static const char *advice(int err)
{
	if (err == ENOENT || err == ENOTDIR)
		return "create it, or correct the name (relative names count from where it is "
		       "started, or from `cd`)";
	if (err == EACCES || err == EPERM)
		return "allow this user to, or start as root";
	return "correct the name";
}

static void complain(struct finding f, enum directive_id id, const char *verb, const char *path,
		     int err)
{
	config_fault(f.report, f.c, id, "cannot %s '%s': %s; %s", verb, path, strerrordesc_np(err),
		     advice(err));
}

static bool check_readable(struct finding f, enum directive_id id, const struct config_file *file)
{
	struct stat st;
	if (!file->path)
		return false;
	int err = access(file->path, R_OK) != 0 ? errno : 0;
	if (!err && stat(file->path, &st) == 0 && S_ISDIR(st.st_mode))
		err = EISDIR;
	if (err)
		complain(f, id, "read", file->path, err);
	return err == 0;
}

/* The same, and nobody else should be able to. */
static void check_secret(struct finding f, enum directive_id id, const struct config_file *file)
{
	struct stat st;
	if (!check_readable(f, id, file))
		return;
	if (stat(file->path, &st) == 0 && (st.st_mode & (S_IRWXG | S_IRWXO)))
		config_warn(f.report, f.c, id,
			    "file '%s' is group or others accessible; chmod 600 it", file->path);
}

static void check_directory(struct finding f, enum directive_id id, const char *path)
{
	struct stat st;
	int err = stat(path, &st) != 0 ? errno : 0;
	if (!err && !S_ISDIR(st.st_mode))
		err = ENOTDIR;
	if (!err && access(path, R_OK | X_OK) != 0)
		err = errno;
	if (err)
		complain(f, id, "read", path, err);
}

/* Directory part of a path, "." without one. */
static void parent_of(const char *path, char *out, size_t cap)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		snprintf(out, cap, ".");
	else if (slash == path)
		snprintf(out, cap, "/");
	else
		snprintf(out, cap, "%.*s", (int)(slash - path), path);
}

/* 0, or why `path` can be neither written nor made. */
static int writable_error(const char *path)
{
	char dir[PATH_MAX];
	struct stat st;
	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return EISDIR;
		return access(path, W_OK) != 0 ? errno : 0;
	}
	if (errno != ENOENT)
		return errno;
	parent_of(path, dir, sizeof(dir));
	if (stat(dir, &st) != 0)
		return errno;
	return access(dir, W_OK | X_OK) != 0 ? errno : 0;
}

static void check_writable(struct finding f, enum directive_id id, const char *path)
{
	int err = path ? writable_error(path) : 0;
	if (err)
		complain(f, id, "write", path, err);
}

static void check_crl(struct finding f)
{
	if (f.c->is_crl_dir)
		check_directory(f, DIRECTIVE_CRL_VERIFY, f.c->crl.path);
	else
		check_readable(f, DIRECTIVE_CRL_VERIFY, &f.c->crl);
}

/* Stock starts without it, and so do we. */
static void check_pool_persist(struct finding f)
{
	const char *path = f.c->pool_persist_path;
	int err = path && f.c->pool_persist_s > 0 ? writable_error(path) : 0;
	if (err)
		config_warn(f.report, f.c, DIRECTIVE_IFCONFIG_POOL_PERSIST,
			    "cannot write '%s': %s; addresses are not remembered", path,
			    strerrordesc_np(err));
}

static void check_accounts(struct finding f)
{
	char buf[4096];
	struct passwd user, *has_user = NULL;
	struct group group, *has_group = NULL;
	if (f.c->user &&
	    (getpwnam_r(f.c->user, &user, buf, sizeof(buf), &has_user) != 0 || !has_user))
		config_fault(f.report, f.c, DIRECTIVE_USER,
			     "failed to find UID for user %s: no such user", f.c->user);
	if (f.c->group &&
	    (getgrnam_r(f.c->group, &group, buf, sizeof(buf), &has_group) != 0 || !has_group))
		config_fault(f.report, f.c, DIRECTIVE_GROUP,
			     "failed to find GID for group %s: no such group (Debian's is nogroup)",
			     f.c->group);
}

void config_check_files(const struct config *c, struct config_report *report)
{
	struct finding f = {c, report};
	check_readable(f, DIRECTIVE_DH, &c->dh);
	check_readable(f, DIRECTIVE_CA, &c->ca);
	check_readable(f, DIRECTIVE_EXTRA_CERTS, &c->extra_certs);
	check_readable(f, DIRECTIVE_CERT, &c->cert);
	check_secret(f, DIRECTIVE_KEY, &c->key);
	check_secret(f, DIRECTIVE_TLS_AUTH, &c->tls_auth);
	check_secret(f, DIRECTIVE_TLS_CRYPT, &c->tls_crypt);
	check_crl(f);
	check_writable(f, DIRECTIVE_STATUS, c->status_path);
	check_writable(f, DIRECTIVE_WRITEPID, c->pid_path);
	check_writable(f, c->is_log_append ? DIRECTIVE_LOG_APPEND : DIRECTIVE_LOG, c->log_path);
	check_pool_persist(f);
	check_accounts(f);
}
