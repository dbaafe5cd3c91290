/*
 * A header handler that makes calls, in a task that polls with LAPI_Msgpoll: each message is
 * handled once, and none inside the handler of another one, whatever that calls and however many
 * rounds the poll has had before. Puts and gets of the same peer come between the messages.
 */
#include "../common/ltest.h"

#include <unistd.h>

#define MESSAGES 3000

static volatile int handled, inside, wrong;
static char seen[MESSAGES];
static long cells[64];

static void *arrived(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **uinfo) {
    int number = *(int *)uhdr, value;
    (void)uhdr_len, (void)msg_len, (void)uinfo;
    if (inside || seen[number]) ++wrong;
    inside = seen[number] = 1;
    OK(LAPI_Probe(*hndl));
    OK(LAPI_Qenv(*hndl, TASK_ID, &value));
    OK(LAPI_Getcntr(*hndl, &(lapi_cntr_t){0}, &value));
    inside = 0;
    ++handled;
    *comp_h = NULL;
    return NULL;
}

int main(void) {
    void **handlers, **places;
    unsigned seed = 1;
    int i;
    t_init();
    handlers = t_addresses((void *)arrived);
    places = t_addresses(cells);
    t_set(INTERRUPT_SET, 0);
    t_fence();
    if (t_me == 0) {
        for (i = 0; i < MESSAGES; i++) {
            lapi_cntr_t got;
            long value = 0, data = i;
            int header[2] = {i, 0}, left;
            seed = seed * 1103515245 + 12345;
            if (seed >> 28 == 0) {
                OK(LAPI_Setcntr(t_hndl, &got, 0));
                OK(LAPI_Get(t_hndl, 1, sizeof value, places[1], &value, NULL, &got));
                OK(LAPI_Waitcntr(t_hndl, &got, 1, &left));
            }
            if (seed >> 29 & 1) OK(LAPI_Put(t_hndl, 1, sizeof data, places[1], &data, NULL, NULL, NULL));
            OK(LAPI_Amsend(t_hndl, 1, handlers[1], header, sizeof header, NULL, 0, NULL, NULL, NULL));
            /* Often the target has polled in vain before the next one comes. */
            if (seed >> 27 & 1) OK(LAPI_Fence(t_hndl));
            if (seed >> 24 == 0) usleep(200);
        }
        OK(LAPI_Fence(t_hndl));
    } else if (t_me == 1) {
        while (handled < MESSAGES) {
            lapi_msg_info_t info;
            OK(LAPI_Msgpoll(t_hndl, 100, &info));
        }
    }
    t_fence();
    if (t_me == 1) CHECK_FOR(!wrong && handled == MESSAGES, "%d handled, %d of them wrong", handled, wrong);
    t_done();
    return 0;
}
