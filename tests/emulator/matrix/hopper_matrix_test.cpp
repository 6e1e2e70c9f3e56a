// Every matrix instruction of sm_90a against an H200's results for the same PTX and the same inputs.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "instruction_forms.hpp"
#include "run_ptx.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::probe;

struct Checksum {
    const char* form;
    const char* input;
    std::uint64_t value;
};
constexpr Checksum checksums[] = {
#include "h200_matrix_checksums.inc"
};

struct Outcome {
    LaunchResult result;
    std::uint64_t checksum = 0;
    std::string findings;
};

Outcome run_form(const InstructionForm& form, InputClass input, Numerics numerics,
                 Schedule schedule = Schedule::in_order, std::uint64_t seed = 1)
{
    test::PtxRun run(matrix_module({form}), "h200");
    run.options.numerics = numerics;
    run.options.schedule = schedule;
    run.options.seed = seed;
    const std::uint64_t in = run.buffer(form_inputs(form, input));
    const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(form.output_words));
    const LaunchResult result =
        run.launch(form.kernel, {.block = {form.threads, 1, 1}, .dynamic_shared = form.shared_bytes}, in, out);
    const std::vector<std::uint32_t> words = run.read<std::uint32_t>(out, form.output_words);
    return {result, fnv1a(words.data(), words.size() * 4), run.report.total() == 0 ? "" : run.report.text()};
}

TEST_CASE("every form of sm_90a gives an H200's bits")
{
    const std::vector<InstructionForm> forms = all_forms();
    REQUIRE(std::size(checksums) == forms.size() * input_class_names.size());
    const Checksum* expected = checksums;
    for (const InstructionForm& form : forms) {
        for (std::size_t input = 0; input < input_class_names.size(); ++input, ++expected) {
            CAPTURE(form.name);
            CAPTURE(input_class_names[input]);
            REQUIRE(form.name == expected->form);
            REQUIRE(std::string(input_class_names[input]) == expected->input);
            const Outcome outcome = run_form(form, static_cast<InputClass>(input), Numerics::exact);
            CHECK(outcome.result.code == 0);
            CHECK(outcome.findings == "");
            CHECK(outcome.checksum == expected->value);
        }
    }
}

TEST_CASE("the fast path gives the same bits where sums are exact")
{
    const std::vector<InstructionForm> forms = all_forms();
    for (std::size_t i = 0; i < forms.size(); ++i) {
        CAPTURE(forms[i].name);
        const Outcome outcome = run_form(forms[i], InputClass::integers, Numerics::fast);
        CHECK(outcome.result.code == 0);
        CHECK(outcome.checksum == checksums[i * input_class_names.size()].value);
    }
}

TEST_CASE("wgmma gives the same bits in every schedule")
{
    const std::vector<InstructionForm> forms = all_forms();
    for (std::size_t i = 0; i < forms.size(); i += 7) {
        if (forms[i].threads != 128) {
            continue;
        }
        for (const Schedule schedule : {Schedule::random, Schedule::adversarial}) {
            for (std::uint64_t seed = 1; seed <= 5; ++seed) {
                CAPTURE(forms[i].name);
                CAPTURE(seed);
                const Outcome outcome = run_form(forms[i], InputClass::normal, Numerics::exact, schedule, seed);
                CHECK(outcome.findings == "");
                CHECK(outcome.checksum == checksums[i * input_class_names.size() + 1].value);
            }
        }
    }
}

}  // namespace
