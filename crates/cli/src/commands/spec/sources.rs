//! The idea of a spec, and the project files that its phases may see, from the command line.
//!
//! Invariants: sources are used in the order in which they are named, issues last. Standard input is read
//! at most once. A path on the command line is relative to the working directory, wherever the project's
//! directory is.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use crucible_host::words::shell_word;
use crucible_model::{ByteLimit, Failure, one_line};
use crucible_repo::Gh;
use crucible_spec::session::{GivenIdea, IdeaOrigin};
use crucible_spec::{IDEA, IdeaBuilder, IssueRef, SpecError, SpecId, SpecStore};
use crucible_terminal::input::InputNotice;

use crate::app::App;

/// The note if standard input is open but was not named, and nothing arrives.
const AWAITED: &str = "note: reading the idea from standard input until its end; to continue without it, run \
the command with `< /dev/null`";

/// The note if standard input may have content but the spec already has an idea.
const UNREAD: &str = "note: this spec has an idea, so standard input is not read; use `--source -` to read a \
new idea from it";

/// The longest command that names sources, in bytes; a document has less than 8 KB.
const MAX_COMMAND_LEN: usize = 500;

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
    pub(crate) context: Vec<String>,
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
    ) -> Result<GivenIdea, Failure> {
        if self
            .source
            .iter()
            .filter(|source| is_standard_input(source))
            .count()
            > 1
        {
            return Err(Failure::usage(
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
                standard_input(app, limit, InputNotice::Saying(AWAITED))?,
            )?;
        }
        match builder.finish() {
            Ok(idea) => Ok(GivenIdea {
                idea,
                origin: IdeaOrigin::Given,
            }),
            // An empty named source is an error. Empty standard input that was not named is ignored.
            Err(SpecError::EmptyIdea) if !is_named => Ok(GivenIdea::stored(store, limit)?),
            Err(error) => Err(error.into()),
        }
    }

    /// The command that starts a spec with the same sources.
    pub(crate) fn repeat_command(&self, spec: &SpecId) -> String {
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
        if command.len() <= MAX_COMMAND_LEN {
            command
        } else {
            plain
        }
    }

    fn read(&self, app: &App, builder: &mut IdeaBuilder, limit: ByteLimit) -> Result<(), Failure> {
        for source in &self.source {
            if is_standard_input(source) {
                builder.text(
                    "standard input",
                    standard_input(app, limit, InputNotice::Silently)?,
                )?;
            } else {
                builder.source(source, app.env.working_directory())?;
            }
        }
        if self.issue.is_empty() {
            return Ok(());
        }
        let gh = Gh::new(app.runtime().sandbox, &app.env);
        app.block_on(async {
            for issue in &self.issue {
                builder.issue(&gh, issue).await?;
            }
            Ok(())
        })
    }
}

fn standard_input(app: &App, limit: ByteLimit, awaited: InputNotice) -> Result<Vec<u8>, Failure> {
    let most = usize::try_from(IdeaBuilder::of_use(limit).0).unwrap_or(usize::MAX);
    app.read_input(most, awaited)?.map_err(|why| {
        Failure::usage(format!("cannot read the idea from standard input: {why}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_command_quotes_the_same_sources() {
        let again = |source: &[&str], issue: &[&str]| {
            let source = source.iter().map(PathBuf::from).collect();
            let issue = issue.iter().map(|issue| issue.parse().unwrap()).collect();
            SourceFlags {
                source,
                issue,
                context: Vec::new(),
            }
            .repeat_command(&"e3".parse().unwrap())
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
}
