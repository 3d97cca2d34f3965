//! Many pushes to a bare repository: honest ones are accepted, and no forged one is.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crucible_attest::{
    CarriedFrom, Change, GateIsolationLevel, GateVerdict, Signer, Statement, key_in, payload_of,
    statements,
};
use crucible_host::env::Environment;
use crucible_sandbox::Sandbox;

use crate::attest::{Team, bare, push};
use crate::support::Desk;

/// The longest time for one commit at the door.
const PER_COMMIT: Duration = Duration::from_millis(200);

/// A team with one landed commit at the server, and everything that signs.
struct Forge {
    team: Team,
    server: std::path::PathBuf,
    change: Change,
    signer: Signer,
    stranger: Signer,
    runtime: tokio::runtime::Runtime,
    _other: Desk,
    number: usize,
}

impl Forge {
    fn new() -> Self {
        let (team, other) = (Team::new(), Desk::new());
        let server = bare(&team, "pre-receive");
        let landed = team.land();
        let (accepted, said) = push(team.repo.path(), &server, &["main", "refs/notes/crucible"]);
        assert!(accepted, "{said}");
        other.run(["attest", "init"]).ok();
        let statement: Statement =
            serde_json::from_slice(&payload_of(team.note(&landed).as_bytes()).unwrap()).unwrap();
        let open = |desk: &Desk| {
            let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
            let sandbox = Arc::new(Sandbox::new(None, &env));
            Signer::open(sandbox, &env, &key_in(&desk.data().join("attest"))).unwrap()
        };
        Self {
            change: serde_json::from_value(statement.predicate).unwrap(),
            signer: open(&team.desk),
            stranger: open(&other),
            server,
            team,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
            _other: other,
            number: 0,
        }
    }

    /// Commits something with the trailers of a new change.
    fn commit(&mut self) -> (String, Change) {
        self.number += 1;
        let mut change = self.change.clone();
        change.base = self.team.repo.head();
        change.ledger.seq += self.number as u64;
        self.team
            .repo
            .write("src/area.py", format!("number = {}\n", self.number));
        let message = format!(
            "Change\n\nCrucible-Run: {}\nCrucible-Plan: {}\nCrucible-Verify: {}\nCrucible-Ledger: {}:{}\n",
            change.run,
            change.plan.plan,
            change.verification.report,
            change.ledger.seq,
            change.ledger.hash
        );
        (self.team.repo.commit(&message), change)
    }

    fn sign(&self, signer: &Signer, change: &Change, commit: &str) -> Vec<u8> {
        let tree = self
            .team
            .repo
            .git(["rev-parse", &format!("{commit}^{{tree}}")]);
        let payloads = statements(change, commit, &tree).unwrap();
        self.runtime.block_on(signer.sign_all(&payloads)).unwrap()
    }

    fn honest(&mut self) {
        let (commit, change) = self.commit();
        let note = self.sign(&self.signer, &change, &commit);
        self.team.set_note(&commit, &note);
    }

    fn push(&self) -> (bool, String) {
        push(
            self.team.repo.path(),
            &self.server,
            &["main", "refs/notes/crucible"],
        )
    }

    /// Makes a commit that looks landed and is not, in the way of this number.
    fn forge(&mut self, way: usize) -> &'static str {
        let landed = self.team.repo.head();
        let (commit, mut change) = self.commit();
        let note = |forge: &Self, edit: &dyn Fn(&mut Change)| {
            let mut change = change.clone();
            edit(&mut change);
            forge.sign(&forge.signer, &change, &commit)
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let honest = self.sign(&self.signer, &change, &commit);
        let (what, note) = match way % 14 {
            0 => ("no note", None),
            1 => (
                "the note of another commit",
                Some(self.team.note(&landed).into_bytes()),
            ),
            2 => (
                "a stranger's key",
                Some(self.sign(&self.stranger, &change, &commit)),
            ),
            3 => {
                let (own, other) = (
                    self.signer.public_key().fingerprint(),
                    self.stranger.public_key().fingerprint(),
                );
                let note = text(&self.sign(&self.stranger, &change, &commit)).replace(&other, &own);
                (
                    "a stranger's key under another's name",
                    Some(note.into_bytes()),
                )
            }
            4 => (
                "a skipped gate",
                Some(note(self, &|c| {
                    c.verification.gates[0].result = GateVerdict::Skipped
                })),
            ),
            5 => (
                "no gates",
                Some(note(self, &|c| c.verification.gates.clear())),
            ),
            6 => (
                "no isolation",
                Some(note(self, &|c| {
                    for gate in &mut c.verification.gates {
                        gate.isolation = gate.isolation.map(|_| GateIsolationLevel::None);
                    }
                })),
            ),
            7 => {
                let from = CarriedFrom {
                    commit: landed.clone(),
                    statement: change.patch,
                };
                (
                    "carried without permission",
                    Some(note(self, &|c| c.carried_from = Some(from.clone()))),
                )
            }
            8 => (
                "another base",
                Some(note(self, &|c| c.base = "1".repeat(40))),
            ),
            9 => (
                "another position in the ledger",
                Some(note(self, &|c| c.ledger.seq += 1)),
            ),
            10 => ("a changed byte", {
                let mut note = honest.clone();
                let at = (way * 7919) % (note.len() - 2);
                note[at] ^= 1;
                Some(note)
            }),
            11 => (
                "a missing line",
                Some(
                    honest
                        .split_inclusive(|b| *b == b'\n')
                        .take(2)
                        .flatten()
                        .copied()
                        .collect(),
                ),
            ),
            12 => ("words of a person", Some(b"Approved-by: ada\n".to_vec())),
            _ => {
                // The honest note, for a commit that was amended afterwards.
                self.team.set_note(&commit, &honest);
                self.team.repo.write("smuggled", "text\n");
                self.team.repo.git(["add", "--all"]);
                self.team
                    .repo
                    .git(["commit", "--quiet", "--amend", "--no-edit"]);
                ("an amended commit", Some(honest.clone()))
            }
        };
        change.created_at = self.change.created_at;
        if let Some(note) = note {
            self.team.set_note(&self.team.repo.head(), &note);
        }
        what
    }

    /// Forgets what was not accepted.
    fn reset(&self, head: &str) {
        self.team.repo.git(["reset", "--quiet", "--hard", head]);
        let server = self.server.to_str().unwrap();
        self.team.repo.git([
            "fetch",
            "--quiet",
            server,
            "+refs/notes/crucible:refs/notes/crucible",
        ]);
    }
}

fn head_of(repo: &Path) -> String {
    let output = Command::new("git")
        .args(["rev-parse", "main"])
        .current_dir(repo)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn pushes(forged: usize, honest: usize) {
    let mut forge = Forge::new();
    for way in 0..forged {
        let before = head_of(&forge.server);
        let what = forge.forge(way);
        let (accepted, said) = forge.push();
        assert!(!accepted && said.contains("attest-"), "{what}: {said}");
        assert_eq!(head_of(&forge.server), before, "{what}");
        forge.reset(before.trim());
    }
    for _ in 0..honest / 2 {
        forge.honest();
        let (accepted, said) = forge.push();
        assert!(accepted, "{said}");
    }
    let rest = honest - honest / 2;
    for _ in 0..rest {
        forge.honest();
    }
    let begun = Instant::now();
    let (accepted, said) = forge.push();
    assert!(accepted, "{said}");
    let each = begun.elapsed() / u32::try_from(rest).unwrap();
    // The first commit of a push carries the start of the program.
    assert!(each < PER_COMMIT || rest < 10, "{each:?}");
    // One that is forged among honest ones stops them all.
    forge.honest();
    forge.forge(0);
    forge.honest();
    let (accepted, said) = forge.push();
    assert!(
        !accepted && said.matches("attest-missing").count() == 1,
        "{said}"
    );
}

#[test]
fn forged_pushes_are_refused_and_honest_ones_accepted() {
    pushes(14, 12);
}

mod slow {
    /// Some minutes: each push starts git, the hook and the program.
    #[test]
    fn five_hundred_forged_pushes_are_refused() {
        super::pushes(500, 100);
    }
}
