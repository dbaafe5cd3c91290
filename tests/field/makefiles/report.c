#include <stdio.h>

/* Fortran's REPORT, as xlf calls it: no underscore. */
void report(int *tasks)
{
    printf("tasks %d\n", *tasks);
}
