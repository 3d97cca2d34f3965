-- Skills: proposals, builds, verifications with their gates, promotions, artifacts and runs. Rows change while a skill is
-- built; the events of the run `skill-<name>-<digest>` tell the same story for good. What trust rests on, a promotion, is written
-- once and names its event, so that a reader can compare both.

CREATE TABLE skill_proposals (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    project           TEXT NOT NULL CHECK (length(project) = 64),  -- the digest of the project's path
    name              TEXT NOT NULL,
    description       TEXT NOT NULL,
    io_schema         TEXT NOT NULL,                               -- canonical JSON
    side_effect_class TEXT NOT NULL CHECK (side_effect_class IN
                      ('READ_ONLY', 'FILE_WRITE', 'NETWORK', 'SECRET_READ', 'MONEY', 'MESSAGING')),
    grants            TEXT NOT NULL,                               -- canonical JSON: what the class is narrowed to
    status            TEXT NOT NULL DEFAULT 'PROPOSED'
                      CHECK (status IN ('PROPOSED', 'BUILT', 'VERIFIED', 'TRUSTED')),
    created_at        TEXT NOT NULL,
    updated_at        TEXT NOT NULL,
    UNIQUE (project, name)
) STRICT;

CREATE TABLE builds (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    proposal_id     INTEGER NOT NULL REFERENCES skill_proposals (id),
    attempt_number  INTEGER NOT NULL CHECK (attempt_number >= 1),
    parent_build_id INTEGER REFERENCES builds (id),
    agent           TEXT NOT NULL,                                 -- who wrote: a command line or a model
    status          TEXT NOT NULL DEFAULT 'RUNNING'
                    CHECK (status IN ('RUNNING', 'SUCCEEDED', 'FAILED', 'ABORTED')),
    failure         TEXT,                                          -- canonical JSON: the kind and the findings
    skill_digest    TEXT CHECK (length(skill_digest) = 64),
    test_digest     TEXT CHECK (length(test_digest) = 64),
    started_at      TEXT NOT NULL,
    ended_at        TEXT,
    UNIQUE (proposal_id, attempt_number),
    CHECK ((status = 'RUNNING') = (ended_at IS NULL)),
    CHECK ((status = 'SUCCEEDED') = (skill_digest IS NOT NULL AND test_digest IS NOT NULL))
) STRICT;

CREATE TABLE verifications (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    proposal_id  INTEGER NOT NULL REFERENCES skill_proposals (id),
    build_id     INTEGER NOT NULL REFERENCES builds (id),
    level        TEXT NOT NULL CHECK (level IN ('skill', 'full')),
    status       TEXT NOT NULL DEFAULT 'RUNNING'
                 CHECK (status IN ('RUNNING', 'PASSED', 'FAILED', 'ABORTED')),
    skill_digest TEXT NOT NULL CHECK (length(skill_digest) = 64),  -- taken when the gates began
    test_digest  TEXT NOT NULL CHECK (length(test_digest) = 64),
    started_at   TEXT NOT NULL,
    ended_at     TEXT,
    CHECK ((status = 'RUNNING') = (ended_at IS NULL))
) STRICT;

CREATE INDEX verifications_by_proposal ON verifications (proposal_id, id);

-- What was verified never becomes something else, and nothing is said of a verification after its end.
CREATE TRIGGER verifications_end_once BEFORE UPDATE ON verifications
WHEN OLD.status <> 'RUNNING' OR NEW.id <> OLD.id OR NEW.proposal_id <> OLD.proposal_id OR NEW.build_id <> OLD.build_id
  OR NEW.level <> OLD.level OR NEW.skill_digest <> OLD.skill_digest OR NEW.test_digest <> OLD.test_digest
BEGIN SELECT RAISE(ABORT, 'a verification ends once, and stays what it was'); END;

CREATE TRIGGER verifications_are_never_removed BEFORE DELETE ON verifications
BEGIN SELECT RAISE(ABORT, 'a verification is never removed'); END;

CREATE TABLE gate_results (
    verification_id INTEGER NOT NULL REFERENCES verifications (id),
    gate            TEXT NOT NULL CHECK (gate IN ('ruff', 'mypy', 'pytest', 'policy', 'invariants', 'examples')),
    passed          INTEGER NOT NULL CHECK (passed IN (0, 1)),
    duration_ms     INTEGER NOT NULL CHECK (duration_ms >= 0),
    findings        TEXT NOT NULL,                                 -- canonical JSON: a list of findings
    log             TEXT REFERENCES artifacts (digest),
    PRIMARY KEY (verification_id, gate)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER gate_results_come_while_it_runs BEFORE INSERT ON gate_results
WHEN EXISTS (SELECT 1 FROM gate_results WHERE verification_id = NEW.verification_id AND gate = NEW.gate)
  OR NOT EXISTS (SELECT 1 FROM verifications WHERE id = NEW.verification_id AND status = 'RUNNING')
BEGIN SELECT RAISE(ABORT, 'a gate is recorded once, while its verification runs'); END;

CREATE TRIGGER gate_results_are_never_changed BEFORE UPDATE ON gate_results
BEGIN SELECT RAISE(ABORT, 'the record of a gate is never changed'); END;

CREATE TRIGGER gate_results_are_never_removed BEFORE DELETE ON gate_results
BEGIN SELECT RAISE(ABORT, 'the record of a gate is never removed'); END;

-- Passed is what passed the five gates, and the sixth where it was asked.
CREATE TRIGGER verifications_pass_by_their_gates BEFORE UPDATE ON verifications
WHEN NEW.status = 'PASSED'
 AND ((SELECT count(*) FROM gate_results WHERE verification_id = NEW.id AND passed = 1
       AND gate IN ('ruff', 'mypy', 'pytest', 'policy', 'invariants')) <> 5
   OR EXISTS (SELECT 1 FROM gate_results WHERE verification_id = NEW.id AND passed = 0))
BEGIN SELECT RAISE(ABORT, 'a verification passes where each of its gates passed'); END;

CREATE TABLE promotions (
    event_seq       INTEGER PRIMARY KEY REFERENCES events (seq),
    proposal_id     INTEGER NOT NULL REFERENCES skill_proposals (id),
    verification_id INTEGER REFERENCES verifications (id),         -- absent where trust is taken away
    from_status     TEXT NOT NULL CHECK (from_status IN ('PROPOSED', 'BUILT', 'VERIFIED', 'TRUSTED')),
    to_status       TEXT NOT NULL CHECK (to_status IN ('PROPOSED', 'BUILT', 'VERIFIED', 'TRUSTED')),
    approved_by     TEXT NOT NULL,
    reason          TEXT NOT NULL,
    skill_digest    TEXT NOT NULL CHECK (length(skill_digest) = 64),
    test_digest     TEXT NOT NULL CHECK (length(test_digest) = 64),
    at              TEXT NOT NULL,
    CHECK ((to_status = 'TRUSTED') = (verification_id IS NOT NULL)),
    CHECK ((to_status = 'TRUSTED') = (from_status = 'VERIFIED')),
    CHECK ((to_status = 'TRUSTED') <> (from_status = 'TRUSTED'))
) STRICT;

CREATE INDEX promotions_by_proposal ON promotions (proposal_id, event_seq);

-- By which a reader finds the newest promotion that the chain tells of, so that a row that is gone is missed.
CREATE INDEX skill_promotions_told ON events (run_id, seq) WHERE event = 'SKILL_PROMOTED';

CREATE TRIGGER promotions_rest_on_the_newest_verification BEFORE INSERT ON promotions
WHEN NEW.to_status = 'TRUSTED' AND NOT EXISTS (
    SELECT 1 FROM verifications v
    WHERE v.id = NEW.verification_id AND v.proposal_id = NEW.proposal_id AND v.status = 'PASSED'
      AND v.skill_digest = NEW.skill_digest AND v.test_digest = NEW.test_digest
      AND v.id = (SELECT max(id) FROM verifications WHERE proposal_id = NEW.proposal_id)
      AND v.build_id = (SELECT max(id) FROM builds WHERE proposal_id = NEW.proposal_id))
BEGIN SELECT RAISE(ABORT, 'a promotion rests on the newest verification, which passed with these bytes'); END;

CREATE TRIGGER promotions_are_never_replaced BEFORE INSERT ON promotions
WHEN EXISTS (SELECT 1 FROM promotions WHERE event_seq = NEW.event_seq)
BEGIN SELECT RAISE(ABORT, 'the record of a promotion is never replaced'); END;

CREATE TRIGGER promotions_are_never_changed BEFORE UPDATE ON promotions
BEGIN SELECT RAISE(ABORT, 'the record of a promotion is never changed'); END;

CREATE TRIGGER promotions_are_never_removed BEFORE DELETE ON promotions
BEGIN SELECT RAISE(ABORT, 'the record of a promotion is never removed'); END;

CREATE TABLE skill_artifacts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    proposal_id INTEGER NOT NULL REFERENCES skill_proposals (id),
    build_id    INTEGER REFERENCES builds (id),
    kind        TEXT NOT NULL CHECK (kind IN ('SKILL_SPEC', 'BUILD_PACKET', 'BUILD_LOG', 'VERIFICATION_REPORT',
                                              'RESEARCH_NOTE', 'PATCH_SUMMARY', 'NOTE')),
    digest      TEXT NOT NULL REFERENCES artifacts (digest),
    created_at  TEXT NOT NULL
) STRICT;

CREATE INDEX skill_artifacts_by_proposal ON skill_artifacts (proposal_id, kind, id);

CREATE TABLE skill_runs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    proposal_id  INTEGER NOT NULL REFERENCES skill_proposals (id),
    promotion    INTEGER REFERENCES promotions (event_seq),        -- that it was run by; absent where none was known
    skill_digest TEXT NOT NULL CHECK (length(skill_digest) = 64),  -- of the bytes that ran, or would have
    outcome      TEXT NOT NULL CHECK (outcome IN ('SUCCEEDED', 'FAILED', 'DENIED', 'REFUSED')),
    findings     TEXT NOT NULL,                                    -- canonical JSON: a list of findings
    duration_ms  INTEGER NOT NULL CHECK (duration_ms >= 0),
    at           TEXT NOT NULL
) STRICT;

CREATE INDEX skill_runs_by_proposal ON skill_runs (proposal_id, id);

CREATE TRIGGER skill_runs_are_of_what_was_promoted BEFORE INSERT ON skill_runs
WHEN NEW.promotion IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM promotions p
    WHERE p.event_seq = NEW.promotion AND p.proposal_id = NEW.proposal_id AND p.to_status = 'TRUSTED'
      AND (p.skill_digest = NEW.skill_digest OR NEW.outcome = 'REFUSED'))
BEGIN SELECT RAISE(ABORT, 'a run is one of the bytes that were promoted'); END;

CREATE TRIGGER skill_runs_are_never_changed BEFORE UPDATE ON skill_runs
BEGIN SELECT RAISE(ABORT, 'the record of a run is never changed'); END;

CREATE TRIGGER skill_runs_are_never_removed BEFORE DELETE ON skill_runs
BEGIN SELECT RAISE(ABORT, 'the record of a run is never removed'); END;
