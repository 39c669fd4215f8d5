/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a corpus through a fuzz target: every file of the folders and files named as arguments. */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static unsigned replayed;

static void replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		exit(1);
	}
	size_t cap = 1 << 20;
	uint8_t *text = malloc(cap);
	size_t len = text ? fread(text, 1, cap, f) : 0;
	fclose(f);
	/* An exact copy, so that the sanitizer sees the first byte read past the end. */
	uint8_t *exact = malloc(len ? len : 1);
	if (!text || !exact)
		exit(1);
	memcpy(exact, text, len);
	free(text);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	replayed++;
}

static void replay(const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0) {
		perror(path);
		exit(1);
	}
	if (!S_ISDIR(st.st_mode)) {
		replay_file(path);
		return;
	}
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char child[4096];
		if (names[i]->d_name[0] != '.') {
			snprintf(child, sizeof(child), "%s/%s", path, names[i]->d_name);
			replay(child);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%u inputs replayed\n", replayed);
	return replayed > 0 ? 0 : 1;
}
