/*
 * Opens a library, calls a function of it, and closes it: opens FILE [FUNCTION]
 *
 * Says what has changed of the process when the library is open, and after its end.
 */
#include "state.h"
#include <dlfcn.h>

int main(int count, char **arguments) {
    char *before = state();
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    int changes = compare(before, "after dlopen");
    int (*function)(void) = count > 2 ? (int (*)(void))dlsym(library, arguments[2]) : NULL;
    if (function && function()) changes++;
    if (dlclose(library)) return 2;
    changes += compare(before, "after dlclose");
    puts("closed");
    return changes ? 3 : 0;
}
