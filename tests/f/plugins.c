/*
 * Opens two shared objects in Fortran apart from each other, as Python opens its modules, and is
 * not linked with the library itself: plugins FIRST SECOND. With plugins FIRST SECOND LIBRARY the
 * library is opened for all before them, and the second one after LAPI_Init.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *function(void *plugin, const char *name) {
    void *found = plugin != NULL ? dlsym(plugin, name) : NULL;
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

int main(int argc, char **argv) {
    void *plugins[2];
    int i, wrong, hndl;
    if (argc < 3 || (argc > 3 && dlopen(argv[3], RTLD_NOW | RTLD_GLOBAL) == NULL)) return 2;
    plugins[0] = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (argc == 3) plugins[1] = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    ((void (*)(int *))function(plugins[0], "start"))(&hndl);
    if (argc > 3) plugins[1] = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    for (i = 0; i < 2; i++) {
        wrong = ((int (*)(int *))function(plugins[i], "check"))(&hndl);
        if (wrong != 0) {
            fprintf(stderr, "plugin %d: %d\n", i, wrong);
            return 1;
        }
    }
    puts("PASS 0");
    return 0;
}
