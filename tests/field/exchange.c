/*
 * What debuggers and checkers look at: each task puts, sends an active message, and adds, all to
 * the next one, and checks what has come.
 * Then it makes the mistake that its argument names, if any: exchange [leak | overflow |
 * uninitialised | race]
 */
#include <lapi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(call) (call) == LAPI_SUCCESS ? (void)0 : exit((fprintf(stderr, "%s failed\n", #call), 1))
enum { BYTES = 60000 };

static lapi_handle_t handle;
static int me, tasks, finished;
static char received[BYTES];

static void on_data(lapi_handle_t *of, void *data) {
    (void)of;
    if (memcmp(data, "message", 8) == 0) finished = 1;
    free(data);
}

static void *on_header(lapi_handle_t *of, void *header, uint *header_len, ulong *len, compl_hndlr_t **done, void **data) {
    (void)of, (void)header, (void)header_len;
    *done = on_data;
    return *data = malloc(*len);
}

static long shared;

static void *mistaken_increment(void *unused) {
    for (int n = 0; n < 1000; n++) shared++;
    return unused;
}

static void make_mistake(const char *which) {
    char *volatile memory = malloc(7);
    pthread_t one, two;
    if (strcmp(which, "overflow") == 0) memory[7] = 1;
    if (strcmp(which, "uninitialised") == 0) CALL(LAPI_Put(handle, me, memory[0] & 3, received, received + 8, NULL, NULL, NULL));
    if (strcmp(which, "race") == 0) {
        pthread_create(&one, NULL, mistaken_increment, NULL), pthread_create(&two, NULL, mistaken_increment, NULL);
        pthread_join(one, NULL), pthread_join(two, NULL);
    }
    if (strcmp(which, "leak") != 0) free(memory);
    memory = NULL;
}

int main(int count, char **arguments) {
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
    CALL(LAPI_Amsend(handle, next, (void *)on_header, NULL, 0, "message", 8, messages[next], NULL, &completion));
    CALL(LAPI_Waitcntr(handle, &message, 1, NULL));
    CALL(LAPI_Waitcntr(handle, &completion, 2, NULL));
    CALL(LAPI_Rmw64(handle, FETCH_AND_ADD, next, sums[next], &one, &before, &origin));
    CALL(LAPI_Waitcntr(handle, &origin, 1, NULL));
    CALL(LAPI_Gfence(handle));
    int good = finished && sum == 1 && before == 0;
    for (int n = 0; n < BYTES; n++) good = good && received[n] == 'a' + last;
    free(sent);
    if (count > 1) make_mistake(arguments[1]);
    CALL(LAPI_Term(handle));
    puts(good ? "good" : "bad");
    return !good;
}
