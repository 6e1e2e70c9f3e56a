#include "gemm/model_layers.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace tessera::bench {
namespace {

// 13 counts, a prime number, so that layers of the same kind meet all of them.
constexpr std::array<std::int64_t, 13> token_counts{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr std::int64_t most_outputs = std::int64_t{1} << 28;

Problem problem_of(const ModelLayer& layer, const Types& types, const Orders& orders, std::int64_t tokens)
{
    Problem problem{{tokens, layer.n, layer.k}, types.input, orders, types.output};
    problem.layer = fmt::format("{} {}", layer.family, layer.layer);
    return problem;
}

}  // namespace

const std::vector<ModelLayer>& model_layers()
{
    // N and K follow from the configuration that each family publishes with its weights: hidden size, heads, key-value
    // heads, head size, MLP size, vocabulary. Q, K and V are one product, and so are gate and up, as inference engines
    // merge them. A router has one column per expert, and DeepSeek-V3's attention is of low rank.
    static const std::vector<ModelLayer> layers{
        {"Llama 3 8B", "QKV", 6144, 4096},
        {"Llama 3 8B", "attention output", 4096, 4096},
        {"Llama 3 8B", "gate+up", 28672, 4096},
        {"Llama 3 8B", "down", 4096, 14336},
        {"Llama 3 8B", "LM head", 128256, 4096},
        {"Llama 3 70B", "QKV", 10240, 8192},
        {"Llama 3 70B", "attention output", 8192, 8192},
        {"Llama 3 70B", "gate+up", 57344, 8192},
        {"Llama 3 70B", "down", 8192, 28672},
        {"Llama 3 70B", "LM head", 128256, 8192},
        {"Llama 3 405B", "QKV", 18432, 16384},
        {"Llama 3 405B", "attention output", 16384, 16384},
        {"Llama 3 405B", "gate+up", 106496, 16384},
        {"Llama 3 405B", "down", 16384, 53248},
        {"Llama 3 405B", "LM head", 128256, 16384},
        {"Llama 3 70B on 8 devices", "QKV", 1280, 8192},
        {"Llama 3 70B on 8 devices", "attention output", 8192, 1024},
        {"Llama 3 70B on 8 devices", "gate+up", 7168, 8192},
        {"Llama 3 70B on 8 devices", "down", 8192, 3584},
        {"Llama 3 70B on 8 devices", "LM head", 16032, 8192},
        {"Llama 3 405B on 8 devices", "QKV", 2304, 16384},
        {"Llama 3 405B on 8 devices", "attention output", 16384, 2048},
        {"Llama 3 405B on 8 devices", "gate+up", 13312, 16384},
        {"Llama 3 405B on 8 devices", "down", 16384, 6656},
        {"Qwen 2.5 0.5B", "QKV", 1152, 896},
        {"Qwen 2.5 0.5B", "attention output", 896, 896},
        {"Qwen 2.5 0.5B", "gate+up", 9728, 896},
        {"Qwen 2.5 0.5B", "down", 896, 4864},
        {"Qwen 2.5 0.5B", "LM head", 151936, 896},
        {"Qwen 2.5 1.5B", "QKV", 2048, 1536},
        {"Qwen 2.5 1.5B", "attention output", 1536, 1536},
        {"Qwen 2.5 1.5B", "gate+up", 17920, 1536},
        {"Qwen 2.5 1.5B", "down", 1536, 8960},
        {"Qwen 2.5 1.5B", "LM head", 151936, 1536},
        {"Qwen 2.5 7B", "QKV", 4608, 3584},
        {"Qwen 2.5 7B", "attention output", 3584, 3584},
        {"Qwen 2.5 7B", "gate+up", 37888, 3584},
        {"Qwen 2.5 7B", "down", 3584, 18944},
        {"Qwen 2.5 7B", "LM head", 152064, 3584},
        {"Qwen 2.5 32B", "QKV", 7168, 5120},
        {"Qwen 2.5 32B", "attention output", 5120, 5120},
        {"Qwen 2.5 32B", "gate+up", 55296, 5120},
        {"Qwen 2.5 32B", "down", 5120, 27648},
        {"Qwen 2.5 32B", "LM head", 152064, 5120},
        {"Qwen 2.5 72B", "gate+up", 59136, 8192},
        {"Qwen 2.5 72B", "down", 8192, 29568},
        {"Qwen 3 0.6B", "QKV", 4096, 1024},
        {"Qwen 3 0.6B", "attention output", 1024, 2048},
        {"Qwen 3 0.6B", "gate+up", 6144, 1024},
        {"Qwen 3 0.6B", "down", 1024, 3072},
        {"Qwen 3 0.6B", "LM head", 151936, 1024},
        {"Qwen 3 8B", "gate+up", 24576, 4096},
        {"Qwen 3 8B", "down", 4096, 12288},
        {"Qwen 3 8B", "LM head", 151936, 4096},
        {"Qwen 3 14B", "gate+up", 34816, 5120},
        {"Qwen 3 14B", "down", 5120, 17408},
        {"Qwen 3 32B", "QKV", 10240, 5120},
        {"Qwen 3 32B", "attention output", 5120, 8192},
        {"Qwen 3 32B", "gate+up", 51200, 5120},
        {"Qwen 3 32B", "down", 5120, 25600},
        {"Qwen 3 30B-A3B", "QKV", 5120, 2048},
        {"Qwen 3 30B-A3B", "attention output", 2048, 4096},
        {"Qwen 3 30B-A3B", "expert gate+up", 1536, 2048},
        {"Qwen 3 30B-A3B", "expert down", 2048, 768},
        {"Qwen 3 30B-A3B", "router", 128, 2048},
        {"Qwen 3 30B-A3B", "LM head", 151936, 2048},
        {"Qwen 3 235B-A22B", "QKV", 9216, 4096},
        {"Qwen 3 235B-A22B", "attention output", 4096, 8192},
        {"Qwen 3 235B-A22B", "expert gate+up", 3072, 4096},
        {"Qwen 3 235B-A22B", "expert down", 4096, 1536},
        {"Qwen 3 235B-A22B", "router", 128, 4096},
        {"Mistral 7B", "LM head", 32000, 4096},
        {"Mixtral 8x7B", "router", 8, 4096},
        {"Mixtral 8x22B", "QKV", 8192, 6144},
        {"Mixtral 8x22B", "attention output", 6144, 6144},
        {"Mixtral 8x22B", "expert gate+up", 32768, 6144},
        {"Mixtral 8x22B", "expert down", 6144, 16384},
        {"Mixtral 8x22B", "router", 8, 6144},
        {"Mixtral 8x22B", "LM head", 32000, 6144},
        {"DeepSeek-V3", "Q down", 1536, 7168},
        {"DeepSeek-V3", "KV down", 576, 7168},
        {"DeepSeek-V3", "Q up", 24576, 1536},
        {"DeepSeek-V3", "KV up", 32768, 512},
        {"DeepSeek-V3", "attention output", 7168, 16384},
        {"DeepSeek-V3", "gate+up", 36864, 7168},
        {"DeepSeek-V3", "down", 7168, 18432},
        {"DeepSeek-V3", "expert gate+up", 4096, 7168},
        {"DeepSeek-V3", "expert down", 7168, 2048},
        {"DeepSeek-V3", "router", 256, 7168},
        {"DeepSeek-V3", "LM head", 129280, 7168},
        {"Gemma 2 2B", "QKV", 4096, 2304},
        {"Gemma 2 2B", "attention output", 2304, 2048},
        {"Gemma 2 2B", "gate+up", 18432, 2304},
        {"Gemma 2 2B", "down", 2304, 9216},
        {"Gemma 2 2B", "LM head", 256000, 2304},
        {"Gemma 2 9B", "attention output", 3584, 4096},
        {"Gemma 2 9B", "gate+up", 28672, 3584},
        {"Gemma 2 9B", "down", 3584, 14336},
        {"Gemma 2 9B", "LM head", 256000, 3584},
        {"Gemma 2 27B", "QKV", 8192, 4608},
        {"Gemma 2 27B", "attention output", 4608, 4096},
        {"Gemma 2 27B", "gate+up", 73728, 4608},
        {"Gemma 2 27B", "down", 4608, 36864},
        {"GPT-2", "QKV", 2304, 768},
        {"GPT-2", "attention output", 768, 768},
        {"GPT-2", "MLP up", 3072, 768},
        {"GPT-2", "MLP down", 768, 3072},
        {"GPT-2", "LM head", 50257, 768},
        {"GPT-2 XL", "QKV", 4800, 1600},
        {"GPT-2 XL", "attention output", 1600, 1600},
        {"GPT-2 XL", "MLP up", 6400, 1600},
        {"GPT-2 XL", "MLP down", 1600, 6400},
        {"GPT-2 XL", "LM head", 50257, 1600},
        {"BERT large", "QKV", 3072, 1024},
        {"BERT large", "attention output", 1024, 1024},
        {"BERT large", "MLP down", 1024, 4096},
        {"BERT large", "LM head", 30522, 1024},
        {"ViT-H/14", "QKV", 3840, 1280},
        {"ViT-H/14", "attention output", 1280, 1280},
        {"ViT-H/14", "MLP up", 5120, 1280},
        {"ViT-H/14", "MLP down", 1280, 5120},
        {"ViT-H/14", "patches", 1280, 588},
        {"ViT-H/14", "classes", 1000, 1280},
    };
    return layers;
}

std::vector<Problem> model_problems(const Types& types, const Orders& orders, const std::vector<std::int64_t>& tokens)
{
    std::vector<Problem> problems;
    std::size_t turn = 0;
    for (const ModelLayer& layer : model_layers()) {
        if (tokens.empty()) {
            std::int64_t count = token_counts[turn++ % token_counts.size()];
            while (count * layer.n > most_outputs) {
                count /= 2;
            }
            problems.push_back(problem_of(layer, types, orders, count));
        }
        for (const std::int64_t count : tokens) {
            problems.push_back(problem_of(layer, types, orders, count));
        }
    }
    return problems;
}

}  // namespace tessera::bench
