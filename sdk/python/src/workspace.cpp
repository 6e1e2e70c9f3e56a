#include "workspace.hpp"

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "elements.hpp"
#include "errors.hpp"

namespace nb = nanobind;

namespace tessera::python {
namespace {

constexpr int max_devices = 64;

struct FailedAllocation {
    std::string text;
};

void note_failure(void* context, const char* kind, const char* message)
{
    static_cast<FailedAllocation*>(context)->text = std::string(kind) + ": " + message;
}

dlpack::ManagedTensorVersioned* allocate_bytes(const dlpack::ExchangeApi& api, dlpack::DataType type, int device,
                                               std::size_t ndim, const std::int64_t* shape, FailedAllocation& failed)
{
    dlpack::Tensor prototype{};
    prototype.device = {dlpack::cuda, device};
    prototype.dtype = type;
    prototype.ndim = static_cast<std::int32_t>(ndim);
    prototype.shape = const_cast<std::int64_t*>(shape);
    dlpack::ManagedTensorVersioned* made = nullptr;
    return api.allocate(&prototype, &made, &failed, note_failure) == 0 ? made : nullptr;
}

constexpr dlpack::DataType bytes_type{1, 8, 1};

/// The blocks that the library has from a framework. The library calls from any thread, and holds a lock of its own.
struct Blocks {
    struct Block {
        dlpack::ManagedTensorVersioned* memory;
        tessera_stream allocated_on;
    };

    std::mutex mutex;
    std::map<void*, Block> all;
    std::array<const dlpack::ExchangeApi*, max_devices> frameworks{};

    static Blocks& get()
    {
        static auto* const instance = new Blocks;  // never destroyed: the library may call at exit
        return *instance;
    }
};

int device_of(void* context) { return static_cast<int>(reinterpret_cast<std::intptr_t>(context)); }

/// A framework allocates on its current stream. Where that is not the library's, each waits for the other.
void* allocate_block(void* context, std::size_t bytes, std::size_t alignment, tessera_stream stream)
{
    Blocks& blocks = Blocks::get();
    const int device = device_of(context);
    const dlpack::ExchangeApi& api = *blocks.frameworks[static_cast<std::size_t>(device)];
    const auto count = static_cast<std::int64_t>(bytes);
    FailedAllocation failed;
    dlpack::ManagedTensorVersioned* const memory = allocate_bytes(api, bytes_type, device, 1, &count, failed);
    if (memory == nullptr) {
        return nullptr;
    }
    void* current = nullptr;
    void* const data = static_cast<char*>(memory->tensor.data) + memory->tensor.byte_offset;
    const auto own =
        static_cast<tessera_stream>(api.current_stream(dlpack::cuda, device, &current) == 0 ? current : nullptr);
    if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0 ||
        (own != stream && tessera_stream_wait(device, stream, own) != TESSERA_SUCCESS)) {
        memory->deleter(memory);
        return nullptr;
    }
    const std::scoped_lock lock(blocks.mutex);
    blocks.all[data] = {memory, own};
    return data;
}

void free_block(void* context, void* data, std::size_t /*bytes*/, std::size_t /*alignment*/, tessera_stream stream)
{
    Blocks& blocks = Blocks::get();
    Blocks::Block block{};
    {
        const std::scoped_lock lock(blocks.mutex);
        const auto found = blocks.all.find(data);
        block = found->second;
        blocks.all.erase(found);
    }
    if (block.allocated_on != stream) {
        tessera_stream_wait(device_of(context), block.allocated_on,
                            stream);  // a failure has no one to be told to; the memory is freed in any case
    }
    block.memory->deleter(block.memory);
}

}  // namespace

dlpack::ManagedTensorVersioned* allocate_by(const dlpack::ExchangeApi& api, tessera_element_type type, int device,
                                            std::size_t ndim, const std::int64_t* shape)
{
    FailedAllocation failed;
    dlpack::ManagedTensorVersioned* const made = allocate_bytes(api, dlpack_type_of(type), device, ndim, shape, failed);
    if (made == nullptr) {
        PyErr_Clear();
        raise("out_of_memory",
              "the result of " + shape_text(static_cast<int>(ndim), shape) + " was not allocated: " + failed.text,
              "free memory, or pass out");
    }
    return made;
}

Workspace::Workspace(const dlpack::ExchangeApi* api, tessera_stream stream, int device)
    : api_(api), stream_(stream), device_(device)
{
    if (api == nullptr || device < 0 || device >= max_devices) {
        return;
    }
    const dlpack::ExchangeApi*& framework = Blocks::get().frameworks[static_cast<std::size_t>(device)];
    if (framework == nullptr) [[unlikely]] {
        framework = api;
        check(tessera_set_workspace_allocator(device, reinterpret_cast<void*>(static_cast<std::intptr_t>(device)),
                                              allocate_block, free_block),
              "tessera");
    }
}

Workspace::~Workspace()
{
    if (memory_ != nullptr) {
        memory_->deleter(memory_);  // in the order of the framework's stream, on which the launch is
    }
}

const tessera_options* Workspace::options(const tessera_plan* plan, const tessera_matrix& a, const tessera_matrix& b,
                                          const tessera_matrix& d, const tessera_epilogue& epilogue,
                                          const tessera_options& wanted)
{
    int capturing = 0;
    if (api_ == nullptr) {
        return &wanted;
    }
    check(tessera_is_capturing(stream_, &capturing), "tessera");
    if (capturing == 0) {
        return &wanted;
    }
    std::size_t bytes = tessera_plan_workspace_bytes(plan);
    if (plan == nullptr) {
        tessera_plan* chosen = nullptr;
        check(tessera_plan_create(device_, &a, &b, &d, &epilogue, &wanted, &chosen), "tessera.gemm");
        bytes = tessera_plan_workspace_bytes(chosen);
        tessera_plan_destroy(chosen);
    }
    options_ = wanted;
    options_.workspace_owner = TESSERA_WORKSPACE_OF_CALLER;
    options_.workspace_bytes = bytes;
    if (bytes > 0) {
        const auto count = static_cast<std::int64_t>(bytes);
        FailedAllocation failed;
        memory_ = allocate_bytes(*api_, bytes_type, device_, 1, &count, failed);
        if (memory_ == nullptr) {
            PyErr_Clear();
            raise("out_of_memory",
                  "a workspace of " + std::to_string(bytes) + " bytes was not allocated: " + failed.text,
                  "free memory, or limit the workspace: workspace_limit=0");
        }
        options_.workspace = static_cast<char*>(memory_->tensor.data) + memory_->tensor.byte_offset;
    }
    return &options_;
}

void release_workspaces()
{
    Blocks& blocks = Blocks::get();
    tessera_release_workspaces();
    for (int device = 0; device < max_devices; ++device) {
        const dlpack::ExchangeApi*& framework = blocks.frameworks[static_cast<std::size_t>(device)];
        if (framework != nullptr) {
            framework = nullptr;
            tessera_set_workspace_allocator(device, nullptr, nullptr, nullptr);
        }
    }
}

void require_no_gradient(std::initializer_list<nb::handle> tensors)
{
    static PyObject* const name = PyUnicode_InternFromString("requires_grad");
    bool requires_gradient = false;
    for (const nb::handle tensor : tensors) {
        if (tensor.is_none()) {
            continue;
        }
        PyObject* const flag = PyObject_GetAttr(tensor.ptr(), name);
        if (flag == nullptr) {
            PyErr_Clear();
            continue;
        }
        requires_gradient = requires_gradient || flag == Py_True;
        Py_DECREF(flag);
    }
    if (requires_gradient && nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")())) {
        raise("invalid_argument", "a tensor requires a gradient, and tessera.gemm has none",
              "tessera.torch.matmul or tessera.torch.linear, which have; or torch.no_grad(), or tensor.detach()");
    }
}

}  // namespace tessera::python
