/* A fuzzed reader, driven by clang's libFuzzer, or by fuzz_driver.c with only gcc. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry point: returns 0 for every input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const bool fuzz_is_json; /* whether inputs are JSON, for the mutations */
extern uint64_t fuzz_accepted;  /* inputs that the reader accepted */

#endif
