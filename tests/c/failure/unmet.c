/*
 * A task ends before it has communicated: unmet VICTIM FILE
 *
 * Run by a launcher that lets the other tasks continue. Task VICTIM ends after LAPI_Init; FILE,
 * which it makes, names its process. Every other task then puts to it, and the error handler is
 * called with LAPI_ERR_NO_CONNECTIVITY long before LAPI_INIT_TIMEOUT.
 */
#include "../common/ltest.h"

#include <signal.h>

static volatile int losses, victim;
static int word;
static lapi_cntr_t never;

static void error_handler(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*type, INT_ERR);
    CHECK_EQ(*task, t_me);
    CHECK_EQ(*src, victim);
    losses++;
    OK(LAPI_Setcntr(*hndl, &never, 1));
}

/* The file has its name when all of it is written. */
static void name_process(const char *path) {
    char part[4096];
    FILE *file;
    snprintf(part, sizeof part, "%s.part", path);
    file = fopen(part, "w");
    CHECK(file != NULL);
    CHECK(fprintf(file, "%d\n", (int)getpid()) > 0);
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(rename(part, path), 0);
}

static void until_the_victim_has_ended(const char *path) {
    int process = 0;
    FILE *file;
    while ((file = fopen(path, "r")) == NULL) usleep(1000);
    CHECK_EQ(fscanf(file, "%d", &process), 1);
    fclose(file);
    t_until_ended((void *)(intptr_t)process);
}

int main(int argc, char **argv) {
    lapi_info_t info = {.err_hndlr = error_handler};
    int code;

    if (argc != 3) return 2;
    victim = atoi(argv[1]);
    /* Hydra sends it to the others when a task ends early. */
    signal(SIGUSR1, SIG_IGN);
    t_init_with(&info);
    if (t_me == victim) {
        name_process(argv[2]);
        _exit(0);
    }
    until_the_victim_has_ended(argv[2]);
    OK(LAPI_Setcntr(t_hndl, &never, 0));
    code = LAPI_Put(t_hndl, (uint)victim, sizeof word, &word, &word, NULL, NULL, &never);
    /* Another thread of the library may have learned of the end before. */
    if (code == LAPI_SUCCESS) {
        t_wait(&never, 1);
        CHECK_EQ(losses, 1);
    } else
        CHECK_EQ(code, LAPI_ERR_NO_CONNECTIVITY);
    OK(LAPI_Term(t_hndl));
    t_pass();
    return 0;
}
