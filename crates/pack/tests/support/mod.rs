//! A repository in memory that counts what is read from it.

use std::cell::Cell;
use std::collections::BTreeMap;

use crucible_model::{ByteLimit, FileLimit, RepoPath};
use crucible_pack::{
    Budget, Entry, FileRequest, LineRange, Mode, Need, RequestVersion, Source, SourceError,
};

/// What stands at a path of the fake repository.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    File(Vec<u8>),
    /// A file of this many `x` that exists only as far as it is read.
    Huge(u64),
    Link {
        to: &'static str,
        content: Vec<u8>,
    },
    /// A link to a link.
    Chain {
        through: &'static str,
        to: &'static str,
    },
    Outward,
    InCircles,
    ToNothing,
    Directory,
    Unreadable,
}

#[derive(Debug, Default)]
pub(crate) struct Fake {
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) bytes_read: Cell<u64>,
    /// What was asked for, however little there was.
    pub(crate) bytes_asked: Cell<u64>,
    pub(crate) reads: Cell<u64>,
}

impl Fake {
    pub(crate) fn from_files(files: &[(&str, &str)]) -> Self {
        let node = |(path, text): &(&str, &str)| {
            ((*path).to_owned(), Node::File(text.as_bytes().to_vec()))
        };
        Self {
            nodes: files.iter().map(node).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn with(mut self, path: &str, node: Node) -> Self {
        self.nodes.insert(path.to_owned(), node);
        self
    }
}

impl Source for Fake {
    fn entry(&self, path: &RepoPath) -> Entry {
        match self.nodes.get(path.as_str()) {
            None => Entry::Missing,
            Some(Node::File(bytes)) => Entry::File {
                size: bytes.len() as u64,
            },
            Some(Node::Huge(size)) => Entry::File { size: *size },
            Some(Node::Link { to, content }) => Entry::Linked {
                through: Vec::new(),
                to: to.parse().unwrap(),
                size: content.len() as u64,
            },
            Some(Node::Chain { through, to }) => Entry::Linked {
                through: vec![through.parse().unwrap()],
                to: to.parse().unwrap(),
                size: 1,
            },
            Some(Node::Outward) => Entry::LeavesRepository,
            Some(Node::InCircles) => Entry::LinkCycle,
            Some(Node::ToNothing) => Entry::LinkToNothing,
            Some(Node::Directory) => Entry::NotAFile,
            Some(Node::Unreadable) => Entry::File { size: 10 },
        }
    }

    fn read(&self, path: &RepoPath, max: u64) -> Result<Vec<u8>, SourceError> {
        self.bytes_asked.set(self.bytes_asked.get() + max);
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let linked = |node: &&Node| matches!(node, Node::Link { to, .. } if *to == path.as_str());
        // A link is never read itself: only what it leads to is.
        let node = self
            .nodes
            .get(path.as_str())
            .filter(|node| !matches!(node, Node::Link { .. }));
        let bytes = match node.or_else(|| self.nodes.values().find(linked)).unwrap() {
            Node::File(bytes) | Node::Link { content: bytes, .. } => {
                bytes[..bytes.len().min(max)].to_vec()
            }
            Node::Huge(size) => vec![b'x'; max.min(usize::try_from(*size).unwrap())],
            _ => {
                return Err(SourceError {
                    path: path.clone(),
                    problem: "permission denied".to_owned(),
                });
            }
        };
        self.bytes_read
            .set(self.bytes_read.get() + bytes.len() as u64);
        self.reads.set(self.reads.get() + 1);
        Ok(bytes)
    }

    fn is_secret(&self, path: &RepoPath, content: &[u8]) -> Option<String> {
        let by_name = path.file_name().starts_with(".env");
        let by_content = content.windows(10).any(|window| window == b"SECRET-KEY");
        // A key of several lines, which only its end makes one.
        let text = String::from_utf8_lossy(content);
        let spans = text
            .find("BEGIN-KEY")
            .is_some_and(|at| text[at..].contains("END-KEY"));
        (by_name || by_content || spans).then(|| "fake-rule".to_owned())
    }
}

pub(crate) fn full(path: &str) -> Need {
    Need {
        path: path.to_owned(),
        mode: Mode::Full,
        line_ranges: Vec::new(),
    }
}

pub(crate) fn lines(path: &str, ranges: &[[u64; 2]]) -> Need {
    let line_ranges = ranges.iter().map(|range| LineRange::from(*range)).collect();
    Need {
        path: path.to_owned(),
        mode: Mode::Snippets,
        line_ranges,
    }
}

pub(crate) fn request(needs: Vec<Need>, max_files: u64, max_total_bytes: u64) -> FileRequest {
    FileRequest {
        schema_version: RequestVersion::V1,
        goal: "g".to_owned(),
        needs,
        budget: Budget {
            max_files: FileLimit(max_files),
            max_total_bytes: ByteLimit(max_total_bytes),
        },
        reason: "why not".to_owned(),
    }
}
