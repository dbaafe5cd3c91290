// Receives what samples/send.cpp sends, from one sender: receive ADDRESS
#include <netio3/ReceiveEndpoint.hpp>

#include <cstdio>
#include <cstring>

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: receive ADDRESS\n");
        return 2;
    }
    netio3::PassiveEndpoint listener{{.address = argv[1]}, 1 << 20};
    std::printf("%s\n", listener.get_address().c_str());
    std::fflush(stdout);
    auto from = listener.accept();
    std::uint64_t expected = 0, bytes = 0;
    while (const auto message = from->receive()) {
        std::uint64_t number{};
        std::memcpy(&number, message->header.data(), sizeof number);
        bool right = message->header.size() == sizeof number && number == expected;
        const std::size_t start = number % 8 * message->data.size();
        for (std::size_t at = 0; at < message->data.size(); ++at) {
            right = right && message->data[at] == (start + at) % 251;
        }
        if (!right) {
            std::fprintf(stderr, "receive: fragment %llu is not what was sent\n", static_cast<unsigned long long>(expected));
            return 1;
        }
        ++expected;
        bytes += message->data.size();
    }
    if (!from->is_closed()) {
        std::fprintf(stderr, "receive: %s\n", from->why_lost().c_str());
        return 1;
    }
    std::printf("%llu fragments, %llu bytes\n", static_cast<unsigned long long>(expected),
                static_cast<unsigned long long>(bytes));
}
