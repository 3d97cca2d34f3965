-- Which version of the tables this is, for anyone who reads the file without Crucible: the highest row. SQLite's `user_version`, by which
-- Crucible goes, is the same number. Each later migration adds its row.

CREATE TABLE schema_version (
    version   INTEGER PRIMARY KEY CHECK (version > 0),
    migration TEXT NOT NULL UNIQUE                                 -- the file's name without its ending
) STRICT;

INSERT INTO schema_version (version, migration) VALUES
    (1, '0001_chain'),
    (2, '0002_runs_and_calls'),
    (3, '0003_one_index_per_event'),
    (4, '0004_crawl'),
    (5, '0005_spec_receipts'),
    (6, '0006_forge'),
    (7, '0007_row_events'),
    (8, '0008_schema_version');

CREATE TRIGGER schema_version_is_never_changed BEFORE UPDATE ON schema_version
BEGIN SELECT RAISE(ABORT, 'the version of the tables is never changed'); END;

CREATE TRIGGER schema_version_is_never_lowered BEFORE DELETE ON schema_version
BEGIN SELECT RAISE(ABORT, 'the version of the tables is never lowered'); END;
