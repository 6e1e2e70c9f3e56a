#pragma once

// Copies between memory and rows, by the shape of the lanes' addresses.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "execute/memory_lanes.hpp"

namespace tessera::emulator {

template <typename T>
inline T value_at(const std::byte* at) noexcept
{
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
}

template <typename T>
inline void fill_row(T* row, LaneMask active, T same) noexcept
{
    if (active == all_lanes) {
        std::fill_n(row, warp_size, same);
        return;
    }
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        row[lane] = (active >> lane & 1) != 0 ? same : row[lane];
    }
}

/// Of what read_near() reads: two vectors of AVX-512.
inline constexpr std::uint32_t near_bytes = 128;

/// Reads n words of 4 bytes in each lane, where all are near each other.
template <unsigned n>
inline void read_near(Warp& warp, const MemoryPayload& payload, const LanePointers& p)
{
    static constexpr unsigned words = near_bytes / 4;
    alignas(64) std::array<std::uint32_t, warp_size> index;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        index[lane] = (p.base[lane] - p.base_low) / 4;
    }
#if defined(__AVX512F__)
    const __m512i low = _mm512_loadu_si512(p.first);
    const __m512i high = p.near == near_bytes ? _mm512_loadu_si512(p.first + near_bytes / 2) : low;
    __m512i first = _mm512_loadu_si512(index.data()), second = _mm512_loadu_si512(index.data() + warp_size / 2);
    for (unsigned k = 0; k < n; ++k) {
        auto* const row = warp.row<std::uint32_t>(payload.rows[k]);
        _mm512_storeu_si512(row, _mm512_permutex2var_epi32(low, first, high));
        _mm512_storeu_si512(row + warp_size / 2, _mm512_permutex2var_epi32(low, second, high));
        first = _mm512_add_epi32(first, _mm512_set1_epi32(1));
        second = _mm512_add_epi32(second, _mm512_set1_epi32(1));
    }
    static_assert(words == warp_size);
#else
    std::array<std::uint32_t, words> window;
    std::memcpy(window.data(), p.first, p.near);
    for (unsigned k = 0; k < n; ++k) {
        auto* const row = warp.row<std::uint32_t>(payload.rows[k]);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            row[lane] = window[index[lane] + k];
        }
    }
#endif
}

/// row[lane] = what `lane` points at.
template <typename T>
inline void read_row(T* row, LaneMask active, const LanePointers& p)
{
    if (p.shape == AccessShape::uniform) {
        fill_row(row, active, value_at<T>(p.first));
    } else if (p.shape == AccessShape::row) {
        std::memcpy(row, p.first, warp_size * sizeof(T));
    } else if (p.shape == AccessShape::strided) {
        const std::byte* from = p.first;
        for (unsigned lane = 0; lane < warp_size; ++lane, from += p.stride) {
            row[lane] = value_at<T>(from);
        }
    } else if (active == all_lanes) {
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            row[lane] = value_at<T>(p[lane]);
        }
    } else {
        for_each_lane(active, [&](unsigned lane) { row[lane] = value_at<T>(p[lane]); });
    }
}

template <typename T>
inline void write_row(const T* row, LaneMask active, const LanePointers& p)
{
    if (p.shape == AccessShape::uniform) {  // the last lane's value stays
        std::memcpy(p.first, row + std::bit_width(active) - 1, sizeof(T));
    } else if (p.shape == AccessShape::row) {
        std::memcpy(p.first, row, warp_size * sizeof(T));
    } else if (p.shape == AccessShape::strided) {
        std::byte* to = p.first;
        for (unsigned lane = 0; lane < warp_size; ++lane, to += p.stride) {
            std::memcpy(to, row + lane, sizeof(T));
        }
    } else {
        for_each_lane(active, [&](unsigned lane) { std::memcpy(p[lane], row + lane, sizeof(T)); });
    }
}

/// The lanes' vectors of n elements, one after the other.
template <typename T, unsigned n>
using Packed = std::array<T, std::size_t{n} * warp_size>;

template <typename T, unsigned n>
inline void read_vectors(Warp& warp, const MemoryPayload& payload, LaneMask active, const LanePointers& p)
{
    if (p.shape == AccessShape::uniform) {
        for (unsigned k = 0; k < n; ++k) {
            fill_row(warp.row<T>(payload.rows[k]), active, value_at<T>(p.first + k * sizeof(T)));
        }
        return;
    }
    alignas(64) Packed<T, n> packed;
    if (p.shape == AccessShape::row) {
        std::memcpy(packed.data(), p.first, sizeof packed);
    } else if (p.shape == AccessShape::strided) {
        const std::byte* from = p.first;
        for (unsigned lane = 0; lane < warp_size; ++lane, from += p.stride) {
            std::memcpy(&packed[std::size_t{lane} * n], from, n * sizeof(T));
        }
    } else {
        for_each_lane(active,
                      [&](unsigned lane) { std::memcpy(&packed[std::size_t{lane} * n], p[lane], n * sizeof(T)); });
    }
    for (unsigned k = 0; k < n; ++k) {
        T* const row = warp.row<T>(payload.rows[k]);
        if (active == all_lanes) {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                row[lane] = packed[std::size_t{lane} * n + k];
            }
        } else {
            for_each_lane(active, [&](unsigned lane) { row[lane] = packed[std::size_t{lane} * n + k]; });
        }
    }
}

template <typename T, unsigned n>
inline void write_vectors(const Warp& warp, const MemoryPayload& payload, LaneMask active, const LanePointers& p)
{
    alignas(64) Packed<T, n> packed;
    for (unsigned k = 0; k < n; ++k) {
        const T* const row = warp.row<T>(payload.rows[k]);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            packed[std::size_t{lane} * n + k] = row[lane];
        }
    }
    const auto put = [&](std::byte* to, unsigned lane) {
        std::memcpy(to, &packed[std::size_t{lane} * n], n * sizeof(T));
    };
    if (p.shape == AccessShape::uniform) {
        put(p.first, static_cast<unsigned>(std::bit_width(active)) - 1);
    } else if (p.shape == AccessShape::row) {
        std::memcpy(p.first, packed.data(), sizeof packed);
    } else if (p.shape == AccessShape::strided) {
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            put(p.first + static_cast<std::ptrdiff_t>(lane) * p.stride, lane);
        }
    } else {
        for_each_lane(active, [&](unsigned lane) { put(p[lane], lane); });
    }
}

template <typename T>
inline void read_rows(Warp& warp, const MemoryPayload& payload, LaneMask active, const LanePointers& p)
{
    if constexpr (sizeof(T) == 4) {
        if (p.base != nullptr && p.near != 0) {
            switch (payload.elements) {
                case 1: return read_near<1>(warp, payload, p);
                case 2: return read_near<2>(warp, payload, p);
                case 4: return read_near<4>(warp, payload, p);
                default: return read_near<8>(warp, payload, p);
            }
        }
    }
    switch (payload.elements) {
        case 1: return read_row(warp.row<T>(payload.rows[0]), active, p);
        case 2: return read_vectors<T, 2>(warp, payload, active, p);
        case 4: return read_vectors<T, 4>(warp, payload, active, p);
        default: return read_vectors<T, 8>(warp, payload, active, p);
    }
}

template <typename T>
inline void write_rows(const Warp& warp, const MemoryPayload& payload, LaneMask active, const LanePointers& p)
{
    switch (payload.elements) {
        case 1: return write_row(warp.row<T>(payload.rows[0]), active, p);
        case 2: return write_vectors<T, 2>(warp, payload, active, p);
        case 4: return write_vectors<T, 4>(warp, payload, active, p);
        default: return write_vectors<T, 8>(warp, payload, active, p);
    }
}

}  // namespace tessera::emulator
