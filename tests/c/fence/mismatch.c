/*
 * Collective calls that do not match: task 0 calls LAPI_Gfence where the others call
 * LAPI_Address_init, and the other way round. Both calls fail in every task, and the next ones are
 * in step again.
 */
#include "../common/ltest.h"

int main(void) {
    static lapi_long_t table[16];
    void *addresses[16];
    int round;
    t_init();
    for (round = 0; round < 20; round++) {
        if ((t_me == 0) == (round % 2 == 0)) RETURNS(LAPI_Gfence(t_hndl), LAPI_ERR_UNKNOWN);
        else if (round % 4 < 2) RETURNS(LAPI_Address_init(t_hndl, &round, addresses), LAPI_ERR_UNKNOWN);
        else RETURNS(LAPI_Address_init64(t_hndl, t_long(&round), table), LAPI_ERR_UNKNOWN);
        OK(LAPI_Address_init64(t_hndl, (lapi_long_t)(t_me + round), table));
        CHECK_EQ(table[t_tasks - 1], t_tasks - 1 + round);
        t_fence();
    }
    t_done();
    return 0;
}
