// The side that receives what SendEndpointZeroCopy sends. All of this file is ours.
#pragma once

#include <span>

#include "types.hpp"

namespace netio3 {

/// A message: the header, and the data behind it, in one piece. Valid until the next call of the
/// endpoint.
struct ReceivedMessage {
    std::span<const std::uint8_t> header;
    std::span<const std::uint8_t> data;
    /// Both.
    std::span<const std::uint8_t> bytes;
};

/// A connection of a side that sends, in one thread.
class ReceiveEndpoint {
public:
    /// Waits for the next message: nothing, when none has come in time, or the connection is over.
    /// Without a time it waits for ever. Messages come in the order in which they were sent, each
    /// one once.
    std::optional<ReceivedMessage> receive(std::optional<std::chrono::milliseconds> time = {}) {
        const std::uint8_t *bytes{};
        std::size_t length{}, header{};
        const int found = olnetio3_receive(m_receiver.get(), detail::ms(time), &bytes, &length, &header);
        if (found == 1) {
            const std::span<const std::uint8_t> all{bytes, length};
            return ReceivedMessage{all.first(header), all.subspan(header), all};
        }
        m_closed = found == OLNETIO3_CLOSED;
        m_lost = found == OLNETIO3_OVER ? olnetio3_error() : "";
        return std::nullopt;
    }
    /// The other side has closed the connection in order, and all was taken.
    bool is_closed() const { return m_closed; }
    /// Why the connection is over; empty: it is not, or was closed in order.
    const std::string &why_lost() const { return m_lost; }

    /// For an event loop, which calls receive(0ms) when the descriptor is readable, or `arm()` was
    /// false.
    int get_fd() const { return olnetio3_receiver_descriptor(m_receiver.get()); }
    bool arm() { return olnetio3_receiver_arm(m_receiver.get()) == 1; }

private:
    friend class PassiveEndpoint;
    explicit ReceiveEndpoint(olnetio3_receiver *receiver) : m_receiver{receiver} {}
    detail::Owned<olnetio3_receiver> m_receiver;
    bool m_closed{false};
    std::string m_lost;
};

/// A listener for sides that send, in one thread.
class PassiveEndpoint {
public:
    /// Listens. A message of more than `longest` bytes, header included, ends its connection, and
    /// takes no memory: a connection has at most NUM_HEADER_SLOTS of them here that wait for an
    /// earlier one. Throws FailedOpenPassiveEndpoint.
    PassiveEndpoint(const ConnectionParameters &at, std::size_t longest, unsigned ways = ANY_WAY)
        : m_listener{olnetio3_listen(at.address.c_str(), at.key_file.c_str(), ways,
                                     static_cast<unsigned>(at.patience.count()), longest)} {
        if (!m_listener) {
            throw FailedOpenPassiveEndpoint(olnetio3_error());
        }
    }

    /// Waits for the next connection; nothing, when none has come in time. The first message to
    /// the sending side, where that has not taken it in this time, is sent by the next calls of the
    /// endpoint. Throws FailedOpenPassiveEndpoint where one could not be opened; the next call goes
    /// on.
    std::optional<ReceiveEndpoint> accept(std::optional<std::chrono::milliseconds> time = {}) {
        olnetio3_receiver *receiver{};
        switch (olnetio3_accept(m_listener.get(), detail::ms(time), &receiver)) {
        case 1: return ReceiveEndpoint{receiver};
        case 0: return std::nullopt;
        default: throw FailedOpenPassiveEndpoint(olnetio3_error());
        }
    }
    /// Where it can be reached, as ConnectionParameters has it.
    std::string get_address() const { return olnetio3_listener_address(m_listener.get()); }
    int get_fd() const { return olnetio3_listener_descriptor(m_listener.get()); }

private:
    detail::Owned<olnetio3_listener> m_listener;
};

}  // namespace netio3
