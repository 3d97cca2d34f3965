-- Receipts of specs: one row for each that was promoted on this machine. The event of the row tells the same in the chain, and
-- holds the receipt's bytes as an artifact. Rows are written once. A sequence may stand twice with different digests: a
-- project's directory can go back to an older state, as a checkout of another branch does, and go on from there.

CREATE TABLE spec_receipts (
    event_seq  INTEGER PRIMARY KEY REFERENCES events (seq),
    project    TEXT    NOT NULL CHECK (length(project) = 64), -- the digest of the project's path
    spec       TEXT    NOT NULL,
    sequence   INTEGER NOT NULL CHECK (sequence >= 1),        -- counts within the spec
    receipt_id TEXT    NOT NULL,
    phase      TEXT    NOT NULL,
    digest     TEXT    NOT NULL CHECK (length(digest) = 64)   -- as the receipt states it
) STRICT;

CREATE UNIQUE INDEX spec_receipts_once ON spec_receipts (project, spec, receipt_id, digest);
CREATE INDEX spec_receipts_by_phase ON spec_receipts (project, spec, phase, event_seq);

CREATE TRIGGER spec_receipts_are_never_changed BEFORE UPDATE ON spec_receipts
BEGIN SELECT RAISE(ABORT, 'the record of a receipt is never changed'); END;

CREATE TRIGGER spec_receipts_are_never_removed BEFORE DELETE ON spec_receipts
BEGIN SELECT RAISE(ABORT, 'the record of a receipt is never removed'); END;
