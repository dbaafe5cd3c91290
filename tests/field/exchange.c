/*
 * What debuggers and checkers look at: each task puts, sends an active message, and adds, all to the next one, and checks what has come.
 */
#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(call) (call) == LAPI_SUCCESS ? (void)0 : exit((fprintf(stderr, "%s failed\n", #call), 1))
enum { BYTES = 300000 };

static lapi_handle_t handle;
static int me, tasks, finished;
static char received[BYTES];

static void finish(lapi_handle_t *of, void *data) {
    (void)of;
    if (memcmp(data, "message", 8) == 0) finished = 1;
    free(data);
}

static void *begin(lapi_handle_t *of, void *header, uint *header_len, ulong *len, compl_hndlr_t **done, void **data) {
    (void)of, (void)header, (void)header_len;
    *done = finish;
    return *data = malloc(*len);
}

int main(void) {
    lapi_cntr_t origin, target, completion, message;
    long long sum = 0, one = 1, before;
    lapi_info_t info;
    char *sent = malloc(BYTES);
    void *buffers[64], *targets[64], *messages[64], *sums[64];
    memset(&info, 0, sizeof info);
    CALL(LAPI_Init(&handle, &info));
    CALL(LAPI_Qenv(handle, TASK_ID, &me));
    CALL(LAPI_Qenv(handle, NUM_TASKS, &tasks));
    lapi_cntr_t *all[] = {&origin, &target, &completion, &message};
    for (int n = 0; n < 4; n++) CALL(LAPI_Setcntr(handle, all[n], 0));
    CALL(LAPI_Address_init(handle, received, buffers));
    CALL(LAPI_Address_init(handle, &target, targets));
    CALL(LAPI_Address_init(handle, &message, messages));
    CALL(LAPI_Address_init(handle, &sum, sums));
    int next = (me + 1) % tasks, last = (me + tasks - 1) % tasks;
    memset(sent, 'a' + me, BYTES);
    CALL(LAPI_Put(handle, next, BYTES, buffers[next], sent, targets[next], &origin, &completion));
    CALL(LAPI_Waitcntr(handle, &target, 1, NULL));
    CALL(LAPI_Waitcntr(handle, &origin, 1, NULL));
    CALL(LAPI_Amsend(handle, next, (void *)begin, NULL, 0, "message", 8, messages[next], NULL, &completion));
    CALL(LAPI_Waitcntr(handle, &message, 1, NULL));
    CALL(LAPI_Waitcntr(handle, &completion, 2, NULL));
    CALL(LAPI_Rmw64(handle, FETCH_AND_ADD, next, sums[next], &one, &before, &origin));
    CALL(LAPI_Waitcntr(handle, &origin, 1, NULL));
    CALL(LAPI_Gfence(handle));
    int good = finished && sum == 1 && before == 0;
    for (int n = 0; n < BYTES; n++) good = good && received[n] == 'a' + last;
    free(sent);
    CALL(LAPI_Term(handle));
    puts(good ? "good" : "bad");
    return !good;
}
