// Copyright 2026 The inertial_estimation developers
// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of `Step` for plans without splits, compiled: the same sums as in step.py, which
// does without where no compiler was at hand. All arrays are contiguous; the caller sees to it.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

_Static_assert(sizeof(Py_ssize_t) == 8, "indices of NumPy's arrays have 8 bytes here");

enum {
    SUPPORT, POSE, TOP_ROWS, DIRECTIONS, EXACT, FACTORS, JOINT_ROWS, ACTIVE, FRAMES, TERMS, N_BOUND
};

static void release(Py_buffer *views, Py_ssize_t n)
{
    while (n > 0) PyBuffer_Release(&views[--n]);
}

static int take(PyObject *const *arrays, Py_ssize_t n, Py_buffer *views, int flags)
{
    for (Py_ssize_t k = 0; k < n; k++)
        if (PyObject_GetBuffer(arrays[k], &views[k], flags)) { release(views, k); return -1; }
    return 0;
}

static void unbind(PyObject *capsule)
{
    Py_buffer *views = PyCapsule_GetPointer(capsule, NULL);
    release(views, N_BOUND);
    PyMem_Free(views);
}

static PyObject *bind(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    Py_buffer *views = n == N_BOUND ? PyMem_Calloc(N_BOUND, sizeof(Py_buffer)) : NULL;
    if (!views) return PyErr_NoMemory();
    if (take(args, n, views, PyBUF_SIMPLE)) { PyMem_Free(views); return NULL; }
    return PyCapsule_New(views, NULL, unbind);
}

// spread(state, rows, *arrays): state[rows] = numbers of all arrays. False: they are of other kinds.
static PyObject *spread(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    enum { MOST = 8 };
    Py_buffer in[MOST];
    if (n < 2 || n > MOST || take(args, 2, in, PyBUF_SIMPLE)) return NULL;
    if (take(args + 2, n - 2, in + 2, PyBUF_ND | PyBUF_FORMAT)) {
        release(in, 2);
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    double *state = in[0].buf;
    const Py_ssize_t *row = in[1].buf, *last = row + in[1].len / 8;
    int fit = 1;
    for (Py_ssize_t k = 2; k < n; k++) fit = fit && !strcmp(in[k].format, "d");
    for (Py_ssize_t k = 2; fit && k < n; k++)
        for (const double *x = in[k].buf, *end = x + in[k].len / 8; x < end && row < last; x++)
            state[*row++] = *x;
    release(in, n);
    return PyBool_FromLong(fit);
}

static double dot(const double *a, const double *b) { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2]; }

static void add_cross(const double *a, const double *b, double *sum)
{
    sum[0] += a[1]*b[2] - a[2]*b[1];
    sum[1] += a[2]*b[0] - a[0]*b[2];
    sum[2] += a[0]*b[1] - a[1]*b[0];
}

// measure(bound, tau, poses, ft_wrenches): frames, and terms about the root link.
static PyObject *measure(PyObject *self, PyObject *const *args, Py_ssize_t n_args)
{
    Py_buffer in[3], *b = n_args == 4 ? PyCapsule_GetPointer(args[0], NULL) : NULL;
    if (!b || take(args + 1, 3, in, PyBUF_SIMPLE)) return NULL;
    const Py_ssize_t *support = b[SUPPORT].buf, *rows = b[TOP_ROWS].buf;
    const double *pose = b[POSE].buf, *directions = b[DIRECTIONS].buf, *exact = b[EXACT].buf;
    const Py_ssize_t n_frames = b[SUPPORT].len / 8, n = b[FRAMES].len / (96 * n_frames);
    const Py_ssize_t n_tops = b[TOP_ROWS].len / 48, n_measured = n_tops + b[DIRECTIONS].len / 8;
    const Py_ssize_t n_terms = b[TERMS].len / (48 * n), n_exact = b[EXACT].len / (8 * n_measured);
    for (Py_ssize_t i = 0; i < n; i++) {
        const double *tau = (double *)in[0].buf + i * in[0].len / (8 * n);
        const double *poses = (double *)in[1].buf + i * in[1].len / (8 * n);
        const double *ft = (double *)in[2].buf + i * in[2].len / (8 * n);
        double *frame = (double *)b[FRAMES].buf + 12 * i * n_frames;
        double *terms = (double *)b[TERMS].buf + 6 * i * n_terms;
        for (Py_ssize_t f = 0; f < n_frames; f++)
            for (int r = 0; r < 4; r++)
                for (int c = 0; c < 3; c++) {
                    const double *T = pose + 16 * f + 4 * r, *S = poses + 12 * support[f] + c;
                    frame[12*f + 3*r + c] = T[0]*S[0] + T[1]*S[3] + T[2]*S[6] + T[3]*S[9];
                }
        for (Py_ssize_t t = 0; t < n_measured; t++) {
            double local[6], *term = terms + 6 * t;
            const double *F = frame + 12 * t;
            for (int k = 0; k < 6; k++)
                local[k] = t < n_tops ? tau[rows[6*t + k]]
                                      : directions[t - n_tops] * ft[6 * (t - n_tops) + k];
            for (int c = 0; c < 3; c++) {
                term[c] = local[0]*F[c] + local[1]*F[3 + c] + local[2]*F[6 + c];
                term[3 + c] = local[3]*F[c] + local[4]*F[3 + c] + local[5]*F[6 + c];
            }
            add_cross(F + 9, term, term + 3);
        }
        for (Py_ssize_t e = 0; e < n_exact; e++) {
            double *sum = terms + 6 * (n_measured + e);
            memset(sum, 0, 48);
            for (Py_ssize_t t = 0; t < n_measured; t++)
                if (exact[n_measured * e + t] != 0.0)
                    for (int k = 0; k < 6; k++)
                        sum[k] += exact[n_measured * e + t] * terms[6*t + k];
        }
    }
    release(in, 3);
    Py_RETURN_NONE;
}

// project(bound, tau, axes, wrenches, torques, external_torques): adds to the last three arrays.
static PyObject *project(PyObject *self, PyObject *const *args, Py_ssize_t n_args)
{
    Py_buffer in[5], *b = n_args == 6 ? PyCapsule_GetPointer(args[0], NULL) : NULL;
    if (!b || take(args + 1, 5, in, PyBUF_SIMPLE)) return NULL;
    const Py_ssize_t *joint_rows = b[JOINT_ROWS].buf, *active = b[ACTIVE].buf;
    const Py_ssize_t n_frames = b[SUPPORT].len / 8, n = b[FRAMES].len / (96 * n_frames);
    const Py_ssize_t n_joints = b[JOINT_ROWS].len / 8, n_terms = b[TERMS].len / (48 * n);
    const Py_ssize_t n_active = b[ACTIVE].len / 8, first = n_terms - n_active;
    for (Py_ssize_t i = 0; i < n; i++) {
        const double *tau = (double *)in[0].buf + i * in[0].len / (8 * n);
        const double *axes = (double *)in[1].buf + 6 * i * n_joints;
        const double *frame = (double *)b[FRAMES].buf + 12 * (i * n_frames + first);
        const double *terms = (double *)b[TERMS].buf + 6 * i * n_terms;
        double *wrenches = (double *)in[2].buf + i * in[2].len / (8 * n);
        for (Py_ssize_t c = 0; c < n_active; c++) {
            const double *F = frame + 12 * c, *f = terms + 6 * (first + c);
            double *wrench = wrenches + 6 * active[c];
            double moment[3] = {f[3], f[4], f[5]};
            add_cross(f, F + 9, moment);
            for (int k = 0; k < 3; k++) {
                wrench[k] += dot(F + 3*k, f);
                wrench[3 + k] += dot(F + 3*k, moment);
            }
        }
        for (Py_ssize_t j = 0; j < n_joints; j++) {
            const double *axis = axes + 6 * j, *held = (double *)b[FACTORS].buf + 2 * j * n_terms;
            double torque = joint_rows[j] < 0 ? 0.0 : tau[joint_rows[j]], external = 0.0;
            for (Py_ssize_t t = 0; t < n_terms; t++)
                if (held[t] != 0.0 || held[n_terms + t] != 0.0) {
                    const double one = dot(axis, terms + 6*t) + dot(axis + 3, terms + 6*t + 3);
                    torque += held[t] * one;
                    external += held[n_terms + t] * one;
                }
            ((double *)in[3].buf)[i * n_joints + j] += torque;
            ((double *)in[4].buf)[i * n_joints + j] += external;
        }
    }
    release(in, 5);
    Py_RETURN_NONE;
}

// square(*arrays): sum of the squares of all numbers.
static PyObject *square(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    double sum = 0.0;
    for (Py_ssize_t k = 0; k < n; k++) {
        Py_buffer in;
        if (take(args + k, 1, &in, PyBUF_SIMPLE)) return NULL;
        for (const double *x = in.buf, *end = x + in.len / 8; x < end; x++) sum += *x * *x;
        PyBuffer_Release(&in);
    }
    return PyFloat_FromDouble(sum);
}

static PyMethodDef methods[] = {
    {"bind", (PyCFunction)(void (*)(void))bind, METH_FASTCALL, NULL},
    {"measure", (PyCFunction)(void (*)(void))measure, METH_FASTCALL, NULL},
    {"project", (PyCFunction)(void (*)(void))project, METH_FASTCALL, NULL},
    {"spread", (PyCFunction)(void (*)(void))spread, METH_FASTCALL, NULL},
    {"square", (PyCFunction)(void (*)(void))square, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_step", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__step(void) { return PyModule_Create(&module); }
