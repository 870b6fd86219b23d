#include "import/trace_members.h"

#include "core/json_scalar.h"

#define LONGEST_PLACE 4096 /* bytes of a pid or tid */

static op_span *place_of(op_members *m, const op_span *key) {
    switch (key->length) {
    case 2:
        return op_key_is(key, "ph") ? &m->ph : op_key_is(key, "ts") ? &m->ts : NULL;
    case 3:
        return op_key_is(key, "cat")   ? &m->cat
               : op_key_is(key, "pid") ? &m->pid
               : op_key_is(key, "tid") ? &m->tid
               : op_key_is(key, "dur") ? &m->dur
                                       : NULL;
    case 4:
        return op_key_is(key, "name") ? &m->name : op_key_is(key, "args") ? &m->args : NULL;
    default:
        return NULL;
    }
}

int op_members_scan(op_scan *j, op_members *m) {
    bool first = true, more = true;
    m->others = 0;
    m->too_many = false;
    m->ph = m->cat = m->name = m->pid = m->tid = m->ts = m->dur = m->args = (op_span){0};
    j->at++;
    for (;;) {
        op_span key, value;
        int rc = op_scan_next(j, '}', &first, &more);
        if (rc != OP_SCAN_OK || !more)
            return rc;
        if ((rc = op_scan_key(j, &key)) || (rc = op_scan_value(j, &value)))
            return rc;
        op_span *place = place_of(m, &key);
        if (place) {
            *place = value;
        } else if (m->others == OP_MOST_MEMBERS) {
            m->too_many = true;
        } else {
            m->keys[m->others] = key;
            m->values[m->others++] = value;
        }
    }
}

bool op_member_text(op_trace_reader *r, const op_span *value, op_span *out) {
    if (value->length < 2 || *value->text != '"')
        return false;
    *out = (op_span){.text = value->text + 1, .length = value->length - 2};
    if (!value->is_escaped)
        return true;
    r->name.used = 0;
    char *to = op_buffer_extend(&r->name, out->length);
    if (!to) {
        r->failed = op_trace_no_memory();
        return false;
    }
    *out = (op_span){.text = to, .length = op_scan_unescape(out, to)};
    return true;
}

bool op_member_is_plain(const op_span *value) {
    if (!value->length || value->length > LONGEST_PLACE)
        return false;
    char first = value->text[*value->text == '-' && value->length > 1];
    return first == '"' || (first >= '0' && first <= '9');
}
