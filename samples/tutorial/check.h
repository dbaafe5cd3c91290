/* CHECK(call): ends the task, with LAPI's own words, when the call fails. */
#include <stdio.h>
#include <stdlib.h>

#include <lapi.h>

#define CHECK(call)                                               \
    do {                                                          \
        int code = (call);                                        \
        if (code != LAPI_SUCCESS) {                               \
            char text[LAPI_MAX_ERR_STRING];                       \
            LAPI_Msg_string(code, text);                          \
            fprintf(stderr, "%s: %s\n", #call, text);             \
            exit(EXIT_FAILURE);                                   \
        }                                                         \
    } while (0)
