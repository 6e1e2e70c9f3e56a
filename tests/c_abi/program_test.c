/* Tile programs from C: compiled, described, launched; and mistakes. Without a device it exits with 77. */

#include <stdlib.h>

#include "tessera.h"

#define LAST_ERROR tessera_last_error
#include "check.h"

enum { rows = 20, columns = 40, count = rows * columns };

static const char source[] =
    "using namespace tessera;\n"
    "template <class T>\n"
    "struct Scaled {\n"
    "    tile::Input<T, 4, 32> x;\n"
    "    tile::Numbers<int> powers;\n"
    "    tile::Output<T, 4, 32> y;\n"
    "    float factor;\n"
    "    TESSERA_TILE void operator()(auto cta) const\n"
    "    {\n"
    "        for (auto at : y.tiles(cta)) {\n"
    "            y.store(at, tile::convert<T>(x.load(at) * factor + powers[at.tile_row()] * STEP));\n"
    "        }\n"
    "    }\n"
    "};\n";

static void compiled_without_a_device(const tessera_program* program)
{
    char begin[16];
    size_t length = 0;
    CHECK(tessera_program_compile(program, "Scaled<float>", 80, begin, sizeof begin, &length) == TESSERA_SUCCESS);
    CHECK(length > 1000 && strncmp(begin, "//", 2) == 0 && begin[sizeof begin - 1] == '\0');
    CHECK_FAILS(tessera_program_compile(program, "Scald<float>", 80, NULL, 0, NULL), TESSERA_COMPILATION_FAILED,
                "the type that was asked for(1)");
}

static void described(const tessera_kernel* kernel)
{
    CHECK(tessera_kernel_member_count(kernel) == 4);
    tessera_member member;
    CHECK(tessera_kernel_member(kernel, 0, &member) == TESSERA_SUCCESS);
    CHECK(member.kind == TESSERA_ARGUMENT_INPUT && member.type == TESSERA_F32 && member.row_major == 1);
    CHECK(member.rows == 4 && member.columns == 32);
    CHECK(tessera_kernel_member(kernel, 1, &member) == TESSERA_SUCCESS);
    CHECK(member.kind == TESSERA_ARGUMENT_NUMBERS && member.number == TESSERA_NUMBER_SIGNED && member.bytes == 4);
    CHECK(tessera_kernel_member(kernel, 2, &member) == TESSERA_SUCCESS);
    CHECK(member.kind == TESSERA_ARGUMENT_OUTPUT);
    CHECK(tessera_kernel_member(kernel, 3, &member) == TESSERA_SUCCESS);
    CHECK(member.kind == TESSERA_ARGUMENT_VALUE && member.number == TESSERA_NUMBER_FLOAT && member.bytes == 4);
    CHECK_FAILS(tessera_kernel_member(kernel, 4, &member), TESSERA_INVALID_ARGUMENT, "Scaled<float> has 4");
}

static void launched(const tessera_kernel* kernel)
{
    static float host[count];
    static float result[count];
    const int powers[5] = {0, 1, 2, 3, 4};
    for (int i = 0; i < count; ++i) {
        host[i] = (float)(i % 17);
    }
    tessera_buffer* x = NULL;
    tessera_buffer* y = NULL;
    tessera_buffer* numbers = NULL;
    CHECK(tessera_buffer_create(-1, NULL, sizeof host, &x) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_create(-1, NULL, sizeof host, &y) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_create(-1, NULL, sizeof powers, &numbers) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_upload(x, 0, host, sizeof host) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_upload(numbers, 0, powers, sizeof powers) == TESSERA_SUCCESS);
    const tessera_matrix in = tessera_row_major(tessera_buffer_data(x), TESSERA_F32, rows, columns, columns);
    const tessera_matrix out = tessera_row_major(tessera_buffer_data(y), TESSERA_F32, rows, columns, columns);
    const tessera_matrix turned = tessera_transposed(in);
    const float factor = 0.5F;
    tessera_argument arguments[4] = {
        {&in, NULL, 0, -1}, {NULL, tessera_buffer_data(numbers), 5, -1}, {&out, NULL, 0, -1}, {NULL, &factor, 0, -1}};
    CHECK(tessera_kernel_launch(kernel, NULL, arguments, 4) == TESSERA_SUCCESS);
    CHECK(tessera_buffer_download(y, 0, result, sizeof result) == TESSERA_SUCCESS);
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
        wrong += result[i] != host[i] * factor + (float)(powers[i / columns / 4] * 10);
    }
    CHECK(wrong == 0);

    CHECK_FAILS(tessera_kernel_launch(kernel, NULL, arguments, 3), TESSERA_INVALID_ARGUMENT,
                "Scaled<float> has 4 members, and the launch 3 arguments");
    arguments[0].matrix = &turned;
    CHECK_FAILS(tessera_kernel_launch(kernel, NULL, arguments, 4), TESSERA_INVALID_ARGUMENT,
                "argument 1 has elements 40 apart along its rows, and its member is row-major");
    arguments[0].matrix = NULL;
    CHECK_FAILS(tessera_kernel_launch(kernel, NULL, arguments, 4), TESSERA_INVALID_ARGUMENT, ".matrix is NULL");
    tessera_buffer_destroy(x);
    tessera_buffer_destroy(y);
    tessera_buffer_destroy(numbers);
}

int main(void)
{
    const char* const definitions[] = {"STEP=10"};
    tessera_program* program = NULL;
    CHECK(tessera_program_create(source, "scaled.cu", definitions, 1, &program) == TESSERA_SUCCESS);
    CHECK_FAILS(tessera_program_create(NULL, NULL, NULL, 0, &program), TESSERA_INVALID_ARGUMENT, "source is NULL");
    if (tessera_device_count() == 0) {
        printf("no CUDA device was found\n");
        tessera_program_destroy(program);
        return 77;
    }
    compiled_without_a_device(program);
    tessera_kernel* kernel = NULL;
    CHECK(tessera_program_kernel(program, "Scaled<float>", &kernel) == TESSERA_SUCCESS);
    tessera_program_destroy(program);
    described(kernel);
    launched(kernel);
    tessera_kernel_destroy(kernel);
    tessera_kernel_destroy(NULL);
    tessera_program_destroy(NULL);
    return failed_checks == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
