/*
 * Errors that no call can return: async CASE, with two tasks
 *
 *   handler   task 1 gets messages for a header handler that is not set there; its error handler is called, and returns
 *   default   the same without an error handler: the job ends
 */
#include "../common/ltest.h"

enum { INDEX = 900, MESSAGES = 20 };

static volatile int reported;

static void errors(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    CHECK_EQ(*hndl, t_hndl);
    CHECK_EQ(*code, LAPI_ERR_HDR_HNDLR_NULL);
    CHECK_EQ(*type, AM_ERR);
    CHECK_EQ(*task, 1);
    CHECK_EQ(*src, 0);
    CHECK_EQ(t_me, 1);
    __atomic_fetch_add(&reported, 1, __ATOMIC_RELEASE);
}

int main(int argc, char **argv) {
    static char data[100000], landing[100];
    void **landings;
    lapi_cntr_t cmpl;
    lapi_info_t info;
    int i;
    CHECK(argc == 2);
    bzero(&info, sizeof info);
    bzero(&cmpl, sizeof cmpl);
    if (strcmp(argv[1], "handler") == 0) info.err_hndlr = errors;
    t_init_with(&info);
    CHECK_EQ(t_tasks, 2);
    landings = t_addresses(landing);
    if (t_me == 0) {
        /* Messages of one packet and of many, with others between them that must not
         * be disturbed. */
        for (i = 0; i < MESSAGES; i++) {
            OK(LAPI_Amsend(t_hndl, 1, (void *)INDEX, &i, sizeof i, data, i % 2 ? sizeof data : 10, NULL, NULL, NULL));
            OK(LAPI_Put(t_hndl, 1, sizeof landing, landings[1], data, NULL, NULL, &cmpl));
        }
        t_wait_exact(&cmpl, MESSAGES);
    } else {
        t_probe_until(&reported, MESSAGES);
    }
    t_fence();
    CHECK_EQ(reported, t_me == 1 ? MESSAGES : 0);
    t_done();
    return 0;
}
