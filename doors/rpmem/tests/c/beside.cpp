// librpmem, libopenlapi_netio3 and liblapi_r in one process, each with a core of its own:
//   beside first|last TARGET SET SOCKET [LIBRARY...]
// It is linked with the three, or, with -DOPENED, opens the files LIBRARY in this order. As a task
// of a job of two it has a thread for each: LAPI's puts to the other task, and forks; task 0
// receives at SOCKET what task 1 sends; and each persists in a pool of its own, SET and its number.
// LAPI ends first, and the doors go on, or last.
#include <dlfcn.h>
#include <fcntl.h>
#include <lapi.h>
#include <librpmem.h>
#include <netio3/openlapi_netio3.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            std::fprintf(stderr, "line %d: not so: %s (%s; %s)\n", __LINE__, #condition, \
                         CALL(rpmem_errormsg)(), CALL(olnetio3_error)());         \
            std::_Exit(1);                                                        \
        }                                                                         \
    } while (false)

#ifdef OPENED
static std::vector<void *> libraries;

template <class Function>
static Function *found(const char *name) {
    for (void *library : libraries) {
        if (void *at = dlsym(library, name)) {
            return reinterpret_cast<Function *>(at);
        }
    }
    std::fprintf(stderr, "no library has %s\n", name);
    std::_Exit(1);
}
#define CALL(name) found<decltype(name)>(#name)
#else
#define CALL(name) name
#endif

static const int TURNS = 100;
static const std::size_t POOL = 8 << 20, DATA = 70'000;

static int task;
/// LAPI is to end first, and the doors make as many turns again.
static bool lapi_is_first;
static std::atomic<bool> lapi_has_ended{false};

static std::uint8_t byte(int turn, std::size_t at) { return static_cast<std::uint8_t>(turn * 7 + at % 251); }

/// Turns: as many before LAPI has ended, if that is to be first, as after it.
template <class Turn>
static void turns(Turn turn) {
    int number = 0;
    while (number < TURNS || (lapi_is_first && !lapi_has_ended)) {
        turn(number++);
    }
    for (const int end = number + TURNS; number < end;) {
        turn(number++);
    }
}

static void persist(const char *target, const std::string &set) {
    unsigned lanes = 2;
    rpmem_pool_attr attributes{};
    std::memcpy(attributes.signature, "BESIDE", 6);
    void *const memory = mmap(nullptr, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    auto *const local = static_cast<std::uint8_t *>(memory);
    RPMEMpool *const pool = CALL(rpmem_create)(target, set.c_str(), memory, POOL, &lanes, &attributes);
    CHECK(pool);
    turns([&](int number) {
        const std::size_t from = 4096 + number % 8 * DATA;
        for (std::size_t at = 0; at < DATA; ++at) {
            local[from + at] = byte(number, at);
        }
        CHECK(CALL(rpmem_persist)(pool, from, DATA, 0, RPMEM_PERSIST_RELAXED) == 0);
    });
    std::vector<std::uint8_t> read(8 * DATA);
    CHECK(CALL(rpmem_read)(pool, read.data(), 4096, read.size(), 1) == 0);
    CHECK(std::memcmp(read.data(), local + 4096, read.size()) == 0);
    CHECK(CALL(rpmem_close)(pool) == 0);
    CHECK(CALL(rpmem_remove)(target, set.c_str(), 0) == 0);
}

static void receive(olnetio3_listener *listener) {
    olnetio3_receiver *from{};
    CHECK(CALL(olnetio3_accept)(listener, -1, &from) == 1);
    const std::uint8_t *bytes{};
    std::size_t length{}, header{};
    int number = 0, result;
    while ((result = CALL(olnetio3_receive)(from, -1, &bytes, &length, &header)) == 1) {
        CHECK(length == DATA + sizeof number && header == sizeof number);
        CHECK(std::memcmp(bytes, &number, sizeof number) == 0);
        bool right = true;
        for (std::size_t at = 0; at < DATA; ++at) {
            right = right && bytes[header + at] == byte(number, at);
        }
        CHECK(right);
        ++number;
    }
    CHECK(result == OLNETIO3_CLOSED && number >= 2 * TURNS);
    CALL(olnetio3_receiver_free)(from);
    CALL(olnetio3_listener_free)(listener);
}

static void send(const std::string &address) {
    auto *const to = CALL(olnetio3_connect)(address.c_str(), "", 0, 100'000);
    CHECK(to);
    std::vector<std::uint8_t> data(DATA);
    turns([&](int number) {
        for (std::size_t at = 0; at < DATA; ++at) {
            data[at] = byte(number, at);
        }
        const iovec pieces[] = {{&number, sizeof number}, {data.data(), data.size()}};
        CHECK(CALL(olnetio3_send)(to, pieces, 2, number) == 1);
        std::int64_t slot;
        while ((slot = CALL(olnetio3_completed)(to)) < 0) {
            const int may_sleep = CALL(olnetio3_arm)(to);
            CHECK(may_sleep >= 0);
            if (may_sleep == 1) {
                pollfd ready{CALL(olnetio3_descriptor)(to), POLLIN, 0};
                poll(&ready, 1, -1);
            }
            CHECK(CALL(olnetio3_progress)(to) == 0);
        }
        CHECK(slot == number);
    });
    CHECK(CALL(olnetio3_close)(to) == 0);
    CALL(olnetio3_connection_free)(to);
}

/// The handlers of fork of all three run, and the child ends, or becomes another program.
static void fork_one(bool runs) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (runs) {
            execl("/bin/true", "true", nullptr);
        }
        _exit(runs ? 1 : 0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static std::uint8_t landed[DATA];

static void put(lapi_handle_t handle, lapi_cntr_t &arrived, void *const *places, void *const *counters) {
    std::vector<std::uint8_t> data(DATA);
    for (int number = 0; number < TURNS; ++number) {
        for (std::size_t at = 0; at < DATA; ++at) {
            data[at] = byte(number, at);
        }
        lapi_cntr_t sent;
        int left;
        const int other = 1 - task;
        CHECK(CALL(LAPI_Setcntr)(handle, &sent, 0) == LAPI_SUCCESS);
        CHECK(CALL(LAPI_Put)(handle, static_cast<uint>(other), DATA, places[other], data.data(),
                             static_cast<lapi_cntr_t *>(counters[other]), &sent, nullptr) == LAPI_SUCCESS);
        CHECK(CALL(LAPI_Waitcntr)(handle, &arrived, 1, &left) == LAPI_SUCCESS);
        CHECK(std::memcmp(landed, data.data(), DATA) == 0);
        CHECK(CALL(LAPI_Waitcntr)(handle, &sent, 1, &left) == LAPI_SUCCESS);
        CHECK(CALL(LAPI_Gfence)(handle) == LAPI_SUCCESS);
        if (number % 10 == 0) {
            fork_one(number % 20 == 0);
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 5) {
        return 2;
    }
    lapi_is_first = std::strcmp(argv[1], "first") == 0;
    const char *const target = argv[2];
#ifdef OPENED
    for (int at = 5; at < argc; ++at) {
        void *const library = dlopen(argv[at], RTLD_NOW);
        if (!library) {
            std::fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        libraries.push_back(library);
    }
#endif
    static lapi_info_t info;
    static lapi_cntr_t arrived;
    lapi_handle_t handle;
    void *places[2], *counters[2];
    CHECK(CALL(LAPI_Init)(&handle, &info) == LAPI_SUCCESS);
    CHECK(CALL(LAPI_Qenv)(handle, TASK_ID, &task) == LAPI_SUCCESS);
    CHECK(CALL(LAPI_Setcntr)(handle, &arrived, 0) == LAPI_SUCCESS);
    CHECK(CALL(LAPI_Address_init)(handle, landed, places) == LAPI_SUCCESS);
    CHECK(CALL(LAPI_Address_init)(handle, &arrived, counters) == LAPI_SUCCESS);
    const std::string address = std::string{"unix:"} + argv[4], set = argv[3] + std::to_string(task);
    auto *const listener =
        task == 0 ? CALL(olnetio3_listen)(address.c_str(), "", 0, 100'000, 1 << 20) : nullptr;
    CHECK(task != 0 || listener);
    // Task 1 finds the socket.
    CHECK(CALL(LAPI_Gfence)(handle) == LAPI_SUCCESS);
    std::thread pool{[&] { persist(target, set); }};
    std::thread messages{[&] { task == 0 ? receive(listener) : send(address); }};
    if (!lapi_is_first) {
        pool.join();
        messages.join();
    }
    put(handle, arrived, places, counters);
    CHECK(CALL(LAPI_Term)(handle) == LAPI_SUCCESS);
    lapi_has_ended = true;
    if (lapi_is_first) {
        pool.join();
        messages.join();
    }
#ifdef OPENED
    for (void *library : libraries) {
        dlclose(library);
    }
#endif
    std::printf("task %d: all of it\n", task);
}
