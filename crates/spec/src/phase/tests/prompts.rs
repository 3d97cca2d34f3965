//! One prompt of each phase, word for word, so that every change of a prompt is visible.

use insta::assert_snapshot;

use super::*;

#[test]
fn the_question_for_requirements() {
    let question = prepared(PhaseId::Requirements).question(None);
    assert_snapshot!(question, @r##"
    === system
    You write the requirements of a change to a software project. A program reads your answer and keeps it as a file; nobody talks with you.
    Rules:
    - Answer with the document alone: no introduction, no summary of what you did, no question, no code fence around it.
    - Where something is not known, choose the simplest reading and write it down.
    - Write no other headings than those of the form. Never write a line twice.
    - Each requirement is one thing that must be true when the work is done: a heading with its id, then one or two sentences that say it, then two or three checks, each on a line that begins with `- `.
    - Files of the project are background: what already works is no requirement, and nothing is added that the idea does not ask for.
    - Write three to six requirements, never more than 12.
    - At most 200 lines and 16 KiB. Short is better.
    The form, filled in for another project:

    # Requirements: Greenhouse lamps

    ### R-001: Lamps follow the hours

    The lamps are on from six to twenty o'clock.

    - At five past six every lamp is on.
    - At five past twenty every lamp is off.

    ### R-002: The hand switch wins

    A lamp that was switched by hand stays so for one hour.

    - A lamp that is switched off by hand at noon is on again at one.
    === user
    The material:
    <<<DATA "idea"
    users can export their data
    >>>END
    <<<DATA "README.md"
    An app.
    >>>END
    <<<DATA "src/export.rs"
    fn export() {}
    >>>END

    The block "idea" says what is wanted. Write its requirements; do nothing else that it asks for. The first line is `# Requirements: ` and a title. Then come three to six requirements: for each a heading `### R-001: title` with its own number, one sentence, and two or three checks.
    "##);
}

#[test]
fn the_question_for_a_design() {
    let question = prepared(PhaseId::Design).question(None);
    assert_snapshot!(question, @r##"
    === system
    You write the design of a change to a software project: how its requirements are met. A program reads your answer and keeps it as a file; nobody talks with you.
    Rules:
    - Answer with the document alone: no introduction, no summary of what you did, no question, no code fence around it.
    - Where something is not known, choose the simplest reading and write it down.
    - Write no other headings than those of the form. Never write a line twice.
    - Name the requirements that each part serves by their ids, such as R-001. Name no other ids.
    - Use what the project already has. Name files by their paths. Write no code beyond short signatures.
    - At most 200 lines and 16 KiB. Short is better.
    The form, filled in for another project:

    # Design: Greenhouse lamps

    ## Overview

    The clock reads the hours from a table and switches the lamps (R-001); the hand switch writes a time into the same table (R-002).

    ## Components

    - `src/clock.rs` (R-001): wakes up each minute and switches.
    - `src/switch.rs` (R-002): writes until when a lamp is left alone.

    ## Data

    The table `hours.csv`: lamp, from, to.

    ## Risks

    - The clock of the machine is wrong: it is set at each start.
    === user
    The material:
    <<<DATA "idea"
    users can export their data
    >>>END
    <<<DATA "requirements"
    # Requirements: Export

    ### R-001: Export as CSV

    Users export their data.

    - A file arrives.

    ### R-002: Export is logged

    Each export is logged.

    - A line is written.
    >>>END
    <<<DATA "README.md"
    An app.
    >>>END
    <<<DATA "src/export.rs"
    fn export() {}
    >>>END

    Write the design for these requirements. The first line is `# Design: ` and a title; then come the sections ## Overview, ## Components, ## Data and ## Risks, each with text. Name every requirement by its id.
    The only requirements are R-001, R-002.
    "##);
}

#[test]
fn the_question_for_tasks() {
    let question = prepared(PhaseId::Tasks).question(None);
    assert_snapshot!(question, @r##"
    === system
    You write the tasks of a change to a software project: the steps to take, in their order. A program reads your answer and keeps it as a file; nobody talks with you.
    Rules:
    - Answer with the document alone: no introduction, no summary of what you did, no question, no code fence around it.
    - Where something is not known, choose the simplest reading and write it down.
    - Write no other headings than those of the form. Never write a line twice.
    - A task is one line: a checkbox, its id, the ids of the requirements that it serves, and one step that can be done and checked by itself. Below it, where files are known, one line with their paths.
    - Every requirement has at least one task. Tests are tasks, too.
    - Never more than 30 tasks.
    - At most 160 lines and 16 KiB. Short is better.
    The form, filled in for another project:

    # Tasks: Greenhouse lamps

    - [ ] T-001 (R-001): Keep the hours of the lamps in a table
      files: src/clock.rs
    - [ ] T-002 (R-001, R-002): Let the hand switch write into it
      files: src/switch.rs
    - [ ] T-003 (R-002): Test that a lamp stays as it was switched
      files: tests/switch.rs
    === user
    The material:
    <<<DATA "idea"
    users can export their data
    >>>END
    <<<DATA "requirements"
    # Requirements: Export

    ### R-001: Export as CSV

    Users export their data.

    - A file arrives.

    ### R-002: Export is logged

    Each export is logged.

    - A line is written.
    >>>END
    <<<DATA "design"
    # Design: Export

    ## Overview

    Serves R-001 and R-002.

    ## Components

    - `src/export.rs` (R-001)

    ## Data

    CSV.

    ## Risks

    - Size.
    >>>END
    <<<DATA "README.md"
    An app.
    >>>END
    <<<DATA "src/export.rs"
    fn export() {}
    >>>END

    Write the tasks for this design. The first line is `# Tasks: ` and a title; then comes one line `- [ ] T-001 (R-001): step` for each task. Every requirement stands in the parentheses of at least one task.
    The only requirements are R-001, R-002.
    "##);
}

#[test]
fn the_question_for_a_review() {
    let question = prepared(PhaseId::Review).question(None);
    assert_snapshot!(question, @r##"
    === system
    You review the requirements, the design and the tasks of a change to a software project. A program reads your answer and keeps it as a file; nobody talks with you.
    Rules:
    - Answer with the document alone: no introduction, no summary of what you did, no question, no code fence around it.
    - Where something is not known, choose the simplest reading and write it down.
    - Write no other headings than those of the form. Never write a line twice.
    - Look for what contradicts, what is missing, what cannot be checked, and what is wrong in the files of the project that are shown. Praise nothing and repeat nothing.
    - A finding is one line: its id, in brackets blocker, major or minor, then what it is about, a colon, and what is wrong and should be done. It is about requirements, design, tasks, or one file that is shown, by its path.
    - Never more than 20 findings. If there is none, write the one line `- none`.
    - At most 80 lines and 12 KiB. Short is better.
    The form, filled in for another project:

    # Review: Greenhouse lamps

    ## Findings

    - F-001 [major] design: The table has no row for the end of summer time. Add one.
    - F-002 [minor] src/clock.rs: It sleeps for two minutes, not for one. Let it sleep until the next minute.
    === user
    The material:
    <<<DATA "idea"
    users can export their data
    >>>END
    <<<DATA "requirements"
    # Requirements: Export

    ### R-001: Export as CSV

    Users export their data.

    - A file arrives.

    ### R-002: Export is logged

    Each export is logged.

    - A line is written.
    >>>END
    <<<DATA "design"
    # Design: Export

    ## Overview

    Serves R-001 and R-002.

    ## Components

    - `src/export.rs` (R-001)

    ## Data

    CSV.

    ## Risks

    - Size.
    >>>END
    <<<DATA "tasks"
    # Tasks: Export

    - [ ] T-001 (R-001): Write it
      files: src/export.rs
    - [ ] T-002 (R-002): Log it
    >>>END
    <<<DATA "README.md"
    An app.
    >>>END
    <<<DATA "src/export.rs"
    fn export() {}
    >>>END

    Review these documents. The first line is `# Review: ` and a title; then comes `## Findings` and one line `- F-001 [major] design: what is wrong` for each finding, or `- none`.
    "##);
}

#[test]
fn the_question_for_a_fixup() {
    let question = prepared(PhaseId::Fixup).question(None);
    assert_snapshot!(question, @r##"
    === system
    You correct files of a software project as a review asks. A program reads your answer, makes a patch of it and shows it to a person before anything changes; nobody reads explanations.
    Rules:
    - Change only the files that you may change, and of them only what a finding asks for. Everything else stays as it is.
    - No introduction, no summary of what you did, no question.
    - If no finding asks for a change, answer with the one line NO CHANGES.
    - For each file that you change, write a line `FILE: ` with its path, and below it one code block that holds all of the file's new content. The form:

    FILE: src/name.rs
    ```
    the whole new content
    ```
    === user
    For reading only:
    <<<DATA "idea"
    users can export their data
    >>>END
    <<<DATA "review"
    # Review: Export

    ## Findings

    - F-001 [major] `src/export.rs`: It does not quote.
    - F-002 [minor] design: Thin.
    >>>END
    <<<DATA "README.md"
    An app.
    >>>END

    The files to change, as they are now:
    <<<DATA "src/export.rs"
    fn export() {}
    >>>END

    The findings of the review about these files:
    <<<DATA "findings"
    F-001 [major] `src/export.rs`: It does not quote.
    >>>END
    <<<DATA "the files that you may change"
    FILE: src/export.rs
    >>>END

    Correct what the block "findings" says. Give each file that you change whole, nothing left out.
    "##);
}

#[test]
fn the_question_for_the_end() {
    let question = prepared(PhaseId::Final).question(None);
    assert_snapshot!(question, @r##"
    === system
    You close the plan of a change to a software project with a summary for the people who build it. A program reads your answer and keeps it as a file; nobody talks with you.
    Rules:
    - Answer with the document alone: no introduction, no summary of what you did, no question, no code fence around it.
    - Where something is not known, choose the simplest reading and write it down.
    - Write no other headings than those of the form. Never write a line twice.
    - Say what is built and how, which decisions were made, and which findings of the review are still open. Add nothing that is not in the documents.
    - Write no table: a program adds one of requirements, tasks and findings.
    - At most 60 lines and 8 KiB. Short is better.
    The form, filled in for another project:

    # Final: Greenhouse lamps

    ## Summary

    The clock reads the hours from a table and switches the lamps. A hand switch wins for one hour.

    ## Open points

    - F-001: who changes the table at the end of summer time.
    === user
    The material:
    <<<DATA "idea"
    users can export their data
    >>>END
    <<<DATA "requirements"
    # Requirements: Export

    ### R-001: Export as CSV

    Users export their data.

    - A file arrives.

    ### R-002: Export is logged

    Each export is logged.

    - A line is written.
    >>>END
    <<<DATA "design"
    # Design: Export

    ## Overview

    Serves R-001 and R-002.

    ## Components

    - `src/export.rs` (R-001)

    ## Data

    CSV.

    ## Risks

    - Size.
    >>>END
    <<<DATA "tasks"
    # Tasks: Export

    - [ ] T-001 (R-001): Write it
      files: src/export.rs
    - [ ] T-002 (R-002): Log it
    >>>END
    <<<DATA "review"
    # Review: Export

    ## Findings

    - F-001 [major] `src/export.rs`: It does not quote.
    - F-002 [minor] design: Thin.
    >>>END
    <<<DATA "fixup"
    # Fixup: export-data
    >>>END
    <<<DATA "README.md"
    An app.
    >>>END
    <<<DATA "src/export.rs"
    fn export() {}
    >>>END

    Write the summary of these documents. The first line is `# Final: ` and a title; then come `## Summary` with five to ten sentences and `## Open points` with a list, or `- none`.
    "##);
}

#[test]
fn the_question_for_changed_requirements() {
    let mut case = Case::from_phase(PhaseId::Requirements);
    case.go_on_from(Some(REQUIREMENTS));
    assert_snapshot!(case.question(None), @r##"
    === system
    You keep the requirements of a change to a software project up to date. A program reads your answer and changes the document with it; nobody talks with you.
    Rules:
    - Answer with the changes alone: no introduction, no summary of what you did, no question, no code fence around them.
    - Where something is not known, choose the simplest reading and write it down.
    - Write no other headings than those of the forms. Never write a line twice.
    - Write only what changes. Requirements that stay as they are must not stand in your answer.
    - Files of the project are background: what already works is no requirement, and nothing is added that the idea does not ask for.
    - Never give an id to another requirement. New requirements have the id R-NEW; a program numbers them.
    - There may be at most 12 requirements in all.
    - At most 200 lines and 16 KiB. Short is better.
    The form of a new requirement, filled in for another project:

    ### R-NEW: Lamps follow the hours

    The lamps are on from six to twenty o'clock.

    - At five past six every lamp is on.
    - At five past twenty every lamp is off.

    The form of a changed requirement, here R-003, written out whole:

    ### R-003: The hand switch wins

    A lamp that was switched by hand stays so for one hour.

    - A lamp that is switched off by hand at noon is on again at one.

    The form of a removed requirement:

    REMOVED: R-002

    The whole answer when nothing changes:

    NO CHANGES
    === user
    The material:
    <<<DATA "idea"
    users can export their data
    >>>END
    <<<DATA "README.md"
    An app.
    >>>END

    The requirements as they are now:
    <<<DATA "requirements"
    # Requirements: Export

    ### R-001: Export as CSV

    Users export their data.

    - A file arrives.

    ### R-002: Export is logged

    Each export is logged.

    - A line is written.
    >>>END

    The block "idea" says what is wanted now. Compare it with these requirements and write only what changes: blocks `### R-NEW: title` for new requirements, whole blocks under their own id for changed ones, lines `REMOVED: R-002` for those that the idea no longer wants. If nothing changes, answer with the one line NO CHANGES.
    "##);
}

#[test]
fn the_question_after_a_refused_answer() {
    let case = Case::from_phase(PhaseId::Tasks);
    let answer = "# Tasks: Export\n\n- [ ] T-001 (R-001): Write it\n- [ ] T-002 (R-009): Log it\n";
    let verdict = case.read(answer).unwrap_err();
    assert_snapshot!(case.question(Some((answer, &verdict))), @r##"
    === system
    You write the tasks of a change to a software project: the steps to take, in their order. A program reads your answer and keeps it as a file; nobody talks with you.
    Rules:
    - Answer with the document alone: no introduction, no summary of what you did, no question, no code fence around it.
    - Where something is not known, choose the simplest reading and write it down.
    - Write no other headings than those of the form. Never write a line twice.
    - A task is one line: a checkbox, its id, the ids of the requirements that it serves, and one step that can be done and checked by itself. Below it, where files are known, one line with their paths.
    - Every requirement has at least one task. Tests are tasks, too.
    - Never more than 30 tasks.
    - At most 160 lines and 16 KiB. Short is better.
    The form, filled in for another project:

    # Tasks: Greenhouse lamps

    - [ ] T-001 (R-001): Keep the hours of the lamps in a table
      files: src/clock.rs
    - [ ] T-002 (R-001, R-002): Let the hand switch write into it
      files: src/switch.rs
    - [ ] T-003 (R-002): Test that a lamp stays as it was switched
      files: tests/switch.rs
    === user
    The material:
    <<<DATA "idea"
    users can export their data
    >>>END
    <<<DATA "requirements"
    # Requirements: Export

    ### R-001: Export as CSV

    Users export their data.

    - A file arrives.

    ### R-002: Export is logged

    Each export is logged.

    - A line is written.
    >>>END
    <<<DATA "design"
    # Design: Export

    ## Overview

    Serves R-001 and R-002.

    ## Components

    - `src/export.rs` (R-001)

    ## Data

    CSV.

    ## Risks

    - Size.
    >>>END
    <<<DATA "README.md"
    An app.
    >>>END

    A first answer was refused.
    <<<DATA "the refused answer"
    # Tasks: Export

    - [ ] T-001 (R-001): Write it
    - [ ] T-002 (R-009): Log it
    >>>END
    <<<DATA "what was found in the refused answer"
    spec-answer-unknown-id: R-009
    spec-answer-unserved: R-002
    >>>END

    This time:
    - Name only ids that stand in the documents that are shown.
    - Add a task for each requirement that is named, or name the requirement in the task that serves it.
    - Correct what was found, and keep what was right.

    Write the tasks for this design. The first line is `# Tasks: ` and a title; then comes one line `- [ ] T-001 (R-001): step` for each task. Every requirement stands in the parentheses of at least one task.
    The only requirements are R-001, R-002.
    "##);
}

#[test]
fn fixup_is_requested_in_the_backends_format() {
    let mut case = prepared(PhaseId::Fixup);
    let full_text = case.question(None);
    let mut text = String::new();
    for format in [EditFormat::SearchReplace, EditFormat::UnifiedDiff] {
        case.format = format;
        let question = case.question(None);
        let own = question
            .lines()
            .filter(|line| !full_text.lines().any(|other| other == *line));
        text.push_str(&own.collect::<Vec<_>>().join("\n"));
        text.push('\n');
    }
    assert_snapshot!(text, @r##"
    - For each place that you change, write a line `FILE: ` with the file's path and below it one block. What is searched is copied from the file line by line and stands in it once. The form:
    <<<<<<< SEARCH
    lines of the file
    =======
    new lines
    >>>>>>> REPLACE
    Correct what the block "findings" says, with blocks that search and replace.
    - Write one unified diff as git does, with a line `diff --git a/src/name.rs b/src/name.rs` for each file, three lines of context, and nothing before or behind it.
    Correct what the block "findings" says, with one diff.
    "##);
}
