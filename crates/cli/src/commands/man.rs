//! `crucible man`: manual pages, made from the same texts as `--help`.

use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use crucible_host::fs::{create_dir_all, write_atomic};
use crucible_model::{ExitStatus, Failure, counted};

use super::Arguments;
use crate::app::App;

/// Print the manual page, or write the pages of all commands
///
/// For example: `crucible man | man -l -`, or `crucible man --dir ~/.local/share/man/man1` and then `man crucible-run-start`.
#[derive(Args)]
pub(crate) struct Man {
    /// Write a page for each command into this directory, which is created if missing
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let mut all = Arguments::command();
        // Gives each command its options and its whole name.
        all.build();
        let Some(dir) = &self.dir else {
            app.output.bytes(&page(&all));
            return Ok(ExitStatus::Success);
        };
        create_dir_all(dir)?;
        let mut written = 0;
        each(&all, "crucible", &mut |command, name| {
            write_atomic(
                &dir.join(format!("{}.1", name.replace(' ', "-"))),
                &page(command),
            )?;
            written += 1;
            Ok(())
        })?;
        if app.output.is_json() {
            let document = serde_json::json!({
                "schema_version": "crucible-man-v1",
                "directory": dir,
                "pages": written,
            });
            app.output.json(&document)?;
        } else {
            app.output.line(&format!(
                "wrote {} to {}",
                counted(written, "page"),
                dir.display()
            ));
        }
        Ok(ExitStatus::Success)
    }
}

/// Calls `with` for a command and those below it, with the words that call them.
fn each(
    command: &Command,
    words: &str,
    with: &mut impl FnMut(&Command, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    with(command, words)?;
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        each(below, &format!("{words} {}", below.get_name()), with)?;
    }
    Ok(())
}

fn page(command: &Command) -> Vec<u8> {
    let mut text = Vec::new();
    // Nothing fails that writes into memory.
    let _ = clap_mangen::Man::new(command.clone()).render(&mut text);
    text
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "the test reads a page and may rewrite it"
)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use super::*;

    /// Every command with its help, as `docs/commands.md` holds it.
    fn reference() -> String {
        let mut all = Arguments::command().term_width(100);
        all.build();
        let mut text = String::from(
            "# Commands\n\nThe help of every command, as `--help` prints it. This page is generated: a test compares it with the program, and\n\
             `UPDATE_DOCS=1 cargo xtask test command_reference` rewrites it.\n",
        );
        each(&all, "crucible", &mut |command, words| {
            let help = command
                .clone()
                .term_width(100)
                .render_long_help()
                .to_string();
            let help: Vec<&str> = help.lines().map(str::trim_end).collect();
            let _ = write!(
                text,
                "\n## {words}\n\n```text\n{}\n```\n",
                help.join("\n").trim_end()
            );
            Ok(())
        })
        .unwrap_or_default();
        text
    }

    #[test]
    fn command_reference_matches_program_output() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
        let now = reference();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            write_atomic(&page, now.as_bytes()).unwrap();
        }
        let committed = std::fs::read_to_string(&page).unwrap_or_default();
        assert!(
            committed == now,
            "docs/commands.md is out of date: run the command at its top"
        );
    }

    /// Every command, the hidden ones too: a new one has no snapshot, a removed one leaves its file behind.
    #[test]
    fn long_help_matches_its_snapshot() {
        let mut all = Arguments::command().term_width(100);
        all.build();
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../../tests/cli/snapshots/help");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let mut names = BTreeSet::new();
        each(&all, "crucible", &mut |command, words| {
            let help = command.clone().term_width(100).render_long_help();
            let name = words.replace(' ', "-");
            settings.bind(|| insta::assert_snapshot!(name.as_str(), help.to_string()));
            names.insert(format!("{name}.snap"));
            Ok(())
        })
        .unwrap();
        let snapshots = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/snapshots/help");
        let files = std::fs::read_dir(snapshots).unwrap();
        let names_of = |file: std::io::Result<std::fs::DirEntry>| {
            file.unwrap().file_name().into_string().unwrap()
        };
        let snapshots: BTreeSet<String> = files
            .map(names_of)
            .filter(|name| name.ends_with(".snap"))
            .collect();
        assert_eq!(snapshots, names);
    }

    #[test]
    fn every_command_has_manual_page_with_options() {
        let mut all = Arguments::command();
        all.build();
        let mut names = Vec::new();
        each(&all, "crucible", &mut |command, words| {
            let text = String::from_utf8(page(command)).unwrap();
            assert!(
                text.contains(".SH SYNOPSIS") && text.contains("\\-\\-help"),
                "{words}: {text}"
            );
            names.push(words.to_owned());
            Ok(())
        })
        .unwrap();
        assert!(
            names.iter().any(|name| name == "crucible run start"),
            "{names:?}"
        );
    }
}
