-- The chain of events, the artifacts they speak of, and the head that the next event follows.
-- Rows of events and artifacts are written once: the triggers refuse every change and every removal,
-- also the removal hidden in INSERT OR REPLACE, because an event that is not next in line is refused.

PRAGMA application_id = 1129469251; -- "CRUC"

CREATE TABLE artifacts (
    id     INTEGER PRIMARY KEY,
    digest TEXT    NOT NULL UNIQUE CHECK (length(digest) = 64),
    kind   TEXT    NOT NULL,
    size   INTEGER NOT NULL CHECK (size >= 0),
    bytes  BLOB    NOT NULL
) STRICT;

CREATE TRIGGER artifacts_are_never_changed BEFORE UPDATE ON artifacts
BEGIN SELECT RAISE(ABORT, 'an artifact is never changed'); END;

CREATE TRIGGER artifacts_are_never_removed BEFORE DELETE ON artifacts
BEGIN SELECT RAISE(ABORT, 'an artifact is never removed'); END;

CREATE TRIGGER artifacts_are_never_replaced BEFORE INSERT ON artifacts
WHEN EXISTS (SELECT 1 FROM artifacts WHERE digest = NEW.digest OR id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'an artifact is never replaced'); END;

CREATE TABLE events (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id    TEXT NOT NULL,
    ts        TEXT NOT NULL,
    role      TEXT NOT NULL,
    event     TEXT NOT NULL,
    path      TEXT,
    key       TEXT,
    artifacts TEXT NOT NULL, -- canonical JSON: [{"digest","kind","size"}]
    body      TEXT NOT NULL, -- canonical JSON
    prev      TEXT NOT NULL CHECK (length(prev) = 64),
    hash      TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;

CREATE INDEX events_by_run ON events (run_id, seq);
CREATE UNIQUE INDEX events_once_per_key ON events (run_id, key) WHERE key IS NOT NULL;

-- One row: the last event. It is moved by the insertion itself, so it cannot lag behind.
CREATE TABLE chain_head (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    seq  INTEGER NOT NULL,
    hash TEXT    NOT NULL
) STRICT;

INSERT INTO chain_head (id, seq, hash) VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

CREATE TRIGGER chain_head_moves_one_step BEFORE UPDATE ON chain_head
WHEN NEW.seq <> OLD.seq + 1
BEGIN SELECT RAISE(ABORT, 'the head of the chain moves one event at a time'); END;

CREATE TRIGGER chain_head_stays BEFORE DELETE ON chain_head
BEGIN SELECT RAISE(ABORT, 'the head of the chain is never removed'); END;

CREATE TRIGGER events_follow_the_head BEFORE INSERT ON events
WHEN NOT EXISTS (SELECT 1 FROM chain_head WHERE seq + 1 = NEW.seq AND hash = NEW.prev)
BEGIN SELECT RAISE(ABORT, 'an event is appended after the head of the chain'); END;

CREATE TRIGGER events_move_the_head AFTER INSERT ON events
BEGIN UPDATE chain_head SET seq = NEW.seq, hash = NEW.hash WHERE id = 1; END;

CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'an event is never changed'); END;

CREATE TRIGGER events_are_never_removed BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'an event is never removed'); END;
