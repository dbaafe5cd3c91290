/*
 * A job that no task has left has no sockets after LAPI_Init, however late the root of the exchange was.
 */
#include "../common/ltest.h"

#include <dirent.h>

static int sockets(void) {
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;
    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        char path[300], to[64];
        ssize_t len;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        len = readlink(path, to, sizeof to);
        count += len > 7 && memcmp(to, "socket:", 7) == 0;
    }
    closedir(dir);
    return count;
}

int main(void) {
    int before = sockets();
    t_init();
    CHECK_EQ(sockets(), before);
    t_fence();
    t_done();
    return 0;
}
