-- The merge queue: what is tested in which gate, what main was and is, which tests flake. Folded from the log: queue,
-- gates, flakes, landings.

ALTER TABLE merges ADD COLUMN onto TEXT;
ALTER TABLE merges ADD COLUMN landing TEXT;
ALTER TABLE merges ADD COLUMN reverts TEXT;
ALTER TABLE merges ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE merges ADD COLUMN needs TEXT NOT NULL DEFAULT '[]';
ALTER TABLE merges ADD COLUMN paths TEXT NOT NULL DEFAULT '[]';
ALTER TABLE merges ADD COLUMN against TEXT NOT NULL DEFAULT '[]';
ALTER TABLE merges ADD COLUMN cause TEXT NOT NULL DEFAULT '';
ALTER TABLE merges ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';

CREATE TABLE queue (
    id           TEXT PRIMARY KEY,
    strategy     TEXT NOT NULL,
    slots        INTEGER NOT NULL,
    base         TEXT,
    proven       INTEGER NOT NULL,
    rate         TEXT NOT NULL,
    began        REAL,
    paused       INTEGER NOT NULL,
    frozen       INTEGER NOT NULL,
    halted       TEXT,
    gates        TEXT NOT NULL,
    paused_why   TEXT,
    paused_by    TEXT,
    paused_since REAL,
    frozen_why   TEXT,
    frozen_by    TEXT,
    frozen_since REAL
) STRICT, WITHOUT ROWID;

CREATE TABLE gates (
    id          TEXT PRIMARY KEY,
    ordinal     INTEGER NOT NULL,
    test        INTEGER NOT NULL,
    base        TEXT NOT NULL,
    "commit"    TEXT NOT NULL,
    merges      TEXT NOT NULL,
    purpose     TEXT NOT NULL,
    slot        INTEGER NOT NULL,
    checks      TEXT NOT NULL,
    state       TEXT NOT NULL,
    why         TEXT,
    code        INTEGER,
    step        TEXT NOT NULL,
    seconds     REAL,
    cpu         REAL,
    failures    TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    summary     TEXT NOT NULL,
    started     REAL NOT NULL,
    ended       REAL
) STRICT;
CREATE INDEX gates_ordinal ON gates (ordinal);
CREATE INDEX gates_running ON gates (ordinal) WHERE state = 'running';
CREATE INDEX gates_passed ON gates ("commit") WHERE state = 'passed';

CREATE TABLE flakes (
    test  TEXT PRIMARY KEY,
    times INTEGER NOT NULL,
    first REAL NOT NULL,
    last  REAL NOT NULL,
    gate  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE landings (
    id        TEXT PRIMARY KEY,
    ordinal   INTEGER NOT NULL,
    branch    TEXT NOT NULL,
    before    TEXT NOT NULL,
    "commit"  TEXT NOT NULL,
    merges    TEXT NOT NULL,
    gate      TEXT,
    untested  INTEGER NOT NULL,
    made      REAL NOT NULL,
    remote    TEXT,
    pushed    REAL
) STRICT;
CREATE INDEX landings_ordinal ON landings (ordinal);
CREATE INDEX landings_commit ON landings ("commit");
