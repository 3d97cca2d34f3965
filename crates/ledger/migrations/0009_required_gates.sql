-- The program that asks the gates decides which of them a skill has to pass. A verification names them in its row when it begins, and a
-- gate has any name, so a new gate needs no migration.

DROP TRIGGER verifications_pass_by_their_gates;
DROP TRIGGER verifications_end_once;

ALTER TABLE verifications ADD COLUMN required_gates TEXT NOT NULL DEFAULT '[]'; -- canonical JSON: a list of names

-- Older verifications had to pass these five.
UPDATE verifications SET required_gates = '["ruff","mypy","pytest","policy","invariants"]';

CREATE TABLE named_gate_results (
    verification_id INTEGER NOT NULL REFERENCES verifications (id),
    gate            TEXT NOT NULL CHECK (gate <> ''),
    passed          INTEGER NOT NULL CHECK (passed IN (0, 1)),
    duration_ms     INTEGER NOT NULL CHECK (duration_ms >= 0),
    findings        TEXT NOT NULL,                                 -- canonical JSON: a list of findings
    log             TEXT REFERENCES artifacts (digest),
    PRIMARY KEY (verification_id, gate)
) STRICT, WITHOUT ROWID;

INSERT INTO named_gate_results SELECT verification_id, gate, passed, duration_ms, findings, log FROM gate_results;
DROP TABLE gate_results;
ALTER TABLE named_gate_results RENAME TO gate_results;

CREATE TRIGGER gate_results_come_while_it_runs BEFORE INSERT ON gate_results
WHEN EXISTS (SELECT 1 FROM gate_results WHERE verification_id = NEW.verification_id AND gate = NEW.gate)
  OR NOT EXISTS (SELECT 1 FROM verifications WHERE id = NEW.verification_id AND status = 'RUNNING')
BEGIN SELECT RAISE(ABORT, 'a gate is recorded once, while its verification runs'); END;

CREATE TRIGGER gate_results_are_never_changed BEFORE UPDATE ON gate_results
BEGIN SELECT RAISE(ABORT, 'the record of a gate is never changed'); END;

CREATE TRIGGER gate_results_are_never_removed BEFORE DELETE ON gate_results
BEGIN SELECT RAISE(ABORT, 'the record of a gate is never removed'); END;

CREATE TRIGGER verifications_begin_with_their_gates BEFORE INSERT ON verifications
WHEN NEW.status <> 'RUNNING' OR json_array_length(NEW.required_gates) = 0
BEGIN SELECT RAISE(ABORT, 'a verification begins by naming the gates it has to pass'); END;

CREATE TRIGGER verifications_end_once BEFORE UPDATE ON verifications
WHEN OLD.status <> 'RUNNING' OR NEW.id <> OLD.id OR NEW.proposal_id <> OLD.proposal_id OR NEW.build_id <> OLD.build_id
  OR NEW.level <> OLD.level OR NEW.skill_digest <> OLD.skill_digest OR NEW.test_digest <> OLD.test_digest
  OR NEW.required_gates <> OLD.required_gates
BEGIN SELECT RAISE(ABORT, 'a verification ends once, and stays what it was'); END;

CREATE TRIGGER verifications_pass_by_their_gates BEFORE UPDATE ON verifications
WHEN NEW.status = 'PASSED'
 AND (json_array_length(NEW.required_gates) = 0
   OR EXISTS (SELECT 1 FROM json_each(NEW.required_gates) AS required WHERE NOT EXISTS (
        SELECT 1 FROM gate_results WHERE verification_id = NEW.id AND gate = required.value AND passed = 1))
   OR EXISTS (SELECT 1 FROM gate_results WHERE verification_id = NEW.id AND passed = 0))
BEGIN SELECT RAISE(ABORT, 'a verification passes where each of its gates passed'); END;

INSERT INTO schema_version (version, migration) VALUES (9, '0009_required_gates');
