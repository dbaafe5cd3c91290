/*
 * Opens a library, calls a function of it, and closes it: opens FILE [FUNCTION]
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*function)(void) = count > 2 ? (int (*)(void))dlsym(library, arguments[2]) : NULL;
    if (function && function()) return 1;
    if (dlclose(library)) return 2;
    puts("closed");
    return 0;
}
