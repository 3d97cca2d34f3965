-- Every index is one more page that an append writes. An event with a key stands in `events_once_per_key`
-- already; the others get an index of their own, so that each event stands in exactly one.

DROP INDEX events_by_run;

CREATE INDEX events_without_key ON events (run_id, seq) WHERE key IS NULL;
