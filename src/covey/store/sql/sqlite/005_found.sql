-- The text under which a lease is found is made by Python from here on (it folds letters that SQLite does not know), and
-- who wrote into a lease is kept as long as the lease lasts, without a task by the name of the session.

DELETE FROM crossings WHERE lease NOT IN (SELECT id FROM leases WHERE state IN ('live', 'waiting'));
UPDATE crossings SET task = '@' || session WHERE task = '';

ALTER TABLE leases ADD COLUMN within TEXT NOT NULL DEFAULT '[]';
