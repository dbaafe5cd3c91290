/* What xlc's options make of char, bit fields, enums and structures. */
#include <stdio.h>
#include <stddef.h>

enum colour { red, green };
struct bits { int two : 2; };
struct pair { int first; double second; };

int main(void)
{
    struct bits bits = { 3 };
    char c = (char)200;
    printf("char %s\n", c > 0 ? "unsigned" : "signed");
    printf("bits %s\n", bits.two > 0 ? "unsigned" : "signed");
    printf("enum %d\n", (int)sizeof(enum colour));
    printf("second %d\n", (int)offsetof(struct pair, second));
    return 0;
}
