/*
 * LAPI_Get: each even task reads the memory of the odd task after it.
 *
 * In a get the counters change sides: the origin counter says that the data has come to the origin,
 * the target counter that the target may change it again.
 *
 *     mpcc_r Get.c -o Get
 *     poe ./Get -procs 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

#define LETTERS 27

static char text[LETTERS];
static lapi_cntr_t was_read;

/* Ends the task, with LAPI's own words, when a call has failed. */
static void check(int rc, const char *call)
{
    char words[LAPI_MAX_ERR_STRING];

    if (rc != LAPI_SUCCESS) {
        LAPI_Msg_string(rc, words);
        fprintf(stderr, "%s: %s\n", call, words);
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

/* The alphabet, from a letter that depends on the task. */
static void write_alphabet(char *to, int task)
{
    for (int i = 0; i < LETTERS - 1; i++)
        to[i] = 'a' + (task + i) % 26;
    to[LETTERS - 1] = '\0';
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    void **texts, **counters;
    int me, tasks, left, right = 1;

    memset(&info, 0, sizeof info);
    info.lib_vers = LAST_LIB;
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");
    check(LAPI_Qenv(hndl, NUM_TASKS, &tasks), "LAPI_Qenv");
    if (tasks % 2 != 0) {
        fprintf(stderr, "Get needs an even number of tasks, not %d\n", tasks);
        check(LAPI_Term(hndl), "LAPI_Term");
        return EXIT_FAILURE;
    }

    /* What can be read must be there before another task has its address. */
    write_alphabet(text, me);
    check(LAPI_Setcntr(hndl, &was_read, 0), "LAPI_Setcntr");
    texts = exchange(hndl, tasks, text);
    counters = exchange(hndl, tasks, &was_read);

    if (me % 2 == 0) {
        int target = me + 1;
        char copy[LETTERS], expected[LETTERS];
        lapi_cntr_t arrived;

        check(LAPI_Setcntr(hndl, &arrived, 0), "LAPI_Setcntr");
        check(LAPI_Get(hndl, target, sizeof copy, texts[target], copy, counters[target], &arrived),
              "LAPI_Get");
        check(LAPI_Waitcntr(hndl, &arrived, 1, &left), "LAPI_Waitcntr");

        write_alphabet(expected, target);
        right = memcmp(copy, expected, sizeof copy) == 0;
        printf("task %d: origin counter after the wait: %d; task %d keeps \"%.26s\"\n", me, left, target,
               copy);
        printf("task %d: the copy is %s\n", me, right ? "exact" : "WRONG");
    } else {
        check(LAPI_Waitcntr(hndl, &was_read, 1, &left), "LAPI_Waitcntr");
        memset(text, '-', LETTERS - 1);
        printf("task %d: target counter after the wait: %d; the text has been read and is wiped\n", me, left);
    }

    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    free(texts);
    free(counters);
    check(LAPI_Term(hndl), "LAPI_Term");
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
