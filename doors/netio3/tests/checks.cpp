// What tests/programs.rs runs: checks serve ADDRESS WAYS [wait|long], or checks WHAT ADDRESS WAYS.
// An address with a key file is ADDRESS@FILE.
#include <netio3/ReceiveEndpoint.hpp>
#include <netio3/SendEndpointZeroCopy.hpp>

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string_view>

using namespace netio3;
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
    std::printf("%s\n", listener.get_address().c_str());
    std::fflush(stdout);
    auto from = listener.accept();
    if (how == "wait") {
        std::puts("accepted");
        std::fflush(stdout);
        std::getchar();
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
        if (from->arm()) {
            pollfd ready{from->get_fd(), POLLIN, 0};
            poll(&ready, 1, -1);
        }
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
            if (endpoint.arm()) {
                pollfd ready{endpoint.get_fd(), POLLIN, 0};
                poll(&ready, 1, -1);
            }
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
    CHECK(sender.send_data(std::span{memory}.first(10), bytes("one"), 101) == NetioStatus::OK);
    CHECK(sender.send_data(places, bytes("three"), 102) == NetioStatus::OK);
    CHECK(sender.send_data(std::span<std::uint8_t>{}, bytes("none"), 103) == NetioStatus::OK);
    CHECK(sender.send_data(std::span<const iovec>{}, {}, 104) == NetioStatus::OK);
    CHECK(sender.send_data(std::span{memory}.first(memory.size() - longest.size()), bytes(longest), 105) ==
          NetioStatus::OK);
    caller.until([&] { return caller.complete.size() == 5; });
    std::sort(caller.complete.begin(), caller.complete.end());
    CHECK((caller.complete == std::vector<std::uint64_t>{101, 102, 103, 104, 105}));
    CHECK(sender.get_pending_sends().empty());
    CHECK(caller.endpoint.close());
    CHECK(sender.send_data(std::span{memory}.first(1), {}, 1) == NetioStatus::FAILED);
}

static void misuse(Caller &caller) {
    auto &sender = caller.sender;
    auto &memory = caller.memory;
    std::uint8_t foreign[8];
    const std::string too_long(HEADER_SLOT_SIZE + 1, 'x');
    iovec beyond[] = {{memory.data(), 8}, {memory.data() + memory.size() - 4, 5}};
    CHECK(sender.send_data(foreign, {}, 1) == NetioStatus::FAILED);
    CHECK(sender.send_data(beyond, {}, 1) == NetioStatus::FAILED);
    CHECK(sender.send_data(std::span{memory}.first(8), bytes(too_long), 1) == NetioStatus::FAILED);
    CHECK(sender.send_data(std::span{memory}.first(8), {}, 1, 7) == NetioStatus::FAILED);
    // The other side takes as many bytes, the header among them.
    CHECK(sender.send_data(memory, bytes("h"), 1) == NetioStatus::FAILED);
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
    CHECK(sender.send_data(std::span{memory}.first(8), bytes("fine"), 9) == NetioStatus::OK);
    CHECK(caller.endpoint.close());
    CHECK((caller.complete == std::vector<std::uint64_t>{9}));
}

/// Each header is the number of its message. The other side takes nothing until the test asks it
/// to.
static std::size_t fill(Caller &caller) {
    const auto data = std::span{caller.memory}.first(70'000);
    std::size_t sent = 0;
    while (caller.sender.send_data(data, bytes(std::to_string(sent)), 1000 + sent) == NetioStatus::OK) {
        ++sent;
    }
    return sent;
}

static void slots(Caller &caller) {
    std::getchar();
    CHECK(fill(caller) == NUM_HEADER_SLOTS);
    CHECK(caller.sender.get_pending_sends().size() == NUM_HEADER_SLOTS);
    CHECK(throws<std::logic_error>([&] { caller.sender.release_buffer(3); }));
    CHECK(caller.sender.get_num_available_buffers() == 0);
    std::puts("full");
    std::fflush(stdout);
    caller.until([&] { return caller.complete.size() == NUM_HEADER_SLOTS; });
    CHECK(throws<std::logic_error>([&] { caller.sender.release_buffer(3); }));
    // All were in use since the last call, and none is now.
    CHECK(caller.sender.get_num_available_buffers() == 0);
    CHECK(caller.sender.get_num_available_buffers() == NUM_HEADER_SLOTS);
    CHECK(caller.sender.send_data(std::span{caller.memory}.first(1), bytes("again"), 1) == NetioStatus::OK);
    CHECK(caller.sender.get_num_available_buffers() == NUM_HEADER_SLOTS - 1);
    CHECK(caller.endpoint.close());
}

/// Short messages pass a long one, as many as may, and come after it.
static void passing(Caller &caller) {
    CHECK(caller.sender.send_data(std::span{caller.memory}.first(LONG - 4), bytes("long"), 1) == NetioStatus::OK);
    std::size_t sent = 0;
    while (std::ranges::find(caller.complete, 1u) == caller.complete.end()) {
        CHECK(caller.why.empty());
        if (caller.sender.send_data(std::span<std::uint8_t>{}, bytes("short"), 1000 + sent) == NetioStatus::OK) {
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
    std::getchar();
    const auto sent = fill(caller);
    std::puts("full");
    std::fflush(stdout);
    caller.until([&] { return !caller.why.empty(); });
    const auto pending = caller.sender.get_pending_sends();
    CHECK(pending.size() + caller.complete.size() == sent && !pending.empty());
    CHECK(std::is_sorted(pending.begin(), pending.end()));
    CHECK(pending.back() == 1000 + sent - 1);
    CHECK(!caller.endpoint.is_open() && !caller.endpoint.close());
    CHECK(caller.sender.send_data(std::span{caller.memory}.first(1), {}, 1) == NetioStatus::FAILED);
    // Nothing uses the slots any more.
    caller.sender.get_num_available_buffers();
    CHECK(caller.sender.get_num_available_buffers() == NUM_HEADER_SLOTS);
    std::printf("%s\n", caller.why.c_str());
}

/// Two endpoints with one header buffer; one of them ends with sends under way.
static void shared(const char *address, unsigned ways) {
    std::vector<std::uint8_t> memory(1 << 20, 1);
    DomainManager domain{ways};
    std::optional<ZeroCopyBufferManager> buffers{std::in_place, std::span{memory}};
    CHECK(throws<std::logic_error>([] { ZeroCopyBufferManager empty{std::span<std::uint8_t>{}}; }));
    ActiveEndpoint endpoint{at(address), domain, {}};
    {
        SendEndpointZeroCopy sender{endpoint, {}, buffers, domain};
        std::getchar();
        std::size_t sent = 0;
        while (sender.send_data(std::span{memory}.first(70'000), bytes("shared"), sent) == NetioStatus::OK) {
            ++sent;
        }
        CHECK(sent == NUM_HEADER_SLOTS && sender.get_num_available_buffers() == 0);
    }
    CHECK(!endpoint.is_open() && domain.get_num_registered() == 0);
    CHECK(throws<FailedOpenActiveEndpoint>([&] { SendEndpointZeroCopy sender(endpoint, {}, buffers, domain); }));
}

int main(int argc, char **argv) {
    const std::string_view what{argc > 3 ? argv[1] : ""};
    const unsigned ways = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 0;
    if (what == "serve") {
        return serve(argv[2], ways, argc > 4 ? argv[4] : "");
    }
    if (what == "refused") {
        DomainManager domain{ways};
        CHECK(throws<FailedOpenActiveEndpoint>([&] { ActiveEndpoint(at(argv[2]), domain, {}); }));
    } else if (what == "shared") {
        shared(argv[2], ways);
    } else {
        Caller caller{argv[2], ways, what == "passing" ? LONG : 1 << 20};
        what == "pieces" ? pieces(caller) : what == "misuse" ? misuse(caller) : what == "slots" ? slots(caller) : what == "passing" ? passing(caller) : loss(caller);
    }
    std::puts("done");
}
