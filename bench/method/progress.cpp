#include "method/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace tessera::bench {

Progress::Progress(double total_work)
    : is_terminal_(isatty(STDERR_FILENO) == 1), total_work_(total_work), start_(std::chrono::steady_clock::now())
{}

void Progress::show(double work_done, std::string_view what)
{
    if (!is_terminal_) {
        return;
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    const double fraction = work_done / total_work_;
    std::string left;
    if (elapsed.count() > 1 && fraction > 0.02) {  // earlier, the estimate is noise
        left = fmt::format(", about {:.0f} s left", std::ceil(elapsed.count() * (1 - fraction) / fraction));
    }
    fmt::print(stderr, "\r\x1b[K[{:3.0f} %] {}{}", 100 * fraction, what, left);
    std::fflush(stderr);
    visible_ = true;
}

void Progress::clear()
{
    if (visible_) {
        std::fputs("\r\x1b[K", stderr);
        std::fflush(stderr);
        visible_ = false;
    }
}

}  // namespace tessera::bench
