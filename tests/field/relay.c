/*
 * Between a launcher and its task: relay PROGRAM [ARGUMENT...]
 *
 * The conversation of the task with its launcher (PMI_FD) goes through here. Replies come to the
 * task a byte at a time, and after each 64th nothing for a millisecond, so that it finds lines that
 * go on later. Its requests go on as whole lines: Slurm takes what it reads at a time for one. Ends
 * as the task does, and with 99 if the launcher has said nothing.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(char **arguments, int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv("PMI_FD", text, 1);
    execvp(arguments[1], arguments + 1);
    return 97;
}

int main(int count, char **arguments) {
    const char *given = getenv("PMI_FD");
    int pair[2], status, launcher = given ? atoi(given) : -1;
    if (count < 2 || launcher < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 98;
    pid_t task = fork();
    if (task == 0) return close(launcher), close(pair[0]), run(arguments, pair[1]);
    close(pair[1]), signal(SIGPIPE, SIG_IGN);
    struct pollfd from[2] = {{.fd = launcher, .events = POLLIN}, {.fd = pair[0], .events = POLLIN}};
    unsigned replied = 0;
    ssize_t length = 0;
    char byte, line[4096];
    while (poll(from, 2, -1) > 0) {
        if (from[0].revents != 0) {
            if (read(launcher, &byte, 1) != 1) shutdown(pair[0], SHUT_WR), from[0].fd = -1;
            else if (write(pair[0], &byte, 1) == 1 && ++replied % 64 == 0) usleep(1000);
        }
        if (from[1].revents != 0) {
            if (read(pair[0], &line[length], 1) != 1) break;
            if (line[length++] != '\n' && length < (ssize_t)sizeof line) continue;
            if (write(launcher, line, length) != length) break;
            length = 0;
        }
    }
    /* The task reads the end of it, if it still waits for a reply. */
    close(pair[0]);
    if (waitpid(task, &status, 0) != task || !WIFEXITED(status)) return 96;
    return WEXITSTATUS(status) == 0 && replied == 0 ? 99 : WEXITSTATUS(status);
}
