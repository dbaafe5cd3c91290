/* Runs a program in a state that a parent may leave to its children: inherit WHAT... --
 * PROGRAM ARGUMENT...
 * i17: signal 17 is ignored; b14: signal 14 is blocked; nonblock: standard input does not block. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    sigset_t blocked;
    sigemptyset(&blocked);
    while (*++argv && strcmp(*argv, "--")) {
        int number = atoi(*argv + 1);
        if (**argv == 'i') signal(number, SIG_IGN);
        if (**argv == 'b') sigaddset(&blocked, number);
        if (**argv == 'n') fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
    }
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    execvp(argv[1], argv + 1);
    return 127;
}
