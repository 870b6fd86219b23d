/* One reader that is fuzzed, and who gives it inputs: clang's libFuzzer, or fuzz_driver.c where there
 * is gcc alone. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libFuzzer's name and its rules: it gives 0, and one input is as good as another. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const bool fuzz_is_json; /* what is worth changing in an input */
extern uint64_t fuzz_accepted;  /* inputs that the reader took */

#endif
