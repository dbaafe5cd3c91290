/* Memory that a program attaches after LAPI_Init has the same address in all tasks:
 * attached CASE */
#include "../common/ltest.h"

#include <sched.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

enum { PIECES = 6, MOST = 256, MESSAGES = 200 };

static int completed;

/* The same in all tasks. */
static void same(void *address, const char *what) {
    void *table[16];
    int task;
    CHECK(t_tasks <= 16);
    OK(LAPI_Address_init(t_hndl, address, table));
    for (task = 0; task < t_tasks; task++)
        CHECK_FOR(table[task] == address, "%s is at %p here and at %p in task %d", what, address, table[task], task);
}

static void on_complete(lapi_handle_t *hndl, void *parameter) {
    (void)hndl;
    /* Allocates in a thread of the library. */
    free(parameter);
    free(malloc(1000));
    __atomic_add_fetch(&completed, 1, __ATOMIC_RELAXED);
}

static void *on_header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo) {
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len;
    *comp_h = on_complete;
    *uinfo = malloc(100);
    return NULL;
}

/* Whether memory belongs to AddressSanitizer's allocator: it has one region for each size, wherever
 * it is called, and no program's mapping lies there. */
static int is_sanitizers(unsigned long begin) {
#ifdef __SANITIZE_ADDRESS__
    return begin >= 0x600000000000 && begin < 0x640000000000;
#else
    (void)begin;
    return 0;
#endif
}

/* What is mapped with no file behind it and can be written: the beginnings of such
 * mappings, in order. */
static int mapped(unsigned long *begins) {
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin, inode;
        char rights[8];
        if (sscanf(line, "%lx-%*x %7s %*s %*s %lu", &begin, rights, &inode) == 3 && inode == 0 && rights[1] == 'w' && !is_sanitizers(begin)) {
            CHECK(count < MOST);
            begins[count++] = begin;
        }
    }
    fclose(maps);
    return count;
}

int main(int argc, char **argv) {
    static unsigned long before[MOST], after[MOST];
    void *pieces[PIECES];
    static char piece[64];
    int at, segment, was, is;
    lapi_cntr_t done = {0};
    (void)argc, (void)argv;
    free(malloc(1 << 16)); /* what the C library sets up for this thread is there */
    mapped(before);
    t_init();
    was = mapped(before);
    for (at = 0; at < PIECES; at++) {
        pieces[at] = mmap(NULL, (size_t)4096 << (3 * at), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(pieces[at] != MAP_FAILED);
    }
    segment = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
    CHECK(segment >= 0);
    void *shared = shmat(segment, NULL, 0);
    CHECK_EQ(shmctl(segment, IPC_RMID, NULL), 0);
    CHECK(shared != (void *)-1);
    for (at = 0; at < PIECES; at++) same(pieces[at], "a mapping");
    same(shared, "a segment");
    OK(LAPI_Gfence(t_hndl));

    /* The threads of the library run, and allocate: no new memory is mapped for that. */
    CHECK_EQ(shmdt(shared), 0);
    for (at = 0; at < PIECES; at++) CHECK_EQ(munmap(pieces[at], (size_t)4096 << (3 * at)), 0);
    for (at = 0; at < MESSAGES; at++)
        OK(LAPI_Amsend(t_hndl, (uint)((t_me + 1) % t_tasks), (void *)on_header, NULL, 0, piece, sizeof piece, NULL, NULL, &done));
    OK(LAPI_Waitcntr(t_hndl, &done, MESSAGES, NULL));
    t_probe_until(&completed, MESSAGES);
    is = mapped(after);
    for (at = 0; at < is; at++) {
        int old;
        for (old = 0; old < was && before[old] != after[at]; old++) {}
        CHECK_FOR(old < was, "memory was mapped at %#lx after LAPI_Init", after[at]);
    }
    t_done();
    return 0;
}
