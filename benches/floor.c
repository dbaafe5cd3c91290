/*
 * The performance of the bare machine between two pinned processes: the lower bound
 * for any library.
 *
 *     line          one cache line crosses once
 *     flag_payload  a flag and that many bytes are written by one process, seen and copied by the other
 *     flag_paused   the same, with one pause instruction between two looks, as libraries poll
 *     memcpy        one copy inside a process
 *     vm_readv      one copy out of the other process by the kernel
 *     vm_readv_new  the same of data that the other process has just written
 *     wake_*        a process that sleeps is woken by the other, on another processor or on the same one
 *
 * Options: -t ms-per-figure, -o name-prefix.
 */
#include "bench.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define LARGEST (64 * MIB)

struct slot {
    _Alignas(128) volatile uint64_t flag;
    unsigned char payload[KIB + 56];
};

struct shared {
    struct page page;
    struct slot slot[2];
    _Alignas(128) volatile uint32_t futex_word;
};

static struct bench b;
static struct shared *shared;
static unsigned char *source, *destination;
static uint64_t slot_seq;
static uint32_t futex_seq;
static int event_fd[2];
static pid_t peer_pid;
static void *peer_source;

static void slot_write(size_t size)
{
    struct slot *s = &shared->slot[b.rank];
    memcpy(s->payload, source, size);
    __atomic_store_n(&s->flag, slot_seq + 1, __ATOMIC_RELEASE);
}

/* What src/base/pause.rs does. */
static void pause_once(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb");
#elif defined __powerpc64__
    __asm__ volatile("or 27,27,27");
#endif
}

static inline void slot_read(size_t size, void (*between)(void))
{
    struct slot *s = &shared->slot[!b.rank];
    await_change(&s->flag, slot_seq, between);
    memcpy(destination, s->payload, size);
}

static inline void pass_slots(size_t size, void (*between)(void))
{
    if (b.rank == 0) {
        slot_write(size);
        slot_read(size, between);
    } else {
        slot_read(size, between);
        slot_write(size);
    }
    slot_seq++;
}

static void flag_payload(size_t size)
{
    pass_slots(size, NULL);
}

static void flag_paused(size_t size)
{
    pass_slots(size, pause_once);
}

static void copy(size_t size)
{
    memcpy(destination, source, size);
    /* the compiler must assume that the copy is read */
    __asm__ volatile("" : : "r"(destination) : "memory");
}

static void vm_readv(size_t size)
{
    struct iovec local = {destination, size}, remote = {peer_source, size};
    ssize_t n = process_vm_readv(peer_pid, &local, 1, &remote, 1, 0);
    if (n != (ssize_t)size)
        bench_die("process_vm_readv of %zu bytes returned %zd: %s", size, n, strerror(errno));
}

/* How long process 0 needs for the copy alone, in each round of vm_readv_new. */
static double new_ns[MAX_BATCHES];
static uint32_t new_rounds;

static void vm_readv_new(size_t size)
{
    uint64_t turn = ++slot_seq;
    if (b.rank == 0) {
        __atomic_store_n(&shared->slot[0].flag, turn, __ATOMIC_RELEASE);
        await_change(&shared->slot[1].flag, turn - 1, NULL);
        double start = now_ns();
        vm_readv(size);
        new_ns[new_rounds++ % MAX_BATCHES] = now_ns() - start;
    } else {
        await_change(&shared->slot[0].flag, turn - 1, NULL);
        memset(source, (int)turn, size);
        __atomic_store_n(&shared->slot[1].flag, turn, __ATOMIC_RELEASE);
    }
}

static void new_figure(size_t size)
{
    uint32_t rounds = size <= 4 * MIB ? MAX_BATCHES : 5;
    double before = bench_line(&b), after;
    rounds_ns(vm_readv_new, size, 3);
    new_rounds = 0;
    rounds_ns(vm_readv_new, size, rounds);
    after = bench_line(&b);
    if (b.rank == 0) {
        double middle = median(new_ns, rounds);
        bench_print("vm_readv_new", size, middle, new_ns[0], before, after);
    }
}

static void futex_wait_until(uint32_t value)
{
    uint32_t seen;
    while ((seen = __atomic_load_n(&shared->futex_word, __ATOMIC_ACQUIRE)) != value)
        syscall(SYS_futex, &shared->futex_word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void futex_set(uint32_t value)
{
    __atomic_store_n(&shared->futex_word, value, __ATOMIC_RELEASE);
    syscall(SYS_futex, &shared->futex_word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void wake_futex(size_t size)
{
    (void)size;
    if (b.rank == 0) {
        futex_set(futex_seq + 1);
        futex_wait_until(futex_seq + 2);
    } else {
        futex_wait_until(futex_seq + 1);
        futex_set(futex_seq + 2);
    }
    futex_seq += 2;
}

static void event_pass(int fd, int take)
{
    uint64_t one = 1;
    ssize_t n = take ? read(fd, &one, sizeof one) : write(fd, &one, sizeof one);
    if (n != sizeof one)
        bench_die("eventfd: %s", strerror(errno));
}

static void wake_eventfd(size_t size)
{
    (void)size;
    if (b.rank == 0) {
        event_pass(event_fd[1], 0);
        event_pass(event_fd[0], 1);
    } else {
        event_pass(event_fd[1], 1);
        event_pass(event_fd[0], 0);
    }
}

static void line_figures(void)
{
    double before = bench_line(&b), here = bench_line(&b), after = bench_line(&b);
    if (b.rank == 0)
        bench_print("line", 0, here, here, before, after);
}

static void share_processor(int both_on_first)
{
    bench_pin(both_on_first ? 0 : b.rank);
}

static void run(void)
{
    static const size_t copy_sizes[] = {8,         64,      256,     KIB,     8 * KIB,  64 * KIB,
                                        256 * KIB, 1 * MIB, 4 * MIB, 16 * MIB, 64 * MIB};
    if (!bench_skips(&b, "line"))
        line_figures();
    for (size_t size = 8; size <= KIB && !bench_skips(&b, "flag_payload"); size *= 2)
        bench_together(&b, "flag_payload", size, 2, flag_payload);
    for (size_t size = 8; size <= KIB && !bench_skips(&b, "flag_paused"); size *= 2)
        bench_together(&b, "flag_paused", size, 2, flag_paused);
    for (size_t i = 0; i < COUNT(copy_sizes) && !bench_skips(&b, "memcpy"); i++)
        bench_one_sided(&b, "memcpy", copy_sizes[i], 1, copy);
    for (size_t i = 0; i < COUNT(copy_sizes) && !bench_skips(&b, "vm_readv"); i++)
        bench_one_sided(&b, "vm_readv", copy_sizes[i], 1, vm_readv);
    /* The last of all that reads what bench_fill has written. */
    for (size_t i = 0; i < COUNT(copy_sizes) && !bench_skips(&b, "vm_readv_new"); i++)
        new_figure(copy_sizes[i]);
    for (int same = 0; same <= 1 && !bench_skips(&b, "wake"); same++) {
        /* Two processes that spin cannot share a processor: the line is bounced on two,
         * before and after. */
        double before = bench_line(&b), start, ns[2];
        uint32_t rounds = 500;
        share_processor(same);
        for (int kind = 0; kind <= 1; kind++) {
            round_fn round = kind ? wake_eventfd : wake_futex;
            rounds_ns(round, 0, 20);
            start = now_ns();
            rounds_ns(round, 0, rounds);
            ns[kind] = (now_ns() - start) / (2.0 * rounds);
        }
        share_processor(0);
        double after = bench_line(&b);
        if (b.rank == 0) {
            bench_print(same ? "wake_futex_same" : "wake_futex", 0, ns[0], ns[0], before, after);
            bench_print(same ? "wake_eventfd_same" : "wake_eventfd", 0, ns[1], ns[1], before, after);
        }
    }
}

int main(int argc, char **argv)
{
    pid_t child, parent = getpid();
    bench_options(&b, argc, argv, "", NULL);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    source = aligned_alloc(4096, LARGEST);
    destination = aligned_alloc(4096, LARGEST);
    event_fd[0] = eventfd(0, 0);
    event_fd[1] = eventfd(0, 0);
    if (shared == MAP_FAILED || !source || !destination || event_fd[0] < 0 || event_fd[1] < 0)
        bench_die("no memory or no descriptors: %s", strerror(errno));
    b.page = &shared->page;
    child = fork();
    if (child < 0)
        bench_die("fork: %s", strerror(errno));
    b.rank = child == 0;
    peer_pid = child == 0 ? parent : child;
    bench_pin(b.rank);
    /* touched here, so that each process has pages of its own and no fault is measured */
    bench_fill(source, LARGEST, b.rank);
    memset(destination, 0, LARGEST);
    peer_source = (void *)bench_exchange(&b, (uint64_t)source);
    if (b.rank == 0) {
        vm_readv(MIB);
        bench_check("vm_readv", destination, MIB, 1);
    }
    run();
    bench_meet(&b);
    if (b.rank == 0) {
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            bench_die("the second process failed");
    }
    return 0;
}
