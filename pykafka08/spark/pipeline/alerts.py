"""Alerts: exceeded bounds of ``[alerts]``, and their webhook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

import httpx

from pykafka08.spark.pipeline.report import rejects_of
from pykafka08.spark.pipeline.settings import Alerts, Pipeline
from pykafka08.spark.pipeline.status import StageStatus, newest_batches, status
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["Alert", "alerts", "over_bounds", "send"]

TIMEOUT_S = 5.0
"""The timeout of each step of the webhook's request: connection, writing, reading."""


@dataclass(frozen=True)
class Alert:
    """An exceeded bound."""

    bound: str
    """Its setting."""
    stage: str
    value: float | None
    """The value; None if it is unknown, or without a batch yet."""
    limit: float
    text: str


def alerts(pipeline: Pipeline) -> list[Alert]:
    """The bounds that are exceeded now; empty without ``[alerts]``."""
    if pipeline.alerts is None:
        return []
    refused = rejects_of(Table(pipeline.rejects))
    ratios = {}
    for stage, batches in newest_batches(pipeline).items():
        if stage.startswith("decode-"):
            read = sum(one["numInputRows"] for one in batches)
            ratios[stage] = sum(refused.get((stage, one["batchId"]), 0) for one in batches) / max(1, read)
    return list(over_bounds(pipeline.alerts, status(pipeline), ratios, datetime.now(timezone.utc)))


def over_bounds(
    bounds: Alerts, stages: Iterable[StageStatus], ratios: Mapping[str, float], now: datetime
) -> Iterator[Alert]:
    """Compare the status of the stages with the bounds.  ``ratios``: the share of refused rows, by stage."""
    for one in stages:
        if bounds.max_lag is not None and (one.behind is None or one.behind > bounds.max_lag):
            yield Alert("max_lag", one.stage, one.behind, bounds.max_lag, f"lag {one.lag}, at most {bounds.max_lag:,}")
        if bounds.max_age_seconds is not None and one.stage.startswith("ingest-"):
            limit = bounds.max_age_seconds
            age = None if one.at is None else (now - one.at).total_seconds()
            if age is None or age > limit:
                told = "no batch with rows yet" if age is None else f"last rows {age:,.0f} s ago"
                yield Alert("max_age_seconds", one.stage, age, limit, f"{told}, at most {limit:,} s")
    for stage, ratio in ratios.items():
        if bounds.max_reject_ratio is not None and ratio > bounds.max_reject_ratio:
            text = f"{ratio:.2%} of the newest run's rows refused, at most {bounds.max_reject_ratio:.2%}"
            yield Alert("max_reject_ratio", stage, ratio, bounds.max_reject_ratio, text)


def send(pipeline: Pipeline, passed: Iterable[Alert]) -> str:
    """Send alerts to the webhook.  Returns the error, or ``""``, without the address, which may have a token."""
    if pipeline.alerts is None or not pipeline.alerts.webhook:
        return ""
    document = {
        "pipeline": pipeline.name,
        "at": datetime.now(timezone.utc).isoformat(),
        "alerts": [asdict(one) for one in passed],
    }
    try:
        answer = httpx.post(pipeline.alerts.webhook, json=document, timeout=TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"alerts.webhook: {type(error).__name__}"
    return "" if answer.is_success else f"alerts.webhook: status {answer.status_code}"
