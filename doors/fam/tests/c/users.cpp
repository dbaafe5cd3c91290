// Users of one pool: `users WHO`. The owners wait for SIGUSR1 while the others run.
#include "stages.h"

#include <unistd.h>

fam *pool;

namespace {

// Everything that was not granted is FAM_ERR_NOPERM for another user.
void stranger(const char *name) {
    auto where = pool->fam_lookup_region(name);
    auto shown = pool->fam_lookup("shown", name);
    uint64_t local = 0;
    THROWS(FAM_ERR_NOPERM, pool->fam_lookup("hidden", name));
    // Who knows what the item is called in the pool may not more.
    Fam_Global_Descriptor global;
    pool->fam_get_blocking(&global, shown, 16, sizeof(global));
    Fam_Descriptor by_number(global), *hidden = &by_number;
    char backup[] = "backup";
    pool->fam_get_blocking(&local, shown, 0, 8);
    SAME(local, 7);
    Fam_Descriptor *made = nullptr;
    THROWS(FAM_ERR_NOPERM, pool->fam_put_blocking(&local, shown, 0, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_get_blocking(&local, hidden, 0, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_put_blocking(&local, hidden, 0, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_fetch_add(shown, 0, local));
    THROWS(FAM_ERR_NOPERM, pool->fam_add(hidden, 0, local); pool->fam_quiet());
    THROWS(FAM_ERR_NOPERM, pool->fam_gather_blocking(&local, hidden, 1, 0, 1, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_scatter_blocking(&local, shown, 1, 0, 1, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_compare_swap(shown, 0, local, local));
    THROWS(FAM_ERR_NOPERM, pool->fam_compare_swap(hidden, 0, local, local));
    // Those that do not wait, by the next fam_quiet.
    uint64_t index[] = {0};
    for (auto of : {shown, hidden}) {
        THROWS(FAM_ERR_NOPERM, pool->fam_put_nonblocking(&local, of, 0, 8); pool->fam_quiet());
        THROWS(FAM_ERR_NOPERM, pool->fam_set(of, 0, local); pool->fam_quiet());
        THROWS(FAM_ERR_NOPERM, pool->fam_scatter_nonblocking(&local, of, 1, 0, 1, 8);
               pool->fam_quiet());
        THROWS(FAM_ERR_NOPERM, pool->fam_scatter_nonblocking(&local, of, 1, index, 8);
               pool->fam_quiet());
    }
    THROWS(FAM_ERR_NOPERM, pool->fam_get_nonblocking(&local, hidden, 0, 8); pool->fam_quiet());
    THROWS(FAM_ERR_NOPERM, pool->fam_gather_nonblocking(&local, hidden, 1, 0, 1, 8);
           pool->fam_quiet());
    THROWS(FAM_ERR_NOPERM, pool->fam_gather_nonblocking(&local, hidden, 1, index, 8);
           pool->fam_quiet());
    pool->fam_quiet();
    THROWS(FAM_ERR_NOPERM, pool->fam_copy(shown, 0, hidden, 0, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_copy(hidden, 0, shown, 0, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_backup_wait(pool->fam_backup(hidden, "mine", nullptr)));
    THROWS(FAM_ERR_NOPERM, pool->fam_restore(backup, shown));
    THROWS(FAM_ERR_NOPERM, pool->fam_restore(backup, where, "x", 0600, &made));
    THROWS(FAM_ERR_NOPERM, pool->fam_delete_backup_wait(pool->fam_delete_backup(backup)));
    THROWS(FAM_ERR_NOPERM, pool->fam_list_backup(backup));
    // It is not in the list of all, either.
    char all[] = "*", *list = pool->fam_list_backup(all);
    CHECK(std::strstr(list, backup) == nullptr);
    std::free(list);
    THROWS(FAM_ERR_NOPERM, pool->fam_allocate(8, 0777, where));
    THROWS(FAM_ERR_NOPERM, pool->fam_allocate("mine", 8, 0777, where));
    THROWS(FAM_ERR_NOPERM, pool->fam_resize_region(where, 1 << 21));
    THROWS(FAM_ERR_NOPERM, pool->fam_destroy_region(where));
    THROWS(FAM_ERR_NOPERM, pool->fam_deallocate(shown));
    THROWS(FAM_ERR_NOPERM, pool->fam_change_permissions(shown, 0777));
    THROWS(FAM_ERR_NOPERM, pool->fam_change_permissions(where, 0777));
    // It has regions of its own.
    auto own = pool->fam_create_region("another user's", 1, 0600, nullptr);
    pool->fam_destroy_region(own);
}

void owner(const char *name) {
    Fam_Region_Attributes given = {NONE, VOLATILE, ENABLE, DATAITEM};
    auto where = pool->fam_create_region(name, 1 << 20, 0755, &given);
    uint64_t value = 7;
    auto hidden = pool->fam_allocate("hidden", 100, 0600, where);
    pool->fam_put_blocking(&value, hidden, 0, 8);
    auto shown = pool->fam_allocate("shown", 100, 0644, where);
    auto global = hidden->get_global_descriptor();
    pool->fam_put_blocking(&value, shown, 0, 8);
    pool->fam_put_blocking(&global, shown, 16, sizeof(global));
    pool->fam_backup_wait(pool->fam_backup(hidden, "backup", nullptr));
    wait_for_the_test("made");
    SAME(pool->fam_fetch_uint64(hidden, 0), 7);
    SAME(pool->fam_fetch_uint64(pool->fam_lookup("shown", name), 0), 7);
}

// The owner's user, somewhere else.
void same_user(const char *name) {
    uint64_t local = 0;
    pool->fam_get_blocking(&local, pool->fam_lookup("hidden", name), 0, 8);
    SAME(local, 7);
}

// Rights for a user of the owner's group and for one of another group.
const struct Lent {
    const char *who;
    mode_t granted, refused;
} all_lent[] = {{"member", 0770, 0757}, {"other", 0707, 0775}};

// Lends regions to other users, who may also change and end them.
void lender() {
    Fam_Region_Attributes each = {NONE, VOLATILE, ENABLE, DATAITEM};
    for (auto &lent : all_lent) {
        std::string who = lent.who;
        auto granted = pool->fam_create_region((who + " may").c_str(), 1 << 20, lent.granted, nullptr);
        auto refused = pool->fam_create_region((who + " reads").c_str(), 1 << 20, lent.refused, nullptr);
        pool->fam_allocate("one", 100, 0, granted);
        pool->fam_allocate("one", 100, 0, refused);
        auto items = pool->fam_create_region((who + " has items").c_str(), 1 << 20, 0755, &each);
        pool->fam_allocate("granted", 100, lent.granted, items);
        pool->fam_allocate("refused", 100, lent.refused, items);
    }
    wait_for_the_test("lent");
    for (auto &lent : all_lent) {
        std::string who = lent.who;
        THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup_region((who + " may").c_str()));
        pool->fam_destroy_region(pool->fam_lookup_region((who + " reads").c_str()));
        auto items = pool->fam_lookup_region((who + " has items").c_str());
        THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup("granted", items->get_name()));
        SAME(pool->fam_lookup("refused", items->get_name())->get_perm(), lent.refused);
        pool->fam_destroy_region(items);
    }
}

// Who has the right to write to a region makes and ends items, resizes and destroys it, and may not
// change the rights; who reads alone may do none of it.
void borrower(const std::string &who) {
    uint64_t local = 5;
    std::string reads = who + " reads", may = who + " may", items = who + " has items";
    auto where = pool->fam_lookup_region(reads.c_str());
    auto one = pool->fam_lookup("one", reads.c_str());
    THROWS(FAM_ERR_NOPERM, pool->fam_allocate(8, 0777, where));
    THROWS(FAM_ERR_NOPERM, pool->fam_resize_region(where, 1 << 21));
    THROWS(FAM_ERR_NOPERM, pool->fam_put_blocking(&local, one, 0, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_deallocate(one));
    THROWS(FAM_ERR_NOPERM, pool->fam_change_permissions(where, 0777));
    THROWS(FAM_ERR_NOPERM, pool->fam_destroy_region(where));
    pool->fam_get_blocking(&local, one, 0, 8);
    SAME(local, 0);

    where = pool->fam_lookup_region(may.c_str());
    one = pool->fam_lookup("one", may.c_str());
    auto own = pool->fam_allocate("own", 100, 0600, where);
    SAME(own->get_uid(), geteuid());
    SAME(own->get_gid(), getegid());
    pool->fam_allocate(100, 0600, where);
    pool->fam_resize_region(where, 4 << 20);
    SAME(pool->fam_lookup_region(may.c_str())->get_size(), 4 << 20);
    pool->fam_allocate("large", 2 << 20, 0600, where);
    local = 9;
    pool->fam_put_blocking(&local, one, 0, 8);
    SAME(pool->fam_fetch_uint64(one, 0), 9);
    THROWS(FAM_ERR_NOPERM, pool->fam_change_permissions(where, 0777));
    THROWS(FAM_ERR_NOPERM, pool->fam_change_permissions(one, 0777));
    pool->fam_deallocate(one);
    THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup("one", may.c_str()));
    pool->fam_destroy_region(where);
    THROWS(FAM_ERR_NOTFOUND, pool->fam_lookup_region(may.c_str()));

    // Where items have rights of their own, these count.
    auto granted = pool->fam_lookup("granted", items.c_str());
    auto refused = pool->fam_lookup("refused", items.c_str());
    pool->fam_put_blocking(&local, granted, 0, 8);
    THROWS(FAM_ERR_NOPERM, pool->fam_put_blocking(&local, refused, 0, 8));
    THROWS(FAM_ERR_NOPERM, pool->fam_change_permissions(granted, 0777));
    pool->fam_deallocate(granted);
    THROWS(FAM_ERR_NOPERM, pool->fam_deallocate(refused));
}

// The group, and a number of no user.
void become(gid_t group) { CHECK(setgid(group) == 0 && setuid(65534) == 0); }

} // namespace

int main(int, char **argv) {
    std::string who = argv[1];
    if (who == "stranger")
        become(65534);
    if (who == "other")
        become(65533);
    if (who == "member")
        become(getegid());
    block_the_signal();
    fam object;
    pool = &object;
    try {
        object.fam_initialize("users", nullptr);
        if (who == "owner")
            owner("r");
        else if (who == "stranger")
            stranger("r");
        else if (who == "same_user")
            same_user("r");
        else if (who == "lender")
            lender();
        else
            borrower(who);
        object.fam_finalize("users");
        std::printf("OK %s\n", argv[1]);
        return 0;
    } catch (Fam_Exception &e) {
        std::printf("error %d: %s\n", e.fam_error(), e.fam_error_msg());
        return 1;
    }
}
