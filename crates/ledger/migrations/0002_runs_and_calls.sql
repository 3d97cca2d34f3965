-- Working tables: what `run list` shows, and what the budget of a resumed run starts from. Their rows
-- change while a run goes on, so they are not part of the chain; the events tell the same story for good.

CREATE TABLE runs (
    id      TEXT PRIMARY KEY,
    goal    TEXT NOT NULL,
    repo    TEXT NOT NULL,
    state   TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL
) STRICT;

CREATE INDEX runs_by_age ON runs (created);

CREATE TABLE model_calls (
    run_id          TEXT    NOT NULL,
    seq             INTEGER NOT NULL CHECK (seq >= 1), -- counts within the run
    provider        TEXT    NOT NULL,
    model           TEXT    NOT NULL,
    request         TEXT    NOT NULL CHECK (length(request) = 64),
    attempt         INTEGER NOT NULL CHECK (attempt >= 1),
    state           TEXT    NOT NULL CHECK (state IN ('reserved', 'settled')),
    reserved_at     TEXT    NOT NULL,
    reserved_tokens INTEGER NOT NULL CHECK (reserved_tokens >= 0),
    reserved_cost   INTEGER NOT NULL CHECK (reserved_cost >= 0), -- millionths of a dollar
    settled_at      TEXT,
    outcome         TEXT,
    tokens_in       INTEGER CHECK (tokens_in >= 0),
    tokens_out      INTEGER CHECK (tokens_out >= 0),
    cost            INTEGER CHECK (cost >= 0),                   -- millionths of a dollar
    PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;
