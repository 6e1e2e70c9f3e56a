// Functions for tests in the emulated process, found by name through dlsym.

#include <cstring>

#include "runtime/state.hpp"

using namespace tessera::emulator;

extern "C" {

/// The n-th call from now on of the API function `name` (null: of any) fails with `code`.
void tessera_emulator_fail_call(const char* name, unsigned n, int code)
{
    Runtime::get().faults.fail(name == nullptr ? "" : name, n, code);
}

/// Number of counted API calls.
unsigned long tessera_emulator_calls() { return Runtime::get().faults.calls(); }

/// Forgets planned faults and the count.
void tessera_emulator_clear_faults() { Runtime::get().faults.clear(); }

/// Occurrences of findings of the kind `kind` ("shared-race"); null: of all kinds.
unsigned long tessera_emulator_findings(const char* kind)
{
    unsigned long count = 0;
    for (const Finding& finding : Runtime::get().report.findings()) {
        if (kind == nullptr || name_of(finding.kind) == kind) {
            count += finding.count;
        }
    }
    return count;
}

void tessera_emulator_clear_findings() { Runtime::get().report.clear(); }

}  // extern "C"
