//! The prompts of the patchmaker and the fixer.
//!
//! The words are ours; everything from the repository, the gates and earlier answers is fenced. A prompt has
//! no time, no absolute path and no randomness, so a replay of the run asks the same question.

use crucible_llm::Message;
use crucible_model::{EditFormat, PromptBuilder, PromptText, RepoPath, Untrusted};
use crucible_pack::{ContextPack, PackedFile};
use crucible_patch::{can_splice, defined_names, is_test_path};

use crate::analysis::GateResult;
use crate::contract::Plan;
use crate::role::declined::DECLINED_FORM;
use crate::role::format::in_scope;
use crate::role::request::MAX_LINES;
use crate::scope::is_unambiguous_name;

/// What went wrong with the attempt before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FixBrief {
    /// One line for each reason, already bounded.
    pub(crate) reasons: Vec<String>,
    /// Why the last answer could not be parsed, if so.
    pub(crate) malformed: Vec<String>,
    /// The gates' output, bounded and normalised; empty if they did not run.
    pub(crate) output: String,
    /// The refused change as a patch, bounded; empty if there was none. The whole answer is not shown,
    /// because small models copy what they see.
    pub(crate) patch: String,
    /// The answer without a valid change, bounded. Only people and commands see it, for the reason above.
    pub(crate) answer: String,
    /// The files that the last answer returned as they stand, if it changed nothing.
    pub(crate) unchanged: Vec<String>,
    /// Where a test may be added, if only a test of the change was missing.
    pub(crate) test_places: Vec<String>,
}

/// The part of a prompt on requests for more files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileRequestStatus {
    /// What came of the earlier ones, a line each.
    pub(crate) answered: Vec<String>,
    /// Number of requests left; 0 if none is left, or the model sees everything.
    pub(crate) remaining: u64,
}

/// Builds the conversation that requests a change: the goal, what fails, the code, the answer format.
pub(crate) fn messages(
    format: EditFormat,
    plan: &Plan,
    pack: &ContextPack,
    baseline: &[GateResult],
    brief: Option<&FixBrief>,
    requests: &FileRequestStatus,
) -> Vec<Message> {
    vec![
        Message::system(system()),
        Message::user(user(format, plan, pack, baseline, brief, requests)),
    ]
}

fn system() -> PromptText {
    PromptBuilder::new()
        .fixed_text(
            "You change source code. A program applies your answer to a copy of the repository and runs its tests. Make the \
             smallest change that reaches the goal, and keep everything else exactly as it is.\n",
        )
        .build()
}

fn user(
    format: EditFormat,
    plan: &Plan,
    pack: &ContextPack,
    baseline: &[GateResult],
    brief: Option<&FixBrief>,
    requests: &FileRequestStatus,
) -> PromptText {
    let mine = in_scope(plan, pack);
    let others = pack
        .files
        .iter()
        .filter(|file| !mine.iter().any(|own| own.path == file.path));
    let may_change =
        |file: &&PackedFile| file.path.parse().is_ok_and(|path| plan.may_change(&path));
    let (editable, others): (Vec<&PackedFile>, Vec<&PackedFile>) = others.partition(may_change);
    let mut prompt = PromptBuilder::new()
        .fixed_text("Goal: ")
        .operator(&plan.goal)
        .fixed_text("\n");
    for gate in baseline.iter().filter(|gate| !gate.passed) {
        prompt = prompt.fixed_text("\nThis check fails now:\n").untrusted(
            &format!("output of {}", gate.id),
            &Untrusted::new(gate.excerpt.clone()),
        );
    }
    if let Some(brief) = brief {
        prompt = refused(prompt, brief);
    }
    let groups = [
        ("\nFiles for reading only:\n", others),
        (
            "\nOther sources of the same directory, to change only where the goal needs it:\n",
            editable,
        ),
    ];
    for (mut heading, files) in groups {
        for file in files {
            let text = Untrusted::new(file.readable_text().into_owned());
            prompt = prompt.fixed_text(heading).untrusted(&file.path, &text);
            heading = "";
        }
    }
    // The files to change come right before the answer format, the target last: small models copy what they read last.
    let target = target(&mine, brief);
    let (last, first): (Vec<&PackedFile>, Vec<&PackedFile>) = mine
        .iter()
        .partition(|file| target == Some(file.path.as_str()));
    prompt = prompt.fixed_text("\nThe files that you may change, as they are now:\n");
    for file in first.into_iter().chain(last) {
        prompt = prompt.untrusted(
            &file.path,
            &Untrusted::new(file.readable_text().into_owned()),
        );
    }
    answer_form(prompt, format, plan, &mine, brief, requests).build()
}

/// The file that the answer's example names. Small models change this one, so it should define something, and not
/// be one that the last answer left as it was.
fn target<'p>(mine: &[&'p PackedFile], brief: Option<&FixBrief>) -> Option<&'p str> {
    let parsed = |file: &PackedFile| file.path.parse().ok();
    let is_new =
        |file: &PackedFile| brief.is_none_or(|brief| !brief.unchanged.contains(&file.path));
    let defines = |file: &PackedFile| {
        parsed(file)
            .is_some_and(|path: RepoPath| !defined_names(&path, file.content.as_bytes()).is_empty())
    };
    // Where a whole directory may change, a file of it shows better how one is named.
    let named = || {
        mine.iter()
            .filter(|file| parsed(file).is_some_and(|path| is_unambiguous_name(&path)))
    };
    let found = named()
        .find(|file| is_new(file) && defines(file))
        .or_else(|| named().find(|file| is_new(file)))
        .or_else(|| named().next());
    found.map(|file| file.path.as_str())
}

/// Adds the result of the previous answer.
fn refused(mut prompt: PromptBuilder, brief: &FixBrief) -> PromptBuilder {
    if brief.reasons == brief.malformed {
        return prompt;
    }
    prompt = prompt.fixed_text(
        "\nAn earlier change did not reach the goal; the files below are without it.\n",
    );
    if !brief.patch.is_empty() {
        prompt = prompt.untrusted("the earlier change", &Untrusted::new(brief.patch.clone()));
    }
    prompt = prompt.untrusted(
        "why it was refused",
        &Untrusted::new(brief.reasons.join("\n")),
    );
    if !brief.output.is_empty() {
        prompt = prompt.untrusted(
            "what the checks printed with it",
            &Untrusted::new(brief.output.clone()),
        );
    }
    if brief.test_places.is_empty() {
        return prompt.fixed_text("\nMake another change that avoids this.\n");
    }
    prompt = prompt.fixed_text(
        "\nIf a failing test is about the goal, make another change that turns it green. If none is, make the change again, and \
         add a test that fails without it. The test may be in a new file, or at the end of a file of \
         tests; existing tests stay as they are. Tests may be added in:\n",
    );
    for place in &brief.test_places {
        prompt = prompt
            .operator(&place.escape_debug().to_string())
            .fixed_text("\n");
    }
    prompt
}

/// Adds how to request more files, and the results of earlier requests.
fn more_files(mut prompt: PromptBuilder, requests: &FileRequestStatus) -> PromptBuilder {
    if !requests.answered.is_empty() {
        let answered = Untrusted::new(requests.answered.join("\n"));
        prompt = prompt
            .fixed_text("\nYou asked for more files:\n")
            .untrusted("what came of it", &answered);
    }
    if requests.remaining > 0 {
        prompt = prompt
            .fixed_text("\nIf a file is missing that you must see, answer only with at most ")
            .number(MAX_LINES as u64)
            .fixed_text(" lines like `NEED: path/of/file`, `NEED: path/of/file:10-80` or `SEARCH: words in it`. Such answers left: ")
            .number(requests.remaining)
            .fixed_text(". What you may change stays the same.\n");
    }
    prompt
}

/// Adds how to answer.
fn answer_form(
    mut prompt: PromptBuilder,
    format: EditFormat,
    plan: &Plan,
    mine: &[&PackedFile],
    brief: Option<&FixBrief>,
    requests: &FileRequestStatus,
) -> PromptBuilder {
    prompt = prompt.fixed_text("\nYou may change these files and no others:\n");
    for scope in &plan.scope_allow {
        prompt = prompt
            .operator(&scope.to_string().escape_debug().to_string())
            .fixed_text("\n");
    }
    let ending = match requests.remaining {
        0 => " (any source there)\n",
        _ => " (any source there; ask first for one that you do not see whole)\n",
    };
    for place in &plan.scope_sources {
        prompt = prompt
            .operator(&place.to_string().escape_debug().to_string())
            .fixed_text(ending);
    }
    if !plan.names.iter().any(is_test_path) {
        prompt = prompt.fixed_text("Leave existing tests as they are.\n");
    }
    prompt = prompt.fixed_text(DECLINED_FORM);
    prompt = more_files(prompt, requests);
    // Small models forget what stands before the files.
    prompt = prompt
        .fixed_text("\nThe goal again: ")
        .operator(&plan.goal)
        .fixed_text("\n");
    let first = match (target(mine, brief), plan.scope_allow.first()) {
        (Some(path), _) => path.to_owned(),
        (None, Some(scope)) => scope.to_string().escape_debug().to_string(),
        (None, None) => String::new(),
    };
    prompt = match format {
        EditFormat::WholeFile => prompt
            .fixed_text("\nHow to answer: first say in two or three sentences what the code does wrong and how it must change, for every \
                   part of the goal. Then, for each file that you change, one line with its name and its complete new content, every \
                   function included, in one fenced code block. Abbreviate nothing.\n\nFILE: ")
            .operator(&first)
            .fixed_text("\n```\nthe complete new content\n```\n"),
        EditFormat::SearchReplace => prompt
            .fixed_text("\nHow to answer: for each place that you change, one block. Its upper half holds a few lines exactly as they stand \
                   in the file, enough of them to stand there only once; its lower half holds the lines that take their \
                   place.\n\nFILE: ")
            .operator(&first)
            .fixed_text("\n<<<<<<< SEARCH\nlines as they are now\n=======\nlines as they are to be\n>>>>>>> REPLACE\n"),
        EditFormat::Definitions => prompt
            .fixed_text("\nHow to answer: for each file that you change, one line with its name and then one fenced code block with only the \
                   functions or types that you change or add, each complete from its first line to its last. Leave out \
                   everything else of the file. Write a method below the line of its class. To delete one, write a line like \
                   `DELETE: its_name` or `DELETE: Class.method` below the file's name, outside of the block.\n\nFILE: ")
            .operator(&first)
            .fixed_text("\n```\nthe changed function, complete\n```\n"),
        EditFormat::UnifiedDiff => prompt
            .fixed_text("\nHow to answer: with one unified diff in git's format and nothing else, with three unchanged lines around each \
                   change.\n\ndiff --git a/")
            .operator(&first)
            .fixed_text(" b/")
            .operator(&first)
            .fixed_text("\n--- a/")
            .operator(&first)
            .fixed_text("\n+++ b/")
            .operator(&first)
            .fixed_text("\n@@ -1,3 +1,3 @@\n unchanged line\n-line as it is now\n+line as it is to be\n unchanged line\n"),
    };
    let all_lines = if format == EditFormat::Definitions {
        without_definitions(mine)
    } else {
        Vec::new()
    };
    if !all_lines.is_empty() {
        prompt = prompt
            .fixed_text("\nOf these files give the complete new content instead:\n")
            .untrusted("files to give whole", &Untrusted::new(all_lines.join("\n")));
    }
    if let Some(brief) = brief.filter(|brief| !brief.malformed.is_empty()) {
        prompt = prompt
            .fixed_text("\nYour last answer could not be used, because of its form:\n")
            .untrusted(
                "what is wrong with it",
                &Untrusted::new(brief.malformed.join("\n")),
            );
        if let Some(example) = mine.iter().find_map(|file| example(format, file)) {
            prompt = prompt
                .fixed_text("Answer in this form. The example changes nothing yet; yours holds your change:\n")
                .untrusted("example", &Untrusted::new(example));
        }
    }
    prompt
}

/// Returns an example answer in a format, made from a file; `None` if no line is suitable.
pub(crate) fn example(format: EditFormat, file: &PackedFile) -> Option<String> {
    /// A longer line shows the form no better.
    const MAX_LEN: usize = 120;
    let path = &file.path;
    let lines: Vec<&str> = file.content.lines().take(2_000).collect();
    let is_fit =
        |line: &&str| line.trim().len() > 3 && line.len() <= MAX_LEN && !line.contains("```");
    match format {
        EditFormat::WholeFile => {
            let first = lines.iter().copied().find(is_fit)?;
            Some(format!(
                "FILE: {path}\n```\n{first}\n(and every other line of the file)\n```\n"
            ))
        }
        EditFormat::Definitions => {
            let begins = |line: &&str| {
                let mut words = line.split_whitespace();
                words.any(|word| {
                    matches!(
                        word,
                        "def" | "fn" | "func" | "function" | "class" | "struct"
                    )
                })
            };
            let first = lines.iter().copied().filter(is_fit).find(begins)?;
            Some(format!(
                "FILE: {path}\n```\n{first}\n(and every other line of it)\n```\n"
            ))
        }
        EditFormat::SearchReplace => {
            let once = |line: &&str| lines.iter().filter(|other| *other == line).count() == 1;
            let line = lines.iter().copied().filter(is_fit).take(50).find(once)?;
            Some(format!(
                "FILE: {path}\n<<<<<<< SEARCH\n{line}\n=======\n{line}\n>>>>>>> REPLACE\n"
            ))
        }
        EditFormat::UnifiedDiff => {
            let [first, second, ..] = lines.as_slice() else {
                return None;
            };
            is_fit(first).then(|| {
                format!(
                    "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n-{first}\n+{first}\n {second}\n"
                )
            })
        }
    }
}

/// Returns the files that have no individual definitions.
fn without_definitions<'a>(files: &[&'a PackedFile]) -> Vec<&'a str> {
    let takes = |file: &PackedFile| {
        !file.ranges.is_empty()
            || file
                .path
                .parse()
                .is_ok_and(|path| can_splice(&path, file.content.as_bytes()))
    };
    files
        .iter()
        .filter(|file| !takes(file))
        .map(|file| file.path.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use crucible_pack::PackVersion;

    use super::*;

    const PYTHON: &str = "import math\n\n\ndef area(width):\n    return width\n";

    fn file(path: &str, content: &str) -> PackedFile {
        PackedFile {
            path: path.into(),
            why: "requested".into(),
            content: content.into(),
            truncated: false,
            ranges: Vec::new(),
        }
    }

    fn pack(files: Vec<PackedFile>) -> ContextPack {
        ContextPack {
            schema_version: PackVersion::V1,
            goal: String::new(),
            repo_slug: "r".into(),
            summary: String::new(),
            files,
            omitted: Vec::new(),
        }
    }

    fn plan() -> Plan {
        let text = "Status: SIGNED\nGoal: correct area\nScope-Allow: src\nScope-Deny:\nNames:\nGates: lite\nStop: verified\nBudgets: files=1\n\
                    Behaviors:\nResults:\n";
        Plan::parse(text).unwrap()
    }

    fn brief() -> FixBrief {
        FixBrief {
            reasons: vec!["verify-gate-failed tests: two failed".into()],
            malformed: Vec::new(),
            output: "area is wrong".into(),
            patch: "diff --git x".into(),
            answer: "only people see this".into(),
            unchanged: Vec::new(),
            test_places: Vec::new(),
        }
    }

    /// Checks that these parts occur in the text in this order.
    #[track_caller]
    fn in_order(text: &str, parts: &[&str]) {
        let mut rest = text;
        for part in parts {
            rest = rest
                .split_once(part)
                .unwrap_or_else(|| panic!("{part:?} is not in its place: {text}"))
                .1;
        }
    }

    #[test]
    fn prompt_begins_with_goal_ends_with_format() {
        let pack = pack(vec![
            file("src/a.py", PYTHON),
            file("README.md", "# Area\n"),
        ]);
        let failing = GateResult {
            set_aside: None,
            id: "tests".into(),
            passed: false,
            end: "exit 1".into(),
            excerpt: "assert area(2) == 4".into(),
            tally: None,
            by_environment: false,
            failure: None,
            results: None,
        };
        for (format, form) in [
            (
                EditFormat::WholeFile,
                "FILE: src/a.py\n```\nthe complete new content\n```\n",
            ),
            (
                EditFormat::SearchReplace,
                "FILE: src/a.py\n<<<<<<< SEARCH\n",
            ),
            (EditFormat::Definitions, "the changed function, complete"),
            (
                EditFormat::UnifiedDiff,
                "diff --git a/src/a.py b/src/a.py\n",
            ),
        ] {
            let prompt = user(
                format,
                &plan(),
                &pack,
                std::slice::from_ref(&failing),
                Some(&brief()),
                &FileRequestStatus::default(),
            );
            let text = prompt.as_str();
            assert!(text.starts_with("Goal: correct area\n"), "{text}");
            let order = [
                "This check fails now",
                "assert area(2) == 4",
                "diff --git x",
                "two failed",
                "area is wrong",
                "# Area",
                "def area",
                "You may change these files",
                "src\n",
                "The goal again: correct area\n",
                "How to answer",
                form,
            ];
            in_order(text, &order);
            for nothing in [
                "only people see this",
                "Budget",
                "Status",
                "Role",
                "Scope-Allow",
                "example",
            ] {
                assert!(!text.contains(nothing), "{nothing}: {text}");
            }
        }
    }

    #[test]
    fn example_names_a_file_that_defines_something() {
        let pack = pack(vec![
            file("src/join.h", "int join(char *out);\n"),
            file("src/join.c", "int join(char *out) { return 0; }\n"),
            file("src/more.c", "int more(void) { return 0; }\n"),
        ]);
        let named = |unchanged: &[&str]| {
            let brief = FixBrief {
                unchanged: unchanged.iter().map(|path| (*path).to_owned()).collect(),
                ..brief()
            };
            let prompt = user(
                EditFormat::WholeFile,
                &plan(),
                &pack,
                &[],
                Some(&brief),
                &FileRequestStatus::default(),
            );
            let text = prompt.as_str();
            let (_, example) = text.rsplit_once("FILE: ").unwrap();
            let (_, content) = text.rsplit_once("<<<DATA \"").unwrap();
            let path = example.lines().next().unwrap().to_owned();
            assert!(content.starts_with(&path), "{text}");
            path
        };
        assert_eq!(named(&[]), "src/join.c");
        assert_eq!(named(&["src/join.c"]), "src/more.c");
        assert_eq!(named(&["src/join.c", "src/more.c"]), "src/join.h");
        assert_eq!(
            named(&["src/join.c", "src/more.c", "src/join.h"]),
            "src/join.h"
        );
    }

    #[test]
    fn malformed_answer_gets_format_example() {
        let pack = pack(vec![file("src/a.py", PYTHON)]);
        let malformed = vec!["answer-no-edit answer: no edit".to_owned()];
        let only = FixBrief {
            reasons: malformed.clone(),
            malformed: malformed.clone(),
            patch: String::new(),
            ..brief()
        };
        let also = FixBrief {
            malformed,
            ..brief()
        };
        for (format, text) in [
            (EditFormat::WholeFile, "FILE: src/a.py\n```\nimport math\n"),
            (
                EditFormat::SearchReplace,
                "<<<<<<< SEARCH\nimport math\n=======\nimport math\n>>>>>>> REPLACE\n",
            ),
            (
                EditFormat::Definitions,
                "FILE: src/a.py\n```\ndef area(width):\n",
            ),
            (
                EditFormat::UnifiedDiff,
                "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n-import math\n+import math\n \n",
            ),
        ] {
            let prompt_for = |brief: &FixBrief| {
                user(
                    format,
                    &plan(),
                    &pack,
                    &[],
                    Some(brief),
                    &FileRequestStatus::default(),
                )
                .as_str()
                .to_owned()
            };
            in_order(
                &prompt_for(&only),
                &[
                    "How to answer",
                    "could not be used",
                    "answer-no-edit",
                    "Answer in this form",
                    text,
                ],
            );
            assert!(!prompt_for(&only).contains("An earlier change"));
            in_order(
                &prompt_for(&also),
                &["An earlier change", "two failed", "could not be used", text],
            );
        }
        // A file of which no line shows a form gives no example.
        for format in EditFormat::ALL {
            assert_eq!(example(format, &file("a.txt", "}\n}\n")), None);
        }
    }

    #[test]
    fn requests_are_offered_only_while_allowed() {
        let pack = pack(vec![file("src/a.py", PYTHON)]);
        let prompt_for = |requests: &FileRequestStatus| {
            user(EditFormat::WholeFile, &plan(), &pack, &[], None, requests)
                .as_str()
                .to_owned()
        };
        let plain = prompt_for(&FileRequestStatus::default());
        assert!(
            !plain.contains("NEED:") && !plain.contains("SEARCH:"),
            "{plain}"
        );
        let answered = vec!["NEED: b.py: src/b.py is shown, for reading only".to_owned()];
        let last = prompt_for(&FileRequestStatus {
            answered: answered.clone(),
            remaining: 0,
        });
        in_order(
            &last,
            &["You asked for more files", "NEED: b.py", "How to answer"],
        );
        assert!(!last.contains("If a file is missing"), "{last}");
        let more = prompt_for(&FileRequestStatus {
            answered,
            remaining: 1,
        });
        in_order(
            &more,
            &[
                "You asked for more files",
                "`NEED: path/of/file`",
                "Such answers left: 1.",
                "How to answer",
            ],
        );
        // Only these lines are added.
        let offered = prompt_for(&FileRequestStatus {
            answered: Vec::new(),
            remaining: 2,
        });
        assert_eq!(
            offered
                .replacen("\nIf a file is missing", "\0", 1)
                .split_once('\0')
                .unwrap()
                .0,
            plain.split_once("\nThe goal again").unwrap().0
        );
    }

    #[test]
    fn package_sources_precede_files_in_scope() {
        let outline = PackedFile {
            ranges: vec![crucible_pack::LineRange { start: 1, end: 1 }],
            ..file("lib/outlined.py", "def far():\n")
        };
        let pack = pack(vec![
            file("src/a.py", PYTHON),
            file("lib/near.py", "near = 1\n"),
            file("lib/test_near.py", "test = 1\n"),
            outline,
        ]);
        let plan = Plan {
            scope_sources: vec!["lib/**".parse().unwrap()],
            ..plan()
        };
        let prompt_for = |left: u64| {
            let requests = FileRequestStatus {
                answered: Vec::new(),
                remaining: left,
            };
            user(EditFormat::WholeFile, &plan, &pack, &[], None, &requests)
                .as_str()
                .to_owned()
        };
        let order = [
            "Files for reading only",
            "test = 1",
            "Other sources of the same directory",
            "near = 1",
            "def far",
            "The files that you may change, as they are now",
            "def area",
            "You may change these files and no others:\nsrc\nlib/** (any source there",
        ];
        in_order(&prompt_for(0), &order);
        assert!(prompt_for(0).contains("lib/** (any source there)\n"));
        assert!(
            prompt_for(2).contains(
                "lib/** (any source there; ask first for one that you do not see whole)\n"
            )
        );
    }

    #[test]
    fn definitions_prompt_names_whole_files() {
        let pack = pack(vec![
            file("src/a.rs", "fn a() {}\n"),
            file("src/b.rb", "def b; end\n"),
            file("src/c.rs", "fn (\n"),
        ]);
        let plan = plan();
        let prompt = user(
            EditFormat::Definitions,
            &plan,
            &pack,
            &[],
            None,
            &FileRequestStatus::default(),
        );
        let (before, named) = prompt
            .as_str()
            .split_once("give the complete new content instead")
            .unwrap();
        assert!(
            named.contains("src/b.rb\nsrc/c.rs\n") && !named.contains("src/a.rs"),
            "{named}"
        );
        assert!(before.contains("fn a() {}"));
        for format in [
            EditFormat::WholeFile,
            EditFormat::SearchReplace,
            EditFormat::UnifiedDiff,
        ] {
            assert!(
                !user(
                    format,
                    &plan,
                    &pack,
                    &[],
                    None,
                    &FileRequestStatus::default()
                )
                .as_str()
                .contains("instead:")
            );
        }
    }
}
