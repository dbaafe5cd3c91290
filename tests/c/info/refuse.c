/*
 * refuse ERRNO NUMBER... -- PROGRAM ARGUMENT...: runs a program to which the kernel refuses these
 * system calls with this error, as the filters of container runtimes do.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MOST 16

int main(int argc, char **argv) {
    struct sock_filter filter[2 * MOST + 2];
    struct sock_fprog program = {0, filter};
    int at = 1;
    unsigned error = argc > 1 ? (unsigned)atoi(argv[at++]) : 0;
    filter[program.len++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        if (at > MOST) return 125;
        filter[program.len++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[at]), 0, 1);
        filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (at + 1 >= argc) return 125;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("refuse");
        return 125;
    }
    execvp(argv[at + 1], argv + at + 1);
    perror(argv[at + 1]);
    return 125;
}
