/// The file of tuned choices: entries are read as written, damaged or foreign entries are not used, and processes that
/// save at the same time lose nothing.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "cache_files.hpp"
#include "kernels/hopper/hopper_kernels.hpp"

using namespace tessera;
using tessera::detail::KernelChoice;
using tessera::detail::TunedChoice;
using tessera::detail::TuningKey;
using tessera::test::CleanRuntime;

using test::CacheFiles;
using test::key_of;
using test::tuned_of;

TEST_CASE_FIXTURE(CacheFiles, "entries are saved and loaded bit for bit")
{
    for (std::int64_t m = 1; m <= 20; ++m) {
        detail::store_tuned(key_of(m), tuned_of(m));
    }
    GemmTuningCache::save(path);
    GemmTuningCache::clear();
    CHECK(GemmTuningCache::size() == 0);
    const auto loaded = GemmTuningCache::load(path);
    CHECK(loaded.used == 20);
    CHECK(loaded.skipped + loaded.damaged == 0);
    CHECK(GemmTuningCache::size() == 20);
    for (std::int64_t m = 1; m <= 20; ++m) {
        CHECK(detail::find_tuned(key_of(m)) == tuned_of(m));
    }
    CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(CacheFiles, "each field of an entry survives, also for Hopper choices")
{
    TuningKey key{.device = 0xFEDCBA9876543210U, .m = INT64_MAX, .n = 1, .k = 0, .batches = 65536, .facts = {}};
    const auto set = [&](std::size_t fact, int value) { key.facts[fact] = static_cast<std::uint8_t>(value); };
    set(detail::type_a, static_cast<int>(ElementType::bf16));
    set(detail::type_b, static_cast<int>(ElementType::bf16));
    for (std::size_t fact = detail::order_a; fact < detail::tuning_facts; ++fact) {
        set(fact, static_cast<int>(fact) % 16);
    }
    TunedChoice tuned{{.variant = Variant::simt_naive,
                       .cluster_m = 2,
                       .cluster_n = 4,
                       .cluster_k = 8,
                       .swapped = true,
                       .stream_k = true,
                       .band = 16,
                       .clusters = 0xFFFF},
                      0.1,
                      1e-7,
                      1'790'000'000};
    for (const Variant variant : {Variant::simt_naive, Variant::hopper}) {
        if (variant == Variant::hopper && kernels::hopper_kernels(2).empty()) {
            continue;
        }
        tuned.choice.variant = variant;
        tuned.choice.config =
            variant == Variant::hopper ? static_cast<std::uint8_t>(kernels::hopper_kernels(2).size() - 1) : 0;
        const auto parsed = detail::parse_entry(detail::format_entry(key, tuned, detail::tuning_build()));
        REQUIRE(parsed.has_value());
        CHECK(parsed->key == key);
        CHECK(parsed->tuned == tuned);
        CHECK(parsed->build == detail::tuning_build());
    }
}

TEST_CASE_FIXTURE(CacheFiles, "an entry with any changed byte counts as damaged")
{
    const std::string line = detail::format_entry(key_of(7), tuned_of(7), detail::tuning_build());
    REQUIRE(detail::parse_entry(line).has_value());
    for (std::size_t i = 0; i < line.size(); ++i) {
        for (const int bit : {0, 3, 7}) {
            std::string changed = line;
            changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
            CAPTURE(changed);
            CHECK_FALSE(detail::parse_entry(changed).has_value());
        }
        CHECK_FALSE(detail::parse_entry(line.substr(0, i)).has_value());
    }
}

TEST_CASE_FIXTURE(CacheFiles, "garbage with a valid checksum is refused field by field, and never crashes")
{
    std::mt19937 random(5);
    const std::string line = detail::format_entry(key_of(7), tuned_of(7), detail::tuning_build());
    const std::string body = line.substr(0, line.rfind(" checksum="));
    int refused = 0;
    for (int i = 0; i < 5000; ++i) {
        std::string changed = body;
        for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
            const std::size_t at = random() % changed.size();
            switch (random() % 3) {
                case 0: changed[at] = static_cast<char>(random() % 256); break;
                case 1: changed.erase(at, 1 + random() % 9); break;
                default: changed.insert(at, std::to_string(random())); break;
            }
        }
        std::uint64_t hash = 0xCBF29CE484222325U;
        for (const char character : changed) {
            hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001B3U;
        }
        const auto parsed = detail::parse_entry(fmt::format("{} checksum={:016x}", changed, hash));
        refused += parsed ? 0 : 1;
    }
    CHECK(refused > 2000);
    CHECK(refused < 5000);  // a changed extent may still be valid
}

TEST_CASE_FIXTURE(CacheFiles, "damaged lines are skipped with one warning, the others are used")
{
    for (std::int64_t m = 1; m <= 3; ++m) {
        detail::store_tuned(key_of(m), tuned_of(m));
    }
    GemmTuningCache::save(path);
    std::string text = content();
    text[text.find(" m=2 ") + 3] = '4';
    write(text + "nonsense\n");
    GemmTuningCache::clear();
    const auto loaded = GemmTuningCache::load(path);
    CHECK(loaded.used == 2);
    CHECK(loaded.damaged == 2);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0] ==
          fmt::format("2 of 4 entries of the tuning cache {} are damaged and are ignored", path.string()));
    GemmTuningCache::save(path);  // drops the damaged lines
    CHECK(GemmTuningCache::load(path).damaged == 0);
}

TEST_CASE_FIXTURE(CacheFiles, "a file that is not a tuning cache is ignored with a warning, and not overwritten")
{
    for (const std::string& foreign :
         {std::string("#!/bin/sh\n"), std::string("tessera-tuning 2\n"), std::string(100'000, '\0')}) {
        warnings.clear();
        write(foreign);
        CHECK(GemmTuningCache::load(path).used == 0);
        CHECK(warnings.size() == 1);
        detail::store_tuned(key_of(1), tuned_of(1));
        const auto error = test::error_of([&] { GemmTuningCache::save(path); });
        REQUIRE(error.has_value());
        CHECK(error->code() == ErrorCode::invalid_argument);
        CHECK(content() == foreign);
    }
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    warnings.clear();
    CHECK(GemmTuningCache::load(path).used == 0);
    CHECK(warnings.size() == 1);
    CHECK_THROWS_AS(GemmTuningCache::save(path), Error);
}

TEST_CASE_FIXTURE(CacheFiles, "a missing or empty file is an empty cache, and a missing folder is an error")
{
    CHECK(GemmTuningCache::load(path).used == 0);
    write("");
    CHECK(GemmTuningCache::load(path).used == 0);
    CHECK(warnings.empty());
    CHECK_THROWS_AS(GemmTuningCache::save(folder / "missing" / "file"), Error);
}

TEST_CASE_FIXTURE(CacheFiles, "entries of another driver or build are kept but not used")
{
    const std::string other =
        detail::format_entry(key_of(5), tuned_of(5), "driver=1 library=9.9.9 kernels=0000000000000001");
    write("tessera-tuning 1\n" + other + "\n");
    const auto loaded = GemmTuningCache::load(path);
    CHECK(loaded.skipped == 1);
    CHECK(loaded.used + loaded.damaged == 0);
    CHECK_FALSE(detail::find_tuned(key_of(5)).has_value());
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0] ==
          fmt::format(
              "no entry of the tuning cache {} is for this driver and these kernels: all of them (1) are ignored, so "
              "tune again",
              path.string()));
    detail::store_tuned(key_of(6), tuned_of(6));
    GemmTuningCache::save(path);
    CHECK(content().find(other) != std::string::npos);
    CHECK(GemmTuningCache::load(path).used == 1);
}

TEST_CASE_FIXTURE(CacheFiles, "the newer of two measurements of a problem counts, wherever it is")
{
    detail::store_tuned(key_of(1), tuned_of(100));
    GemmTuningCache::save(path);
    detail::store_tuned(key_of(1), tuned_of(50));
    CHECK(detail::find_tuned(key_of(1))->when == 100);
    GemmTuningCache::clear();
    detail::store_tuned(key_of(1), tuned_of(50));
    GemmTuningCache::save(path);  // does not restore the old one
    GemmTuningCache::clear();
    GemmTuningCache::load(path);
    CHECK(detail::find_tuned(key_of(1))->when == 100);
}

TEST_CASE_FIXTURE(CacheFiles, "processes that save at the same time lose nothing, and readers see whole files")
{
    constexpr int processes = 6;
    constexpr int saves = 15;
    std::vector<pid_t> children;
    for (int process = 0; process < processes; ++process) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            int code = 0;
            for (int i = 0; i < saves; ++i) {
                detail::store_tuned(key_of(1 + process * saves + i), tuned_of(1));
                try {
                    GemmTuningCache::save(path);
                } catch (...) {
                    code = 1;
                }
                code |= GemmTuningCache::load(path).damaged > 0 || !warnings.empty() ? 2 : 0;
            }
            ::_exit(code);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = -1;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    GemmTuningCache::clear();
    CHECK(GemmTuningCache::load(path).used == processes * saves);
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder)) {
        ++files;
    }
    CHECK(files == 2);  // the cache and its lock
}

TEST_CASE_FIXTURE(CacheFiles, "the environment's file is loaded by the first choice and saved after tuning")
{
    detail::store_tuned(detail::tuning_key(detail::resolved({.m = 8, .n = 8, .k = 8}), Device(fake::h200).properties()),
                        tuned_of(1));
    GemmTuningCache::save(path);
    // In a separate process, because this one has already made its first choice.
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::setenv("TUNING_TEST_CHILD", path.c_str(), 1);
        ::setenv(detail::tuning_cache_variable, path.c_str(), 1);
        ::execl("/proc/self/exe", "unit_tests", "--no-skip", "--test-case=child of the environment test", nullptr);
        ::_exit(99);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(GemmTuningCache::load(path).used == 2);
}

TEST_CASE_FIXTURE(CleanRuntime, "child of the environment test" * doctest::skip(true))
{
    REQUIRE(std::getenv("TUNING_TEST_CHILD") != nullptr);
    const Device device(fake::h200);
    CHECK(GemmPlan::prepare(device, {.m = 8, .n = 8, .k = 8}).variant() == Variant::simt_coarsened);
    CHECK(GemmTuningCache::size() == 1);
    static_cast<void>(Gemm::tune(device, {.m = 16, .n = 8, .k = 8}, {.rounds = 1}));
}
