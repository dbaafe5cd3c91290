/*
 * A process by hand that ends without gm_finalize. With an argument it leaves a child, which has
 * nothing of GM and lives as long as the map is there.
 */
#include "gm.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void child(int ready)
{
    int file;
    for (file = 0; file < 3; file++)
        close(file);
    setsid();
    alarm(60);
    if (write(ready, "", 1) != 1)
        _exit(1);
    while (access(getenv("LAPI_GM_MAP"), F_OK) == 0)
        usleep(10000);
    _exit(0);
}

int main(int argc, char **argv)
{
    int pipes[2];
    char byte;
    (void)argv;
    if (gm_init() != GM_SUCCESS || pipe(pipes) != 0)
        return 1;
    if (argc > 1) {
        pid_t pid = fork();
        if (pid == 0)
            child(pipes[1]);
        /* What the library does in a child is done when fork has returned there. */
        if (pid < 0 || read(pipes[0], &byte, 1) != 1)
            return 1;
    }
    printf("it has its place\n");
    fflush(stdout);
    _exit(0);
}
