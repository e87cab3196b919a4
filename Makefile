# make test | test-long | fuzz | soak | demo | bench | lint: each installs what it needs into .venv, once per lock.
#
#   make demo DURATION=20 SEED=3 JSON=out.json
#   make test ARGS='-k contacts'

PYTHON ?= python3
DURATION ?= 60
SEED ?= 0
JSON ?=
ROUNDS ?= 60
PAIRS ?= 3
ARGS ?=

BIN := .venv/bin
COLCON := .venv-colcon/bin/colcon

# Everything that talks DDS stays on this machine and in a domain of its own unless one is
# given; 1 to 101 are the domains whose ports no operating system hands out to others.
ifndef ROS_DOMAIN_ID
ROS_DOMAIN_ID := $(shell echo $$(( $$$$ % 101 + 1 )))
endif
export ROS_DOMAIN_ID
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST
# The wheels bring Fast DDS alone, and lay out a ROS prefix inside the environment.
export RMW_IMPLEMENTATION := rmw_fastrtps_cpp
export AMENT_PREFIX_PATH := $(CURDIR)/.venv
# A sourced ROS installation or another environment would be mixed into this one.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV LD_LIBRARY_PATH _ROS_WHEELS_BOOTSTRAP_COMPLETE
unexport ROS_DISCOVERY_SERVER ROS_STATIC_PEERS FASTRTPS_DEFAULT_PROFILES_FILE

.PHONY: test test-long fuzz soak demo bench lint reference lock clean

# Most tests share the processors file by file. Those of whole processes in real time run one by one,
# when nothing beside them makes them late. ROS messages check types only with the variable.
PYTEST := ROS_PYTHON_CHECK_FIELDS=1 $(BIN)/python -m pytest --timeout=300
WORKERS := --numprocesses=auto --maxprocesses=4 --dist=loadfile
# What ARGS choose may all be of one kind: 5 is pytest's word for no tests.
NONE_IS_FINE = $(if $(ARGS),|| test $$? -eq 5)

test: .venv/package $(COLCON)
	$(PYTEST) $(WORKERS) -m 'not live' $(ARGS) $(NONE_IS_FINE)
	$(PYTEST) -m live --ignore-glob='test/test_*' $(ARGS) $(NONE_IS_FINE)

# Tests of the mathematics with the kernels of OpenBLAS for other processors, whose round-off differs.
KERNELS := Prescott Haswell Zen $(if $(shell grep -m 1 avx512f /proc/cpuinfo),SkylakeX)
FOLDERS := calibration|estimation|identification|signals
test-long: .venv/package
	for kernel in $(KERNELS); do \
	    echo "== $$kernel"; \
	    OPENBLAS_CORETYPE=$$kernel $(PYTEST) $(WORKERS) \
	        $$(grep -lE 'inertial_estimation\.($(FOLDERS))\.' test/test_*.py) $(ARGS) || exit; \
	done

# Damaged input for every reader, guided by coverage: so many inputs for each of ten readers.
RUNS ?= 1000000
READERS := messages urdf settings calibration parameters state csv npz mcap db3
fuzz: .venv/package
	$(BIN)/pip install --quiet --target .venv/fuzz atheris==3.0.0
	for reader in $(READERS); do \
	    PYTHONPATH=.venv/fuzz $(BIN)/python test/fuzz.py $$reader $(RUNS) || exit; \
	done

# Random faults on the estimator node, for so many seconds of stamps at 500 Hz; some 25 minutes.
SECONDS ?= 3600
soak: .venv/package
	PYTHONPATH=test $(BIN)/python test/ros/soak.py $(SECONDS) $(SEED)

demo: .venv/package
	$(BIN)/inertial-estimation demo --duration $(DURATION) --seed $(SEED) $(if $(JSON),--json $(JSON)) $(ARGS)

# Threads of linear algebra gain nothing on matrices of this size, and cost much beside other work.
bench: export OMP_NUM_THREADS := 1
bench: .venv/package
	$(BIN)/python -m bench times derivatives nodes live --rounds $(ROUNDS) --pairs $(PAIRS) $(if $(JSON),--json $(JSON)) $(ARGS)

lint: .venv/package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# docs/parameters.md, commands.md, findings.md, config/estimator.yaml and identifier.yaml, from the code.
reference: .venv/package
	$(BIN)/python docs/generate.py

# Editable, and the rest linked as `colcon build --symlink-install` would: .venv is a ROS prefix in
# which launch finds the nodes and files of this package, and no edit needs a reinstall.
SHARE := .venv/share/inertial_estimation
INDEX := .venv/share/ament_index/resource_index/packages
NODES := .venv/lib/inertial_estimation

.venv/package: .venv/requirements.lock setup.py setup.cfg $(wildcard inertial_estimation/*/*.c)
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	mkdir -p $(SHARE) $(INDEX) $(NODES)
	ln -sfn $(addprefix $(CURDIR)/,launch config package.xml) $(SHARE)
	ln -sf $(CURDIR)/resource/inertial_estimation $(INDEX)
	ln -sf $(addprefix $(CURDIR)/$(BIN)/,inertial-estimation wrench_estimator parameter_identifier embedded_robot) $(NODES)
	touch $@

define RUNS_HERE
import platform, sys
fits = (3, 10) <= sys.version_info < (3, 15) and platform.machine() == "x86_64"
sys.exit(None if fits else "ROS has wheels for Python 3.10 to 3.14 on x86_64 Linux, and this is "
         f"{platform.python_version()} on {platform.machine()}: name another Python with "
         "make PYTHON=..., or build with colcon where ROS is installed")
endef
export RUNS_HERE

# The lock holds every package, so nothing is left to resolve. Versions without hashes: an index
# that rebuilds or mirrors the wheels serves the same versions in other files.
.venv/requirements.lock: requirements.lock
	@$(PYTHON) -c "$$RUNS_HERE"
	cmp --silent $< $@ || { $(PYTHON) -m venv --clear .venv && \
	    $(BIN)/pip install --quiet --no-deps --requirement $<; }
	cp $< $@

$(COLCON): requirements-colcon.lock
	$(PYTHON) -m venv --clear .venv-colcon
	.venv-colcon/bin/pip install --quiet --no-deps --requirement $<
	touch $@

COMPILE := .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.10 \
    --no-annotate --custom-compile-command 'make lock' --upgrade

# The newest versions that fit; only for those who want to move to them.
lock:
	$(PYTHON) -m venv --clear .venv-lock
	.venv-lock/bin/pip install --quiet uv
	$(COMPILE) --all-extras --output-file requirements.lock setup.py requirements.txt
	$(COMPILE) --output-file requirements-colcon.lock requirements-colcon.txt
	$(COMPILE) --extra bags --extra contacts --extra identification --extra test \
	    --override requirements-noble.txt --output-file requirements-noble.lock setup.py

clean:
	rm -rf .venv .venv-colcon .venv-lock build install log *.egg-info
