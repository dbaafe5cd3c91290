/*
 * LAPI_Init and LAPI_Term: init CASE [ARGUMENT]
 *
 *   info        every field of lapi_info_t, and its errors
 *   instances   as many handles as there are at once, traffic on each
 *   parallel    four handles in four threads at once
 *   again N     LAPI_Init, traffic and LAPI_Term N times
 *   leave       every task but 0 exits without LAPI_Term, at different times; task 0 terminates properly
 *   setenv      variables set just before LAPI_Init
 *   code N      LAPI_Init must return N
 *   alone       this is a job of one task, and everything works
 *   plain       a little traffic with every task
 *   local       LAPI_Init and LAPI_Term while no other task is there
 *   missing     operations with a task that is missing fail, and the error handler is called; other operations continue
 *   order       two instances, opened in another order by every other task, and one that only one task opens
 */
#include "common.h"

static void errors_ignored(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    T_FAIL("the error handler was called: handle %u, code %d, type %d, task %d, src %d", *hndl, *code, (int)*type, *task,
           *src);
}

static void all_fields(void) {
    static const lapi_lib_t levels[] = {L1_LIB, L2_LIB, LAST_LIB};
    lapi_handle_t h, second;
    lapi_info_t info = zeroed();
    lapi_cntr_t counter;
    size_t i;
    RETURNS(LAPI_Init(NULL, &info), LAPI_ERR_HNDL_INVALID);
    RETURNS(LAPI_Init(&h, NULL), LAPI_ERR_INFO_NULL);
    info.info6 = 1;
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_INFO_NONZERO);
    info = zeroed();
    info.instance_no = 17;
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_ALL_HNDL_IN_USE);
    info.instance_no = (uint)-1;
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_ALL_HNDL_IN_USE);

    for (i = 0; i < sizeof levels / sizeof *levels; i++) {
        info = zeroed();
        info.lib_vers = levels[i];
        info.err_hndlr = errors_ignored;
        info.epoch_num = 12345; /* no longer used */
        info.num_compl_hndlr_thr = (int)i;
        OK(LAPI_Init(&h, &info));
        /* What the library brings with it says so with a number of 32 or more; UDP has IBM's. */
        CHECK_FOR((int)info.protocol >= 32 || info.protocol == UDP_DEV, "the protocol is %d", (int)info.protocol);
        memset(&info, 0x77, sizeof info); /* may be changed or freed now */
        traffic(h, (int)i);
        OK(LAPI_Term(h));
    }

    /* The same instance twice; another one; the same again when it is free. */
    info = zeroed();
    info.instance_no = 5;
    OK(LAPI_Init(&h, &info));
    info = zeroed();
    info.instance_no = 5;
    RETURNS(LAPI_Init(&second, &info), LAPI_ERR_ALL_HNDL_IN_USE);
    info = zeroed();
    info.instance_no = 6;
    OK(LAPI_Init(&second, &info));
    CHECK(second != h);
    traffic(second, 100);
    traffic(h, 101);
    OK(LAPI_Term(h));
    traffic(second, 102);
    info = zeroed();
    info.instance_no = 5;
    OK(LAPI_Init(&h, &info));
    traffic(h, 103);
    OK(LAPI_Term(second));
    traffic(h, 104);
    OK(LAPI_Term(h));

    /* The handle of none has the number of the 15th instance, and stays none of it. */
    info = zeroed();
    info.instance_no = 15;
    OK(LAPI_Init(&h, &info));
    OK(LAPI_Term(h));
    RETURNS(LAPI_Setcntr(LAPI_VOID_HANDLE, &counter, 1), LAPI_ERR_HNDL_INVALID);
}

static void instances(void) {
    lapi_handle_t h[16], more;
    lapi_info_t info;
    int i, j;
    for (i = 0; i < 16; i++) {
        info = zeroed();
        info.instance_no = i % 2 ? (uint)i + 1 : 0; /* 0 takes the next free one */
        OK(LAPI_Init(&h[i], &info));
        for (j = 0; j < i; j++) CHECK(h[i] != h[j]);
    }
    info = zeroed();
    RETURNS(LAPI_Init(&more, &info), LAPI_ERR_ALL_HNDL_IN_USE);
    for (i = 0; i < 16; i++) traffic(h[i], i);
    for (i = 15; i >= 0; i--) traffic(h[i], i + 20);
    for (i = 0; i < 16; i += 2) OK(LAPI_Term(h[i]));
    for (i = 1; i < 16; i += 2) traffic(h[i], i + 40);
    info = zeroed();
    OK(LAPI_Init(&more, &info));
    traffic(more, 77);
    OK(LAPI_Term(more));
    for (i = 1; i < 16; i += 2) OK(LAPI_Term(h[i]));
}

static void *on_its_own_handle(void *arg) {
    lapi_handle_t h = *(lapi_handle_t *)arg;
    int i;
    for (i = 0; i < 100; i++) traffic(h, i * 16 + (int)h % 16);
    return NULL;
}

static void parallel(void) {
    lapi_handle_t h[4];
    pthread_t tids[4];
    lapi_info_t info;
    int i;
    for (i = 0; i < 4; i++) {
        info = zeroed();
        OK(LAPI_Init(&h[i], &info));
    }
    for (i = 0; i < 4; i++) CHECK_EQ(pthread_create(&tids[i], NULL, on_its_own_handle, &h[i]), 0);
    for (i = 0; i < 4; i++) CHECK_EQ(pthread_join(tids[i], NULL), 0);
    for (i = 0; i < 4; i++) OK(LAPI_Term(h[i]));
}

static void show_files(void) {
    char name[40], file[200];
    int fd;
    for (fd = 0; fd < 100; fd++) {
        ssize_t len;
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        len = readlink(name, file, sizeof file - 1);
        if (len > 0) fprintf(stderr, "descriptor %d: %.*s\n", fd, (int)len, file);
    }
}

static void again(int times) {
    int i, files = count_in("/proc/self/fd", NULL), threads = count_in("/proc/self/task", NULL);
    int shared = count_in("/proc/self/maps", "rw-s");
    for (i = 0; i < times; i++) {
        lapi_handle_t h;
        lapi_info_t info = zeroed();
        OK(LAPI_Init(&h, &info));
        traffic(h, i);
        OK(LAPI_Term(h));
        /* Nothing of it is left. */
        if (!threads_become(threads)) T_FAIL("a thread of LAPI is still there after LAPI_Term");
        if (count_in("/proc/self/fd", NULL) != files) show_files();
        CHECK_EQ(count_in("/proc/self/fd", NULL), files);
        CHECK_EQ(count_in("/proc/self/maps", "rw-s"), shared);
    }
}

static void leave(void) {
    static char word[8];
    t_init();
    traffic(t_hndl, 1);
    if (t_me != 0) {
        usleep((useconds_t)t_me * 20000);
        t_pass();
        exit(0);
    }
    /* No task replies any more, and no operation needs a reply. */
    usleep(200000);
    OK(LAPI_Probe(t_hndl));
    OK(LAPI_Put(t_hndl, 0, 5, word, "alone", NULL, NULL, NULL));
    OK(LAPI_Fence(t_hndl));
    CHECK(strncmp(word, "alone", 5) == 0);
    OK(LAPI_Term(t_hndl));
}

static void set_env(void) {
    lapi_handle_t h;
    lapi_info_t info = zeroed();
    int value = -1;
    setenv("MP_MSG_API", "mpi", 1);
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_MSG_API);
    setenv("MP_MSG_API", "nonsense", 1);
    info = zeroed();
    RETURNS(LAPI_Init(&h, &info), LAPI_ERR_MSG_API);
    setenv("MP_MSG_API", "MPI,LAPI", 1); /* capitals or not */
    setenv("MP_REXMIT_BUF_SIZE", "2048", 1);
    setenv("MP_REXMIT_BUF_CNT", "33", 1);
    setenv("MP_ACK_THRESH", "7", 1);
    setenv("MP_SHARED_MEMORY", "yes", 1); /* not LAPI's, harmless */
    setenv("MP_CSS_INTERRUPT", "yes", 1);
    setenv("MP_EAGER_LIMIT", "65536", 1);
    info = zeroed();
    OK(LAPI_Init(&h, &info));
    OK(LAPI_Qenv(h, BUF_CP_SIZE, &value));
    CHECK_EQ(value, 2048);
    OK(LAPI_Qenv(h, REX_BUF_SZ, &value));
    CHECK_EQ(value, 2048);
    OK(LAPI_Qenv(h, NUM_REX_BUFS, &value));
    CHECK_EQ(value, 33);
    OK(LAPI_Qenv(h, ACK_THRESHOLD, &value));
    CHECK_EQ(value, 7);
    traffic(h, 1);
    OK(LAPI_Term(h));
    unsetenv("MP_REXMIT_BUF_SIZE");
    info = zeroed();
    OK(LAPI_Init(&h, &info));
    OK(LAPI_Qenv(h, BUF_CP_SIZE, &value));
    CHECK_EQ(value, 128);
    OK(LAPI_Term(h));
}

static void local(void) {
    lapi_handle_t h;
    lapi_info_t info = zeroed();
    char from[8] = "itself", to[8] = "";
    lapi_cntr_t done;
    bzero(&done, sizeof done);
    OK(LAPI_Init(&h, &info));
    OK(LAPI_Put(h, 0, sizeof from, to, from, NULL, NULL, &done));
    OK(LAPI_Waitcntr(h, &done, 1, NULL));
    CHECK(strcmp(to, "itself") == 0);
    OK(LAPI_Term(h));
}

static int missed;

static void reported(lapi_handle_t *hndl, int *code, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type;
    CHECK_EQ(*code, LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(*task, 0);
    CHECK_EQ(*src, 1);
    missed++;
}

static void missing(void) {
    lapi_handle_t h;
    lapi_info_t info = zeroed();
    char byte = 1;
    lapi_cntr_t origin;
    bzero(&origin, sizeof origin);
    info.err_hndlr = reported;
    OK(LAPI_Init(&h, &info));
    OK(LAPI_Put(h, 1, 1, &byte, &byte, NULL, &origin, NULL));
    RETURNS(LAPI_Gfence(h), LAPI_ERR_NO_CONNECTIVITY);
    CHECK_EQ(missed, 1);
    RETURNS(LAPI_Put(h, 1, 1, &byte, &byte, NULL, NULL, NULL), LAPI_ERR_NO_CONNECTIVITY);
    OK(LAPI_Fence(h));
    OK(LAPI_Term(h));
}

static void order(void) {
    lapi_handle_t h[2], own;
    lapi_info_t info = zeroed();
    int i, first = atoi(getenv("MP_CHILD")) % 2;
    if (first == 0) {
        info.instance_no = 9;
        OK(LAPI_Init(&own, &info));
        OK(LAPI_Term(own));
    }
    for (i = 0; i < 2; i++) {
        info = zeroed();
        info.instance_no = (uint)(1 + (first ^ i));
        OK(LAPI_Init(&h[first ^ i], &info));
    }
    for (i = 0; i < 2; i++) traffic(h[i], i);
    for (i = 0; i < 2; i++) OK(LAPI_Term(h[i ^ first]));
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    int number = argc >= 3 ? atoi(argv[2]) : 0;
    lapi_handle_t h;
    lapi_info_t info = zeroed();
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(which, "info") == 0) all_fields();
    else if (strcmp(which, "instances") == 0) instances();
    else if (strcmp(which, "parallel") == 0) parallel();
    else if (strcmp(which, "again") == 0) again(t_rounds(number));
    else if (strcmp(which, "leave") == 0) leave();
    else if (strcmp(which, "setenv") == 0) set_env();
    else if (strcmp(which, "code") == 0) RETURNS(LAPI_Init(&h, &info), number);
    else if (strcmp(which, "alone") == 0) {
        t_init();
        CHECK_EQ(t_me, 0);
        CHECK_EQ(t_tasks, 1);
        traffic(t_hndl, 9);
        OK(LAPI_Term(t_hndl));
    } else if (strcmp(which, "plain") == 0) {
        t_init();
        traffic(t_hndl, number);
        OK(LAPI_Term(t_hndl));
    } else if (strcmp(which, "local") == 0) local();
    else if (strcmp(which, "missing") == 0) missing();
    else if (strcmp(which, "order") == 0) order();
    else T_FAIL("there is no case \"%s\"", which);
    t_pass();
    return 0;
}
