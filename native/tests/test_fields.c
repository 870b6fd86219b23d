#include "core/fields.h"

#include "fixture.h"

static void values_come_back_as_they_were_put(void) {
    op_fields f;
    op_fields_clear(&f);
    CHECK_EQ(op_fields_close(&f), 0);
    const uint64_t numbers[3] = {1, UINT64_MAX, 3};
    CHECK(op_fields_put_word(&f, 10, OP_FIELD_COLOR, 0xff00ff00));
    CHECK(op_fields_put_numbers(&f, 11, OP_FIELD_UNSIGNED, numbers, 3));
    CHECK(op_fields_put_text(&f, 12, OP_FIELD_TEXT, "text!", 5));
    CHECK(op_fields_put_text(&f, 13, OP_FIELD_TEXT, "", 0));
    uint32_t words = op_fields_close(&f);
    CHECK_EQ(words, 1 + 3 + 8 + 4 + 2);
    const uint32_t *at = NULL, *limit = f.words + words;
    op_field field;
    CHECK(op_fields_next(f.words, limit, &at, &field));
    CHECK_EQ(field.key, 10);
    CHECK_EQ(field.values[0], 0xff00ff00);
    CHECK(op_fields_next(f.words, limit, &at, &field));
    CHECK_EQ(field.count, 3);
    CHECK_EQ(memcmp(field.values, numbers, sizeof numbers), 0);
    CHECK(op_fields_next(f.words, limit, &at, &field));
    CHECK_EQ(field.count, 5);
    CHECK_EQ(memcmp(field.values, "text!", 5), 0);
    CHECK(op_fields_next(f.words, limit, &at, &field));
    CHECK_EQ(field.count, 0);
    CHECK(!op_fields_next(f.words, limit, &at, &field));
}

static void what_does_not_fit_is_left_out(void) {
    op_fields f;
    char long_text[4 * OP_FIELDS_MAX_WORDS] = {0};
    const uint64_t numbers[OP_FIELDS_MAX_WORDS] = {0};
    op_fields_clear(&f);
    CHECK(!op_fields_put_text(&f, 1, OP_FIELD_TEXT, long_text, sizeof long_text));
    CHECK(!op_fields_put_text(&f, 1, OP_FIELD_TEXT, long_text, SIZE_MAX));
    CHECK(!op_fields_put_numbers(&f, 1, OP_FIELD_SIGNED, numbers, OP_FIELDS_MAX_WORDS / 2));
    CHECK(!op_fields_put_numbers(&f, 1, OP_FIELD_SIGNED, numbers, UINT32_MAX));
    uint32_t put = 0;
    while (op_fields_put_word(&f, put, OP_FIELD_BOOL, 1))
        put++;
    CHECK_EQ(put, (OP_FIELDS_MAX_WORDS - 1) / 3);
    CHECK(op_fields_close(&f) <= OP_FIELDS_MAX_WORDS);
}

static void blocks_go_on_after_they_were_written(void) {
    op_fields f, more;
    op_fields_clear(&f);
    op_fields_put_word(&f, 1, OP_FIELD_BOOL, 1);
    op_fields_close(&f);
    CHECK(op_fields_reopen(&more, f.words));
    op_fields_put_word(&more, 2, OP_FIELD_BOOL, 0);
    CHECK_EQ(op_fields_close(&more), 7);
    const uint32_t text[] = {OP_ARGS_HEADER(OP_ARGS_TEXT, 1), 0};
    const uint32_t huge[] = {OP_ARGS_HEADER(OP_ARGS_FIELDS, OP_FIELDS_MAX_WORDS), 0};
    CHECK(!op_fields_reopen(&more, text));
    CHECK(!op_fields_reopen(&more, huge));
}

/* As read from a damaged file. */
static void damaged_blocks_end_early(void) {
    const uint32_t *at = NULL;
    op_field field;
    const uint32_t past_the_end[] = {OP_ARGS_HEADER(OP_ARGS_FIELDS, 3), 1, OP_FIELD_BOOL | 1 << 8};
    CHECK(!op_fields_next(past_the_end, past_the_end + 3, &at, &field));
    const uint32_t lies[] = {OP_ARGS_HEADER(OP_ARGS_FIELDS, 3), 1, OP_FIELD_TEXT | 0xffffffu << 8, 0};
    CHECK(!op_fields_next(lies, lies + 4, &at, &field));
    const uint32_t cut[] = {OP_ARGS_HEADER(OP_ARGS_FIELDS, 1), 1};
    CHECK(!op_fields_next(cut, cut + 2, &at, &field));
    uint32_t copy[4];
    memcpy(copy, lies, sizeof copy);
    op_fields_rename(copy, copy + 4, NULL, 0);
    CHECK_EQ(memcmp(copy, lies, sizeof copy), 0);
}

static void names_of_a_file_become_ours(void) {
    op_fields f;
    const uint32_t names[] = {0, 100, 200};
    const uint64_t one = 1;
    op_fields_clear(&f);
    op_fields_put_word(&f, 1, OP_FIELD_NAME, 2);
    op_fields_put_numbers(&f, 9, OP_FIELD_SIGNED, &one, 1); /* a name missing from the file */
    uint32_t words = op_fields_close(&f);
    op_fields_rename(f.words, f.words + words, names, 3);
    const uint32_t *at = NULL;
    op_field field;
    CHECK(op_fields_next(f.words, f.words + words, &at, &field));
    CHECK_EQ(field.key, 100);
    CHECK_EQ(field.values[0], 200);
    CHECK(op_fields_next(f.words, f.words + words, &at, &field));
    CHECK_EQ(field.key, 0);
    CHECK_EQ(field_number(&field, 0), 1);
}

int main(void) {
    RUN(values_come_back_as_they_were_put);
    RUN(what_does_not_fit_is_left_out);
    RUN(blocks_go_on_after_they_were_written);
    RUN(damaged_blocks_end_early);
    RUN(names_of_a_file_become_ours);
    return 0;
}
