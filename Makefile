# Everything sets itself up: `make demo` and `make test` work in a fresh clone.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
JAR := python/pennon/jars/pennon-spark.jar
# The classes of Spark as a JVM maps them: the suite starts JVMs by the dozen.
CLASSES := build/classes.jsa
JAVA_SOURCES := $(shell find jvm-shim/src/main -type f)
PYTHON_FILES := python tests benchmarks typings docs/pages.py
# Where the examples in docstrings make their tables; what a failed run leaves, the next one removes.
EXAMPLES := $(CURDIR)/build/examples
OLDER_SPARKS := 4.1.4 4.2.1
# The first releases of each: methods of Spark have changed behind them.
FIRST_SPARKS := 4.1.0 4.2.0
JOIN_TESTS := $(addprefix tests/spark/, joins execution/keys execution/test_fragments.py execution/test_fragment_limits.py \
    write/test_write_order.py expressions/test_functions_agree.py)
# What else an older Spark has to do: read, write, make tables, and serve.
OLDER_TESTS := $(JOIN_TESTS) $(addprefix tests/spark/, read/test_queries.py read/test_runtime_pruning.py write/test_writes.py write/test_source_keys.py \
    write/test_overwrite.py catalog/test_ctas.py catalog/test_catalog_ddl.py catalog/test_column_ddl.py \
    jar/test_jar_links.py deployments/test_connect.py deployments/test_thrift.py \
    deployments/test_local_cluster.py)
# What runs on a store as it does on a disk, and what of it on executors that are processes of their own.
STORE_CLUSTER_TESTS := $(addprefix tests/spark/, joins/test_joins.py write streams catalog/test_maintenance.py)
STORE_TESTS := $(addprefix tests/spark/, catalog joins write streams read/test_queries.py) \
    $(addprefix tests/, maintenance namespace/test_python_api.py namespace/test_python_row_changes.py)
# Tests of what is computed from values: they write few files, and start no process.
VALUE_TESTS := $(addprefix tests/, architecture caching conformance grouping planning predicate pushdown spec transforms)
GRADLE = gradle --no-daemon --offline --quiet -PpysparkJars="$$($(BIN)/python -c 'import pyspark, os; print(os.path.join(pyspark.__path__[0], "jars"))')"

export PYTHONDONTWRITEBYTECODE = 1

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

dist: $(INSTALLED) $(JAR) ## the wheel with the jar in it, and the jar with its sources, in dist/
	@rm -rf dist build/wheel && mkdir -p dist build/wheel
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	    --wheel-dir dist .
	@$(GRADLE) sourcesJar
	@version=$$($(BIN)/python -c 'import pennon; print(pennon.__version__)') && \
	    cp $(JAR) dist/pennon-spark-$$version.jar && cp build/libs/*-sources.jar dist/pennon-spark-$$version-sources.jar
	@ls -1 dist

setup: $(INSTALLED) ## make the virtual environment .venv from requirements.lock
jar: $(JAR) ## build the jar (installs JDK 17 and Gradle if they are missing and it may)

demo: $(INSTALLED) $(JAR) ## the flights out of New York as partitioned namespaces, step by step
	@$(BIN)/python -m pennon.demo build/demo

test: $(INSTALLED) $(JAR) $(CLASSES) ## run every test
	@$(BIN)/python -m pytest tests --numprocesses 2 --dist loadfile

test-spark-versions: $(INSTALLED) $(JAR) ## joins, reads and writes on the older Sparks, with the same jar
	@failed=; for version in $(OLDER_SPARKS); do \
	    setup/spark-venv $(BIN)/python build/spark-$$version $$version && \
	    build/spark-$$version/bin/python -m pytest -q $(OLDER_TESTS) || failed="$$failed $$version"; done; \
	for version in $(FIRST_SPARKS); do \
	    setup/spark-venv $(BIN)/python build/spark-$$version $$version && \
	    build/spark-$$version/bin/python -m pytest -q tests/spark/jar/test_jar_links.py \
	    tests/spark/write/test_writes.py || failed="$$failed $$version"; done; \
	    [ -z "$$failed" ] || { echo "Failed on Spark$$failed"; exit 1; }

test-local-cluster: $(INSTALLED) $(JAR) ## every join case on two executors that are processes of their own
	@PENNON_TEST_MASTER='local-cluster[2,1,1024]' PENNON_EXHAUSTIVE=1 \
	    $(BIN)/python -m pytest -q $(JOIN_TESTS)

test-store: $(INSTALLED) $(JAR) ## catalog, DDL, joins, evolution, writes, streams and maintenance on an S3 server, whose faults are all tried
	@PENNON_EXHAUSTIVE=1 $(BIN)/python -m pytest -q tests/stores
	@$(BIN)/python -m tests.stores.suite $(STORE_TESTS)
	@PENNON_TEST_MASTER='local-cluster[2,1,1024]' $(BIN)/python -m tests.stores.suite $(STORE_CLUSTER_TESTS)

test-deployments: $(INSTALLED) $(JAR) ## each setting and neighbour of a session, beside Parquet; Iceberg's and Delta's jars; a cluster whose executors are killed; YARN; a store that is lost
	@$(BIN)/python -m tests.deployments.matrix $(ARGS)
	@$(BIN)/python -m pytest -q tests/deployments/standalone.py tests/deployments/yarn.py tests/deployments/lost_store.py tests/deployments/dbt_runs.py tests/deployments/notebooks.py tests/deployments/typing_runs.py

test-fast: $(INSTALLED) ## test values alone (specs, predicates, plans, keys, expressions), without what is slow: no Java, 110 seconds of CPU in two processes
	@$(BIN)/python -m pytest $(VALUE_TESTS) -m "not spark and not slow" --numprocesses 2 --dist loadfile

test-python: $(INSTALLED) ## run every test that needs no Java: some 15 minutes of CPU
	@$(BIN)/python -m pytest tests -m "not spark" --numprocesses 2 --dist loadfile

check: $(INSTALLED) $(JAR) ## formatting, lint, types, javac's lint, the examples in docstrings
	@$(BIN)/ruff format --check $(PYTHON_FILES)
	@$(BIN)/ruff check $(PYTHON_FILES)
	@$(BIN)/mypy
	@$(GRADLE) --rerun-tasks compileJava
	@rm -rf $(EXAMPLES) && mkdir -p $(EXAMPLES)
	@TMPDIR=$(EXAMPLES) $(BIN)/python -m pytest -q --doctest-modules python/pennon
	@rm -rf $(EXAMPLES)

docs: $(INSTALLED) ## write build/conformance.md, which tests hold which sentence of the specification, the picture of imports, and what workers compute
	@$(BIN)/python -m tests.conformance.document
	@$(BIN)/python -m tests.import_picture
	@$(BIN)/python -m tests.function_page

site: $(INSTALLED) ## build the site from docs/ and the code, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

wire: $(INSTALLED) ## write the declared messages for the jar, and the golden ones, from their dataclasses
	@$(BIN)/python -m tests.worker.wire_declaration

golden: $(INSTALLED) $(JAR) ## record what Spark answers for tests/golden/expressions, to compare workers with
	@$(BIN)/python -m tests.spark.expressions.golden

format: $(INSTALLED) ## rewrite the Python files in the house's format
	@$(BIN)/ruff format $(PYTHON_FILES)
	@$(BIN)/ruff check --fix $(PYTHON_FILES)

bench: bench-read bench-start bench-tpch bench-in-spark bench-tpcds bench-star bench-join bench-sort bench-plan bench-hash bench-commits bench-search ## every benchmark

bench-read: $(INSTALLED) $(JAR) ## 20 million rows, rows of every type into Spark, and 5,000 small partitions, beside Parquet
	@$(BIN)/python -m benchmarks.scan
	@$(BIN)/python -m benchmarks.rows_to_spark
	@$(BIN)/python -m benchmarks.small_partitions

bench-start: $(INSTALLED) $(JAR) ## the first row of a small table, and a query of nothing, beside plain Spark
	@$(BIN)/python -m benchmarks.first_row
	@$(BIN)/python -m benchmarks.empty_query

bench-join: $(INSTALLED) $(JAR) ## TPC-H (SF=1) and flights joins, beside Parquet and Iceberg, which it fetches
	@$(BIN)/python -m benchmarks.join --scale $(or $(SF),1) $(ARGS)

bench-tpch: $(INSTALLED) $(JAR) ## the 22 queries of TPC-H (SF=1) at Spark's defaults, beside Parquet
	@$(BIN)/python -m benchmarks.analytic tpch --scale $(or $(SF),1) $(ARGS)

bench-in-spark: $(INSTALLED) $(JAR) ## queries over TPC-H (SF=1) that Spark computes itself, beside Parquet
	@$(BIN)/python -m benchmarks.analytic in_spark --scale $(or $(SF),1) $(ARGS)

bench-tpcds: $(INSTALLED) $(JAR) ## the 99 queries of TPC-DS (SF=1) at Spark's defaults, beside Parquet
	@$(BIN)/python -m benchmarks.analytic tpcds --scale $(or $(SF),1) $(ARGS)

bench-star: $(INSTALLED) $(JAR) ## queries on a star and a snowflake at Spark's defaults, beside Parquet
	@$(BIN)/python -m benchmarks.analytic star $(ARGS)

bench-groups: $(INSTALLED) $(JAR) ## a GROUP BY of 50 million groups with 256 MB of memory, which spills
	@$(BIN)/python -m benchmarks.many_groups $(ARGS)

bench-sort: $(INSTALLED) $(JAR) ## sort-merge joins and windows with and without a write order
	@$(BIN)/python -m benchmarks.sorted_join $(ARGS)

bench-plan: $(INSTALLED) $(JAR) ## planning of up to 1,000,000 partitions, beside Iceberg and Parquet, of joins, and of wide tables
	@$(BIN)/python -m benchmarks.plan_scan
	@$(BIN)/python -m benchmarks.plan_alone
	@$(BIN)/python -m benchmarks.plan_peers
	@$(BIN)/python -m benchmarks.plan_join $(ARGS)
	@$(BIN)/python -m benchmarks.wide_tables

bench-plan-query: $(INSTALLED) $(JAR) ## planning of a join of five tables, beside Parquet
	@$(BIN)/python -m benchmarks.plan_query $(ARGS)

bench-commits: $(INSTALLED) ## CPU per commit over 1,000 commits of one row, and what they leave
	@$(BIN)/python -m benchmarks.commits $(ARGS)

bench-appends: $(INSTALLED) ## many appends of ten rows without maintenance, and how fast they are read
	@$(BIN)/python -m benchmarks.small_appends $(ARGS)

bench-merge: $(INSTALLED) $(JAR) ## MERGE of 1 % into ROWS rows, beside Iceberg's merge on read, which it fetches
	@$(BIN)/python -m benchmarks.merge --rows $(or $(ROWS),20000000) $(ARGS)

bench-search: $(INSTALLED) ## searches by vectors and texts over many partitions, beside bare Lance and one dataset
	@$(BIN)/python -m benchmarks.vector_search $(ARGS)
	@$(BIN)/python -m benchmarks.text_search

bench-store: $(INSTALLED) ## tables on an S3 server that waits 50 ms before each request, beside one Lance dataset and Iceberg
	@$(BIN)/python -m benchmarks.store $(ARGS)

bench-hash: $(INSTALLED) ## murmur3 of numbers and strings on one core, beside mmh3 in a loop
	@$(BIN)/python benchmarks/murmur3.py

torture: $(INSTALLED) $(JAR) ## every test, with N seeds of its random ones that no run had before
	@for run in $$(seq $(or $(N),10)); do seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
	    echo "run $$run of $(or $(N),10), seed $$seed"; \
	    $(BIN)/python -m pytest $(or $(TESTS),tests) -q -x --hypothesis-seed=$$seed || exit 1; done

torture-joins: $(INSTALLED) $(JAR) ## N random joins, each against the same query without partitioning
	@$(BIN)/python -m tests.torture.joins --queries $(or $(N),1000) $(ARGS)

torture-execution: $(INSTALLED) $(JAR) ## N random queries of several tables in the workers, against plain Spark
	@$(BIN)/python -m tests.torture.execution --queries $(or $(N),1000) $(ARGS)

torture-predicates: $(INSTALLED) $(JAR) ## N random conditions on tables that evolve, each beside Spark's own filter
	@$(BIN)/python -m tests.torture.predicates --conditions $(or $(N),2000) $(ARGS)

torture-functions: $(INSTALLED) $(JAR) ## Spark's functions beside Python's, on N random values of each type
	@$(BIN)/python -m tests.torture.functions --rows $(or $(N),1000000) $(ARGS)

torture-expressions: $(INSTALLED) $(JAR) ## expressions that workers compute beside Spark's own, on N random rows
	@$(BIN)/python -m tests.torture.expressions --rows $(or $(N),100000) $(ARGS)

torture-examples: $(INSTALLED) $(JAR) ## N variations of Spark's own examples in the workers, beside Spark's values and errors
	@$(BIN)/python -m tests.torture.examples --queries $(or $(N),5000) $(ARGS)

torture-rows: $(INSTALLED) $(JAR) ## N random DELETE, UPDATE and MERGE statements, each also run by DuckDB
	@$(BIN)/python -m tests.torture.row_changes --statements $(or $(N),2000) $(ARGS)

torture-statements: $(INSTALLED) ## N random statements from Python, no Spark, each against a model that asks DuckDB
	@$(BIN)/python -m tests.torture.statements --statements $(or $(N),2000) $(ARGS)

torture-commits: $(INSTALLED) ## N commits of processes that are killed with -9, each against a model
	@$(BIN)/python -m tests.torture.commits --commits $(or $(N),1000) --kills $(or $(KILLS),100) $(ARGS)

torture-pauses: $(INSTALLED) ## writers that stand still at each step, then at random for N seconds, beside expiries
	@PENNON_EXHAUSTIVE=1 $(BIN)/python -m pytest -q tests/faults/test_stalled_writers.py
	@$(BIN)/python -m tests.torture.pauses --seconds $(or $(N),1800) $(ARGS)

torture-search: $(INSTALLED) ## N random steps on tables with indexes, between searches, each beside NumPy
	@$(BIN)/python -m tests.torture.searches --steps $(or $(N),1000) $(ARGS)

torture-indexes: $(INSTALLED) ## N appends beside processes that make and drop indexes, killed with -9, and at each step
	@PENNON_EXHAUSTIVE=1 $(BIN)/python -m pytest -q tests/faults/test_index_killed.py
	@$(BIN)/python -m tests.torture.index_races --appends $(or $(N),200) $(ARGS)

torture-races: $(INSTALLED) ## N races of two or three statements in processes of their own, each against serial orders
	@$(BIN)/python -m tests.torture.races --races $(or $(N),500) $(ARGS)

clean: ## remove what the commands above have made
	rm -rf $(VENV) build dist .gradle python/pennon/jars python/*.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log

$(CLASSES): $(INSTALLED) $(JAR) tests/class_archive.py
	@$(BIN)/python -m tests.class_archive

$(INSTALLED): requirements.lock pyproject.toml
	@python=$$(setup/find-python) && setup/packages venv "$$python" && \
	    { [ -x $(BIN)/python ] || { echo "Making $(VENV) with $$python …"; "$$python" -m venv $(VENV); }; }
	@echo "Installing the packages of requirements.lock …"
	@grep '^setuptools==' requirements.lock | xargs $(BIN)/python -m pip install --quiet --disable-pip-version-check
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(JAR): $(JAVA_SOURCES) build.gradle settings.gradle requirements.lock | $(INSTALLED)
	@setup/packages jdk gradle
	@echo "Building the jar …"
	@mkdir -p build
	@$(GRADLE) jar > build/gradle.log 2>&1 || { cat build/gradle.log; exit 1; }
	@touch $@

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))
