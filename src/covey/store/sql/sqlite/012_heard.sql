-- What the conversation of a run has heard of its task, and which parts of a task a message tells; where that is kept
-- which a run did not commit. Folded from the log.

ALTER TABLE runs ADD COLUMN heard TEXT NOT NULL DEFAULT '[]';
ALTER TABLE runs ADD COLUMN "left" TEXT;
ALTER TABLE messages ADD COLUMN facts TEXT NOT NULL DEFAULT '[]';
