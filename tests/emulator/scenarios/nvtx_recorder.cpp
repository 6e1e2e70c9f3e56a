// A tool as NVTX loads it: appends the name of each range of the domain "tessera-scenarios" to the file $NVTX_RECORD.

#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int our_domain;  // its address is the handle

nvtxDomainHandle_t create_domain(const char* name)
{
    return std::strcmp(name, "tessera-scenarios") == 0 ? reinterpret_cast<nvtxDomainHandle_t>(&our_domain) : nullptr;
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes)
{
    const char* const path = std::getenv("NVTX_RECORD");
    if (domain == reinterpret_cast<nvtxDomainHandle_t>(&our_domain) && path != nullptr) {
        if (std::FILE* const file = std::fopen(path, "a")) {
            std::fprintf(file, "%s\n", attributes->message.ascii);
            std::fclose(file);
        }
    }
    return 0;
}

template <class Function>
void replace(NvtxFunctionTable table, unsigned number, Function* function)
{
    *table[number] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of)
{
    const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
        size <= NVTX_CBID_CORE2_DomainCreateA) {
        return 0;
    }
    replace(table, NVTX_CBID_CORE2_DomainCreateA, create_domain);
    replace(table, NVTX_CBID_CORE2_DomainRangePushEx, push);
    return 1;
}
