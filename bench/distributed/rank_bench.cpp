#include "rank_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <utility>

#include "nccl.hpp"
#include "tessera/tessera.hpp"

namespace tessera::bench {
namespace {

using namespace distributed;
namespace nccl = distributed::detail;

/// A matrix with random values from -1 to 1, the same for the same seed.
DeviceBuffer<bf16> random_matrix(StreamRef stream, std::int64_t elements, unsigned seed)
{
    constexpr std::size_t pattern_size = 1'000'003;  // a prime: no row repeats the one above
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> distribution(-1.0F, 1.0F);
    std::vector<bf16> pattern(std::min<std::size_t>(pattern_size, static_cast<std::size_t>(elements)));
    for (bf16& value : pattern) {
        value = bf16(distribution(generator));
    }
    DeviceBuffer<bf16> matrix(stream, elements);
    const auto source = DeviceBuffer<bf16>::from_host(stream, pattern);
    for (std::size_t begin = 0; begin < matrix.size(); begin += pattern.size()) {
        const std::size_t count = std::min(pattern.size(), matrix.size() - begin);
        tessera::detail::check(cudaMemcpyAsync(matrix.data() + begin, source.data(), count * sizeof(bf16),
                                               cudaMemcpyDeviceToDevice, stream.get()),
                               "cudaMemcpyAsync", "random_matrix", std::source_location::current());
    }
    return matrix;
}

struct DistributedContender {
    std::string name;
    std::function<void(StreamRef)> launch;
    bool is_compared = false;
    std::string explained{};
};

/// Matrices of one rank for one problem.
class RankProblem {
public:
    RankProblem(const RankCommunicators& communicators, const DistributedShape& shape, Collective collective,
                StreamRef stream)
        : plain_(*communicators.plain),
          shape_(shape),
          collective_(collective),
          stream_(stream),
          gathers_(collective == Collective::all_gather),
          rows_(Share::of(shape.m, plain_.size(), plain_.rank())),
          inner_(Share::of(shape.k, plain_.size(), plain_.rank())),
          outer_(Share::of(shape.n, plain_.size(), plain_.rank())),
          a_columns_(gathers_ ? shape.k : inner_.size),
          b_columns_(gathers_ ? outer_.size : shape.n),
          a_(random_matrix(stream, (gathers_ ? rows_.size : shape.m) * a_columns_,
                           static_cast<unsigned>(plain_.rank()) + 1)),
          b_(random_matrix(stream, a_columns_ * b_columns_, static_cast<unsigned>(plain_.rank()) + 100)),
          gathered_(stream, gathers_ ? shape.m * shape.k : 0),
          whole_(stream, shape.m * b_columns_),
          expected_(stream, collective == Collective::reduce_scatter ? rows_.size * shape.n : shape.m * b_columns_),
          d_(stream, expected_.size())
    {}

    std::vector<DistributedContender> contenders(const RankCommunicators& communicators,
                                                 const DistributedOptions& options)
    {
        std::vector<DistributedContender> all;
        const auto a = gathers_ ? gathered_.matrix(shape_.m, shape_.k) : a_.matrix(shape_.m, a_columns_);
        const auto b = b_.matrix(a_columns_, b_columns_);
        const auto product = [this, a, b](StreamRef stream) {
            Gemm::launch(stream, a, b,
                         gathers_ ? expected_.matrix(shape_.m, b_columns_) : whole_.matrix(shape_.m, b_columns_));
        };
        all.push_back({"product", product});
        all.push_back({"communication", [this](StreamRef stream) { communicate(stream); }});
        all.push_back({"in turn", [this, product](StreamRef stream) {
                           if (gathers_) {
                               communicate(stream);
                               product(stream);
                           } else {
                               product(stream);
                               communicate(stream);
                           }
                       }});
        for (const std::string& moved : options.moved) {
            const Communicator& communicator = *communicators.ours.at(moved);
            std::vector<int> counts = options.chunks;
            counts.insert(counts.begin(), 0);
            for (const int chunks : counts) {
                const ShardedGemm& plan = plans_.emplace_back(prepare(communicator, chunks));
                all.push_back({fmt::format("ours, {}{}", moved,
                                           chunks == 0 ? fmt::format(" (chose {})", plan.chunks())
                                                       : fmt::format(", {} chunks", chunks)),
                               [&plan](StreamRef stream) { plan.launch(stream); }, true,
                               chunks == 0 ? plan.explain() : std::string()});
            }
        }
        return all;
    }

    /// Returns how far D is from the product of one GPU: above 1, it is wrong.
    ///
    /// Both round D to bf16, and so each is off by up to u * |D|, with u = 2^-8. Of a sum over ranks, ours also rounds the sums of all
    /// ranks but one, and NCCL those of all: each by up to u times a sum of k / ranks products, which for values from -1 to 1 is
    /// below 7 standard deviations. The two may add products in another order, and a tensor core truncates its sum to 24 bits after 16
    /// products.
    double difference()
    {
        const std::vector<bf16> found = d_.to_vector();
        const std::vector<bf16> expected = expected_.to_vector();
        constexpr double roundoff = 1.0 / 256;
        const double ranks = size();
        const double products = static_cast<double>(shape_.k) / (gathers_ ? 1 : ranks);
        const double largest_sum = 7 * std::sqrt(products) / 3;
        const double of_parts = gathers_ ? 0 : (2 * ranks - 1) * largest_sum;
        const double of_order = 2 * products / 16 * 0x1p-23 * largest_sum;
        double largest = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            const double one = double{float(found[i])};
            const double other = double{float(expected[i])};
            const double allowed = roundoff * (std::abs(one) + std::abs(other) + of_parts) + of_order;
            largest = std::isnan(one) ? 2 : std::max(largest, std::abs(one - other) / allowed);
        }
        return largest;
    }
    void clear() { d_.fill(stream_, bf16(std::nanf(""))); }
    int size() const { return plain_.size(); }

private:
    void communicate(StreamRef stream) const
    {
        const auto& functions = nccl::Nccl::get("bench", std::source_location::current());
        const auto where = std::source_location::current();
        const std::size_t elements = static_cast<std::size_t>(rows_.size * (gathers_ ? shape_.k : shape_.n));
        nccl::NcclResult result{};
        switch (collective_) {
            case Collective::all_gather:
                result = functions.all_gather(a_.data(), const_cast<bf16*>(gathered_.data()), elements,
                                              nccl::NcclType::bf16, plain_.get(), stream.get());
                break;
            case Collective::reduce_scatter:
                result = functions.reduce_scatter(whole_.data(), const_cast<bf16*>(expected_.data()), elements,
                                                  nccl::NcclType::bf16, nccl::NcclOperation::sum, plain_.get(),
                                                  stream.get());
                break;
            case Collective::all_reduce:
                result =
                    functions.all_reduce(whole_.data(), const_cast<bf16*>(expected_.data()), whole_.size(),
                                         nccl::NcclType::bf16, nccl::NcclOperation::sum, plain_.get(), stream.get());
                break;
        }
        while (result == nccl::NcclResult::in_progress) {
            functions.comm_get_async_error(plain_.get(), &result);
        }
        if (result != nccl::NcclResult::success) {
            throw Error(ErrorCode::communication_failed, "bench", where, functions.get_error_string(result));
        }
    }

    ShardedGemm prepare(const Communicator& communicator, int chunks)
    {
        const ShardedGemmOptions options{.chunks = chunks};
        const auto b = b_.matrix(a_columns_, b_columns_);
        if (gathers_) {
            return ShardedGemm::prepare(
                communicator, ShardedMatrix::by_rows(communicator, shape_.m, shape_.k, a_.matrix(rows_.size, shape_.k)),
                ShardedMatrix::by_columns(communicator, shape_.k, shape_.n, b),
                ShardedMatrix::by_columns(communicator, shape_.m, shape_.n, d_.matrix(shape_.m, b_columns_)), {},
                options);
        }
        const auto a = ShardedMatrix::by_columns(communicator, shape_.m, shape_.k, a_.matrix(shape_.m, a_columns_));
        const auto rows = ShardedMatrix::by_rows(communicator, shape_.k, shape_.n, b);
        const auto d = collective_ == Collective::reduce_scatter
                           ? ShardedMatrix::by_rows(communicator, shape_.m, shape_.n, d_.matrix(rows_.size, shape_.n))
                           : ShardedMatrix::replicated(communicator, shape_.m, shape_.n, d_.matrix(shape_.m, shape_.n));
        return ShardedGemm::prepare(communicator, a, rows, d, {}, options);
    }

    const Communicator& plain_;
    DistributedShape shape_;
    Collective collective_;
    StreamRef stream_;
    bool gathers_;
    Share rows_;
    Share inner_;
    Share outer_;
    std::int64_t a_columns_;
    std::int64_t b_columns_;
    DeviceBuffer<bf16> a_;
    DeviceBuffer<bf16> b_;
    DeviceBuffer<bf16> gathered_;
    DeviceBuffer<bf16> whole_;
    DeviceBuffer<bf16> expected_;
    DeviceBuffer<bf16> d_;
    std::list<ShardedGemm> plans_;
};

/// What one sample enqueues.
class Sample {
public:
    Sample(StreamRef stream, const DistributedContender& contender, const DistributedOptions& options)
        : contender_(contender), launches_(options.launches)
    {
        contender.launch(stream);  // connections, kernels and workspaces that the first call makes
        if (options.in_graph) {
            graph_ = Graph::capture(stream, [&](StreamRef captured) {
                for (std::size_t i = 0; i < launches_; ++i) {
                    contender.launch(captured);
                }
            });
        }
    }
    void enqueue(StreamRef stream) const
    {
        if (graph_) {
            graph_->launch(stream);
            return;
        }
        for (std::size_t i = 0; i < launches_; ++i) {
            contender_.launch(stream);
        }
    }

private:
    const DistributedContender& contender_;
    std::size_t launches_;
    std::optional<Graph> graph_;
};

void measure(const RankCommunicators& communicators, const DistributedOptions& options, const DistributedShape& shape,
             Collective collective, Meeting& meeting)
{
    const Communicator& plain = *communicators.plain;
    const auto rank = static_cast<std::size_t>(plain.rank());
    const Stream stream(plain.device());
    RankProblem problem(communicators, shape, collective, stream);
    const std::vector<DistributedContender> contenders = problem.contenders(communicators, options);
    ShapeReport report{.shape = shape, .collective = collective, .contenders = {}, .explained = {}};
    // The result of one GPU for each: the product of all that is gathered, or the sum of whole products.
    contenders[2].launch(stream);
    plain.synchronize(stream);
    for (const DistributedContender& contender : contenders) {
        ContenderTimes times{.name = contender.name, .seconds = {}};
        if (contender.is_compared && options.verifies) {
            problem.clear();
            contender.launch(stream);
            plain.synchronize(stream);
            times.largest_difference = problem.difference();
        }
        if (!contender.explained.empty()) {
            report.explained.push_back(contender.explained);
        }
        report.contenders.push_back(std::move(times));
    }
    meeting.barrier.arrive_and_wait();
    std::list<Sample> samples;
    for (const DistributedContender& contender : contenders) {
        samples.emplace_back(stream, contender, options);
    }
    const Event begin(plain.device(), EventKind::timing);
    const Event end(plain.device(), EventKind::timing);
    for (std::size_t round = 0; round < options.rounds; ++round) {
        std::size_t index = 0;
        for (const Sample& sample : samples) {
            plain.synchronize(stream);
            meeting.barrier.arrive_and_wait();
            sample.enqueue(stream);  // the lead-in: the clock settles, and the ranks come into step
            begin.record(stream);
            sample.enqueue(stream);
            end.record(stream);
            plain.synchronize(stream);
            meeting.seconds[rank] = end.seconds_since(begin) / static_cast<double>(options.launches);
            meeting.barrier.arrive_and_wait();
            report.contenders[index++].seconds.push_back(
                *std::max_element(meeting.seconds.begin(), meeting.seconds.end()));
            meeting.barrier.arrive_and_wait();
        }
    }
    plain.synchronize(stream);
    samples.clear();
    if (rank == 0) {
        meeting.reports.push_back(std::move(report));
    }
    meeting.barrier.arrive_and_wait();
}

}  // namespace

std::string to_string(Collective collective)
{
    switch (collective) {
        case Collective::all_gather: return "all-gather + product";
        case Collective::reduce_scatter: return "product + reduce-scatter";
        case Collective::all_reduce: return "product + all-reduce";
    }
    return "unknown";
}

void run_rank(const RankCommunicators& communicators, const DistributedOptions& options, Meeting& meeting)
{
    communicators.plain->device().make_current();
    for (const Collective collective : options.collectives) {
        for (const DistributedShape& shape : options.shapes) {
            measure(communicators, options, shape, collective, meeting);
        }
    }
}

}  // namespace tessera::bench
