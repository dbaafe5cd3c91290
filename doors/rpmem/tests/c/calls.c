/*
 * Calls of librpmem, and what they must do.
 *   calls arguments TARGET SET      what the library refuses by itself
 *   calls whole TARGET SET SIZE     create, every kind of data operation, open, close, remove
 *   calls lanes TARGET SET SIZE     several threads, each with lanes of its own
 *   calls plain TARGET SET SIZE     a pool without headers
 *   calls order TARGET SET SIZE     operations of a lane on the same bytes
 *   calls undrained TARGET SET SIZE flushes before a close
 *   calls stranger TARGET SET SIZE  the number of ssh is another process's at the close
 *   calls try CALL TARGET SET SIZE  one call of create, none (create without attributes), open,
 *                                   remove, force; prints errno's name, the lanes and the text
 *   calls hold TARGET SET SIZE      opens, says "open", and persists once for each line it reads;
 *                                   says what each returned, and at the end what close returned
 *   calls late TARGET SET SIZE      another environment, behind the back of the library, which is
 *                                   loaded; no ssh reaches anything
 *   calls again TARGET SET SIZE     persists 8192 bytes at the same place without end, all of them
 *                                   of one value, and says how often it has done so
 */
#define _GNU_SOURCE
#include <errno.h>
#include <librpmem.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                          \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "line %d: %s (errno %d, %s)\n", __LINE__, #condition,     \
					errno, rpmem_errormsg());                                 \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)
#define REFUSES(call, code) (errno = 0, (call) == -1 && errno == (code) && rpmem_errormsg()[0])
#define OPENS_NOT(call) (errno = 0, (call) == NULL && errno == EINVAL && rpmem_errormsg()[0])

static const char *target, *set;
static size_t size;
static char *local;

static struct rpmem_pool_attr example(void)
{
	struct rpmem_pool_attr attr;
	memset(&attr, 0, sizeof attr);
	memcpy(attr.signature, "EXAMPLE", 8);
	attr.major = 3;
	attr.compat_features = 1;
	attr.incompat_features = 6;
	memset(attr.poolset_uuid, 1, 16);
	memset(attr.uuid, 2, 16);
	memset(attr.next_uuid, 3, 16);
	memset(attr.prev_uuid, 4, 16);
	memset(attr.user_flags, 5, 16);
	return attr;
}

static void fill(char *at, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++) {
		seed = seed * 1103515245 + 12345;
		at[i] = (char)(seed >> 16);
	}
}

static void arguments(void)
{
	unsigned lanes = 4, none = 0;
	struct rpmem_pool_attr attr = example();
	/* The checks come in this order: each call has the next fault, and none before it. */
	CHECK(OPENS_NOT(rpmem_create(target, set, NULL, size, &lanes, &attr)));
	CHECK(OPENS_NOT(rpmem_create(target, set, local + 1, size, &lanes, &attr)));
	CHECK(OPENS_NOT(rpmem_create(target, set, local, size + 1, &lanes, &attr)));
	CHECK(OPENS_NOT(rpmem_create(target, set, local, 4096, &lanes, &attr)));
	CHECK(strstr(rpmem_errormsg(), "8192"));
	CHECK(OPENS_NOT(rpmem_open(target, set, local, size, NULL, &attr)));
	CHECK(OPENS_NOT(rpmem_open(target, set, local, size, &none, &attr)));
	CHECK(strstr(rpmem_errormsg(), "nlanes"));
	CHECK(OPENS_NOT(rpmem_open(NULL, set, local, size, &lanes, &attr)));
	CHECK(OPENS_NOT(rpmem_open(target, NULL, local, size, &lanes, &attr)));
	CHECK(OPENS_NOT(rpmem_open("user@", set, local, size, &lanes, &attr)));
	CHECK(OPENS_NOT(rpmem_open(":22", set, local, size, &lanes, &attr)));
	CHECK(OPENS_NOT(rpmem_open("host:x", set, local, size, &lanes, &attr)));
	CHECK(OPENS_NOT(rpmem_open(target, "/absolute.set", local, size, &lanes, &attr)));
	CHECK(OPENS_NOT(rpmem_open(target, "", local, size, &lanes, &attr)));
	CHECK(OPENS_NOT(rpmem_open(target, "below/../../other.set", local, size, &lanes, &attr)));
	CHECK(lanes == 4);
	CHECK(REFUSES(rpmem_remove(target, set, 4), EINVAL));
	CHECK(REFUSES(rpmem_remove(target, "/absolute.set", 0), EINVAL));
	CHECK(REFUSES(rpmem_remove(target, "..", 0), EINVAL));
	CHECK(REFUSES(rpmem_close(NULL), EINVAL));
	CHECK(REFUSES(rpmem_persist(NULL, 4096, 8, 0, 0), EINVAL));
	CHECK(rpmem_check_version(RPMEM_MAJOR_VERSION, RPMEM_MINOR_VERSION) == NULL);
	CHECK(rpmem_check_version(1, 0) == NULL && rpmem_check_version(1, 4) && rpmem_check_version(2, 0));
	CHECK(rpmem_check_version(0, 0));
	CHECK(sizeof attr == 104);
}

/* The remote pool has what the local one has. */
static void same(RPMEMpool *pool, size_t from, char *room)
{
	memset(room, 0, size);
	CHECK(rpmem_read(pool, room, from, size - from, 0) == 0);
	CHECK(memcmp(room, local + from, size - from) == 0);
}

static void data(RPMEMpool *pool, size_t first, unsigned lanes, char *room)
{
	static const size_t lengths[] = {1, 7, 8, 64, 1000, 4096, 8191, 8192, 8193, 70000, 3 << 20};
	unsigned lane = 0;
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		size_t at = first + i * 331, length = lengths[i];
		fill(local + at, length, i + 1);
		CHECK(rpmem_persist(pool, at, length, lane, i % 2 ? RPMEM_PERSIST_RELAXED : 0) == 0);
		same(pool, first, room);
		fill(local + at, length, i + 100);
		CHECK(rpmem_deep_persist(pool, at + 4096, length, lane) == 0);
		CHECK(rpmem_flush(pool, at, length, lane, 0) == 0);
		CHECK(rpmem_flush(pool, at, length, lane, RPMEM_FLUSH_RELAXED) == 0);
		CHECK(rpmem_drain(pool, lane, 0) == 0);
		same(pool, first, room);
		lane = (lane + 1) % lanes;
	}
	/* More flushes than a lane keeps ranges, and a drain of nothing. */
	for (size_t i = 0; i < 3000; i++) {
		local[first + i * 512] ^= 1;
		CHECK(rpmem_flush(pool, first + i * 512, 8, 0, 0) == 0);
	}
	CHECK(rpmem_drain(pool, 0, 0) == 0);
	CHECK(rpmem_drain(pool, 0, 0) == 0);
	same(pool, first, room);
	CHECK(rpmem_persist(pool, size - 1, 1, lanes - 1, 0) == 0);

	CHECK(REFUSES(rpmem_persist(pool, 4096, 8, 0, 2), EINVAL));
	CHECK(REFUSES(rpmem_flush(pool, 4096, 8, 0, 6), EINVAL));
	CHECK(REFUSES(rpmem_drain(pool, 0, 1), EINVAL));
	CHECK(REFUSES(rpmem_deep_persist(pool, 4095, 8, 0), EINVAL));
	CHECK(REFUSES(rpmem_persist(pool, 4096, 8, lanes, 0), EINVAL));
	CHECK(REFUSES(rpmem_flush(pool, 4096, 8, lanes, 0), EINVAL));
	CHECK(REFUSES(rpmem_drain(pool, lanes, 0), EINVAL));
	CHECK(REFUSES(rpmem_deep_persist(pool, 4096, 8, lanes), EINVAL));
	CHECK(REFUSES(rpmem_read(pool, room, 4096, 8, lanes), EINVAL));
	CHECK(REFUSES(rpmem_persist(pool, size - 7, 8, 0, 0), EINVAL));
	CHECK(REFUSES(rpmem_persist(pool, size, (size_t)-1, 0, 0), EINVAL));
	CHECK(REFUSES(rpmem_read(pool, room, size - 7, 8, 0), EINVAL));
	CHECK(REFUSES(rpmem_read(pool, NULL, 0, 8, 0), EINVAL));
	CHECK(rpmem_persist(pool, size, 0, 0, 0) == 0 && rpmem_flush(pool, 4096, 0, 0, 0) == 0);
	CHECK(rpmem_read(pool, room, 0, 0, 0) == 0 && rpmem_deep_persist(pool, 4096, 0, 0) == 0);
	/* None of these has made the pool bad. */
	CHECK(rpmem_persist(pool, 4096, 8, 0, 0) == 0);
}

static void whole(void)
{
	char *room = malloc(size);
	unsigned lanes = 3;
	struct rpmem_pool_attr attr = example(), found, other = example();
	/* Features without which no pool could be opened: nothing of it is made. */
	for (int which = 0; which < 3; which++) {
		struct rpmem_pool_attr unknown = example();
		*(which == 0 ? &unknown.compat_features : which == 1 ? &unknown.incompat_features
								     : &unknown.ro_compat_features) |= 8;
		CHECK(OPENS_NOT(rpmem_create(target, set, local, size, &lanes, &unknown)));
		CHECK(strstr(rpmem_errormsg(), "features"));
	}
	RPMEMpool *pool = rpmem_create(target, set, local, size, &lanes, &attr);
	CHECK(pool && lanes == 3);
	CHECK(REFUSES(rpmem_persist(pool, 0, 8, 0, 0), EINVAL));
	CHECK(REFUSES(rpmem_flush(pool, 4095, 1, 0, 0), EINVAL));
	data(pool, 4096, lanes, room);
	CHECK(rpmem_read(pool, room, 0, 4096, 0) == 0 && memcmp(room, "EXAMPLE", 8) == 0);
	other.major = 9;
	memset(other.uuid, 6, 16);
	CHECK(rpmem_set_attr(pool, &other) == 0);
	attr.ro_compat_features = 1;
	CHECK(REFUSES(rpmem_set_attr(pool, &attr), EINVAL));
	CHECK(rpmem_close(pool) == 0);

	lanes = 5000;
	pool = rpmem_open(target, set, local, size, &lanes, &found);
	CHECK(pool && lanes == 1024);
	/* SINGLEHDR is one of the features. */
	other.incompat_features |= found.incompat_features & 1;
	CHECK(memcmp(&found, &other, sizeof found) == 0);
	same(pool, 4096, room);
	CHECK(rpmem_set_attr(pool, NULL) == 0);
	CHECK(rpmem_close(pool) == 0);

	pool = rpmem_open(target, set, local, size, &lanes, &found);
	CHECK(pool && found.major == 0 && found.signature[0] == 0 && found.uuid[0] == 0);
	CHECK(rpmem_close(pool) == 0);
	pool = rpmem_open(target, set, local, size, &lanes, NULL);
	CHECK(pool && rpmem_close(pool) == 0);
	CHECK(rpmem_remove(target, set, 0) == 0);
	free(room);
}

static void plain(void)
{
	char *room = malloc(size);
	unsigned lanes = 2;
	struct rpmem_pool_attr attr = example(), zeros;
	memset(&zeros, 0, sizeof zeros);
	RPMEMpool *pool = rpmem_create(target, set, local, size, &lanes, &zeros);
	CHECK(pool);
	fill(local, 4096, 77);
	CHECK(rpmem_persist(pool, 0, 4096, 0, 0) == 0);
	data(pool, 4096, lanes, room);
	same(pool, 0, room);
	CHECK(REFUSES(rpmem_deep_persist(pool, 0, 8, 0), EINVAL));
	CHECK(REFUSES(rpmem_set_attr(pool, &attr), EINVAL));
	CHECK(rpmem_set_attr(pool, NULL) == 0);
	CHECK(rpmem_close(pool) == 0);
	pool = rpmem_open(target, set, local, size, &lanes, &attr);
	CHECK(pool && memcmp(&attr, &zeros, sizeof attr) == 0);
	same(pool, 0, room);
	CHECK(rpmem_close(pool) == 0);
	CHECK(rpmem_remove(target, set, RPMEM_REMOVE_POOL_SET) == 0);
	free(room);
}

#define THREADS 4
static RPMEMpool *shared;

static void *lane_work(void *number)
{
	unsigned lane = (unsigned)(size_t)number;
	size_t part = (size - 4096) / THREADS, from = 4096 + lane * part;
	for (unsigned turn = 0; turn < 400; turn++) {
		size_t at = from + (turn * 7919u) % (part - 20000);
		size_t length = turn % 50 == 0 ? 20000 : 1 + turn * 37 % 8192;
		fill(local + at, length, turn * THREADS + lane);
		if (turn % 3)
			CHECK(rpmem_persist(shared, at, length, lane, 0) == 0);
		else
			CHECK(rpmem_flush(shared, at, length, lane, 0) == 0);
		if (turn % 9 == 0)
			CHECK(rpmem_drain(shared, lane, 0) == 0);
		char back[64];
		if (turn % 11 == 1)
			CHECK(rpmem_read(shared, back, at, length < 64 ? length : 64, lane) == 0);
	}
	CHECK(rpmem_drain(shared, lane, 0) == 0);
	return NULL;
}

static void lanes_in_parallel(void)
{
	unsigned lanes = THREADS;
	struct rpmem_pool_attr attr = example();
	pthread_t threads[THREADS];
	char *room = malloc(size);
	shared = rpmem_create(target, set, local, size, &lanes, &attr);
	CHECK(shared && lanes == THREADS);
	CHECK(rpmem_persist(shared, 4096, size - 4096, 0, RPMEM_PERSIST_RELAXED) == 0);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, lane_work, (void *)i) == 0);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	same(shared, 4096, room);
	CHECK(rpmem_close(shared) == 0);
	free(room);
}

/* What follows a flush of the same bytes, as it is seen by a read and when all is over. */
static void then(RPMEMpool *pool, int turn, size_t at, size_t length)
{
	char back[64];
	fill(local + at, 64, (unsigned)at + 1);
	switch (turn) {
	case 0:
		CHECK(rpmem_persist(pool, at, 64, 0, 0) == 0);
		break;
	case 1:
		CHECK(rpmem_flush(pool, at, 64, 0, 0) == 0);
		CHECK(rpmem_drain(pool, 0, 0) == 0);
		break;
	case 2:
		CHECK(rpmem_flush(pool, at, length, 0, 0) == 0);
		CHECK(rpmem_read(pool, back, at, 64, 0) == 0);
		CHECK(memcmp(back, local + at, 64) == 0);
		break;
	default:
		/* Longer than what travels with a request. */
		CHECK(rpmem_persist(pool, at - 32, length, 0, 0) == 0);
	}
}

static void order(void)
{
	unsigned lanes = 1;
	struct rpmem_pool_attr attr = example();
	char *room = malloc(size);
	RPMEMpool *pool = rpmem_create(target, set, local, size, &lanes, &attr);
	CHECK(pool);
	for (int turn = 0; turn < 4; turn++) {
		size_t length = turn == 3 ? 9000 : 512;
		for (size_t i = 1; i < 20000 && 8192 + (i + 1) * length < size; i++) {
			size_t at = 4096 + i * length;
			fill(local + at - 32, length, (unsigned)at);
			CHECK(rpmem_flush(pool, at, length - 32, 0, 0) == 0);
			then(pool, turn, at, length);
		}
		CHECK(rpmem_drain(pool, 0, 0) == 0);
		CHECK(rpmem_persist(pool, 4096, 8, 0, 0) == 0);
		memset(room, 0, size);
		CHECK(rpmem_read(pool, room, 4096, size - 4096, 0) == 0);
		for (size_t i = 1; i < 20000 && 8192 + (i + 1) * length < size; i++) {
			size_t at = 4096 + i * length;
			CHECK(memcmp(room + at - 4096, local + at, 64) == 0);
		}
	}
	CHECK(rpmem_close(pool) == 0);
	free(room);
}

static void undrained(void)
{
	unsigned lanes = 2;
	struct rpmem_pool_attr attr = example();
	char *room = malloc(size);
	RPMEMpool *pool = rpmem_create(target, set, local, size, &lanes, &attr);
	for (unsigned turn = 0; turn < 40; turn++) {
		CHECK(pool);
		CHECK(rpmem_read(pool, room, 4096, 50 * 4096, 0) == 0);
		CHECK(memcmp(room, local + 4096, 50 * 4096) == 0);
		for (unsigned i = 1; i <= 50; i++) {
			fill(local + i * 4096, 4096, turn * 50 + i);
			CHECK(rpmem_flush(pool, i * 4096, 4096, i % 2, 0) == 0);
		}
		CHECK(rpmem_close(pool) == 0);
		pool = rpmem_open(target, set, local, size, &lanes, NULL);
	}
	CHECK(rpmem_close(pool) == 0);
	free(room);
}

/* The next process or thread has this number. */
static void choose(pid_t number)
{
	FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
	CHECK(last && fprintf(last, "%d", (int)number - 1) > 0 && fclose(last) == 0);
}

static void stranger(void)
{
	unsigned lanes = 1;
	int ssh = 0, status;
	char path[64];
	pid_t child = 0;
	RPMEMpool *pool = rpmem_open(target, set, local, size, &lanes, NULL);
	CHECK(pool);
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	FILE *children = fopen(path, "r");
	CHECK(children && fscanf(children, "%d", &ssh) == 1 && fclose(children) == 0);
	CHECK(kill(ssh, SIGKILL) == 0 && waitpid(ssh, &status, 0) == ssh);
	/* A thread of the library may have had it. */
	for (int i = 0; i < 100 && child != ssh; i++) {
		if (child) {
			CHECK(kill(child, SIGKILL) == 0);
			CHECK(waitpid(child, &status, 0) == child);
		}
		choose(ssh);
		child = fork();
		CHECK(child >= 0);
		if (child == 0)
			for (;;)
				pause();
	}
	CHECK(child == ssh);
	rpmem_close(pool);
	CHECK(waitpid(child, &status, WNOHANG) == 0);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
}

static void try(const char *call)
{
	unsigned lanes = 7;
	struct rpmem_pool_attr attr = example();
	RPMEMpool *pool = NULL;
	int result = -1;
	errno = 0;
	if (strcmp(call, "create") == 0)
		pool = rpmem_create(target, set, local, size, &lanes, &attr);
	else if (strcmp(call, "none") == 0)
		pool = rpmem_create(target, set, local, size, &lanes, NULL);
	else if (strcmp(call, "open") == 0)
		pool = rpmem_open(target, set, local, size, &lanes, &attr);
	else if (strcmp(call, "remove") == 0)
		result = rpmem_remove(target, set, 0);
	else
		result = rpmem_remove(target, set, RPMEM_REMOVE_FORCE);
	int code = pool || result == 0 ? 0 : errno;
	printf("%s %u %s\n", code ? strerrorname_np(code) : "OK", lanes, code ? rpmem_errormsg() : "");
	if (pool)
		CHECK(rpmem_close(pool) == 0);
}

static void say(const char *what, int result)
{
	printf("%s %s\n", what, result == 0 ? "OK" : strerrorname_np(errno));
	fflush(stdout);
}

static void hold(void)
{
	unsigned lanes = 2;
	RPMEMpool *pool = rpmem_open(target, set, local, size, &lanes, NULL);
	CHECK(pool);
	say("open", 0);
	for (char line[16]; fgets(line, sizeof line, stdin);) {
		fill(local + 4096, 64, 5);
		say("persist", rpmem_persist(pool, 4096, 64, 0, 0));
		say("drain", rpmem_drain(pool, 1, 0));
		say("read", rpmem_read(pool, local + 8192, 4096, 64, 1));
	}
	say("close", rpmem_close(pool));
}

static void again(void)
{
	unsigned lanes = 1;
	RPMEMpool *pool = rpmem_open(target, set, local, size, &lanes, NULL);
	CHECK(pool);
	for (unsigned turn = 1;; turn++) {
		memset(local + 5000, (int)(turn % 251), 8192);
		CHECK(rpmem_persist(pool, 5000, 8192, 0, 0) == 0);
		printf("%u\n", turn);
		fflush(stdout);
	}
}

static void late(void)
{
	unsigned lanes = 1;
	struct rpmem_pool_attr attr = example();
	CHECK(setenv("RPMEM_SSH", "/nowhere", 1) == 0 && setenv("RPMEM_CMD", "late", 1) == 0);
	for (int turn = 0; turn < 2; turn++) {
		CHECK(!rpmem_open(target, set, local, size, &lanes, &attr));
		CHECK(errno == ECONNREFUSED);
	}
}

int main(int argc, char **argv)
{
	CHECK(argc >= 4);
	const char *mode = argv[1], *call = argv[2];
	if (strcmp(mode, "try") == 0)
		argv++, argc--;
	target = argv[2];
	set = argv[3];
	size = argc > 4 ? strtoull(argv[4], NULL, 0) : 1 << 20;
	local = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(local != MAP_FAILED);
	if (strcmp(mode, "arguments") == 0)
		arguments();
	else if (strcmp(mode, "whole") == 0)
		whole();
	else if (strcmp(mode, "plain") == 0)
		plain();
	else if (strcmp(mode, "lanes") == 0)
		lanes_in_parallel();
	else if (strcmp(mode, "order") == 0)
		order();
	else if (strcmp(mode, "stranger") == 0)
		stranger();
	else if (strcmp(mode, "undrained") == 0)
		undrained();
	else if (strcmp(mode, "try") == 0)
		try(call);
	else if (strcmp(mode, "late") == 0)
		late();
	else if (strcmp(mode, "again") == 0)
		again();
	else
		hold();
	if (strcmp(mode, "try") && strcmp(mode, "hold"))
		printf("%s: all of it\n", mode);
	return 0;
}
