/* Tasks that wait in LAPI, or compute, and whose handler of SIGTERM calls LAPI_Gfence and exits. */
#include <lapi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static lapi_handle_t hndl;

static void on_term(int signal)
{
    int code = LAPI_Gfence(hndl);
    char text[] = "fence ok\n";
    (void)signal;
    if (code == LAPI_ERR_UNKNOWN)
        strcpy(text, "refused\n");
    else if (code != LAPI_SUCCESS)
        strcpy(text, "failed\n");
    if (write(1, text, strlen(text)) < 0) _exit(4);
    _exit(0);
}

int main(int argc, char **argv)
{
    lapi_info_t info = {0};
    lapi_cntr_t never = {0};
    if (LAPI_Init(&hndl, &info) != LAPI_SUCCESS) return 2;
    LAPI_Gfence(hndl);
    signal(SIGTERM, on_term);
    printf("READY\n");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "outside") == 0)
        for (;;) pause();
    LAPI_Waitcntr(hndl, &never, 1, NULL);
    return 3;
}
