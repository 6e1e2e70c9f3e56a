#pragma once

// Messages over TCP.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera::distributed::detail {

struct Message {
    enum class Kind : std::uint32_t { hello = 0x74657373, welcome, refusal, status, question, table, failure, leaving };
    Kind kind = Kind::hello;
    std::int32_t rank = 0;
    std::uint64_t number = 0;  // hello: ranks; status: operations begun
    std::uint32_t flag = 0;    // status: waiting
    std::string text{};        // hello: token; welcome: id; refusal, failure: reason; table: statuses
};

/// Owns a socket.
class Socket {
public:
    Socket() = default;
    explicit Socket(int descriptor) noexcept : descriptor_(descriptor) {}
    Socket(Socket&& other) noexcept;
    Socket& operator=(Socket&& other) noexcept;
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket();

    /// Listens on `port` (0: any that is free), of this host alone or of all networks. Empty if that failed, with `errno`.
    static Socket listen(int port, bool is_local);
    /// Connects; empty if nobody listens there.
    static Socket connect(const std::string& host, int port);

    /// Returns the connection of the next who came, or an empty one.
    Socket accept() const;
    int port() const;

    /// Returns false if the connection is gone.
    bool send(const Message& message) const noexcept;
    /// Returns the next message, or nothing if the connection is gone or nothing came in time.
    std::optional<Message> receive(std::chrono::milliseconds patience) const;

    int get() const noexcept { return descriptor_; }
    explicit operator bool() const noexcept { return descriptor_ >= 0; }

private:
    int descriptor_ = -1;
};

}  // namespace tessera::distributed::detail
