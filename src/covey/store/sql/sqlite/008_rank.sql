-- A person may put a task before or behind others of its priority: its rank says where. Folded from the log.
-- The last alert of a type is found at once, whatever else there was to tell.

ALTER TABLE tasks ADD COLUMN rank REAL NOT NULL DEFAULT 0;
UPDATE tasks SET rank = ordinal;

DROP INDEX tasks_ready;
DROP INDEX tasks_board;
DROP INDEX tasks_status;
CREATE INDEX tasks_ready ON tasks (lane, line, priority DESC, rank, ordinal)
    WHERE status = 'todo' AND unmet = 0 AND open_children = 0;
CREATE INDEX tasks_board ON tasks (priority DESC, rank, ordinal);
CREATE INDEX tasks_status ON tasks (status, priority DESC, rank, ordinal);

CREATE INDEX alerts_type ON alerts (type, ordinal);
