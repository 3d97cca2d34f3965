//! The packet of a phase with a hundred files of a project, beside reading the same files.
//!
//! Once the files are named one by one, and once a glob finds them among two thousand others. Both select, read, scan for secrets
//! and hash; the first round, which also builds the scanner, is the one for warmth.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_model::Untrusted;
use crucible_spec::{EntryKind, FileSelectors, PacketEntry, PacketLimits, gather_packet};

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, side_by_side, timed};
use super::tree::{read, scratch};
use crate::error::TaskError;

/// How many files the packet has.
const FILES: usize = 100;

/// How many files there are besides.
const OTHERS: usize = 2_000;

/// The longest time.
const LIMIT: Duration = Duration::from_millis(50);

/// The bench of a phase's packet.
pub(super) struct SpecPacket;

impl Bench for SpecPacket {
    fn name(&self) -> &'static str {
        "spec-packet"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let folder = scratch()?;
        let project = Project::write(folder.path()).map_err(unmeasured("spec-packet"))?;
        let shapes = [
            (
                format!("{FILES} files, named"),
                project.selectors(project.names.clone(), Vec::new()),
            ),
            (
                format!("{FILES} files, found among {}", FILES + OTHERS),
                project.selectors(Vec::new(), vec!["**/*.rs".to_owned()]),
            ),
        ];
        let mut cases = Vec::new();
        for (own_text, selectors) in shapes {
            cases.push(Case {
                bench: self.name(),
                ours: format!("packet: {own_text}"),
                beside: "reading the files".to_owned(),
                pair: side_by_side(context.rounds, || gather(&selectors), || project.read())?,
                goal: Goal::TimeAtMost(LIMIT),
            });
        }
        Ok(cases)
    }
}

/// A project with as many files as fit into a packet, and others.
struct Project {
    root: PathBuf,
    names: Vec<String>,
}

impl Project {
    fn write(root: &Path) -> std::io::Result<Self> {
        let mut names = Vec::with_capacity(FILES);
        for number in 0..FILES {
            let name = format!("src/part-{}/file-{number}.rs", number % 10);
            // Words that the rules know as well, so that the scan has something to look at.
            let text = format!(
                "//! File {number}.\n\npub const TOKEN_LIMIT: usize = {number};\n\n/// Reads the password file and keeps no key.\n\
                 pub fn read_{number}(path: &str) -> Option<String> {{\n    let secret = std::fs::read_to_string(path).ok()?;\n    \
                 Some(secret.trim().to_owned())\n}}\n"
            );
            write(root, &name, &text.repeat(2))?;
            names.push(name);
        }
        for number in 0..OTHERS {
            write(
                root,
                &format!("docs/part-{}/page-{number}.md", number % 20),
                "# A page\n\nText.\n",
            )?;
        }
        Ok(Self {
            root: root.to_owned(),
            names,
        })
    }

    fn selectors(&self, named: Vec<String>, include: Vec<String>) -> FileSelectors {
        FileSelectors {
            root: self.root.clone(),
            named,
            include,
            exclude: vec!["target".to_owned()],
        }
    }

    fn read(&self) -> Result<Duration, TaskError> {
        let all = || {
            self.names
                .iter()
                .map(|name| read(&self.root.join(name)))
                .collect::<Result<Vec<_>, _>>()
        };
        let (time, contents) = timed(all);
        contents.map(|_| time)
    }
}

fn write(root: &Path, name: &str, text: &str) -> std::io::Result<()> {
    let path = root.join(name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// The packet with an idea; every file has to be in it.
fn gather(selectors: &FileSelectors) -> Result<Duration, TaskError> {
    let content = Untrusted::new("users can export their data\n");
    let idea = PacketEntry {
        kind: EntryKind::Idea,
        name: "idea".to_owned(),
        content,
    };
    let limits = PacketLimits {
        max_lines: 4_096,
        ..PacketLimits::default()
    };
    let (time, packet) = timed(|| gather_packet(vec![idea], selectors, limits));
    let files = packet
        .map_err(|error| unmeasured("spec-packet")(error))?
        .files()
        .count();
    if files == FILES {
        Ok(time)
    } else {
        Err(unmeasured("spec-packet")(format!(
            "it holds {files} of {FILES} files"
        )))
    }
}
