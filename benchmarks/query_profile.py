"""Where the time of a query goes: Spark's phases, its jobs, CPU of the JVM and the workers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from benchmarks.side_by_side import cpu_seconds, descendants, is_worker

COLUMNS = (
    "analysis ms",
    "optimizer ms",
    "planning ms",
    "jobs",
    "stages",
    "tasks",
    "JVM CPU s",
    "workers CPU s",
    "rows from scans",
)
_PHASES = ("analysis", "optimization", "planning")
_SCANS = ("BatchScan", "FileScan", "Scan ")
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
        stages = sum(job.numCompletedStages() for job in jobs)
        tasks = sum(job.numCompletedTasks() for job in jobs)
        cpu = [jvm - self.jvm, workers - self.workers]
        return [*spent, len(jobs), stages, tasks, *cpu, _rows(execution.executedPlan())]


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


def _rows(plan: Any) -> int:
    """Add up the rows that scans gave to Spark, through the stages of an adaptive plan."""
    name = plan.nodeName()
    if name == "AdaptiveSparkPlan":
        return _rows(plan.executedPlan())
    if name.endswith("QueryStage"):
        return _rows(plan.plan())
    if name.startswith(_SCANS):
        metrics = plan.metrics()
        return metrics.apply("numOutputRows").value() if metrics.contains("numOutputRows") else 0
    children = plan.children()
    return sum(_rows(children.apply(at)) for at in range(children.size()))
