//! Building a context pack: beside reading the same files into memory, and as the command does it, whole.
//!
//! The command is `crucible context build` on a repository of many files: with a request that names some of them, and with a
//! goal, for which all of them are searched and ranked. Beside the latter stand `rg`, which searches the same tree for the
//! same words and ranks nothing, and repomix, which packs all of it. All of them are whole processes.
//!
//! Beside reading, the pack is built from a plain folder. Its secret scan is measured as a case of its own: reading from a warm
//! cache runs at gigabytes a second and no scan does, so the second case says what looking costs, and the third
//! whether the pack adds anything to reading and looking.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crucible_host::fs::read_prefix;
use crucible_model::{ByteLimit, FileLimit, RepoPath};
use crucible_pack::{
    Budget, ContextPack, Entry, FileRequest, Mandatory, Mode, Need, RequestVersion, Source,
    SourceError, build,
};
use crucible_secrets::{Scanner, is_secret_file};

use super::bench::{Bench, Context, unmeasured};
use super::council::peak_in;
use super::crawl::{many_times, pack as repomix_packs};
use super::measure::{Case, Goal, side_by_side, timed};
use super::tree::{Repository, SourceTree, read, scratch};
use crate::error::TaskError;
use crate::tools;

/// The most times that reading takes.
const LIMIT: f64 = 1.5;

/// How many files a request names.
const NAMED: usize = 30;

/// How long packing them takes at the most, and how much memory.
const NAMED_TIME: Duration = Duration::from_millis(30);
const NAMED_MEMORY: u64 = 20_000_000;

/// The least bytes that a pack of them has. Standard output holds less than that unread, so the process still runs when
/// its memory is looked at.
const NAMED_BYTES: u64 = 128 * 1024;

/// What is looked for in the large tree: words and a name, as in a sentence of a person.
const GOAL: &str =
    "parse_item must keep the attributes of a token stream when the parser meets an error";

/// The words of it that a ranking looks for, for `rg`.
const PATTERN: &str = "parse_item|keep|attributes|token|stream|parser|meets|parse|item";

/// How many times as long as the search of `rg`, and as the packing of repomix.
const TIMES_RG: f64 = 3.0;
const TIMES_REPOMIX: f64 = 1.0 / 20.0;

/// The bench of the context pack.
pub(super) struct Pack;

impl Bench for Pack {
    fn name(&self) -> &'static str {
        "pack"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let mut cases = Vec::new();
        for tree in context.trees()?.both() {
            let packed = Packed::choose(tree)?;
            let what = packed.describe();
            let shapes = [
                (Looks::Away, Looks::Away, "pack, no secret scan", "reading"),
                (Looks::ForSecrets, Looks::Away, "pack", "reading"),
                (
                    Looks::ForSecrets,
                    Looks::ForSecrets,
                    "pack",
                    "reading and scanning",
                ),
            ];
            for (ours, other_styles, name, beside_name) in shapes {
                cases.push(Case {
                    bench: self.name(),
                    ours: format!("{name}: {what}"),
                    beside: beside_name.to_owned(),
                    pair: side_by_side(
                        context.rounds,
                        || packed.build(ours),
                        || packed.read(other_styles),
                    )?,
                    goal: Goal::TimesAtMost(LIMIT),
                });
            }
        }
        cases.extend(commands(context)?);
        Ok(cases)
    }
}

/// The command on a repository of many files.
fn commands(context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
    let program = context.program()?;
    let (repository, files) = many_times(&context.trees()?.branched)?;
    let fixture = Fixture {
        program,
        home: scratch()?,
        repository,
    };
    fixture.write_request()?;
    let case = |own_text: String, beside: &str, pair, goal| Case {
        bench: "pack",
        ours: own_text,
        beside: beside.to_owned(),
        pair,
        goal,
    };
    let named = format!("context build, {NAMED} of {files} files");
    let pair = side_by_side(
        context.rounds,
        || fixture.pack_named(),
        || fixture.read_named(),
    )?;
    let mut peak = 0;
    for _ in 0..context.rounds.min(3) {
        peak = peak.max(fixture.peak_of_named()?);
    }
    tools::ripgrep(context.root)?;
    let repomix = tools::repomix(context.root)?;
    let goal = format!("context build --goal, {files} files");
    let searched = side_by_side(
        context.rounds,
        || fixture.pack_for_goal(),
        || fixture.search(),
    )?;
    // It takes seconds: more rounds say nothing more.
    let rounds = context.rounds.min(3);
    let top = fixture.repository.path();
    let packed = side_by_side(
        rounds,
        || fixture.pack_for_goal(),
        || repomix_packs(&repomix, top),
    )?;
    Ok(vec![
        case(
            named.clone(),
            "reading these files",
            pair.clone(),
            Goal::TimeAtMost(NAMED_TIME),
        ),
        case(
            named,
            "reading these files",
            pair,
            Goal::MemoryAtMost {
                peak,
                most: NAMED_MEMORY,
            },
        ),
        case(
            goal.clone(),
            "rg searching the same tree",
            searched,
            Goal::TimesAtMost(TIMES_RG),
        ),
        case(
            goal,
            "repomix packing the same tree",
            packed,
            Goal::TimesAtMost(TIMES_REPOMIX),
        ),
    ])
}

/// Where the command is run.
struct Fixture {
    program: PathBuf,
    home: tempfile::TempDir,
    repository: Repository,
}

impl Fixture {
    fn request_path(&self) -> PathBuf {
        self.home.path().join("request.json")
    }

    /// Names files all over the tree, the largest ones of their parts.
    fn write_request(&self) -> Result<(), TaskError> {
        let files = self.large_files()?;
        let bytes: u64 = files.iter().map(|(size, _)| size).sum();
        if bytes < NAMED_BYTES {
            return Err(unmeasured("pack")(format!(
                "the {NAMED} files have {bytes} bytes together"
            )));
        }
        let mut request = request(files.into_iter().map(|(_, path)| path));
        request.budget = Budget {
            max_files: FileLimit(100),
            max_total_bytes: ByteLimit(16 << 20),
        };
        let path = self.request_path();
        fs::write(&path, serde_json::to_vec(&request)?).map_err(TaskError::io("write", &path))
    }

    /// As many as are named, of those that can be distinguished by their size, and no larger than 64 KiB.
    fn large_files(&self) -> Result<Vec<(u64, String)>, TaskError> {
        let mut list = self.repository.git(&["ls-files", "-z"]);
        let listed = list
            .stdout(Stdio::piped())
            .output()
            .map_err(TaskError::io("run", "git ls-files"))?;
        let mut files: Vec<(u64, String)> = Vec::new();
        for name in listed.stdout.split(|byte| *byte == 0) {
            let Ok(name) = std::str::from_utf8(name) else {
                continue;
            };
            let size = fs::metadata(self.repository.path().join(name)).map_or(0, |meta| meta.len());
            if name.ends_with(".rs") && size < 64 << 10 {
                files.push((size, name.to_owned()));
            }
        }
        files.sort_unstable_by(|a, b| b.cmp(a));
        // What looks like a secret would not be packed.
        let is_clean = |(_, path): &(u64, String)| {
            read(&self.repository.path().join(path))
                .is_ok_and(|text| Scanner::builtin().scan(&text).is_empty())
        };
        Ok(files.into_iter().filter(is_clean).take(NAMED).collect())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["context", "build", "--repo"])
            .arg(self.repository.path())
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("CRUCIBLE_HOME", self.home.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn as_command(&self) -> Command {
        let mut command = self.command();
        command.arg("--request").arg(self.request_path());
        command
    }

    fn pack_named(&self) -> Result<Duration, TaskError> {
        packed(self.as_command(), NAMED)
    }

    fn pack_for_goal(&self) -> Result<Duration, TaskError> {
        let mut command = self.command();
        command.args(["--goal", GOAL]);
        packed(command, 1)
    }

    fn read_named(&self) -> Result<Duration, TaskError> {
        let files = self.large_files()?;
        let (time, contents) = timed(|| {
            let top = self.repository.path();
            files
                .iter()
                .map(|(_, path)| read(&top.join(path)))
                .collect::<Result<Vec<_>, _>>()
        });
        contents.map(|_| time)
    }

    fn search(&self) -> Result<Duration, TaskError> {
        let mut command = Command::new("rg");
        command
            .args([
                "--no-config",
                "--ignore-case",
                "--count-matches",
                "--regexp",
                PATTERN,
            ])
            .arg(self.repository.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let (time, status) = timed(|| command.status());
        match status {
            Ok(status) if status.success() => Ok(time),
            Ok(status) => Err(TaskError::Failed {
                command: format!("{command:?}"),
                status,
            }),
            Err(source) => Err(TaskError::Spawn {
                command: format!("{command:?}"),
                source,
            }),
        }
    }

    /// The most memory of one process, seen when its pack is made and the first byte of it has come.
    fn peak_of_named(&self) -> Result<u64, TaskError> {
        let mut command = self.as_command();
        let spawned = command.stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|source| TaskError::Spawn {
            command: format!("{command:?}"),
            source,
        })?;
        let id = child.id();
        let peak = child
            .stdout
            .take()
            .map_or(Err(io::ErrorKind::BrokenPipe.into()), |mut out| {
                out.read_exact(&mut [0])?;
                let peak = peak_in(&fs::read_to_string(format!("/proc/{id}/status"))?);
                io::copy(&mut out, &mut io::sink())?;
                peak
            });
        child
            .wait()
            .map_err(TaskError::io("wait for", "the process that packs"))?;
        peak.map_err(TaskError::io("read", "what the process had resident"))
    }
}

/// How long a command takes that prints a pack of at least so many files.
fn packed(mut command: Command, least: usize) -> Result<Duration, TaskError> {
    let (time, output) = timed(|| command.output());
    let output = output.map_err(|source| TaskError::Spawn {
        command: format!("{command:?}"),
        source,
    })?;
    let pack = ContextPack::parse(&output.stdout).map_err(unmeasured("pack"))?;
    if pack.files.len() < least {
        return Err(unmeasured("pack")(format!(
            "the pack holds {} files: {}",
            pack.files.len(),
            pack.summary
        )));
    }
    Ok(time)
}

/// Whether file contents are searched for secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looks {
    ForSecrets,
    Away,
}

/// The files of a tree that a pack takes whole, and the request for them.
struct Packed<'a> {
    tree: &'a SourceTree,
    request: FileRequest,
}

impl<'a> Packed<'a> {
    /// Builds one pack to see which files it takes: both sides are then about exactly these.
    fn choose(tree: &'a SourceTree) -> Result<Self, TaskError> {
        let all = request(tree.files.iter().map(ToString::to_string));
        let pack = pack(tree, &all, Looks::ForSecrets)?;
        let request = request(pack.files.into_iter().map(|file| file.path));
        Ok(Self { tree, request })
    }

    fn describe(&self) -> String {
        match self.tree.files.len() - self.request.needs.len() {
            0 => self.tree.name.clone(),
            refused => format!(
                "{} without {refused} files that look like secrets",
                self.tree.name
            ),
        }
    }

    fn build(&self, looks: Looks) -> Result<Duration, TaskError> {
        let (time, pack) = timed(|| pack(self.tree, &self.request, looks));
        let files = pack?.files.len();
        if files == self.request.needs.len() {
            Ok(time)
        } else {
            Err(unmeasured("pack")(format!(
                "it holds {files} of {} files",
                self.request.needs.len()
            )))
        }
    }

    /// Everything is kept until the end, as a pack keeps it.
    fn read(&self, looks: Looks) -> Result<Duration, TaskError> {
        let read = || -> Result<(Vec<Vec<u8>>, usize), TaskError> {
            let mut contents = Vec::with_capacity(self.request.needs.len());
            let mut found = 0;
            for need in &self.request.needs {
                let content = read(&self.tree.folder.join(&need.path))?;
                if looks == Looks::ForSecrets {
                    found += Scanner::builtin().scan(&content).len();
                }
                contents.push(content);
            }
            Ok((contents, found))
        };
        let (time, contents) = timed(read);
        contents.map(|_| time)
    }
}

fn request(paths: impl Iterator<Item = String>) -> FileRequest {
    FileRequest {
        schema_version: RequestVersion::V1,
        goal: "measure".to_owned(),
        needs: paths
            .map(|path| Need {
                path,
                mode: Mode::Full,
                line_ranges: Vec::new(),
            })
            .collect(),
        budget: Budget {
            max_files: FileLimit(u64::MAX),
            max_total_bytes: ByteLimit(1 << 40),
        },
        reason: "every file".to_owned(),
    }
}

fn pack(tree: &SourceTree, request: &FileRequest, looks: Looks) -> Result<ContextPack, TaskError> {
    let source = Folder {
        top: &tree.folder,
        looks,
    };
    build(request, &Mandatory::default(), &tree.name, &source).map_err(unmeasured("pack"))
}

/// A folder as a pack sees it.
struct Folder<'a> {
    top: &'a Path,
    looks: Looks,
}

impl Source for Folder<'_> {
    fn entry(&self, path: &RepoPath) -> Entry {
        match fs::symlink_metadata(self.top.join(path)) {
            Ok(meta) if meta.is_file() => Entry::File { size: meta.len() },
            Ok(_) => Entry::NotAFile,
            Err(_) => Entry::Missing,
        }
    }

    fn read(&self, path: &RepoPath, max: u64) -> Result<Vec<u8>, SourceError> {
        read_prefix(&self.top.join(path), ByteLimit(max))
            .map(|prefix| prefix.bytes)
            .map_err(|error| SourceError {
                path: path.clone(),
                problem: error.to_string(),
            })
    }

    fn is_secret(&self, path: &RepoPath, content: &[u8]) -> Option<String> {
        if is_secret_file(path.as_str()) {
            return Some("secret-file".to_owned());
        }
        if self.looks == Looks::Away {
            return None;
        }
        Scanner::builtin()
            .scan(content)
            .first()
            .map(|found| found.rule.to_string())
    }
}
