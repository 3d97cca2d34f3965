-- Rows of runs and model calls change while a run goes on. Each change is an event of the chain, too, and the row names it. The next
-- migrations do the same for every table.

ALTER TABLE runs ADD COLUMN event INTEGER;                 -- the newest event about the row
ALTER TABLE model_calls ADD COLUMN reserved_event INTEGER;
ALTER TABLE model_calls ADD COLUMN settled_event INTEGER;
