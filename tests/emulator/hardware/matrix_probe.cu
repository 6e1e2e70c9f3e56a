// Executes the kernels of ../matrix/instruction_forms.hpp on a Hopper GPU (sm_90a) and prints the FNV-1a checksum of
// what each of them stored: "name|class|checksum". The emulated device must reproduce them:
// tests/emulator/matrix/hopper_matrix_test.cpp.
//
// Build:  nvcc -std=c++20 -O1 -cudart static matrix_probe.cu -o matrix_probe
//         ./matrix_probe --module > forms.ptx  &&  ptxas -arch=sm_90a forms.ptx -o forms.cubin
// Run:    ./matrix_probe forms.cubin [FILE]     FILE gets all output words, in the order of the lines

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../matrix/instruction_forms.hpp"
#include "probe_check.hpp"

using namespace tessera::probe;

int main(int count, char** arguments)
{
    const std::vector<InstructionForm> forms = all_forms();
    if (count > 1 && std::string(arguments[1]) == "--module") {
        std::fputs(matrix_module(forms).c_str(), stdout);
        return 0;
    }
    if (count < 2) {
        std::fprintf(stderr, "usage: %s CUBIN [FILE] | --module\n", arguments[0]);
        return 2;
    }
    std::FILE* const dump = count > 2 ? std::fopen(arguments[2], "wb") : nullptr;
    cudaLibrary_t library = nullptr;
    check(cudaLibraryLoadFromFile(&library, arguments[1], nullptr, nullptr, 0, nullptr, nullptr, 0), arguments[1]);
    for (const InstructionForm& form : forms) {
        cudaKernel_t kernel = nullptr;
        check(cudaLibraryGetKernel(&kernel, library, form.kernel.c_str()), form.name);
        const auto* const function = reinterpret_cast<const void*>(kernel);
        check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(form.shared_bytes)),
              form.name);
        for (std::size_t input = 0; input < input_class_names.size(); ++input) {
            const std::vector<std::uint32_t> words = form_inputs(form, static_cast<InputClass>(input));
            void *in = nullptr, *out = nullptr;
            check(cudaMalloc(&in, words.size() * 4 + 4), form.name);
            check(cudaMalloc(&out, form.output_words * 4), form.name);
            check(cudaMemcpy(in, words.data(), words.size() * 4, cudaMemcpyHostToDevice), form.name);
            check(cudaMemset(out, 0, form.output_words * 4), form.name);
            void* parameters[] = {&in, &out};
            check(cudaLaunchKernel(function, dim3(1), dim3(form.threads), parameters, form.shared_bytes, nullptr),
                  form.name);
            check(cudaDeviceSynchronize(), form.name);
            std::vector<std::uint32_t> result(form.output_words);
            check(cudaMemcpy(result.data(), out, result.size() * 4, cudaMemcpyDeviceToHost), form.name);
            std::printf("%s|%s|0x%016llX\n", form.name.c_str(), input_class_names[input],
                        static_cast<unsigned long long>(fnv1a(result.data(), result.size() * 4)));
            if (dump != nullptr) {
                std::fwrite(result.data(), 4, result.size(), dump);
            }
            cudaFree(in);
            cudaFree(out);
        }
    }
    if (dump != nullptr) {
        std::fclose(dump);
    }
    return 0;
}
