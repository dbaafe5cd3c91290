/* A task that does one thing, named by its first argument; the tests of poe start it. It does
 * not use LAPI. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static int task(void) {
    const char *child = getenv("MP_CHILD");
    return child ? atoi(child) : 0;
}

/* The arguments, one a line. */
static int args(int count, char **words) {
    for (int i = 0; i < count; i++) printf("%s\n", words[i]);
    return 0;
}

/* The values of the variables named. */
static int env(int count, char **names) {
    for (int i = 0; i < count; i++) {
        const char *value = getenv(names[i]);
        printf("%s=%s\n", names[i], value ? value : "(unset)");
    }
    return 0;
}

/* Exits with the status in the task's entry. */
static int leave(int count, char **statuses) { return task() < count ? atoi(statuses[task()]) : 0; }

/* Says that it is there, and waits for a signal. */
static int wait_here(void) {
    printf("task %d waits, pid %d\n", task(), (int)getpid());
    fflush(stdout);
    for (;;) pause();
}

/* Task WHO ends itself by signal N; the others wait. */
static int die(char **words) {
    if (task() != atoi(words[1])) return wait_here();
    signal(atoi(words[0]), SIG_DFL);
    raise(atoi(words[0]));
    return 99;
}

static void print_signal(int signal) {
    char line[64];
    int length = snprintf(line, sizeof line, "task %d got signal %d\n", task(), signal);
    if (write(1, line, length) != length) _exit(98);
    if (signal == SIGTERM || signal == SIGINT) _exit(7);
}

/* Prints every signal that arrives; SIGTERM and SIGINT end it. */
static int print_signals(void) {
    int signals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT};
    struct sigaction action = {.sa_handler = print_signal};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
    return wait_here();
}

/* Ignores all signals that can be ignored. */
static int be_deaf(void) {
    int signals[] = {SIGUSR1, SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_IGN);
    return wait_here();
}

/* Starts a process in a session of its own, which starts another one, and all wait. */
static int beget(void) {
    if (fork() == 0) {
        setsid();
        if (fork() == 0) return be_deaf();
        return be_deaf();
    }
    return wait_here();
}

/* The same, but this task exits when its offspring is there. Of one that hides, /proc with hidepid
 * shows nothing: only root may trace it. */
static int beget_and_leave(int hides) {
    int there[2];
    char byte;
    if (pipe(there) != 0) return 97;
    if (fork() == 0) {
        setsid();
        if (hides && prctl(PR_SET_DUMPABLE, 0) != 0) _exit(94);
        if (write(there[1], "x", 1) != 1) _exit(96);
        return be_deaf();
    }
    return read(there[0], &byte, 1) == 1 ? 0 : 95;
}

/* COUNT lines of SIZE bytes on standard output, and the same on standard error. */
static int lines(char **words) {
    long count = atol(words[0]), size = atol(words[1]);
    char *line = malloc(size + 1);
    memset(line, 'a' + task() % 26, size - 1);
    line[size - 1] = '\n';
    for (long i = 0; i < count; i++) {
        fwrite(line, 1, size, stdout);
        fwrite(line, 1, size, stderr);
    }
    free(line);
    return 0;
}

/* Where things are. */
static int global;
static int addresses(void) {
    int local;
    void *heap = malloc(100), *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%p %p %p %p %p %p\n", (void *)&global, (void *)addresses, (void *)printf, (void *)&local, heap, map);
    free(heap);
    return 0;
}

/* The processors that it may use. */
static int processors(void) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set)) printf("%d ", i);
    printf("\n");
    return 0;
}

/* The descriptors that are open. */
static int descriptors(void) {
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(dir));)
        if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != dirfd(dir)) printf("%s ", entry->d_name);
    printf("\n");
    closedir(dir);
    return 0;
}

/* Copies standard input to standard output. */
static int copy(void) {
    char buffer[4096];
    for (size_t length; (length = fread(buffer, 1, sizeof buffer, stdin)) > 0;) fwrite(buffer, 1, length, stdout);
    return ferror(stdin) ? 94 : 0;
}

/* Prints a prompt without a newline, waits for the input, and repeats it. */
static int ask(void) {
    char name[64];
    printf("name? ");
    fflush(stdout);
    if (!fgets(name, sizeof name, stdin)) return 93;
    printf("it is %s", name);
    return 0;
}

/* Prints a line, which stays in a buffer unless standard output is a terminal, and dies. */
static int crash(void) {
    printf("task %d reached the solver\n", task());
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return 91;
}

/* Prints a line, waits for a file, and prints another line. */
static int step(const char *file) {
    printf("first\n");
    while (access(file, F_OK) != 0) usleep(1000);
    printf("second\n");
    return 0;
}

/* COUNT bytes of every value. */
static int bytes(long count) {
    for (long i = 0; i < count; i++) putchar((int)(i * 7 + i / 256) & 255);
    return 0;
}

/* Writes for ever; stops at an error. With SIGPIPE ignored when there is a second word. */
static int flood(int count) {
    if (count > 0) signal(SIGPIPE, SIG_IGN);
    while (printf("more\n") > 0) {}
    return 90;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    char **rest = argv + 2;
    if (!strcmp(what, "args")) return args(argc - 2, rest);
    if (!strcmp(what, "env")) return env(argc - 2, rest);
    if (!strcmp(what, "leave")) return leave(argc - 2, rest);
    if (!strcmp(what, "wait")) return wait_here();
    if (!strcmp(what, "die") && argc == 4) return die(rest);
    if (!strcmp(what, "signals")) return print_signals();
    if (!strcmp(what, "deaf")) return be_deaf();
    if (!strcmp(what, "beget")) return beget();
    if (!strcmp(what, "beget-and-leave")) return beget_and_leave(0);
    if (!strcmp(what, "beget-and-hide")) return beget_and_leave(1);
    if (!strcmp(what, "lines") && argc == 4) return lines(rest);
    if (!strcmp(what, "addresses")) return addresses();
    if (!strcmp(what, "processors")) return processors();
    if (!strcmp(what, "descriptors")) return descriptors();
    if (!strcmp(what, "copy")) return copy();
    if (!strcmp(what, "ask")) return ask();
    if (!strcmp(what, "crash")) return crash();
    if (!strcmp(what, "step") && argc == 3) return step(rest[0]);
    if (!strcmp(what, "bytes") && argc == 3) return bytes(atol(rest[0]));
    if (!strcmp(what, "flood")) return flood(argc - 2);
    if (!strcmp(what, "terminal")) return printf("%d\n", isatty(1)) < 0;
    fprintf(stderr, "task: cannot do \"%s\"\n", what);
    return 92;
}
