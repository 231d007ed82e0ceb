"""Where the time of a query goes: Spark's phases, its jobs, CPU of the JVM and the workers."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

from benchmarks.side_by_side import cpu_seconds, descendants, is_worker

COLUMNS = (
    "analysis ms",
    "optimizer ms",
    "planning ms",
    "jobs ms",
    "tasks",
    "tasks ms",
    "JVM CPU s",
    "workers CPU s",
    "their operators s",
    "MB from workers",
    "rows from scans",
)
_PHASES = ("analysis", "optimization", "planning")
_SCANS = ("BatchScan", "FileScan", "Scan ")
_OPERATORS, _BYTES, _ROWS = "workerComputeMillis", "arrowBytesRead", "numOutputRows"
_MOST_JOBS = 100


@dataclass(frozen=True, slots=True)
class QueryProfile:
    """What was before a query.

    Args:
        spark: The session.
        jobs: The numbers of the jobs before it.
        jvm: CPU seconds of the JVM.
        workers: CPU seconds of the workers.
    """

    spark: Any
    jobs: frozenset[int]
    jvm: float
    workers: float

    @classmethod
    def begin(cls, spark: Any) -> QueryProfile:
        return cls(spark, frozenset(_jobs(spark)), *_cpu())

    def of(self, frame: Any) -> list[float]:
        """Tell what has happened since, and how Spark came to the plan: ``COLUMNS``."""
        jvm, workers = _cpu()
        execution = frame._jdf.queryExecution()
        phases = execution.tracker().phases()
        spent = [
            phases.apply(phase).durationMs() if phases.contains(phase) else 0 for phase in _PHASES
        ]
        jobs = [job for number, job in _jobs(self.spark).items() if number not in self.jobs]
        tasks = sum(job.numCompletedTasks() for job in jobs)
        cpu = [jvm - self.jvm, workers - self.workers]
        counts = _counts(execution.executedPlan())
        return [
            *spent,
            _millis(jobs),
            tasks,
            _task_millis(self.spark, jobs),
            *cpu,
            counts[_OPERATORS] / 1000,
            counts[_BYTES] / 1_000_000,
            counts[_ROWS],
        ]


def _jobs(spark: Any) -> dict[int, Any]:
    """List the last jobs by their numbers."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    listed = (jobs.apply(at) for at in range(min(jobs.size(), _MOST_JOBS)))
    return {job.jobId(): job for job in listed}


def _cpu() -> tuple[float, float]:
    processes = descendants(os.getpid())
    workers = {pid for pid in processes if is_worker(pid)}
    return sum(map(cpu_seconds, processes - workers)), sum(map(cpu_seconds, workers))


def _millis(jobs: list[Any]) -> int:
    """Tell how long it was from the first job's start to the last one's end."""
    if not jobs:
        return 0
    begun = min(job.submissionTime().get().getTime() for job in jobs)
    return int(max(job.completionTime().get().getTime() for job in jobs) - begun)


def _task_millis(spark: Any, jobs: list[Any]) -> int:
    """Add up how long the tasks ran, without their launch."""
    store = spark.sparkContext._jsc.sc().statusStore()
    numbers = {job.stageIds().apply(at) for job in jobs for at in range(job.stageIds().size())}
    return sum(store.lastStageAttempt(number).executorRunTime() for number in numbers)


def _counts(plan: Any) -> Counter[str]:
    """Add up what the scans have counted, through the stages of an adaptive plan."""
    name = plan.nodeName()
    if name == "AdaptiveSparkPlan":
        return _counts(plan.executedPlan())
    if name.endswith("QueryStage"):
        return _counts(plan.plan())
    counts: Counter[str] = Counter()
    if name.startswith(_SCANS):
        metrics = plan.metrics()
        known = [key for key in (_OPERATORS, _BYTES, _ROWS) if metrics.contains(key)]
        counts.update({key: metrics.apply(key).value() for key in known})
    children = plan.children()
    for at in range(children.size()):
        counts += _counts(children.apply(at))
    return counts
