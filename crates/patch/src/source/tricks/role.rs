//! What a file is for, and what that says about a process that ends there.

use crucible_model::RepoPath;

use super::super::Language;
use super::super::mask::mask;
use super::super::token::tokens;
use super::detection::Confidence;
use crate::class::is_test_path;

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It holds tests.
    Test,
    /// It is where a program starts, or a script: ending the process is its business.
    Program,
    /// It is called like a program, but others may import it: only where it starts may it end.
    Tool,
    /// Part of a program or of a library.
    Source,
}

impl Role {
    /// What the file at `path` is for, by its name and the first words that it had before the patch, `old`: what a patch
    /// brings makes no program of a library.
    pub(crate) fn new(language: Language, path: &RepoPath, old: Option<&[u8]>) -> Self {
        const DIRECTORIES: [&str; 11] = [
            "bin", "cmd", "cli", "script", "scripts", "tools", "example", "examples", "benches",
            "xtask", "commands",
        ];
        const STEMS: [&str; 7] = [
            "main", "__main__", "build", "cli", "manage", "setup", "noxfile",
        ];
        const STARTS: [&str; 4] = ["__main__", "manage", "setup", "noxfile"];
        if is_test_path(path) {
            return Self::Test;
        }
        let (directories, name) = path
            .as_str()
            .rsplit_once('/')
            .unwrap_or(("", path.as_str()));
        let stem = name.split('.').next().unwrap_or(name);
        let was_program = old.is_some_and(|old| {
            old.starts_with(b"#!") && !old.starts_with(b"#![")
                || language == Language::Go && is_go_main(old)
                || language == Language::C && is_c_main(old)
        });
        let is_imported = matches!(language, Language::Python | Language::Script);
        if was_program || is_imported && STARTS.contains(&stem) {
            Self::Program
        } else if STEMS.contains(&stem)
            || directories
                .split('/')
                .any(|segment| DIRECTORIES.contains(&segment))
        {
            if is_imported {
                Self::Tool
            } else {
                Self::Program
            }
        } else {
            Self::Source
        }
    }

    /// How sure it is that the end of the process has no place in such a file. It is a program's business; what tests
    /// import takes them along, and a runner that has printed nothing false may still be made to seem to have passed.
    pub(super) fn exit_weight(self) -> Confidence {
        match self {
            Self::Program => Confidence::Doubtful,
            Self::Tool | Self::Source | Self::Test => Confidence::Certain,
        }
    }
}

fn is_go_main(source: &[u8]) -> bool {
    let masked = mask(Language::Go, source);
    tokens(&masked)
        .get(..2)
        .is_some_and(|start| start[0].is("package") && start[1].is("main"))
}

/// Whether a text of C holds a `main`.
fn is_c_main(source: &[u8]) -> bool {
    let masked = mask(Language::C, source);
    tokens(&masked)
        .windows(3)
        .any(|three| three[0].is("int") && three[1].is("main") && three[2].is("("))
}
