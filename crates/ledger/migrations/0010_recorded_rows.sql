-- The newest event that records a row, for each row that changes: of runs, model calls, crawls and skills. `ledger verify` compares the
-- row with that event, and each event with this table. It replaces the columns that named the events of runs and model calls. What an
-- older ledger holds is recorded when it is migrated.

CREATE TABLE recorded_rows (
    table_name TEXT    NOT NULL,
    row_key    TEXT    NOT NULL, -- the row's primary key as a JSON array
    event      INTEGER NOT NULL,
    PRIMARY KEY (table_name, row_key)
) STRICT, WITHOUT ROWID;

ALTER TABLE runs DROP COLUMN event;
ALTER TABLE model_calls DROP COLUMN reserved_event;
ALTER TABLE model_calls DROP COLUMN settled_event;

-- The seventh version had another name before it was released.
DROP TRIGGER schema_version_is_never_changed;
UPDATE schema_version SET migration = '0007_row_events' WHERE version = 7;
CREATE TRIGGER schema_version_is_never_changed BEFORE UPDATE ON schema_version
BEGIN SELECT RAISE(ABORT, 'the version of the tables is never changed'); END;

INSERT INTO schema_version (version, migration) VALUES (10, '0010_recorded_rows');
