// Copyright 2026 The inertial_estimation developers
// SPDX-License-Identifier: BSD-3-Clause
// A polynomial through the samples of a window, compiled: the same as in savitzky_golay.py, which
// does without where no compiler was at hand.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

enum { SIZE = 6 };  // powers of time, up to those of a quintic

// evaluate(stamps, values, even, lag, unit, order, out): stamps (n,), lag and unit [ns];
// values (n, channels); out (3, channels).
static PyObject *evaluate(PyObject *self, PyObject *args)
{
    Py_buffer in, of, out;
    double lag, unit, sums[2*SIZE - 1] = {0.0}, gram[SIZE][SIZE], x[SIZE][3] = {{0.0}};
    int even, order;
    if (!PyArg_ParseTuple(args, "y*y*pddiw*", &in, &of, &even, &lag, &unit, &order, &out))
        return NULL;
    const long long *stamps = in.buf;
    const int size = order + 1;
    const Py_ssize_t n = in.len / 8, width = out.len / 24;
    if (n < 2 || size > SIZE || of.len != 8*n*width) {
        PyBuffer_Release(&in);
        PyBuffer_Release(&of);
        PyBuffer_Release(&out);
        PyErr_SetString(PyExc_ValueError, "sizes of a window do not fit");
        return NULL;
    }
    const double *values = of.buf, seconds = 1e-9 * unit;
    const double step = even ? (stamps[n - 1] - stamps[0]) / (unit * (n - 1)) : 0.0;
    double *found = out.buf, powers[SIZE + 2] = {0.0, 0.0, 1.0};
    memset(found, 0, out.len);
    // In units of half the window, -1 to 1, powers are best conditioned.
#define TIME(i) 1.0 + (even ? step * ((i) - n + 1) : (stamps[i] - stamps[n - 1]) / unit)
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
        const double time = TIME(i);
        for (int d = 0; d < 3; d++) {
            double weight = 0.0;
            for (int k = size - 1; k >= 0; k--) weight = weight * time + x[k][d];
            for (Py_ssize_t c = 0; c < width; c++) found[d*width + c] += weight * values[i*width + c];
        }
    }
    PyBuffer_Release(&in);
    PyBuffer_Release(&of);
    PyBuffer_Release(&out);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"evaluate", evaluate, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_window", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__window(void) { return PyModule_Create(&module); }
