//! Attacks on the door: what a hostile push may contain besides commits without a statement.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crucible_testkit::TestRepo;

use crate::attest::{Team, bare, push};

/// A server whose policy admits commits of a person, and clean merges.
struct Door {
    team: Team,
    server: PathBuf,
    /// The tip of the server, which is admitted.
    base: String,
}

impl Door {
    fn new() -> Self {
        let team = Team::new();
        let person = team.fixture.path("person");
        let exit_status = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&person)
            .status();
        assert!(exit_status.unwrap().success());
        let public = std::fs::read_to_string(person.with_extension("pub")).unwrap();
        team.write_policy(&format!(
            "[[people]]\nname = \"eve\"\nkey = \"{}\"\n[admit]\nmerges = \"clean\"\n",
            public.trim()
        ));
        let server = bare(&team, "pre-receive");
        team.repo.git(["config", "gpg.format", "ssh"]);
        team.repo
            .git(["config", "user.signingkey", person.to_str().unwrap()]);
        let base = team.repo.head();
        Self { team, server, base }
    }

    fn repo(&self) -> &TestRepo {
        &self.team.repo
    }

    /// A commit of the person on the branch that is checked out.
    fn signed(&self, file: &str) -> String {
        self.repo().write(file, "text\n");
        self.repo().git(["add", "--all"]);
        self.repo()
            .git(["commit", "--quiet", "-S", "--message", "By a person"]);
        self.repo().head()
    }

    fn push(&self, refs: &[&str]) -> (bool, String) {
        push(self.repo().path(), &self.server, refs)
    }

    /// Writes a commit object with exactly this text.
    fn commit_object(&self, text: &str) -> String {
        let file = self.team.fixture.path("commit");
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let words = ["hash-object", "-t", "commit", "-w", "--literally", file];
        self.repo().git(words)
    }

    fn at_server(&self, words: &[&str]) -> String {
        let output = Command::new("git")
            .args(words)
            .current_dir(&self.server)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// git stops reading parents at the first line that is not one. A verdict about two parents would admit a commit that
/// has one, with the content of another that nobody judged.
#[test]
fn merge_with_hidden_parent_is_refused() {
    let door = Door::new();
    let repo = door.repo();
    repo.git(["checkout", "--quiet", "-b", "evil"]);
    repo.write("smuggled", "text\n");
    let evil = repo.commit("Smuggled");
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]);
    repo.git(["checkout", "--quiet", "main"]);
    let mine = door.signed("one.txt");
    repo.git(["checkout", "--quiet", "--detach"]);
    repo.git(["merge", "--quiet", "--no-ff", "--no-edit", "evil"]);
    let merged = repo.git(["rev-parse", "HEAD^{tree}"]);
    assert_ne!(merged, tree);
    let who = "A <a@example.invalid> 1700000000 +0000";
    for between in ["gpgsig x\n", "gpgsig-sha256 x\n y\n", " x\n", "x y\n"] {
        let forged = door.commit_object(&format!(
            "tree {merged}\nparent {mine}\n{between}parent {evil}\nauthor {who}\ncommitter {who}\n\nInnocent\n"
        ));
        let parents = repo.git(["rev-list", "--parents", "--max-count=1", &forged]);
        assert_eq!(parents, format!("{forged} {mine}"), "git sees one parent");
        let (accepted, message) = door.push(&[
            &format!("{evil}:refs/other/evil"),
            &format!("{forged}:refs/heads/main"),
        ]);
        assert!(
            !accepted && message.contains("attest-commit-unreadable"),
            "{between:?}: {message}"
        );
    }
    // The honest merge of the same two is refused for the commit that nobody signed, and one of signed ones is not. It is
    // not merged again: the trees of a refused commit may be huge.
    let honest = repo.head();
    let (accepted, report) = door.push(&[&format!("{honest}:refs/heads/main")]);
    assert!(!accepted && report.contains(&evil), "{report}");
    assert!(report.contains(&honest), "{report}");
    repo.git(["checkout", "--quiet", "-b", "side", &door.base]);
    door.signed("two.txt");
    repo.git(["checkout", "--quiet", "main"]);
    repo.git(["merge", "--quiet", "--no-ff", "--no-edit", "side"]);
    let (accepted, said) = door.push(&["main"]);
    assert!(accepted, "{said}");
}

/// The signature of a person covers the commit without its signature. Moved before the parents, it would hide them.
#[test]
fn moved_signature_does_not_cut_the_history() {
    let door = Door::new();
    let signed = door.signed("one.txt");
    let text = door.repo().git(["cat-file", "commit", &signed]) + "\n";
    let (head, rest) = text.split_once("gpgsig ").unwrap();
    let end = "-----END SSH SIGNATURE-----\n";
    let at = rest.find(end).unwrap() + end.len();
    let (signature, message) = rest.split_at(at);
    let (tree, others) = head.split_once("parent ").unwrap();
    let moved = door.commit_object(&format!("{tree}gpgsig {signature}parent {others}{message}"));
    let parents = door
        .repo()
        .git(["rev-list", "--parents", "--max-count=1", &moved]);
    assert_eq!(parents, moved, "git sees no parent");
    let (accepted, report) = door.push(&[&format!("+{moved}:refs/heads/main")]);
    assert!(
        !accepted && report.contains("attest-commit-unreadable"),
        "{report}"
    );
    let (accepted, said) = door.push(&["main"]);
    assert!(accepted, "{said}");
}

/// With such a ref, the server shows another commit under the name of an admitted one.
#[test]
fn ref_that_replaces_commit_is_refused() {
    let door = Door::new();
    let good = door.signed("one.txt");
    let (accepted, message) = door.push(&["main"]);
    assert!(accepted, "{message}");
    door.repo().write("one.txt", "smuggled\n");
    let evil = door.repo().commit("Smuggled");
    let replace = format!("{evil}:refs/replace/{good}");
    let (accepted, report) = door.push(&[&replace]);
    assert!(
        !accepted && report.contains("attest-replaces-object"),
        "{report}"
    );
    assert_eq!(door.at_server(&["show", "main:one.txt"]), "text");
    // One that is there already changes no verdict, and may be removed.
    door.at_server(&[
        "fetch",
        "--quiet",
        door.repo().path().to_str().unwrap(),
        &replace,
    ]);
    assert_eq!(door.at_server(&["show", "main:one.txt"]), "smuggled");
    let (accepted, said) = door.push(&[&format!("{evil}:refs/heads/main")]);
    assert!(!accepted && said.contains("attest-missing"), "{said}");
    let (accepted, said) = door.push(&[&format!(":refs/replace/{good}")]);
    assert!(accepted, "{said}");
    assert_eq!(door.at_server(&["show", "main:one.txt"]), "text");
}

#[test]
fn symbolic_ref_to_the_notes_is_guarded() {
    let door = Door::new();
    let (team, repo) = (&door.team, door.repo());
    let landed = team.land();
    let (accepted, message) = door.push(&["main", "refs/notes/crucible"]);
    assert!(accepted, "{message}");
    door.at_server(&["symbolic-ref", "refs/other/notes", "refs/notes/crucible"]);
    repo.git(["notes", "--ref=crucible", "remove", &landed]);
    // Also where the policy guards every ref.
    team.write_policy("[door]\nrefs = [\"refs/*\"]\n");
    for bad in [
        ":refs/other/notes",
        "refs/notes/crucible:refs/other/notes",
        "+main:refs/other/notes",
    ] {
        let (accepted, text) = door.push(&[bad]);
        assert!(
            !accepted && text.contains("attest-notes-rewritten"),
            "{bad}: {text}"
        );
    }
}

/// A guarded symbolic ref of the server shows what another ref contains. That is judged, and counts for nothing if it was
/// there before.
#[test]
fn symbolic_ref_to_unguarded_ref_admits_nothing() {
    let door = Door::new();
    door.repo().write("smuggled", "text\n");
    let evil = door.repo().commit("Smuggled");
    let (accepted, message) = door.push(&[&format!("{evil}:refs/other/free")]);
    assert!(accepted, "{message}");
    door.at_server(&["symbolic-ref", "refs/heads/linked", "refs/other/free"]);
    let (accepted, report) = door.push(&[&format!("{evil}:refs/heads/main")]);
    assert!(!accepted && report.contains("attest-missing"), "{report}");
    door.repo().write("smuggled", "more\n");
    let more = door.repo().commit("More");
    let (accepted, said) = door.push(&[&format!("{more}:refs/other/free")]);
    assert!(
        !accepted && said.matches("attest-missing").count() == 2,
        "{said}"
    );
    // Other refs stay free, and a symbolic ref between guarded refs changes nothing.
    let (accepted, said) = door.push(&[&format!("{more}:refs/other/else")]);
    assert!(accepted, "{said}");
    door.at_server(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    door.repo().git(["reset", "--quiet", "--hard", &door.base]);
    door.signed("one.txt");
    let (accepted, said) = door.push(&["main"]);
    assert!(accepted, "{said}");
}

/// Notes of other commits cost nothing, however many there are.
#[test]
fn many_notes_of_other_commits_are_not_read() {
    let door = Door::new();
    let mut stream = String::from(
        "commit refs/notes/crucible\ncommitter A <a@example.invalid> 1700000000 +0000\ndata 0\n",
    );
    for number in 0..2000 {
        // A directory that no note of a real commit leads to is not even looked at.
        stream.push_str(&format!("M 100644 inline {number:040x}\ndata 1\nx\n"));
    }
    crate::attest_push::fast_import(door.repo().path(), stream.as_bytes());
    let landed = door.team.land();
    let (accepted, message) = door.push(&["main", "refs/notes/crucible"]);
    assert!(accepted, "{message}");
    door.repo()
        .git(["notes", "--ref=crucible", "remove", &landed]);
    let (accepted, text) = door.push(&["refs/notes/crucible"]);
    assert!(
        !accepted && text.contains("attest-notes-rewritten"),
        "{text}"
    );
}

/// Nobody judges the commits of the notes themselves. One of them is still a new commit on a branch.
#[test]
fn commit_in_history_of_notes_is_judged() {
    let door = Door::new();
    let (team, repo) = (&door.team, door.repo());
    team.land();
    let (accepted, message) = door.push(&["main", "refs/notes/crucible"]);
    assert!(accepted, "{message}");
    repo.write("smuggled", "text\n");
    let evil = repo.commit("Smuggled");
    let notes = repo.git(["rev-parse", "refs/notes/crucible"]);
    let tree = format!("{notes}^{{tree}}");
    let words = ["commit-tree", "-m", "n", "-p", &notes, "-p", &evil, &tree];
    let merged = repo.git(words);
    let (accepted, report) = door.push(&[&format!("{merged}:refs/notes/crucible")]);
    assert!(accepted, "{report}");
    for refs in [
        "\"refs/*\"",
        "\"refs/heads/*\", \"refs/n*\"",
        "\"refs/heads/*\", \"refs/notes/crucible\"",
        "\"refs/heads/*\"",
    ] {
        team.write_policy(&format!("[door]\nrefs = [{refs}]\n"));
        let (accepted, said) = door.push(&["main"]);
        assert!(
            !accepted && said.contains("attest-missing"),
            "{refs}: {said}"
        );
    }
}

/// The gates of the policy run on what a symbolic ref leads to, as on what is pushed by name.
#[test]
fn gates_run_for_symbolic_refs() {
    let door = Door::new();
    door.team.write_policy(
        "[[door.rerun_gates]]\nid = \"tests\"\ncommand = [\"sh\", \"-c\", \"exit 3\"]\n",
    );
    door.team.land();
    let (accepted, message) = door.push(&["refs/notes/crucible"]);
    assert!(accepted, "{message}");
    door.at_server(&["symbolic-ref", "refs/other/main", "refs/heads/main"]);
    for to in ["refs/heads/main", "refs/other/main"] {
        let (accepted, text) = door.push(&[&format!("main:{to}")]);
        assert!(
            !accepted && text.contains("attest-gate-failed"),
            "{to}: {text}"
        );
    }
    let (accepted, report) = door.push(&["main:refs/other/free"]);
    assert!(accepted, "{report}");
}

/// git stops a search early where a commit is dated long before its ancestors, and then takes known commits for new ones.
#[test]
fn backdated_descendants_hide_no_known_commit() {
    let door = Door::new();
    let repo = door.repo();
    let landed = door.team.land();
    let (accepted, message) = door.push(&["main", "refs/notes/crucible"]);
    assert!(accepted, "{message}");
    // Merges of a commit with its own ancestor need no key.
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]);
    let who = "A <a@example.invalid> 1500000000 +0000";
    let mut tip = landed.clone();
    for number in 0..12 {
        tip = door.commit_object(&format!(
            "tree {tree}\nparent {tip}\nparent {}\nauthor {who}\ncommitter {who}\n\n{number}\n",
            door.base
        ));
    }
    let (accepted, report) = door.push(&[&format!("{tip}:refs/heads/main")]);
    assert!(accepted, "{report}");
    let cut = repo.git(["rev-list", &landed, &format!("^{tip}")]);
    assert!(cut.contains(&landed), "git does not stop early: {cut}");
    // A branch at an old commit, and a commit on it, are honest.
    for hidden in [&door.base, &landed] {
        let (accepted, said) = door.push(&[&format!("{hidden}:refs/heads/{hidden}")]);
        assert!(accepted, "{said}");
    }
    door.signed("one.txt");
    let (accepted, said) = door.push(&["main:refs/heads/topic"]);
    assert!(accepted, "{said}");
    // A commit without a statement is still refused there.
    repo.write("smuggled", "text\n");
    repo.commit("Smuggled");
    let (accepted, said) = door.push(&["main:refs/heads/topic"]);
    assert!(
        !accepted && said.matches("attest-missing").count() == 1,
        "{said}"
    );
    repo.git(["notes", "--ref=crucible", "remove", &landed]);
    let (accepted, said) = door.push(&["refs/notes/crucible"]);
    assert!(
        !accepted && said.contains("attest-notes-rewritten"),
        "{said}"
    );
}

/// git keeps only notes when it merges them, so another entry would make each later push lose something.
#[test]
fn entries_that_are_no_notes_lock_nobody_out() {
    let door = Door::new();
    let (team, repo) = (&door.team, door.repo());
    team.land();
    let (accepted, message) = door.push(&["main", "refs/notes/crucible"]);
    assert!(accepted, "{message}");
    let tip = repo.git(["rev-parse", "refs/notes/crucible"]);
    let with = |entries: &mut dyn Iterator<Item = String>| {
        let head =
            "commit refs/notes/bad\ncommitter A <a@example.invalid> 1700000000 +0000\ndata 0\n";
        let entries: String = entries.collect();
        let stream = format!("{head}from {tip}\n{entries}\n");
        crate::attest_push::fast_import(repo.path(), stream.as_bytes());
    };
    let base = &door.base;
    let gitlinks = || (0..256).map(|at| format!("M 160000 {base} {at:02x}\n"));
    let link = || [format!("M 120000 inline {base}\ndata 1\nx\n")].into_iter();
    let hidden = || [format!("M 160000 {base} {}/{}\n", &base[..2], &base[2..])].into_iter();
    for entries in [
        &mut gitlinks() as &mut dyn Iterator<Item = String>,
        &mut link(),
        &mut hidden(),
    ] {
        with(entries);
        let (accepted, text) = door.push(&["refs/notes/bad:refs/notes/crucible"]);
        assert!(
            !accepted && text.contains("attest-notes-rewritten"),
            "{text}"
        );
    }
    // Where they are already, an honest client that drops them is not refused, and neither are many notes that nobody needs.
    with(
        &mut gitlinks()
            .chain(hidden())
            .chain((0..200).map(|at| format!("M 100644 inline {at:040x}\ndata 1\nx\n"))),
    );
    let place = repo.path().to_str().unwrap();
    door.at_server(&[
        "fetch",
        "--quiet",
        place,
        "+refs/notes/bad:refs/notes/crucible",
    ]);
    repo.git(["notes", "--ref=crucible", "merge", "refs/notes/bad"]);
    door.signed("one.txt");
    team.set_note(&repo.head(), b"mine\n");
    let (accepted, report) = door.push(&["main", "refs/notes/crucible"]);
    assert!(accepted, "{report}");
}

/// git would reject the update of the notes alone, and the commits would land without them.
#[test]
fn wrong_old_value_is_refused() {
    let door = Door::new();
    let (zero, one) = ("0".repeat(40), "1".repeat(40));
    door.team.land();
    let (accepted, message) = door.push(&["main", "refs/notes/crucible"]);
    assert!(accepted, "{message}");
    let notes = door.repo().git(["rev-parse", "refs/notes/crucible"]);
    let head = door.repo().head();
    for (name, new, current) in [
        ("refs/notes/crucible", &notes, &notes),
        ("refs/heads/main", &head, &head),
        ("refs/heads/new", &head, &zero),
    ] {
        for old in [&zero, &one, &door.base, current] {
            let (code, text) = judged(&door, &format!("{old} {new} {name}\n"), &[], &[]);
            let is_refused = old != current;
            assert_eq!(code, Some(i32::from(is_refused)), "{name} {old}: {text}");
            assert_eq!(text.contains("attest-ref-moved"), is_refused, "{text}");
        }
    }
}

/// git makes one of two updates of a ref, and keeps no notes beside a ref below their name.
#[test]
fn refs_that_hide_the_notes_are_refused() {
    let door = Door::new();
    let (zero, head) = ("0".repeat(40), door.repo().head());
    for (name, code) in [
        ("refs/heads/refs/notes/crucible", "attest-ref-hides-notes"),
        ("refs/refs/notes/crucible", "attest-ref-hides-notes"),
        ("refs/notes/crucible/x", "attest-ref-hides-notes"),
        ("refs/heads/topic", ""),
    ] {
        let line = format!("{zero} {head} {name}\n");
        let (status, message) = judged(&door, &line, &[], &[]);
        assert_eq!(
            status,
            Some(i32::from(!code.is_empty())),
            "{name}: {message}"
        );
        assert!(message.contains(code), "{name}: {message}");
        let (status, text) = judged(&door, &format!("{line}{line}"), &[], &[]);
        assert_eq!(status, Some(1), "{name}: {text}");
        assert!(text.contains("attest-ref-moved"), "{name}: {text}");
    }
}

/// A carried commit needs the note of its original, which may be in no ref.
#[test]
fn signed_note_outside_guarded_refs_stays() {
    let door = Door::new();
    let (team, repo) = (&door.team, door.repo());
    let landed = team.land();
    let signed = repo.git(["notes", "--ref=crucible", "show", &landed]);
    team.set_note(&door.signed("one.txt"), b"mine\n");
    let unsigned = repo.head();
    let (accepted, message) = door.push(&["refs/notes/crucible"]);
    assert!(accepted, "{message}");
    let notes = repo.git(["rev-parse", "refs/notes/crucible"]);
    let more = format!("{signed}\nmore\n");
    for (commit, note, is_accepted) in [
        (&landed, "junk\n", false),
        // Nobody could remove the line again.
        (&landed, more.as_str(), false),
        (&unsigned, "another\n", true),
    ] {
        team.set_note(commit, note.as_bytes());
        let (accepted, text) = door.push(&["refs/notes/crucible"]);
        assert_eq!(accepted, is_accepted, "{note}: {text}");
        if !accepted {
            assert!(text.contains("attest-notes-rewritten"), "{text}");
            repo.git(["update-ref", "refs/notes/crucible", &notes]);
        }
    }
}

/// git makes one of the two updates and rejects the other, after the door has judged both.
#[test]
fn notes_updated_through_an_alias_too_are_refused() {
    let door = Door::new();
    door.signed("one.txt");
    door.team.set_note(&door.base, b"mine\n");
    let (accepted, message) = door.push(&["refs/notes/crucible"]);
    assert!(accepted, "{message}");
    door.at_server(&["symbolic-ref", "refs/notes/commits", "refs/notes/crucible"]);
    door.team.set_note(&door.base, b"other\n");
    let alias = "refs/notes/crucible:refs/notes/commits";
    let (accepted, message) = door.push(&["main", "refs/notes/crucible", alias]);
    assert!(
        !accepted && message.contains("attest-ref-moved"),
        "{message}"
    );
}

/// A gate of the policy may name a file of the checkout. A push that changes it would choose what runs.
#[test]
fn gate_changed_by_the_push_is_refused() {
    let door = Door::new();
    let (team, repo) = (&door.team, door.repo());
    let gate = |more: &str| {
        let people = std::fs::read_to_string(team.policy()).unwrap();
        let people = people.split("[[door").next().unwrap().to_owned();
        let gate =
            "[[door.rerun_gates]]\nid = \"tests\"\ncommand = [\"sh\", \"-e\", \"check.sh\"]\n";
        std::fs::write(team.policy(), format!("{people}{gate}{more}")).unwrap();
    };
    gate("");
    repo.write("check.sh", "exit 0\n");
    door.signed("one.txt");
    for to in ["main", "main:refs/heads/topic"] {
        let (accepted, message) = door.push(&[to]);
        assert!(
            !accepted && message.contains("attest-gate-changed"),
            "{to}: {message}"
        );
    }
    // The policy can admit such a change, and one that leaves the file as it is needs nothing.
    gate("pushed_files = [\"check.sh\"]\n");
    let (accepted, text) = door.push(&["main"]);
    assert!(accepted, "{text}");
    gate("");
    door.signed("two.txt");
    for to in ["main", "main:refs/heads/topic"] {
        let (accepted, report) = door.push(&[to]);
        assert!(accepted, "{to}: {report}");
    }
    repo.write("check.sh", "exit 0 # changed\n");
    door.signed("three.txt");
    for to in ["main", "main:refs/heads/topic", "main:refs/heads/new"] {
        let (accepted, said) = door.push(&[to]);
        assert!(
            !accepted && said.contains("attest-gate-changed"),
            "{to}: {said}"
        );
    }
}

/// Runs the door by itself, with lines on standard input.
fn judged(
    door: &Door,
    lines: &str,
    vars: &[(&str, &str)],
    words: &[&str],
) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crucible"))
        .args(["attest", "door", "--policy"])
        .arg(door.team.policy())
        .args(words)
        .current_dir(&door.server)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", door.team.fixture.home())
        .env("CRUCIBLE_HOME", door.team.fixture.path("server-home"))
        .envs(vars.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may end before it has read everything.
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.as_bytes());
    let output = child.wait_with_output().unwrap();
    let bytes = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&bytes).into_owned(),
    )
}

#[test]
fn door_without_refs_to_judge_fails() {
    let door = Door::new();
    let (zero, base) = ("0".repeat(40), &door.base);
    let line = format!("{zero} {base} refs/heads/other\n");
    assert_eq!(judged(&door, &line, &[], &[]).0, Some(0));
    // A hook `update` that does not pass its arguments.
    let (code, message) = judged(&door, "", &[], &[]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("\"$@\""), "{message}");
    let (code, text) = judged(&door, &line, &[("GIT_NAMESPACE", "x")], &[]);
    assert_eq!(code, Some(2), "{text}");
    let short = format!("{base} refs/heads/other\n");
    for bad in [
        "\n",
        "words\n",
        &short,
        &line.replace("refs/", ""),
        &format!("{line}\n{line}"),
        &line.replace(' ', "\t"),
    ] {
        let (code, report) = judged(&door, bad, &[], &[]);
        assert!(matches!(code, Some(1 | 2)), "{bad:?}: {code:?} {report}");
    }
}

/// Names that a shell, an option parser or a terminal could take for something else.
#[test]
fn hostile_ref_names_are_judged_like_others() {
    let door = Door::new();
    door.repo().write("smuggled", "text\n");
    let evil = door.repo().commit("Smuggled");
    for name in [
        "refs/heads/--all",
        "refs/heads/-x",
        "refs/heads/$(id>x)",
        "refs/heads/;exit",
        "refs/heads/\u{202e}niam",
        "refs/heads/a/refs/notes/crucible",
        "refs/tags/main",
        "refs/heads/refs/heads/main",
    ] {
        let (accepted, message) = door.push(&[&format!("{evil}:{name}")]);
        assert!(
            !accepted && message.contains("attest-missing"),
            "{name}: {message}"
        );
    }
    assert!(!door.server.join("x").exists());
    // The variables of a quarantine that is not one have no effect on the verdict.
    let zero = "0".repeat(40);
    let line = format!("{zero} {evil} refs/heads/other\n");
    let objects = door.repo().path().join(".git/objects");
    let objects = objects.to_str().unwrap();
    for vars in [
        &[("GIT_OBJECT_DIRECTORY", objects)][..],
        &[
            ("GIT_QUARANTINE_PATH", objects),
            ("GIT_OBJECT_DIRECTORY", objects),
        ],
        &[
            ("GIT_QUARANTINE_PATH", "/"),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects),
        ],
        &[("GIT_DIR", door.repo().path().to_str().unwrap())],
        &[
            ("GIT_REPLACE_REF_BASE", "refs/heads"),
            ("GIT_GRAFT_FILE", "/x"),
        ],
    ] {
        let (code, report) = judged(&door, &line, vars, &[]);
        assert_eq!(code, Some(1), "{vars:?}: {report}");
    }
}

/// A shallow push and a shallow server leave commits out of sight.
#[test]
fn shallow_history_hides_no_commit() {
    let door = Door::new();
    let repo = door.repo();
    repo.write("smuggled", "text\n");
    let evil = repo.commit("Smuggled");
    door.signed("one.txt");
    let clone = door.team.fixture.path("shallow");
    let url = format!("file://{}", repo.path().display());
    repo.git([
        "clone",
        "--quiet",
        "--depth=1",
        &url,
        clone.to_str().unwrap(),
    ]);
    for allowed in ["false", "true"] {
        door.at_server(&["config", "receive.shallowUpdate", allowed]);
        let (accepted, message) = push(&clone, &door.server, &["main"]);
        assert!(!accepted, "{allowed}: {message}");
    }
    // A graft at the server hides the commit from git, and not from the door.
    std::fs::create_dir_all(door.server.join("info")).unwrap();
    let tip = repo.head();
    let graft = format!("{tip} {}\n", door.base);
    std::fs::write(door.server.join("info/grafts"), graft).unwrap();
    let (accepted, report) = door.push(&["main"]);
    assert!(!accepted && report.contains(&evil), "{report}");
}

/// The objects of a server may be borrowed from another repository. What that one contains is not admitted here.
#[test]
fn borrowed_objects_are_judged() {
    let door = Door::new();
    door.repo().write("smuggled", "text\n");
    let evil = door.repo().commit("Smuggled");
    let alternates = door.server.join("objects/info/alternates");
    let objects = door.repo().path().join(".git/objects");
    std::fs::write(alternates, format!("{}\n", objects.display())).unwrap();
    let (accepted, message) = door.push(&["main"]);
    assert!(!accepted && message.contains(&evil), "{message}");
    door.repo().git(["reset", "--quiet", "--hard", &door.base]);
    door.signed("one.txt");
    let (accepted, report) = door.push(&["main"]);
    assert!(accepted, "{report}");
}

/// A statement of another repository is about another commit, also for the same change.
#[test]
fn statement_of_another_repository_is_refused() {
    let (door, other) = (Door::new(), Team::new());
    let other_text = other.land();
    let note = format!("{}\n", other.note(&other_text).trim_end());
    let mine = door.team.land();
    // Both signers are in the policy, so only the content can be wrong.
    door.team.write_policy(&format!(
        "[[signers]]\nname = \"bob\"\nkey = \"{}\"\n",
        other.key()
    ));
    door.team.set_note(&mine, note.as_bytes());
    let (accepted, message) = door.push(&["main", "refs/notes/crucible"]);
    assert!(
        !accepted && message.contains("attest-subject-differs"),
        "{message}"
    );
}

/// A policy in the pushed tree is a file like others.
#[test]
fn pushed_policy_does_not_change_the_door() {
    let door = Door::new();
    let open = "version = 1\n[[people]]\nname = \"any\"\nkey = \"ssh-ed25519 AAAA\"\n";
    for place in [
        ".crucible/attest.toml",
        ".crucible/config.toml",
        "attest.toml",
        "hooks/pre-receive",
    ] {
        door.repo().write(place, open);
    }
    door.repo().commit("A policy of my own");
    let before = std::fs::read(door.team.policy()).unwrap();
    let (accepted, message) = door.push(&["main"]);
    assert!(!accepted && message.contains("attest-missing"), "{message}");
    assert_eq!(std::fs::read(door.team.policy()).unwrap(), before);
    assert!(!door.server.join("attest.toml").exists());
}
