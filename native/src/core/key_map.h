/* Numbers by a key of two words: what is stored once, and found again. */
#ifndef OP_KEY_MAP_H
#define OP_KEY_MAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct op_key_place {
    uint64_t a, b;
    uint32_t value;
    bool is_used;
} op_key_place;

/* Empty if all is zero. */
typedef struct op_key_map {
    op_key_place *places; /* at least half of them are empty */
    uint64_t mask, count;
} op_key_map;

/* Where the value of a key is, until a key is added; 0 there if the key is new. NULL: no memory. */
uint32_t *op_key_map_at(op_key_map *map, uint64_t a, uint64_t b);
/* The same of a key that may be missing: NULL, and nothing is added. */
uint32_t *op_key_map_find(const op_key_map *map, uint64_t a, uint64_t b);
void op_key_map_free(op_key_map *map);

#endif
