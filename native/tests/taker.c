/* A library that takes memory: its table of imports is not the program's. */
#include <stdlib.h>

void *library_take(size_t bytes);
void library_give(void *block);

void *library_take(size_t bytes) { return malloc(bytes); }
void library_give(void *block) { free(block); }
