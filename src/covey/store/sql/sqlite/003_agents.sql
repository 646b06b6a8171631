-- Folded from the log: questions, permits, spends, and what runs and sessions know besides.

ALTER TABLE runs ADD COLUMN runner TEXT NOT NULL DEFAULT 'process';
ALTER TABLE runs ADD COLUMN person INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN over INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN money REAL;
ALTER TABLE runs ADD COLUMN tokens INTEGER;
CREATE INDEX runs_conversation ON runs (conversation) WHERE conversation IS NOT NULL;

ALTER TABLE sessions ADD COLUMN attached TEXT;
ALTER TABLE sessions ADD COLUMN until REAL;

CREATE TABLE questions (
    id       TEXT PRIMARY KEY,
    ordinal  INTEGER NOT NULL,
    session  TEXT NOT NULL,
    task     TEXT,
    run      TEXT,
    asks     TEXT NOT NULL,
    wants    TEXT NOT NULL,
    text     TEXT NOT NULL,
    tool     TEXT NOT NULL,
    about    TEXT NOT NULL,
    choices  TEXT NOT NULL,
    state    TEXT NOT NULL,
    decision TEXT,
    answer   TEXT,
    "by"     TEXT,
    told     INTEGER NOT NULL,
    asked    REAL NOT NULL,
    until    REAL,
    ended    REAL
) STRICT;
CREATE INDEX questions_ordinal ON questions (ordinal);
CREATE INDEX questions_open ON questions (ordinal) WHERE state = 'open';
CREATE INDEX questions_untold ON questions (ordinal) WHERE told = 0 AND state <> 'withdrawn';
CREATE INDEX questions_run ON questions (run, ordinal) WHERE run IS NOT NULL;

CREATE TABLE permits (
    id      TEXT PRIMARY KEY,
    ordinal INTEGER NOT NULL,
    tool    TEXT NOT NULL,
    about   TEXT NOT NULL,
    "by"    TEXT NOT NULL,
    granted REAL NOT NULL,
    revoked REAL
) STRICT;
CREATE INDEX permits_live ON permits (ordinal) WHERE revoked IS NULL;

CREATE TABLE spends (
    run         TEXT NOT NULL,
    model       TEXT NOT NULL,
    day         TEXT NOT NULL,
    session     TEXT NOT NULL,
    task        TEXT NOT NULL,
    agent       TEXT NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost        REAL NOT NULL,
    unpriced    INTEGER NOT NULL,
    PRIMARY KEY (run, model, day)
) STRICT, WITHOUT ROWID;
-- Covers what is summed before every start, so that a day is read from the index alone.
CREATE INDEX spends_day ON spends (day, session, cost, input, output, cache_read, cache_write, unpriced);
CREATE INDEX spends_task ON spends (task);
CREATE INDEX spends_session ON spends (session);
