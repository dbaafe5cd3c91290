/* Task 1 runs until a debugger sets `stop`. Task 0 ends at once; with an argument, by SIGKILL when
 * this file is there. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile int stop;

int main(int argc, char **argv)
{
    if (strcmp(getenv("MP_CHILD"), "0") == 0) {
        if (argc == 1 || argv[1][0] == 0)
            return 0;
        while (access(argv[1], F_OK) != 0)
            usleep(1000);
        kill(getpid(), SIGKILL);
    }
    puts("it runs");
    while (!stop)
        usleep(1000);
    return 0;
}
