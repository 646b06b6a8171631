-- Folded from the log: runs, fleet, and what sessions, tasks and merges know besides.

ALTER TABLE tasks ADD COLUMN batch TEXT;
ALTER TABLE tasks ADD COLUMN forgiven INTEGER NOT NULL DEFAULT 0;
UPDATE tasks SET forgiven = (
    SELECT count(*) FROM events AS tried
    WHERE tried.subject = tasks.id
      AND (tried.kind = 'task.rejected' OR (tried.kind = 'task.released' AND tried.data ->> '$.what' IS NOT NULL))
      AND tried.seq < coalesce(
          (SELECT max(seq) FROM events AS moved
           WHERE moved.subject = tasks.id AND moved.kind = 'task.edited' AND moved.data ->> '$.status' IS NOT NULL), 0)
);
CREATE INDEX tasks_batch ON tasks (batch, status) WHERE batch IS NOT NULL;

ALTER TABLE sessions ADD COLUMN agent TEXT;
ALTER TABLE sessions ADD COLUMN batch TEXT;
ALTER TABLE sessions ADD COLUMN goal TEXT NOT NULL DEFAULT 'stopped';

ALTER TABLE merges ADD COLUMN approved INTEGER NOT NULL DEFAULT 0;
ALTER TABLE merges ADD COLUMN candidate TEXT;
ALTER TABLE merges ADD COLUMN untested INTEGER NOT NULL DEFAULT 0;
ALTER TABLE merges ADD COLUMN run TEXT;
UPDATE merges SET approved = 1 WHERE id IN (SELECT subject FROM events WHERE kind = 'merge.approved');
DROP INDEX merges_open;
CREATE INDEX merges_open ON merges (ordinal) WHERE state IN ('review', 'queued', 'testing', 'passed');

CREATE TABLE runs (
    id           TEXT PRIMARY KEY,
    ordinal      INTEGER NOT NULL,
    session      TEXT NOT NULL,
    task         TEXT NOT NULL,
    fence        INTEGER NOT NULL,
    agent        TEXT NOT NULL,
    base         TEXT,
    conversation TEXT,
    ending       TEXT,
    again        INTEGER NOT NULL,
    fault        INTEGER NOT NULL,
    outcome      TEXT,
    code         INTEGER,
    what         TEXT,
    "commit"     TEXT,
    begun        REAL NOT NULL,
    ended        REAL
) STRICT;
CREATE INDEX runs_open ON runs (session) WHERE outcome IS NULL;
CREATE INDEX runs_session ON runs (session, ordinal);
CREATE INDEX runs_task ON runs (task, ordinal);

CREATE TABLE fleet (
    id     TEXT PRIMARY KEY,
    paused INTEGER NOT NULL,
    "by"   TEXT,
    since  REAL
) STRICT, WITHOUT ROWID;
