// The functions of src/abi, which the classes are made of. Each returns a number of Fam_Error, and
// olfam_text() says more about the calling thread's last one. Nothing is thrown through them.
#ifndef OPENLAPI_FAM_SHIM_ABI_H
#define OPENLAPI_FAM_SHIM_ABI_H

#include "fam/fam.h"
#include "fam/fam_exception.h"

#include <atomic>
#include <mutex>

extern "C" {

// A context of a process that has called fam_initialize.
struct olfam_context;
// An item, opened at its first use.
struct olfam_item;
// What waits for a copy, a backup or a restore.
struct olfam_wait;

// What is known of a region or an item: as in src/abi/facts.rs.
struct olfam_facts {
    uint64_t region;
    uint64_t offset;
    uint64_t size;
    // 0: it is on one server.
    uint64_t interleave;
    uint32_t perm;
    uint32_t uid;
    uint32_t gid;
    // Numbers of the enums of fam.h.
    uint32_t redundancy;
    uint32_t memory;
    uint32_t interleaved;
    uint32_t level;
    uint32_t servers;
    uint64_t ids[256];
    char name[48];
};

// Elements of a gather or scatter: as in src/abi/data.rs.
struct olfam_elements {
    uint64_t count;
    uint64_t first;
    uint64_t stride;
    const uint64_t *index; // instead of first and stride, unless NULL
    uint64_t size;
};

// The numbers of operations and types of olfam_atomic.
enum {
    OLFAM_SET,
    OLFAM_READ,
    OLFAM_SWAP,
    OLFAM_ADD,
    OLFAM_SUBTRACT,
    OLFAM_MIN,
    OLFAM_MAX,
    OLFAM_AND,
    OLFAM_OR,
    OLFAM_XOR,
    OLFAM_COMPARE_SWAP
};
enum {
    OLFAM_INT32,
    OLFAM_INT64,
    OLFAM_INT128,
    OLFAM_UINT32,
    OLFAM_UINT64,
    OLFAM_FLOAT,
    OLFAM_DOUBLE
};

// What the waiting calls wait for.
enum { OLFAM_COPY, OLFAM_BACKUP, OLFAM_RESTORE, OLFAM_DELETE };

const char *olfam_text();

int olfam_initialize(const char *group, const Fam_Options *options, olfam_context **out);
int olfam_control(olfam_context *of);
int olfam_finalize(olfam_context *context, const char *group);
int olfam_abort(olfam_context *context, int status);
int olfam_barrier(olfam_context *context);
const char **olfam_list_options();
int olfam_option(olfam_context *context, const char *name, const void **out);

int olfam_context_open(olfam_context *context, olfam_context **out);
// Whether it may close that one.
int olfam_may_close(olfam_context *context, olfam_context *closed);
// Frees what the class has; what is under way ends first.
void olfam_context_free(olfam_context *context);
int olfam_fence(olfam_context *context);
int olfam_quiet(olfam_context *context);
int olfam_progress(olfam_context *context, uint64_t *pending);

int olfam_region_create(olfam_context *context, const char *name, uint64_t size, uint32_t perm,
                        const Fam_Region_Attributes *attributes, olfam_facts *out);
int olfam_region_lookup(olfam_context *context, const char *name, olfam_facts *out);
int olfam_region_destroy(olfam_context *context, uint64_t region);
int olfam_region_resize(olfam_context *context, uint64_t region, uint64_t size);
int olfam_region_protect(olfam_context *context, uint64_t region, uint32_t perm);
int olfam_region_stat(olfam_context *context, uint64_t region, olfam_facts *out);

olfam_item *olfam_item_new(uint64_t region, uint64_t offset);
void olfam_item_free(olfam_item *item);
// Whether it has been opened; then what is known of it.
int olfam_item_facts(const olfam_item *item, olfam_facts *out);
// `name` may be NULL.
int olfam_item_allocate(olfam_context *context, const char *name, uint64_t size, uint32_t perm,
                        uint64_t region, olfam_facts *out);
int olfam_item_lookup(olfam_context *context, const char *name, const char *region,
                      olfam_facts *out);
int olfam_item_deallocate(olfam_context *context, olfam_item *item);
int olfam_item_close(olfam_context *context, olfam_item *item);
int olfam_item_protect(olfam_context *context, olfam_item *item, uint32_t perm);
int olfam_item_stat(olfam_context *context, olfam_item *item, olfam_facts *out);

int olfam_get(olfam_context *context, olfam_item *item, void *local, uint64_t offset,
              uint64_t length, int blocking);
int olfam_put(olfam_context *context, olfam_item *item, const void *local, uint64_t offset,
              uint64_t length, int blocking);
int olfam_gather(olfam_context *context, olfam_item *item, void *local,
                 const olfam_elements *elements, int blocking);
int olfam_scatter(olfam_context *context, olfam_item *item, const void *local,
                  const olfam_elements *elements, int blocking);
// `operation` and `type` are of the numbers above; values are as long as the type. `old` NULL:
// nothing is returned, and the call does not wait.
int olfam_atomic(olfam_context *context, olfam_item *item, uint64_t offset, int operation,
                 int type, const void *value, const void *comparand, void *old);
int olfam_map(olfam_context *context, olfam_item *item, void **out);
int olfam_unmap(olfam_context *context, olfam_item *item, void *local);

int olfam_copy(olfam_context *context, olfam_item *source, uint64_t source_offset,
               olfam_item *target, uint64_t target_offset, uint64_t length, olfam_wait **out);
int olfam_backup(olfam_context *context, olfam_item *source, const char *name, olfam_wait **out);
int olfam_restore(olfam_context *context, const char *name, olfam_item *target, olfam_wait **out);
int olfam_delete_backup(olfam_context *context, const char *name, olfam_wait **out);
// Waits and frees; `kind` is one of the numbers above.
int olfam_wait_for(olfam_context *context, olfam_wait *wait, int kind);
// The size of the item that a backup was made of.
int olfam_backup_size(olfam_context *context, const char *name, uint64_t *size);
int olfam_list_backup(olfam_context *context, const char *name, char **out);
}

namespace openfam {

// Throws what a function of src/abi has returned.
inline void check(int code) {
    if (code != FAM_NO_ERROR)
        throw Fam_Exception(static_cast<Fam_Error>(code), olfam_text());
}

// What fam_initialize has made; throws where it was not called.
inline olfam_context *context_of(void *impl) {
    if (!impl)
        throw Fam_Exception(FAM_ERR_INVALID, "fam_initialize was not called");
    return static_cast<olfam_context *>(impl);
}

// What a descriptor knows. Any thread may ask while others learn of it from the daemon.
class Known {
  public:
    explicit Known(const olfam_facts &given)
        : context(nullptr), status(DESC_UNINITIALIZED), facts(given), known(false) {}
    virtual ~Known() {}

    template <typename T> T get(T olfam_facts::*member) {
        std::lock_guard<std::mutex> held(one);
        look();
        return facts.*member;
    }
    template <typename T, typename V> void set(T olfam_facts::*member, V value) {
        std::lock_guard<std::mutex> held(one);
        look();
        facts.*member = static_cast<T>(value);
    }
    // These stay where they are, and as they are once they are known.
    char *name();
    void set_name(const char *name);
    uint64_t *ids();
    uint64_t first_id();
    Fam_Global_Descriptor global();
    int get_status();
    void set_status(int given);
    // The daemon has said this.
    void learn(const olfam_facts &said);

    // Of the program.
    std::atomic<void *> context;
    std::atomic<int> status;

  protected:
    // Learns what the library knows already, under the lock.
    virtual void look() {}

    olfam_facts facts;
    // Whether the daemon has said them.
    bool known;

  private:
    std::mutex one;
};

class Fam_Descriptor::FamDescriptorImpl_ : public Known {
  public:
    olfam_item *const item;

    explicit FamDescriptorImpl_(const olfam_facts &given);
    ~FamDescriptorImpl_();

  protected:
    void look();
};

class Fam_Region_Descriptor::FamRegionDescriptorImpl_ : public Known {
  public:
    using Known::Known;
};

// Between the descriptors of a program and what is behind them.
struct Descriptor_Access {
    // Throws FAM_ERR_INVALID for NULL.
    static olfam_item *item(Fam_Descriptor *descriptor);
    static uint64_t region(Fam_Region_Descriptor *descriptor);
    static void learn(Fam_Descriptor *descriptor, const olfam_facts &facts);
    static void learn(Fam_Region_Descriptor *descriptor, const olfam_facts &facts);
    static Fam_Descriptor *data(const olfam_facts &facts);
    static Fam_Region_Descriptor *region(const olfam_facts &facts);
};

} // namespace openfam

#endif
