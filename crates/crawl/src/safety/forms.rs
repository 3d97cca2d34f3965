//! Lists the accepted command forms for prompts: generated from the table that judges plans, so that a
//! model sees exactly the forms that pass.

use std::fmt::Write as _;
use std::sync::LazyLock;

use crucible_repo::BuildSystem;

use super::environment::{ALLOWED, COMPILERS};
use super::{allowed_prefixes, programs};

/// The list of each build system, in the order of [`BuildSystem::ALL`].
static LISTS: LazyLock<Vec<String>> = LazyLock::new(|| BuildSystem::ALL.map(list).into());

/// The list of allowed variables.
static VARIABLES: LazyLock<String> = LazyLock::new(|| {
    let compilers = COMPILERS
        .iter()
        .map(|(variable, names)| format!("{variable} ({}, or with a version)", names.join(", ")));
    let all = ALLOWED
        .iter()
        .map(|name| (*name).to_owned())
        .chain(compilers);
    all.collect::<Vec<_>>().join(", ")
});

/// The accepted command forms of this build system, one per line.
pub(crate) fn accepted_forms(system: BuildSystem) -> &'static str {
    let place = BuildSystem::ALL.iter().position(|known| *known == system);
    place
        .and_then(|place| LISTS.get(place))
        .map_or("", String::as_str)
}

/// The allowed variables.
pub(crate) fn accepted_variables() -> &'static str {
    &VARIABLES
}

fn list(system: BuildSystem) -> String {
    let mut lines: Vec<(Vec<String>, String)> = Vec::new();
    for (begins, follows) in allowed_prefixes(system)
        .iter()
        .flat_map(|prefix| programs::forms_with(prefix))
    {
        match lines.iter_mut().find(|(_, known)| *known == follows) {
            Some((all, _)) if all.contains(&begins) => {}
            Some((all, _)) => all.push(begins),
            None => lines.push((vec![begins], follows)),
        }
    }
    let mut text = String::new();
    let mut has_tools = false;
    for (begins, follows) in lines {
        has_tools |= follows.starts_with("TOOL");
        let begins: Vec<String> = begins.iter().map(|begin| format!("`{begin}`")).collect();
        let _a_string_takes_it = writeln!(text, "  - {}: {follows}", begins.join(", "));
    }
    for (name, follows) in programs::tools().filter(|_| has_tools) {
        let _a_string_takes_it = writeln!(text, "  - TOOL `{name}`: {follows}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::artifact::{PlanV1, fixture};
    use crate::safety::{Workspace, validate_plan_safety};

    /// Accepted and refused commands, one per line.
    const GOLDEN: &str = include_str!("../../tests/it/safety/golden.txt");

    /// The accepted commands of a build system.
    fn accepted(system: BuildSystem) -> impl Iterator<Item = &'static str> {
        let commands = GOLDEN
            .lines()
            .filter_map(|line| line.strip_prefix("+ ")?.split_once(' '));
        commands
            .filter(move |(of, _)| *of == system.as_str())
            .map(|(_, command)| command)
    }

    fn judge(system: BuildSystem, command: &str) -> Vec<String> {
        let steps = vec![fixture::step("build", command)];
        let mut plan = PlanV1 {
            steps,
            ..fixture::plan_document()
        };
        plan.detected.build_system = system.as_str().to_owned();
        let workspace = Workspace {
            root: PathBuf::from("/workspace"),
            ..Workspace::default()
        };
        validate_plan_safety(&plan, &workspace).violations()
    }

    /// What a model sees: the beginnings of each line, and its options, as written.
    fn shown_forms(system: BuildSystem) -> Vec<(Vec<String>, Vec<String>)> {
        let mut launchers = Vec::new();
        let mut lines = Vec::new();
        for line in accepted_forms(system).lines() {
            let line = line.strip_prefix("  - ").unwrap();
            let (begins, follows) = line.split_once("`: ").unwrap();
            let named: Vec<String> = begins
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            if follows.starts_with("TOOL") {
                launchers.extend(named);
                continue;
            }
            let is_tool = begins.starts_with("TOOL ");
            let begins = match is_tool {
                // Bare `npx` needs an earlier step.
                true => launchers
                    .iter()
                    .filter(|head| *head != "npx")
                    .map(|head| format!("{head} {}", named[0]))
                    .collect(),
                false => named,
            };
            let part = |text: &str| {
                text.split("; behind ")
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            };
            let own = part(follows);
            let options = own
                .split_once("; options ")
                .map(|(_, rest)| rest.to_owned())
                .unwrap_or_default();
            let options = options
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            lines.push((begins, options));
        }
        lines
    }

    /// Words that match the text of an option.
    fn samples(option: &str) -> Vec<String> {
        let values = |kind: &str| -> Vec<String> {
            match kind {
                "N" => vec!["2".to_owned()],
                "NAME" | "PATH" => vec!["x".to_owned()],
                "NAME,NAME" => vec!["x".to_owned(), "x,y".to_owned()],
                "OUT" | "DIR" => vec!["build".to_owned()],
                // A rule in words, for which the golden file has examples.
                kind if kind.starts_with('<') => Vec::new(),
                kind => kind.split('|').map(str::to_owned).collect(),
            }
        };
        let is_apart = |(name, _): &(&str, &str)| !name.contains(['[', '=']);
        if let Some((name, kind)) = option.split_once(' ').filter(is_apart) {
            return values(kind)
                .into_iter()
                .map(|value| format!("{name} {value}"))
                .collect();
        }
        if let Some((name, kind)) = option.split_once('[') {
            let (sign, kind) = match kind.strip_prefix('=') {
                Some(kind) => ("=", kind),
                None => ("", kind),
            };
            let with = values(kind.trim_end_matches(']'))
                .into_iter()
                .map(|value| format!("{name}{sign}{value}"));
            return with.chain([name.to_owned()]).collect();
        }
        match option.split_once('=') {
            Some((name, kind)) => values(kind)
                .into_iter()
                .map(|value| format!("{name}={value}"))
                .collect(),
            None => vec![option.to_owned()],
        }
    }

    #[test]
    fn every_accepted_command_has_a_listed_form() {
        for system in BuildSystem::ALL {
            let lines = shown_forms(system);
            let begins: Vec<&String> = lines.iter().flat_map(|(begins, _)| begins).collect();
            for command in accepted(system) {
                // A prefix such as `cp target/` is the beginning of a word.
                let is_listed = begins.iter().any(|begin| {
                    let rest = command.strip_prefix(begin.as_str());
                    rest.is_some_and(|rest| {
                        rest.is_empty()
                            || rest.starts_with([' ', '='])
                            || begin.ends_with('/')
                            || begin.contains(" -")
                    })
                });
                assert!(is_listed, "{system}: {command}: {}", accepted_forms(system));
            }
        }
    }

    #[test]
    fn listed_forms_are_accepted_with_every_option() {
        let mut wrong = Vec::new();
        let mut count = 0;
        for system in BuildSystem::ALL {
            for (begins, options) in shown_forms(system) {
                // Forms that continue alike have one example for all beginnings, and a tool one for all
                // launchers.
                let tool = begins
                    .iter()
                    .find_map(|begin| begin.rsplit(' ').next())
                    .filter(|_| has_tool(&begins));
                let rests: Vec<(String, String)> = match tool {
                    Some(tool) => BuildSystem::ALL
                        .into_iter()
                        .flat_map(accepted)
                        .filter_map(|command| {
                            let (head, rest) = format!("{command} ")
                                .split_once(&format!(" {tool} "))
                                .map(|(head, rest)| (head.to_owned(), rest.to_owned()))?;
                            LAUNCHERS
                                .contains(&head.as_str())
                                .then(|| (String::new(), format!(" {}", rest.trim_end())))
                        })
                        .collect(),
                    None => begins
                        .iter()
                        .flat_map(|begin| {
                            accepted(system).filter_map(move |command| {
                                Some((begin, command.strip_prefix(begin.as_str())?))
                            })
                        })
                        .map(|(begin, rest)| (begin.clone(), rest.to_owned()))
                        .collect(),
                };
                if rests.is_empty() {
                    wrong.push(format!("{system}: no example for {begins:?}"));
                    continue;
                }
                for begin in &begins {
                    for sample in options
                        .iter()
                        .flat_map(|option| samples(option))
                        .chain([String::new()])
                    {
                        count += 1;
                        let is_accepted = rests.iter().any(|(of, rest)| {
                            let rest = if of.ends_with('/') && !begin.ends_with('/') {
                                format!(" {rest}")
                            } else {
                                rest.clone()
                            };
                            let (own, behind) = match rest.split_once(" -- ") {
                                Some((own, behind)) => (own.to_owned(), format!(" -- {behind}")),
                                None => (rest.clone(), String::new()),
                            };
                            let all = [
                                format!("{begin}{own} {sample}{behind}"),
                                format!("{begin} {sample}{own}{behind}"),
                            ];
                            all.iter()
                                .any(|command| judge(system, &single_spaced(command)).is_empty())
                        });
                        if !is_accepted {
                            wrong.push(format!("{system}: {begin} {sample}"));
                        }
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(count > 1_000, "{count}");
    }

    const LAUNCHERS: &[&str] = &[
        "npx --no-install",
        "npx --no-install --",
        "npx --no --",
        "npm exec --no --",
        "yarn exec",
        "yarn exec --",
        "pnpm exec",
        "pnpm exec --",
    ];

    fn has_tool(begins: &[String]) -> bool {
        begins.iter().any(|begin| {
            begin
                .rsplit_once(' ')
                .is_some_and(|(head, _)| LAUNCHERS.contains(&head))
        })
    }

    fn single_spaced(command: &str) -> String {
        command
            .split(' ')
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn unlisted_forms_are_refused() {
        for (system, command, text) in [
            (
                BuildSystem::PythonPip,
                "python -m http.server",
                "http.server",
            ),
            (BuildSystem::PythonPoetry, "poetry run bandit .", "bandit"),
            (BuildSystem::NodeNpm, "npx --no-install tsx a.ts", "tsx"),
            (BuildSystem::NodeNpm, "npm exec eslint .", "`npm exec`"),
            (BuildSystem::Make, "make -f x", "`-f PATH`"),
        ] {
            assert!(!judge(system, command).is_empty(), "{command}");
            assert!(!accepted_forms(system).contains(text), "{text}");
        }
    }

    #[test]
    fn every_build_system_has_its_list() {
        for system in BuildSystem::ALL {
            let list = accepted_forms(system);
            assert!(
                list.contains("`mkdir -p`: any number of OUT"),
                "{system}: {list}"
            );
            assert!(list.len() < 12_000, "{system}: {} bytes", list.len());
        }
        assert!(accepted_variables().contains("CC (gcc, clang, cc, or with a version)"));
    }
}
