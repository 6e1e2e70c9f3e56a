#include "meeting.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "hub.hpp"
#include "socket.hpp"
#include "tessera/distributed/communicator.hpp"

namespace tessera::distributed::detail {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using tessera::detail::raise;
using Clock = std::chrono::steady_clock;

constexpr auto retry_interval = 20ms;
constexpr auto turn = 10ms;  // until a status is sent

/// What the file of a meeting place says.
struct Written {
    std::string host;
    int port = 0;
    std::string token;
};

std::string own_host()
{
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("localhost");
}

/// Rank 0's file, removed with it.
class MeetingFile {
public:
    MeetingFile(const fs::path& path, const Written& written, std::string_view operation,
                const std::source_location& caller)
        : path_(path)
    {
        const fs::path draft = fmt::format("{}.{}", path.string(), getpid());
        std::ofstream file(draft);
        file << written.host << ' ' << written.port << ' ' << written.token << '\n';
        file.close();
        std::error_code failed;
        if (file) {
            fs::rename(draft, path, failed);
        }
        if (!file || failed) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("the file {} cannot be written", path.string()),
                  "name a file in a folder that all ranks reach");
        }
    }
    ~MeetingFile()
    {
        std::error_code ignored;
        fs::remove(path_, ignored);
    }
    MeetingFile(const MeetingFile&) = delete;
    MeetingFile& operator=(const MeetingFile&) = delete;

private:
    fs::path path_;
};

/// A rank's connection to the hub.
class ConnectedPeers final : public Peers {
public:
    ConnectedPeers(Socket socket, int rank) : socket_(std::move(socket)), rank_(rank), thread_([this] { run(); }) {}
    ~ConnectedPeers() override
    {
        ends_ = true;
        thread_.join();
    }
    ConnectedPeers(const ConnectedPeers&) = delete;
    ConnectedPeers& operator=(const ConnectedPeers&) = delete;

    /// For rank 0: what it keeps open for the others.
    void keep(std::unique_ptr<Hub> hub, std::unique_ptr<MeetingFile> file)
    {
        hub_ = std::move(hub);
        file_ = std::move(file);
    }

    void tell(const PeerStatus& status) noexcept override
    {
        enqueued_ = status.enqueued;
        is_waiting_ = status.is_waiting;
    }
    void tell_failure(int rank, const std::string& reason) noexcept override
    {
        try {
            {
                const std::scoped_lock lock(mutex_);
                if (failure_) {
                    return;
                }
                failure_ = PeerFailure{rank, reason};
            }
            has_failed_ = true;
            const std::scoped_lock lock(sending_);
            socket_.send({.kind = Message::Kind::failure, .rank = rank, .text = reason});
        } catch (...) {  // NOLINT(bugprone-empty-catch): without memory for the text, the others end by their timeout
        }
    }
    std::optional<PeerFailure> failure() const override
    {
        if (!has_failed_) {
            return std::nullopt;
        }
        const std::scoped_lock lock(mutex_);
        return failure_;
    }
    std::vector<PeerStatus> statuses(std::chrono::milliseconds patience) override
    {
        std::unique_lock lock(mutex_);
        table_.clear();
        {
            const std::scoped_lock sending(sending_);
            socket_.send({.kind = Message::Kind::question, .rank = rank_});
        }
        table_came_.wait_for(lock, patience, [this] { return !table_.empty() || has_ended_; });
        return table_;
    }
    void leave() noexcept override
    {
        const std::scoped_lock lock(sending_);
        socket_.send({.kind = Message::Kind::status, .rank = rank_, .number = enqueued_});
        socket_.send({.kind = Message::Kind::leaving, .rank = rank_});
    }

private:
    void run()
    {
        std::uint64_t told = ~std::uint64_t{0};
        bool told_waiting = false;
        while (!ends_ && !has_ended_) {
            if (enqueued_ != told || is_waiting_ != told_waiting) {
                told = enqueued_;
                told_waiting = is_waiting_;
                const std::scoped_lock lock(sending_);
                socket_.send(
                    {.kind = Message::Kind::status, .rank = rank_, .number = told, .flag = told_waiting ? 1U : 0U});
            }
            pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
            if (poll(&waiting, 1, static_cast<int>(std::chrono::milliseconds(turn).count())) > 0) {
                take(socket_.receive(1s));
            }
        }
    }

    void take(std::optional<Message> message)
    {
        const std::scoped_lock lock(mutex_);
        if (!message) {
            has_ended_ = true;
            if (!rank_0_has_left_ && !failure_) {
                failure_ = PeerFailure{0, "its process ended without a word"};
                has_failed_ = true;
            }
        } else if (message->kind == Message::Kind::failure) {
            if (!failure_) {
                failure_ = PeerFailure{message->rank, message->text};
                has_failed_ = true;
            }
        } else if (message->kind == Message::Kind::table) {
            table_ = unpacked(message->text);
        } else if (message->kind == Message::Kind::leaving) {
            rank_0_has_left_ = true;
        }
        table_came_.notify_all();
    }

    // Destroyed last to first: the thread's end comes first, by the destructor.
    std::unique_ptr<MeetingFile> file_;
    std::unique_ptr<Hub> hub_;
    Socket socket_;
    int rank_;
    std::atomic<std::uint64_t> enqueued_{0};
    std::atomic<bool> is_waiting_{false};
    mutable std::mutex mutex_;
    std::mutex sending_;
    std::condition_variable table_came_;
    std::optional<PeerFailure> failure_;
    std::vector<PeerStatus> table_;
    bool rank_0_has_left_ = false;
    std::atomic<bool> has_failed_{false};
    std::atomic<bool> has_ended_{false};
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

std::optional<Written> read_file(const fs::path& path)
{
    std::ifstream file(path);
    Written written;
    if (file >> written.host >> written.port >> written.token) {
        return written;
    }
    return std::nullopt;
}

std::string random_token()
{
    std::random_device device;
    return fmt::format("{:08x}{:08x}", device(), device());
}

constexpr std::string_view failure_mark = "failed: ";

/// What rank 0 has broadcast.
Written written_of(const std::string& text, const MeetingMember& member, std::string_view operation,
                   const std::source_location& caller)
{
    if (text.starts_with(failure_mark)) {
        throw RankError(0, operation, caller,
                        fmt::format("rank 0 of {} failed: {}", member.size, text.substr(failure_mark.size())));
    }
    Written written;
    std::istringstream words(text);
    if (!(words >> written.host >> written.port >> written.token)) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("rank {} received \"{}\" by the broadcast", member.rank, text),
              "the broadcast hands the text of rank 0 to all ranks, and returns it");
    }
    return written;
}

bool is_loopback(const std::string& host) { return host == "localhost" || host.starts_with("127."); }

}  // namespace

std::string broadcast_of_failure(const std::string& reason) { return std::string(failure_mark) + reason; }

Met meet(const MeetingPlace& place, const MeetingMember& member, const std::optional<NcclId>& id,
         std::string_view operation, const std::source_location& caller)
{
    std::unique_ptr<Hub> hub;
    std::unique_ptr<MeetingFile> file;
    Written written{place.host, place.port, {}};
    const bool is_known = place.file.empty() && !place.broadcast;
    if (member.rank == 0) {
        if (!is_known) {
            written = {own_host(), 0, random_token()};
        }
        Socket listening = Socket::listen(written.port, is_known && is_loopback(place.host));
        if (!listening) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("rank 0 cannot listen on port {}: {}", written.port, std::strerror(errno)),
                  "set TESSERA_PORT to a port that is free on rank 0's host");
        }
        written.port = listening.port();
        hub = std::make_unique<Hub>(std::move(listening), member.size, written.token, id.value());
        if (!place.file.empty()) {
            file = std::make_unique<MeetingFile>(place.file, written, operation, caller);
        }
        if (place.broadcast) {
            place.broadcast(fmt::format("{} {} {}", written.host, written.port, written.token));
        }
    } else if (place.broadcast) {
        written = written_of(place.broadcast({}), member, operation, caller);
    }
    const auto end = Clock::now() + member.timeout;
    std::string refusal;
    while (Clock::now() < end) {
        std::optional<Written> target = written;
        if (member.rank != 0 && !place.file.empty()) {
            target = read_file(place.file);
        }
        Socket socket;
        if (target) {
            // Rank 0 may not know itself by the name that others know it by.
            socket = Socket::connect(member.rank == 0 ? "127.0.0.1" : target->host, target->port);
            if (!socket && !is_known) {
                socket = Socket::connect("127.0.0.1", target->port);
            }
        }
        if (socket && socket.send({.kind = Message::Kind::hello,
                                   .rank = member.rank,
                                   .number = static_cast<std::uint64_t>(member.size),
                                   .text = target->token})) {
            const std::optional<Message> answer = socket.receive(5s);
            if (answer && answer->kind == Message::Kind::welcome) {
                Met met;
                std::copy_n(answer->text.begin(), std::min(answer->text.size(), met.id.bytes.size()),
                            met.id.bytes.begin());
                auto peers = std::make_shared<ConnectedPeers>(std::move(socket), member.rank);
                peers->keep(std::move(hub), std::move(file));
                met.peers = std::move(peers);
                return met;
            }
            if (answer && answer->kind == Message::Kind::refusal) {
                refusal = answer->text;
                if (is_known) {
                    break;  // a file may be that of an earlier run
                }
            }
        }
        std::this_thread::sleep_for(retry_interval);
    }
    if (!refusal.empty()) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("rank 0 at {} refuses rank {}: {}", place.describe(), member.rank, refusal),
              "give each process its own rank and all of them the same number of ranks");
    }
    throw RankError(0, operation, caller,
                    fmt::format("rank {} of {} did not find rank 0 at {} within {:g} s", member.rank, member.size,
                                place.describe(), std::chrono::duration<double>(member.timeout).count()),
                    "check that rank 0 runs, and that this host reaches that place");
}

}  // namespace tessera::distributed::detail
