-- Leases that are waited for and come about by themselves, writes into them, mail that reached its reader, and branches
-- that overlap. Folded from the log: crossings, overlaps, hot_files.

ALTER TABLE leases ADD COLUMN origin TEXT NOT NULL DEFAULT 'hand';
ALTER TABLE leases ADD COLUMN beats INTEGER NOT NULL DEFAULT 0;
CREATE INDEX leases_waiting ON leases (fence) WHERE state = 'waiting';
UPDATE lease_resources SET found = lower(found);
CREATE INDEX leases_task ON leases (task, fence) WHERE task IS NOT NULL;

CREATE TABLE crossings (
    lease   TEXT NOT NULL,
    task    TEXT NOT NULL,
    path    TEXT NOT NULL,
    session TEXT NOT NULL,
    how     TEXT NOT NULL,
    at      REAL NOT NULL,
    PRIMARY KEY (lease, task, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX crossings_task ON crossings (task);

ALTER TABLE messages ADD COLUMN wake INTEGER NOT NULL DEFAULT 0;
ALTER TABLE readings ADD COLUMN delivered REAL;

CREATE TABLE overlaps (
    id      TEXT PRIMARY KEY,
    one     TEXT NOT NULL,
    other   TEXT NOT NULL,
    level   TEXT NOT NULL,
    files   TEXT NOT NULL,
    found   REAL NOT NULL,
    changed REAL NOT NULL,
    gone    REAL
) STRICT, WITHOUT ROWID;
CREATE INDEX overlaps_open ON overlaps (one) WHERE gone IS NULL;

CREATE TABLE hot_files (
    path       TEXT PRIMARY KEY,
    collisions INTEGER NOT NULL,
    since      REAL NOT NULL,
    last       REAL NOT NULL,
    cooled     REAL
) STRICT, WITHOUT ROWID;
