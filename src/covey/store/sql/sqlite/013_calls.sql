-- How many calls of a model a run has made, so that it is known what one of an agent usually costs. Folded from the log.

ALTER TABLE spends ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
