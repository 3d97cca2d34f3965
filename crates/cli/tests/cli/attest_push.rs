//! Many pushes to a bare repository: honest ones are accepted, and no forged one is.
//!
//! All commits and notes are made by one git process, and all signatures by one `ssh-keygen` per key. Only the pushes are
//! one process each: git, the hook and the program.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crucible_attest::{
    Bundle, CarriedFrom, Change, Envelope, GateIsolationLevel, GateVerdict, PAYLOAD_TYPE,
    PublicKey, STATEMENT_NAMESPACE, SshSignature, Statement, key_in, payload_of,
    pre_authentication_encoding, statements,
};

use crate::attest::{Team, bare, push};
use crate::support::Fixture;

/// A commit that was made for a push.
#[derive(Debug, Clone)]
struct Made {
    id: String,
    tree: String,
    /// What an honest statement about it says.
    change: Change,
}

/// A key with its public half.
struct Key {
    file: PathBuf,
    public: PublicKey,
}

/// What is signed: a change, and the commit that it is about.
type Signed<'a> = (&'a Change, &'a Made);

/// A team with one landed commit at the server, and everything that signs.
struct Forge {
    team: Team,
    server: PathBuf,
    landed: String,
    /// The note of the landed commit.
    note: Vec<u8>,
    change: Change,
    own: Key,
    stranger: Key,
    _other: Fixture,
}

impl Forge {
    fn new() -> Self {
        let (team, other) = (Team::new(), Fixture::new());
        let server = bare(&team, "pre-receive");
        let landed = team.land();
        let (accepted, stderr) = push(team.repo.path(), &server, &["main", "refs/notes/crucible"]);
        assert!(accepted, "{stderr}");
        other.run(["attest", "init"]).ok();
        // A note as git shows it lacks its last line ending.
        let note = format!("{}\n", team.note(&landed).trim_end()).into_bytes();
        let statement: Statement = serde_json::from_slice(&payload_of(&note).unwrap()).unwrap();
        let key = |fixture: &Fixture| {
            let file = key_in(&fixture.data().join("attest"));
            let public = std::fs::read_to_string(file.with_extension("pub")).unwrap();
            Key {
                public: public.parse().unwrap(),
                file,
            }
        };
        Self {
            change: serde_json::from_value(statement.predicate).unwrap(),
            own: key(&team.fixture),
            stranger: key(&other),
            note,
            landed,
            server,
            team,
            _other: other,
        }
    }

    /// Makes commits below `refs/made/NAME/`, each with another content. They follow each other, or all follow the landed
    /// commit. `smuggled` adds a file.
    fn commits(&self, name: &str, count: usize, chain: Chain, smuggled: &str) -> Vec<Made> {
        let mut stream = String::new();
        let mut changes = Vec::new();
        for at in 0..count {
            let mut change = self.change.clone();
            change.ledger.seq += 1 + at as u64;
            // Each honest change has a run of its own.
            change.run = format!("20261127-093000-{at:06x}").parse().unwrap();
            let message = format!(
                "Change\n\nCrucible-Run: {}\nCrucible-Plan: {}\nCrucible-Verify: {}\nCrucible-Ledger: {}:{}\n",
                change.run,
                change.plan.plan,
                change.verification.report,
                change.ledger.seq,
                change.ledger.hash
            );
            let from = match chain {
                Chain::Linear if at > 0 => format!(":{at}"),
                Chain::Linear | Chain::Siblings => self.landed.clone(),
            };
            let content = format!("number = {at}\n");
            write!(
                stream,
                "commit refs/made/{name}/{at:04}\nmark :{}\ncommitter A <a@example.invalid> 1700000000 +0000\n\
                 data {}\n{message}\nfrom {from}\nM 100644 inline src/area.py\ndata {}\n{content}\n",
                at + 1,
                message.len(),
                content.len(),
            )
            .unwrap();
            if !smuggled.is_empty() {
                let length = smuggled.len();
                write!(
                    stream,
                    "M 100644 inline smuggled\ndata {length}\n{smuggled}\n"
                )
                .unwrap();
            }
            changes.push(change);
        }
        fast_import(self.team.repo.path(), stream.as_bytes());
        let listed = self.team.repo.git([
            "for-each-ref",
            "--format=%(objectname) %(tree)",
            &format!("refs/made/{name}/"),
        ]);
        let mut base = self.landed.clone();
        let mut made = Vec::new();
        for (line, mut change) in listed.lines().zip(changes) {
            let (id, tree) = line.split_once(' ').unwrap();
            change.base.clone_from(&base);
            if chain == Chain::Linear {
                base = id.to_owned();
            }
            made.push(Made {
                id: id.to_owned(),
                tree: tree.to_owned(),
                change,
            });
        }
        assert_eq!(made.len(), count);
        made
    }

    /// Signs a note for each of these, with one call of `ssh-keygen`.
    fn sign(&self, key: &Key, all: &[Signed<'_>]) -> Vec<Vec<u8>> {
        if all.is_empty() {
            return Vec::new();
        }
        let temp_dir = tempfile::tempdir().unwrap();
        let payloads: Vec<Vec<u8>> = all
            .iter()
            .flat_map(|(change, made)| statements(change, &made.id, &made.tree).unwrap())
            .collect();
        let file = |at: usize| temp_dir.path().join(at.to_string());
        for (at, payload) in payloads.iter().enumerate() {
            let message = pre_authentication_encoding(PAYLOAD_TYPE, payload);
            std::fs::write(file(at), message).unwrap();
        }
        let signed = Command::new("ssh-keygen")
            .args(["-q", "-Y", "sign", "-n", STATEMENT_NAMESPACE, "-f"])
            .arg(&key.file)
            .args((0..payloads.len()).map(file))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(
            signed.status.success(),
            "{}",
            String::from_utf8_lossy(&signed.stderr)
        );
        let lines: Vec<Vec<u8>> = payloads
            .iter()
            .enumerate()
            .map(|(at, payload)| {
                let armor = std::fs::read_to_string(file(at).with_extension("sig")).unwrap();
                let signature = SshSignature::from_armor(&armor).unwrap();
                let envelope = Envelope::new(payload, &key.public, &signature);
                Bundle::new(envelope).to_line().unwrap()
            })
            .collect();
        lines.chunks(3).map(<[_]>::concat).collect()
    }

    /// Makes notes below `refs/notes/made/NAME/`, on top of those of the server. In a chain each has those before it.
    fn notes(&self, name: &str, notes: &[Option<(String, Vec<u8>)>], chain: Chain) {
        let tip = self.team.repo.git(["rev-parse", "refs/notes/crucible"]);
        let mut from = tip.clone();
        let mut stream = Vec::new();
        for (at, note) in notes.iter().enumerate() {
            let mark = at + 1;
            let head = format!(
                "commit refs/notes/made/{name}/{at:04}\nmark :{mark}\ncommitter A <a@example.invalid> 1700000000 +0000\n\
                 data 0\nfrom {from}\n"
            );
            stream.extend(head.into_bytes());
            if let Some((commit, note)) = note {
                stream.extend(format!("N inline {commit}\ndata {}\n", note.len()).into_bytes());
                stream.extend(note);
                stream.push(b'\n');
            }
            if chain == Chain::Linear {
                from = format!(":{mark}");
            }
        }
        fast_import(self.team.repo.path(), &stream);
    }

    fn push(&self, name: &str, at: usize) -> (bool, String) {
        push(
            self.team.repo.path(),
            &self.server,
            &[
                &format!("refs/made/{name}/{at:04}:refs/heads/main"),
                &format!("refs/notes/made/{name}/{at:04}:refs/notes/crucible"),
            ],
        )
    }

    /// Makes commits that look landed and are not. Returns what is wrong with each.
    fn forge(&self, count: usize) -> Vec<&'static str> {
        let amended = self.commits("forged", count, Chain::Siblings, "");
        let smuggled = self.commits("smuggled", count, Chain::Siblings, "text\n");
        let mut edited = Vec::new();
        let mut by_stranger = Vec::new();
        for (at, made) in amended.iter().enumerate() {
            let mut change = made.change.clone();
            match at % WAYS {
                2 | 3 => by_stranger.push((at, change)),
                case => {
                    edit(case, &mut change, &self.landed);
                    edited.push((at, change));
                }
            }
        }
        let signed = |key: &Key, changes: &[(usize, Change)]| {
            let all: Vec<Signed<'_>> = changes
                .iter()
                .map(|(at, change)| (change, &amended[*at]))
                .collect();
            let notes = self.sign(key, &all).into_iter();
            changes.iter().map(|(at, _)| *at).zip(notes).collect()
        };
        let mut notes: Vec<(usize, Vec<u8>)> = signed(&self.own, &edited);
        notes.extend::<Vec<(usize, Vec<u8>)>>(signed(&self.stranger, &by_stranger));
        notes.sort();
        let (own, other) = (
            self.own.public.fingerprint(),
            self.stranger.public.fingerprint(),
        );
        let mut whats = Vec::new();
        let mut forged = Vec::new();
        for ((at, note), made) in notes.into_iter().zip(&amended) {
            let (what, note) = match at % WAYS {
                0 => ("no note", None),
                1 => ("the note of another commit", Some(self.note.clone())),
                2 => ("a stranger's key", Some(note)),
                3 => {
                    let note = String::from_utf8(note).unwrap().replace(&other, &own);
                    (
                        "a stranger's key under another's name",
                        Some(note.into_bytes()),
                    )
                }
                4 => ("a skipped gate", Some(note)),
                5 => ("no gates", Some(note)),
                6 => ("no isolation", Some(note)),
                7 => ("carried without permission", Some(note)),
                8 => ("another base", Some(note)),
                9 => ("another position in the ledger", Some(note)),
                10 => {
                    let mut note = note;
                    let place = (at * 7919) % (note.len() - 2);
                    note[place] ^= 1;
                    ("a changed byte", Some(note))
                }
                11 => {
                    let lines = note.split_inclusive(|byte| *byte == b'\n').take(2);
                    ("a missing line", Some(lines.flatten().copied().collect()))
                }
                12 => ("words of a person", Some(b"Approved-by: ada\n".to_vec())),
                _ => ("an amended commit", Some(note)),
            };
            whats.push(what);
            let commit = if at % WAYS == AMENDED {
                let from = format!("refs/made/smuggled/{at:04}");
                let to = format!("refs/made/forged/{at:04}");
                self.team.repo.git(["update-ref", &to, &from]);
                smuggled[at].id.clone()
            } else {
                made.id.clone()
            };
            forged.push(note.map(|note| (commit, note)));
        }
        self.notes("forged", &forged, Chain::Siblings);
        whats
    }
}

/// How commits or notes follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chain {
    /// Each follows the one before it.
    Linear,
    /// Each follows what the server has.
    Siblings,
}

/// How many ways of forging there are.
const WAYS: usize = 14;
/// The way in which the honest note stands at a commit that was amended afterwards.
const AMENDED: usize = 13;

/// Changes what the signer's own statement says, in the way of this number.
fn edit(case: usize, change: &mut Change, landed: &str) {
    let gates = &mut change.verification.gates;
    match case {
        4 => gates[0].result = GateVerdict::Skipped,
        5 => gates.clear(),
        6 => {
            for gate in gates {
                gate.isolation = gate.isolation.map(|_| GateIsolationLevel::None);
            }
        }
        7 => {
            change.carried_from = Some(CarriedFrom {
                commit: landed.to_owned(),
                statement: change.patch,
            });
        }
        8 => change.base = "1".repeat(40),
        9 => change.ledger.seq += 1,
        _ => {}
    }
}

pub(crate) fn fast_import(repo: &Path, stream: &[u8]) {
    let mut child = Command::new("git")
        .args(["fast-import", "--quiet", "--force"])
        .current_dir(repo)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stream).unwrap();
    assert!(child.wait().unwrap().success());
}

fn head_of(repo: &Path) -> String {
    let output = Command::new("git")
        .args(["rev-parse", "main", "refs/notes/crucible"])
        .current_dir(repo)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Pushes forged and honest commits, and returns the time for each of the honest ones in the last push.
fn pushes(forged: usize, honest: usize) -> Duration {
    let forge = Forge::new();
    let before = head_of(&forge.server);
    let whats = forge.forge(forged);
    assert_eq!(whats.len(), forged);
    // A refused push leaves nothing behind, so several can be under way.
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (forge, whats) = (&forge, &whats);
            scope.spawn(move || {
                for at in (worker..forged).step_by(workers) {
                    let (accepted, stderr) = forge.push("forged", at);
                    assert!(
                        !accepted && stderr.contains("attest-"),
                        "{}: {stderr}",
                        whats[at]
                    );
                }
            });
        }
    });
    assert_eq!(head_of(&forge.server), before);

    // Honest ones, and behind them one without a note among honest ones.
    let made = forge.commits("honest", honest + 3, Chain::Linear, "");
    let all: Vec<Signed<'_>> = made.iter().map(|made| (&made.change, made)).collect();
    let notes = forge.sign(&forge.own, &all);
    let notes: Vec<_> = made
        .iter()
        .zip(notes)
        .enumerate()
        .map(|(at, (made, note))| (at != honest + 1).then(|| (made.id.clone(), note)))
        .collect();
    forge.notes("honest", &notes, Chain::Linear);
    for at in 0..honest / 2 {
        let (accepted, stderr) = forge.push("honest", at);
        assert!(accepted, "{stderr}");
    }
    let rest = honest - honest / 2;
    let begun = Instant::now();
    let (accepted, stderr) = forge.push("honest", honest - 1);
    assert!(accepted, "{stderr}");
    // The first commit of a push carries the start of the program.
    let per_commit = begun.elapsed() / u32::try_from(rest).unwrap();
    let (accepted, stderr) = forge.push("honest", honest + 2);
    assert!(
        !accepted && stderr.matches("attest-missing").count() == 1,
        "{stderr}"
    );
    per_commit
}

#[test]
fn forged_pushes_are_refused_and_honest_ones_accepted() {
    pushes(14, 12);
}

/// Makes two changes of one run and one of another, with their notes at `refs/notes/made/twice/0002`.
fn two_changes_of_a_run(forge: &Forge) -> Vec<Made> {
    let mut made = forge.commits("twice", 3, Chain::Siblings, "");
    let run = made[0].change.run.clone();
    made[1].change.run.clone_from(&run);
    // The message must name the run, too.
    let text = forge.team.repo.git(["cat-file", "commit", &made[1].id]);
    let text = text.replace(&format!("{:06x}", 1), &format!("{:06x}", 0)) + "\n";
    let file = forge.team.fixture.path("commit");
    std::fs::write(&file, text).unwrap();
    let words = ["hash-object", "-t", "commit", "-w", file.to_str().unwrap()];
    made[1].id = forge.team.repo.git(words);
    let all: Vec<Signed<'_>> = made.iter().map(|made| (&made.change, made)).collect();
    let signed = forge.sign(&forge.own, &all).into_iter();
    let notes: Vec<_> = made
        .iter()
        .map(|made| made.id.clone())
        .zip(signed)
        .map(Some)
        .collect();
    forge.notes("twice", &notes, Chain::Linear);
    made
}

/// Until a push is over, neither refs nor notes show that a run was used.
#[test]
fn run_counts_once_before_any_ref_moves() {
    for hook in ["update", "pre-receive"] {
        let forge = Forge::new();
        let made = two_changes_of_a_run(&forge);
        let push = |refs: &[&str]| push(forge.team.repo.path(), &forge.server, refs);
        let (accepted, message) = push(&["refs/notes/made/twice/0002:refs/notes/crucible"]);
        assert!(accepted, "{message}");
        let hooks = forge.server.join("hooks");
        if hook == "update" {
            let script = std::fs::read_to_string(hooks.join("pre-receive")).unwrap();
            let script = format!("{} \"$@\"\n", script.trim_end());
            std::fs::write(hooks.join("pre-receive"), script).unwrap();
            std::fs::rename(hooks.join("pre-receive"), hooks.join("update")).unwrap();
            let [one, two] = [0, 1].map(|at| format!("{}:refs/heads/{at}", made[at].id));
            let (accepted, text) = push(&["--atomic", &one, &two]);
            assert!(!accepted && text.contains("attest-run-repeated"), "{text}");
        } else {
            // The door admits the first one, and another hook refuses its push.
            let script = std::fs::read_to_string(hooks.join("pre-receive")).unwrap();
            let failing = script.replace("exec ", "") + "exit 3\n";
            std::fs::write(hooks.join("pre-receive"), failing).unwrap();
            let (accepted, report) = push(&[&format!("{}:refs/heads/0", made[0].id)]);
            assert!(!accepted && report.contains("1 attested"), "{report}");
            std::fs::write(hooks.join("pre-receive"), script).unwrap();
        }
        for (at, is_accepted) in [(1, false), (0, true), (1, false), (2, true)] {
            let (accepted, said) = push(&[&format!("{}:refs/heads/{at}", made[at].id)]);
            assert_eq!(accepted, is_accepted, "{hook} {at}: {said}");
            assert_eq!(said.contains("attest-run-repeated"), !is_accepted, "{said}");
        }
    }
}

/// What stands where a claim belongs is named, with what to do.
#[test]
fn unreadable_claim_of_a_run_is_named() {
    let forge = Forge::new();
    let made = two_changes_of_a_run(&forge);
    let push = |refs: &[&str]| push(forge.team.repo.path(), &forge.server, refs);
    let (accepted, said) = push(&["refs/notes/made/twice/0002:refs/notes/crucible"]);
    assert!(accepted, "{said}");
    let hook = forge.server.join("hooks/pre-receive");
    let script = std::fs::read_to_string(&hook).unwrap();
    std::fs::write(&hook, script.replace("exec ", "") + "exit 3\n").unwrap();
    let pushed = [&*format!("{}:refs/heads/0", made[0].id)];
    push(&pushed);
    std::fs::write(&hook, script).unwrap();
    let claims = std::fs::read_dir(forge.server.join("crucible/runs")).unwrap();
    let mut claims = claims.map(|claim| claim.unwrap().path());
    let is_first = |claim: &PathBuf| {
        std::fs::read_to_string(claim)
            .unwrap()
            .starts_with(&made[0].id)
    };
    let claim = claims.find(is_first).unwrap();
    let honest = std::fs::read(&claim).unwrap();
    for (content, why) in [
        (None, "it is not a regular file"),
        (Some(String::new()), "it names no commit"),
        (Some("\n".to_owned()), "it names no commit"),
        (Some("1".repeat(300)), "is larger than"),
    ] {
        std::fs::remove_file(&claim).unwrap();
        match &content {
            Some(content) => std::fs::write(&claim, content).unwrap(),
            None => std::fs::create_dir(&claim).unwrap(),
        }
        let (accepted, said) = push(&pushed);
        let is_named = said.contains("attest-claim-unreadable") && said.contains(why);
        assert!(!accepted && is_named, "{content:?}: {said}");
        if content.is_none() {
            std::fs::remove_dir(&claim).unwrap();
        }
        std::fs::write(&claim, &honest).unwrap();
    }
    let (accepted, said) = push(&pushed);
    assert!(accepted, "{said}");
}

/// Any number of pushes at the same time land one change of a run.
#[test]
fn run_counts_once_in_simultaneous_pushes() {
    let forge = Forge::new();
    let made = two_changes_of_a_run(&forge);
    let notes = "refs/notes/made/twice/0002:refs/notes/crucible";
    let (accepted, message) = push(forge.team.repo.path(), &forge.server, &[notes]);
    assert!(accepted, "{message}");
    let accepted: Vec<bool> = std::thread::scope(|scope| {
        let threads = made.iter().map(|made| {
            let to = format!("{}:refs/heads/{}", made.id, made.id);
            let forge = &forge;
            scope.spawn(move || push(forge.team.repo.path(), &forge.server, &[&to]).0)
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(accepted[0] != accepted[1] && accepted[2], "{accepted:?}");
}

/// A run has one change: approvals of its plan would count for each of them.
#[test]
fn second_change_of_a_run_is_refused() {
    let forge = Forge::new();
    let made = two_changes_of_a_run(&forge);
    let notes = "refs/notes/made/twice/0002:refs/notes/crucible";
    let push = |refs: &[&str]| {
        let refs = [refs, &[notes]].concat();
        push(forge.team.repo.path(), &forge.server, &refs)
    };
    let [first, second, other] = [0, 1, 2].map(|at| format!("{}:refs/heads/{at}", made[at].id));
    // In one push nobody can tell which was the first.
    let (accepted, message) = push(&[&first, &second, &other]);
    assert!(
        !accepted && message.matches("attest-run-repeated").count() == 2,
        "{message}"
    );
    for (name, is_accepted) in [(&first, true), (&second, false), (&other, true)] {
        let (accepted, text) = push(&[name]);
        assert_eq!(accepted, is_accepted, "{text}");
        assert_eq!(text.contains("attest-run-repeated"), !is_accepted, "{text}");
    }
    // Also where both are in the history of the range.
    forge.team.repo.git([
        "update-ref",
        "refs/notes/crucible",
        "refs/notes/made/twice/0002",
    ]);
    let merge = [
        "commit-tree",
        "-m",
        "Both",
        "-p",
        &made[0].id,
        "-p",
        &made[1].id,
        &made[0].tree,
    ];
    let both = forge.team.repo.git(merge);
    for range in [format!("{}..{both}", forge.landed), made[1].id.clone()] {
        let mut call = forge
            .team
            .fixture
            .call(["attest", "verify", &range, "--policy"]);
        call = call.arg(forge.team.policy());
        let _ = forge
            .team
            .repo
            .git(["update-ref", "refs/heads/both", &both]);
        let ran = call.current_dir(forge.team.repo.path()).run().exits(1);
        assert!(
            ran.stdout.contains("attest-run-repeated")
                || ran.stderr.contains("attest-run-repeated"),
            "{range}: {}",
            ran.stderr
        );
    }
}

/// Anyone who may push can write a note. Only a signer's is a use of a run.
#[test]
fn note_of_a_stranger_is_no_use_of_a_run() {
    let forge = Forge::new();
    let made = two_changes_of_a_run(&forge);
    let repo = &forge.team.repo;
    let (first, second) = (&made[0], &made[1]);
    let verify = || {
        repo.git(["update-ref", "refs/heads/both", &first.id]);
        let call = forge.team.fixture.call(["attest", "verify", &first.id]);
        let call = call.arg("--policy").arg(forge.team.policy());
        call.current_dir(repo.path()).run()
    };
    let both = [
        "commit-tree",
        "-m",
        "Both",
        "-p",
        &first.id,
        "-p",
        &second.id,
        &first.tree,
    ];
    let both = repo.git(both);
    repo.git(["update-ref", "refs/heads/merged", &both]);
    repo.git([
        "update-ref",
        "refs/notes/crucible",
        "refs/notes/made/twice/0002",
    ]);
    // The signer's own note about the second change is a use.
    let ran = verify().exits(1);
    assert!(ran.stdout.contains("attest-run-repeated"), "{}", ran.stdout);
    let by_stranger = forge.sign(&forge.stranger, &[(&second.change, second)]);
    let as_own = String::from_utf8(by_stranger[0].clone()).unwrap().replace(
        &forge.stranger.public.fingerprint(),
        &forge.own.public.fingerprint(),
    );
    for note in [&by_stranger[0], as_own.as_bytes(), b"{}\n"] {
        forge.team.set_note(&second.id, note);
        verify().ok();
    }
}

mod slow {
    /// Each push starts git, the hook and the program.
    #[test]
    fn hundred_forged_pushes_are_refused() {
        super::pushes(100, 40);
    }
}

mod exhaustive {
    use std::time::Duration;

    /// By hand, on a machine with no other work: it measures.
    #[test]
    fn five_hundred_forged_pushes_are_refused() {
        let per_commit = super::pushes(500, 100);
        assert!(per_commit < Duration::from_millis(200), "{per_commit:?}");
    }
}
