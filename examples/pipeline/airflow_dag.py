"""A pipeline as a DAG of Airflow 3: put this file into the folder of DAGs and export ``PIPELINE_CONFIG``.

Each task is a command of ``pykafka08 pipeline``. A task that was killed can be repeated: the pipeline continues there.
"""

import os
import shlex
from datetime import datetime, timedelta, timezone

from airflow.sdk import dag, task

CONFIG = shlex.quote(os.environ.get("PIPELINE_CONFIG", "/etc/pykafka08/flights.toml"))


@dag(
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
)
def pykafka08_pipeline():
    @task.bash
    def validate() -> str:
        return f"pykafka08 pipeline validate {CONFIG}"

    @task.bash
    def run() -> str:
        # 3: all stages are done, and a bound of [alerts] is passed; `check` reports it
        return f"pykafka08 pipeline run {CONFIG} || test $? -eq 3"

    @task.bash
    def verify() -> str:
        return f"pykafka08 pipeline verify {CONFIG}"

    @task.bash(retries=0)
    def check() -> str:
        return f"pykafka08 pipeline status --check {CONFIG}"

    validate() >> run() >> verify() >> check()


pykafka08_pipeline()
