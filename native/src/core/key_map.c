#include "core/key_map.h"

#include "core/fault.h"

/* The key's place, or the empty one where it belongs. */
static op_key_place *place_of(const op_key_map *map, uint64_t a, uint64_t b) {
    uint64_t h = (a * 0x9e3779b97f4a7c15u) ^ (b * 0xc2b2ae3d27d4eb4fu);
    for (uint64_t at = (h ^ h >> 32) & map->mask;; at = (at + 1) & map->mask) {
        op_key_place *place = &map->places[at];
        if (!place->is_used || (place->a == a && place->b == b))
            return place;
    }
}

static bool has_room(op_key_map *map) {
    if (map->places && map->count * 2 <= map->mask)
        return true;
    uint64_t places = map->places ? (map->mask + 1) * 2 : 64;
    op_key_map larger = {
        .places = op_calloc(places, sizeof *larger.places), .mask = places - 1, .count = map->count};
    if (!larger.places)
        return false;
    for (uint64_t at = 0; map->places && at <= map->mask; at++)
        if (map->places[at].is_used)
            *place_of(&larger, map->places[at].a, map->places[at].b) = map->places[at];
    free(map->places);
    *map = larger;
    return true;
}

uint32_t *op_key_map_at(op_key_map *map, uint64_t a, uint64_t b) {
    if (!has_room(map))
        return NULL;
    op_key_place *place = place_of(map, a, b);
    if (!place->is_used) {
        *place = (op_key_place){.a = a, .b = b, .is_used = true};
        map->count++;
    }
    return &place->value;
}

uint32_t *op_key_map_find(const op_key_map *map, uint64_t a, uint64_t b) {
    op_key_place *place = map->places ? place_of(map, a, b) : NULL;
    return place && place->is_used ? &place->value : NULL;
}

void op_key_map_free(op_key_map *map) {
    free(map->places);
    *map = (op_key_map){0};
}
