-- Who wrote the words of a task, and who sent its work back: what is not the owner's is quoted wherever a model reads it.
-- Folded from the log; the rows of before are told again by what follows this in `sqlite.py`.

ALTER TABLE tasks ADD COLUMN author TEXT NOT NULL DEFAULT 'owner';
