-- Rows of runs and model calls change while a run goes on. Each change is an event of the chain, too, and the row names it, so that a
-- row that was edited, removed or turned back is found. What an older ledger holds is told in the chain when it is brought up to date.

ALTER TABLE runs ADD COLUMN event INTEGER;                 -- the newest event that tells of the row
ALTER TABLE model_calls ADD COLUMN reserved_event INTEGER;
ALTER TABLE model_calls ADD COLUMN settled_event INTEGER;
