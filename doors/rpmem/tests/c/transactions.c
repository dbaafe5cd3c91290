/*
 * Transactions of libpmemobj, as the distribution has it.
 *   transactions run POOL ACKS COUNT [AT PLACE [FILE]]
 *       four threads commit COUNT transactions each. ACKS is a file that has the last number that
 *       each thread has committed, also when the program is killed. Before (PLACE 0), within (1)
 *       or after (2) the transaction that it begins as the AT-th, the program kills itself, or the
 *       process whose number is in FILE.
 *   transactions check POOL ACKS
 *       every thread's area is as its last transaction has left it, and what was committed is
 *       there, which ACKS has then
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmemobj.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 4
#define SLOTS 48

/* What a transaction changes: all of it belongs to the same number. */
struct area {
	uint64_t number;
	uint64_t slots[SLOTS];
	uint64_t sum;
	PMEMoid object;
};

struct root {
	struct area areas[THREADS];
};

#define CHECK(condition)                                                                          \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition,                \
					pmemobj_errormsg());                                      \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

static PMEMobjpool *pool;
static struct root *root;
static volatile uint64_t *acks;
static uint64_t count, end_at, end_place;
static pid_t victim;

static uint64_t value(unsigned thread, uint64_t number)
{
	return (number * 0x9e3779b97f4a7c15u) ^ thread;
}

/* The size of the object that belongs to a number: some are larger than what lands as a whole. */
static size_t length(uint64_t number)
{
	return number % 41 == 0 ? 20000 : 64 + number % 2 * 1000;
}

/* Transactions of all threads that this run has begun. */
static atomic_uint_fast64_t begun;

static void end(uint64_t turn, unsigned where)
{
	if (turn == end_at && where == end_place)
		CHECK(kill(victim, SIGKILL) == 0);
}

static void *work(void *argument)
{
	unsigned thread = (unsigned)(size_t)argument;
	struct area *area = &root->areas[thread];
	while (area->number < count) {
		uint64_t number = area->number + 1, slot = number % SLOTS;
		uint64_t turn = ++begun;
		end(turn, 0);
		TX_BEGIN(pool) {
			pmemobj_tx_add_range_direct(&area->number, sizeof area->number);
			pmemobj_tx_add_range_direct(&area->slots[slot], sizeof area->slots[slot]);
			pmemobj_tx_add_range_direct(&area->sum, sizeof area->sum + sizeof area->object);
			area->sum += value(thread, number) - area->slots[slot];
			area->slots[slot] = value(thread, number);
			end(turn, 1);
			if (!OID_IS_NULL(area->object))
				pmemobj_tx_free(area->object);
			area->object = pmemobj_tx_alloc(length(number), thread);
			memset(pmemobj_direct(area->object), (int)number, length(number));
			area->number = number;
		} TX_ONABORT {
			CHECK(!"a transaction was aborted");
		} TX_END
		acks[thread] = number;
		end(turn, 2);
	}
	return NULL;
}

static void check(void)
{
	for (unsigned thread = 0; thread < THREADS; thread++) {
		struct area *area = &root->areas[thread];
		uint64_t sum = 0, number = area->number;
		for (uint64_t slot = 0; slot < SLOTS; slot++) {
			uint64_t last = number < slot ? 0 : number - (number - slot) % SLOTS;
			CHECK(area->slots[slot] == (last ? value(thread, last) : 0));
			sum += area->slots[slot];
		}
		CHECK(area->sum == sum);
		CHECK(OID_IS_NULL(area->object) == (number == 0));
		unsigned char *object = number ? pmemobj_direct(area->object) : NULL;
		for (size_t at = 0; object && at < length(number); at++)
			CHECK(object[at] == (unsigned char)number);
		/* One more may be committed than the thread has come to say, in each run. */
		if (number != acks[thread] && number != acks[thread] + 1)
			fprintf(stderr, "thread %u: %llu are committed, and it has said %llu\n", thread,
					(unsigned long long)number, (unsigned long long)acks[thread]);
		CHECK(number == acks[thread] || number == acks[thread] + 1);
		acks[thread] = number;
		printf("%u %llu\n", thread, (unsigned long long)number);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	CHECK(argc >= 4);
	int file = open(argv[3], O_RDWR | O_CREAT, 0666);
	CHECK(file >= 0 && ftruncate(file, 4096) == 0);
	acks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(acks != MAP_FAILED);
	pool = pmemobj_open(argv[2], "transactions");
	CHECK(pool);
	root = pmemobj_direct(pmemobj_root(pool, sizeof *root));
	CHECK(root);
	if (strcmp(argv[1], "check") == 0) {
		check();
		pmemobj_close(pool);
		printf("checked\n");
		return 0;
	}
	CHECK(argc == 5 || argc >= 7);
	count = strtoull(argv[4], NULL, 0);
	if (argc >= 7) {
		end_at = strtoull(argv[5], NULL, 0);
		end_place = strtoull(argv[6], NULL, 0);
		victim = getpid();
	}
	if (argc >= 8) {
		FILE *number = fopen(argv[7], "r");
		CHECK(number && fscanf(number, "%d", &victim) == 1 && victim > 1);
	}
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	pmemobj_close(pool);
	printf("committed\n");
	return 0;
}
