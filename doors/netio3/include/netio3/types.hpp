// The types of both sides. All of this file but fi_addr_t and the names that the page of
// SendEndpointZeroCopy has is ours.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "openlapi_netio3.h"

namespace netio3 {

/// libfabric's address of a peer.
using fi_addr_t = std::uint64_t;

/// Slots of a header buffer: sends that can happen in parallel.
inline constexpr std::size_t NUM_HEADER_SLOTS = OLNETIO3_SLOTS;
/// Bytes of a slot: the longest header.
inline constexpr std::size_t HEADER_SLOT_SIZE = OLNETIO3_SLOT_LENGTH;

/// What has become of a send.
enum class NetioStatus {
    OK,            ///< It is under way; its key comes back when it is complete.
    NO_RESOURCES,  ///< All header slots are in use, or as many messages follow one that is
                   ///< under way: try again after a completion.
    FAILED,        ///< It cannot be sent, and nothing of it was.
};

/// There is no connection. The text says why.
class FailedOpenActiveEndpoint : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// There is no listener. The text says why.
class FailedOpenPassiveEndpoint : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The ways that data may take, added.
enum Way : unsigned { ANY_WAY = 0, SHARED_MEMORY = 1, LIBFABRIC = 2, UDP = 4 };

/// Where the two sides meet.
struct ConnectionParameters {
    /// "unix:PATH" for processes of one user on one host, or "tcp:HOST:PORT" with a key file.
    std::string address;
    /// A file of mode 0600 with 32 hexadecimal digits; `lapi_info --make-key` makes one.
    std::string key_file{};
    /// How long opening and closing may take.
    std::chrono::milliseconds patience{10'000};
};

namespace detail {

/// Frees an object of the C interface.
struct Free {
    void operator()(olnetio3_connection *connection) const { olnetio3_connection_free(connection); }
    void operator()(olnetio3_listener *listener) const { olnetio3_listener_free(listener); }
    void operator()(olnetio3_receiver *receiver) const { olnetio3_receiver_free(receiver); }
};

template <class T>
using Owned = std::unique_ptr<T, Free>;

/// A time as the C interface has it.
inline int ms(std::optional<std::chrono::milliseconds> time) {
    return time ? static_cast<int>(time->count()) : -1;
}

}  // namespace detail

}  // namespace netio3
