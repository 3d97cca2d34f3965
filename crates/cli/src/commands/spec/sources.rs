//! The idea of a spec, and the project files that its phases may see, from the command line.
//!
//! Invariants: sources are used in the order in which they are named, issues last. Standard input is read
//! at most once. A path on the command line is relative to the working directory, wherever the project's
//! directory is.

use std::io::IsTerminal;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use crucible_host::words::shell_word;
use crucible_llm::ReceiptWarning;
use crucible_model::ByteLimit;
use crucible_repo::Gh;
use crucible_settings::Settings;
use crucible_spec::{
    FileSelectors, IDEA, Idea, IdeaBuilder, IssueRef, PacketLimits, PhaseRun, SpecError, SpecId,
    SpecProject, SpecStore,
};

use crate::app::App;
use crate::commands::run::shared_sandbox;
use crate::error::CommandError;
use crate::input::{self, Awaited};
use crate::text::one_line;

/// The note if standard input is open but was not named, and nothing arrives.
const AWAITED: &str = "note: reading the idea from standard input until its end; to continue without it, run \
the command with `< /dev/null`";

/// The note if standard input may have content but the spec already has an idea.
const UNREAD: &str = "note: this spec has an idea, so standard input is not read; use `--source -` to read a \
new idea from it";

/// The longest command that names sources, in bytes; a document has less than 8 KB.
const LONGEST_COMMAND: usize = 500;

/// The argument that names standard input.
const STANDARD_INPUT: &str = "-";

/// The flags for the idea and for files that a model may see
#[derive(Args, Default)]
pub(crate) struct SourceFlags {
    /// Source of the idea: a file, a directory, or `-` (repeatable)
    ///
    /// A directory stands for its text files, and `-` for standard input.
    ///
    /// Standard input is also read without this flag if the spec has no idea yet and standard input is a
    /// file or a pipe. With a --source or an --issue it is read only if `-` names it. For example:
    /// `--source notes.md --source docs/wishes`
    #[arg(long, value_name = "FILE|DIR|-")]
    source: Vec<PathBuf>,
    /// GitHub issue whose title and text are the idea (repeatable)
    ///
    /// The issue is read through `gh`: `--issue acme/shop#12`, or its https address.
    #[arg(long, value_name = "OWNER/REPO#N", value_parser = issue)]
    issue: Vec<IssueRef>,
    /// File, directory or glob that every phase must see (repeatable)
    ///
    /// For example: `--context src/export.rs --context 'docs/**/*.md'`. If the files exceed the packet
    /// limits, the command fails before any model call.
    #[arg(long, value_name = "PATH|GLOB")]
    context: Vec<String>,
}

/// The idea of a spec, and whether it is the stored one.
pub(crate) struct GivenIdea {
    pub(crate) idea: Idea,
    pub(crate) origin: IdeaOrigin,
}

/// The origin of an idea.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdeaOrigin {
    /// Given with this command, and to be stored.
    Given,
    /// Stored by an earlier command.
    Kept,
}

/// The source of the idea if none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unnamed {
    /// The stored idea; if no idea is stored, standard input unless it is a terminal.
    StandardInput,
    /// The stored idea.
    Kept,
}

impl SourceFlags {
    /// Whether a source of the idea is named.
    pub(crate) fn names_an_idea(&self) -> bool {
        !self.source.is_empty() || !self.issue.is_empty()
    }

    /// Reads the idea from the named sources, or else as `unnamed` says.
    pub(crate) fn idea(
        &self,
        app: &App,
        store: &SpecStore,
        limit: ByteLimit,
        unnamed: Unnamed,
    ) -> Result<GivenIdea, CommandError> {
        if self
            .source
            .iter()
            .filter(|source| is_standard_input(source))
            .count()
            > 1
        {
            return Err(CommandError::usage(
                "--source - is given twice, but standard input can be read only once",
            )
            .hint("Name it once."));
        }
        let is_named = self.names_an_idea();
        let mut builder = IdeaBuilder::new(limit);
        if is_named {
            self.read(app, &mut builder, limit)?;
        } else if unnamed == Unnamed::StandardInput && store.read(IDEA)?.is_some() {
            if brings_something() {
                app.output.remark(UNREAD);
            }
        } else if unnamed == Unnamed::StandardInput && !std::io::stdin().is_terminal() {
            builder.text(
                "standard input",
                standard_input(app, limit, Awaited::Saying(AWAITED))?,
            )?;
        }
        match builder.finish() {
            Ok(idea) => Ok(GivenIdea {
                idea,
                origin: IdeaOrigin::Given,
            }),
            // An empty named source is an error. Empty standard input that was not named is ignored.
            Err(SpecError::EmptyIdea) if !is_named => kept(store, limit),
            Err(error) => Err(error.into()),
        }
    }

    /// The command that starts a spec with the same sources.
    pub(crate) fn again(&self, spec: &SpecId) -> String {
        let mut command = format!("crucible spec {spec}");
        let plain = command.clone();
        if !self.names_an_idea() {
            return command + " --source -";
        }
        let sources = self
            .source
            .iter()
            .map(|source| ("--source", source.display().to_string()));
        let issues = self
            .issue
            .iter()
            .map(|issue| ("--issue", issue.to_string()));
        for (flag, value) in sources.chain(issues) {
            command.push_str(&format!(" {flag} {}", as_word(&value)));
        }
        if command.len() <= LONGEST_COMMAND {
            command
        } else {
            plain
        }
    }

    /// The files that the project's configuration and the command line select.
    pub(crate) fn files(
        &self,
        app: &App,
        project: &SpecProject,
        config: &Settings,
    ) -> Result<FileSelectors, CommandError> {
        let named = self
            .context
            .iter()
            .map(|text| in_project(text, app.env.working_directory(), project.root()));
        Ok(FileSelectors {
            root: project.root().to_owned(),
            named: named.collect::<Result<_, _>>()?,
            include: config.spec.include.clone(),
            exclude: config.spec.exclude.clone(),
        })
    }

    fn read(
        &self,
        app: &App,
        builder: &mut IdeaBuilder,
        limit: ByteLimit,
    ) -> Result<(), CommandError> {
        for source in &self.source {
            if is_standard_input(source) {
                builder.text(
                    "standard input",
                    standard_input(app, limit, Awaited::Silently)?,
                )?;
            } else {
                let name = shown(source, app.env.working_directory());
                builder
                    .path(&name, &app.absolute(source))
                    .map_err(|error| as_given(error, &name, source))?;
            }
        }
        if self.issue.is_empty() {
            return Ok(());
        }
        let gh = Gh::new(shared_sandbox(app), &app.env);
        app.block_on(async {
            for issue in &self.issue {
                builder.issue(&gh, issue).await?;
            }
            Ok(())
        })
    }
}

/// The packet limits of this configuration.
pub(crate) fn packet_limits(config: &Settings) -> PacketLimits {
    PacketLimits {
        max_bytes: config.spec.max_packet_bytes,
        max_lines: config.spec.max_packet_lines,
    }
}

fn kept(store: &SpecStore, limit: ByteLimit) -> Result<GivenIdea, CommandError> {
    let mut builder = IdeaBuilder::new(limit);
    if let Some(bytes) = store.read(IDEA)? {
        builder.text(IDEA, bytes)?;
    }
    Ok(GivenIdea {
        idea: builder.finish()?,
        origin: IdeaOrigin::Kept,
    })
}

fn standard_input(app: &App, limit: ByteLimit, awaited: Awaited) -> Result<Vec<u8>, CommandError> {
    let most = usize::try_from(IdeaBuilder::of_use(limit).0).unwrap_or(usize::MAX);
    input::whole(app, most, awaited)?.map_err(|why| {
        CommandError::usage(format!("cannot read the idea from standard input: {why}"))
            .hint("Pipe it in, or name a file with --source.")
    })
}

/// Whether standard input can provide text: it is not a terminal, `/dev/null` or closed.
fn brings_something() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let file = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(std::fs::File::from);
    let meta = file.and_then(|file| file.metadata());
    meta.is_ok_and(|meta| !meta.file_type().is_char_device())
}

fn is_standard_input(source: &Path) -> bool {
    source.as_os_str() == STANDARD_INPUT
}

fn issue(text: &str) -> Result<IssueRef, String> {
    // The caller that parses the command line already shows the text itself.
    text.parse().map_err(|error: SpecError| match error {
        SpecError::Source { why, .. } => why,
        other => other.to_string(),
    })
}

/// Quotes a text as one shell word on one line.
fn as_word(text: &str) -> String {
    shell_word(&one_line(text))
}

/// The name of a source in the idea. An absolute path would reveal the machine, and would differ between
/// machines.
fn shown(source: &Path, directory: &Path) -> String {
    let below = source.strip_prefix(directory).unwrap_or(source);
    let name = if below.is_absolute() {
        below.file_name().map_or(below, Path::new)
    } else {
        below
    };
    if name.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        name.display().to_string()
    }
}

/// Names a source in an error by the path that the user typed, not by its name in the idea.
fn as_given(error: SpecError, name: &str, source: &Path) -> SpecError {
    match error {
        SpecError::Source { source_name, why } if source_name == name => SpecError::Source {
            source_name: one_line(&source.display().to_string()),
            why,
        },
        other => other,
    }
}

/// Converts a path or glob relative to the working directory into one relative to the project's
/// directory.
fn in_project(text: &str, directory: &Path, root: &Path) -> Result<String, CommandError> {
    let outside = || {
        CommandError::usage(format!(
            "--context {text}: it is not in the project {}",
            root.display()
        ))
        .hint("Name files of the project; use --source to add other files to the idea.")
    };
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let directory = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    if text.is_empty() {
        return Err(outside());
    }
    let (directory, below) = match Path::new(text).is_absolute() {
        true => entering(Path::new(text), &root).ok_or_else(outside)?,
        false => (directory, Path::new(text)),
    };
    // Directories of the working directory are literal names, even with glob characters.
    let is_glob = text.contains(['*', '?', '[', '{', '\\']);
    let mut parts: Vec<String> = Vec::new();
    for part in directory
        .strip_prefix(&root)
        .map_err(|_| outside())?
        .components()
    {
        let part = part.as_os_str().to_str().ok_or_else(outside)?;
        parts.push(if is_glob {
            escaped(part)
        } else {
            part.to_owned()
        });
    }
    for component in below.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str().ok_or_else(outside)?.to_owned()),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop().ok_or_else(outside)?),
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    Ok(if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    })
}

/// The directory where an absolute path enters the project, after following links, and the rest of the
/// path as written.
fn entering<'a>(path: &'a Path, root: &Path) -> Option<(PathBuf, &'a Path)> {
    let ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.into_iter().rev().find_map(|ancestor| {
        let place = ancestor
            .canonicalize()
            .ok()
            .filter(|place| place.starts_with(root))?;
        Some((place, path.strip_prefix(ancestor).ok()?))
    })
}

/// Escapes a name as a glob that matches only that name.
fn escaped(name: &str) -> String {
    let mut glob = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            glob.push('\\');
        }
        glob.push(c);
    }
    glob
}

/// Warns about parts of the sources that were left out, and about other problems with them.
pub(super) fn warn_of_sources(run: &mut PhaseRun<'_>, given: Option<&GivenIdea>) {
    let idea = given.map(|given| &given.idea);
    for passed_over in idea.into_iter().flat_map(|idea| &idea.passed_over) {
        run.warn(ReceiptWarning {
            kind: "file_passed_over".to_owned(),
            message: passed_over.to_string(),
        });
    }
    for note in idea.into_iter().flat_map(|idea| &idea.notes) {
        run.warn(ReceiptWarning {
            kind: "source_note".to_owned(),
            message: note.clone(),
        });
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out links by hand")]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_working_directory_is_one_of_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let below = root.join("web/[id]");
        crucible_host::fs::create_dir_all(&below).unwrap();
        let of = |text: &str, directory: &Path| in_project(text, directory, &root).ok();
        assert_eq!(of("src/a.rs", &root), Some("src/a.rs".to_owned()));
        assert_eq!(of("./src/../*.md", &root), Some("*.md".to_owned()));
        assert_eq!(of("page.tsx", &below), Some("web/[id]/page.tsx".to_owned()));
        assert_eq!(of("*.tsx", &below), Some(r"web/\[id\]/*.tsx".to_owned()));
        assert_eq!(of("../../README.md", &below), Some("README.md".to_owned()));
        assert_eq!(of("../..", &below), Some(".".to_owned()));
        assert_eq!(
            of(root.join("a.md").to_str().unwrap(), &below),
            Some("a.md".to_owned())
        );
        let elsewhere = tempfile::tempdir().unwrap();
        let (link, inner) = (
            elsewhere.path().join("link"),
            elsewhere.path().join("inner"),
        );
        std::os::unix::fs::symlink(&root, &link).unwrap();
        std::os::unix::fs::symlink(&below, &inner).unwrap();
        let through = |link: &Path, rest: &str| of(link.join(rest).to_str().unwrap(), &root);
        assert_eq!(through(&link, "web/*.tsx"), Some("web/*.tsx".to_owned()));
        assert_eq!(
            through(&link, "missing/a.md"),
            Some("missing/a.md".to_owned())
        );
        assert_eq!(
            through(&inner, "page.tsx"),
            Some("web/[id]/page.tsx".to_owned())
        );
        assert_eq!(
            through(&inner, "*.tsx"),
            Some(r"web/\[id\]/*.tsx".to_owned())
        );
        assert_eq!(through(&link, "../x"), None);
        for outside in ["../x", "/etc/passwd", "../../../x", ""] {
            assert_eq!(of(outside, &root), None, "{outside}");
        }
        assert_eq!(
            of("x", dir.path().parent().unwrap()),
            None,
            "a directory outside of the project"
        );
    }

    #[test]
    fn the_command_that_begins_again_names_the_same_sources_as_words_of_a_shell() {
        let again = |source: &[&str], issue: &[&str]| {
            let source = source.iter().map(PathBuf::from).collect();
            let issue = issue.iter().map(|issue| issue.parse().unwrap()).collect();
            SourceFlags {
                source,
                issue,
                context: Vec::new(),
            }
            .again(&"e3".parse().unwrap())
        };
        assert_eq!(again(&[], &[]), "crucible spec e3 --source -");
        assert_eq!(
            again(&["a.md", "-"], &["a/b#3"]),
            "crucible spec e3 --source a.md --source - --issue a/b#3"
        );
        assert_eq!(
            again(&["my 'idea'; rm.md"], &[]),
            r"crucible spec e3 --source 'my '\''idea'\''; rm.md'"
        );
        assert_eq!(again(&["a.md"; 100], &[]), "crucible spec e3");
    }

    #[test]
    fn no_absolute_path_reaches_the_idea() {
        let here = Path::new("/home/me/shop");
        assert_eq!(shown(Path::new("notes/a.md"), here), "notes/a.md");
        assert_eq!(shown(Path::new("/home/me/shop/notes"), here), "notes");
        assert_eq!(shown(Path::new("/tmp/x/idea.md"), here), "idea.md");
        assert_eq!(shown(here, here), ".");
    }
}
