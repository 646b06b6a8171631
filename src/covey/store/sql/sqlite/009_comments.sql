-- Comments on the work for a task: drafts, and what was sent with them. Folded from the log.

CREATE TABLE comments (
    id       TEXT PRIMARY KEY,
    ordinal  INTEGER NOT NULL,
    task     TEXT NOT NULL,
    author   TEXT NOT NULL,
    text     TEXT NOT NULL,
    "commit" TEXT,
    path     TEXT,
    side     TEXT NOT NULL,
    line     INTEGER,
    lines    INTEGER NOT NULL,
    quote    TEXT NOT NULL,
    written  REAL NOT NULL,
    edited   REAL,
    sent     REAL,
    "to"     TEXT,
    message  TEXT,
    back     INTEGER NOT NULL,
    removed  REAL
) STRICT;
CREATE INDEX comments_task ON comments (task, ordinal) WHERE removed IS NULL;
