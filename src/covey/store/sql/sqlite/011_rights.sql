-- Who put a task on the board: what a session may do with it, and how many it has open, depends on that.
-- What sessions ask beyond their rights, until a person decides. Both folded from the log.

ALTER TABLE tasks ADD COLUMN added_by TEXT NOT NULL DEFAULT 'owner';
UPDATE tasks SET added_by = coalesce(
    (SELECT actor FROM events WHERE subject = tasks.id AND kind = 'task.added' ORDER BY seq LIMIT 1), 'owner');
CREATE INDEX tasks_added_by ON tasks (added_by) WHERE added_by <> 'owner' AND status NOT IN ('done', 'dropped');

CREATE TABLE proposals (
    id      TEXT PRIMARY KEY,
    ordinal INTEGER NOT NULL,
    session TEXT NOT NULL,
    verb    TEXT NOT NULL,
    target  TEXT,
    asked   TEXT NOT NULL,
    why     TEXT NOT NULL,
    basis   INTEGER NOT NULL,
    was     TEXT NOT NULL,
    state   TEXT NOT NULL,
    reason  TEXT,
    "by"    TEXT,
    made    REAL NOT NULL,
    ended   REAL
) STRICT;
CREATE INDEX proposals_ordinal ON proposals (ordinal);
CREATE INDEX proposals_open ON proposals (session, ordinal) WHERE state = 'open';

CREATE INDEX messages_sender ON messages (sender, ordinal);
