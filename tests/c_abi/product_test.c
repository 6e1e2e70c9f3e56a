/* The C ABI on a device: every function once, every member of the epilogue, and mistakes. Without a device it exits with 77. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "tessera.h"

#define LAST_ERROR tessera_last_error
#include "check.h"

enum { m = 37, n = 40, k = 24, batches = 3 };

/* Small whole numbers: every sum of products is exact in fp32. */
static float element(int64_t index, int64_t salt) { return (float)((index * 7 + salt * 5) % 9 - 4); }

static uint16_t bf16_of(float value) /* exact for whole numbers up to 256 */
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* Device memory with `count` floats of element(0..., salt). */
static tessera_buffer* floats(int64_t count, int64_t salt)
{
    const size_t bytes = (size_t)count * sizeof(float);
    float* host = malloc(bytes);
    for (int64_t i = 0; i < count; ++i) {
        host[i] = element(i, salt);
    }
    tessera_buffer* buffer = NULL;
    CHECK(tessera_buffer_create(-1, NULL, bytes, &buffer) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_upload(buffer, 0, host, bytes) == TESSERA_SUCCESS);
    free(host);
    return buffer;
}

static tessera_vector vector(tessera_buffer* buffer, int64_t count)
{
    const tessera_vector result = {tessera_buffer_data(buffer), TESSERA_F32, -1, count};
    return result;
}

static tessera_matrix rows_of(tessera_buffer* buffer, int64_t rows, int64_t columns)
{
    return tessera_row_major(tessera_buffer_data(buffer), TESSERA_F32, rows, columns, columns);
}

static double dot(int64_t row, int64_t column, int64_t batch)
{
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
        sum += (double)element((batch * m + row) * k + i, 1) * element(i * n + column, 2);
    }
    return sum;
}

static void version_and_names(void)
{
    CHECK(tessera_version() >= 100);
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", tessera_version() / 10000, tessera_version() / 100 % 100,
             tessera_version() % 100);
    CHECK(strcmp(text, tessera_version_text()) == 0);
    CHECK(strcmp(tessera_status_name(TESSERA_SUCCESS), "success") == 0);
    CHECK(strcmp(tessera_status_name(TESSERA_ALIASING), "aliasing") == 0);
    CHECK(strcmp(tessera_status_name(TESSERA_COMMUNICATION_FAILED), "communication_failed") == 0);
    CHECK(strcmp(tessera_status_name(TESSERA_UNKNOWN_FAILURE), "unknown_failure") == 0);
    CHECK(strcmp(tessera_status_name(99), "unknown") == 0);
    CHECK(strcmp(tessera_variant_name(TESSERA_HOPPER), "hopper") == 0);
    CHECK(strcmp(tessera_variant_name(-1), "unknown") == 0 && strcmp(tessera_variant_name(7), "unknown") == 0);
    tessera_variant variant = TESSERA_AUTOMATIC;
    CHECK(tessera_variant_from_name("mma_sync", &variant) == TESSERA_SUCCESS && variant == TESSERA_MMA_SYNC);
    CHECK_FAILS(tessera_variant_from_name("fastest", &variant), TESSERA_INVALID_ARGUMENT, "simt_naive");
    CHECK_FAILS(tessera_variant_from_name(NULL, &variant), TESSERA_INVALID_ARGUMENT, "name is NULL");
}

static void memory(void)
{
    int capability = 0;
    CHECK(tessera_compute_capability(0, &capability) == TESSERA_SUCCESS && capability >= 75);
    CHECK_FAILS(tessera_compute_capability(1000, &capability), TESSERA_OUT_OF_RANGE, "1000");
    tessera_buffer* one = floats(16, 3);
    tessera_buffer* other = floats(16, 4);
    CHECK(tessera_buffer_size(one) == 64 && tessera_buffer_device(one) == 0);
    CHECK(tessera_buffer_copy(NULL, other, 16, one, 32, 8) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_used_on(one, NULL) == TESSERA_SUCCESS);
    float back[16];
    CHECK(tessera_buffer_download(other, 0, back, sizeof back) == TESSERA_SUCCESS);
    for (int i = 0; i < 16; ++i) {
        CHECK(back[i] == (i == 4 || i == 5 ? element(i + 4, 3) : element(i, 4)));
    }
    CHECK_FAILS(tessera_buffer_download(other, 60, back, 8), TESSERA_OUT_OF_RANGE, "tessera_buffer_download");
    CHECK_FAILS(tessera_buffer_copy(NULL, other, 0, one, 60, 8), TESSERA_OUT_OF_RANGE, "8 elements from element 60");
    CHECK_FAILS(tessera_buffer_upload(NULL, 0, back, 4), TESSERA_INVALID_ARGUMENT, "buffer is NULL");
    tessera_buffer* none = NULL;
    CHECK_FAILS(tessera_buffer_create(1000, NULL, 16, &none), TESSERA_OUT_OF_RANGE, "1000");
    CHECK(tessera_buffer_create(-1, NULL, 0, &none) == TESSERA_SUCCESS && tessera_buffer_size(none) == 0);
    tessera_buffer_destroy(none);
    tessera_buffer_destroy(one);
    tessera_buffer_destroy(other);
    tessera_buffer_destroy(NULL);
    int capturing = 1;
    CHECK(tessera_is_capturing(NULL, &capturing) == TESSERA_SUCCESS && capturing == 0);
    CHECK(tessera_stream_wait(-1, NULL, NULL) == TESSERA_SUCCESS);
    CHECK(tessera_synchronize(NULL) == TESSERA_SUCCESS);
}

/* A batch with everything that an epilogue of f32 has: D = relu(alpha * sa[row] * sb[column] * A*B + beta * C + bias). */
static void whole_epilogue(void)
{
    tessera_buffer* const a = floats(batches * m * k, 1);
    tessera_buffer* const b = floats(k * n, 2);
    tessera_buffer* const c = floats(m * n, 3);
    tessera_buffer* const d = floats(batches * m * n, 4);
    tessera_buffer* const x = floats(batches * m * n, 5);
    tessera_buffer* const bias = floats(n, 6);
    tessera_buffer* const scale_a = floats(m, 7);
    tessera_buffer* const scale_b = floats(n, 8);
    tessera_matrix view_a = rows_of(a, m, k);
    const tessera_matrix view_b = rows_of(b, k, n);
    const tessera_matrix view_c = rows_of(c, m, n);
    tessera_matrix view_d = rows_of(d, m, n);
    tessera_matrix view_x = rows_of(x, m, n);
    view_a.batches = view_d.batches = view_x.batches = batches;
    view_a.batch_stride = (int64_t)m * k;
    view_d.batch_stride = view_x.batch_stride = (int64_t)m * n;
    const float alpha = 0.5F;
    const float beta = 2;
    tessera_epilogue epilogue = {.size = sizeof epilogue,
                                 .alpha = &alpha,
                                 .beta = &beta,
                                 .c = &view_c,
                                 .pre_activation = &view_x,
                                 .bias = vector(bias, n),
                                 .scale_a = vector(scale_a, m),
                                 .scale_b = vector(scale_b, n),
                                 .activation = TESSERA_RELU};
    float* host = malloc(sizeof(float) * batches * m * n);
    float* host_x = malloc(sizeof(float) * batches * m * n);
    tessera_plan* plan = NULL;
    CHECK(tessera_plan_create(-1, &view_a, &view_b, &view_d, &epilogue, NULL, &plan) == TESSERA_SUCCESS);
    CHECK(tessera_plan_variant(plan) != TESSERA_AUTOMATIC);
    for (int way = 0; way < 3; ++way) { /* directly, with a plan, with a workspace of the caller's */
        const size_t bytes = tessera_plan_workspace_bytes(plan);
        tessera_buffer* workspace = NULL;
        CHECK(tessera_buffer_create(-1, NULL, bytes, &workspace) == TESSERA_SUCCESS);
        const tessera_options options = {.size = sizeof options,
                                         .workspace_owner = TESSERA_WORKSPACE_OF_CALLER,
                                         .workspace = tessera_buffer_data(workspace),
                                         .workspace_bytes = bytes};
        memset(host, 255, sizeof(float) * batches * m * n); /* NaN */
        CHECK(tessera_buffer_upload(d, 0, host, sizeof(float) * batches * m * n) == TESSERA_SUCCESS);
        CHECK((way == 0 ? tessera_gemm(NULL, &view_a, &view_b, &view_d, &epilogue, NULL)
                        : tessera_plan_launch(plan, NULL, &view_a, &view_b, &view_d, &epilogue,
                                              way == 1 ? NULL : &options)) == TESSERA_SUCCESS);
        CHECK(tessera_buffer_download(d, 0, host, sizeof(float) * batches * m * n) == TESSERA_SUCCESS);
        CHECK(tessera_buffer_download(x, 0, host_x, sizeof(float) * batches * m * n) == TESSERA_SUCCESS);
        int wrong = 0;
        for (int64_t i = 0; i < (int64_t)batches * m * n; ++i) {
            const int64_t row = i / n % m;
            const int64_t column = i % n;
            const double expected = alpha * element(row, 7) * element(column, 8) * dot(row, column, i / n / m) +
                                    beta * element(row * n + column, 3) + element(column, 6);
            wrong += host_x[i] != (float)expected || host[i] != (float)(expected > 0 ? expected : 0);
        }
        CHECK(wrong == 0);
        tessera_buffer_destroy(workspace);
    }
    char text[4096];
    size_t length = 0;
    CHECK(tessera_plan_explain(plan, text, sizeof text, &length) == TESSERA_SUCCESS && strlen(text) == length);
    CHECK(strstr(text, "37x40x24") != NULL);
    char start[8];
    size_t same = 0;
    CHECK(tessera_plan_explain(plan, start, sizeof start, &same) == TESSERA_SUCCESS && same == length);
    CHECK(strlen(start) == 7 && strncmp(start, text, 7) == 0);
    CHECK(tessera_plan_explain(plan, NULL, 0, NULL) == TESSERA_SUCCESS);
    tessera_plan_destroy(plan);
    tessera_plan_destroy(NULL);
    CHECK(tessera_explain(100, &view_a, &view_b, &view_d, &epilogue, TESSERA_AUTOMATIC, text, sizeof text, NULL) ==
          TESSERA_SUCCESS);
    CHECK(strstr(text, "10.0") != NULL);
    tessera_buffer* const all[] = {a, b, c, d, x, bias, scale_a, scale_b};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        tessera_buffer_destroy(all[i]);
    }
    free(host);
    free(host_x);
}

/* 16-bit elements, a transposed B, and gated pairs: D[i][j] = silu(g) * u. */
static void gated_bf16(void)
{
    uint16_t a[m * k];
    uint16_t b[k * n];
    for (int i = 0; i < m * k; ++i) {
        a[i] = bf16_of(element(i, 1));
    }
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < k; ++j) {
            b[i * k + j] = bf16_of(element(j * n + i, 2)); /* column-major */
        }
    }
    float d[m * n / 2];
    tessera_buffer* device_a = NULL;
    tessera_buffer* device_b = NULL;
    tessera_buffer* device_d = NULL;
    CHECK(tessera_buffer_create(-1, NULL, sizeof a, &device_a) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_create(-1, NULL, sizeof b, &device_b) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_create(-1, NULL, sizeof d, &device_d) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_upload(device_a, 0, a, sizeof a) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_upload(device_b, 0, b, sizeof b) == TESSERA_SUCCESS);
    const tessera_matrix view_a = tessera_row_major(tessera_buffer_data(device_a), TESSERA_BF16, m, k, k);
    const tessera_matrix view_b = tessera_column_major(tessera_buffer_data(device_b), TESSERA_BF16, k, n, k);
    tessera_matrix view_d = tessera_row_major(tessera_buffer_data(device_d), TESSERA_F32, m, n / 2, n / 2);
    view_d.device = 0; /* trusted */
    const tessera_epilogue epilogue = {
        .size = sizeof epilogue, .activation = TESSERA_SILU, .gating = TESSERA_GATING_INTERLEAVED};
    CHECK(tessera_gemm(NULL, &view_a, &view_b, &view_d, &epilogue, NULL) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_download(device_d, 0, d, sizeof d) == TESSERA_SUCCESS);
    int wrong = 0;
    for (int64_t i = 0; i < m * n / 2; ++i) {
        const int64_t row = i / (n / 2);
        const int64_t column = i % (n / 2);
        const double gate = dot(row, 2 * column, 0);
        const double expected = gate / (1 + exp(-gate)) * dot(row, 2 * column + 1, 0);
        wrong += !(fabs(d[i] - expected) <= 1e-5 * fabs(expected) + 1e-30);
    }
    CHECK(wrong == 0);
    CHECK(tessera_gemm(NULL, &view_a, &view_b, &view_d, NULL, NULL) == TESSERA_SHAPE_MISMATCH);
    tessera_buffer_destroy(device_a);
    tessera_buffer_destroy(device_b);
    tessera_buffer_destroy(device_d);
}

static void mistakes(void)
{
    tessera_buffer* const buffer = floats(3 * 64 * 64, 1);
    float* const data = tessera_buffer_data(buffer);
    tessera_matrix a = tessera_row_major(data, TESSERA_F32, 64, 64, 64);
    const tessera_matrix b = tessera_row_major(data + 4096, TESSERA_F32, 64, 64, 64);
    tessera_matrix d = tessera_row_major(data + 8192, TESSERA_F32, 64, 64, 64);
    const tessera_matrix narrow = tessera_row_major(data + 4096, TESSERA_F32, 32, 64, 64);
    CHECK_FAILS(tessera_gemm(NULL, &a, &narrow, &d, NULL, NULL), TESSERA_SHAPE_MISMATCH,
                "A is 64x64 and B is 32x64: A*B needs A's columns (64) equal to B's rows (32)");
    CHECK(strncmp(tessera_last_error(), "tessera: shape_mismatch in tessera_gemm\n  A is", 45) == 0);
    CHECK(strstr(tessera_last_error(), "\n  try: ") != NULL);
    CHECK(tessera_last_cuda_error() == 0);
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &a, NULL, NULL), TESSERA_ALIASING, "D");
    CHECK_FAILS(tessera_gemm(NULL, NULL, &b, &d, NULL, NULL), TESSERA_INVALID_ARGUMENT, "A is NULL");
    a.column_stride = 2;
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, NULL, NULL), TESSERA_INVALID_ARGUMENT,
                "A is 64x64 and has strides of 64 and 2: rows or columns must be contiguous");
    a.column_stride = 1;
    a.row_stride = 8;
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, NULL, NULL), TESSERA_INVALID_ARGUMENT, "leading dimension");
    a.row_stride = 64;
    a.type = 17;
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, NULL, NULL), TESSERA_INVALID_ARGUMENT, "17 is no element type");
    a.type = TESSERA_F16;
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, NULL, NULL), TESSERA_INVALID_ARGUMENT, "A has elements of f16");
    a.type = TESSERA_F32;
    a.data = (char*)data + 2;
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, NULL, NULL), TESSERA_MISALIGNED, "4-byte aligned");
    float on_the_host[64 * 64] = {0};
    a.data = on_the_host;
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, NULL, NULL), TESSERA_WRONG_MEMORY, "host memory");
    a.data = data;
    tessera_epilogue epilogue = {.size = 0};
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, &epilogue, NULL), TESSERA_INVALID_ARGUMENT,
                "the size of the epilogue is 0");
    epilogue.size = sizeof epilogue;
    epilogue.activation = 70;
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, &epilogue, NULL), TESSERA_INVALID_ARGUMENT, "70 is no activation");
    epilogue.activation = TESSERA_NO_ACTIVATION;
    epilogue.bias = vector(buffer, 5);
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, &epilogue, NULL), TESSERA_SHAPE_MISMATCH, "the bias has 5 elements");
    epilogue.bias = vector(buffer, 0);
    epilogue.bias.data = NULL;
    epilogue.scale_a = vector(buffer, 64);
    epilogue.scale_a.type = TESSERA_F16;
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, &epilogue, NULL), TESSERA_INVALID_ARGUMENT,
                "scale_a has elements of f16");
    /* A structure of a later release: unknown members must be 0. */
    struct {
        tessera_options known;
        int64_t unknown;
    } later = {{.size = sizeof later}, 0};
    CHECK(tessera_gemm(NULL, &a, &b, &d, NULL, &later.known) == TESSERA_SUCCESS);
    later.unknown = 1;
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, NULL, &later.known), TESSERA_INVALID_ARGUMENT, "load a newer library");
    /* A structure of an earlier one: what it lacks has its default. */
    later.known.size = offsetof(tessera_options, workspace_owner);
    later.known.workspace_owner = 99;
    CHECK(tessera_gemm(NULL, &a, &b, &d, NULL, &later.known) == TESSERA_SUCCESS);
    later.known.size = sizeof later.known;
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, NULL, &later.known), TESSERA_INVALID_ARGUMENT, "99 is no owner");
    const tessera_options wrong = {.size = sizeof wrong, .variant = TESSERA_SIMT_VECTORIZED + 100};
    CHECK_FAILS(tessera_gemm(NULL, &a, &b, &d, NULL, &wrong), TESSERA_INVALID_ARGUMENT, "103 is no variant");
    tessera_plan* plan = NULL;
    CHECK_FAILS(tessera_plan_create(0, &a, &narrow, &d, NULL, NULL, &plan), TESSERA_SHAPE_MISMATCH, "32x64");
    CHECK(plan == NULL);
    CHECK(tessera_plan_create(0, &a, &b, &d, NULL, NULL, &plan) == TESSERA_SUCCESS);
    d = tessera_transposed(d);
    CHECK_FAILS(tessera_plan_launch(plan, NULL, &a, &b, &d, NULL, NULL), TESSERA_SHAPE_MISMATCH, "D");
    tessera_plan_destroy(plan);
    /* Empty products read and write nothing. */
    a.batches = d.batches = 0;
    CHECK(tessera_gemm(NULL, &a, &b, &d, NULL, NULL) == TESSERA_SUCCESS);
    tessera_buffer_destroy(buffer);
}

static void* wrapped_allocation(void* context, size_t bytes, size_t alignment, tessera_stream stream)
{
    tessera_buffer** const owner = context;
    return alignment <= 256 && tessera_buffer_create(-1, stream, bytes, owner) == TESSERA_SUCCESS
               ? tessera_buffer_data(*owner)
               : NULL;
}

static void wrapped_free(void* context, void* data, size_t bytes, size_t alignment, tessera_stream stream)
{
    tessera_buffer** const owner = context;
    CHECK(data == tessera_buffer_data(*owner) && bytes == tessera_buffer_size(*owner));
    (void)alignment;
    (void)stream;
    tessera_buffer_destroy(*owner);
    *owner = NULL;
}

/* A product whose kernel needs a workspace takes it from the caller's allocator, and gives it back. */
static void workspace_allocator(void)
{
    const tessera_matrix shape_a = tessera_row_major(NULL, TESSERA_BF16, 128, 8192, 8192);
    const tessera_matrix shape_b = tessera_row_major(NULL, TESSERA_BF16, 8192, 128, 128);
    const tessera_matrix shape_d = tessera_row_major(NULL, TESSERA_BF16, 128, 128, 128);
    tessera_plan* plan = NULL;
    CHECK(tessera_plan_create(-1, &shape_a, &shape_b, &shape_d, NULL, NULL, &plan) == TESSERA_SUCCESS);
    const size_t bytes = tessera_plan_workspace_bytes(plan);
    tessera_buffer* a = NULL;
    tessera_buffer* d = NULL;
    CHECK(tessera_buffer_create(-1, NULL, (size_t)2 * 128 * 8192, &a) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_create(-1, NULL, (size_t)2 * 128 * 128, &d) == TESSERA_SUCCESS);
    void* const zeros = calloc(2, (size_t)128 * 8192);
    CHECK(tessera_buffer_upload(a, 0, zeros, (size_t)2 * 128 * 8192) == TESSERA_SUCCESS);
    free(zeros);
    tessera_matrix view_a = shape_a;
    tessera_matrix view_b = shape_b;
    tessera_matrix view_d = shape_d;
    view_a.data = view_b.data = tessera_buffer_data(a);
    view_d.data = tessera_buffer_data(d);
    tessera_release_workspaces();
    tessera_buffer* owner = NULL;
    CHECK(tessera_set_workspace_allocator(0, &owner, wrapped_allocation, wrapped_free) == TESSERA_SUCCESS);
    CHECK_FAILS(tessera_set_workspace_allocator(0, &owner, wrapped_allocation, NULL), TESSERA_INVALID_ARGUMENT, "NULL");
    CHECK(tessera_plan_launch(plan, NULL, &view_a, &view_b, &view_d, NULL, NULL) == TESSERA_SUCCESS);
    CHECK((owner != NULL) == (bytes > 0));
    printf("a workspace of %zu bytes was taken from the caller\n", bytes);
    tessera_release_workspaces();
    CHECK(owner == NULL);
    CHECK(tessera_set_workspace_allocator(0, NULL, NULL, NULL) == TESSERA_SUCCESS);
    uint16_t back[4] = {1, 1, 1, 1};
    CHECK(tessera_buffer_download(d, 0, back, sizeof back) == TESSERA_SUCCESS);
    CHECK(back[0] == 0 && back[3] == 0);
    tessera_plan_destroy(plan);
    tessera_buffer_destroy(a);
    tessera_buffer_destroy(d);
}

static void tuning(void)
{
    const tessera_matrix a = tessera_row_major(NULL, TESSERA_F32, 48, 32, 32);
    const tessera_matrix b = tessera_row_major(NULL, TESSERA_F32, 32, 48, 48);
    const tessera_matrix d = tessera_row_major(NULL, TESSERA_F32, 48, 48, 48);
    const tessera_tuning_options quick = {
        .size = sizeof quick, .rounds = 1, .sample_seconds = 1e-5, .time_limit_seconds = 1e-3};
    tessera_tuning_result found = {.size = sizeof found};
    CHECK(tessera_tune(-1, &a, &b, &d, NULL, &quick, &found) == TESSERA_SUCCESS);
    CHECK(found.variant != TESSERA_AUTOMATIC && found.seconds > 0 && found.candidates > 0);
    size_t used = 99;
    CHECK(tessera_tuning_load("no such file", &used) == TESSERA_SUCCESS && used == 0);
    CHECK_FAILS(tessera_tuning_save("/no such folder/file"), TESSERA_INVALID_ARGUMENT, "/no such folder/file");
    const tessera_tuning_options wrong = {.size = sizeof wrong, .prune_ratio = 0.5};
    CHECK(tessera_tune(-1, &a, &b, &d, NULL, &wrong, NULL) == TESSERA_INVALID_ARGUMENT);
}

int main(void)
{
    if (tessera_device_count() == 0) {
        puts("no CUDA device: run this under tessera-emu");
        return 77;
    }
    CHECK(strcmp(tessera_last_error(), "") == 0);
    version_and_names();
    memory();
    whole_epilogue();
    gated_bf16();
    mistakes();
    workspace_allocator();
    tuning();
    printf("%d checks failed\n", failed_checks);
    return failed_checks == 0 ? 0 : 1;
}
