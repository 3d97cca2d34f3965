//! Documents that a reader follows: every block of shell in them is run, in order and in one shell, and what they show is compared
//! with what was printed.
//!
//! How it works: a document is cut into its fenced blocks. `sh` blocks are run. A `text` block is what the `sh` block before it printed: all of
//! it, but for lines of progress, or, where it has a line `...`, parts of it in their order. Times, ages and ids of receipts may differ. Blocks
//! of settings and code (`toml`, `yaml`, `json`, `js`) are only shown.
//!
//! The answers of the models are files, one for each phase of a spec. A recording is made of them again in each test, by the document's own
//! commands, and compared with the one that is kept: a question that changed cannot leave an old recording behind.
//!
//! With the variable `CRUCIBLE_RERECORD` set, recordings and `text` blocks are written anew instead.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crucible_testkit::{FakeApi, Reply, SeenRequest};

use super::support::phase_of;
use crate::support::Fixture;

/// The root of the repository.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What stands for the directory of a test in a document.
const READERS_HOME: &str = "/home/you";

/// What a document may hold that is not run.
const SHOWN_ALONE: [&str; 4] = ["toml", "yaml", "json", "js"];

/// Stands between what two blocks print.
const MARK: &str = "@@ next block @@";

/// Puts every call that is made into a file of its own, whatever the document says of who answers.
const RECORDER: &str = r#"#!/bin/sh
case "$1" in
    spec | resume) ;;
    *) exec "$PROGRAM" "$@" ;;
esac
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    case "$argument" in
        --provider | --cassette)
            shift
            left=$((left - 1))
            ;;
        *) set -- "$@" "$argument" ;;
    esac
done
number=1
while [ -e "$CALLS/$number.jsonl" ]; do number=$((number + 1)); done
export CRUCIBLE_LLM_PROVIDER=gateway CRUCIBLE_LLM_GATEWAY_MODEL=written-by-hand
exec "$PROGRAM" "$@" --record "$CALLS/$number.jsonl"
"#;

/// A document and its fenced blocks.
pub(crate) struct Guide {
    name: String,
    lines: Vec<String>,
    blocks: Vec<Block>,
}

struct Block {
    language: String,
    /// Its first line, and the one that closes it, counted from 0.
    from: usize,
    to: usize,
}

/// The answers of models: what is said in each phase of each spec.
#[derive(Clone)]
pub(crate) struct Answers {
    files: Vec<Answer>,
    asked: Arc<Mutex<BTreeSet<String>>>,
}

#[derive(Clone)]
struct Answer {
    name: String,
    spec: String,
    phase: String,
    text: String,
}

/// Where a document is followed: a home, a directory to stand in, and who answers.
pub(crate) struct Reader {
    fixture: Fixture,
    place: PathBuf,
    variables: Vec<(String, String)>,
}

impl Guide {
    /// A document of the repository.
    pub(crate) fn read(path: &str) -> Self {
        Self::new(
            path,
            &std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap(),
        )
    }

    /// A document that stands nowhere.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut blocks = Vec::new();
        let mut open: Option<(String, usize)> = None;
        for (at, line) in lines.iter().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("```") else {
                continue;
            };
            open = match open {
                None => Some((rest.to_owned(), at + 1)),
                Some((language, from)) => {
                    assert_eq!(
                        (line.as_str(), rest),
                        ("```", ""),
                        "{name}:{}: a fence within a fence",
                        at + 1
                    );
                    let is_known = ["sh", "text"].contains(&language.as_str())
                        || SHOWN_ALONE.contains(&language.as_str());
                    assert!(
                        is_known,
                        "{name}:{from}: a block of {language:?}, which is neither run nor compared"
                    );
                    blocks.push(Block {
                        language,
                        from,
                        to: at,
                    });
                    None
                }
            };
        }
        assert!(open.is_none(), "{name}: a block is not closed");
        Self {
            name: name.to_owned(),
            lines,
            blocks,
        }
    }

    /// How many blocks are run.
    pub(crate) fn commands(&self) -> usize {
        self.shell().count()
    }

    fn shell(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.language == "sh")
    }

    fn text(&self, block: &Block) -> &[String] {
        &self.lines[block.from..block.to]
    }

    /// Everything that is run, as one script.
    fn script(&self) -> String {
        let blocks = self
            .shell()
            .map(|block| format!("echo '{MARK}'\n{}\n", self.text(block).join("\n")));
        format!("exec 2>&1\n{}", blocks.collect::<String>())
    }

    /// Compares what the document shows with what was printed, block by block.
    fn compare(&self, printed: &[String]) {
        let mut anew = Vec::new();
        let mut before: Option<usize> = None;
        let mut number = 0;
        for block in &self.blocks {
            match block.language.as_str() {
                "sh" => {
                    before = Some(number);
                    number += 1;
                }
                "text" => {
                    let by = before.take();
                    let by = by.unwrap_or_else(|| {
                        panic!(
                            "{}:{}: output that no command before it printed",
                            self.name, block.from
                        )
                    });
                    let actual: Vec<&str> = printed[by]
                        .lines()
                        .filter(|line| !is_progress(line))
                        .collect();
                    let shown = self.text(block);
                    if is_shown(shown, &actual) {
                        continue;
                    }
                    let is_whole = !shown.iter().any(|line| line == "...");
                    if rewrites() && is_whole {
                        anew.push((block, actual));
                        continue;
                    }
                    panic!(
                        "{}:{}: this is not what was printed; with CRUCIBLE_RERECORD=1 the test writes it (a block with `...` is yours to \
                         change)\nshown:\n{}\nprinted:\n{}",
                        self.name,
                        block.from,
                        shown.join("\n"),
                        actual.join("\n")
                    );
                }
                _ => {}
            }
        }
        if anew.is_empty() {
            return;
        }
        let mut lines = self.lines.clone();
        for (block, actual) in anew.into_iter().rev() {
            lines.splice(block.from..block.to, actual.into_iter().map(str::to_owned));
        }
        std::fs::write(Path::new(ROOT).join(&self.name), lines.join("\n") + "\n").unwrap();
    }
}

impl Answers {
    /// The files `SPEC-PHASE.md` of a directory of the repository.
    pub(crate) fn read(directory: &str) -> Self {
        let mut files: Vec<Answer> = std::fs::read_dir(Path::new(ROOT).join(directory))
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                let (spec, phase) = name.rsplit_once('-').unwrap();
                let (spec, phase) = (spec.to_owned(), phase.to_owned());
                Answer {
                    spec,
                    phase,
                    text: std::fs::read_to_string(&path).unwrap(),
                    name,
                }
            })
            .collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            files,
            asked: Arc::default(),
        }
    }

    /// The same, of one spec alone.
    pub(crate) fn with_spec(mut self, spec: &str) -> Self {
        self.files.retain(|answer| answer.spec == spec);
        self
    }

    /// A server that gives them.
    pub(crate) fn serve(&self) -> FakeApi {
        let answers = self.clone();
        FakeApi::answering(move |request| Reply::Answer(answers.to(request)))
    }

    /// The answer to a request. Its phase is told by the instructions; where there are several specs, which one it is is told by the
    /// title, which then stands in every question.
    fn to(&self, request: &SeenRequest) -> String {
        let phase = match phase_of(request) {
            "requirements" if request.conversation().contains("You keep the requirements") => {
                "changes"
            }
            phase => phase,
        };
        let conversation = request.conversation();
        let is_one = self
            .files
            .iter()
            .all(|answer| answer.spec == self.files[0].spec);
        let mut found = self.files.iter().filter(|answer| {
            answer.phase == phase && (is_one || conversation.contains(&self.title(&answer.spec)))
        });
        let answer = found
            .next()
            .unwrap_or_else(|| panic!("no answer to {phase}: {conversation}"));
        assert!(found.next().is_none(), "two answers to {phase}");
        self.asked.lock().unwrap().insert(answer.name.clone());
        answer.text.clone()
    }

    /// What the documents of a spec are called.
    fn title(&self, spec: &str) -> String {
        let requirements = self
            .files
            .iter()
            .find(|answer| answer.spec == spec && answer.phase == "requirements");
        let first = requirements
            .and_then(|answer| answer.text.lines().next())
            .unwrap_or_default();
        first
            .strip_prefix("# Requirements: ")
            .unwrap_or_else(|| panic!("{spec} has no title"))
            .to_owned()
    }

    /// Fails where an answer was never wanted.
    pub(crate) fn all_asked(&self) {
        let questions = self.asked.lock().unwrap();
        for answer in &self.files {
            assert!(
                questions.contains(&answer.name),
                "nobody asked for {}",
                answer.name
            );
        }
    }
}

impl Reader {
    /// Somebody who stands in an empty directory of this name, with the program on their path.
    pub(crate) fn new(name: &str) -> Self {
        Self::at(Fixture::new(), name)
    }

    /// The same, with this server as the gateway.
    pub(crate) fn with(server: &FakeApi, name: &str) -> Self {
        Self::at(Fixture::with(server), name)
            .setting("CRUCIBLE_GATEWAY_BASE_URL", server.base_url())
    }

    fn at(fixture: Fixture, name: &str) -> Self {
        let place = fixture.path(name);
        std::fs::create_dir(&place).unwrap();
        // The search for a project ends here, whatever a document forgets; else it would find the repository of the tests.
        std::fs::create_dir(fixture.path(".git")).unwrap();
        let mut reader = Self {
            fixture,
            place,
            variables: Vec::new(),
        };
        reader
            .variables
            .push(("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()));
        reader
    }

    /// The same, with a copy of this directory of the repository to stand in.
    pub(crate) fn copy(self, directory: &str) -> Self {
        copy(&Path::new(ROOT).join(directory), &self.place);
        self
    }

    /// The same, with this variable in the environment.
    pub(crate) fn setting(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// The directory that the reader stands in.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// A file below it.
    pub(crate) fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.place.join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Runs every command of a document, and compares what it shows with what was printed.
    pub(crate) fn follow(&self, guide: &Guide) {
        guide.compare(&self.run(guide, &self.bin("#!/bin/sh\nexec \"$PROGRAM\" \"$@\"\n")));
    }

    /// Runs every command of a document, and gives the calls that were made as one recording.
    pub(crate) fn record(&self, guide: &Guide) -> String {
        let calls = self.fixture.path("calls");
        std::fs::create_dir(&calls).unwrap();
        self.run(guide, &self.bin(RECORDER));
        let mut recording = String::new();
        for number in 1.. {
            let Ok(text) = std::fs::read_to_string(calls.join(format!("{number}.jsonl"))) else {
                break;
            };
            let (header, content) = text.split_once('\n').unwrap();
            match recording.split_once('\n') {
                None => recording = text,
                Some((first, _)) => {
                    assert_eq!(first, header, "recordings of different models");
                    recording.push_str(content);
                }
            }
        }
        recording
    }

    /// A directory that holds this as the program.
    fn bin(&self, program: &str) -> PathBuf {
        let directory = self.fixture.path("bin");
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("crucible");
        std::fs::write(&path, program).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        directory
    }

    /// What each block of shell printed.
    fn run(&self, guide: &Guide, bin: &Path) -> Vec<String> {
        let script = self.fixture.path("script.sh");
        std::fs::write(&script, guide.script()).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let output = Command::new("sh")
            .args(["-eu".as_ref(), script.as_os_str()])
            .current_dir(&self.place)
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.fixture.home())
            .env("CRUCIBLE_HOME", self.fixture.data())
            .env("PROGRAM", env!("CARGO_BIN_EXE_crucible"))
            .env("CALLS", self.fixture.path("calls"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap();
        let home = self.fixture.path("");
        let home = home.to_str().unwrap().trim_end_matches('/');
        let printed = String::from_utf8(output.stdout)
            .unwrap()
            .replace(home, READERS_HOME);
        assert!(
            output.status.success(),
            "{}: {}\n{printed}",
            guide.name,
            output.status
        );
        let printed: Vec<String> = printed
            .split(&format!("{MARK}\n"))
            .skip(1)
            .map(|text| text.trim_end().to_owned())
            .collect();
        assert_eq!(
            printed.len(),
            guide.commands(),
            "{}: each block ran",
            guide.name
        );
        printed
    }
}

/// Fails unless a recording is the one that is kept; writes it where that is asked for.
pub(crate) fn keep(recording: &str, path: &str) {
    let stored_path = Path::new(ROOT).join(path);
    if rewrites() {
        std::fs::write(&stored_path, recording).unwrap();
        return;
    }
    let old = std::fs::read_to_string(&stored_path).unwrap_or_default();
    if old == recording {
        return;
    }
    let differ = old
        .lines()
        .zip(recording.lines())
        .position(|(old, new)| old != new);
    let line = 1 + differ.unwrap_or_else(|| old.lines().count().min(recording.lines().count()));
    panic!(
        "{path}: line {line} is not what is asked and answered now ({} lines, now {}); where that is meant, run this test with \
         CRUCIBLE_RERECORD=1, which writes the recording anew",
        old.lines().count(),
        recording.lines().count()
    );
}

fn rewrites() -> bool {
    std::env::var_os("CRUCIBLE_RERECORD").is_some()
}

/// Whether a line says that somebody is being asked; a terminal shows a spinner there.
fn is_progress(line: &str) -> bool {
    line.starts_with("  ... ")
}

/// Whether lines show what was printed.
fn is_shown(lines: &[String], printed: &[&str]) -> bool {
    let mut printed = printed.iter().map(|line| steady(line)).peekable();
    let mut skips = false;
    for line in lines {
        if line == "..." {
            skips = true;
            continue;
        }
        let line = steady(line);
        if skips {
            while printed.next_if(|other| *other != line).is_some() {}
            skips = false;
        }
        if printed.next() != Some(line) {
            return false;
        }
    }
    skips || printed.next().is_none()
}

/// A line without what differs from one time to the next.
fn steady(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let is_age = word.len() > 1
            && word
                .trim_end_matches(|end: char| end.is_ascii_lowercase())
                .bytes()
                .all(|byte| byte.is_ascii_digit())
            && word.ends_with(['s', 'm', 'h']);
        let is_seconds = word.split_once('.').is_some_and(|(full_text, part)| {
            part.len() == 1
                && [full_text, part]
                    .concat()
                    .bytes()
                    .all(|byte| byte.is_ascii_digit())
        });
        let bare = word.trim_matches('"');
        let is_instant = bare.starts_with("20") && bare.contains('T') && bare.ends_with('Z');
        match word {
            _ if is_age => "AGE".to_owned(),
            _ if is_seconds => "SECONDS".to_owned(),
            _ if is_instant => "INSTANT".to_owned(),
            _ => without_instants(word),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A word in which the instants of receipts' ids are made equal: `design-20241201-100000-0002`.
fn without_instants(word: &str) -> String {
    let parts = word.split('-').map(|part| {
        let is_instant =
            [6, 8].contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_instant { "INSTANT" } else { part }
    });
    parts.collect::<Vec<_>>().join("-")
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

#[test]
fn document_shows_printed_lines_in_order() {
    let shown = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let printed = [
        "wrote a",
        "took 0.3 s",
        " done  12s",
        "next: design-20261122-161957-0002",
    ];
    assert!(is_shown(
        &shown("wrote a\ntook 1.0 s\n done 0s\nnext: design-20240101-000000-0002"),
        &printed
    ));
    assert!(is_shown(&shown("...\ntook 1.0 s\n..."), &printed));
    for other in [
        "wrote a",
        "wrote b\n...",
        "...\ntook 1.0 s",
        "...\ntook 1.0 s\nwrote a\n...",
        "...\nnext: design-20240101-000000-0003",
    ] {
        assert!(!is_shown(&shown(other), &printed), "{other}");
    }
}

#[test]
#[should_panic(expected = "which is neither run nor compared")]
fn no_block_of_a_document_is_passed_over() {
    Guide::new("a document", "```sh\ntrue\n```\n\n```bash\nfalse\n```\n");
}
