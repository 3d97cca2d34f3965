-- What a crawl remembers: its session, the artifacts it handed out, the messages of its debate, and GitHub's answers for a
-- quarter of an hour. Rows of sessions change while a crawl goes on; the events of the run `crawl-<id>` tell the same
-- story for good, and hold artifacts and messages by digest. Every instant is RFC 3339 in UTC with milliseconds, of the
-- clock of the command; in this form text and time have one order.

CREATE TABLE crawl_sessions (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id      INTEGER,                          -- the session that this crawl is a part of, where there is one
    started_at      TEXT    NOT NULL,
    ended_at        TEXT,
    query           TEXT,
    selected_repo   TEXT,                             -- owner/repo
    selected_ref    TEXT,
    build_system    TEXT,
    debate_rounds   INTEGER NOT NULL DEFAULT 0 CHECK (debate_rounds >= 0),
    plan_hash       TEXT CHECK (length(plan_hash) = 12),
    prompt_hash     TEXT CHECK (length(prompt_hash) = 12),
    phase_summary   TEXT CHECK (length(phase_summary) <= 1000), -- what the synthesis saw of the debate
    status          TEXT    NOT NULL DEFAULT 'active'
                    CHECK (status IN ('active', 'completed', 'failed', 'aborted')),
    export_path     TEXT,                             -- absolute
    config_snapshot TEXT,                             -- JSON, free of secrets
    CHECK ((status = 'active') = (ended_at IS NULL))
) STRICT;

CREATE INDEX idx_crawl_sessions_repo ON crawl_sessions (selected_repo);
CREATE INDEX idx_crawl_sessions_status ON crawl_sessions (status);

CREATE TABLE crawl_artifacts (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    crawl_session_id INTEGER NOT NULL REFERENCES crawl_sessions (id),
    created_at       TEXT    NOT NULL,
    artifact_type    TEXT    NOT NULL
                     CHECK (artifact_type IN ('search', 'inspect', 'plan', 'recipe', 'manifest')),
    schema_version   TEXT    NOT NULL,
    content_hash     TEXT    NOT NULL CHECK (length(content_hash) = 12),
    content          TEXT    NOT NULL,                -- canonical JSON
    digest           TEXT    NOT NULL REFERENCES artifacts (digest), -- the same bytes, as the chain knows them
    export_filename  TEXT                             -- absent until it is exported
) STRICT;

CREATE INDEX idx_crawl_artifacts_session ON crawl_artifacts (crawl_session_id);
CREATE INDEX idx_crawl_artifacts_type ON crawl_artifacts (artifact_type);

-- The messages of a debate. What was said is an artifact of the chain; a row tells who said it, when and where to find it.
CREATE TABLE crawl_messages (
    crawl_session_id INTEGER NOT NULL REFERENCES crawl_sessions (id),
    seq              INTEGER NOT NULL CHECK (seq >= 1), -- counts within the session
    phase            TEXT    NOT NULL,
    round            INTEGER NOT NULL CHECK (round >= 0),
    owner            TEXT    NOT NULL,
    provider         TEXT    NOT NULL,
    model            TEXT    NOT NULL,                -- empty where none answered
    digest           TEXT    NOT NULL REFERENCES artifacts (digest),
    created_at       TEXT    NOT NULL,
    PRIMARY KEY (crawl_session_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE crawl_cache (
    cache_key  TEXT PRIMARY KEY,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    content    TEXT NOT NULL
) STRICT;
