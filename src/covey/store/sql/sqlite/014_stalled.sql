-- Whether a run was ended because its model did not answer: its session then waits before it begins another. Folded from
-- the log.

ALTER TABLE runs ADD COLUMN stalled INTEGER NOT NULL DEFAULT 0;
