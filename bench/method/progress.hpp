#pragma once

/// A progress line on the terminal: the current activity and the remaining time. Silent if standard error is not a
/// terminal, so that logs stay clean.

#include <chrono>
#include <string_view>

namespace tessera::bench {

class Progress {
public:
    /// @param total_work  in any unit roughly proportional to time
    explicit Progress(double total_work);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(double work_done, std::string_view what);
    /// Removes the line, before other text is printed.
    void clear();

private:
    bool is_terminal_;
    bool visible_ = false;
    double total_work_;
    std::chrono::steady_clock::time_point start_;
};

}  // namespace tessera::bench
