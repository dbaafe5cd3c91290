/*
 * LAPI_Qenv and LAPI_Senv: query CASE
 *
 *   defaults    every attribute in an environment without settings
 *   attribute NUMBER VALUE    one attribute, as an environment variable has made it
 *   settable    the four attributes that LAPI_Senv sets, their ranges, and that there are no others
 *   statistics  bytes and packets counted where they go, here and there the same
 *   udp         two tasks over UDP: every field of the two sides fits the other side's
 *   udp-lossy   the same until the network has lost and repeated datagrams
 *   print       PRINT_STATISTICS
 */
#include "../common/ltest.h"

#include <limits.h>

/* A task may rely on its own value for what another one sends. */
static void same_everywhere(lapi_query_t attribute) {
    void **values = malloc(sizeof *values * (size_t)t_tasks);
    int task, value = t_query(attribute);
    CHECK(values != NULL);
    OK(LAPI_Address_init(t_hndl, (void *)(intptr_t)value, values));
    for (task = 0; task < t_tasks; task++) CHECK_EQ((intptr_t)values[task], value);
    free(values);
}

static void defaults(void) {
    int *list = malloc(sizeof *list * (size_t)(t_tasks + 1)), i, value;
    lapi_query_t old[] = {EPOCH_NUM, USE_THRESH, RCV_FIFO_SIZE};
    CHECK(list != NULL);
    CHECK_EQ(t_query(TASK_ID), t_me);
    CHECK_EQ(t_query(NUM_TASKS), t_tasks);
    CHECK(t_query(MAX_UHDR_SZ) >= 1024);
    CHECK_EQ(t_query(MAX_DATA_SZ), INT_MAX);
    CHECK_EQ(t_query(ERROR_CHK), 0);
    CHECK_EQ(t_query(TIMEOUT), 900);
    CHECK_EQ(t_query(MIN_TIMEOUT), 10);
    CHECK_EQ(t_query(MAX_TIMEOUT), 86400);
    CHECK_EQ(t_query(INTERRUPT_SET), 1);
    CHECK_EQ(t_query(MAX_PORTS), 16);
    CHECK(t_query(MAX_PKT_SZ) > t_query(MAX_UHDR_SZ));
    same_everywhere(MAX_PKT_SZ);
    CHECK_EQ(t_query(NUM_REX_BUFS), 128);
    CHECK_EQ(t_query(REX_BUF_SZ), 16384);
    CHECK(t_query(LOC_ADDRTBL_SZ) > 1);
    CHECK(t_query(MAX_ATOM_SIZE) > 0);
    CHECK_EQ(t_query(BUF_CP_SIZE), 128);
    CHECK(t_query(MAX_PKTS_OUT) > 0);
    CHECK_EQ(t_query(ACK_THRESHOLD), 30);
    CHECK_EQ(t_query(BULK_XFER), 0);
    CHECK_EQ(t_query(BULK_MIN_MSG_SIZE), 150 * 1024);
    /* These have no meaning any more, but old programs still query them. */
    for (i = 0; i < 3; i++) OK(LAPI_Qenv(t_hndl, old[i], &value));
    if (t_tasks > 1) {
        int from, to;
        t_sharing(t_me, &from, &to);
        CHECK_EQ(t_query(QUERY_SHM_ENABLED), to - from > 1);
        CHECK_EQ(t_query(QUERY_SHM_NUM_TASKS), to - from);
        list[to - from] = -77;
        OK(LAPI_Qenv(t_hndl, QUERY_SHM_TASKS, list));
        for (i = from; i < to; i++) CHECK_EQ(list[i - from], i);
        CHECK_EQ(list[to - from], -77);
    } else {
        OK(LAPI_Qenv(t_hndl, QUERY_SHM_ENABLED, &value));
        OK(LAPI_Qenv(t_hndl, QUERY_SHM_NUM_TASKS, &value));
    }
    RETURNS(LAPI_Qenv(t_hndl, LAST_QUERY, &value), LAPI_ERR_QUERY_TYPE);
    RETURNS(LAPI_Qenv(t_hndl, (lapi_query_t)1000, &value), LAPI_ERR_QUERY_TYPE);
    RETURNS(LAPI_Qenv(t_hndl, (lapi_query_t)-1, &value), LAPI_ERR_QUERY_TYPE);
    t_set(ERROR_CHK, 1);
    RETURNS(LAPI_Qenv(t_hndl, TASK_ID, NULL), LAPI_ERR_RET_PTR_NULL);
    RETURNS(LAPI_Qenv(t_hndl, PRINT_STATISTICS, NULL), LAPI_ERR_RET_PTR_NULL);
    RETURNS(LAPI_Qenv(t_hndl, QUERY_STATISTICS, NULL), LAPI_ERR_RET_PTR_NULL);
}

static void refused(lapi_query_t attribute, int value, int code) {
    int before = t_query(attribute);
    RETURNS(LAPI_Senv(t_hndl, attribute, value), code);
    CHECK_EQ(t_query(attribute), before);
}

static void settable(void) {
    int i, checked;
    for (checked = 0; checked < 2; checked++) {
        t_set(ERROR_CHK, checked);
        for (i = 1; i <= 31; i++) t_set(ACK_THRESHOLD, i);
        refused(ACK_THRESHOLD, 0, LAPI_ERR_SET_VAL);
        refused(ACK_THRESHOLD, 32, LAPI_ERR_SET_VAL);
        refused(ACK_THRESHOLD, -1, LAPI_ERR_SET_VAL);
        t_set(TIMEOUT, 10);
        t_set(TIMEOUT, 86400);
        t_set(TIMEOUT, 901);
        refused(TIMEOUT, 9, LAPI_ERR_SET_VAL);
        refused(TIMEOUT, 86401, LAPI_ERR_SET_VAL);
        refused(TIMEOUT, 0, LAPI_ERR_SET_VAL);
        refused(TIMEOUT, INT_MIN, LAPI_ERR_SET_VAL);
        for (i = 0; i < 6; i++) t_set(INTERRUPT_SET, i % 2);
        /* As `boolean toggle` of the manual: whatever is not 0 is true. */
        OK(LAPI_Senv(t_hndl, INTERRUPT_SET, 2));
        CHECK_EQ(t_query(INTERRUPT_SET), 1);
        OK(LAPI_Senv(t_hndl, ERROR_CHK, INT_MIN));
        CHECK_EQ(t_query(ERROR_CHK), 1);
        t_set(ERROR_CHK, checked);
        for (i = 0; i < LAST_QUERY; i++) {
            if (i == ACK_THRESHOLD || i == ERROR_CHK || i == TIMEOUT || i == INTERRUPT_SET) continue;
            RETURNS(LAPI_Senv(t_hndl, (lapi_query_t)i, 1), LAPI_ERR_QUERY_TYPE);
        }
        RETURNS(LAPI_Senv(t_hndl, LAST_QUERY, 1), LAPI_ERR_QUERY_TYPE);
        RETURNS(LAPI_Senv(t_hndl, (lapi_query_t)-1, 1), LAPI_ERR_QUERY_TYPE);
        RETURNS(LAPI_Senv(t_hndl, (lapi_query_t)12345, 1), LAPI_ERR_QUERY_TYPE);
    }
    CHECK_EQ(t_query(NUM_TASKS), t_tasks);
}

static lapi_statistics_t statistics(lapi_query_t which) {
    lapi_statistics_t stats;
    memset(&stats, 0xff, sizeof stats);
    OK(LAPI_Qenv(t_hndl, which, (int *)&stats));
    return stats;
}

static void *anywhere(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h,
                      void **uinfo) {
    static char landing[3000000];
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)uinfo;
    *comp_h = NULL;
    return landing;
}

/* Task 0 sends to task 1, and to itself; what the others see of it. */
static void counted(void) {
    static char from[3000000], to[3000000];
    static const ulong lens[] = {1, 8, 100, 5000, 100000, 3000000};
    void **tos = t_addresses(to), **handlers = t_addresses((void *)anywhere);
    lapi_statistics_t before, after, local_before, local_after, other;
    lapi_long_t *sent = malloc(sizeof *sent * (size_t)t_tasks), *received = malloc(sizeof *received * (size_t)t_tasks);
    lapi_long_t payload = 0;
    size_t i;
    int task, first, end;
    lapi_query_t packets, others;
    CHECK(sent != NULL && received != NULL && t_tasks >= 2);
    /* What tasks 0 and 1 send each other goes by shared memory or by the network. */
    t_sharing(0, &first, &end);
    packets = end > 1 ? QUERY_SHM_STATISTICS : QUERY_STATISTICS;
    others = end > 1 ? QUERY_STATISTICS : QUERY_SHM_STATISTICS;
    t_fence();
    before = statistics(packets);
    local_before = statistics(QUERY_LOCAL_SEND_STATISTICS);
    t_fence();
    if (t_me == 0)
        for (i = 0; i < sizeof lens / sizeof *lens; i++) {
            OK(LAPI_Put(t_hndl, 1, lens[i], tos[1], from, NULL, NULL, NULL));
            OK(LAPI_Amsend(t_hndl, 1, handlers[1], NULL, 0, from, lens[i], NULL, NULL, NULL));
            payload += 2 * lens[i];
        }
    t_fence();
    after = statistics(packets);
    local_after = statistics(QUERY_LOCAL_SEND_STATISTICS);
    t_fence();
    OK(LAPI_Address_init64(t_hndl, after.Tot_data_sent - before.Tot_data_sent, sent));
    OK(LAPI_Address_init64(t_hndl, after.Tot_data_rcv - before.Tot_data_rcv, received));
    if (t_me == 0) {
        CHECK_EQ(sent[0], payload);
        CHECK(after.Tot_pkt_sent_cnt > before.Tot_pkt_sent_cnt);
    }
    if (t_me == 1) {
        CHECK(after.Tot_pkt_recv_cnt > before.Tot_pkt_recv_cnt);
        CHECK_EQ(after.Tot_data_recv, after.Tot_data_rcv);
    }
    CHECK_EQ(received[1], sent[0]);
    for (task = 1; task < t_tasks; task++) CHECK_EQ(sent[task], 0);
    for (task = 0; task < t_tasks; task++)
        if (task != 1) CHECK_EQ(received[task], 0);
    CHECK_EQ(local_after.Tot_data_sent, local_before.Tot_data_sent);

    /* A get moves data the other way. */
    t_fence();
    before = statistics(packets);
    t_fence();
    if (t_me == 0) OK(LAPI_Get(t_hndl, 1, 123456, tos[1], from, NULL, NULL));
    t_fence();
    after = statistics(packets);
    t_fence();
    if (t_me == 0) CHECK_EQ(after.Tot_data_rcv - before.Tot_data_rcv, 123456);
    if (t_me == 1) CHECK_EQ(after.Tot_data_sent - before.Tot_data_sent, 123456);

    /* Messages of a task to itself are counted separately, and not in packets. */
    before = statistics(packets);
    local_before = statistics(QUERY_LOCAL_SEND_STATISTICS);
    OK(LAPI_Put(t_hndl, (uint)t_me, 70000, to, from, NULL, NULL, NULL));
    OK(LAPI_Get(t_hndl, (uint)t_me, 3000, to, from, NULL, NULL));
    OK(LAPI_Amsend(t_hndl, (uint)t_me, (void *)anywhere, NULL, 0, from, 20, NULL, NULL, NULL));
    OK(LAPI_Fence(t_hndl));
    local_after = statistics(QUERY_LOCAL_SEND_STATISTICS);
    CHECK_EQ(local_after.Tot_data_sent - local_before.Tot_data_sent, 73020);
    CHECK_EQ(local_after.Tot_data_rcv - local_before.Tot_data_rcv, 73020);
    CHECK_EQ(local_after.Tot_pkt_sent_cnt, 0);
    CHECK_EQ(local_after.Tot_pkt_rcv_cnt, 0);
    t_fence();
    after = statistics(packets);
    CHECK_EQ(after.Tot_data_sent, before.Tot_data_sent);
    CHECK_EQ(after.Tot_data_rcv, before.Tot_data_rcv);

    /* Data goes no other way. Packets of collective calls do where there are tasks of
     * both kinds. */
    other = statistics(others);
    CHECK_EQ(other.Tot_data_sent, 0);
    CHECK_EQ(other.Tot_data_rcv, 0);
    if (t_tasks == 2 || end == t_tasks) {
        CHECK_EQ(other.Tot_pkt_sent_cnt, 0);
        CHECK_EQ(other.Tot_pkt_rcv_cnt, 0);
    }
}

/* What the other task has: each field of the statistics is one value. */
static lapi_statistics_t of_other(lapi_statistics_t own) {
    lapi_long_t values[9], both[2];
    lapi_statistics_t other;
    int i;
    memcpy(values, &own, sizeof values);
    for (i = 0; i < 9; i++) {
        OK(LAPI_Address_init64(t_hndl, values[i], both));
        values[i] = both[1 - t_me];
    }
    memcpy(&other, values, sizeof other);
    return other;
}

/* Between two counts that a side makes, the other side makes one: what was sent before the first
 * has arrived at it, and what has arrived at it was sent before the second. */
static void reliable(int lossy) {
    static char from[300000], to[300000];
    void **tos = t_addresses(to);
    lapi_statistics_t first, then, other;
    int rounds = 0;
    CHECK_EQ(t_tasks, 2);
    do {
        int again;
        for (again = 0; again < 10; again++) OK(LAPI_Put(t_hndl, (uint)(1 - t_me), sizeof from, tos[1 - t_me], from, NULL, NULL, NULL));
        t_fence();
        first = statistics(QUERY_STATISTICS);
        t_fence();
        other = of_other(statistics(QUERY_STATISTICS));
        t_fence();
        then = statistics(QUERY_STATISTICS);
        rounds += 1;
        /* Every packet and byte arrives once. */
        CHECK(other.Tot_pkt_rcv_cnt >= first.Tot_pkt_sent_cnt && other.Tot_pkt_rcv_cnt <= then.Tot_pkt_sent_cnt);
        CHECK(other.Tot_data_rcv >= first.Tot_data_sent && other.Tot_data_rcv <= then.Tot_data_sent);
        CHECK(first.Tot_data_sent >= (lapi_long_t)rounds * 10 * sizeof from);
        /* Data in one direction alone is acknowledged by itself. */
        CHECK(first.Tot_ack_send_cnt > 0 && first.Tot_ack_recv_cnt > 0);
        CHECK(other.Tot_ack_recv_cnt <= then.Tot_ack_send_cnt);
        CHECK_EQ(then.Tot_gho_pkt_cnt, 0);
        /* The network makes no copies here: what comes twice was sent twice. */
        CHECK(other.Tot_dup_pkt_cnt <= then.Tot_retrans_pkt_cnt);
        /* Both sides end after the same round. */
        again = lossy && (other.Tot_dup_pkt_cnt == 0 || other.Tot_retrans_pkt_cnt == 0);
        CHECK_FOR(rounds < 2000, "after %d rounds: %llu sent again, %llu duplicates at the other side", rounds,
                  then.Tot_retrans_pkt_cnt, other.Tot_dup_pkt_cnt);
        lapi_long_t both[2];
        OK(LAPI_Address_init64(t_hndl, (lapi_long_t)again, both));
        lossy = both[0] || both[1];
    } while (lossy);
    CHECK_EQ(statistics(QUERY_SHM_STATISTICS).Tot_pkt_sent_cnt, 0);
}

static void print(void) {
    static char buffer[4096];
    int value = 4711;
    char byte = 0;
    OK(LAPI_Put(t_hndl, (uint)t_me, 1, &byte, &byte, NULL, NULL, NULL));
    t_fence();
    /* As a program's stdout is when it is a pipe: nothing has been written before LAPI writes. */
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    printf("BEGIN\n");
    OK(LAPI_Qenv(t_hndl, PRINT_STATISTICS, &value));
    CHECK_EQ(value, 4711);
    printf("END\n");
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    t_init();
    if (strcmp(which, "defaults") == 0) defaults();
    else if (strcmp(which, "attribute") == 0 && argc == 4) CHECK_EQ(t_query((lapi_query_t)atoi(argv[2])), atoi(argv[3]));
    else if (strcmp(which, "settable") == 0) settable();
    else if (strcmp(which, "statistics") == 0) counted();
    else if (strcmp(which, "udp") == 0) reliable(0);
    else if (strcmp(which, "udp-lossy") == 0) reliable(1);
    else if (strcmp(which, "print") == 0) print();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}
