/*
 * Moves known amounts, for the profiler to count. Task t of n sends to task (t + 1) % n:
 *
 *     7 * (t + 1) puts of 100 bytes by LAPI_Put, from the function put_some()
 *     3 puts of 4096 bytes by LAPI_Xfer with a send completion handler
 *     5 gets of 64 bytes by LAPI_Get, and 1 of 64 by LAPI_Xfer with a completion handler
 *     4 active messages by index, of 8 + 24 bytes, whose header handler names a completion handler
 *     2 active messages by address, of 8 + 24 bytes, likewise
 *     6 fetch-and-adds of 4 bytes, 1 of 8
 *     1 LAPI_Putv of 2 buffers of 10 and 20 bytes, and 1 LAPI_Amsendv of a strided vector of 3 blocks of 16 bytes, by address
 *     1 call that fails
 *
 * With "twice" all of this in each of two handles at the same time. With "threads" the gets are
 * made by a second thread.
 * With "exit" the program ends without LAPI_Term, with "die" task 1 ends by a signal when all is
 * done. With "fork" a child of each task calls exit(0) at the end.
 */
#include "../common/ltest.h"

#include <signal.h>
#include <sys/wait.h>

#define INDEX 7

static unsigned char board[8192], source[4096], sink[64];
static int word;
static long long wide;
static lapi_cntr_t sent, arrived;
static volatile int headers, completions, sends;

static void on_complete(lapi_handle_t *hndl, void *parameter)
{
    (void)hndl;
    CHECK_PTR(parameter, &word);
    __atomic_add_fetch(&completions, 1, __ATOMIC_RELAXED);
}

static void *on_header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp_h, void **uinfo)
{
    (void)hndl;
    CHECK_EQ(*uhdr_len, 8);
    CHECK_EQ(*msg_len, 24);
    CHECK(memcmp(uhdr, source, 8) == 0);
    headers++;
    *comp_h = on_complete;
    *uinfo = &word;
    return board;
}

static lapi_vec_t *on_vector_header(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                                    void **uinfo)
{
    static void *info[] = {board, (void *)16, (void *)32};
    static lapi_vec_t vec = {LAPI_GEN_STRIDED_XFER, 3, info, NULL};
    (void)hndl, (void)uhdr, (void)uhdr_len, (void)len_vec;
    *comp_h = on_complete;
    *uinfo = &word;
    return &vec;
}

static void on_sent(lapi_handle_t *hndl, void *parameter, lapi_sh_info_t *info)
{
    (void)hndl;
    CHECK_PTR(parameter, &wide);
    CHECK_EQ(info->reason, LAPI_SUCCESS);
    __atomic_add_fetch(&sends, 1, __ATOMIC_RELAXED);
}

static void on_got(lapi_handle_t *hndl, void *parameter)
{
    (void)hndl;
    CHECK_PTR(parameter, &wide);
    __atomic_add_fetch(&sends, 1, __ATOMIC_RELAXED);
}

/* Not static and not inlined: the profiler must find this name. */
__attribute__((noinline)) void put_some(lapi_handle_t hndl, uint tgt, int times)
{
    for (int i = 0; i < times; i++)
        OK(LAPI_Put(hndl, tgt, 100, board, source, NULL, &sent, NULL));
    t_probe_until(&sent.cntr, times);
    OK(LAPI_Setcntr(hndl, &sent, 0));
}

static lapi_handle_t hndl_of_thread;

static void *gets(void *tgt)
{
    lapi_cntr_t got = {0};
    for (int i = 0; i < 5; i++)
        OK(LAPI_Get(hndl_of_thread, (uint)(size_t)tgt, 64, board, sink, NULL, &got));
    OK(LAPI_Waitcntr(hndl_of_thread, &got, 5, NULL));
    return NULL;
}

static void traffic(lapi_handle_t hndl, int second_thread)
{
    uint tgt = (uint)(t_me + 1) % (uint)t_tasks;
    int headers_due = headers + 6, completions_due = completions + 7, sends_due = sends + 4;

    OK(LAPI_Addr_set(hndl, (void *)on_header, INDEX));
    void *found;
    OK(LAPI_Addr_get(hndl, &found, INDEX));
    CHECK_PTR(found, on_header);
    OK(LAPI_Gfence(hndl));

    put_some(hndl, tgt, 7 * (t_me + 1));
    for (int i = 0; i < 3; i++) {
        lapi_xfer_t x = {.Put = {.Xfer_type = LAPI_PUT_XFER, .tgt = tgt, .tgt_addr = t_long(board), .org_addr = source,
                                 .len = 4096, .shdlr = on_sent, .sinfo = &wide}};
        OK(LAPI_Xfer(hndl, &x));
        CHECK(x.Put.shdlr == on_sent && x.Put.sinfo == &wide);
    }

    hndl_of_thread = hndl;
    if (second_thread) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, gets, (void *)(size_t)tgt), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    } else {
        gets((void *)(size_t)tgt);
    }
    lapi_xfer_t get = {.Get = {.Xfer_type = LAPI_GET_XFER, .tgt = tgt, .tgt_addr = t_long(board), .org_addr = sink, .len = 64,
                               .chndlr = on_got, .cinfo = &wide}};
    OK(LAPI_Xfer(hndl, &get));

    lapi_cntr_t cmpl = {0};
    for (int i = 0; i < 4; i++)
        OK(LAPI_Amsend(hndl, tgt, (void *)INDEX, source, 8, source, 24, NULL, NULL, &cmpl));
    for (int i = 0; i < 2; i++)
        OK(LAPI_Amsend(hndl, tgt, (void *)on_header, source, 8, source, 24, NULL, NULL, &cmpl));

    int one = 1, before;
    long long wide_one = 1, wide_before;
    for (int i = 0; i < 6; i++)
        OK(LAPI_Rmw(hndl, FETCH_AND_ADD, tgt, &word, &one, &before, &cmpl));
    OK(LAPI_Rmw64(hndl, FETCH_AND_ADD, tgt, &wide, &wide_one, &wide_before, &cmpl));

    void *from[] = {source, source + 10}, *to[] = {board, board + 100};
    ulong lens[] = {10, 20};
    lapi_vec_t org = {LAPI_GEN_IOVECTOR, 2, from, lens}, dest = {LAPI_GEN_IOVECTOR, 2, to, lens};
    OK(LAPI_Putv(hndl, tgt, &dest, &org, NULL, NULL, &cmpl));
    void *blocks[] = {source, (void *)16, (void *)20};
    lapi_vec_t strided = {LAPI_GEN_STRIDED_XFER, 3, blocks, NULL};
    OK(LAPI_Amsendv(hndl, tgt, (void *)on_vector_header, NULL, 0, &strided, NULL, NULL, &cmpl));
    OK(LAPI_Waitcntr(hndl, &cmpl, 4 + 2 + 6 + 1 + 1 + 1, NULL));

    RETURNS(LAPI_Waitcntr(hndl, NULL, 1, NULL), LAPI_ERR_CNTR_NULL);
    t_probe_until(&sends, sends_due);
    t_probe_until(&headers, headers_due);
    t_probe_until(&completions, completions_due);
    OK(LAPI_Gfence(hndl));
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    t_init();
    OK(LAPI_Senv(t_hndl, ERROR_CHK, 1));
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i * 7);
    (void)arrived;

    if (strcmp(how, "twice") == 0) {
        lapi_info_t info = {0};
        lapi_handle_t other, first = t_hndl;
        OK(LAPI_Init(&other, &info));
        OK(LAPI_Senv(other, ERROR_CHK, 1));
        traffic(first, 0);
        t_hndl = other;
        traffic(other, 0);
        OK(LAPI_Term(first));
        OK(LAPI_Gfence(other));
    } else {
        traffic(t_hndl, strcmp(how, "threads") == 0);
    }

    if (strcmp(how, "fork") == 0) {
        pid_t child = fork();
        if (child == 0)
            exit(0);
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    if (strcmp(how, "die") == 0 && t_me == 1)
        raise(SIGKILL);
    if (strcmp(how, "exit") == 0) {
        t_pass();
        exit(0);
    }
    if (strcmp(how, "die") == 0) {
        OK(LAPI_Term(t_hndl));
        t_pass();
        return 0;
    }
    t_done();
    return 0;
}
