//! Signed statements: what a landing signs, what a policy admits, and the door of a bare repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crucible_testkit::TestRepo;
use serde_json::Value;

use crate::support::{Call, Fixture, answering, good_answer, id_of, small};

/// A fixture with a signing key, a repository, and the policy that names the key.
pub(crate) struct Team {
    pub(crate) fixture: Fixture,
    pub(crate) repo: TestRepo,
    _server: crucible_testkit::FakeOpenAi,
}

impl Team {
    pub(crate) fn new() -> Self {
        let (repo, server) = (small().build(), answering(good_answer()));
        let fixture = Fixture::with(&server);
        fixture.run(["attest", "init"]).ok();
        let team = Self {
            fixture,
            repo,
            _server: server,
        };
        team.write_policy("");
        team
    }

    pub(crate) fn key(&self) -> String {
        let document = self.fixture.run(["attest", "key", "--json"]).ok().json();
        document["key"].as_str().unwrap().to_owned()
    }

    pub(crate) fn policy(&self) -> PathBuf {
        self.fixture.path("attest.toml")
    }

    pub(crate) fn write_policy(&self, more: &str) {
        let text = format!(
            "version = 1\n[[signers]]\nname = \"ada\"\nkey = \"{}\"\n{more}",
            self.key()
        );
        std::fs::write(self.policy(), text).unwrap();
    }

    pub(crate) fn land(&self) -> String {
        let id = id_of(&self.fixture.start(self.repo.path()).ok().json());
        let landed = self.fixture.run(["run", "land", &id, "--json"]).ok().json();
        landed["commit"].as_str().unwrap().to_owned()
    }

    fn attest(&self, words: &[&str]) -> Call {
        let call = self
            .fixture
            .call(["attest"].iter().chain(words))
            .arg("--policy")
            .arg(self.policy());
        call.current_dir(self.repo.path())
    }

    fn verify(&self, named: &str) -> Value {
        let ran = self.attest(&["verify", named, "--json"]).run();
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
        ran.json()
    }

    pub(crate) fn note(&self, commit: &str) -> String {
        self.repo.git(["notes", "--ref=crucible", "show", commit])
    }

    /// Replaces the note of a commit.
    pub(crate) fn set_note(&self, commit: &str, note: &[u8]) {
        let file = self.fixture.path("note");
        std::fs::write(&file, note).unwrap();
        let blob = self
            .repo
            .git(["hash-object", "-w", "--no-filters", file.to_str().unwrap()]);
        self.repo.git([
            "notes",
            "--ref=crucible",
            "add",
            "--force",
            "-C",
            &blob,
            commit,
        ]);
    }
}

fn codes(judged: &Value) -> Vec<&str> {
    let findings = judged["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect()
}

#[test]
fn landed_commit_is_signed_and_verified() {
    let team = Team::new();
    let commit = team.land();
    let judged = team.verify("HEAD");
    assert_eq!(judged["verdict"], "pass", "{judged:#}");
    assert_eq!(judged["commits"][0]["commit"], commit.as_str());
    assert_eq!(judged["commits"][0]["name"], "ada");
    assert_eq!(team.note(&commit).lines().count(), 3);
    // Landing again changes nothing.
    let notes = team.repo.git(["rev-parse", "refs/notes/crucible"]);
    team.fixture.run(["run", "land"]).exits(2);
    team.fixture
        .call(["run", "land"])
        .current_dir(team.repo.path())
        .run()
        .ok();
    assert_eq!(team.repo.git(["rev-parse", "refs/notes/crucible"]), notes);
    // The commit before has no statement.
    assert_eq!(codes(&team.verify("HEAD^")), ["attest-missing"]);
    team.repo
        .git(["notes", "--ref=crucible", "remove", &commit]);
    assert_eq!(codes(&team.verify("HEAD")), ["attest-missing"]);
    // The note comes back from the run.
    team.fixture
        .call(["run", "land"])
        .current_dir(team.repo.path())
        .run()
        .ok();
    assert_eq!(team.verify("HEAD")["verdict"], "pass");
}

/// What a signature of a statement covers, and the signature as text.
pub(crate) fn signed_message(line: &str) -> (Vec<u8>, String) {
    use crucible_attest::{Bundle, PAYLOAD_TYPE, pre_authentication_encoding};
    let bundle: Bundle = serde_json::from_str(line).unwrap();
    let payload = bundle.envelope.payload().unwrap();
    let signature = bundle.envelope.signatures[0].sig.clone();
    (
        pre_authentication_encoding(PAYLOAD_TYPE, &payload),
        format!("-----BEGIN SSH SIGNATURE-----\n{signature}\n-----END SSH SIGNATURE-----\n"),
    )
}

/// Whether `ssh-keygen -Y verify` accepts a signature of a message in a namespace.
pub(crate) fn ssh_keygen_accepts(
    team: &Team,
    namespace: &str,
    message: &[u8],
    armor: &str,
) -> bool {
    let place = |name: &str| team.fixture.path(name);
    std::fs::write(place("sig"), armor).unwrap();
    std::fs::write(place("signers"), format!("ada {}\n", team.key())).unwrap();
    let mut child = Command::new("ssh-keygen")
        .args(["-Y", "verify", "-I", "ada", "-n", namespace, "-f"])
        .arg(place("signers"))
        .arg("-s")
        .arg(place("sig"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), message).unwrap();
    child.wait().unwrap().success()
}

/// Whether the crate `ssh-key` accepts a signature of a message in a namespace.
pub(crate) fn library_accepts(key: &str, namespace: &str, message: &[u8], armor: &str) -> bool {
    let key = ssh_key::PublicKey::from_openssh(key).unwrap();
    // The library reads lines of OpenSSH's length.
    let signature = crucible_attest::SshSignature::from_armor(armor).unwrap();
    let signature = ssh_key::SshSig::from_pem(signature.to_armor()).unwrap();
    key.verify(namespace, message, &signature).is_ok()
}

#[test]
fn other_programs_verify_the_statements() {
    let team = Team::new();
    let commit = team.land();
    let note = team.note(&commit);
    assert_eq!(note.lines().count(), 3);
    for line in note.lines() {
        let (message, armor) = signed_message(line);
        let key = team.key();
        assert!(String::from_utf8_lossy(&message).contains(&commit));
        for (namespace, message, is_valid) in [
            ("crucible-attestation", message.as_slice(), true),
            // A statement's signature does not sign a commit.
            ("git", &message, false),
            ("crucible-attestation", &message[1..], false),
        ] {
            let accepted = ssh_keygen_accepts(&team, namespace, message, &armor);
            assert_eq!(accepted, is_valid, "{namespace}");
            assert_eq!(
                library_accepts(&key, namespace, message, &armor),
                is_valid,
                "{namespace}"
            );
        }
    }
}

/// Whether `git verify-commit` accepts a commit.
pub(crate) fn git_accepts(team: &Team, commit: &str) -> bool {
    let signers = team.fixture.path("signers");
    std::fs::write(&signers, format!("ada@example.invalid {}\n", team.key())).unwrap();
    let setting = format!("gpg.ssh.allowedSignersFile={}", signers.display());
    let words = ["-c", "gpg.format=ssh", "-c", &setting, "verify-commit"];
    Command::new("git")
        .args(words)
        .arg(commit)
        .current_dir(team.repo.path())
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// Two signatures by an ECDSA key differ, so the commit must be made with the one that was recorded.
#[test]
fn commits_are_signed_on_request() {
    let team = Team::new();
    let key = team.fixture.path("p256");
    let exit_status = Command::new("ssh-keygen")
        .args(["-q", "-t", "ecdsa", "-b", "256", "-N", "", "-f"])
        .arg(&key)
        .status();
    assert!(exit_status.unwrap().success());
    let unsigned = team.land();
    assert!(!git_accepts(&team, &unsigned));
    team.repo.git(["reset", "--quiet", "--hard", "HEAD^"]);
    team.fixture
        .user_config(&format!("[attest]\nkey = {key:?}\nsign_commits = true\n"));
    team.write_policy("");
    let id = id_of(&team.fixture.start(team.repo.path()).ok().json());
    let landed = team.fixture.run(["run", "land", &id, "--json"]).ok().json();
    let commit = landed["commit"].as_str().unwrap().to_owned();
    assert_ne!(commit, unsigned);
    assert!(git_accepts(&team, &commit));
    let judged = team.verify("HEAD");
    assert_eq!(judged["verdict"], "pass", "{judged:#}");
    assert_eq!(judged["commits"][0]["by"], "statement");
    team.fixture.run(["run", "verify-record", &id]).ok();
    // The signature of a statement in the place of that of the commit.
    let (_, armor) = signed_message(team.note(&commit).lines().next().unwrap());
    let text = team.repo.git(["cat-file", "commit", &commit]);
    let (head, rest) = text.split_once("gpgsig ").unwrap();
    let (_, rest) = rest.split_once("-----END SSH SIGNATURE-----").unwrap();
    let forged = format!(
        "{head}gpgsig {}{rest}\n",
        armor.trim_end().replace('\n', "\n ")
    );
    let file = team.fixture.path("forged");
    std::fs::write(&file, forged).unwrap();
    let words = ["hash-object", "-t", "commit", "-w", file.to_str().unwrap()];
    let forged = team.repo.git(words);
    assert!(!git_accepts(&team, &forged));
    std::fs::write(
        team.policy(),
        format!(
            "version = 1\n[[people]]\nname = \"ada\"\nkey = \"{}\"\n",
            team.key()
        ),
    )
    .unwrap();
    assert_eq!(team.verify(&commit)["commits"][0]["by"], "person");
    assert_eq!(codes(&team.verify(&forged)), ["attest-missing"]);
}

#[test]
fn unsigned_commit_does_not_land_where_signatures_are_wanted() {
    let team = Team::new();
    let base = team.repo.head();
    let id = id_of(&team.fixture.start(team.repo.path()).ok().json());
    let key = team.fixture.data().join("attest/signing_key");
    let hidden = std::fs::read(&key).unwrap();
    std::fs::write(&key, "damaged\n").unwrap();
    let land = || {
        let call = team.fixture.call(["run", "land", &id]);
        call.env("CRUCIBLE_ATTEST_SIGN_COMMITS", "true").run()
    };
    let ran = land().exits(1);
    assert!(
        ran.stderr.contains("a signature is required"),
        "{}",
        ran.stderr
    );
    assert_eq!(team.repo.head(), base);
    std::fs::write(&key, hidden).unwrap();
    land().ok();
    assert!(git_accepts(&team, "HEAD"));
}

/// git takes a tag before a branch, and a ref before an object. A verdict about the wrong one would look right.
#[test]
fn ambiguous_names_are_usage_errors() {
    let team = Team::new();
    let landed = team.land();
    let first = team.repo.git(["rev-parse", "HEAD^"]);
    let refused = |named: &str| team.attest(&["verify", named]).run().exits(2).stderr;
    team.repo.git(["tag", "main", &first]);
    for named in ["main", "main^..HEAD", "HEAD^..main"] {
        let message = refused(named);
        assert!(
            message.contains("is ambiguous") && message.contains("refs/heads/main"),
            "{named}: {message}"
        );
    }
    assert_eq!(team.verify("refs/heads/main")["verdict"], "pass");
    assert_eq!(codes(&team.verify("refs/tags/main")), ["attest-missing"]);
    // A branch that is named like the beginning of an object's name.
    let short = &landed[..8];
    assert_eq!(team.verify(short)["verdict"], "pass");
    team.repo.git(["branch", short, &first]);
    assert!(refused(short).contains("is ambiguous"));
    // A branch that is named like the whole of it never means anything.
    team.repo
        .git(["update-ref", &format!("refs/heads/{landed}"), &first]);
    assert_eq!(team.verify(&landed)["verdict"], "pass");
    for named in ["nothing", "nothing..HEAD", ""] {
        let text = refused(named);
        assert!(text.contains("does not name a commit"), "{named}: {text}");
    }
}

#[test]
fn file_and_revision_of_one_name_are_ambiguous() {
    let team = Team::new();
    team.land();
    team.repo.git(["branch", "x.json", "HEAD^"]);
    // No file yet: it is the branch.
    assert_eq!(codes(&team.verify("x.json")), ["attest-missing"]);
    for out in ["x.json", "bundle"] {
        let call = team.fixture.call(["attest", "export", "--out", out]);
        call.current_dir(team.repo.path()).run().ok();
    }
    let message = team.attest(&["verify", "x.json"]).run().exits(2).stderr;
    assert!(
        message.contains("it is a file and a revision") && message.contains("./x.json"),
        "{message}"
    );
    // A path is a file, whatever its ending.
    for file in ["./x.json", "./bundle"] {
        let judged = team.verify(file);
        assert_eq!(judged["commits"][0]["statement_valid"], true, "{judged:#}");
    }
    assert_eq!(codes(&team.verify("refs/heads/x.json")), ["attest-missing"]);
}

#[test]
fn policy_decides_what_is_admitted() {
    let team = Team::new();
    team.land();
    for (more, expected) in [
        (
            "[require]\ngates = [\"tests\"]\nmodels = [\"gateway/*\"]\nmax_age_days = 1\n",
            &[][..],
        ),
        (
            "[require]\ngates = [\"tests\", \"lint\"]\n",
            &["attest-gate-missing"][..],
        ),
        (
            "[require]\nmodels = [\"anthropic/*\"]\n",
            &["attest-model-denied"],
        ),
        ("[require]\nmin_strength = 0.5\n", &["attest-strength-low"]),
        (
            "[require]\nbroken_change = true\n",
            &["attest-broken-change-unchecked"],
        ),
        ("valid_until = 2020-01-01T00:00:00Z\n", &["policy"]),
    ] {
        team.write_policy(more);
        if expected == ["policy"] {
            // Times are texts.
            team.attest(&["verify", "HEAD"]).run().exits(2);
            team.write_policy("valid_until = \"2020-01-01T00:00:00Z\"\n");
            assert_eq!(codes(&team.verify("HEAD")), ["attest-key-not-valid"]);
            continue;
        }
        assert_eq!(codes(&team.verify("HEAD")), expected, "{more}");
    }
    // Another key of the same name is another signer.
    let other = Fixture::new();
    other.run(["attest", "init"]).ok();
    let key = other.run(["attest", "key", "--json"]).ok().json();
    let text = format!(
        "version = 1\n[[signers]]\nname = \"ada\"\nkey = {}\n",
        key["key"]
    );
    std::fs::write(team.policy(), text).unwrap();
    assert_eq!(codes(&team.verify("HEAD")), ["attest-signer-unknown"]);
}

#[test]
fn range_and_exported_file_are_judged() {
    let team = Team::new();
    team.land();
    assert_eq!(team.verify("HEAD^..HEAD")["verdict"], "pass");
    assert_eq!(codes(&team.verify("HEAD..HEAD")), ["attest-no-commits"]);
    let file = team.fixture.path("bundle.jsonl");
    let export = |words: &[&str]| {
        team.fixture
            .call(["attest", "export"].iter().chain(words))
            .arg("--out")
            .arg(&file)
            .current_dir(team.repo.path())
            .run()
    };
    export(&[]).ok();
    let judged = team.verify(file.to_str().unwrap());
    assert_eq!(judged["verdict"], "pass", "{judged:#}");
    assert_eq!(
        judged["commits"][0]["admitted"], false,
        "a file alone admits no commit"
    );
    export(&["--statement", "change"]).ok();
    assert_eq!(
        codes(&team.verify(file.to_str().unwrap())),
        ["attest-note-incomplete"]
    );
    std::fs::write(&file, "{}\n".repeat(1 << 20)).unwrap();
    assert_eq!(
        codes(&team.verify(file.to_str().unwrap())),
        ["attest-note-too-large"]
    );
    export(&["HEAD^"]).exits(1);
    let sarif = team
        .attest(&["verify", "HEAD^", "--format", "sarif"])
        .run()
        .exits(1)
        .json();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "attest-missing");
    let schema = include_str!("../../../../docs/schemas/gate-sarif.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let problem = schema
        .iter_errors(&sarif)
        .next()
        .map(|error| error.to_string());
    assert_eq!(problem, None);
}

#[test]
fn door_runs_the_gates_of_the_policy() {
    let team = Team::new();
    let server = bare(&team, "pre-receive");
    team.land();
    let gate = |command: &str| {
        format!("[[door.rerun_gates]]\nid = \"tests\"\ncommand = {command}\ntimeout_s = 60\n")
    };
    // What was pushed does not decide which command runs.
    for (command, expected) in [
        ("[\"sh\", \"-c\", \"exit 3\"]", Some("exit code 3")),
        ("[\"no-such-program\"]", Some("it could not run")),
        (
            "[\"python3\", \"-m\", \"compileall\", \"-q\", \"src\"]",
            None,
        ),
    ] {
        team.write_policy(&gate(command));
        let (accepted, message) = push(team.repo.path(), &server, &["main", "refs/notes/crucible"]);
        assert_eq!(accepted, expected.is_none(), "{command}: {message}");
        if let Some(expected) = expected {
            assert!(
                message.contains("attest-gate-failed") && message.contains(expected),
                "{message}"
            );
        }
    }
    // A push that is refused anyway runs no gate.
    team.write_policy(&gate("[\"sh\", \"-c\", \"exit 3\"]"));
    team.repo.write("smuggled", "text\n");
    team.repo.commit("By hand");
    let (accepted, report) = push(team.repo.path(), &server, &["main"]);
    assert!(
        !accepted && report.contains("attest-missing") && !report.contains("attest-gate-failed"),
        "{report}"
    );
}

#[test]
fn policy_requires_that_two_people_approve() {
    let team = Team::new();
    let bob = Fixture::new();
    bob.run(["attest", "init"]).ok();
    let key = bob.run(["attest", "key", "--json"]).ok().json();
    let people = format!(
        "[[approvers]]\nname = \"ada\"\nkey = \"{}\"\n[[approvers]]\nname = \"bob\"\nkey = \"{}\"\n\
         [require]\napprovals = 2\n",
        team.key(),
        key["key"].as_str().unwrap()
    );
    team.write_policy(&people);
    let id = id_of(&team.fixture.start(team.repo.path()).ok().json());
    let approve = |more: &[&str]| team.fixture.call(["approve", &id].iter().chain(more)).run();
    // The same person twice is one person.
    assert!(approve(&[]).ok().stdout.starts_with("approved the plan"));
    approve(&[]).ok();
    let plan = team.fixture.runs().pop().unwrap().join("artifacts/PLAN.md");
    let base = team.repo.head();
    let sign = |plan: &Path, base: &str| {
        bob.call(["approve", &id, "--base", base, "--plan"])
            .arg(plan)
            .run()
    };
    // Only a signed plan can be approved.
    for (text, why) in [
        ("# Read me\n".to_owned(), "not the plan of a run"),
        (
            std::fs::read_to_string(&plan)
                .unwrap()
                .replace("Status: SIGNED", "Status: DRAFT"),
            "draft",
        ),
    ] {
        let other = team.fixture.path("README.md");
        std::fs::write(&other, text).unwrap();
        let ran = sign(&other, &base).exits(1);
        assert!(
            ran.stderr.contains(why) && ran.stderr.contains("artifacts/PLAN.md"),
            "{}",
            ran.stderr
        );
    }
    let printed = sign(&plan, &base).ok();
    let file = team.fixture.path("approval.json");
    let mut unsigned: Value = serde_json::from_str(&printed.stdout).unwrap();
    unsigned["sig"] = "AAAA".into();
    for bad in [
        unsigned.to_string(),
        printed.stdout.replace(&id, "20200101-000000-000000000000"),
        printed.stdout.replace("approval-v1", "approval-v2"),
        printed.stdout.replace(&base, &"1".repeat(40)),
        sign(&plan, &"1".repeat(40)).ok().stdout,
        "{}".to_owned(),
    ] {
        std::fs::write(&file, bad).unwrap();
        approve(&["--from", file.to_str().unwrap()]).exits(1);
    }
    let only_ada = team.fixture.data();
    let copy = team.fixture.path("before");
    copy_tree(&only_ada, &copy);
    std::fs::write(&file, &printed.stdout).unwrap();
    approve(&["--from", file.to_str().unwrap()]).ok();
    team.fixture.run(["run", "verify-record", &id]).ok();
    team.fixture.run(["run", "land", &id]).ok();
    let judged = team.verify("HEAD");
    assert_eq!(judged["verdict"], "pass", "{judged:#}");
    assert!(
        approve(&[])
            .exits(1)
            .stderr
            .contains("before the run lands")
    );
    // Without the second person, the same commit is refused.
    team.repo.git(["reset", "--quiet", "--hard", "HEAD^"]);
    team.repo.git(["update-ref", "-d", "refs/notes/crucible"]);
    std::fs::remove_dir_all(&only_ada).unwrap();
    copy_tree(&copy, &only_ada);
    team.fixture.run(["run", "land", &id]).ok();
    assert_eq!(codes(&team.verify("HEAD")), ["attest-approvals-missing"]);
}

fn copy_tree(from: &Path, to: &Path) {
    let copied = Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status()
        .unwrap();
    assert!(copied.success());
}

#[test]
fn foreign_or_damaged_note_is_one_finding() {
    let team = Team::new();
    let commit = team.land();
    let note = team.note(&commit) + "\n";
    let lines: Vec<&str> = note.split_inclusive('\n').collect();
    let swapped = [lines[1], lines[0], lines[2]].concat();
    let huge = format!("{{\"a\":\"{}\"}}\n", "x".repeat(2 << 20));
    let duplicate = note.replacen("\"payloadType\"", "\"payload\":\"\",\"payloadType\"", 1);
    for (bad, code) in [
        (
            "Reviewed-by: Eve <eve@example.invalid>\n",
            "attest-note-foreign",
        ),
        ("{\n", "attest-envelope-broken"),
        (huge.as_str(), "attest-note-too-large"),
        (duplicate.as_str(), "attest-envelope-broken"),
        (lines[0], "attest-note-incomplete"),
        (swapped.as_str(), "attest-format-unknown"),
        (&note.replace("v0.3", "v0.4"), "attest-format-unknown"),
        (
            &note.replace("vnd.in-toto", "vnd.other"),
            "attest-payload-type",
        ),
        (&format!("{note}{}", lines[0]), "attest-note-incomplete"),
        (&format!("{note}\n"), "attest-note-foreign"),
        (note.trim_end(), "attest-note-incomplete"),
        (&note.replacen(":", ": ", 1), "attest-envelope-broken"),
    ] {
        team.set_note(&commit, bad.as_bytes());
        let judged = team.verify("HEAD");
        assert_eq!(codes(&judged), [code], "{}", &bad[..bad.len().min(200)]);
        assert_eq!(judged["verdict"], "fail");
    }
    team.set_note(&commit, note.as_bytes());
    assert_eq!(team.verify("HEAD")["verdict"], "pass");
}

#[test]
fn failed_signature_stops_the_landing_where_required() {
    let team = Team::new();
    let base = team.repo.head();
    let key = team.fixture.data().join("attest/signing_key");
    let id = id_of(&team.fixture.start(team.repo.path()).ok().json());
    // A private key that does not belong to the public half.
    let hidden = std::fs::read(&key).unwrap();
    let other = Fixture::new();
    other.run(["attest", "init"]).ok();
    std::fs::copy(other.data().join("attest/signing_key"), &key).unwrap();
    let land = |required: &str| {
        team.fixture
            .call(["run", "land", &id])
            .env("CRUCIBLE_ATTEST_REQUIRED", required)
            .run()
    };
    let ran = land("true").exits(1);
    assert!(
        ran.stderr.contains("a signature is required"),
        "{}",
        ran.stderr
    );
    assert_eq!(team.repo.head(), base);
    assert_eq!(team.repo.status(), "");
    // Without a key nothing lands either.
    std::fs::rename(
        team.fixture.data().join("attest"),
        team.fixture.path("away"),
    )
    .unwrap();
    let ran = land("true").exits(2);
    assert!(
        ran.stderr.contains("there is no signing key"),
        "{}",
        ran.stderr
    );
    assert_eq!(team.repo.head(), base);
    std::fs::rename(
        team.fixture.path("away"),
        team.fixture.data().join("attest"),
    )
    .unwrap();
    std::fs::write(&key, hidden).unwrap();
    land("true").ok();
    assert_eq!(team.verify("HEAD")["verdict"], "pass");
}

/// A landing does not silently become unsigned.
#[test]
fn landing_without_the_earlier_key_is_reported() {
    let team = Team::new();
    team.land();
    team.repo.git(["reset", "--quiet", "--hard", "HEAD^"]);
    let id = id_of(&team.fixture.start(team.repo.path()).ok().json());
    let attest = team.fixture.data().join("attest");
    std::fs::remove_file(attest.join("signing_key")).unwrap();
    let ran = team.fixture.run(["run", "land", &id]).exits(2);
    assert!(
        ran.stderr.contains("there is no signing key"),
        "{}",
        ran.stderr
    );
    // Nothing is left of the key, but commits of the repository have statements.
    std::fs::remove_dir_all(&attest).unwrap();
    let ran = team.fixture.run(["run", "land", &id]).ok();
    assert!(
        ran.stderr.contains("the commit has no signed statement"),
        "{}",
        ran.stderr
    );
}

#[test]
fn unsigned_landing_is_possible_where_nothing_is_required() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    fixture.run(["run", "land", &id]).ok();
    assert_eq!(repo.git(["for-each-ref", "refs/notes"]), "");
}

#[test]
fn statement_carries_to_commit_with_same_tree() {
    let team = Team::new();
    let landed = team.land();
    team.repo.git([
        "commit",
        "--quiet",
        "--amend",
        "--message",
        "Another message",
    ]);
    let amended = team.repo.head();
    assert_eq!(codes(&team.verify("HEAD")), ["attest-missing"]);
    // A copied note is about the other commit.
    team.set_note(&amended, (team.note(&landed) + "\n").as_bytes());
    assert_eq!(codes(&team.verify("HEAD")), ["attest-subject-differs"]);
    // The note of the landed commit would be lost.
    let output = team.attest(&["carry", &landed, &landed]).run().exits(2);
    assert!(
        output.stderr.contains("is both commits"),
        "{}",
        output.stderr
    );
    team.attest(&["carry", &landed, &amended]).run().ok();
    assert_eq!(codes(&team.verify("HEAD")), ["attest-carried"]);
    team.write_policy("[admit]\ncarried = true\n");
    assert_eq!(team.verify("HEAD")["verdict"], "pass");
    let command_output = team.attest(&["carry", &amended, &landed]).run().exits(1);
    assert!(
        command_output.stderr.contains("did not land"),
        "{}",
        command_output.stderr
    );
    // Without the original, nothing shows that there was one.
    let notes = team.repo.git(["rev-parse", "refs/notes/crucible"]);
    team.repo
        .git(["notes", "--ref=crucible", "remove", &landed]);
    assert_eq!(codes(&team.verify("HEAD")), ["attest-original-differs"]);
    team.repo.git(["update-ref", "refs/notes/crucible", &notes]);
    // The same tree on another base is another change.
    let tree = team.repo.git(["rev-parse", "HEAD^{tree}"]);
    let moved = team
        .repo
        .git(["commit-tree", "-m", "Moved", "-p", "HEAD", &tree]);
    let refused = team.attest(&["carry", &landed, &moved]).run().exits(1);
    assert!(refused.stderr.contains("parents"), "{}", refused.stderr);
    // Another tree is another change.
    team.repo.write("src/area.py", "print()\n");
    team.repo.commit("Edit");
    let refused = team.attest(&["carry", &landed, "HEAD"]).run().exits(1);
    assert!(refused.stderr.contains("trees"), "{}", refused.stderr);
}

/// A bare repository whose hook is the door.
pub(crate) fn bare(team: &Team, hook: &str) -> PathBuf {
    let bare = team.fixture.path("server.git");
    let bare_text = bare.to_str().unwrap();
    team.repo
        .git(["clone", "--quiet", "--bare", ".", bare_text]);
    let words = if hook == "update" { "\"$@\"" } else { "" };
    let script = format!(
        "#!/bin/sh\nexport CRUCIBLE_HOME='{}' HOME='{}'\nexec '{}' attest door --policy '{}' {words}\n",
        team.fixture.path("server-home").display(),
        team.fixture.home().display(),
        env!("CARGO_BIN_EXE_crucible"),
        team.policy().display()
    );
    let path = bare.join("hooks").join(hook);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    bare
}

/// Pushes, and returns whether the server accepted, with what it said.
pub(crate) fn push(repo: &Path, to: &Path, refs: &[&str]) -> (bool, String) {
    let output = Command::new("git")
        .args(["push", "--quiet"])
        .arg(to)
        .args(refs)
        .current_dir(repo)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn door_admits_attested_commits_only() {
    for hook in ["pre-receive", "update"] {
        let team = Team::new();
        let server = bare(&team, hook);
        team.land();
        let (accepted, message) = push(team.repo.path(), &server, &["main"]);
        assert!(!accepted && message.contains("attest-missing"), "{message}");
        if hook == "update" {
            let (accepted, text) = push(team.repo.path(), &server, &["refs/notes/crucible"]);
            assert!(accepted, "{text}");
        }
        let (accepted, report) = push(team.repo.path(), &server, &["main", "refs/notes/crucible"]);
        assert!(accepted, "{report}");
        team.repo.write("src/area.py", "def area(): pass\n");
        team.repo.commit("By hand");
        for name in ["main", "main:refs/heads/topic", "main:refs/tags/v1"] {
            let (accepted, said) = push(team.repo.path(), &server, &[name]);
            assert!(
                !accepted && said.contains("attest-missing"),
                "{name}: {said}"
            );
        }
        // The notes are not rewritten.
        for bad in [":refs/notes/crucible", "+main:refs/notes/crucible"] {
            let (accepted, said) = push(team.repo.path(), &server, &[bad]);
            assert!(
                !accepted && said.contains("attest-notes-rewritten"),
                "{said}"
            );
        }
        // Nor is one of them removed by an ordinary push. A note for a commit that is not there yet may change.
        for (target, is_refused) in [("HEAD^", true), ("HEAD", false)] {
            team.set_note(&team.repo.git(["rev-parse", "HEAD"]), b"early\n");
            let (accepted, said) = push(team.repo.path(), &server, &["refs/notes/crucible"]);
            assert!(accepted, "{said}");
            let old = team.repo.git(["rev-parse", "refs/notes/crucible"]);
            let remove = ["notes", "--ref=crucible", "remove", target];
            team.repo.git(remove);
            let (accepted, said) = push(team.repo.path(), &server, &["refs/notes/crucible"]);
            assert_eq!(accepted, !is_refused, "{target}: {said}");
            assert_eq!(
                said.contains("attest-notes-rewritten"),
                is_refused,
                "{said}"
            );
            if is_refused {
                team.repo.git(["update-ref", "refs/notes/crucible", &old]);
            }
        }
        let before = team.repo.git(["rev-parse", "refs/notes/crucible"]);
        // A name that leads to a guarded ref is one.
        let links = Command::new("git")
            .args(["symbolic-ref", "refs/other/main", "refs/heads/main"])
            .current_dir(&server)
            .status();
        assert!(links.unwrap().success());
        let (accepted, said) = push(team.repo.path(), &server, &["main:refs/other/main"]);
        assert!(!accepted && said.contains("attest-missing"), "{said}");
        let stored_output = Command::new("git")
            .args(["rev-parse", "refs/notes/crucible"])
            .current_dir(&server)
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&stored_output.stdout).trim(),
            before
        );
    }
}

#[test]
fn notes_are_pushed_on_request() {
    let team = Team::new();
    let server = bare(&team, "pre-receive");
    team.repo
        .git(["remote", "add", "origin", server.to_str().unwrap()]);
    let id = id_of(&team.fixture.start(team.repo.path()).ok().json());
    let ran = team
        .fixture
        .run(["run", "land", &id, "--push-notes=nowhere"])
        .exits(1);
    assert!(
        ran.stderr.contains("landed, but its note was not pushed"),
        "{}",
        ran.stderr
    );
    team.fixture.run(["run", "land", &id, "--push-notes"]).ok();
    let (accepted, message) = push(team.repo.path(), &server, &["main"]);
    assert!(accepted, "{message}");
}

#[test]
fn door_guards_the_refs_of_the_policy() {
    let team = Team::new();
    team.write_policy("[door]\nrefs = [\"refs/heads/main\"]\n");
    let server = bare(&team, "pre-receive");
    team.land();
    team.repo.write("src/area.py", "def area(): pass\n");
    team.repo.commit("By hand");
    // Another branch is free, and gives no way around the door.
    let (accepted, message) = push(
        team.repo.path(),
        &server,
        &["main:refs/heads/topic", "refs/notes/crucible"],
    );
    assert!(accepted, "{message}");
    let (accepted, text) = push(team.repo.path(), &server, &["main"]);
    assert!(
        !accepted && text.matches("attest-missing").count() == 1,
        "{text}"
    );
    let (accepted, report) = push(team.repo.path(), &server, &["main^:main"]);
    assert!(accepted, "{report}");
}

#[test]
fn file_named_like_a_range_is_no_bundle() {
    let team = Team::new();
    team.land();
    let export = ["attest", "export", "--out", "HEAD~1..HEAD^"];
    team.fixture
        .call(export)
        .current_dir(team.repo.path())
        .run()
        .ok();
    assert_eq!(codes(&team.verify("HEAD~1..HEAD^")), ["attest-no-commits"]);
}

#[test]
fn door_admits_people_and_merges_per_policy() {
    let team = Team::new();
    let person = team.fixture.path("person");
    let exit_status = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&person)
        .status()
        .unwrap();
    assert!(exit_status.success());
    let public = std::fs::read_to_string(person.with_extension("pub")).unwrap();
    let people = format!("[[people]]\nname = \"eve\"\nkey = \"{}\"\n", public.trim());
    let server = bare(&team, "pre-receive");
    team.repo.git(["config", "gpg.format", "ssh"]);
    team.repo
        .git(["config", "user.signingkey", person.to_str().unwrap()]);
    let signed_commit = |file: &str| {
        team.repo.write(file, "text\n");
        team.repo.git(["add", "--all"]);
        team.repo
            .git(["commit", "--quiet", "-S", "--message", "By a person"]);
        team.repo.head()
    };
    let first = team.repo.head();
    signed_commit("one.txt");
    let (accepted, report) = push(team.repo.path(), &server, &["main"]);
    assert!(!accepted && report.contains("attest-missing"), "{report}");
    team.write_policy(&format!(
        "{people}valid_until = \"2020-01-01T00:00:00.000Z\"\n"
    ));
    let (accepted, said) = push(team.repo.path(), &server, &["main"]);
    assert!(!accepted && said.contains("attest-missing"), "{said}");
    team.write_policy(&people);
    let (accepted, said) = push(team.repo.path(), &server, &["main"]);
    assert!(accepted, "{said}");
    team.repo.git(["checkout", "--quiet", "-b", "side", &first]);
    signed_commit("two.txt");
    team.repo.git(["checkout", "--quiet", "main"]);
    team.repo
        .git(["merge", "--quiet", "--no-ff", "--no-edit", "side"]);
    let (accepted, said) = push(team.repo.path(), &server, &["main"]);
    assert!(!accepted && said.contains("attest-missing"), "{said}");
    team.write_policy(&format!("{people}[admit]\nmerges = \"clean\"\n"));
    // A merge that adds something is not clean.
    team.repo.write("three.txt", "smuggled\n");
    team.repo.git(["add", "--all"]);
    team.repo.git(["commit", "--quiet", "--amend", "--no-edit"]);
    let (accepted, said) = push(team.repo.path(), &server, &["main"]);
    assert!(!accepted && said.contains("attest-missing"), "{said}");
    team.repo.git(["rm", "--quiet", "three.txt"]);
    team.repo.git(["commit", "--quiet", "--amend", "--no-edit"]);
    let (accepted, said) = push(team.repo.path(), &server, &["main"]);
    assert!(accepted, "{said}");
}
