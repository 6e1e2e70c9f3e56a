#pragma once

// Small kernels that execute one matrix instruction each, and their inputs: the same PTX and the same bits on a GPU
// (tests/emulator/hardware/matrix_probe.cu) and on the emulated device (hopper_matrix_test.cpp). Every kernel has the
// parameters (.u64 in, .u64 out) and runs as one CTA.

#include "warp_forms.hpp"
#include "wgmma_forms.hpp"

namespace tessera::probe {

inline std::vector<InstructionForm> all_forms()
{
    std::vector<InstructionForm> forms;
    add_mma_forms(forms);
    add_wmma_forms(forms);
    add_transfer_forms(forms);
    add_wgmma_forms(forms);
    for (std::size_t i = 0; i < forms.size(); ++i) {  // kernel names are unique, whatever the forms' names
        const std::string unique = "k" + number(i);
        forms[i].ptx.replace(forms[i].ptx.find(forms[i].kernel), forms[i].kernel.size(), unique);
        forms[i].kernel = unique;
    }
    return forms;
}

inline std::string matrix_module(const std::vector<InstructionForm>& forms)
{
    std::string text = ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n";
    for (const InstructionForm& form : forms) {
        text += form.ptx;
    }
    return text;
}

}  // namespace tessera::probe
