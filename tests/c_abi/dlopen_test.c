/* What a program does that loads the library: dlopen_test <libtessera_c.so>. Every function is found with its version, and the
   library can be unloaded and loaded again. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include "tessera.h"

static const char* no_error(void) { return ""; }
static const char* (*last_error)(void) = no_error;
#define LAST_ERROR last_error
#include "check.h"

static const char* const functions[] = {
#define FUNCTION(name) #name,
#include "functions.inc"
#undef FUNCTION
};

/* dlsym gives functions as void*; C has no cast between the two, but POSIX says that they have the same bits. */
static void find(void* library, const char* name, void* function, size_t size)
{
    void* const found = dlvsym(library, name, "TESSERA_0.1");
    if (found == NULL) {
        ++failed_checks;
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    memcpy(function, &found, size);
}

static void use(const char* path)
{
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
        void* found = NULL;
        find(library, functions[i], &found, sizeof found);
    }
    int (*device_count)(void) = NULL;
    tessera_status (*create)(int, tessera_stream, size_t, tessera_buffer**) = NULL;
    tessera_status (*upload)(tessera_buffer*, size_t, const void*, size_t) = NULL;
    tessera_status (*download)(const tessera_buffer*, size_t, void*, size_t) = NULL;
    void* (*data)(const tessera_buffer*) = NULL;
    void (*destroy)(tessera_buffer*) = NULL;
    tessera_matrix (*row_major)(void*, tessera_element_type, int64_t, int64_t, int64_t) = NULL;
    tessera_status (*gemm)(tessera_stream, const tessera_matrix*, const tessera_matrix*, const tessera_matrix*,
                           const tessera_epilogue*, const tessera_options*) = NULL;
    find(library, "tessera_last_error", &last_error, sizeof last_error);
    find(library, "tessera_device_count", &device_count, sizeof device_count);
    find(library, "tessera_buffer_create", &create, sizeof create);
    find(library, "tessera_buffer_upload", &upload, sizeof upload);
    find(library, "tessera_buffer_download", &download, sizeof download);
    find(library, "tessera_buffer_data", &data, sizeof data);
    find(library, "tessera_buffer_destroy", &destroy, sizeof destroy);
    find(library, "tessera_row_major", &row_major, sizeof row_major);
    find(library, "tessera_gemm", &gemm, sizeof gemm);
    if (device_count() == 0) {
        puts("no CUDA device: run this under tessera-emu");
        exit(77);
    }
    const float two_by_two[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    const size_t bytes = sizeof two_by_two[0];
    tessera_buffer* buffers[3];
    tessera_matrix views[3];
    for (int i = 0; i < 3; ++i) {
        CHECK(create(-1, NULL, bytes, &buffers[i]) == TESSERA_SUCCESS);
        CHECK(upload(buffers[i], 0, two_by_two[i], bytes) == TESSERA_SUCCESS);
        views[i] = row_major(data(buffers[i]), TESSERA_F32, 2, 2, 2);
    }
    CHECK(gemm(NULL, &views[0], &views[1], &views[2], NULL, NULL) == TESSERA_SUCCESS);
    CHECK(gemm(NULL, &views[0], &views[1], &views[0], NULL, NULL) == TESSERA_ALIASING);
    CHECK(strstr(last_error(), "aliasing in tessera_gemm") != NULL);
    float product[4] = {0};
    CHECK(download(buffers[2], 0, product, bytes) == TESSERA_SUCCESS);
    CHECK(product[0] == 19 && product[1] == 22 && product[2] == 43 && product[3] == 50);
    for (int i = 0; i < 3; ++i) {
        destroy(buffers[i]);
    }
    last_error = no_error;
    CHECK(dlclose(library) == 0);
}

int main(int argc, char** argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s <libtessera_c.so>\n", argv[0]);
        return 2;
    }
    use(argv[1]);
    use(argv[1]);
    printf("%d checks failed\n", failed_checks);
    return failed_checks == 0 ? 0 : 1;
}
