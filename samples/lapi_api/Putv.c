/*
 * LAPI_Putv: each even task fills in the blanks of a form of the odd task after it, all in
 * one operation.
 *
 * Both vectors are in the origin; the addresses in the second one are the target's. The
 * target counter shows the target that all pieces are there, the completion counter shows it
 * to the origin.
 *
 *     mpcc_r Putv.c -o Putv
 *     poe ./Putv -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define BLANKS 3

static char form[] = "from task ___ to task ___: _____";
static lapi_cntr_t filled_in;

/* Where the blanks of a form are, and how long. */
static const struct {
    int at;
    ulong length;
} blanks[BLANKS] = {{10, 3}, {22, 3}, {27, 5}};

/* Ends the task, with LAPI's own words, when a call has failed. */
static void check(int rc, const char *call)
{
    char text[LAPI_MAX_ERR_STRING];

    if (rc != LAPI_SUCCESS) {
        LAPI_Msg_string(rc, text);
        fprintf(stderr, "%s: %s\n", call, text);
        exit(EXIT_FAILURE);
    }
}

/* A table with one entry from each task: what it has given as `mine`. */
static void **exchange(lapi_handle_t hndl, int tasks, void *mine)
{
    void **table = malloc(tasks * sizeof *table);

    if (table == NULL) {
        perror("malloc");
        exit(EXIT_FAILURE);
    }
    check(LAPI_Address_init(hndl, mine, table), "LAPI_Address_init");
    return table;
}

/* Fills in the form at `there` in the target, and waits until this is done. */
static void fill_in(lapi_handle_t hndl, int me, int target, char *there, lapi_cntr_t *filled_in_there)
{
    char from[12], to[12], text[] = "hello";
    void *words[BLANKS] = {from, to, text}, *places[BLANKS];
    ulong lengths[BLANKS];
    lapi_vec_t origin_vector = {LAPI_GEN_IOVECTOR, BLANKS, words, lengths};
    lapi_vec_t target_vector = {LAPI_GEN_IOVECTOR, BLANKS, places, lengths};
    lapi_cntr_t delivered;
    int left;

    snprintf(from, sizeof from, "%03d", me);
    snprintf(to, sizeof to, "%03d", target);
    for (int i = 0; i < BLANKS; i++) {
        places[i] = there + blanks[i].at;
        lengths[i] = blanks[i].length;
    }
    check(LAPI_Setcntr(hndl, &delivered, 0), "LAPI_Setcntr");
    check(LAPI_Putv(hndl, target, &target_vector, &origin_vector, filled_in_there, NULL, &delivered),
          "LAPI_Putv");
    check(LAPI_Waitcntr(hndl, &delivered, 1, &left), "LAPI_Waitcntr");
    printf("task %d: completion counter after the wait: %d; the form of task %d is filled in\n", me, left,
           target);
}

/* Waits until the form is filled in, and reads it. */
static int read_form(lapi_handle_t hndl, int me)
{
    char expected[sizeof form + 16];
    int left, right;

    check(LAPI_Waitcntr(hndl, &filled_in, 1, &left), "LAPI_Waitcntr");
    printf("task %d: target counter after the wait: %d; the form says \"%s\"\n", me, left, form);
    snprintf(expected, sizeof expected, "from task %03d to task %03d: hello", me - 1, me);
    right = strcmp(form, expected) == 0;
    printf("task %d: the form is %s\n", me, right ? "right" : "WRONG");
    return right;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    void **forms, **counters;
    int me, tasks, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Putv needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    check(LAPI_Setcntr(hndl, &filled_in, 0), "LAPI_Setcntr");
    forms = exchange(hndl, tasks, form);
    counters = exchange(hndl, tasks, &filled_in);

    if (me % 2 == 0)
        fill_in(hndl, me, me + 1, forms[me + 1], counters[me + 1]);
    else
        right = read_form(hndl, me);

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    free(forms);
    free(counters);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
