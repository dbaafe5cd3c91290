/* message.c: every task sends task 0 a text, which finds its place there on arrival. */
#include <string.h>

#include "check.h"

typedef struct {
    int from;
    ulong length;
    char text[];
} letter_t;

/* The completion handler: the whole text is there. */
static void read_letter(lapi_handle_t *hndl, void *argument)
{
    letter_t *letter = argument;
    (void)hndl;
    printf("task %d writes: %.*s\n", letter->from, (int)letter->length, letter->text);
    free(letter);
}

/* The header handler: the beginning of a message is there. It returns where the text is to go. */
static void *open_letter(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **completion,
                         void **argument)
{
    letter_t *letter = malloc(sizeof *letter + *msg_len);
    (void)hndl, (void)uhdr_len;
    if (letter == NULL)
        abort();
    letter->from = *(int *)uhdr;
    letter->length = *msg_len;
    *completion = read_letter;
    *argument = letter;
    return letter->text;
}

int main(void)
{
    lapi_handle_t hndl;
    lapi_info_t info = {0};
    lapi_cntr_t read;
    char text[80];
    int me, tasks;

    CHECK(LAPI_Init(&hndl, &info));
    CHECK(LAPI_Qenv(hndl, TASK_ID, &me));
    CHECK(LAPI_Qenv(hndl, NUM_TASKS, &tasks));

    void **handlers = malloc(tasks * sizeof *handlers);
    CHECK(LAPI_Address_init(hndl, (void *)open_letter, handlers));

    snprintf(text, sizeof text, "%d plus %d is %d", me, me, me + me);
    CHECK(LAPI_Setcntr(hndl, &read, 0));
    CHECK(LAPI_Amsend(hndl, 0, handlers[0], &me, sizeof me, text, strlen(text), NULL, NULL, &read));

    /* The completion counter: task 0 has returned from read_letter. */
    CHECK(LAPI_Waitcntr(hndl, &read, 1, NULL));

    CHECK(LAPI_Gfence(hndl));
    CHECK(LAPI_Term(hndl));
    return 0;
}
