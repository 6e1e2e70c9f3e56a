#pragma once

// PTX of a copy that completes on an mbarrier, for kernels with shared `data` at r1, the mbarrier `bar` at r2, which expects
// one arrival, global memory at d0, and a predicate `done`.

#include <string>

namespace tessera::emulator::test {

/// Copies from [d0] to data.
[[nodiscard]] inline std::string bulk_load(unsigned bytes)
{
    return "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0], " + std::to_string(bytes) +
           ", [r2];";
}

/// The thread whose predicate `issuer` is true expects the bytes and executes `copy`.
[[nodiscard]] inline std::string issue(const std::string& copy, unsigned bytes, const std::string& issuer = "p")
{
    return "    @!" + issuer + " bra issued;\n    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " +
           std::to_string(bytes) + ";\n    " + copy + "\nissued:\n";
}

/// All wait until the bytes have arrived.
inline const std::string wait_for_bytes =
    "again:\n    mbarrier.try_wait.parity.shared::cta.b64 done, [bar], 0;\n    @!done bra again;\n";

}  // namespace tessera::emulator::test
