/// TensorMap: the arguments of the encoder, and each rule that is checked before the call.

#include <cstdint>

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::detail::tensor_map_refusals;
using tessera::detail::TensorMapRequest;
using tessera::test::CleanRuntime;

namespace {

/// A valid request: 3 dimensions of f16, a box of 128 bytes inner width.
TensorMapRequest valid_request()
{
    TensorMapRequest request{};
    request.type = detail::tensor_map_type<f16>;
    request.element_bytes = 2;
    request.rank = 3;
    request.data = reinterpret_cast<const void*>(0x10000);
    request.extents = {100, 50, 20};
    request.strides = {208, 20800};
    request.box = {64, 32, 1};
    request.swizzle = Swizzle::b128;
    return request;
}

template <class Change>
std::string refusal_after(Change change)
{
    TensorMapRequest request = valid_request();
    change(request);
    return tensor_map_refusals(request);
}

}  // namespace

TEST_CASE("a valid request is accepted, even at the limits")
{
    CHECK(tensor_map_refusals(valid_request()).empty());
    CHECK(refusal_after([](auto& r) { r.extents[2] = std::uint64_t{1} << 32U; }).empty());
    CHECK(refusal_after([](auto& r) { r.strides[1] = (std::uint64_t{1} << 40U) - 16; }).empty());
    CHECK(refusal_after([](auto& r) { r.box[1] = 256; }).empty());
    CHECK(refusal_after([](auto& r) { r.out_of_bounds = OutOfBounds::nan; }).empty());
}

TEST_CASE("each rule of the encoder has its own sentence")
{
    CHECK(refusal_after([](auto& r) { r.rank = 0; }) == "the tensor has 0 dimensions; a tensor map has 1 to 5");
    CHECK(refusal_after([](auto& r) { r.rank = 6; }) == "the tensor has 6 dimensions; a tensor map has 1 to 5");
    CHECK(refusal_after([](auto& r) { r.data = nullptr; }) == "the tensor's address is null");
    CHECK(refusal_after([](auto& r) { r.data = reinterpret_cast<const void*>(0x10008); }) ==
          "the tensor's address 0x10008 is not a multiple of 16 bytes");
    CHECK(refusal_after([](auto& r) { r.extents[1] = 0; }) ==
          "the extent of dimension 1 is 0; a tensor map needs at least 1 element");
    CHECK(refusal_after([](auto& r) { r.extents[1] = (std::uint64_t{1} << 32U) + 1; }) ==
          "the extent of dimension 1 is 4294967297; a tensor map takes at most 2^32");
    CHECK(refusal_after([](auto& r) { r.box = {64, 256, 7}; }).empty());
    CHECK(refusal_after([](auto& r) { r.box = {64, 256, 8}; }) ==
          "the box has 262144 bytes; it may have at most 233472, the shared memory of an SM");
    CHECK(refusal_after([](auto& r) { r.box[1] = 0; }) ==
          "the box has 0 elements in dimension 1; it may have 1 to 256");
    CHECK(refusal_after([](auto& r) { r.box[2] = 257; }) ==
          "the box has 257 elements in dimension 2; it may have 1 to 256");
    CHECK(refusal_after([](auto& r) { r.strides[0] = 200; }) ==
          "the stride of dimension 1 is 200 bytes, not a multiple of 16: pad the leading dimension to a multiple of 8 "
          "elements");
    CHECK(refusal_after([](auto& r) { r.strides[1] = std::uint64_t{1} << 40U; }) ==
          "the stride of dimension 2 is 1099511627776 bytes; it must be below 2^40");
    CHECK(refusal_after([](auto& r) {
              r.box[0] = 60;
              r.swizzle = Swizzle::none;
          }) == "the box is 120 bytes wide in dimension 0, not a multiple of 16");
    CHECK(refusal_after([](auto& r) { r.swizzle = Swizzle::b64; }) ==
          "the box is 128 bytes wide in dimension 0; a 64-byte swizzle takes at most 64");
    CHECK(refusal_after([](auto& r) { r.swizzle = Swizzle::b32; }) ==
          "the box is 128 bytes wide in dimension 0; a 32-byte swizzle takes at most 32");
    CHECK(refusal_after([](auto& r) {
              r.type = detail::tensor_map_type<std::uint16_t>;
              r.out_of_bounds = OutOfBounds::nan;
          }) == "OutOfBounds::nan needs elements of a floating-point type, not of integers");
}

TEST_CASE("several broken rules give several sentences")
{
    CHECK(refusal_after([](auto& r) {
              r.data = nullptr;
              r.extents[0] = 0;
              r.strides[0] = 8;
              r.box[1] = 300;
          }) ==
          "the tensor's address is null\n"
          "the extent of dimension 0 is 0; a tensor map needs at least 1 element\n"
          "the box has 300 elements in dimension 1; it may have 1 to 256\n"
          "the stride of dimension 1 is 8 bytes, not a multiple of 16: pad the leading dimension to a multiple of 8 "
          "elements");
}

TEST_CASE_FIXTURE(CleanRuntime, "a map encodes type, extents, strides, box and options for the driver")
{
    const Stream stream;
    DeviceBuffer<bf16> buffer(stream, 128 * 64);
    using Map = TensorMap<bf16, Box<64, 32>, Swizzle::b128>;
    static_assert(Map::box_bytes == 64 * 32 * 2 && Map::shared_alignment == 1024 && Map::rank == 2);
    const Map map = Map::of(buffer.matrix(100, 60, 64, RowMajor{}), {.out_of_bounds = OutOfBounds::nan});
    const auto& words = map.bits().words;  // as the fake's encoder writes them
    CHECK(words[0] == reinterpret_cast<std::uintptr_t>(buffer.data()));
    CHECK((words[2] & 0xFFU) == 9);         // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
    CHECK((words[2] >> 8U & 0xFFU) == 2);   // rank
    CHECK((words[2] >> 16U & 0xFFU) == 3);  // CU_TENSOR_MAP_SWIZZLE_128B
    CHECK((words[2] >> 24U & 0xFFU) == 2);  // CU_TENSOR_MAP_L2_PROMOTION_L2_128B
    CHECK((words[2] >> 32U & 0xFFU) == 1);  // CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
    CHECK(words[3] == 60);                  // innermost first: along a row
    CHECK(words[4] == 100);
    CHECK((words[8] & 0xFFFFU) == 64);
    CHECK((words[8] >> 16U) == 64 * 2);
    CHECK((words[9] & 0xFFFFU) == 32);

    const auto columns = Map::of(buffer.matrix(60, 100, 64, ColumnMajor{}));
    CHECK(columns.bits().words[3] == 60);
    CHECK(columns.bits().words[4] == 100);
}

TEST_CASE_FIXTURE(CleanRuntime, "a broken rule is refused with the whole request, without a call to the driver")
{
    const Stream stream;
    DeviceBuffer<float> buffer(stream, 1000);
    using Map = TensorMap<float, Box<8, 8>>;
    const std::string address = [&] {
        const auto value = reinterpret_cast<std::uintptr_t>(buffer.data());
        char text[32];
        std::snprintf(text, sizeof text, "0x%zx", value);
        return std::string(text);
    }();
    fake::clear_calls();
    CHECK_ERROR(
        "tessera: tensor_map_refused in TensorMap::encode\n  the stride of dimension 1 is 20 bytes, not a multiple "
        "of 16: pad the leading dimension to a multiple of 4 elements\n  the request: elements of f32, rank 2, "
        "address " +
            address +
            "; dimension 0: extent 5, box 8; dimension 1: extent 4, box 8, stride 20 bytes; swizzle 0 "
            "bytes",
        Map::of(buffer.matrix(4, 5)));
    CHECK(fake::count("cudaGetDriverEntryPointByVersion") == 0);
    fake::set_encoder_status(1);
    CHECK_ERROR(
        "tessera: tensor_map_refused in TensorMap::encode\n  cuTensorMapEncodeTiled returned 1 for a request that "
        "breaks no documented rule\n  the request: elements of f32, rank 2, address " +
            address +
            "; dimension 0: extent 8, box 8; dimension 1: extent 4, box 8, stride 32 bytes; swizzle 0 "
            "bytes",
        Map::of(buffer.matrix(4, 8)));
}

TEST_CASE_FIXTURE(CleanRuntime, "devices without tensor maps and drivers without the encoder are refused")
{
    const Stream stream;
    DeviceBuffer<float> buffer(stream, 1000);
    using Map = TensorMap<float, Box<8, 8>>;
    CHECK_ERROR(
        "tessera: unsupported_device in TensorMap::encode\n  T4 has compute capability 7.5; tensor maps need 9.0 "
        "or later\n  try: a device of compute capability 9.0 or later; ordinary loads and stores on this one",
        Map::encode(Device(fake::t4), {buffer.data(), {8, 8}, {32}}));
    fake::fail_call("cudaGetDriverEntryPointByVersion", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in TensorMap::encode\n  cudaGetDriverEntryPointByVersion returned cudaErrorUnknown "
        "(999): unknown error",
        Map::of(buffer.matrix(8, 8)));
    fake::set_encoder_missing(true);
    CHECK_ERROR(
        "tessera: no_device in TensorMap::encode\n  the driver has no cuTensorMapEncodeTiled\n  try: a driver for "
        "CUDA 13 or later",
        Map::of(buffer.matrix(8, 8)));
    fake::set_device_count(3);
}

TEST_CASE("a tensor whose size overflows 64 bits does not count as small")
{
    TensorMapRequest request = valid_request();
    request.strides = {std::uint64_t{1} << 39U, std::uint64_t{1} << 39U};
    request.extents = {64, std::uint64_t{1} << 32U, 1};
    detail::TensorMapBits bits{};
    bits.words.fill(~std::uint64_t{0});
    detail::mend_small_tensor_map(DeviceProperties::of_compute_capability(10, 0), request, bits);
    CHECK(bits.words[1] == ~std::uint64_t{0});
}

TEST_CASE_FIXTURE(CleanRuntime, "bit 85 is cleared for small tensors on Blackwell only")
{
    const Stream hopper;
    const Stream blackwell{Device(fake::b200)};
    constexpr std::uint64_t bit_85 = std::uint64_t{1} << 21U;  // of the second word; the fake's encoder sets it
    using Map = TensorMap<float, Box<8, 8>>;
    constexpr std::int64_t small_rows = 4095;  // 32 bytes each: one row less than 128 KiB
    DeviceBuffer<float> on_hopper(hopper, 8 * 4096);
    DeviceBuffer<float> on_blackwell(blackwell, 8 * 4096);
    CHECK((Map::of(on_hopper.matrix(small_rows, 8)).bits().words[1] & bit_85) != 0);
    CHECK((Map::of(on_blackwell.matrix(small_rows, 8)).bits().words[1] & bit_85) == 0);
    CHECK((Map::of(on_blackwell.matrix(small_rows + 1, 8)).bits().words[1] & bit_85) != 0);
    CHECK((Map::of(on_blackwell.matrix(small_rows, 8)).bits().words[1] | bit_85) == ~std::uint64_t{0});
}
