/* Calls of the C interface that move bytes. */
#include "plain.h"

#include <unistd.h>

enum { LONG = 1 << 20 };

void transfers(c_fam_desc *one) {
    const char first[] = "twenty-four bytes, put.", second[] = "others, and not waiting";
    const char zeros[64] = {0};
    char *data = malloc(LONG), back[64];
    uint64_t pending = 99;
    DONE(c_fam_put_blocking(pool, (void *)first, one, 40, 24));
    DONE(c_fam_put_nonblocking(pool, (void *)second, one, 80, 24));
    DONE(c_fam_quiet(pool));
    memset(back, '-', sizeof(back));
    DONE(c_fam_get_blocking(pool, back + 8, one, 40, 24));
    CHECK(memcmp(back, "--------", 8) == 0 && strcmp(back + 8, first) == 0 && back[32] == '-');
    memset(back, '-', sizeof(back));
    DONE(c_fam_get_nonblocking(pool, back + 8, one, 80, 24));
    DONE(c_fam_quiet(pool));
    CHECK(memcmp(back, "--------", 8) == 0 && strcmp(back + 8, second) == 0 && back[32] == '-');
    /* Nothing but these ranges was written. */
    CHECK(has(one, 0, zeros, 40) && has(one, 64, zeros, 16) && has(one, 104, zeros, 64));

    memset(data, 'x', LONG);
    DONE(c_fam_put_nonblocking(pool, data, one, 1 << 19, LONG));
    DONE(c_fam_progress(pool, &pending));
    CHECK(pending <= 1);
    DONE(c_fam_fence(pool));
    DONE(c_fam_quiet(pool));
    pending = 99;
    DONE(c_fam_progress(pool, &pending));
    CHECK(pending == 0 && has(one, 1 << 19, data, LONG));
    free(data);
    REFUSED(FAM_ERR_INVALID, c_fam_progress(pool, NULL));
    REFUSED(FAM_ERR_INVALID, c_fam_fence(NULL));
    REFUSED(FAM_ERR_INVALID, c_fam_quiet(NULL));

    /* A blocking one fails itself, of another one fam_quiet. */
    REFUSED(FAM_ERR_OUTOFRANGE, c_fam_put_blocking(pool, back, one, 4 << 20, 8));
    REFUSED(FAM_ERR_OUTOFRANGE, c_fam_get_blocking(pool, back, one, 4 << 20, 8));
    DONE(c_fam_put_nonblocking(pool, back, one, 4 << 20, 8));
    REFUSED(FAM_ERR_OUTOFRANGE, c_fam_quiet(pool));
    DONE(c_fam_get_nonblocking(pool, back, one, 4 << 20, 8));
    REFUSED(FAM_ERR_OUTOFRANGE, c_fam_quiet(pool));
    DONE(c_fam_quiet(pool));
    REFUSED(FAM_ERR_INVALID, c_fam_put_blocking(pool, back, NULL, 8, 8));
    REFUSED(FAM_ERR_INVALID, c_fam_get_blocking(pool, back, NULL, 8, 8));
    REFUSED(FAM_ERR_INVALID, c_fam_put_nonblocking(pool, NULL, one, 8, 8));
    REFUSED(FAM_ERR_INVALID, c_fam_get_nonblocking(pool, back, one, 8, 0));
}

enum { ELEMENTS = 5, FIRST = 3, STRIDE = 7, SIZE = 4, ALL = 128 };

/* Whether the item has the words of `image` at its beginning. */
static int is(c_fam_desc *one, const uint32_t *image) { return has(one, 0, image, ALL * SIZE); }

/* The words that the item has, at the places of a stride or of a list. */
static int taken(const uint32_t *local, const uint32_t *image, const uint64_t *index) {
    int i;
    for (i = 0; i < ELEMENTS; i++)
        if (local[i] != image[index ? index[i] : FIRST + (uint64_t)i * STRIDE])
            return 0;
    return 1;
}

/* Words that no call before has written. */
static void draw(uint32_t *local, uint32_t *image, const uint64_t *index) {
    static uint32_t last = 1000;
    int i;
    for (i = 0; i < ELEMENTS; i++)
        image[index ? index[i] : FIRST + (uint64_t)i * STRIDE] = local[i] = ++last;
}

/* Both shapes of a gather, and what they refuse. FAILED tells of a range beyond the item. */
#define GATHERS(CALL, FAILED)                                                                      \
    memset(local, 0, sizeof(local));                                                               \
    DONE(c_fam_##CALL##_stride(pool, local, one, ELEMENTS, FIRST, STRIDE, SIZE));                  \
    DONE(c_fam_quiet(pool));                                                                       \
    CHECK(taken(local, image, NULL) && !local[ELEMENTS]);                                          \
    memset(local, 0, sizeof(local));                                                               \
    DONE(c_fam_##CALL##_index(pool, local, one, ELEMENTS, index, SIZE));                           \
    DONE(c_fam_quiet(pool));                                                                       \
    CHECK(taken(local, image, index) && !local[ELEMENTS]);                                         \
    REFUSALS(CALL, FAILED)

#define SCATTERS(CALL, FAILED)                                                                     \
    draw(local, image, NULL);                                                                      \
    DONE(c_fam_##CALL##_stride(pool, local, one, ELEMENTS, FIRST, STRIDE, SIZE));                  \
    DONE(c_fam_quiet(pool));                                                                       \
    CHECK(is(one, image));                                                                         \
    draw(local, image, index);                                                                     \
    DONE(c_fam_##CALL##_index(pool, local, one, ELEMENTS, index, SIZE));                           \
    DONE(c_fam_quiet(pool));                                                                       \
    CHECK(is(one, image));                                                                         \
    REFUSALS(CALL, FAILED)

#define REFUSALS(CALL, FAILED)                                                                     \
    FAILED(c_fam_##CALL##_stride(pool, local, one, ELEMENTS, FIRST, 1 << 20, SIZE));               \
    FAILED(c_fam_##CALL##_index(pool, local, one, ELEMENTS, beyond, SIZE));                        \
    DONE(c_fam_quiet(pool));                                                                       \
    CHECK(is(one, image));                                                                         \
    REFUSED(FAM_ERR_INVALID, c_fam_##CALL##_stride(pool, local, NULL, 1, 1, 1, SIZE));             \
    REFUSED(FAM_ERR_INVALID, c_fam_##CALL##_index(pool, local, one, 1, NULL, SIZE));

#define AT_ONCE(call) REFUSED(FAM_ERR_OUTOFRANGE, call)
#define BY_QUIET(call)                                                                             \
    DONE(call);                                                                                    \
    REFUSED(FAM_ERR_OUTOFRANGE, c_fam_quiet(pool))

void vectors(c_fam_desc *one) {
    uint64_t index[] = {90, 1, 60, 2, 45}, beyond[] = {90, 1, 60, 2, 1 << 20};
    uint32_t image[ALL], local[ELEMENTS + 1] = {0};
    int i;
    for (i = 0; i < ALL; i++)
        image[i] = (uint32_t)i * 3 + 1;
    DONE(c_fam_put_blocking(pool, image, one, 0, sizeof(image)));
    GATHERS(gather_blocking, AT_ONCE)
    GATHERS(gather_nonblocking, BY_QUIET)
    SCATTERS(scatter_blocking, AT_ONCE)
    SCATTERS(scatter_nonblocking, BY_QUIET)
}

void copies(c_fam_desc *one, c_fam_desc *other) {
    char data[64], expected[128] = {0};
    void *wait;
    int i;
    for (i = 0; i < 64; i++)
        data[i] = (char)(i + 1);
    DONE(c_fam_put_blocking(pool, data, one, 0, sizeof(data)));
    wait = c_fam_copy(pool, one, 8, other, 72, 24);
    CHECK(wait);
    REFUSED(FAM_ERR_INVALID, c_fam_delete_backup_wait(pool, wait));
    DONE(c_fam_copy_wait(pool, wait));
    memcpy(expected + 72, data + 8, 24);
    CHECK(has(other, 0, expected, sizeof(expected)) && has(one, 0, data, sizeof(data)));
    NOTHING(FAM_ERR_OUTOFRANGE, c_fam_copy(pool, one, 8, other, 1 << 20, 24));
    NOTHING(FAM_ERR_INVALID, c_fam_copy(pool, one, 8, NULL, 72, 24));
    REFUSED(FAM_ERR_INVALID, c_fam_copy_wait(pool, NULL));
}

/* With an object whose model allows it. */
void maps(void) {
    Fam_Options options;
    Fam_Region_Attributes given = {NONE, VOLATILE, DISABLE, REGION};
    c_fam *own = c_fam_create();
    c_fam_region_desc *where;
    c_fam_desc *one;
    char *memory, back[10], name[32];
    memset(&options, 0, sizeof(options));
    options.openFamModel = "shared_memory";
    DONE(c_fam_initialize(own, "maps", &options));
    snprintf(name, sizeof(name), "maps%ld", (long)getpid());
    where = c_fam_create_region(own, name, 1 << 20, 0600, &given);
    one = c_fam_allocate_named(own, "one", 10000, 0600, where);
    NOTHING(FAM_ERR_UNIMPL, c_fam_map(pool, one));
    memory = c_fam_map(own, one);
    CHECK(memory);
    strcpy(memory + 5000, "by memory");
    DONE(c_fam_get_blocking(own, back, one, 5000, 10));
    CHECK(strcmp(back, "by memory") == 0);
    REFUSED(FAM_ERR_INVALID, c_fam_unmap(own, back, one));
    DONE(c_fam_unmap(own, memory, one));
    REFUSED(FAM_ERR_INVALID, c_fam_unmap(own, memory, one));
    NOTHING(FAM_ERR_INVALID, c_fam_map(own, NULL));
    DONE(c_fam_destroy_region(own, where));
    DONE(c_fam_finalize(own, "maps"));
    c_fam_delete(own);
}
