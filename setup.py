# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Installs the library with pip, and the ROS 2 package with colcon."""

import os
import shutil
import sysconfig
from glob import glob

from setuptools import Extension, find_packages, setup

package_name = 'inertial_estimation'
share = f'share/{package_name}'

# Without a compiler, or with CC= in the environment, NumPy does the same more slowly, and the
# wheel is one for every platform.
compiler = os.environ.get('CC', sysconfig.get_config_var('CC') or '').split()
has_headers = os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h'))
kernels = [
    Extension(name.replace('/', '.'), [f'{name}.c'], optional=True)
    for name in (f'{package_name}/estimation/_step', f'{package_name}/signals/_streams')
]

setup(
    name=package_name,
    version='0.1.0',
    description='External wrenches and joint torques from IMUs and force-torque sensors.',
    author='The inertial_estimation developers',
    maintainer='The inertial_estimation developers',
    maintainer_email='maintainers@inertial-estimation.invalid',
    license='BSD-3-Clause',
    py_modules=['inertial_estimation_nodes'],
    packages=find_packages(include=[package_name, f'{package_name}.*']),
    ext_modules=kernels if compiler and shutil.which(compiler[0]) and has_headers else [],
    package_data={package_name: ['py.typed', '*.pyi']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{package_name}']),
        (share, ['package.xml']),
        (f'{share}/launch', sorted(glob('launch/*.launch.py'))),
        (f'{share}/config', sorted(glob('config/*.*'))),
    ],
    python_requires='>=3.10',
    # rclpy, messages and launch come with ROS; the `launch` of PyPI is another package.
    # Importing needs the first three only; rich and pyyaml are for the command.
    install_requires=['numpy>=1.26', 'scipy>=1.11', 'pin>=3.3', 'pyyaml>=6.0', 'rich>=13.7'],
    extras_require={
        'bags': ['rosbags'],
        'contacts': ['osqp>=1.0'],
        'demo': ['icub-models', 'mujoco'],
        'identification': ['clarabel>=0.10'],
        'oracle': ['cvxpy', 'idyntree'],
        'plots': ['matplotlib'],
        'test': ['pytest', 'pytest-xdist'],
    },
    entry_points={
        'console_scripts': [
            'inertial-estimation = inertial_estimation.cli:main',
            'wrench_estimator = inertial_estimation_nodes:wrench_estimator',
            'parameter_identifier = inertial_estimation_nodes:parameter_identifier',
            'embedded_robot = inertial_estimation_nodes:embedded_robot',
        ],
    },
    zip_safe=True,
)
