/*
 * LAPI_Qenv and LAPI_Senv: every attribute that can be asked for, and the four that can be set.
 *
 * All tasks ask and set; task 0 prints the values, which are the defaults, and each task says
 * whether all went well.
 *
 *     mpcc_r Qenv_senv.c -o Qenv_senv
 *     poe ./Qenv_senv -procs 2
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

struct attribute {
    lapi_query_t query;
    const char *name;
};
#define ATTRIBUTE(name) {name, #name}

/* The attributes that are one int. */
static const struct attribute numbers[] = {
    ATTRIBUTE(TASK_ID),           ATTRIBUTE(NUM_TASKS),           ATTRIBUTE(MAX_UHDR_SZ),
    ATTRIBUTE(MAX_DATA_SZ),       ATTRIBUTE(ERROR_CHK),           ATTRIBUTE(TIMEOUT),
    ATTRIBUTE(MIN_TIMEOUT),       ATTRIBUTE(MAX_TIMEOUT),         ATTRIBUTE(INTERRUPT_SET),
    ATTRIBUTE(MAX_PORTS),         ATTRIBUTE(MAX_PKT_SZ),          ATTRIBUTE(NUM_REX_BUFS),
    ATTRIBUTE(REX_BUF_SZ),        ATTRIBUTE(LOC_ADDRTBL_SZ),      ATTRIBUTE(EPOCH_NUM),
    ATTRIBUTE(USE_THRESH),        ATTRIBUTE(RCV_FIFO_SIZE),       ATTRIBUTE(MAX_ATOM_SIZE),
    ATTRIBUTE(BUF_CP_SIZE),       ATTRIBUTE(MAX_PKTS_OUT),        ATTRIBUTE(ACK_THRESHOLD),
    ATTRIBUTE(QUERY_SHM_ENABLED), ATTRIBUTE(QUERY_SHM_NUM_TASKS), ATTRIBUTE(BULK_XFER),
    ATTRIBUTE(BULK_MIN_MSG_SIZE),
};

/* The attributes that are a whole lapi_statistics_t. */
static const struct attribute statistics[] = {
    ATTRIBUTE(QUERY_STATISTICS),
    ATTRIBUTE(QUERY_SHM_STATISTICS),
    ATTRIBUTE(QUERY_LOCAL_SEND_STATISTICS),
};

/* The attributes that can be set, and a value for each that is not its default. */
static const struct {
    struct attribute attribute;
    int value;
} settable[] = {
    {ATTRIBUTE(ACK_THRESHOLD), 10},
    {ATTRIBUTE(ERROR_CHK), 1},
    {ATTRIBUTE(INTERRUPT_SET), 0},
    {ATTRIBUTE(TIMEOUT), 600},
};

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static int me, tasks;

/* Ends the task, with LAPI's own words, when a call has failed. */
static void check(int rc, const char *call, const char *attribute)
{
    char text[LAPI_MAX_ERR_STRING];

    if (rc != LAPI_SUCCESS) {
        LAPI_Msg_string(rc, text);
        fprintf(stderr, "%s %s: %s\n", call, attribute, text);
        exit(EXIT_FAILURE);
    }
}

/* Prints in task 0. */
static void say(const char *format, ...)
{
    va_list values;

    if (me != 0)
        return;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
}

static int query(lapi_handle_t hndl, const struct attribute *attribute)
{
    int value = -1;

    check(LAPI_Qenv(hndl, attribute->query, &value), "LAPI_Qenv", attribute->name);
    return value;
}

static void show_numbers(lapi_handle_t hndl)
{
    for (int i = 0; i < COUNT(numbers); i++)
        say("%-28s %d\n", numbers[i].name, query(hndl, &numbers[i]));
}

/* The tasks of this host: an array of QUERY_SHM_NUM_TASKS numbers, this task's among them. */
static void show_shm_tasks(lapi_handle_t hndl)
{
    int count;
    int *through_shm;

    check(LAPI_Qenv(hndl, QUERY_SHM_NUM_TASKS, &count), "LAPI_Qenv", "QUERY_SHM_NUM_TASKS");
    through_shm = malloc(count * sizeof *through_shm);
    if (through_shm == NULL) {
        perror("malloc");
        exit(EXIT_FAILURE);
    }
    check(LAPI_Qenv(hndl, QUERY_SHM_TASKS, through_shm), "LAPI_Qenv", "QUERY_SHM_TASKS");
    say("%-28s", "QUERY_SHM_TASKS");
    for (int i = 0; i < count; i++)
        say(" %d", through_shm[i]);
    say("\n");
    free(through_shm);
}

/* LAPI's statistics. The result is larger than an int, so the pointer is one only by
 * the prototype. */
static void show_statistics(lapi_handle_t hndl)
{
    for (int i = 0; i < COUNT(statistics); i++) {
        lapi_statistics_t counted;

        check(LAPI_Qenv(hndl, statistics[i].query, (int *)&counted), "LAPI_Qenv", statistics[i].name);
        say("%-28s %llu packets and %llu bytes sent, %llu packets and %llu bytes received\n",
            statistics[i].name, counted.Tot_pkt_sent_cnt, counted.Tot_data_sent, counted.Tot_pkt_rcv_cnt,
            counted.Tot_data_rcv);
        say("%-28s %llu packets sent again, %llu duplicates, %llu from outside the job\n", "",
            counted.Tot_retrans_pkt_cnt, counted.Tot_dup_pkt_cnt, counted.Tot_gho_pkt_cnt);
    }
    if (me == 0) {
        int unused;

        /* LAPI prints these by itself, after the lines above; the pointer must still be valid. */
        say("%-28s\n", "PRINT_STATISTICS");
        fflush(stdout);
        check(LAPI_Qenv(hndl, PRINT_STATISTICS, &unused), "LAPI_Qenv", "PRINT_STATISTICS");
    }
}

/* Sets each attribute that can be set, queries it, and restores it; returns whether each
 * took its value. */
static int set_all(lapi_handle_t hndl)
{
    int right = 1;

    for (int i = 0; i < COUNT(settable); i++) {
        const struct attribute *attribute = &settable[i].attribute;
        int before = query(hndl, attribute), set, after;

        check(LAPI_Senv(hndl, attribute->query, settable[i].value), "LAPI_Senv", attribute->name);
        set = query(hndl, attribute);
        check(LAPI_Senv(hndl, attribute->query, before), "LAPI_Senv", attribute->name);
        after = query(hndl, attribute);
        say("%-28s %d, set to %d, set back to %d\n", attribute->name, before, set, after);
        right = right && set == settable[i].value && set != before && after == before;
    }
    return right;
}

/* What LAPI_Senv must refuse: a value out of range, and an attribute that cannot be set. */
static int refuses(lapi_handle_t hndl)
{
    int shortest, tasks_now, out_of_range, read_only;

    check(LAPI_Senv(hndl, ERROR_CHK, 1), "LAPI_Senv", "ERROR_CHK");
    check(LAPI_Qenv(hndl, MIN_TIMEOUT, &shortest), "LAPI_Qenv", "MIN_TIMEOUT");
    out_of_range = LAPI_Senv(hndl, TIMEOUT, shortest - 1);
    read_only = LAPI_Senv(hndl, NUM_TASKS, tasks + 1);
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks_now), "LAPI_Qenv", "NUM_TASKS");
    check(LAPI_Senv(hndl, ERROR_CHK, 0), "LAPI_Senv", "ERROR_CHK");

    say("%-28s to %d: %s\n", "TIMEOUT", shortest - 1,
        out_of_range == LAPI_ERR_SET_VAL ? "LAPI_ERR_SET_VAL" : "NOT REFUSED");
    say("%-28s to %d: %s\n", "NUM_TASKS", tasks + 1,
        read_only == LAPI_ERR_QUERY_TYPE ? "LAPI_ERR_QUERY_TYPE" : "NOT REFUSED");
    return out_of_range == LAPI_ERR_SET_VAL && read_only == LAPI_ERR_QUERY_TYPE && tasks_now == tasks;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    int right;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init", "");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv", "TASK_ID");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv", "NUM_TASKS");

    say("--- what can be asked for\n");
    show_numbers(hndl);
    show_shm_tasks(hndl);
    show_statistics(hndl);
    say("--- what can be set\n");
    right = set_all(hndl);
    say("--- what is refused\n");
    right = refuses(hndl) && right;
    printf("task %d: %s\n", me, right ? "all attributes behave" : "AN ATTRIBUTE MISBEHAVES");

    check(LAPI_Gfence(hndl), "LAPI_Gfence", "");
    check(LAPI_Term(hndl), "LAPI_Term", "");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
