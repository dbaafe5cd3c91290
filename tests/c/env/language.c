/*
 * LAPI_Msg_string in the language of the environment.
 *   language codes            its result for every number from 0 to 600, a line each: number, return code, text
 *   language change LANG...   the text of LAPI_ERR_TGT after LANG is set to each of these, one after the other
 *   language threads          many threads that ask at the same time
 *   language complain         a call that fails, with what the library says of it
 */
#include "../common/ltest.h"

#include <pthread.h>
#include <stdlib.h>

static void show(int code) {
    char text[LAPI_MAX_ERR_STRING];
    int result;
    memset(text, 'x', sizeof text);
    result = LAPI_Msg_string(code, text);
    CHECK(memchr(text, 0, sizeof text) != NULL);
    printf("%d %d %s\n", code, result, text);
}

static char first[LAPI_MAX_ERR_STRING];

static void *ask(void *argument) {
    char text[LAPI_MAX_ERR_STRING];
    int i;
    (void)argument;
    for (i = 0; i < 300; i++) {
        RETURNS(LAPI_Msg_string(LAPI_ERR_TGT, text), LAPI_SUCCESS);
        CHECK(strcmp(text, first) == 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "";
    int i;
    if (strcmp(which, "codes") == 0) {
        for (i = 0; i <= 600; i++) show(i);
    } else if (strcmp(which, "change") == 0) {
        for (i = 2; i < argc; i++) {
            setenv("LANG", argv[i], 1);
            show(LAPI_ERR_TGT);
        }
    } else if (strcmp(which, "threads") == 0) {
        pthread_t threads[4];
        RETURNS(LAPI_Msg_string(LAPI_ERR_TGT, first), LAPI_SUCCESS);
        for (i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, ask, NULL), 0);
        for (i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
        printf("%s\n", first);
    } else if (strcmp(which, "complain") == 0) {
        t_init();
        CHECK_EQ(LAPI_Senv(t_hndl, TIMEOUT, 1), LAPI_ERR_SET_VAL);
        OK(LAPI_Term(t_hndl));
    } else {
        return 2;
    }
    return 0;
}
