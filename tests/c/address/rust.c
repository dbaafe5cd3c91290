/*
 * Task 0 of a job whose task 1 is a program in Rust, which tells its address by Port::exchange.
 */
#include "../common/ltest.h"

enum { LEN = 1000 };

int main(void) {
    static lapi_long_t memory[LEN], data[LEN];
    lapi_long_t kinds[2], addresses[2];
    lapi_cntr_t sent;
    int i;
    t_init();
    CHECK_EQ(t_me, 0);
    OK(LAPI_Address_init64(t_hndl, 0x0100000000000000, kinds));
    CHECK_EQ(kinds[1], 0x0100000000000000);
    OK(LAPI_Address_init64(t_hndl, (lapi_long_t)(uintptr_t)memory, addresses));
    for (i = 0; i < LEN; i++) data[i] = (lapi_long_t)i << 32;
    OK(LAPI_Setcntr(t_hndl, &sent, 0));
    OK(LAPI_Put(t_hndl, 1, sizeof data, (void *)(uintptr_t)addresses[1], data, NULL, &sent, NULL));
    OK(LAPI_Waitcntr(t_hndl, &sent, 1, NULL));
    OK(LAPI_Gfence(t_hndl));
    for (i = 0; i < LEN; i++) CHECK_EQ(memory[i], ((lapi_long_t)i << 32) | 1);
    t_done();
    return 0;
}
