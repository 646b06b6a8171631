"""Where each verb is asked over REST, so that a command with a daemon needs to import none of the rules.

A test holds this table against the verbs themselves.
"""

from __future__ import annotations

ADDRESSES = {
    "alert.list": "GET /api/alerts",
    "lease.give": "POST /api/leases/{id}/give",
    "lease.list": "GET /api/leases",
    "lease.renew": "POST /api/leases/{id}/renew",
    "lease.take": "POST /api/leases",
    "log.forget": "POST /api/log/forget",
    "log.import": "POST /api/log/import",
    "log.list": "GET /api/log",
    "log.prune": "POST /api/log/prune",
    "mail.ack": "POST /api/mail/{id}/ack",
    "mail.inbox": "GET /api/mail",
    "mail.read": "POST /api/mail/{id}/read",
    "mail.send": "POST /api/mail",
    "merge.approve": "POST /api/merges/{id}/approve",
    "merge.land": "POST /api/merges/{id}/land",
    "merge.list": "GET /api/merges",
    "merge.reject": "POST /api/merges/{id}/reject",
    "session.list": "GET /api/sessions",
    "session.new": "POST /api/sessions",
    "session.token": "POST /api/sessions/{name}/token",
    "status": "GET /api/status",
    "task.add": "POST /api/board",
    "task.block": "POST /api/board/{id}/block",
    "task.claim": "POST /api/board/{id}/claim",
    "task.deps": "GET /api/board/{id}/deps",
    "task.drop": "POST /api/board/{id}/drop",
    "task.edit": "PATCH /api/board/{id}",
    "task.handin": "POST /api/board/{id}/handin",
    "task.import": "POST /api/board/import",
    "task.list": "GET /api/board",
    "task.next": "POST /api/claim",
    "task.release": "POST /api/board/{id}/release",
    "task.renew": "POST /api/board/{id}/renew",
    "task.show": "GET /api/board/{id}",
}
OWNER_ONLY = {
    "log.forget",
    "log.import",
    "log.prune",
    "merge.approve",
    "merge.land",
    "merge.reject",
    "session.new",
    "session.token",
    "task.drop",
}
