# demo: only what users install. venv, test, check: everything for development. Nothing else has to be done by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo venv lock test test-pure test-spark compiled test-compiled soak mirror-soak zookeeper-soak security-soak docker-test bytecode check pipeline-demo pipeline-soak spark-soak bench bench-quick clean kerberos peers jars

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

venv: $(VENV)/.developing

# Renews the locked versions and hashes in requirements/, for every Python that the package supports.
LOCK := build/lock/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --upgrade --native-tls \
	--custom-compile-command "make lock"
lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
	$(LOCK) --extra dev pyproject.toml --output-file build/lock/all.txt
	$(LOCK) --extra dev pyproject.toml --no-emit-package gssapi --no-emit-package pyspark --output-file requirements/dev.txt
	$(LOCK) --no-deps --no-annotate --constraint build/lock/all.txt requirements/sources.in \
	  --output-file requirements/sources.txt
	$(LOCK) requirements/build.in --output-file requirements/build.txt

# Hypothesis's folder of tables (see bytecode), also for the compiled form, which runs in another folder.
export HYPOTHESIS_STORAGE_DIRECTORY := $(abspath .hypothesis)

TEST_OPTIONS := --numprocesses auto --durations 30 --durations-min 2
test: test-pure
	$(MAKE) test-spark

test-pure: $(VENV)/.developing peers jars
	PYKAFKA08_FORM=pure $(BIN)/python -m pytest $(TEST_OPTIONS) -m "not spark"

# Two processes: one has the Spark session of the pipelines; the other runs the tests that start Spark themselves, then has
# the session of source and sink. With more processes, Spark's Python workers may not start within Spark's ten seconds.
# All of them are in one folder (tests/scheduling.py): collecting the others takes each process four seconds more.
test-spark: $(VENV)/.developing peers jars
	PYKAFKA08_FORM=pure $(BIN)/python -m pytest $(TEST_OPTIONS) -m spark --numprocesses 2 tests/spark

# The compiled form (docs/compiled.md): a copy of this tree in DEST, its hot modules compiled.
DEST ?= build/compiled
compiled: $(VENV)/.developing
	$(BIN)/python tools/compiled_tree.py $(DEST)

# Tests of the compiled form: the folders with compiled modules, the faults, and the formats of each release on real brokers.
# Child processes of the tests use the compiled form too. The other tests run no other code of compiled modules.
# Trio runs only for consumer, producer and faults: other compiled modules have no async code.
# Modules that are not compiled choose the replica to read and handle truncated logs. The two tests of them with three real
# brokers run on the pure form only; those with embedded brokers, in tests/consumer and tests/faults, run on both forms.
# It runs at a low priority, because in CI the tests that start Spark run beside it and depend on how fast their processes start.
COMPILED_TESTS := $(addprefix tests/, records producer consumer protocol conformance/test_vectors.py faults test_form.py test_wire.py \
	integration/test_every_release.py::test_ten_thousand_records_with_each_codec_come_back_equal integration/test_fetching.py)
THREE_BROKERS := $(addprefix integration/test_fetching.py::test_, a_replica_in_the_rack_of_the_consumer_is_read \
	records_that_an_unclean_election_loses)
test-compiled: compiled peers jars
	cd $(DEST) && PYKAFKA08_FORM=compiled PYTHONPATH=$(abspath $(DEST)) \
	  nice $(abspath $(BIN))/python -m pytest $(TEST_OPTIONS) -m "not spark" -k "not trio or consumer or producer or faults" \
	  $(addprefix --deselect=tests/, faults/test_real_brokers.py producer/transactions $(THREE_BROKERS)) $(COMPILED_TESTS)

# The workloads of docs/reliability.md in full size, with real brokers and every fault; some hours. SEEDS: each cell so often.
SEEDS ?= 1,2,3,4,5
soak: $(VENV)/.developing
	PYKAFKA08_SOAK=1 PYKAFKA08_FAULT_SEEDS=$(SEEDS) $(BIN)/python -m pytest tests/faults

# A million records mirrored from 0.8.2.2 to 4.3.1 with the mirror killed three times; a few minutes.
mirror-soak: $(VENV)/.developing
	PYKAFKA08_SOAK=1 $(BIN)/python -m pytest tests/integration/test_mirror.py

# The ZooKeeper side on every release that has one: layouts, administration, groups shared with the JVM's; many minutes.
zookeeper-soak: $(VENV)/.developing
	PYKAFKA08_SOAK=1 $(BIN)/python -m pytest tests/zookeeper tests/integration/test_legacy_groups.py \
		tests/integration/test_legacy_faults.py

# Every release, mechanism, client and tool on secured brokers, with Spark and pipelines, and the twelve properties files in
# Kafka's tools; half an hour.
security-soak: $(VENV)/.developing
	PYKAFKA08_SOAK=1 $(BIN)/python -m pytest --numprocesses 2 tests/security/test_oauth_broker.py \
		$(addprefix tests/integration/test_, secured.py secured_rights.py kerberos.py java_properties.py) \
		$(addprefix tests/spark/pipeline/test_, secured.py refused_credentials.py)

# All departures from New York in 2013 through the whole pipeline, to charts, on the embedded broker; a minute or two.
pipeline-demo: $(VENV)/.pipeline
	$(BIN)/python examples/pipeline/flights.py

# Source and sink on every release, beside Spark's own connector, and drivers killed around commits; many minutes.
spark-soak: $(VENV)/.developing
	PYKAFKA08_SOAK=1 $(BIN)/python -m pytest tests/spark --ignore tests/spark/pipeline

# The pipeline killed at twenty places and run again; half an hour.
pipeline-soak: $(VENV)/.developing
	PYKAFKA08_SOAK=1 $(BIN)/python -m pytest tests/spark/pipeline

# Real brokers in containers, with an engine of its own where none runs (docker/README.md): the compose files, and the
# integration tests of some releases. DOCKER_TESTS is what -k of pytest takes.
DOCKER_TESTS ?= compose or 0.8.2.2 or 0.9.0.1 or 4.3.1
docker-test: $(VENV)/.developing jars
	docker/with-engine $(BIN)/python -m pytest --brokers=docker tests/compose tests/integration -k "$(DOCKER_TESTS)"

# Compile all tests to bytecode once: otherwise each process of a run compiles them, in half a minute of processor time.
# One test runs, so that Hypothesis writes its tables of characters and of the package's constants to its folder; otherwise
# each process makes them again.
bytecode: $(VENV)/.developing
	$(BIN)/python -m pytest --quiet --quiet -k test_a_broker_reads_what_a_client_writes > /dev/null

check: $(VENV)/.developing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# This client in both forms and its peers (benchmarks/README.md). TIME: minutes that bench may take. bench-quick has the main
# rows, and fails if decoding or encoding has become slower against aiokafka's than the recorded baseline by more than 15 %.
TIME ?= 15
bench: compiled
	@$(BIN)/python -m benchmarks.run --minutes $(TIME) --compiled-tree $(DEST) --results benchmarks/results/full.json \
	  || failed=1; \
	$(BIN)/python -m benchmarks.report benchmarks/results/full.json docs/performance.md README.md && exit $${failed:-0}

bench-quick: compiled
	$(BIN)/python -m benchmarks.run --quick --no-uvloop --minutes 3 --turn-seconds 0.7 --compiled-tree $(DEST) \
	  --results build/bench-quick.json
	$(BIN)/python -m benchmarks.codec
	$(BIN)/python -m benchmarks.codec --compiled-tree $(DEST)

# kcat is a peer of the embedded broker in the tests, and krb5kdc a KDC for Kerberos; where they cannot be installed the tests
# that need them say so in one line.
APT_GET := apt-get -qq -o Acquire::Retries=5 -o DPkg::Lock::Timeout=120
KDC_PACKAGES := krb5-kdc krb5-admin-server krb5-user
peers:
	@wanted=""; command -v kcat >/dev/null || wanted="kcat"; \
	PATH="$$PATH:/usr/sbin:/sbin" command -v krb5kdc >/dev/null || wanted="$$wanted $(KDC_PACKAGES)"; \
	if [ -n "$$wanted" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing $$wanted"; \
	  { $(APT_GET) update && DEBIAN_FRONTEND=noninteractive $(APT_GET) install -y --no-install-recommends $$wanted; } \
	    >/dev/null || echo "$$wanted could not be installed"; \
	elif [ -n "$$wanted" ]; then \
	  echo "not installed, and their tests are skipped: $$wanted"; \
	fi

# The headers that gssapi is compiled with.
kerberos:
	@if ! command -v krb5-config >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing libkrb5-dev"; \
	    { $(APT_GET) update && DEBIAN_FRONTEND=noninteractive $(APT_GET) install -y --no-install-recommends libkrb5-dev; } \
	      >/dev/null; \
	  else \
	    echo "install the Kerberos library's development files first (Debian: libkrb5-dev)" >&2; exit 1; \
	  fi; \
	fi

# Jars of Kafka, of Spark's connector and of Hadoop, all at once: else the first test of each release fetches that one's.
jars: $(VENV)/.developing
	@$(BIN)/python -m tests.integration.prepare

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "$(PYTHON) is older than Python 3.10; name another with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.pipeline: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[pipeline]'
	touch $@

# Locked: only files whose hashes are in requirements/ are installed, first those that build others. The two big builds run
# beside the rest; gssapi is not optimised, which takes three times as long. pip check: the lock has every dependency.
# Python compiles the modules that are imported; pip would compile all of them first, in 40 s on one processor.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --no-build-isolation
LOCKED := $(INSTALL) --require-hashes --requirement
LOCKS := $(addprefix requirements/,build.txt dev.txt sources.txt)
$(VENV)/.developing: pyproject.toml $(LOCKS) | $(BIN)/python kerberos
	$(BIN)/python $(LOCKED) requirements/build.txt
	CFLAGS="-O0 -g0" $(BIN)/python $(LOCKED) requirements/sources.txt & \
	  $(BIN)/python $(LOCKED) requirements/dev.txt; rest=$$?; wait $$! && exit $$rest
	$(BIN)/python $(INSTALL) --editable .
	$(BIN)/python -m pip check --disable-pip-version-check
	touch $@ $(VENV)/.installed $(VENV)/.pipeline
