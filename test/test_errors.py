# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Classes and pickling of the exceptions.

Which of them are wrong calls shows in exit codes (test_calibrate.py, test_tool.py).
"""

import pickle

from inertial_estimation import errors
from inertial_estimation.errors import InertialEstimationError


def test_errors_have_one_base_a_matching_builtin_and_pickle():
    special = {
        errors.OffsetsNotUnique: ('no', ('l_leg',)),
        errors.ShapeError: ('positions', (3,), (4,)),
        errors.NameNotFound: ('joint', 'elbw', ['elbow'], 'it is named'),
    }
    classes = [item for item in vars(errors).values() if isinstance(item, type)]
    for kind in classes:
        if issubclass(kind, InertialEstimationError) and kind is not InertialEstimationError:
            error = kind(*special.get(kind, ('no',)))
            assert isinstance(error, ValueError | KeyError)
            copy = pickle.loads(pickle.dumps(error))
            assert (type(copy), str(copy)) == (type(error), str(error))
