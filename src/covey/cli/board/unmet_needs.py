"""What a task on the board still waits for, as people see it."""

from __future__ import annotations

from covey.cli.frame.client import Client, Json

MAX_TASKS_ASKED = 200
"""Needs that are looked up; whoever lists thousands of tasks does not wait for all of them."""


def unmet(client: Client, tasks: list[Json]) -> dict[str, list[str]]:
    """Return the needs that are not met, for each task that waits for one."""
    waiting = [task for task in tasks if not task["ready"]]
    known = {task["id"]: task["status"] for task in tasks}
    elsewhere = dict.fromkeys(need for task in waiting for need in task["needs"] if need not in known)
    for need in list(elsewhere)[:MAX_TASKS_ASKED]:
        known[need] = client.ask("task.show", {"id": need}).value["status"]
    left = {
        task["id"]: [need for need in task["needs"] if not _is_met(task, need, known.get(need, ""))] for task in waiting
    }
    return {task: needs for task, needs in left.items() if needs}


def _is_met(task: Json, need: str, status: str) -> bool:
    return status == "done" or (status == "dropped" and need in task.get("needs_any", ()))
