#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "c/guard.hpp"
#include "c/structures.hpp"
#include "tessera/distributed.hpp"
#include "tessera_distributed.h"

struct tessera_communicator {
    tessera::distributed::Communicator communicator;
};

struct tessera_sharded_plan {
    tessera::distributed::ShardedGemm product;
    int device;
};

namespace {

using namespace tessera;
using namespace tessera::distributed;
using c::copy_text;
using c::guarded;
using c::refuse;
using c::require_pointer;

CommunicatorOptions options_of(const tessera_communicator_options* given)
{
    CommunicatorOptions options;
    if (given == nullptr) {
        return options;
    }
    tessera_communicator_options known{};
    if (given->size < sizeof(given->size) || given->size > sizeof(known)) {
        refuse("set .size to sizeof the structure", "the size of the options of a communicator is {}", given->size);
    }
    std::memcpy(&known, given, given->size);
    if (!std::isfinite(known.timeout_seconds) || known.timeout_seconds < 0 || known.timeout_seconds > 1e6) {
        refuse("seconds from 0 to a million", "the timeout is {} s", known.timeout_seconds);
    }
    if (known.timeout_seconds > 0) {
        options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(known.timeout_seconds * 1000)));
    }
    options.max_ctas = known.max_ctas;
    options.copy_engines = known.no_copy_engines == 0;
    return options;
}

ShardedMatrix matrix_of(const Communicator& communicator, const char* name, const tessera_sharded_matrix* given,
                        bool writable)
{
    require_pointer(given, name);
    const MatrixOperand local = c::used_operand(name, &given->local, writable);
    switch (given->sharding) {
        case TESSERA_REPLICATED: return ShardedMatrix::replicated(communicator, given->rows, given->columns, local);
        case TESSERA_BY_ROWS: return ShardedMatrix::by_rows(communicator, given->rows, given->columns, local);
        case TESSERA_BY_COLUMNS: return ShardedMatrix::by_columns(communicator, given->rows, given->columns, local);
        case TESSERA_BY_BLOCKS:
            if (given->grid_order != TESSERA_ALONG_ROWS && given->grid_order != TESSERA_ALONG_COLUMNS) {
                refuse("one of the numbers of tessera_distributed.h", "{} is no order of a grid", given->grid_order);
            }
            return ShardedMatrix::by_blocks(communicator, given->rows, given->columns, given->grid_rows,
                                            given->grid_columns, local, static_cast<GridOrder>(given->grid_order));
        default: refuse("one of the numbers of tessera_distributed.h", "{} is no sharding", given->sharding);
    }
}

}  // namespace

tessera_status tessera_communicator_from_environment(const tessera_communicator_options* options,
                                                     tessera_communicator** communicator)
{
    return guarded("tessera_communicator_from_environment", [&] {
        require_pointer(communicator, "communicator");
        *communicator = new tessera_communicator{Communicator::from_environment(options_of(options))};
    });
}

tessera_status tessera_communicator_from_broadcast(int32_t rank, int32_t size, int32_t device,
                                                   tessera_broadcast broadcast, void* context,
                                                   const tessera_communicator_options* options,
                                                   tessera_communicator** communicator)
{
    return guarded("tessera_communicator_from_broadcast", [&] {
        require_pointer(broadcast, "broadcast");
        require_pointer(communicator, "communicator");
        const auto call = [&](const std::string& given) {
            std::array<char, 512> text{};
            given.copy(text.data(), text.size() - 1);
            if (const int failed = broadcast(context, text.data(), text.size()); failed != 0) {
                refuse("0, once all ranks have the text", "the broadcast returned {}", failed);
            }
            text.back() = '\0';
            return std::string(text.data());
        };
        *communicator =
            new tessera_communicator{Communicator::from_broadcast(rank, size, device, call, options_of(options))};
    });
}

tessera_status tessera_communicator_borrow(ncclComm* nccl, const tessera_communicator_options* options,
                                           tessera_communicator** communicator)
{
    return guarded("tessera_communicator_borrow", [&] {
        require_pointer(nccl, "nccl");
        require_pointer(communicator, "communicator");
        *communicator = new tessera_communicator{Communicator::borrow(nccl, options_of(options))};
    });
}

tessera_status tessera_communicator_of_devices(const int32_t* devices, int32_t count,
                                               const tessera_communicator_options* options,
                                               tessera_communicator** communicators)
{
    return guarded("tessera_communicator_of_devices", [&] {
        require_pointer(devices, "devices");
        require_pointer(communicators, "communicators");
        if (count < 1) {
            refuse("1 or more", "there are {} devices", count);
        }
        std::vector<Communicator> made =
            Communicator::of_devices(std::span(devices, static_cast<std::size_t>(count)), options_of(options));
        std::vector<std::unique_ptr<tessera_communicator>> handles;
        for (Communicator& each : made) {
            handles.push_back(std::make_unique<tessera_communicator>(std::move(each)));
        }
        for (std::size_t i = 0; i < handles.size(); ++i) {
            communicators[i] = handles[i].release();
        }
    });
}

void tessera_communicator_destroy(tessera_communicator* communicator) { delete communicator; }

int tessera_communicator_rank(const tessera_communicator* communicator) { return communicator->communicator.rank(); }

int tessera_communicator_size(const tessera_communicator* communicator) { return communicator->communicator.size(); }

int tessera_communicator_device(const tessera_communicator* communicator)
{
    return communicator->communicator.device().ordinal();
}

ncclComm* tessera_communicator_nccl(const tessera_communicator* communicator)
{
    return communicator->communicator.get();
}

tessera_status tessera_communicator_describe(const tessera_communicator* communicator, char* text, size_t capacity,
                                             size_t* length)
{
    return guarded("tessera_communicator_describe", [&] {
        require_pointer(communicator, "communicator");
        copy_text(communicator->communicator.describe(), text, capacity, length);
    });
}

tessera_status tessera_communicator_synchronize(const tessera_communicator* communicator, tessera_stream stream)
{
    return guarded("tessera_communicator_synchronize", [&] {
        require_pointer(communicator, "communicator");
        const Communicator& used = communicator->communicator;
        used.synchronize(StreamRef(tessera::detail::known_device, stream, used.device().ordinal(), nullptr));
    });
}

void tessera_communicator_abort(const tessera_communicator* communicator, const char* reason)
{
    communicator->communicator.abort(reason == nullptr ? "" : reason);
}

tessera_status tessera_share_of(int64_t extent, int32_t ranks, int32_t rank, int64_t* begin, int64_t* count)
{
    return guarded("tessera_share_of", [&] {
        require_pointer(begin, "begin");
        require_pointer(count, "count");
        if (extent < 0 || ranks < 1 || rank < 0 || rank >= ranks) {
            refuse("an extent of 0 or more, and 0 <= rank < ranks", "there is no share of {} for rank {} of {}", extent,
                   rank, ranks);
        }
        const Share share = Share::of(extent, ranks, rank);
        *begin = share.begin;
        *count = share.size;
    });
}

tessera_status tessera_sharded_plan_create(const tessera_communicator* communicator, const tessera_sharded_matrix* a,
                                           const tessera_sharded_matrix* b, const tessera_sharded_matrix* d,
                                           const tessera_epilogue* epilogue, int32_t chunks,
                                           tessera_sharded_plan** plan)
{
    return guarded("tessera_sharded_plan_create", [&] {
        require_pointer(communicator, "communicator");
        require_pointer(plan, "plan");
        const Communicator& used = communicator->communicator;
        const ShardedMatrix matrix_a = matrix_of(used, "A", a, false);
        const ShardedMatrix matrix_b = matrix_of(used, "B", b, false);
        const ShardedMatrix matrix_d = matrix_of(used, "D", d, true);
        *plan = new tessera_sharded_plan{
            ShardedGemm::prepare(used, matrix_a, matrix_b, matrix_d, c::used_epilogue(epilogue), {.chunks = chunks}),
            used.device().ordinal()};
    });
}

void tessera_sharded_plan_destroy(tessera_sharded_plan* plan) { delete plan; }

tessera_status tessera_sharded_plan_launch(const tessera_sharded_plan* plan, tessera_stream stream)
{
    return guarded("tessera_sharded_plan_launch", [&] {
        require_pointer(plan, "plan");
        plan->product.launch(StreamRef(tessera::detail::known_device, stream, plan->device, nullptr));
    });
}

int tessera_sharded_plan_chunks(const tessera_sharded_plan* plan) { return plan->product.chunks(); }

tessera_status tessera_sharded_plan_explain(const tessera_sharded_plan* plan, char* text, size_t capacity,
                                            size_t* length)
{
    return guarded("tessera_sharded_plan_explain", [&] {
        require_pointer(plan, "plan");
        copy_text(plan->product.explain(), text, capacity, length);
    });
}
