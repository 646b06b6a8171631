-- What the conversation of a run has heard of its task, and which parts of a task a message tells; where that is kept
-- which a run did not commit, and where it began; what the agent of one session may do. Folded from the log. And tasks are
-- found by whom they are for.

ALTER TABLE runs ADD COLUMN heard TEXT NOT NULL DEFAULT '[]';
ALTER TABLE runs ADD COLUMN "left" TEXT;
ALTER TABLE runs ADD COLUMN head TEXT;
ALTER TABLE messages ADD COLUMN facts TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sessions ADD COLUMN permissions TEXT;
CREATE INDEX tasks_assignee ON tasks (assignee, status) WHERE assignee IS NOT NULL;
