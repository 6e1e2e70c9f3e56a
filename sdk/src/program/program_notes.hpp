#pragma once

/// What the compiler says of a program, read from its PTX.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/tile/program_members.hpp"
#include "tessera/tile/tcgen05_plan.hpp"

namespace tessera::tile::detail {

/// A member of a program by its number; nothing if the PTX does not tell which.
using MemberNumber = std::optional<std::size_t>;

/// A band of a stream.
struct NotedBand {
    MemberNumber member;
    std::optional<bool> along_columns;
    bool is_whole = false;  // it ends with the matrix
};

/// A matrix of whole tiles.
struct NotedWhole {
    MemberNumber member;
    Along of_rows{};
    Along of_columns{};
};

/// What a program needs: what `Plan` has, as far as it does not depend on the arguments.
struct PlanNotes {
    std::size_t scratch_bytes = 0;
    std::size_t stage_bytes = 0;
    std::size_t held_bytes = 0;
    int held = 0;
    std::vector<MemberNumber> places;    // outputs whose tiles the program goes through
    std::vector<MemberNumber> matrices;  // of which it uses the matrix of a place's batch
    std::vector<MemberNumber> held_members;
    std::vector<NotedWhole> whole;
    bool gathers = false;    // a stream has rows that a vector names
    bool reads_row = false;  // of a place
    bool reads_column = false;
    bool streams_rows = false;  // a stream has a band that places beside each other have
    bool streams_columns = false;
    std::vector<std::vector<NotedBand>> streams;
};

/// An input whose tiles a pair would load in other boxes if it halved them.
struct NotedPairMap {
    MemberNumber member;
    std::optional<bool> is_halved;
};

/// What a program needs on tcgen05.
struct Tcgen05Notes {
    PlanNotes plan;
    std::vector<NotedPairMap> pair_maps;
    Tcgen05Plan needs;  // as far as they do not depend on the arguments
};

/// What the compiler says of a program.
struct ProgramNotes {
    ProgramMembers members;
    std::vector<std::uint32_t> offsets;  // of the members
    PlanNotes plan;
    std::optional<Tcgen05Notes> tcgen05;  // nothing if there is no code for it
};

/// Reads the notes that tile/plan_comments.cuh and tile/program_entries.cuh write.
/// @throws std::runtime_error  what the PTX lacks
ProgramNotes notes_of(std::string_view ptx);

}  // namespace tessera::tile::detail
