/* SPDX-License-Identifier: Apache-2.0 */
#include "server/privilege.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_BUFFER 16384 /* for one entry of passwd or group with its members */
#define ID_NONE	    UINT32_MAX

static_assert(sizeof(uid_t) == 4 && sizeof(gid_t) == 4, "ids have 32 bits");

/* The user's id, and its own group if `gid` is not set yet. */
static int find_user(const char *name, uid_t *uid, gid_t *gid)
{
	char buf[NAME_BUFFER];
	struct passwd entry, *found = NULL;
	if (getpwnam_r(name, &entry, buf, sizeof(buf), &found) != 0 || found == NULL)
		return -ENOENT;
	*uid = entry.pw_uid;
	if (*gid == ID_NONE)
		*gid = entry.pw_gid;
	return 0;
}

static int find_group(const char *name, gid_t *gid)
{
	char buf[NAME_BUFFER];
	struct group entry, *found = NULL;
	if (getgrnam_r(name, &entry, buf, sizeof(buf), &found) != 0 || found == NULL)
		return -ENOENT;
	*gid = entry.gr_gid;
	return 0;
}

int privilege_lookup(const struct config *c, uid_t *uid, gid_t *gid, char *why, size_t why_len)
{
	uid_t u = ID_NONE;
	gid_t g = ID_NONE;
	if (c->group != NULL && find_group(c->group, &g) != 0) {
		snprintf(why, why_len, "there is no group \"%s\": create it or change `group`",
			 c->group);
		return -ENOENT;
	}
	if (c->user != NULL && find_user(c->user, &u, &g) != 0) {
		snprintf(why, why_len, "there is no user \"%s\": create it or change `user`",
			 c->user);
		return -ENOENT;
	}
	*uid = u;
	*gid = g;
	return 0;
}

static int cap_get(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	return syscall(SYS_capget, &head, data) == 0 ? 0 : -errno;
}

static int cap_set(const struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	return syscall(SYS_capset, &head, data) == 0 ? 0 : -errno;
}

/* Keep CAP_NET_ADMIN if we have it, nothing else; a program that is run gets none of it. */
static int keep_net_admin(void)
{
	struct __user_cap_data_struct data[2];
	int err = cap_get(data);
	if (err != 0)
		return err;
	uint32_t kept = data[0].permitted & (1u << CAP_NET_ADMIN);
	memset(data, 0, sizeof(data));
	data[0].permitted = data[0].effective = kept;
	return cap_set(data);
}

/* So that nothing which is run later can have more than we keep. Needs CAP_SETPCAP; without it the
 * no-new-privileges flag does the same. */
static void bound_capabilities(void)
{
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (cap != CAP_NET_ADMIN)
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static int set_groups(uid_t uid, gid_t gid)
{
	char buf[NAME_BUFFER];
	struct passwd entry, *found = NULL;
	if (uid != ID_NONE)
		(void)getpwuid_r(uid, &entry, buf, sizeof(buf), &found);
	if (found != NULL && initgroups(entry.pw_name, gid) == 0)
		return 0;
	return setgroups(1, &gid) == 0 ? 0 : -errno;
}

/* A service manager may have done it already, without leaving us the right to do it again. */
static bool is_changed_already(uid_t uid, gid_t gid)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;
	if (getresuid(&r, &e, &s) != 0 || getresgid(&rg, &eg, &sg) != 0)
		return false;
	bool is_user = uid == ID_NONE || (r == uid && e == uid && s == uid);
	bool is_group = gid == ID_NONE || (rg == gid && eg == gid && sg == gid);
	return is_user && is_group && e != 0;
}

static int change_ids(uid_t uid, gid_t gid)
{
	int err = gid == ID_NONE ? 0 : set_groups(uid, gid);
	if (err != 0)
		return err;
	if (gid != ID_NONE && setresgid(gid, gid, gid) != 0)
		return -errno;
	if (uid != ID_NONE && setresuid(uid, uid, uid) != 0)
		return -errno;
	return 0;
}

static int change_user(uid_t uid, gid_t gid)
{
	if (is_changed_already(uid, gid))
		return 0;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0)
		return -errno;
	bound_capabilities();
	int err = change_ids(uid, gid);
	if (err != 0)
		return err;
	/* The way back must be closed. */
	if (uid != ID_NONE && uid != 0 && (setuid(0) == 0 || geteuid() != uid))
		return -EPERM;
	return 0;
}

int privilege_drop(uid_t uid, gid_t gid, char *why, size_t why_len)
{
	int err = 0;
	if (uid != ID_NONE || gid != ID_NONE)
		err = change_user(uid, gid);
	if (err == 0 && uid != ID_NONE && uid != 0)
		err = keep_net_admin();
	if (err == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		err = -errno;
	if (err == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		err = -errno;
	if (err != 0)
		snprintf(
			why, why_len,
			"cannot give up root (%s): start as root, or as the user that `user` names",
			strerror(-err));
	return err;
}
