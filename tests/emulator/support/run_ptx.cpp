#include "run_ptx.hpp"

#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <utility>

#include "audit.hpp"

namespace tessera::emulator::test {

namespace {

/// The kinds of findings that this process has seen, each with the schedule. At the end they are written to the file
/// TESSERA_TEST_PROVOKED: see check_provoked.cmake.
class Provoked {
public:
    Provoked() = default;
    Provoked(const Provoked&) = delete;
    Provoked& operator=(const Provoked&) = delete;
    ~Provoked()
    {
        if (const char* const path = std::getenv("TESSERA_TEST_PROVOKED")) {
            std::ofstream file(path);
            for (const auto& [kind, schedule] : seen_) {
                file << name_of(kind) << ' ' << name_of(schedule) << '\n';
            }
        }
    }
    void add(const Report& report, Schedule schedule)
    {
        for (const Finding& finding : report.findings()) {
            seen_.emplace(finding.kind, schedule);
        }
    }

private:
    std::set<std::pair<FindingKind, Schedule>> seen_;
};

}  // namespace

std::string module_text(std::string_view target, std::string_view body)
{
    return ".version 9.0\n.target " + std::string(target) + "\n.address_size 64\n" + std::string(body);
}

PtxRun::PtxRun(std::string_view ptx, std::string_view device)
{
    const DeviceModel* model = find_device_model(device);
    if (model == nullptr) {
        throw std::runtime_error("no such device: " + std::string(device));
    }
    module_ = std::make_unique<LoadedModule>(ptx, *model, 0, memory);
    options.threads = 2;
    if (std::getenv("TESSERA_TEST_AUDIT") != nullptr) {
        audit(*module_);
    }
    if (const char* const paths = std::getenv("TESSERA_TEST_PATHS"); paths != nullptr) {
        for (const Paths each : {Paths::plain, Paths::both}) {
            options.paths = name_of(each) == paths ? each : options.paths;
        }
    }
}

std::uint64_t PtxRun::uninitialized(std::size_t bytes)
{
    const std::uint64_t address = memory.allocate(bytes, MemoryKind::device, 0);
    if (address == 0) {
        throw std::runtime_error("no memory");
    }
    return address;
}

LaunchResult PtxRun::launch_with(std::string_view kernel, const Shape& shape, const std::vector<Argument>& arguments)
{
    const KernelInfo* info = module_->find_kernel(kernel);
    if (info == nullptr) {
        throw std::runtime_error("no kernel " + std::string(kernel));
    }
    if (info->parameters.size() != arguments.size()) {
        throw std::runtime_error("wrong number of arguments");
    }
    LaunchRequest request;
    request.grid = shape.grid;
    request.block = shape.block;
    request.cluster = shape.cluster;
    request.explicit_cluster = shape.cluster.count() > 1;
    request.dynamic_shared = shape.dynamic_shared;
    request.cooperative = shape.cooperative;
    request.stack_limit = shape.stack_limit;
    request.heap_limit = shape.heap_limit;
    request.parameters.resize(info->parameter_bytes);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const ParameterLayout& place = info->parameters[i];
        if (place.size != arguments[i].size) {
            throw std::runtime_error("argument " + std::to_string(i + 1) + " has the wrong size");
        }
        std::memcpy(request.parameters.data() + place.offset, arguments[i].value, arguments[i].size);
    }
    request.print = [this](std::string_view text) { printed += text; };
    LaunchResult result = emulator::launch(*module_, *info, request, options, memory, report);
    static Provoked provoked;
    provoked.add(report, options.schedule);
    if (const std::string problems = take_audit_problems(); !problems.empty()) {
        throw std::runtime_error("operations do not do what their effects say:\n" + problems);
    }
    return result;
}

std::uint64_t PtxRun::count(FindingKind kind) const
{
    std::uint64_t sum = 0;
    for (const Finding& finding : report.findings()) {
        sum += finding.kind == kind ? finding.count : 0;
    }
    return sum;
}

}  // namespace tessera::emulator::test
