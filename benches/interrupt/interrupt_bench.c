/*
 * Cost and benefit of interrupt mode, between two tasks: poe interrupt_bench -procs 2 [-n
 * samples] [-p pairs].
 *
 * Part one: the time from just before a message is sent until it has been served, at a target that
 * computes, compared with the same message to a target that polls, and with the time to wake a
 * thread that sleeps in a process whose other thread computes. The kinds take turns, sample by
 * sample, so that a slow moment of the machine affects all of them.
 *
 *     served KIND median_usec p90_usec best_usec
 *
 *     futex, eventfd             a thread that sleeps there has run
 *     am_polled, put_polled      the target calls LAPI_Probe all the time: header handler has run, counter was seen
 *     am_computing, put_computing    it computes for longer than the notifier watches; its loop reads the counter's memory
 *     am_after, put_after        it has stopped polling 50 microseconds ago
 *     am_next                    it computes, and the message before has come just now
 *
 * Part two: a ping-pong of active messages, both tasks polling, with INTERRUPT_SET 0 and 1 in
 * alternating pairs, and how often the thread of interrupt mode was switched to meanwhile.
 *
 *     polling off_usec on_usec ratio switches_per_second_off switches_per_second_on
 */
#include "../bench.h"

#include <dirent.h>
#include <fcntl.h>
#include <lapi.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum kind { FUTEX, EVENTFD, AM_POLLED, PUT_POLLED, AM_COMPUTING, PUT_COMPUTING, AM_AFTER, PUT_AFTER, AM_NEXT, KINDS };
static const char *const kind_names[KINDS] = {"futex",        "eventfd",       "am_polled", "put_polled", "am_computing",
                                              "put_computing", "am_after", "put_after",  "am_next"};

enum mode { COMPUTE, POLL, PART_TWO };

/* How long a target computes before a message comes: longer than the notifier's longest interval
 * twice over. */
#define IDLE_US 12000
#define MAX_SAMPLES 400
#define ROUND_TRIPS 4000

struct shared {
    _Alignas(128) volatile uint64_t served; /* when, in nanoseconds; 0 before */
    _Alignas(128) volatile uint32_t word;   /* the futex */
    _Alignas(128) volatile int mode, mode_seen;
    _Alignas(128) volatile int event_fd, pid;
};

static struct shared *page;
static lapi_handle_t hndl;
static int rank;
static uint peer;
static lapi_cntr_t seen, arrived;
static void **seen_tab, **arrived_tab, **handlers, **data_tab;
static long data[2];
static double samples[KINDS][MAX_SAMPLES];

static void must(int code, const char *what)
{
    if (code != LAPI_SUCCESS) {
        char text[LAPI_MAX_ERR_STRING];
        LAPI_Msg_string(code, text);
        bench_die("%s: %d, %s", what, code, text);
    }
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void serve(void) { __atomic_store_n(&page->served, now(), __ATOMIC_RELEASE); }

static void *on_message(lapi_handle_t *handle, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo)
{
    (void)handle, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    serve();
    *comp_h = NULL;
    return data;
}

/* --- the bare threads --- */

static void *sleep_on_futex(void *arg)
{
    uint32_t last = page->word;
    (void)arg;
    for (;;) {
        while (__atomic_load_n(&page->word, __ATOMIC_ACQUIRE) == last)
            syscall(SYS_futex, &page->word, FUTEX_WAIT, last, NULL, NULL, 0);
        serve();
        last++;
    }
    return NULL;
}

static void *sleep_on_eventfd(void *arg)
{
    struct pollfd wait = {page->event_fd, POLLIN, 0};
    uint64_t count;
    (void)arg;
    for (;;) {
        poll(&wait, 1, -1);
        serve();
        if (read(page->event_fd, &count, sizeof count) != sizeof count)
            bench_die("eventfd: %s", strerror(errno));
    }
    return NULL;
}

/* --- the target --- */

static void target(void)
{
    volatile double x = 1;
    int mode, counted = 0;
    while ((mode = __atomic_load_n(&page->mode, __ATOMIC_ACQUIRE)) != PART_TWO) {
        page->mode_seen = mode;
        if (mode == POLL)
            must(LAPI_Probe(hndl), "LAPI_Probe");
        else
            for (int i = 0; i < 8; i++)
                x = x * 1.0000001 + 1e-9;
        int value = __atomic_load_n(&seen.cntr, __ATOMIC_ACQUIRE);
        if (value != counted) {
            serve();
            counted = value;
        }
    }
}

/* --- the origin --- */

static int their_event = -1;

static void set_mode(int mode)
{
    __atomic_store_n(&page->mode, mode, __ATOMIC_RELEASE);
    while (__atomic_load_n(&page->mode_seen, __ATOMIC_ACQUIRE) != mode)
        ;
}

static void send_message(int is_put)
{
    if (is_put)
        must(LAPI_Put(hndl, peer, 8, data_tab[peer], data, seen_tab[peer], NULL, NULL), "LAPI_Put");
    else
        must(LAPI_Amsend(hndl, peer, handlers[peer], NULL, 0, data, 8, NULL, NULL, NULL), "LAPI_Amsend");
}

static void await_served(void)
{
    double limit = now_ns() + PEER_TIMEOUT_NS;
    while (__atomic_load_n(&page->served, __ATOMIC_ACQUIRE) == 0)
        if (now_ns() > limit)
            bench_die("a message was not served within %.0f s", PEER_TIMEOUT_NS / 1e9);
}

static double sample(enum kind kind)
{
    uint64_t start, one = 1;
    int is_put = kind == PUT_POLLED || kind == PUT_COMPUTING || kind == PUT_AFTER;
    int after = kind == AM_AFTER || kind == PUT_AFTER;
    set_mode(kind == AM_POLLED || kind == PUT_POLLED || after ? POLL : COMPUTE);
    usleep(IDLE_US);
    /* awake, as a task that has just computed what it sends */
    for (start = now(); now() < start + 100000;)
        ;
    if (after) {
        set_mode(COMPUTE);
        for (start = now(); now() < start + 50000;)
            ;
    }
    if (kind == AM_NEXT) {
        page->served = 0;
        send_message(0);
        await_served();
    }
    page->served = 0;
    start = now();
    if (kind == FUTEX) {
        __atomic_fetch_add(&page->word, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &page->word, FUTEX_WAKE, 1, NULL, NULL, 0);
    } else if (kind == EVENTFD) {
        if (their_event < 0)
            return -1;
        if (write(their_event, &one, sizeof one) != sizeof one)
            bench_die("eventfd: %s", strerror(errno));
    } else {
        send_message(is_put);
    }
    await_served();
    return (double)(page->served - start) / 1e3;
}

static void part_one(int count)
{
    must(LAPI_Senv(hndl, INTERRUPT_SET, 1), "LAPI_Senv");
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
    if (rank == 1) {
        target();
        return;
    }
    for (int i = 0; i < count; i++)
        for (int kind = 0; kind < KINDS; kind++)
            samples[kind][i] = sample(kind);
    for (int kind = 0; kind < KINDS; kind++) {
        double middle = median(samples[kind], count);
        printf("served %s %.3f %.3f %.3f\n", kind_names[kind], middle, samples[kind][count * 9 / 10], samples[kind][0]);
    }
    __atomic_store_n(&page->mode, PART_TWO, __ATOMIC_RELEASE);
}

/* How often the thread of interrupt mode has been switched to. */
static long switches(void)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    long total = 0;
    while (dir && (entry = readdir(dir)) != NULL) {
        char path[300], line[128];
        long count;
        int ours = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            ours |= strncmp(line, "Name:\tlapi-intr", 15) == 0;
            if (ours && (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1 || sscanf(line, "nonvoluntary_ctxt_switches: %ld", &count) == 1))
                total += count;
        }
        if (file)
            fclose(file);
    }
    if (dir)
        closedir(dir);
    return total;
}

static void message(void)
{
    must(LAPI_Amsend(hndl, peer, handlers[peer], NULL, 0, data, 8, arrived_tab[peer], NULL, NULL), "LAPI_Amsend");
}

static void ping_pong(void)
{
    for (int i = 0; i < ROUND_TRIPS; i++) {
        if (rank == 0)
            message();
        must(LAPI_Waitcntr(hndl, &arrived, 1, NULL), "LAPI_Waitcntr");
        if (rank == 1)
            message();
    }
}

static void part_two(int pairs)
{
    double usec[2][MAX_SAMPLES], ratio[MAX_SAMPLES], seconds[2] = {0, 0};
    long switched[2] = {0, 0};
    for (int i = 0; i < pairs; i++) {
        /* which one is first changes, so that neither gains by its place */
        for (int turn = 0; turn < 2; turn++) {
            int mode = (i + turn) % 2;
            must(LAPI_Senv(hndl, INTERRUPT_SET, mode), "LAPI_Senv");
            must(LAPI_Gfence(hndl), "LAPI_Gfence");
            ping_pong(); /* warm, and the notifier is in its stride */
            long before = switches();
            double start = now_ns();
            for (int times = 0; times < 4; times++)
                ping_pong();
            double took = now_ns() - start;
            switched[mode] += switches() - before;
            seconds[mode] += took / 1e9;
            usec[mode][i] = took / (4.0 * ROUND_TRIPS * 2) / 1e3;
        }
        ratio[i] = usec[1][i] / usec[0][i];
    }
    if (rank == 0)
        printf("polling %.4f %.4f %.4f %.1f %.1f\n", median(usec[0], pairs), median(usec[1], pairs), median(ratio, pairs),
               switched[0] / seconds[0], switched[1] / seconds[1]);
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
}

/* Memory of task 0 without a name, which task 1 opens through its process. */
static void map_page(void)
{
    lapi_long_t where[2];
    char path[64];
    int fd = -1;
    if (rank == 0) {
        fd = memfd_create("bench", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, sizeof *page) != 0)
            bench_die("no shared page: %s", strerror(errno));
    }
    must(LAPI_Address_init64(hndl, (lapi_long_t)getpid() << 32 | (uint)fd, where), "LAPI_Address_init64");
    if (rank == 1) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)(where[0] >> 32), (int)(uint)where[0]);
        fd = open(path, O_RDWR | O_CLOEXEC);
    }
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || page == MAP_FAILED)
        bench_die("no shared page: %s", strerror(errno));
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
    close(fd);
}

static void bare_threads(void)
{
    pthread_t tid;
    if (rank == 1) {
        page->event_fd = eventfd(0, EFD_CLOEXEC);
        page->pid = getpid();
        if (pthread_create(&tid, NULL, sleep_on_futex, NULL) || pthread_create(&tid, NULL, sleep_on_eventfd, NULL))
            bench_die("no thread");
    }
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
#ifdef SYS_pidfd_getfd
    if (rank == 0) {
        int process = (int)syscall(SYS_pidfd_open, page->pid, 0);
        their_event = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, page->event_fd, 0);
    }
#endif
}

int main(int argc, char **argv)
{
    lapi_info_t info;
    int tasks, letter, count = 40, pairs = 15;
    while ((letter = getopt(argc, argv, "n:p:")) != -1) {
        if (letter == 'n')
            count = atoi(optarg);
        else if (letter == 'p')
            pairs = atoi(optarg);
        else
            bench_die("options: -n samples  -p pairs");
    }
    if (count < 1 || count > MAX_SAMPLES || pairs < 1 || pairs > MAX_SAMPLES)
        bench_die("1 to %d samples and pairs", MAX_SAMPLES);
    memset(&info, 0, sizeof info);
    must(LAPI_Init(&hndl, &info), "LAPI_Init");
    must(LAPI_Qenv(hndl, TASK_ID, &rank), "LAPI_Qenv");
    must(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks != 2)
        bench_die("two tasks are needed, these are %d: poe interrupt_bench -procs 2", tasks);
    peer = !rank;
    seen_tab = malloc(2 * sizeof *seen_tab), arrived_tab = malloc(2 * sizeof *arrived_tab);
    handlers = malloc(2 * sizeof *handlers), data_tab = malloc(2 * sizeof *data_tab);
    must(LAPI_Address_init(hndl, &seen, seen_tab), "LAPI_Address_init");
    must(LAPI_Address_init(hndl, &arrived, arrived_tab), "LAPI_Address_init");
    must(LAPI_Address_init(hndl, (void *)on_message, handlers), "LAPI_Address_init");
    must(LAPI_Address_init(hndl, data, data_tab), "LAPI_Address_init");
    map_page();
    bare_threads();
    /* Only the program's own thread: the others go where the system puts them, as in
     * any program. */
    bench_pin(rank);
    part_one(count);
    must(LAPI_Gfence(hndl), "LAPI_Gfence");
    part_two(pairs);
    must(LAPI_Term(hndl), "LAPI_Term");
    return 0;
}
