/*
 * A program that closes all descriptors after LAPI_Init, as closefrom(3) does, and opens files of
 * its own: messages still arrive, the library's threads sleep, and the library neither reads those
 * files nor writes to them.
 */
#include "../common/ltest.h"

#include <sys/resource.h>
#include <sys/stat.h>

enum { FILES = 64, ROUNDS = 100 };

static lapi_cntr_t tgt_cntr;
static long long words[ROUNDS];
static char text[4096];

static double used(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(void) {
    char path[] = "/tmp/lapi-closed-XXXXXX";
    void **cntrs, **there;
    int file, next;
    double before;
    struct stat found;

    t_init();
    next = (t_me + 1) % t_tasks;
    cntrs = t_addresses(&tgt_cntr);
    there = t_addresses(words);
    OK(LAPI_Put(t_hndl, (uint)next, sizeof words[0], there[next], &(long long){1}, cntrs[next], NULL, NULL));
    t_wait_exact(&tgt_cntr, 1);
    t_fence();

    for (int number = 3; number < 1024; number++) close(number);
    file = mkstemp(path);
    CHECK(file >= 0 && unlink(path) == 0);
    memset(text, 'x', sizeof text);
    CHECK_EQ(write(file, text, sizeof text), sizeof text);
    CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
    for (int number = 0; number < FILES; number++) CHECK(dup(file) >= 0);

    for (int round = 0; round < ROUNDS; round++) {
        long long value = round + 1;
        /* In turn, so that the other task sleeps in the call, or computes. */
        if (round % 2 == t_me % 2) usleep(3000);
        OK(LAPI_Put(t_hndl, (uint)next, sizeof value, (long long *)there[next] + round, &value, cntrs[next], NULL, NULL));
        /* The other task may be a round ahead, with its next put here, before this one looks. */
        t_wait(&tgt_cntr, 1);
        CHECK_EQ(words[round], round + 1);
    }
    t_fence();

    before = used();
    usleep(400000);
    CHECK_FOR(used() - before < 0.2, "a task that sleeps for 0.4 s has used %.3f s", used() - before);
    t_fence();

    CHECK(fstat(file, &found) == 0);
    CHECK_EQ(found.st_size, sizeof text);
    /* All numbers share one offset, which a read or a write would have moved. */
    CHECK_EQ(lseek(file, 0, SEEK_CUR), 0);
    CHECK_EQ(read(file, text, sizeof text), sizeof text);
    for (next = 0; next < (int)sizeof text; next++) CHECK_EQ(text[next], 'x');
    t_done();
    return 0;
}
