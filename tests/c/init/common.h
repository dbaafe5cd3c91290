/* What the programs of this folder share. */
#ifndef INIT_COMMON_H
#define INIT_COMMON_H

#include "../common/ltest.h"

#include <dirent.h>

/* One put to every task on a handle. May run in several threads at once, each with a handle
 * of its own. */
static inline void traffic(lapi_handle_t h, int number) {
    char here[16][64], expected[64];
    lapi_cntr_t done;
    void *table[64];
    int me = -1, tasks = 0, task;
    char text[64];
    bzero(&done, sizeof done);
    OK(LAPI_Qenv(h, TASK_ID, &me));
    OK(LAPI_Qenv(h, NUM_TASKS, &tasks));
    CHECK(tasks <= 16 && me >= 0 && me < tasks);
    OK(LAPI_Address_init(h, here, table));
    snprintf(text, sizeof text, "task %d, number %d", me, number);
    for (task = 0; task < tasks; task++)
        OK(LAPI_Put(h, (uint)task, sizeof text, (char *)table[task] + me * 64, text, NULL, NULL, &done));
    OK(LAPI_Waitcntr(h, &done, tasks, NULL));
    OK(LAPI_Gfence(h));
    for (task = 0; task < tasks; task++) {
        snprintf(expected, sizeof expected, "task %d, number %d", task, number);
        CHECK_FOR(strcmp(here[task], expected) == 0, "\"%s\" is here instead of \"%s\"", here[task], expected);
    }
    OK(LAPI_Gfence(h));
}

static inline lapi_info_t zeroed(void) {
    lapi_info_t info;
    bzero(&info, sizeof info);
    return info;
}

/* How many lines of a file of /proc/self hold the text, or how many entries a folder there has. */
static inline int count_in(const char *path, const char *text) {
    char line[1024];
    int found = 0;
    FILE *file;
    if (text == NULL) {
        DIR *dir = opendir(path);
        CHECK(dir != NULL);
        while (readdir(dir) != NULL) found++;
        closedir(dir);
        return found;
    }
    file = fopen(path, "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) found += strstr(line, text) != NULL;
    fclose(file);
    return found;
}

/* A thread that has been joined may be seen in /proc for a moment longer. */
static inline int threads_become(int wanted) {
    int tries;
    for (tries = 0; tries < 1000; tries++) {
        if (count_in("/proc/self/task", NULL) == wanted) return 1;
        usleep(10000);
    }
    return 0;
}

#endif
