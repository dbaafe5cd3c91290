/* The first contact comes late: each task sleeps, and then puts 1 MiB to the next one. With a
 * number: what LAPI_Init must return. */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char to[1 << 20], from[1 << 20];
static lapi_cntr_t arrived, completed;

static void on_error(lapi_handle_t *h, int *code, lapi_err_t *type, int *task, int *src)
{
    char text[LAPI_MAX_ERR_STRING];
    LAPI_Msg_string(*code, text);
    fprintf(stderr, "task %d: error %d about task %d: %s\n", *src, *code, *task, text);
    exit(1);
}

int main(int argc, char **argv)
{
    lapi_handle_t h;
    lapi_info_t info;
    int me, tasks, value, rc, expected = argc > 1 ? atoi(argv[1]) : LAPI_SUCCESS;
    memset(&info, 0, sizeof info);
    info.err_hndlr = on_error;
    rc = LAPI_Init(&h, &info);
    if (rc != expected) return fprintf(stderr, "LAPI_Init: %d, not %d\n", rc, expected), 1;
    if (rc != LAPI_SUCCESS) return puts("PASS"), 0;
    LAPI_Qenv(h, TASK_ID, &me);
    LAPI_Qenv(h, NUM_TASKS, &tasks);
    memset(from, me + 1, sizeof from);
    usleep(300000);
    LAPI_Put(h, (me + 1) % tasks, sizeof to, to, from, &arrived, NULL, &completed);
    LAPI_Waitcntr(h, &completed, 1, &value);
    LAPI_Waitcntr(h, &arrived, 1, &value);
    LAPI_Gfence(h);
    if (to[0] != (me + tasks - 1) % tasks + 1 || memcmp(to, to + 1, sizeof to - 1)) return 1;
    return puts("PASS"), LAPI_Term(h);
}
