// Sends fragments of a detector's memory, each behind a header with its number, without a copy:
// send ADDRESS COUNT
#include <netio3/SendEndpointZeroCopy.hpp>

#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: send ADDRESS COUNT\n");
        return 2;
    }
    const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
    constexpr std::size_t length = 100'000;
    // What a detector writes to, for example.
    std::vector<std::uint8_t> memory(8 * length);
    for (std::size_t at = 0; at < memory.size(); ++at) {
        memory[at] = static_cast<std::uint8_t>(at % 251);
    }
    netio3::DomainManager domain;
    std::uint64_t complete = 0;
    bool open = true;
    netio3::ActiveEndpoint endpoint{
        {.address = argv[1]},
        domain,
        [&](std::uint64_t) { ++complete; },
        [&](const std::string &why) {
            std::fprintf(stderr, "send: %s\n", why.c_str());
            open = false;
        },
    };
    std::optional<netio3::ZeroCopyBufferManager> none;
    netio3::SendEndpointZeroCopy sender{endpoint, {memory.data(), memory.size()}, none, domain};

    std::uint64_t sent = 0;
    while (open && complete < count) {
        // As long as there are header slots.
        while (open && sent < count) {
            std::uint8_t header[8];
            std::memcpy(header, &sent, sizeof header);
            const std::span fragment{memory.data() + sent % 8 * length, length};
            const auto status = sender.send_data(fragment, header, sent);
            if (status == netio3::NetioStatus::FAILED) {
                std::fprintf(stderr, "send: fragment %llu cannot be sent\n", static_cast<unsigned long long>(sent));
                return 1;
            }
            if (status == netio3::NetioStatus::NO_RESOURCES) {
                break;
            }
            ++sent;
        }
        if (endpoint.arm()) {
            pollfd ready{endpoint.get_fd(), POLLIN, 0};
            poll(&ready, 1, -1);
        }
        endpoint.progress();
    }
    for (const auto key : sender.get_pending_sends()) {
        std::fprintf(stderr, "send: fragment %llu is lost\n", static_cast<unsigned long long>(key));
    }
    if (!open || !endpoint.close()) {
        return 1;
    }
    std::printf("%llu fragments were sent\n", static_cast<unsigned long long>(complete));
}
