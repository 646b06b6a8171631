"""Something a person should know, once per transition."""

from __future__ import annotations

from enum import StrEnum

from covey.values import dataclass


class AlertKind(StrEnum):
    """What a person is told of, and in one sentence when; the reference lists them."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> AlertKind:
        kind = str.__new__(cls, value)
        kind._value_, kind.meaning = value, meaning
        return kind

    AGENT_CONNECTION = "agent_connection", "The provider of an agent does not answer, or cuts it off."
    AGENT_CORRUPT = "agent_corrupt", "The provider of an agent refuses a conversation for ever; a new one begins."
    AGENT_CREDIT = "agent_credit", "An agent's credit is used up."
    AGENT_GIVES_UP = "agent_gives_up", "An agent gives up one task after another, and is stopped for a while."
    AGENT_KEY = "agent_key", "The key or login of an agent is missing or wrong."
    AGENT_LIMIT = "agent_limit", "The provider of an agent takes no more of our requests for now."
    AGENT_OVERLOAD = "agent_overload", "The provider of an agent has no room for anybody, or fails."
    BAD_SETTINGS = "bad_settings", "covey.toml is not valid; the previous settings stay in force."
    BOARD_LOST = "board_lost", "The file of the board is gone; told to those who look, and in no log."
    BUDGET_SPENT = "budget_spent", "The budget of a task is used up, and the task is blocked."
    CANNOT_START = "cannot_start", "A session cannot start its agent."
    CLAIM_EXPIRED = "claim_expired", "A session has not been heard of for too long; its tasks went back to the board."
    CRASH_LOOP = "crash_loop", "The runs of a task crash too often, and the task is blocked."
    CRASHES = "crashes", "A session crashes again and again on a task."
    DOES_NOT_END = "does_not_end", "Something of a run still lives that could not be ended."
    GATE_BROKEN = "gate_broken", "The gate cannot be run, through no fault of what it would test; the queue waits."
    HOT_FILE = "hot_file", "Open branches collide in a file again and again; tasks on it start one after another."
    LANDED_LATE = "landed_late", "Work left the queue in the moment in which it landed."
    MAIN_MOVED_BACK = "main_moved_back", "Somebody took off main what had landed there."
    MAIN_PUT_BACK = "main_put_back", "A session moved or removed main, and it was put back."
    MAIN_RED = "main_red", "main itself fails the gate, and the queue halts."
    MAIN_UNNOTED = "main_unnoted", "main is where its reflog does not say that anybody moved it."
    MAIN_WAITS = "main_waits", "What has passed cannot go onto main yet, and waits."
    NEEDS_REVIEW = "needs_review", "A merge waits for a person's word."
    NEEDS_YOU = "needs_you", "A session waits for a person's answer."
    NOT_PUSHED = "not_pushed", "The remote does not take what has landed."
    PORT_TAKEN = "port_taken", "Another user listens at the daemon's port; it moved, and sent every browser away."
    PUSHED_UNASKED = "pushed_unasked", "A session pushed what nobody had allowed."
    QUESTION_EXPIRED = "question_expired", "Nobody answered a question in time, so it was denied."
    QUEUE_STUCK = "queue_stuck", "The merge queue fails again and again, and cannot go on."
    RADAR_FAILS = "radar_fails", "Open branches cannot be compared, so nobody is told which come close to each other."
    REFS_PUT_BACK = "refs_put_back", "A ref of covey's was not as covey left it, and was put in order."
    SENT_UNASKED = "sent_unasked", "A session may have sent something out by a program that nobody had allowed."
    SETTINGS_CHANGED = "settings_changed", "Settings by which git runs programs, or reads elsewhere, were changed."
    STALLED = "stalled", "A session was ended since it did not get on."
    TASK_BLOCKED = "task_blocked", "A task failed too often, and needs a person."
    TOKEN_PUT_BACK = "token_put_back", "The owner's token was changed or removed, and was put back."
    WAITS = "waits", "A session waits for something before it starts its next task."
    WORKTREE_ASIDE = "worktree_aside", "The worktree of a session is out of use, and kept as it is."


@dataclass(frozen=True, kw_only=True)
class Raised:
    """covey has something to tell a person."""

    type: str
    """An AlertKind; an old log may hold one that is no longer known, and is read all the same."""
    message: str
    session: str | None = None
    task: str | None = None


@dataclass(frozen=True, kw_only=True)
class Alert(Raised):
    """One alert, as it was raised."""

    id: str
    ordinal: int
    raised: float = 0.0
