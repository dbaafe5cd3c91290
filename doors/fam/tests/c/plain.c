/* Every call of the C interface against a daemon, with arguments that are all different: start and
 * end, regions, items, backups and contexts. */
#include "plain.h"

#include <pthread.h>
#include <unistd.h>

c_fam *pool;

/* Names of regions and backups, of this process. */
static char name[32], backup[32];

void failed(const char *file, int line, const char *what) {
    printf("%s:%d: %s; the last failure is %d: %s\n", file, line, what, c_fam_error(),
           c_fam_error_msg());
    exit(1);
}

int failed_by(int error) { return c_fam_error() == error && *c_fam_error_msg(); }

int has(c_fam_desc *one, uint64_t offset, const void *bytes, size_t length) {
    char *found = malloc(length);
    int same;
    DONE(c_fam_get_blocking(pool, found, one, offset, length));
    same = memcmp(found, bytes, length) == 0;
    free(found);
    return same;
}

static int number(char *option) {
    const int *value = c_fam_get_option(pool, option);
    int found;
    CHECK(value);
    found = *value;
    free((void *)value);
    return found;
}

static void start(void) {
    Fam_Options given;
    char count[] = "PE_COUNT", own[] = "PE_ID", version[] = "VERSION";
    char type[] = "FAM_DEFAULT_MEMORY_TYPE";
    const char **names;
    void *text;
    memset(&given, 0, sizeof(given));
    given.fam_default_memory_type = "persistent";
    pool = c_fam_create();
    CHECK(pool);
    NOTHING(FAM_ERR_INVALID, c_fam_lookup_region(pool, "before the start"));
    REFUSED(FAM_ERR_INVALID, c_fam_fence(pool));
    REFUSED(FAM_ERR_INVALID, c_fam_barrier_all(pool));
    REFUSED(FAM_ERR_INVALID, c_fam_abort(pool, 3));
    REFUSED(FAM_ERR_INVALID, c_fam_initialize(pool, NULL, &given));
    DONE(c_fam_initialize(pool, "plain", &given));
    REFUSED(FAM_ERR_INVALID, c_fam_initialize(pool, "plain", &given));
    names = c_fam_list_options(pool);
    CHECK(names && strcmp(names[0], "VERSION") == 0);
    CHECK(strcmp(names[16], "LOC_BUF_SIZE") == 0 && !names[17]);
    free(names);
    NOTHING(FAM_ERR_INVALID, c_fam_list_options(NULL));
    CHECK(number(count) == 1 && number(own) == 0);
    text = (void *)c_fam_get_option(pool, version);
    CHECK(text && strcmp(text, "3.2.0") == 0);
    free(text);
    text = (void *)c_fam_get_option(pool, type);
    CHECK(text && strcmp(text, "persistent") == 0);
    free(text);
    NOTHING(FAM_ERR_INVALID, c_fam_get_option(pool, name));
    /* Of the only PE. */
    DONE(c_fam_barrier_all(pool));
    DONE(c_fam_abort(pool, 3));
    REFUSED(FAM_ERR_INVALID, c_fam_barrier_all(NULL));
    REFUSED(FAM_ERR_INVALID, c_fam_abort(NULL, 3));
}

static void *fails_otherwise(void *nothing) {
    CHECK(c_fam_error() == FAM_NO_ERROR && !*c_fam_error_msg());
    REFUSED(FAM_ERR_INVALID, c_fam_quiet(NULL));
    return nothing;
}

/* Each thread has its own last failure. */
static void failures(void) {
    pthread_t thread;
    NOTHING(FAM_ERR_NOTFOUND, c_fam_lookup_region(pool, "no such region"));
    CHECK(pthread_create(&thread, NULL, fails_otherwise, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(failed_by(FAM_ERR_NOTFOUND));
}

static c_fam_region_desc *regions(void) {
    Fam_Region_Attributes given = {RAID1, VOLATILE, DISABLE, DATAITEM}, wrong = {77, 0, 0, 0};
    c_fam_region_desc *made, *found;
    Fam_Stat info;
    /* The type of memory that was asked for at the start is not here. */
    NOTHING(FAM_ERR_NOT_CREATED, c_fam_create_region(pool, name, 2 << 20, 0750, NULL));
    NOTHING(FAM_ERR_INVALID, c_fam_create_region(pool, name, 2 << 20, 0750, &wrong));
    made = c_fam_create_region(pool, name, 2 << 20, 0750, &given);
    CHECK(made);
    NOTHING(FAM_ERR_ALREADYEXIST, c_fam_create_region(pool, name, 2 << 20, 0750, &given));
    DONE(c_fam_stat_region(pool, made, &info));
    CHECK(info.size == 2 << 20 && info.perm == 0750 && strcmp(info.name, name) == 0);
    CHECK(info.uid == geteuid() && info.gid == getegid() && info.num_memservers == 1);
    CHECK(info.region_attributes.redundancyLevel == RAID1);
    CHECK(info.region_attributes.memoryType == VOLATILE);
    CHECK(info.region_attributes.interleaveEnable == DISABLE);
    CHECK(info.region_attributes.permissionLevel == DATAITEM);
    free(info.name);
    REFUSED(FAM_ERR_INVALID, c_fam_stat_region(pool, made, NULL));
    REFUSED(FAM_ERR_INVALID, c_fam_stat_region(pool, NULL, &info));
    found = c_fam_lookup_region(pool, name);
    CHECK(found && found != made);
    DONE(c_fam_resize_region(pool, found, 5 << 20));
    DONE(c_fam_change_permissions_region(pool, found, 0710));
    DONE(c_fam_stat_region(pool, made, &info));
    CHECK(info.size == 5 << 20 && info.perm == 0710);
    free(info.name);
    REFUSED(FAM_ERR_INVALID, c_fam_resize_region(pool, NULL, 5 << 20));
    REFUSED(FAM_ERR_INVALID, c_fam_change_permissions_region(pool, NULL, 0710));
    return made;
}

static c_fam_desc *items(c_fam_region_desc *where) {
    c_fam_desc *one = c_fam_allocate(pool, 3000, 0640, where), *item, *found;
    uint64_t value = 77, other = 78;
    Fam_Stat info;
    CHECK(one);
    DONE(c_fam_stat_data(pool, one, &info));
    CHECK(info.size >= 3000 && info.size < 3000 + 128 && info.perm == 0640 && !*info.name);
    CHECK(info.region_attributes.permissionLevel == DATAITEM);
    free(info.name);
    NOTHING(FAM_ERR_INVALID, c_fam_allocate(pool, 3000, 0640, NULL));
    item = c_fam_allocate_named(pool, "item", 5000, 0620, where);
    CHECK(item);
    NOTHING(FAM_ERR_ALREADYEXIST, c_fam_allocate_named(pool, "item", 5000, 0620, where));
    NOTHING(FAM_ERR_INVALID, c_fam_allocate_named(pool, NULL, 5000, 0620, where));
    DONE(c_fam_stat_data(pool, item, &info));
    CHECK(info.size >= 5000 && info.size < 5000 + 128 && info.perm == 0620);
    CHECK(strcmp(info.name, "item") == 0);
    free(info.name);
    REFUSED(FAM_ERR_INVALID, c_fam_stat_data(pool, item, NULL));
    REFUSED(FAM_ERR_INVALID, c_fam_stat_data(pool, NULL, &info));
    DONE(c_fam_put_blocking(pool, &value, item, 16, 8));
    found = c_fam_lookup(pool, "item", name);
    CHECK(found && has(found, 16, &value, 8));
    NOTHING(FAM_ERR_NOTFOUND, c_fam_lookup(pool, "other", name));
    DONE(c_fam_change_permissions_data(pool, found, 0440));
    REFUSED(FAM_ERR_INVALID, c_fam_change_permissions_data(pool, NULL, 0440));
    DONE(c_fam_stat_data(pool, item, &info));
    CHECK(info.perm == 0440);
    free(info.name);
    /* The rights of its first use, until it is closed. */
    DONE(c_fam_put_blocking(pool, &other, item, 16, 8));
    DONE(c_fam_close(pool, item));
    REFUSED(FAM_ERR_NOPERM, c_fam_put_blocking(pool, &value, item, 16, 8));
    CHECK(has(item, 16, &other, 8));
    REFUSED(FAM_ERR_INVALID, c_fam_close(pool, NULL));
    DONE(c_fam_deallocate(pool, item));
    REFUSED(FAM_ERR_NOTFOUND, c_fam_get_blocking(pool, &value, found, 16, 8));
    NOTHING(FAM_ERR_NOTFOUND, c_fam_lookup(pool, "item", name));
    REFUSED(FAM_ERR_INVALID, c_fam_deallocate(pool, NULL));
    return one;
}

static void backups(c_fam_region_desc *where, c_fam_desc *one) {
    c_fam_desc *other = c_fam_allocate(pool, 3000, 0600, where), *made = NULL;
    Fam_Backup_Options options = {0};
    uint64_t value = 99;
    Fam_Stat info;
    char *list;
    void *wait;
    DONE(c_fam_put_blocking(pool, &value, one, 24, 8));
    wait = c_fam_backup(pool, one, backup, &options);
    CHECK(wait);
    REFUSED(FAM_ERR_INVALID, c_fam_copy_wait(pool, wait));
    DONE(c_fam_backup_wait(pool, wait));
    wait = c_fam_backup(pool, one, backup, NULL);
    REFUSED(FAM_ERR_ALREADYEXIST, c_fam_backup_wait(pool, wait));
    REFUSED(FAM_ERR_INVALID, c_fam_backup_wait(pool, NULL));
    NOTHING(FAM_ERR_INVALID, c_fam_backup(pool, NULL, backup, &options));
    list = c_fam_list_backup(pool, backup);
    CHECK(list && strstr(list, backup));
    free(list);

    wait = c_fam_restore(pool, backup, other);
    CHECK(wait);
    REFUSED(FAM_ERR_INVALID, c_fam_backup_wait(pool, wait));
    DONE(c_fam_restore_wait(pool, wait));
    CHECK(has(other, 24, &value, 8));
    NOTHING(FAM_ERR_INVALID, c_fam_restore(pool, backup, NULL));
    REFUSED(FAM_ERR_INVALID, c_fam_restore_wait(pool, NULL));
    wait = c_fam_restore_region(pool, backup, where, "made", 0604, &made);
    CHECK(wait && made);
    DONE(c_fam_restore_wait(pool, wait));
    DONE(c_fam_stat_data(pool, made, &info));
    CHECK(strcmp(info.name, "made") == 0 && info.perm == 0604 && info.size >= 3000);
    free(info.name);
    CHECK(has(made, 24, &value, 8));
    NOTHING(FAM_ERR_INVALID, c_fam_restore_region(pool, backup, where, "more", 0604, NULL));
    made = NULL;
    NOTHING(FAM_BACKUP_NOTFOUND,
            c_fam_restore_region(pool, "no backup", where, "more", 0604, &made));
    CHECK(!made);

    wait = c_fam_delete_backup(pool, backup);
    CHECK(wait);
    REFUSED(FAM_ERR_INVALID, c_fam_restore_wait(pool, wait));
    DONE(c_fam_delete_backup_wait(pool, wait));
    REFUSED(FAM_ERR_INVALID, c_fam_delete_backup_wait(pool, NULL));
    NOTHING(FAM_BACKUP_NOTFOUND, c_fam_list_backup(pool, backup));
    NOTHING(FAM_ERR_INVALID, c_fam_delete_backup(pool, NULL));
}

static void contexts(c_fam_desc *one) {
    c_fam_context *own = c_fam_context_open(pool);
    uint64_t value = 123, pending = 99;
    CHECK(own);
    NOTHING(FAM_ERR_NOPERM, c_fam_context_open(own));
    DONE(c_fam_put_nonblocking(own, &value, one, 40, 8));
    DONE(c_fam_fence(own));
    DONE(c_fam_quiet(own));
    DONE(c_fam_progress(own, &pending));
    CHECK(pending == 0 && has(one, 40, &value, 8));
    /* A failure stays in its context. */
    DONE(c_fam_get_nonblocking(own, &value, one, 1 << 20, 8));
    DONE(c_fam_quiet(pool));
    REFUSED(FAM_ERR_OUTOFRANGE, c_fam_quiet(own));
    REFUSED(FAM_ERR_NOPERM, c_fam_context_close(own, own));
    REFUSED(FAM_ERR_INVALID, c_fam_context_close(pool, NULL));
    DONE(c_fam_context_close(pool, own));
}

int main(void) {
    c_fam_region_desc *where;
    c_fam_desc *one, *other;
    snprintf(name, sizeof(name), "plain%ld", (long)getpid());
    snprintf(backup, sizeof(backup), "backup%ld", (long)getpid());
    start();
    failures();
    where = regions();
    one = items(where);
    backups(where, one);
    contexts(one);
    transfers(c_fam_allocate(pool, 2 << 20, 0600, where));
    vectors(c_fam_allocate(pool, 4096, 0600, where));
    other = c_fam_allocate(pool, 4096, 0600, where);
    copies(c_fam_allocate(pool, 4096, 0600, where), other);
    atomics(c_fam_allocate(pool, 1024, 0600, where));
    maps();
    DONE(c_fam_destroy_region(pool, where));
    REFUSED(FAM_ERR_INVALID, c_fam_destroy_region(pool, NULL));
    NOTHING(FAM_ERR_NOTFOUND, c_fam_lookup_region(pool, name));
    DONE(c_fam_finalize(pool, "plain"));
    REFUSED(FAM_ERR_INVALID, c_fam_finalize(NULL, "plain"));
    NOTHING(FAM_ERR_INVALID, c_fam_lookup_region(pool, name));
    c_fam_delete(pool);
    printf("OK plain\n");
    return 0;
}
