/* Loaded before libc into a program of libpmemobj, which looks up librpmem's functions by dlsym.
 * Counts the moments at which a call of rpmem_persist begins or ends, in all threads. At the
 * KILL_AT-th of them the program kills itself, or the process whose number is in the file
 * KILL_FILE. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*persist)(void *pool, size_t offset, size_t length, unsigned lane, unsigned flags);
static atomic_ullong moments;

static void moment(void)
{
	const char *at = getenv("KILL_AT"), *path = getenv("KILL_FILE");
	pid_t process = getpid();

	if (at == NULL || ++moments != strtoull(at, NULL, 10))
		return;
	if (path != NULL) {
		FILE *file = fopen(path, "r");
		if (file == NULL || fscanf(file, "%d", &process) != 1 || fclose(file) != 0)
			abort();
	}
	if (kill(process, SIGKILL) != 0)
		abort();
}

static int counted(void *pool, size_t offset, size_t length, unsigned lane, unsigned flags)
{
	moment();
	int result = persist(pool, offset, length, lane, flags);
	moment();
	return result;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	static _Atomic(void *) next;
	void *(*real)(void *, const char *) = next;

	if (real == NULL)
		next = real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	if (real == NULL)
		abort();
	void *found = real(handle, name);
	if (found == NULL || strcmp(name, "rpmem_persist") != 0)
		return found;
	persist = found;
	return counted;
}
