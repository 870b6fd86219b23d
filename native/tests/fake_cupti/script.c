/* fake_script(): runs each line on its thread. */
#include "script.h"

#include "fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 64

typedef struct script {
    script_line *lines;
    size_t count;
    fake_hooks hooks;
} script;

/* A thread's part of a script between two joins. */
typedef struct part {
    const script *script;
    size_t from, to;
    uint64_t thread;
} part;

/* ---- one line ---------------------------------------------------------------------------- */

static void run_activity(const script_line *line) {
    fake_activity a = line->activity;
    a.name = line->name[0] ? line->name : NULL;
    uint64_t now = line->relative ? fake_now() : 0;
    a.api_start += line->relative & RELATIVE_API_START ? now : 0;
    a.api_end += line->relative & RELATIVE_API_END ? now : 0;
    a.start += line->relative & RELATIVE_START ? now : 0;
    a.end += line->relative & RELATIVE_END ? now : 0;
    fake_run(&a);
}

static void run_line(const script_line *line, const fake_hooks *hooks) {
    switch (line->kind) {
    case LINE_BEGIN:
        if (hooks->begin)
            hooks->begin(line->name);
        break;
    case LINE_END:
        if (hooks->end)
            hooks->end();
        break;
    case LINE_STEP:
        if (hooks->step)
            hooks->step();
        break;
    case LINE_WAIT:
        fake_wait_for((fake_place){0});
        break;
    case LINE_FLUSH:
        cuptiActivityFlushAll(line->number ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
        break;
    case LINE_DROP:
        fake_drop(line->number);
        break;
    case LINE_LATE:
        fake_late((uint32_t)line->number);
        break;
    case LINE_SHUFFLE:
        fake_shuffle(line->number);
        break;
    default:
        run_activity(line);
    }
}

/* ---- stretches --------------------------------------------------------------------------- */

static void *run_part(void *argument) {
    const part *p = argument;
    uint64_t thread = 0;
    for (size_t i = 0; i < p->to; i++) {
        const script_line *line = &p->script->lines[i];
        if (line->kind == LINE_THREAD)
            thread = line->number;
        else if (i >= p->from && line->kind && thread == p->thread)
            run_line(line, &p->script->hooks);
    }
    return NULL;
}

static void run_stretch(const script *s, size_t from, size_t to) {
    pthread_t threads[THREADS];
    part parts[THREADS];
    bool started[THREADS] = {false};
    uint64_t thread = 0;
    for (size_t i = 0; i < to; i++) {
        if (s->lines[i].kind == LINE_THREAD)
            thread = s->lines[i].number;
        else if (i >= from && s->lines[i].kind && thread && !started[thread]) {
            started[thread] = true;
            parts[thread] = (part){.script = s, .from = from, .to = to, .thread = thread};
            if (pthread_create(&threads[thread], NULL, run_part, &parts[thread]) != 0)
                fake_die("no thread for the script");
        }
    }
    parts[0] = (part){.script = s, .from = from, .to = to, .thread = 0};
    run_part(&parts[0]);
    for (size_t i = 1; i < THREADS; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
}

static void run_all(const script *s) {
    size_t from = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->lines[i].kind == LINE_JOIN) {
            run_stretch(s, from, i);
            from = i + 1;
        }
    run_stretch(s, from, s->count);
}

/* ---- the whole --------------------------------------------------------------------------- */

static size_t lines_in(const char *text) {
    size_t count = 1;
    while ((text = strchr(text, '\n'))) {
        count++;
        text++;
    }
    return count;
}

/* The number of the first invalid line; 0: none. */
static int parse_all(const char *text, script *s) {
    for (; text; s->count++) {
        script_line *line = &s->lines[s->count];
        if (!script_parse(text, line) || (line->kind == LINE_THREAD && line->number >= THREADS))
            return (int)s->count + 1;
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return 0;
}

int fake_script(const char *text, const fake_hooks *hooks) {
    script s = {.lines = calloc(lines_in(text), sizeof *s.lines)};
    if (!s.lines)
        fake_die("no memory for a script");
    if (hooks)
        s.hooks = *hooks;
    int bad = parse_all(text, &s);
    if (!bad)
        run_all(&s);
    free(s.lines);
    return bad;
}
