/* One line of a script. */
#include "script.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct word {
    const char *text;
    uint32_t value;
} word;

static const word kinds[] = {{"launch", FAKE_LAUNCH},
                             {"graph", FAKE_GRAPH_LAUNCH},
                             {"memcpy", FAKE_MEMCPY},
                             {"peer", FAKE_MEMCPY_PEER},
                             {"memset", FAKE_MEMSET},
                             {"sync_device", FAKE_SYNC_DEVICE},
                             {"sync_stream", FAKE_SYNC_STREAM},
                             {"sync_event", FAKE_SYNC_EVENT},
                             {"wait_event", FAKE_WAIT_EVENT},
                             {"query", FAKE_QUERY},
                             {"call", FAKE_CALL},
                             {"malloc", FAKE_MALLOC},
                             {"free", FAKE_FREE},
                             {"overhead", FAKE_OVERHEAD},
                             {"record", FAKE_RECORD},
                             {"capture", FAKE_CAPTURE},
                             {"end_capture", FAKE_END_CAPTURE},
                             {"begin", LINE_BEGIN},
                             {"end", LINE_END},
                             {"step", LINE_STEP},
                             {"wait", LINE_WAIT},
                             {"flush", LINE_FLUSH},
                             {"drop", LINE_DROP},
                             {"late", LINE_LATE},
                             {"shuffle", LINE_SHUFFLE},
                             {"thread", LINE_THREAD},
                             {"join", LINE_JOIN},
                             {NULL, 0}};
static const word apis[] = {{"runtime", FAKE_RUNTIME}, {"driver", FAKE_DRIVER},
                            {"nested", FAKE_NESTED},   {"nested_own", FAKE_NESTED_OWN},
                            {"none", FAKE_NO_CALL},    {NULL, 0}};
static const word flags[] = {{"late", FAKE_LATE},
                             {"endless", FAKE_ENDLESS},
                             {"untimed", FAKE_UNTIMED},
                             {"backward", FAKE_BACKWARD},
                             {"lost", FAKE_LOST},
                             {"non_blocking", FAKE_NON_BLOCKING},
                             {NULL, 0}};

/* Format of a field's value. */
enum form { NUMBER_32, NUMBER_64, TIME, THREE, API, FLAGS };

#define FIELD(name, form, relative) {#name, offsetof(fake_activity, name), form, relative}
static const struct {
    const char *name;
    size_t at;
    enum form form;
    uint32_t relative;
} fields[] = {FIELD(api, API, 0),
              FIELD(flags, FLAGS, 0),
              FIELD(cbid, NUMBER_32, 0),
              FIELD(result, NUMBER_32, 0),
              FIELD(device, NUMBER_32, 0),
              FIELD(context, NUMBER_32, 0),
              FIELD(stream, NUMBER_32, 0),
              FIELD(ns, NUMBER_64, 0),
              FIELD(delay_ns, NUMBER_64, 0),
              FIELD(bytes, NUMBER_64, 0),
              FIELD(address, NUMBER_64, 0),
              FIELD(copy_kind, NUMBER_32, 0),
              FIELD(peer, NUMBER_32, 0),
              FIELD(nodes, NUMBER_32, 0),
              FIELD(graph, NUMBER_32, 0),
              FIELD(grid, THREE, 0),
              FIELD(block, THREE, 0),
              FIELD(registers, NUMBER_32, 0),
              FIELD(static_shared, NUMBER_32, 0),
              FIELD(dynamic_shared, NUMBER_32, 0),
              FIELD(event, NUMBER_32, 0),
              FIELD(api_start, TIME, RELATIVE_API_START),
              FIELD(api_end, TIME, RELATIVE_API_END),
              FIELD(start, TIME, RELATIVE_START),
              FIELD(end, TIME, RELATIVE_END)};

/* ---- values ------------------------------------------------------------------------------ */

static bool number(const char **at, uint64_t most, uint64_t *value) {
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *value = strtoull(*at, &end, 0);
    *at = end;
    return errno == 0 && *value <= most;
}

static bool choice(const char **at, const word *words, uint32_t *value) {
    size_t length = strspn(*at, "abcdefghijklmnopqrstuvwxyz_");
    for (; words->text; words++)
        if (strlen(words->text) == length && memcmp(words->text, *at, length) == 0) {
            *value = words->value;
            *at += length;
            return true;
        }
    return false;
}

static bool several_flags(const char **at, uint32_t *value) {
    uint32_t one;
    do {
        if (!choice(at, flags, &one))
            return false;
        *value |= one;
    } while (**at == ',' && (*at)++);
    return true;
}

static bool three(const char **at, uint32_t *values) {
    uint64_t value;
    for (int i = 0; i < 3; i++) {
        if (i && *(*at)++ != ',')
            return false;
        if (!number(at, INT32_MAX, &value))
            return false;
        values[i] = (uint32_t)value;
    }
    return true;
}

static bool text(const char **at, char *out) {
    bool quoted = **at == '"';
    *at += quoted;
    size_t length = strcspn(*at, quoted ? "\"\n" : " \t\n");
    if (!length || length >= sizeof((script_line *)0)->name || (quoted && (*at)[length] != '"'))
        return false;
    memcpy(out, *at, length);
    out[length] = 0;
    *at += length + quoted;
    return true;
}

static bool value_of(const char **at, enum form form, void *out) {
    uint64_t wide = 0;
    switch (form) {
    case NUMBER_32:
        if (!number(at, UINT32_MAX, &wide))
            return false;
        *(uint32_t *)out = (uint32_t)wide;
        return true;
    case NUMBER_64:
    case TIME:
        return number(at, UINT64_MAX, out);
    case THREE:
        return three(at, out);
    case API:
        return choice(at, apis, out);
    case FLAGS:
        return several_flags(at, out);
    }
    return false;
}

/* ---- lines ------------------------------------------------------------------------------- */

static void skip_blanks(const char **at) { *at += strspn(*at, " \t\r"); }

static bool at_end(const char *at) { return !*at || *at == '\n' || *at == '#'; }

static bool field(const char **at, script_line *line) {
    size_t length = strcspn(*at, "= \t\n");
    const char *name = *at;
    if (name[length] != '=')
        return false;
    *at += length + 1;
    if (length == 4 && memcmp(name, "name", 4) == 0)
        return text(at, line->name);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strlen(fields[i].name) != length || memcmp(fields[i].name, name, length) != 0)
            continue;
        if (fields[i].form == TIME && **at == '+') {
            line->relative |= fields[i].relative;
            (*at)++;
        }
        return value_of(at, fields[i].form, (char *)&line->activity + fields[i].at);
    }
    return false;
}

static bool rest(const char **at, script_line *line) {
    switch (line->kind) {
    case LINE_BEGIN:
        return text(at, line->name);
    case LINE_FLUSH:
    case LINE_DROP:
    case LINE_LATE:
    case LINE_SHUFFLE:
    case LINE_THREAD:
        return number(at, UINT64_MAX, &line->number);
    case LINE_END:
    case LINE_STEP:
    case LINE_WAIT:
    case LINE_JOIN:
        return true;
    default:
        line->activity.kind = line->kind;
        for (; !at_end(*at); skip_blanks(at))
            if (!field(at, line))
                return false;
        return true;
    }
}

int script_parse(const char *at, script_line *line) {
    memset(line, 0, sizeof *line);
    skip_blanks(&at);
    if (at_end(at))
        return 1;
    if (!choice(&at, kinds, &line->kind))
        return 0;
    skip_blanks(&at);
    if (!rest(&at, line))
        return 0;
    skip_blanks(&at);
    return at_end(at);
}
