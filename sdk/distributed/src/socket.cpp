#include "socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace tessera::distributed::detail {
namespace {

struct Head {
    std::uint32_t kind;
    std::int32_t rank;
    std::uint64_t number;
    std::uint32_t flag;
    std::uint32_t text_bytes;
};
constexpr std::uint32_t longest_text = 1U << 20;

void set_option(int socket, int level, int name, int value) { setsockopt(socket, level, name, &value, sizeof(value)); }

/// A host that vanishes without a word is noticed within half a minute.
void keep_alive(int socket)
{
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    // The rest of a message that has begun to come comes soon, unless it is none of ours.
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

bool receive_all(int socket, void* to, std::size_t bytes)
{
    auto* place = static_cast<std::byte*>(to);
    while (bytes > 0) {
        const ssize_t got = recv(socket, place, bytes, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        place += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

bool send_all(int socket, const void* from, std::size_t bytes)
{
    const auto* place = static_cast<const std::byte*>(from);
    while (bytes > 0) {
        const ssize_t sent = ::send(socket, place, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        place += sent;
        bytes -= static_cast<std::size_t>(sent);
    }
    return true;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept
{
    if (this != &other) {
        const Socket old(std::exchange(descriptor_, std::exchange(other.descriptor_, -1)));
    }
    return *this;
}

Socket::~Socket()
{
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

Socket Socket::listen(int port, bool is_local)
{
    Socket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!made) {
        return {};
    }
    set_option(made.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(is_local ? INADDR_LOOPBACK : INADDR_ANY);
    constexpr int most_waiting = 1024;
    if (bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(made.get(), most_waiting) != 0) {
        return {};
    }
    return made;
}

Socket Socket::connect(const std::string& host, int port)
{
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), fmt::format("{}", port).c_str(), &hints, &found) != 0) {
        return {};
    }
    Socket made;
    for (const addrinfo* each = found; each != nullptr && !made; each = each->ai_next) {
        Socket candidate(socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol));
        if (candidate && ::connect(candidate.get(), each->ai_addr, each->ai_addrlen) == 0) {
            made = std::move(candidate);
        }
    }
    freeaddrinfo(found);
    if (made) {
        keep_alive(made.get());
    }
    return made;
}

Socket Socket::accept() const
{
    Socket made(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC));
    if (made) {
        keep_alive(made.get());
    }
    return made;
}

int Socket::port() const
{
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
}

bool Socket::send(const Message& message) const noexcept
{
    const Head head{static_cast<std::uint32_t>(message.kind), message.rank, message.number, message.flag,
                    static_cast<std::uint32_t>(message.text.size())};
    return send_all(descriptor_, &head, sizeof(head)) &&
           send_all(descriptor_, message.text.data(), message.text.size());
}

std::optional<Message> Socket::receive(std::chrono::milliseconds patience) const
{
    pollfd waiting{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(patience.count())) <= 0) {
        return std::nullopt;
    }
    Head head{};
    // What is no message of ours ends the connection: somebody else found the port.
    const auto is_ours = [&] {
        return head.kind >= static_cast<std::uint32_t>(Message::Kind::hello) &&
               head.kind <= static_cast<std::uint32_t>(Message::Kind::leaving) && head.text_bytes <= longest_text;
    };
    Message message;
    if (!receive_all(descriptor_, &head, sizeof(head)) || !is_ours()) {
        return std::nullopt;
    }
    message.text.resize(head.text_bytes);
    if (!receive_all(descriptor_, message.text.data(), message.text.size())) {
        return std::nullopt;
    }
    message.kind = static_cast<Message::Kind>(head.kind);
    message.rank = head.rank;
    message.number = head.number;
    message.flag = head.flag;
    return message;
}

}  // namespace tessera::distributed::detail
