#include "common.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>

#include "report/gemm_summary.hpp"

namespace tessera::bench {

void add_device_option(CLI::App& command, CommonOptions& common)
{
    command.add_option("--device", common.device, "CUDA device number")->check(CLI::Range(0, 1023));
}

void add_common_options(CLI::App& command, CommonOptions& common)
{
    add_device_option(command, common);
    command.add_option("--csv", common.csv, "write all results to this file as CSV");
    command.add_option("--json", common.json, "write all results to this file as JSON");
    command.add_option("--repetitions", common.rounds, "samples per contender")->check(CLI::Range(1, 1000000));
    command.add_option("--seed", common.seed, "seed of the random inputs, and of the list random")
        ->capture_default_str();
    command.add_flag("--quick", common.quick, "a quarter of the repetitions; simt without --sizes: small sizes only");
}

void add_sample_option(CLI::App& command, int& sample, const std::string& description)
{
    command.add_option("--sample", sample, description)->check(CLI::Range(1, 1000))->capture_default_str();
}

OutputFile::OutputFile(const std::string& path) : path_(path)
{
    if (!path.empty()) {
        file_.open(path);
        if (!file_) {
            throw std::invalid_argument(fmt::format("cannot write {}", path));
        }
    }
}

void OutputFile::write(const std::string& text)
{
    if (!path_.empty() && !(file_ << text << std::flush)) {
        throw std::runtime_error(fmt::format("writing {} failed", path_));
    }
}

Device require_device(int ordinal)
{
    if (ordinal >= Device::count()) {
        throw std::invalid_argument(
            fmt::format("--device {}: this machine has {} CUDA device(s), numbered from 0", ordinal, Device::count()));
    }
    return Device(ordinal);
}

void print(const std::string& text)
{
    fmt::print("{}\n", text);
    std::fflush(stdout);
}

int exit_code_of(const std::vector<ProblemReport>& reports, std::string_view prefix)
{
    if (has_wrong_result(reports, prefix)) {
        fmt::print(stderr, "tessera-bench: wrong results; see WRONG above\n");
        return failure;
    }
    if (has_wrong_result(reports, {})) {
        fmt::print(stderr, "tessera-bench: wrong results of a peer, which count in no ratio; see WRONG above\n");
    }
    return success;
}

Monitor::Monitor(const Device& device)
{
    try {
        nvml_.emplace(pci_bus_id_of(device));
        sampler_.emplace([this] { return nvml_->read(); });
    } catch (const std::runtime_error& error) {
        refusal_ = fmt::format("not read: {}", error.what());
    }
}

void Monitor::finish(Environment& environment, const std::vector<ProblemReport>& reports) const
{
    const std::string found = describe_clocks(reports);
    const std::string text = !refusal_.empty() ? refusal_
                             : found.empty()   ? "not read: every sample was too short"
                                               : found;
    environment.emplace_back("while measuring", text);
    print(fmt::format("While measuring: {}", text));
}

}  // namespace tessera::bench
