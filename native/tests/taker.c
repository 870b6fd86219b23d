/* A library that allocates memory, with its own import table. */
#include <stdlib.h>

void *library_take(size_t bytes);
void library_give(void *block);

void *library_take(size_t bytes) { return malloc(bytes); }
void library_give(void *block) { free(block); }
