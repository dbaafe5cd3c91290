// What tests/programs.rs runs: checks serve ADDRESS WAYS [wait|two|long], or checks WHAT ADDRESS
// WAYS. An address with a key file is ADDRESS@FILE. What the test waits for is said to standard
// error.
#include <netio3/ReceiveEndpoint.hpp>
#include <netio3/SendEndpointZeroCopy.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <thread>

using namespace netio3;
using enum netio3::NetioStatus;
using namespace std::chrono_literals;

#define CHECK(what)                                                                   \
    do {                                                                              \
        if (!(what)) {                                                                \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);   \
            std::exit(1);                                                             \
        }                                                                             \
    } while (false)

/// Bytes of a message that short ones overtake.
static const std::size_t LONG = 256 << 20;

/// What each allocation of this thread asks, if anything: whether there is memory.
static thread_local const std::function<bool()> *has_memory{nullptr};

[[gnu::noinline]] void *operator new(std::size_t size) {
    void *const at = has_memory == nullptr || (*has_memory)() ? std::malloc(size) : nullptr;
    if (at == nullptr) {
        throw std::bad_alloc{};
    }
    return at;
}
[[gnu::noinline]] void operator delete(void *at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void *at, std::size_t) noexcept { std::free(at); }

/// Tells the test what it waits for.
static void say(std::string_view text) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

/// The signal that the test sends. All threads block it, so that none is lost.
static sigset_t signals;

static void wait_for_signal() {
    int number;
    CHECK(sigwait(&signals, &number) == 0);
}

/// Sleeps until the endpoint has something to do.
template <class Endpoint>
static void sleep_on(Endpoint &endpoint) {
    if (endpoint.arm()) {
        pollfd ready{endpoint.get_fd(), POLLIN, 0};
        poll(&ready, 1, -1);
    }
}

template <class Exception>
bool throws(const std::function<void()> &run) {
    try {
        run();
    } catch (const Exception &) {
        return true;
    }
    return false;
}

static std::span<const std::uint8_t> bytes(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()};
}

static ConnectionParameters at(std::string_view address) {
    const auto end = address.find('@');
    const auto key = end == address.npos ? "" : address.substr(end + 1);
    return {.address = std::string{address.substr(0, end)}, .key_file = std::string{key}, .patience = 100s};
}

static int serve(const char *address, unsigned ways, std::string_view how) {
    const std::size_t longest = how == "long" ? LONG : 1 << 20;
    PassiveEndpoint listener{at(address), longest, ways};
    say(listener.get_address());
    auto from = listener.accept();
    std::optional<ReceiveEndpoint> other;
    if (how == "two") {
        other = listener.accept();
    }
    if (how == "wait" || how == "two") {
        say("accepted");
        wait_for_signal();
    }
    for (;;) {
        while (const auto message = from->receive(0ms)) {
            CHECK(message->bytes.size() == message->header.size() + message->data.size());
            const auto sum = std::accumulate(message->data.begin(), message->data.end(), std::uint64_t{});
            std::printf("%.*s: %zu bytes, %llu\n", static_cast<int>(message->header.size()),
                        reinterpret_cast<const char *>(message->header.data()), message->data.size(),
                        static_cast<unsigned long long>(sum));
        }
        if (from->is_closed() || !from->why_lost().empty()) {
            break;
        }
        sleep_on(*from);
    }
    std::printf("%s%s\n", from->is_closed() ? "closed" : "lost: ", from->why_lost().c_str());
    return 0;
}

struct Caller {
    std::vector<std::uint8_t> memory;
    DomainManager domain;
    std::vector<std::uint64_t> complete;
    std::string why;
    ActiveEndpoint endpoint;
    std::optional<ZeroCopyBufferManager> none;
    SendEndpointZeroCopy sender;

    Caller(const char *address, unsigned ways, std::size_t size)
        : memory(size, 1),
          domain{ways},
          endpoint{at(address),
                   domain,
                   [this](std::uint64_t key) { complete.push_back(key); },
                   [this](const std::string &text) { why = text; }},
          sender{endpoint, {memory.data(), memory.size()}, none, domain} {}

    /// Makes progress until this holds.
    void until(const std::function<bool()> &holds) {
        while (!holds()) {
            sleep_on(endpoint);
            endpoint.progress();
        }
    }
};

/// A header of any length, data of one piece and of several, and neither.
static void pieces(Caller &caller) {
    auto &sender = caller.sender;
    auto &memory = caller.memory;
    const std::string longest(HEADER_SLOT_SIZE, 'x');
    iovec places[] = {{memory.data() + 700'000, 200'000}, {memory.data(), 0}, {memory.data() + 3, 5}};
    CHECK(sender.send_data(std::span{memory}.first(10), bytes("one"), 101) == OK);
    CHECK(sender.send_data(places, bytes("three"), 102) == OK);
    CHECK(sender.send_data(std::span<std::uint8_t>{}, bytes("none"), 103) == OK);
    CHECK(sender.send_data(std::span<const iovec>{}, {}, 104) == OK);
    CHECK(sender.send_data(std::span{memory}.first(memory.size() - longest.size()), bytes(longest), 105) == OK);
    caller.until([&] { return caller.complete.size() == 5; });
    std::sort(caller.complete.begin(), caller.complete.end());
    CHECK((caller.complete == std::vector<std::uint64_t>{101, 102, 103, 104, 105}));
    CHECK(sender.get_pending_sends().empty());
    CHECK(caller.endpoint.close());
    CHECK(sender.send_data(std::span{memory}.first(1), {}, 1) == FAILED);
}

static void misuse(Caller &caller) {
    auto &sender = caller.sender;
    auto &memory = caller.memory;
    std::uint8_t foreign[8];
    const std::string too_long(HEADER_SLOT_SIZE + 1, 'x');
    iovec beyond[] = {{memory.data(), 8}, {memory.data() + memory.size() - 4, 5}};
    CHECK(sender.send_data(foreign, {}, 1) == FAILED);
    CHECK(sender.send_data(beyond, {}, 1) == FAILED);
    CHECK(sender.send_data(std::span{memory}.first(8), bytes(too_long), 1) == FAILED);
    CHECK(sender.send_data(std::span{memory}.first(8), {}, 1, 7) == FAILED);
    // The other side takes as many bytes, the header among them.
    CHECK(sender.send_data(memory, bytes("h"), 1) == FAILED);
    CHECK(throws<std::logic_error>([&] { sender.release_buffer(0); }));
    CHECK(throws<std::logic_error>([&] { sender.release_buffer(NUM_HEADER_SLOTS); }));
    CHECK(throws<std::logic_error>(
        [&] { SendEndpointZeroCopy second(caller.endpoint, {memory.data(), 1}, caller.none, caller.domain); }));
    CHECK(throws<std::logic_error>(
        [&] { SendEndpointZeroCopy second(caller.endpoint, {}, caller.none, caller.domain); }));
    CHECK(throws<FailedOpenActiveEndpoint>([&] { ActiveEndpoint({.address = "nowhere"}, caller.domain, {}); }));
    CHECK(throws<FailedOpenActiveEndpoint>([&] { ActiveEndpoint({.address = "tcp:127.0.0.1:1"}, caller.domain, {}); }));
    CHECK(throws<FailedOpenPassiveEndpoint>([&] { PassiveEndpoint({.address = "unix:/no/folder"}, 1); }));
    // Nothing of that is under way, and all slots are free.
    CHECK(sender.get_num_available_buffers() == NUM_HEADER_SLOTS);
    CHECK(caller.domain.get_num_registered() == 2);
    CHECK(sender == sender && (sender <=> sender) == std::strong_ordering::equal);
    CHECK(&sender.get_active_endpoint() == &caller.endpoint);
    // Where memory ends at an allocation nothing is sent, and no slot is lost.
    std::size_t enough = 0, left = 0;
    const std::function<bool()> ends = [&] { return left-- > 0; };
    const auto send = [&] {
        left = enough++;
        has_memory = &ends;
        CHECK(sender.send_data(std::span{memory}.first(8), bytes("fine"), 9) == OK);
    };
    while (throws<std::bad_alloc>(send)) {
        has_memory = nullptr;
        CHECK(sender.get_pending_sends().empty());
        sender.get_num_available_buffers();
        CHECK(sender.get_num_available_buffers() == NUM_HEADER_SLOTS);
    }
    has_memory = nullptr;
    CHECK(enough > 1);
    CHECK(caller.endpoint.close());
    CHECK((caller.complete == std::vector<std::uint64_t>{9}));
}

/// Sends all that it can, since the other side takes nothing. Each header is the number of its
/// message.
static std::size_t fill(SendEndpointZeroCopy &sender, std::span<std::uint8_t> memory) {
    wait_for_signal();
    std::size_t sent = 0;
    while (sender.send_data(memory.first(70'000), bytes(std::to_string(sent)), 1000 + sent) == OK) {
        ++sent;
    }
    say("full");
    return sent;
}

static void slots(Caller &caller) {
    auto &sender = caller.sender;
    CHECK(fill(sender, caller.memory) == NUM_HEADER_SLOTS);
    CHECK(sender.get_pending_sends().size() == NUM_HEADER_SLOTS);
    CHECK(throws<std::logic_error>([&] { sender.release_buffer(3); }));
    CHECK(sender.get_num_available_buffers() == 0);
    caller.until([&] { return caller.complete.size() == NUM_HEADER_SLOTS; });
    CHECK(throws<std::logic_error>([&] { sender.release_buffer(3); }));
    // All were in use since the last call, and none is now.
    CHECK(sender.get_num_available_buffers() == 0);
    CHECK(sender.get_num_available_buffers() == NUM_HEADER_SLOTS);
    CHECK(sender.send_data(std::span{caller.memory}.first(1), bytes("again"), 1) == OK);
    CHECK(sender.get_num_available_buffers() == NUM_HEADER_SLOTS - 1);
    CHECK(caller.endpoint.close());
}

/// Short messages pass a long one, as many as may, and come after it.
static void passing(Caller &caller) {
    CHECK(caller.sender.send_data(std::span{caller.memory}.first(LONG - 4), bytes("long"), 1) == OK);
    std::size_t sent = 0;
    while (std::ranges::find(caller.complete, 1u) == caller.complete.end()) {
        CHECK(caller.why.empty());
        if (caller.sender.send_data(std::span<std::uint8_t>{}, bytes("short"), 1000 + sent) == OK) {
            ++sent;
        } else {
            caller.endpoint.progress();
        }
    }
    CHECK(caller.endpoint.close());
    std::printf("%zu\n", sent);
}

/// The other side is killed with messages under way.
static void loss(Caller &caller) {
    const auto sent = fill(caller.sender, caller.memory);
    caller.until([&] { return !caller.why.empty(); });
    const auto pending = caller.sender.get_pending_sends();
    CHECK(pending.size() + caller.complete.size() == sent && !pending.empty());
    CHECK(std::is_sorted(pending.begin(), pending.end()));
    CHECK(pending.back() == 1000 + sent - 1);
    CHECK(!caller.endpoint.is_open() && !caller.endpoint.close());
    CHECK(caller.sender.send_data(std::span{caller.memory}.first(1), {}, 1) == FAILED);
    // Nothing uses the slots any more.
    caller.sender.get_num_available_buffers();
    CHECK(caller.sender.get_num_available_buffers() == NUM_HEADER_SLOTS);
    std::printf("%s\n", caller.why.c_str());
}

/// An endpoint with a header buffer that another one shares ends with sends under way.
static void shared(const char *address, unsigned ways) {
    std::vector<std::uint8_t> memory(1 << 20, 1);
    DomainManager domain{ways};
    std::optional<ZeroCopyBufferManager> buffers{std::in_place, std::span{memory}};
    CHECK(throws<std::logic_error>([] { ZeroCopyBufferManager empty{std::span<std::uint8_t>{}}; }));
    ActiveEndpoint endpoint{at(address), domain, {}}, other{at(address), domain, {}};
    const auto descriptor = endpoint.get_fd();
    const ConnectionParametersSendZeroCopy none;
    // Both are made and end in threads of their own.
    const auto make = [&](ActiveEndpoint &active) {
        for (int turn = 0; turn < 100'000; ++turn) {
            SendEndpointZeroCopy{active, none, buffers, domain};
        }
    };
    std::thread beside{make, std::ref(other)};
    make(endpoint);
    beside.join();
    CHECK(domain.get_num_registered() == 0);
    auto sender = std::make_unique<SendEndpointZeroCopy>(endpoint, none, buffers, domain);
    SendEndpointZeroCopy rest{other, {}, buffers, domain};
    CHECK(fill(*sender, memory) == NUM_HEADER_SLOTS && rest.get_num_available_buffers() == 0);
    CHECK(rest.send_data(std::span{memory}.first(1), {}, 1) == NO_RESOURCES);
    // Others use a slot as soon as it is free: the connection must not read it any more.
    bool has_looked = false;
    const std::function<bool()> looks = [&] {
        has_looked = true;
        rest.get_num_available_buffers();
        CHECK(rest.get_num_available_buffers() == 0 || fcntl(descriptor, F_GETFD) == -1);
        return true;
    };
    has_memory = &looks;
    sender.reset();
    has_memory = nullptr;
    CHECK(has_looked);
    rest.get_num_available_buffers();
    CHECK(rest.get_num_available_buffers() == NUM_HEADER_SLOTS);
    CHECK(rest.send_data(std::span{memory}.first(1), {}, 1) == OK);
    CHECK(!endpoint.is_open() && domain.get_num_registered() == 2);
    CHECK(throws<FailedOpenActiveEndpoint>([&] { SendEndpointZeroCopy sender(endpoint, {}, buffers, domain); }));
}

/// Endpoints of two threads use one header buffer.
static void threads() {
    detail::HeaderBuffer slots;
    const auto use = [&slots](std::uint64_t key) {
        for (int turn = 0; turn < 10'000; ++turn) {
            const auto slot = slots.take(key, bytes("header")).value();
            slots.count();
            slots.complete(slot);
            CHECK(slots.release(slot) == key);
        }
    };
    std::thread other{use, 1};
    use(2);
    other.join();
    CHECK(slots.fewest() >= NUM_HEADER_SLOTS - 2 && slots.fewest() == NUM_HEADER_SLOTS);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    const std::string_view what{argv[1]};
    const auto ways = static_cast<unsigned>(std::atoi(argv[3]));
    if (what == "serve") {
        return serve(argv[2], ways, argc > 4 ? argv[4] : "");
    }
    if (what == "refused") {
        DomainManager domain{ways};
        CHECK(throws<FailedOpenActiveEndpoint>([&] { ActiveEndpoint(at(argv[2]), domain, {}); }));
    } else if (what == "shared") {
        threads();
        shared(argv[2], ways);
    } else {
        const std::map<std::string_view, void (*)(Caller &)> cases{
            {"pieces", pieces}, {"misuse", misuse}, {"slots", slots}, {"passing", passing}, {"loss", loss}};
        Caller caller{argv[2], ways, what == "passing" ? LONG : 1 << 20};
        cases.at(what)(caller);
    }
    std::puts("done");
}
