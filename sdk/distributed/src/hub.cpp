#include "hub.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace tessera::distributed::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto turn = 20ms;  // until the thread sees that it shall end
constexpr auto message_patience = 5s;

struct PackedStatus {
    std::uint64_t enqueued;
    std::uint32_t is_waiting;
    std::uint32_t has_left;
};

}  // namespace

std::string packed(const std::vector<PeerStatus>& statuses)
{
    std::string text(statuses.size() * sizeof(PackedStatus), '\0');
    for (std::size_t i = 0; i < statuses.size(); ++i) {
        const PackedStatus one{statuses[i].enqueued, statuses[i].is_waiting ? 1U : 0U, statuses[i].has_left ? 1U : 0U};
        std::memcpy(text.data() + i * sizeof(one), &one, sizeof(one));
    }
    return text;
}

std::vector<PeerStatus> unpacked(const std::string& text)
{
    std::vector<PeerStatus> statuses(text.size() / sizeof(PackedStatus));
    for (std::size_t i = 0; i < statuses.size(); ++i) {
        PackedStatus one{};
        std::memcpy(&one, text.data() + i * sizeof(one), sizeof(one));
        statuses[i] = {one.enqueued, one.is_waiting != 0, one.has_left != 0};
    }
    return statuses;
}

Hub::Hub(Socket listening, int size, std::string token, const NcclId& id)
    : listening_(std::move(listening)),
      size_(size),
      token_(std::move(token)),
      id_(id),
      statuses_(static_cast<std::size_t>(size)),
      thread_([this] { run(); })
{}

Hub::~Hub()
{
    ends_ = true;
    thread_.join();
}

void Hub::pass_on(const Message& message, int except)
{
    for (const Guest& guest : guests_) {
        if (guest.rank >= 0 && guest.rank != except && !guest.has_left) {
            guest.socket.send(message);
        }
    }
}

void Hub::welcome(Guest& guest, const Message& hello)
{
    std::string reason;
    if (hello.kind != Message::Kind::hello || hello.text != token_) {
        reason = "this is the meeting place of another group";
    } else if (hello.number != static_cast<std::uint64_t>(size_)) {
        reason = fmt::format("rank {} counts {} ranks, but rank 0 counts {}", hello.rank, hello.number, size_);
    } else if (hello.rank < 0 || hello.rank >= size_) {
        reason = fmt::format("there is no rank {} of {}", hello.rank, size_);
    } else if (std::any_of(guests_.begin(), guests_.end(),
                           [&](const Guest& other) { return other.rank == hello.rank; })) {
        reason = fmt::format("two processes are rank {} of {}", hello.rank, size_);
    }
    if (!reason.empty()) {
        guest.socket.send({.kind = Message::Kind::refusal, .text = reason});
        return;
    }
    guest.rank = hello.rank;
    guest.socket.send({.kind = Message::Kind::welcome, .text = std::string(id_.bytes.data(), id_.bytes.size())});
}

bool Hub::serve(Guest& guest)
{
    const std::optional<Message> message = guest.socket.receive(message_patience);
    if (!message) {
        if (guest.rank >= 0 && !guest.has_left && !std::exchange(has_failed_, true)) {
            pass_on({.kind = Message::Kind::failure, .rank = guest.rank, .text = "its process ended without a word"},
                    guest.rank);
        }
        return false;
    }
    if (guest.rank < 0) {
        welcome(guest, *message);
        return guest.rank >= 0;
    }
    PeerStatus& status = statuses_[static_cast<std::size_t>(guest.rank)];
    switch (message->kind) {
        case Message::Kind::status:
            status.enqueued = message->number;
            status.is_waiting = message->flag != 0;
            break;
        case Message::Kind::question:
            guest.socket.send({.kind = Message::Kind::table, .text = packed(statuses_)});
            break;
        case Message::Kind::failure:
            if (!std::exchange(has_failed_, true)) {
                pass_on(*message, guest.rank);
            }
            break;
        case Message::Kind::leaving:
            status.has_left = true;
            guest.has_left = true;
            break;
        default: break;
    }
    return true;
}

void Hub::run()
{
    std::vector<pollfd> waiting;
    while (!ends_) {
        waiting.assign(1, {.fd = listening_.get(), .events = POLLIN, .revents = 0});
        for (const Guest& guest : guests_) {
            waiting.push_back({.fd = guest.socket.get(), .events = POLLIN, .revents = 0});
        }
        if (poll(waiting.data(), waiting.size(), static_cast<int>(std::chrono::milliseconds(turn).count())) <= 0) {
            continue;
        }
        // From the last, because those whose connection has ended are taken out.
        for (std::size_t i = waiting.size() - 1; i > 0; --i) {
            if (waiting[i].revents != 0 && !serve(guests_[i - 1])) {
                guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i - 1));
            }
        }
        if ((waiting[0].revents & POLLIN) != 0) {
            if (Socket came = listening_.accept()) {
                guests_.push_back({.socket = std::move(came)});
            }
        }
    }
    // What was sent just before the end still counts.
    for (Guest& guest : guests_) {
        pollfd last{.fd = guest.socket.get(), .events = POLLIN, .revents = 0};
        while (poll(&last, 1, 0) > 0 && serve(guest)) {
        }
    }
    pass_on({.kind = Message::Kind::leaving, .rank = 0}, 0);
}

}  // namespace tessera::distributed::detail
