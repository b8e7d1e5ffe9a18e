"""What a monitoring system needs to watch a registry, written from the table of metrics and the list of alerts: rules
for Prometheus, and a dashboard for Grafana with a panel for each metric."""

import json
from collections.abc import Iterator
from typing import Any

from vskill_platform.observing.metrics import DECLARED, DeclaredMetric, Merge
from vskill_platform.queue.alerts import AlertCode

RULES = "deploy/monitoring/rules.json"
DASHBOARD = "deploy/monitoring/dashboard.json"
#: Two panels in a row.
_WIDTH, _HEIGHT = 12, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def rules() -> str:
    """JSON is YAML, so Prometheus reads it as it reads every file of rules."""
    held = [
        (code.value, f'max(vskill_alerts{{alert="{code.value}"}}) > 0', code.meaning) for code in AlertCode
    ]
    promised = [
        (
            "queue_violations",
            "max(vskill_queue_violations) > 0",
            "a submission is stuck: the promise is broken",
        ),
        ("silent", "absent(vskill_alerts)", "no web process was scraped, or none of them can read its store"),
    ]
    written = [
        {
            "alert": f"vskill_{name}",
            "expr": expression,
            "for": "1m",
            "labels": {"severity": "warning"},
            "annotations": {"summary": meaning},
        }
        for name, expression, meaning in (*held, *promised)
    ]
    return _json({"groups": [{"name": "vskill-platform", "rules": written}]})


def dashboard() -> str:
    variable = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    return _json(
        {
            "title": "vskill-platform",
            "uid": "vskill-platform",
            "schemaVersion": 39,
            "time": {"from": "now-6h", "to": "now"},
            "refresh": "1m",
            "templating": {"list": [variable]},
            "panels": list(_panels()),
        }
    )


def _panels() -> Iterator[dict[str, Any]]:
    for number, metric in enumerate(DECLARED):
        place = {"x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
        legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels) or metric.name
        yield {
            "id": number + 1,
            "type": "timeseries",
            "title": metric.name,
            "description": metric.sentence,
            "datasource": _SOURCE,
            "gridPos": place,
            "targets": [
                {"refId": "A", "datasource": _SOURCE, "expr": _shown(metric), "legendFormat": legend}
            ],
        }


def _shown(metric: DeclaredMetric[Any]) -> str:
    """Over all processes that are scraped: what each tells of the store is the same, and what each has is added."""
    labels = ", ".join(metric.labels)
    if metric.kind == "counter":
        return f"sum by ({labels}) (rate({metric.name}[5m]))"
    if metric.kind == "histogram":
        by = ", ".join(("le", *metric.labels))
        return f"histogram_quantile(0.99, sum by ({by}) (rate({metric.name}_bucket[5m])))"
    return f"{'sum' if metric.of_process is Merge.ADD else 'max'} by ({labels}) ({metric.name})"


def _json(document: object) -> str:
    return json.dumps(document, indent=2) + "\n"
