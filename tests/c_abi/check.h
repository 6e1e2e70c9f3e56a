#ifndef TESSERA_TEST_CHECK_H
#define TESSERA_TEST_CHECK_H

/* What the C tests check with. A test prints each check that fails, and its exit status is 1 then. */

#include <stdio.h>
#include <string.h>

static int failed_checks = 0;

/* Also for functions whose failure has a text. */
#define CHECK(condition)                                                                                 \
    do {                                                                                                 \
        if (!(condition)) {                                                                              \
            ++failed_checks;                                                                             \
            fprintf(stderr, "%s:%d: CHECK(%s) failed; last error: %s\n", __FILE__, __LINE__, #condition, \
                    LAST_ERROR());                                                                       \
        }                                                                                                \
    } while (0)

/* That a call fails with this status, and that its text has these words. */
#define CHECK_FAILS(call, status, words)                                                               \
    do {                                                                                               \
        CHECK((call) == (status));                                                                     \
        if (strstr(LAST_ERROR(), words) == NULL) {                                                     \
            ++failed_checks;                                                                           \
            fprintf(stderr, "%s:%d: \"%s\" is not in: %s\n", __FILE__, __LINE__, words, LAST_ERROR()); \
        }                                                                                              \
    } while (0)

#endif
