// Copyright 2026 The inertial_estimation developers
// SPDX-License-Identifier: BSD-3-Clause
// Messages of sensors, their streams and filters, compiled: the same as in messages.py, router.py,
// stream.py, sensor_stream.py and savitzky_golay.py, which do without where no compiler was at hand.
// Only what is usual is done here; of anything else the caller learns, and does it in Python.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

enum { SIZE = 6, READING = 48, TRIPLE = 24, STAMP_AT = 4, FRAME_AT = 12 };
enum { FRESH = 0, ABSENT = 2, STALE = 3, OTHER = 255 };  // of `SensorState`; OTHER: left to Python
static const long long SECOND = 1000000000;

// Numbers of a stream and of a filter: attributes of the Python objects that derive from these.
typedef struct {
    PyObject_HEAD
    long long first, last, counted, evaluated, longest_gap, max_age, offset, since, repeated_at;
    long long frozen_after, received, used, refused, dropped, repeated, invalid, restarts, unfiltered;
    double age;
    int state;
    char smooth, derives;
} Stream;

typedef struct {
    PyObject_HEAD
    long long window, interval, before_gap;
    double max_gap, min_span, tolerance;
    Py_ssize_t count, run, least, channels;
    int order;
    char ready;
} Filter;

#define FIELD(type, name, kind, field) {name, kind, offsetof(type, field), 0, NULL}
static PyMemberDef stream_fields[] = {
#define NUMBER(name, field) FIELD(Stream, name, T_LONGLONG, field)
    NUMBER("first_ns", first), NUMBER("last_ns", last), NUMBER("_counted", counted),
    NUMBER("_evaluated_ns", evaluated), NUMBER("_longest_gap_ns", longest_gap),
    NUMBER("_max_age_ns", max_age), NUMBER("_offset_ns", offset), NUMBER("_since_ns", since),
    NUMBER("_repeated_ns", repeated_at),
    NUMBER("_frozen_after_ns", frozen_after), NUMBER("received", received), NUMBER("used", used),
    NUMBER("refused", refused), NUMBER("dropped", dropped), NUMBER("repeated", repeated),
    NUMBER("invalid", invalid), NUMBER("restarts", restarts), NUMBER("unfiltered", unfiltered),
    FIELD(Stream, "_age_ns", T_DOUBLE, age), FIELD(Stream, "state", T_INT, state),
    FIELD(Stream, "_smooth", T_BOOL, smooth), FIELD(Stream, "_derives", T_BOOL, derives), {NULL}};

static PyMemberDef filter_fields[] = {
    FIELD(Filter, "_window_ns", T_LONGLONG, window), FIELD(Filter, "_interval", T_LONGLONG, interval),
    FIELD(Filter, "_before_gap_ns", T_LONGLONG, before_gap),
    FIELD(Filter, "_max_gap_ns", T_DOUBLE, max_gap), FIELD(Filter, "_min_span_ns", T_DOUBLE, min_span),
    FIELD(Filter, "_tolerance", T_DOUBLE, tolerance), FIELD(Filter, "_count", T_PYSSIZET, count),
    FIELD(Filter, "_run", T_PYSSIZET, run), FIELD(Filter, "_least", T_PYSSIZET, least),
    FIELD(Filter, "n_channels", T_PYSSIZET, channels), FIELD(Filter, "_order", T_INT, order),
    FIELD(Filter, "ready", T_BOOL, ready), {NULL}};

static PyTypeObject stream_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "inertial_estimation.signals._streams.StreamFields",
    .tp_basicsize = sizeof(Stream), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_members = stream_fields, .tp_new = PyType_GenericNew};

static PyTypeObject filter_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "inertial_estimation.signals._streams.FilterFields",
    .tp_basicsize = sizeof(Filter), .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_members = filter_fields, .tp_new = PyType_GenericNew};

enum { QUEUE, HELD, FED, MESSAGE, VALUE, RANGE, FILTER, SPIN, SAMPLES, STAMPS, VALUES, END, GROW,
       RESET, APPEND, POPLEFT, N_NAMES };
static const char *const texts[N_NAMES] = {
    "_queue", "_held", "fed", "message", "_value", "_range", "differentiator",
    "angular_acceleration", "_samples", "_stamps", "_values", "_end", "grow", "reset", "append",
    "popleft"};
static PyObject *names[N_NAMES];

static PyObject *get(void *object, int name) { return PyObject_GetAttr(object, names[name]); }

static int is_stream(PyObject *object)
{
    if (PyObject_TypeCheck(object, &stream_type)) return 1;
    PyErr_SetString(PyExc_TypeError, "expected a stream");
    return 0;
}

// Samples of a filter: buffers of its arrays, and the number of samples in them.
typedef struct { Py_buffer stamps, values; Py_ssize_t end; } Window;

static void leave(Window *w) { PyBuffer_Release(&w->stamps); PyBuffer_Release(&w->values); }

static int look(PyObject *samples, Filter *f, Window *w)
{
    PyObject *end = get(samples, END), *stamps = get(samples, STAMPS), *values = get(samples, VALUES);
    int failed = !end || !stamps || !values || PyObject_GetBuffer(stamps, &w->stamps, PyBUF_WRITABLE);
    if (!failed && PyObject_GetBuffer(values, &w->values, PyBUF_WRITABLE)) {
        PyBuffer_Release(&w->stamps);
        failed = 1;
    }
    if (!failed) {
        w->end = PyLong_AsSsize_t(end);
        if (w->end < f->count || f->count < 0 || f->channels < 0 || 8 * w->end > w->stamps.len
            || w->values.len != w->stamps.len * f->channels) {
            leave(w);
            PyErr_SetString(PyExc_ValueError, "sizes of a window do not fit");
            failed = 1;
        }
    }
    Py_XDECREF(end);
    Py_XDECREF(stamps);
    Py_XDECREF(values);
    return failed ? -1 : 0;
}

static int append_to(Filter *f, long long stamp, const char *values)
{
    Window w;
    PyObject *samples = get(f, SAMPLES), *end;
    int failed = !samples || look(samples, f, &w);
    if (!failed && 8 * w.end == w.stamps.len) {
        leave(&w);
        PyObject *done = PyObject_CallMethod(samples, "grow", "n", f->count);
        failed = !done || look(samples, f, &w);
        Py_XDECREF(done);
        if (!failed && 8 * w.end >= w.stamps.len) {
            leave(&w);
            PyErr_SetString(PyExc_ValueError, "a window does not grow");
            failed = 1;
        }
    }
    if (!failed) {
        long long *stamps = w.stamps.buf;
        if (f->count) {
            const long long interval = stamp - stamps[w.end - 1];
            if (interval > f->max_gap) f->before_gap = stamps[w.end - 1];
            if (fabs((double)(interval - f->interval)) <= f->tolerance * f->interval) f->run++;
            else { f->interval = interval; f->run = 1; }
        }
        stamps[w.end] = stamp;
        memcpy((char *)w.values.buf + 8 * f->channels * w.end, values, 8 * f->channels);
        f->count++;
        w.end++;
        while (stamps[w.end - f->count] < stamp - f->window) f->count--;
        const long long oldest = stamps[w.end - f->count];
        f->ready = f->count >= f->least && stamp - oldest >= f->min_span && oldest > f->before_gap;
        failed = !(end = PyLong_FromSsize_t(w.end)) || PyObject_SetAttr(samples, names[END], end);
        Py_XDECREF(end);
        leave(&w);
    }
    Py_XDECREF(samples);
    return failed ? -1 : 0;
}

// Value and derivatives of the polynomial through n samples at `lag` before the last, (3, width).
static inline void fit(const long long *stamps, const double *values, Py_ssize_t n, Py_ssize_t width,
                       int even, double lag, double unit, const int size, double *restrict found)
{
    const double seconds = 1e-9 * unit;
    // In units of half the window, -1 to 1, powers are best conditioned.
    const double step = even ? (stamps[n - 1] - stamps[0]) / (unit * (n - 1)) : 1.0 / unit;
    double sums[2*SIZE - 1] = {0.0}, gram[SIZE][SIZE], x[SIZE][3];
    double powers[SIZE + 2] = {0.0, 0.0, 1.0};
    memset(found, 0, 24 * width);
#define TIME(i) 1.0 + step * (even ? (i) - n + 1 : stamps[i] - stamps[n - 1])
    for (Py_ssize_t i = 0; i < n; i++) {
        const double time = TIME(i);
        double power = 1.0;
        for (int k = 0; k < 2*size - 1; k++, power *= time) sums[k] += power;
    }
    for (int k = 0; k < size; k++) {
        for (int j = 0; j < size; j++) gram[k][j] = sums[k + j];
        // Powers at the instant, and their derivatives.
        if (k) powers[k + 2] = (1.0 - lag / unit) * powers[k + 1];
        x[k][0] = powers[k + 2];
        x[k][1] = k * powers[k + 1] / seconds;
        x[k][2] = k * (k - 1) * powers[k] / (seconds * seconds);
    }
    for (int i = 0; i < size; i++)
        for (int j = i + 1; j < size; j++) {
            const double factor = gram[j][i] / gram[i][i];
            for (int k = i; k < size; k++) gram[j][k] -= factor * gram[i][k];
            for (int d = 0; d < 3; d++) x[j][d] -= factor * x[i][d];
        }
    for (int i = size - 1; i >= 0; i--)
        for (int d = 0; d < 3; d++) {
            for (int k = i + 1; k < size; k++) x[i][d] -= gram[i][k] * x[k][d];
            x[i][d] /= gram[i][i];
        }
    for (Py_ssize_t i = 0; i < n; i++) {
        const double time = TIME(i), *value = values + width * i;
        double weight[3] = {0.0};
        for (int k = size - 1; k >= 0; k--)
            for (int d = 0; d < 3; d++) weight[d] = weight[d] * time + x[k][d];
        for (Py_ssize_t c = 0; c < width; c++)
            for (int d = 0; d < 3; d++) found[d*width + c] += weight[d] * value[c];
    }
}

// 1: found (3, channels) is set. 0: the window is not filled, or the instant is before it.
static int evaluate_at(Filter *f, long long stamp, double *found)
{
    Window w;
    PyObject *samples = f->ready && f->count > 1 && f->order < SIZE ? get(f, SAMPLES) : NULL;
    if (!samples || look(samples, f, &w)) { Py_XDECREF(samples); return PyErr_Occurred() ? -1 : 0; }
    const long long *stamps = (long long *)w.stamps.buf + w.end - f->count;
    const double *values = (double *)w.values.buf + (w.end - f->count) * f->channels;
    const long long newest = stamps[f->count - 1];
    const int inside = stamp >= stamps[0];
    const double lag = inside && newest > stamp ? newest - stamp : 0.0, unit = 0.5 * f->window;
    const int even = f->run >= f->count - 1, size = f->order + 1;
    // Of a known size, loops are unrolled.
    if (inside && size == 4) fit(stamps, values, f->count, f->channels, even, lag, unit, 4, found);
    else if (inside) fit(stamps, values, f->count, f->channels, even, lag, unit, size, found);
    leave(&w);
    Py_DECREF(samples);
    return inside;
}

// append(filter, stamp, values): values (channels,).
static PyObject *append(PyObject *self, PyObject *args)
{
    Filter *f;
    Py_buffer in;
    long long stamp;
    if (!PyArg_ParseTuple(args, "O!Ly*", &filter_type, &f, &stamp, &in)) return NULL;
    int failed = in.len != 8 * f->channels;
    if (failed) PyErr_SetString(PyExc_ValueError, "wrong number of channels");
    else failed = append_to(f, stamp, in.buf);
    PyBuffer_Release(&in);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

// evaluate(filter, stamp, out): out (3, channels); False: it is not set.
static PyObject *evaluate(PyObject *self, PyObject *args)
{
    Filter *f;
    Py_buffer out;
    long long stamp;
    if (!PyArg_ParseTuple(args, "O!Lw*", &filter_type, &f, &stamp, &out)) return NULL;
    int found = -1;
    if (out.len != 24 * f->channels) PyErr_SetString(PyExc_ValueError, "wrong number of channels");
    else found = evaluate_at(f, stamp, out.buf);
    PyBuffer_Release(&out);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

// Stamp of a message [ns], zero if its texts and counts are not the expected ones.
static long long stamp_of(const Py_buffer *data, const Py_buffer *expected, const Py_buffer *mask)
{
    const unsigned char *a = data->buf, *b = expected->buf, *m = mask->buf;
    unsigned char differs = 0;
    if (data->len < expected->len || expected->len != mask->len || data->len < FRAME_AT) return 0;
    for (Py_ssize_t k = 0; k < expected->len; k++) differs |= (a[k] ^ b[k]) & m[k];
    int second;
    unsigned int nanosecond;
    memcpy(&second, a + STAMP_AT, 4);
    memcpy(&nanosecond, a + STAMP_AT + 4, 4);
    const long long stamp = second * SECOND + nanosecond;
    return differs || stamp < 0 || stamp >= SECOND << 31 ? 0 : stamp;
}

static int is_out_of_range(Stream *s, const double *reading)
{
    PyObject *range = get(s, RANGE);
    if (!range || range == Py_None) { Py_XDECREF(range); return !range; }
    Py_buffer limits;
    int is_out = PyObject_GetBuffer(range, &limits, PyBUF_SIMPLE) || limits.len != READING;
    for (int k = 0; !is_out && k < 6; k++) is_out = fabs(reading[k]) >= ((double *)limits.buf)[k];
    if (!PyErr_Occurred()) PyBuffer_Release(&limits);
    Py_DECREF(range);
    return is_out;
}

// 1: the reading is queued. 0: it is not usual.
static int push(Stream *s, long long stamp, const double *reading, PyObject *queue)
{
    PyObject *value = get(s, VALUE), *message = NULL, *done = NULL;
    stamp += s->offset;
    if (!value || !PyBytes_Check(value) || stamp <= s->last || is_out_of_range(s, reading)) {
        Py_XDECREF(value);
        return PyErr_Occurred() ? -1 : 0;
    }
    const int is_same = PyBytes_GET_SIZE(value) == READING
        && !memcmp(PyBytes_AS_STRING(value), reading, READING);
    if (!is_same) {
        Py_DECREF(value);
        // A frozen interval ends.
        if (s->frozen_after > 0 && s->last - s->since >= s->frozen_after) return 0;
        value = PyBytes_FromStringAndSize((const char *)reading, READING);
        if (!value || PyObject_SetAttr((PyObject *)s, names[VALUE], value)) goto end;
        s->since = stamp;
    }
    message = Py_BuildValue("(LOL)", stamp, value, s->since);
    if (message) done = PyObject_CallMethodOneArg(queue, names[APPEND], message);
    if (!done) goto end;
    s->repeated += is_same;
    s->repeated_at = !is_same ? 0 : s->repeated_at ? s->repeated_at : stamp;
    if (!s->last) s->first = stamp;
    else if (stamp - s->last > s->longest_gap) s->longest_gap = stamp - s->last;
    s->last = stamp;
    s->received++;
    s->counted++;
end:
    Py_XDECREF(value);
    Py_XDECREF(message);
    Py_XDECREF(done);
    return done ? 1 : -1;
}

// take(stream, messages, size, expected, mask, first, second, is_imu, lacks, limit): queue readings
// of a list of messages of one layout, and remove them from it, up to the first that is not usual.
// first, second: places of the triples, behind which an IMU has covariances; lacks: 1, 2 for a
// triple that is not measured; limit: of the queue. True: all are taken.
static PyObject *take(PyObject *self, PyObject *args)
{
    PyObject *stream, *messages;
    Py_buffer expected, mask, data;
    Py_ssize_t size, first, second, limit, n = 0;
    int is_imu, lacks, taken = 1;
    if (!PyArg_ParseTuple(args, "OO!ny*y*nnpin", &stream, &PyList_Type, &messages, &size, &expected,
                          &mask, &first, &second, &is_imu, &lacks, &limit))
        return NULL;
    PyObject *queue = is_stream(stream) ? get(stream, QUEUE) : NULL;
    const Py_ssize_t last = size - TRIPLE - (is_imu ? 8 : 0);
    if (!queue) taken = -1;
    else if (first < 0 || second < 0 || first > last || second > last) taken = 0;
    for (; taken == 1 && n < PyList_GET_SIZE(messages); n += taken == 1) {
        if (PyObject_GetBuffer(PyList_GET_ITEM(messages, n), &data, PyBUF_SIMPLE)) { taken = -1; break; }
        const Py_ssize_t places[2] = {first, second};
        double reading[6], absent = -1.0;
        const long long stamp = data.len == size ? stamp_of(&data, &expected, &mask) : 0;
        taken = stamp && PyObject_Size(queue) < limit;
        for (int k = 0, nothing = 0; taken && k < 2; k++) {
            memcpy(reading + 3*k, (char *)data.buf + places[k], TRIPLE);
            const int is_absent = is_imu && !memcmp((char *)data.buf + places[k] + TRIPLE, &absent, 8);
            if (is_absent || lacks == k + 1)
                for (int i = 0; i < 3; i++) reading[3*k + i] = Py_NAN;
            nothing += is_absent;
            taken = nothing < 2;
        }
        PyBuffer_Release(&data);
        if (taken) taken = push((Stream *)stream, stamp, reading, queue);
    }
    Py_XDECREF(queue);
    PyBuffer_Release(&expected);
    PyBuffer_Release(&mask);
    if (PyList_SetSlice(messages, 0, n, NULL) || taken < 0) return NULL;
    return PyBool_FromLong(taken);
}

// read_joints(data, size, expected, mask, count, places, columns, block): stamp of a joint state with
// names for `count` values, or zero if it is not usual. places: of positions, velocities, efforts,
// -1 for none; columns (n,), in each of these; block (4, n) of positions, ..., accelerations, efforts.
static PyObject *read_joints(PyObject *self, PyObject *args)
{
    Py_buffer data, expected, mask, columns, block;
    Py_ssize_t size, count, at[3];
    if (!PyArg_ParseTuple(args, "y*ny*y*n(nnn)y*w*", &data, &size, &expected, &mask, &count, &at[0],
                          &at[1], &at[2], &columns, &block))
        return NULL;
    const Py_ssize_t n = columns.len / 8, *column = columns.buf;
    long long stamp = data.len == size ? stamp_of(&data, &expected, &mask) : 0;
    int fits = block.len == 32 * n && count >= 0 && count <= size / 8 && at[0] >= 0;
    for (int k = 0; fits && k < 3; k++) fits = at[k] <= size - 8 * count;
    for (Py_ssize_t i = 0; fits && i < n; i++) fits = column[i] >= 0 && column[i] < count;
    double *values = block.buf;
    for (int k = 0; fits && stamp && k < 3; k++, values += k == 2 ? 2*n : n)
        for (Py_ssize_t i = 0; i < n; i++) {
            if (at[k] < 0) values[i] = Py_NAN;
            else memcpy(values + i, (char *)data.buf + at[k] + 8 * column[i], 8);
            if (k == 1) values[n + i] = 0.0;
        }
    PyBuffer_Release(&data);
    PyBuffer_Release(&expected);
    PyBuffer_Release(&mask);
    PyBuffer_Release(&columns);
    PyBuffer_Release(&block);
    return PyLong_FromLongLong(fits ? stamp : 0);
}

// Stamp or start of a message (stamp, value, since).
static long long number_of(PyObject *message, Py_ssize_t k)
{
    PyObject *item = PyTuple_Check(message) && k < PyTuple_GET_SIZE(message)
        ? PyTuple_GET_ITEM(message, k) : NULL;
    return item && PyLong_Check(item) ? PyLong_AsLongLong(item) : 0;
}

static const char *value_of(PyObject *message)
{
    PyObject *value = PyTuple_Check(message) && PyTuple_GET_SIZE(message) == 3
        ? PyTuple_GET_ITEM(message, 1) : Py_None;
    const int fits = PyBytes_Check(value) && PyBytes_GET_SIZE(value) == READING;
    return fits ? PyBytes_AS_STRING(value) : NULL;
}

// Messages of a stream up to an instant go through its filter; the last is its message. -1: error.
static int advance(Stream *s, long long instant, PyObject *queue, Filter *filter)
{
    PyObject *newest = NULL, *done = queue;
    int failed = 0;
    Py_ssize_t left = 1;
    while (!failed && (left = PyObject_Size(queue)) > 0) {
        PyObject *message = PySequence_GetItem(queue, 0);
        const long long stamp = message ? number_of(message, 0) : 0;
        if (!message || stamp > instant || !value_of(message)) {
            failed = !message || stamp <= instant;
            Py_XDECREF(message);
            break;
        }
        done = PyObject_CallMethodNoArgs(queue, names[POPLEFT]);
        Py_XDECREF(done);
        if (done && filter && s->frozen_after > 0 && stamp - number_of(message, 2) >= s->frozen_after) {
            done = PyObject_CallMethodNoArgs((PyObject *)filter, names[RESET]);
            Py_XDECREF(done);
        } else if (done && filter) {
            failed = append_to(filter, stamp, value_of(message));
        }
        failed |= !done;
        Py_XSETREF(newest, message);
    }
    failed |= left < 0;
    if (newest && !failed)
        failed = PyObject_SetAttr((PyObject *)s, names[FED], newest)
            || PyObject_SetAttr((PyObject *)s, names[MESSAGE], newest);
    Py_XDECREF(newest);
    if (failed && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "no message of a sensor");
    return failed ? -1 : 0;
}

// State of the reading of a stream at an instant, OTHER if that is not usual; -1: error.
static int reading_at(Stream *s, long long instant, double *reading, double *spin)
{
    PyObject *queue = get(s, QUEUE), *held = get(s, HELD), *filter = get(s, FILTER);
    PyObject *message = NULL, *spins = NULL;
    int state = -1;
    if (!queue || !held || !filter) goto end;
    state = OTHER;
    const int is_known = filter == Py_None
        || (PyObject_TypeCheck(filter, &filter_type) && ((Filter *)filter)->channels <= SIZE);
    const Py_ssize_t n_held = PyObject_Size(held);
    if (n_held < 0) state = -1;
    if (s->smooth || !is_known || n_held) goto end;
    Filter *own = filter == Py_None ? NULL : (Filter *)filter;
    if (advance(s, instant, queue, own)) { state = -1; goto end; }
    message = get(s, MESSAGE);
    spins = spin ? get(s, SPIN) : NULL;
    if (!message || (spin && !spins)) { state = -1; goto end; }
    const long long stamp = number_of(message, 0);
    if (!stamp) { state = s->state = ABSENT; goto end; }
    s->age = instant - stamp;
    s->state = s->age > s->max_age ? STALE : FRESH;
    if (s->state != FRESH) { state = s->state; goto end; }
    const char *value = value_of(message);
    if (!value || (s->frozen_after > 0 && stamp - number_of(message, 2) >= s->frozen_after)) goto end;
    state = FRESH;
    s->used++;
    memcpy(reading, value, READING);
    if (spin) {
        Py_buffer of;
        if (PyObject_GetBuffer(spins, &of, PyBUF_WRITABLE)) { state = -1; goto end; }
        if (of.len != TRIPLE) {
            PyErr_SetString(PyExc_ValueError, "an angular acceleration has not three numbers");
            state = -1;
        } else if (own && s->derives && stamp != s->evaluated) {
            double found[3 * SIZE];
            s->evaluated = stamp;
            s->unfiltered += !own->ready;
            const int inside = evaluate_at(own, stamp, found);
            if (inside < 0) state = -1;
            for (int k = 0; k < 3; k++)
                ((double *)of.buf)[k] = inside > 0 ? found[own->channels + k] : Py_NAN;
        }
        if (state == FRESH) memcpy(spin, of.buf, TRIPLE);
        PyBuffer_Release(&of);
    }
end:
    Py_XDECREF(queue);
    Py_XDECREF(held);
    Py_XDECREF(filter);
    Py_XDECREF(message);
    Py_XDECREF(spins);
    return state;
}

// collect(streams, instant, readings, spins, states): readings (n, 6), NaN unless fresh; spins
// (n_imus, 3), of the last streams; states (n,). True: no stream is left to Python.
static PyObject *collect(PyObject *self, PyObject *args)
{
    PyObject *streams;
    Py_buffer readings, spins, states;
    long long instant;
    if (!PyArg_ParseTuple(args, "O!Lw*w*w*", &PyTuple_Type, &streams, &instant, &readings, &spins, &states))
        return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(streams), first = n - spins.len / TRIPLE;
    int state = 0, all = 1;
    if (readings.len != n * READING || states.len != n || first < 0) {
        PyErr_SetString(PyExc_ValueError, "wrong sizes");
        state = -1;
    }
    for (Py_ssize_t k = 0; state >= 0 && k < n; k++) {
        PyObject *stream = PyTuple_GET_ITEM(streams, k);
        double *reading = (double *)readings.buf + 6*k;
        double *spin = k < first ? NULL : (double *)spins.buf + 3 * (k - first);
        state = is_stream(stream) ? reading_at((Stream *)stream, instant, reading, spin) : -1;
        all = all && state != OTHER;
        for (int i = 0; state != FRESH && i < 6; i++) reading[i] = Py_NAN;
        for (int i = 0; spin && state != FRESH && i < 3; i++) spin[i] = Py_NAN;
        ((unsigned char *)states.buf)[k] = (unsigned char)state;
    }
    PyBuffer_Release(&readings);
    PyBuffer_Release(&spins);
    PyBuffer_Release(&states);
    return state < 0 ? NULL : PyBool_FromLong(all);
}

static PyMethodDef methods[] = {
    {"append", append, METH_VARARGS, NULL}, {"evaluate", evaluate, METH_VARARGS, NULL},
    {"take", take, METH_VARARGS, NULL}, {"collect", collect, METH_VARARGS, NULL},
    {"read_joints", read_joints, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_streams", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__streams(void)
{
    PyObject *m = PyModule_Create(&module);
    for (int k = 0; k < N_NAMES; k++)
        if (!names[k] && !(names[k] = PyUnicode_InternFromString(texts[k]))) return NULL;
    if (!m || PyType_Ready(&stream_type) || PyType_Ready(&filter_type)
        || PyModule_AddObjectRef(m, "StreamFields", (PyObject *)&stream_type)
        || PyModule_AddObjectRef(m, "FilterFields", (PyObject *)&filter_type))
        return NULL;
    return m;
}
