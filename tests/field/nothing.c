/* A program that could not be profiled: it has no loader, and calls no LAPI. */
int main(void) {
    return 0;
}
