// Sends messages whose data stays where it is. What the page of SendEndpointZeroCopy does not say
// and we have chosen is marked "Ours".
#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "types.hpp"

namespace netio3 {

namespace detail {

/// Slots, each for the header of a send and its key. The endpoints that share them may be in
/// several threads; the contents of a slot belong to the one that has taken it.
class HeaderBuffer {
public:
    struct Slot {
        enum { FREE, UNDER_WAY, COMPLETE } state{FREE};
        std::uint64_t key;
        std::uint8_t header[HEADER_SLOT_SIZE];
    };

    HeaderBuffer() {
        for (std::uint64_t slot = NUM_HEADER_SLOTS; slot > 0; --slot) {
            m_free.push_back(slot - 1);
        }
    }
    Slot &operator[](std::uint64_t slot) { return m_slots[slot]; }
    /// Takes a free slot, and copies the header into it; nothing: all are in use.
    std::optional<std::uint64_t> take(std::uint64_t key, std::span<const std::uint8_t> header) {
        const std::lock_guard lock{m_mutex};
        if (m_free.empty()) {
            return std::nullopt;
        }
        const auto slot = m_free.back();
        m_free.pop_back();
        m_slots[slot].state = Slot::UNDER_WAY;
        m_slots[slot].key = key;
        std::ranges::copy(header, m_slots[slot].header);
        return slot;
    }
    /// A slot that was taken is used: fewest() counts those that are free now.
    void count() {
        const std::lock_guard lock{m_mutex};
        m_fewest = std::min(m_fewest, m_free.size());
    }
    void complete(std::uint64_t slot) {
        const std::lock_guard lock{m_mutex};
        m_slots[slot].state = Slot::COMPLETE;
    }
    std::uint64_t release(std::uint64_t slot) {
        const std::lock_guard lock{m_mutex};
        if (slot >= NUM_HEADER_SLOTS || m_slots[slot].state != Slot::COMPLETE) {
            throw std::logic_error("netio3: the slot is not in use, or its send is not complete");
        }
        m_slots[slot].state = Slot::FREE;
        m_free.push_back(slot);
        return m_slots[slot].key;
    }
    /// The fewest that were free since the last call.
    std::size_t fewest() {
        const std::lock_guard lock{m_mutex};
        return std::exchange(m_fewest, m_free.size());
    }

private:
    std::mutex m_mutex;
    std::vector<Slot> m_slots{NUM_HEADER_SLOTS};
    std::vector<std::uint64_t> m_free;
    std::size_t m_fewest{NUM_HEADER_SLOTS};
};

}  // namespace detail

/// Ours. What endpoints have in common: the ways that data may take, and the memory that is
/// registered. It outlives them.
class DomainManager {
public:
    explicit DomainManager(unsigned ways = ANY_WAY) : m_ways{ways} {}
    DomainManager(const DomainManager &) = delete;
    DomainManager &operator=(const DomainManager &) = delete;

    unsigned get_ways() const { return m_ways; }
    /// How many regions are registered: two for each endpoint, its header buffer and its data.
    std::size_t get_num_registered() const { return m_regions; }

private:
    friend class SendEndpointZeroCopy;
    unsigned m_ways;
    std::atomic<std::size_t> m_regions{0};
};

/// Ours. A header buffer, and memory for data, of several endpoints. It outlives them.
class ZeroCopyBufferManager {
public:
    /// Throws std::logic_error where the memory is empty.
    explicit ZeroCopyBufferManager(std::span<std::uint8_t> region) : m_region{region} {
        if (region.empty()) {
            throw std::logic_error("netio3: a shared buffer manager without memory");
        }
    }
    std::span<std::uint8_t> get_region() const { return m_region; }

private:
    friend class SendEndpointZeroCopy;
    std::span<std::uint8_t> m_region;
    std::shared_ptr<detail::HeaderBuffer> m_slots{std::make_shared<detail::HeaderBuffer>()};
};

/// Ours: all but the name. The memory that data is sent from; with a shared buffer manager it is
/// that one's, and these are not used.
struct ConnectionParametersSendZeroCopy {
    std::uint8_t *mr_start{nullptr};
    std::size_t mr_size{0};
};

class SendEndpointZeroCopy;

/// Ours: all but the name. A connection, driven by the program's event loop in one thread: when
/// `get_fd()` is readable, or `arm()` was false, it calls `progress()`.
class ActiveEndpoint {
public:
    /// Called in progress() with the key of a send, when the receiving side has all of it.
    using OnSendComplete = std::function<void(std::uint64_t key)>;
    /// Called in progress() once, when the connection is over. get_pending_sends() of its endpoint
    /// says which sends do not complete.
    using OnConnectionClosed = std::function<void(const std::string &why)>;

    /// Connects. Throws FailedOpenActiveEndpoint.
    ActiveEndpoint(const ConnectionParameters &to, DomainManager &domain_manager, OnSendComplete on_send_complete,
                   OnConnectionClosed on_connection_closed = {})
        : m_connection{olnetio3_connect(to.address.c_str(), to.key_file.c_str(), domain_manager.get_ways(),
                                        static_cast<unsigned>(to.patience.count()))},
          m_on_send_complete{std::move(on_send_complete)},
          m_on_connection_closed{std::move(on_connection_closed)} {
        if (!m_connection) {
            throw FailedOpenActiveEndpoint(olnetio3_error());
        }
    }
    ActiveEndpoint(const ActiveEndpoint &) = delete;
    ActiveEndpoint &operator=(const ActiveEndpoint &) = delete;

    /// What an event loop waits for to be readable; -1 once the connection is over.
    int get_fd() const { return olnetio3_descriptor(m_connection.get()); }
    /// Whether the loop may sleep. progress() follows in any case.
    bool arm() { return olnetio3_arm(m_connection.get()) == 1; }
    bool is_open() const { return get_fd() >= 0; }
    /// Makes progress, and calls the callbacks.
    inline void progress();
    /// Waits until all sends are complete, and closes the connection in order; on_send_complete is
    /// called for each, and on_connection_closed is not called. Returns whether all are complete.
    inline bool close();

private:
    friend class SendEndpointZeroCopy;
    inline void report();

    detail::Owned<olnetio3_connection> m_connection;
    OnSendComplete m_on_send_complete;
    OnConnectionClosed m_on_connection_closed;
    SendEndpointZeroCopy *m_sender{nullptr};
    bool m_said{false};
};

/// An endpoint with zero-copy send capabilities: its data lies in one registered region, and
/// headers in slots of a header buffer.
class SendEndpointZeroCopy {
public:
    /// Ours: an endpoint has one SendEndpointZeroCopy at a time; a second one is a
    /// std::logic_error, as it is when neither the parameters nor a shared buffer manager have
    /// memory. Throws FailedOpenActiveEndpoint when the connection is over already.
    SendEndpointZeroCopy(ActiveEndpoint &endpoint, const ConnectionParametersSendZeroCopy &connection_params,
                         std::optional<ZeroCopyBufferManager> &shared_buffer_manager, DomainManager &domain_manager)
        : m_endpoint{&endpoint}, m_domain{&domain_manager} {
        if (shared_buffer_manager) {
            m_region = shared_buffer_manager->get_region();
            m_slots = shared_buffer_manager->m_slots;
        } else if (connection_params.mr_start != nullptr && connection_params.mr_size != 0) {
            m_region = {connection_params.mr_start, connection_params.mr_size};
            m_slots = std::make_shared<detail::HeaderBuffer>();
        } else {
            throw std::logic_error("netio3: no memory to send data from");
        }
        if (endpoint.m_sender != nullptr) {
            throw std::logic_error("netio3: the active endpoint has a sending endpoint already");
        }
        if (!endpoint.is_open()) {
            throw FailedOpenActiveEndpoint("the connection is over");
        }
        endpoint.m_sender = this;
        m_domain->m_regions += 2;
    }
    /// Ours: ends the connection where sends are under way, since their data must not be read any
    /// more. close() of the active endpoint waits for them.
    ~SendEndpointZeroCopy() {
        olnetio3_abandon(connection());
        lose();
        m_endpoint->m_sender = nullptr;
        m_domain->m_regions -= 2;
    }
    SendEndpointZeroCopy(const SendEndpointZeroCopy &) = delete;
    SendEndpointZeroCopy &operator=(const SendEndpointZeroCopy &) = delete;

    /// Ours: the order is that of the active endpoints' addresses.
    inline auto operator<=>(const SendEndpointZeroCopy &other) const {
        return std::compare_three_way{}(m_endpoint, other.m_endpoint);
    }
    inline bool operator==(const SendEndpointZeroCopy &other) const { return m_endpoint == other.m_endpoint; }

    inline const ActiveEndpoint &get_active_endpoint() const { return *m_endpoint; }
    inline ActiveEndpoint &get_active_endpoint() { return *m_endpoint; }

    /// Sends data of one piece; see below.
    NetioStatus send_data(std::span<std::uint8_t> data, std::span<const std::uint8_t> header_data, std::uint64_t key,
                          fi_addr_t addr = 0) {
        const iovec piece{data.data(), data.size()};
        return send_data(std::span<const iovec>{&piece, 1}, header_data, key, addr);
    }

    /// Sends the header, which is copied, and the pieces of data behind it as one message, and
    /// returns at once. The data does not change until the key has come back.
    /// Ours: FAILED for data outside of the registered region, a header longer than a slot, a
    /// message longer than the receiving side takes, an address other than 0 (there are no
    /// connectionless endpoints), and once the connection is over.
    NetioStatus send_data(std::span<const iovec> iov, std::span<const std::uint8_t> header_data, std::uint64_t key,
                          fi_addr_t addr = 0) {
        const auto is_ours = [this](const iovec &piece) { return is_registered(piece); };
        if (addr != 0 || header_data.size() > HEADER_SLOT_SIZE || !m_endpoint->is_open() ||
            !std::ranges::all_of(iov, is_ours)) {
            return NetioStatus::FAILED;
        }
        // What may throw comes before a slot is taken.
        std::vector<iovec> pieces{{nullptr, header_data.size()}};
        pieces.insert(pieces.end(), iov.begin(), iov.end());
        m_under_way.reserve(NUM_HEADER_SLOTS);
        const auto slot = m_slots->take(key, header_data);
        if (!slot) {
            return NetioStatus::NO_RESOURCES;
        }
        pieces.front().iov_base = (*m_slots)[*slot].header;
        m_under_way.push_back(*slot);
        const auto sent =
            olnetio3_send(connection(), pieces.data(), pieces.size(), static_cast<std::int64_t>(*slot));
        if (sent == 1) {
            m_slots->count();
            return NetioStatus::OK;
        }
        complete(*slot);
        return sent == 0 ? NetioStatus::NO_RESOURCES : NetioStatus::FAILED;
    }

    /// Marks a slot as available, and returns the key of its send. progress() of the active
    /// endpoint does this when a send is complete. Ours: std::logic_error for a slot that is not
    /// in use, or whose send is not complete.
    std::uint64_t release_buffer(std::uint64_t bufnum) { return m_slots->release(bufnum); }

    /// The minimum number of available slots since the last call. Ours: of a shared header buffer
    /// that is the number of all its endpoints.
    std::size_t get_num_available_buffers() { return m_slots->fewest(); }

    /// The keys of the sends that are not complete, in the order in which they were sent. Ours: a
    /// send is complete when progress() or close() has reported it.
    std::vector<std::uint64_t> get_pending_sends() {
        auto keys = m_lost;
        for (const auto slot : m_under_way) {
            keys.push_back((*m_slots)[slot].key);
        }
        return keys;
    }

private:
    friend class ActiveEndpoint;
    olnetio3_connection *connection() { return m_endpoint->m_connection.get(); }

    std::uint64_t complete(std::uint64_t slot) {
        std::erase(m_under_way, slot);
        m_slots->complete(slot);
        return release_buffer(slot);
    }
    /// Sends that are under way do not complete any more, and nothing uses their slots.
    void lose() {
        for (const auto slot : std::exchange(m_under_way, {})) {
            m_lost.push_back(complete(slot));
        }
    }

    bool is_registered(const iovec &piece) const {
        const auto start = reinterpret_cast<std::uintptr_t>(m_region.data());
        const auto at = reinterpret_cast<std::uintptr_t>(piece.iov_base);
        return piece.iov_len == 0 ||
               (at >= start && at - start <= m_region.size() && piece.iov_len <= m_region.size() - (at - start));
    }

    ActiveEndpoint *m_endpoint;
    DomainManager *m_domain;
    std::span<std::uint8_t> m_region;
    std::shared_ptr<detail::HeaderBuffer> m_slots;
    /// Slots, in the order of the sends.
    std::vector<std::uint64_t> m_under_way;
    /// Keys of sends that do not complete any more.
    std::vector<std::uint64_t> m_lost;
};

inline void ActiveEndpoint::report() {
    while (m_sender != nullptr) {
        const auto slot = olnetio3_completed(m_connection.get());
        if (slot < 0) {
            break;
        }
        const auto key = m_sender->complete(static_cast<std::uint64_t>(slot));
        if (m_on_send_complete) {
            m_on_send_complete(key);
        }
    }
    if (m_sender != nullptr && !is_open()) {
        m_sender->lose();
    }
}

inline void ActiveEndpoint::progress() {
    const bool over = olnetio3_progress(m_connection.get()) < 0;
    const std::string why = over ? olnetio3_error() : "";
    report();
    if (over && !std::exchange(m_said, true) && m_on_connection_closed) {
        m_on_connection_closed(why);
    }
}

inline bool ActiveEndpoint::close() {
    m_said = true;
    const bool closed = olnetio3_close(m_connection.get()) == 0;
    report();
    return closed;
}

}  // namespace netio3
