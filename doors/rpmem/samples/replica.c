/*
 * A text in memory, with a replica on another host.
 *   replica save TARGET SET TEXT    creates the replica, and has the text there
 *   replica restore TARGET SET      prints the text that is there
 */
#include <librpmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SIZE (2 << 20)
/* The first 4096 bytes are the pool's header. */
#define DATA 4096

static int fail(const char *what)
{
	fprintf(stderr, "replica: %s: %s\n", what, rpmem_errormsg());
	return 1;
}

int main(int argc, char **argv)
{
	unsigned lanes = 1;
	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: replica save TARGET SET TEXT | restore TARGET SET\n");
		return 2;
	}
	char *pool = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pool == MAP_FAILED) {
		perror("replica");
		return 1;
	}
	RPMEMpool *remote;
	if (argc == 5) {
		struct rpmem_pool_attr attr = {.signature = "SAMPLE", .major = 1};
		remote = rpmem_create(argv[2], argv[3], pool, SIZE, &lanes, &attr);
		if (remote == NULL)
			return fail("create");
		size_t length = strlen(argv[4]) + 1;
		memcpy(pool + DATA, argv[4], length);
		if (rpmem_persist(remote, DATA, length, 0, 0) != 0)
			return fail("persist");
	} else {
		remote = rpmem_open(argv[2], argv[3], pool, SIZE, &lanes, NULL);
		if (remote == NULL)
			return fail("open");
		if (rpmem_read(remote, pool + DATA, DATA, SIZE - DATA, 0) != 0)
			return fail("read");
		printf("%s\n", pool + DATA);
	}
	return rpmem_close(remote) == 0 ? 0 : fail("close");
}
