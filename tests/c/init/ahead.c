/*
 * A task that has opened and closed its handle three times before the other one opens its
 * own: ahead PATH
 *
 * Task 1 makes a file at PATH when it has opened the handle for the fourth time. The first three
 * handles of task 0 have no peer any more: operations on them end at once. The fourth ones of both
 * tasks belong together.
 */
#include "../common/ltest.h"

#include <fcntl.h>

enum { PASSED = 3 };

static volatile int errors;

static void on_error(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type, (void)task;
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*src, 1);
    errors++;
}

static void open_one(void) {
    lapi_info_t info;
    bzero(&info, sizeof info);
    info.err_hndlr = on_error;
    t_init_with(&info);
}

int main(int argc, char **argv) {
    const char *first = getenv("MP_CHILD");
    int late = first != NULL && strcmp(first, "0") == 0, i;
    static lapi_cntr_t arrived, done;
    static long long in, out = 5;
    void **ins, **cntrs;
    CHECK(argc == 2);
    while (late && access(argv[1], F_OK) != 0) usleep(1000);
    for (i = 0; i < PASSED; i++) {
        open_one();
        if (late) {
            OK(LAPI_Put(t_hndl, 1, 0, NULL, NULL, NULL, NULL, NULL));
            OK(LAPI_Fence(t_hndl));
            CHECK_EQ(errors, i + 1);
        }
        OK(LAPI_Term(t_hndl));
    }
    open_one();
    if (!late) {
        int file = open(argv[1], O_CREAT | O_WRONLY, 0600);
        CHECK(file >= 0);
        CHECK_EQ(close(file), 0);
    }
    ins = t_addresses(&in);
    cntrs = t_addresses(&arrived);
    OK(LAPI_Put(t_hndl, (uint)(1 - t_me), sizeof out, ins[1 - t_me], &out, cntrs[1 - t_me], NULL, &done));
    t_wait_exact(&arrived, 1);
    t_wait_exact(&done, 1);
    CHECK_EQ(in, out);
    CHECK_EQ(errors, late ? PASSED : 0);
    t_done();
    return 0;
}
