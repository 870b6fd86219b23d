#include "check.h"
#include "core/key_map.h"

static void a_key_has_one_place(void) {
    op_key_map map = {0};
    *op_key_map_at(&map, 1, 7) = 5;
    CHECK_EQ(*op_key_map_at(&map, 1, 7), 5);
    CHECK_EQ(*op_key_map_at(&map, 7, 1), 0);
    CHECK_EQ(*op_key_map_at(&map, 0, 0), 0);
    CHECK_EQ(map.count, 3);
    op_key_map_free(&map);
}

static void a_lookup_adds_nothing(void) {
    op_key_map map = {0};
    CHECK(!op_key_map_find(&map, 1, 7));
    *op_key_map_at(&map, 1, 7) = 5;
    CHECK(!op_key_map_find(&map, 1, 8));
    CHECK_EQ(*op_key_map_find(&map, 1, 7), 5);
    CHECK_EQ(map.count, 1);
    op_key_map_free(&map);
}

/* A step between them that is a power of two leaves little of a key for its hash. */
static void values_stay_while_it_grows(void) {
    static const uint64_t steps[] = {1, 64, 4096, (uint64_t)1 << 32};
    const uint32_t n = 10000;
    for (int way = 0; way < 4; way++)
        for (int word = 0; word < 2; word++) {
            op_key_map map = {0};
            for (uint32_t i = 0; i < n; i++)
                *op_key_map_at(&map, word ? 3 : i * steps[way], word ? i * steps[way] : 3) = i + 1;
            for (uint32_t i = 0; i < n; i++)
                CHECK_EQ(*op_key_map_find(&map, word ? 3 : i * steps[way], word ? i * steps[way] : 3),
                         i + 1);
            CHECK_EQ(map.count, n);
            op_key_map_free(&map);
        }
}

int main(void) {
    RUN(a_key_has_one_place);
    RUN(a_lookup_adds_nothing);
    RUN(values_stay_while_it_grows);
    return 0;
}
