#pragma once

/// Fixture for tests of the tuning cache: its own folder, an empty table, and recorded warnings.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "clean_runtime.hpp"
#include "gemm/variant_chooser.hpp"
#include "tuning/tuning_cache.hpp"

namespace tessera::test {

struct CacheFiles : CleanRuntime {
    CacheFiles()
    {
        char pattern[] = "/tmp/tessera_tuning_XXXXXX";
        REQUIRE(::mkdtemp(pattern) != nullptr);
        folder = pattern;
        path = folder / "gemm.tuning";
        GemmTuningCache::clear();
        warnings.clear();
        previous =
            GemmTuningCache::set_warning_handler([](std::string_view sentence) { warnings.emplace_back(sentence); });
    }
    ~CacheFiles()
    {
        GemmTuningCache::set_warning_handler(previous);
        GemmTuningCache::clear();
        std::filesystem::remove_all(folder);
    }

    static std::string content_of(const std::filesystem::path& file)
    {
        std::ostringstream text;
        text << std::ifstream(file).rdbuf();
        return text.str();
    }
    std::string content() const { return content_of(path); }
    void write(const std::string& text) const { std::ofstream(path) << text; }

    static inline std::vector<std::string> warnings;
    std::filesystem::path folder;
    std::filesystem::path path;
    GemmTuningCache::WarningHandler previous;
};

inline detail::TuningKey key_of(std::int64_t m)
{
    return detail::tuning_key(detail::resolved({.m = m, .n = 32, .k = 64}), Device(fake::h200).properties());
}

inline detail::TunedChoice tuned_of(std::int64_t when)
{
    return {detail::KernelChoice{.variant = Variant::simt_coarsened}, 1.25e-5, 1.0 / 3, when};
}

}  // namespace tessera::test
