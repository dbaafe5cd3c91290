/*
 * Jobs of forked processes: jobs CASE
 *
 *   children     children of every task form jobs with one another
 *   before       a process forks all tasks of a job before any LAPI_Init (run without a launcher)
 *   child        the child of a job of one task, and the child's child
 */
#include "child.h"

static void children(void) {
    enum { CHILDREN = 3 };
    pid_t child[CHILDREN];
    char partition[32];
    int i, round;
    for (round = 0; round < 3; round++) {
        snprintf(partition, sizeof partition, "%d%02d", (int)getpid(), round);
        for (i = 0; i < CHILDREN; i++) {
            child[i] = forked();
            if (child[i] == 0) {
                RETURNS(LAPI_Term(t_hndl), LAPI_ERR_HNDL_INVALID);
                life(partition, i, CHILDREN, 5);
                life(partition, CHILDREN - 1 - i, CHILDREN, 2); /* and once more, the other way round */
                _exit(30 + i);
            }
        }
        exchange(t_hndl, t_me, t_tasks, round);
        for (i = 0; i < CHILDREN; i++) ended(child[i], 30 + i);
    }
    exchange(t_hndl, t_me, t_tasks, 9);
}

static void before(void) {
    enum { TASKS = 4 };
    pid_t child[TASKS];
    char partition[32];
    int i;
    snprintf(partition, sizeof partition, "%d", (int)getpid());
    for (i = 1; i < TASKS; i++) {
        child[i] = forked();
        if (child[i] == 0) {
            life(partition, i, TASKS, 10);
            _exit(0);
        }
    }
    life(partition, 0, TASKS, 10);
    for (i = 1; i < TASKS; i++) ended(child[i], 0);
}

static void childs_child(void) {
    pid_t child = forked();
    if (child == 0) {
        lapi_handle_t parents = t_hndl;
        t_init();
        CHECK_EQ(t_tasks, 1);
        CHECK(t_hndl != parents);
        RETURNS(LAPI_Probe(parents), LAPI_ERR_HNDL_INVALID);
        exchange(t_hndl, 0, 1, 1);
        child = forked();
        if (child == 0) {
            RETURNS(LAPI_Probe(t_hndl), LAPI_ERR_HNDL_INVALID);
            t_init();
            exchange(t_hndl, 0, 1, 2);
            OK(LAPI_Term(t_hndl));
            _exit(8);
        }
        exchange(t_hndl, 0, 1, 3);
        ended(child, 8);
        OK(LAPI_Term(t_hndl));
        _exit(7);
    }
    exchange(t_hndl, 0, 1, 4);
    ended(child, 7);
    exchange(t_hndl, 0, 1, 5);
}

int main(int argc, char **argv) {
    const char *which = argc >= 2 ? argv[1] : "";
    if (strcmp(which, "before") == 0) {
        t_me = 0;
        before();
        t_pass();
        return 0;
    }
    t_init();
    if (strcmp(which, "children") == 0) children();
    else if (strcmp(which, "child") == 0) childs_child();
    else T_FAIL("there is no case \"%s\"", which);
    t_done();
    return 0;
}
