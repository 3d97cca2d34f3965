//! The four prompts, as tables of our own words and slots for material.
//!
//! A prompt is rendered only from its table, so [`prompt_hash`] over the tables covers all our words. The
//! material in slots comes from the repository or from a model, and is fenced. Prompts contain no time,
//! no local path and no randomness: the same repository and the same replies give the same prompts.

use crucible_model::{PromptBuilder, PromptText, UNTRUSTED_BANNER, Untrusted};
use crucible_repo::BuildSystem;

use super::phase::DebatePhase;
use super::reply::{CritiqueReply, DraftReply, Reply, SynthesisReply};
use crate::artifact::ShortHash;
use crate::safety::{accepted_forms, accepted_variables};

/// A part of a prompt.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// Fixed text of the template.
    FixedText(&'static str),
    /// The command forms that the safety rules accept for the detected build system.
    Forms,
    /// The variables that the safety rules accept.
    Variables,
    /// Foreign text, fenced.
    Slot(Slot),
}

/// The kind of material.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Repository,
    Readme,
    BuildFiles,
    Plan,
    Critique,
    Summary,
    Unresolved,
}

/// The material of a slot: named pieces. An empty slot is left out.
pub(super) type Material = (Slot, Vec<(String, Untrusted)>);

/// A prompt template.
#[derive(Debug)]
pub(super) struct Template {
    system: &'static str,
    user: &'static [&'static [Part]],
}

impl Template {
    /// The parts of the user message.
    pub(super) fn parts(&self) -> impl Iterator<Item = &'static Part> + use<> {
        self.user.iter().copied().flatten()
    }
}

use Part::{FixedText, Forms, Slot as Show, Variables};

const PLANNER: &str = "You plan how software is built from its source. Your plans are deterministic and safe: no command needs \
    root, uses the network while it builds, or writes outside of the workspace. A program reads your answer: answer \
    with one JSON object and nothing else.\n";

const CRITIC: &str = "You review build plans: are they safe, complete and correct? You never suggest a command that needs root, \
    uses the network while it builds, or writes outside of the workspace. A program reads your answer: answer with one \
    JSON object and nothing else.\n";

const RULES: &[Part] = &[
    FixedText(
        "\nRules for every step:\n\
         - `cmd` is a single command in one of these forms. It begins word for word as quoted; what follows stands behind the colon, \
         and no other option is accepted. N is a number, NAME a plain name, PATH a relative path, OUT and DIR one that is written, \
         DIR a directory of its own such as `build`; `[...]` may be left out, `a|b` is one of both:\n",
    ),
    Forms,
    FixedText("\n- `env` may set: "),
    Variables,
    FixedText(
        ". No other variable, and none before the command.\n\
         - Words are separated by single blanks. No quotes, `$`, `*`, `~` or backslashes.\n\
         - No chaining and no redirection: no `&&`, `||`, `;`, `|`, `<`, `>`.\n\
         - No sudo, no curl or wget, no packages of the system (apt, brew and the like).\n\
         - `cwd` and every path are relative and stay inside of the workspace: no leading `/`, no `..`. The top is `.`.\n",
    ),
];

const PLAN_FORM: &[Part] = &[FixedText(
    "\nForm of the answer, as plain JSON without fences:\n\
     {\"dependencies\": {\"tools\": [\"program\"], \"notes\": \"one short sentence\"}, \"steps\": [{\"name\": \"short name\", \
     \"cmd\": \"one command\", \"cwd\": \".\", \"env\": [], \"note\": \"one short sentence\"}], \"warnings\": []}\n\
     `env` lists variables as {\"name\": \"...\", \"value\": \"...\"}; mostly there are none. `warnings` holds what whoever \
     runs the plan should know; mostly nothing. No text is longer than one short sentence.\n",
)];

/// The prompt of a phase.
pub(super) const fn template(phase: DebatePhase) -> &'static Template {
    match phase {
        DebatePhase::Draft => &DRAFT,
        DebatePhase::Critique => &CRITIQUE,
        DebatePhase::Revision => &REVISION,
        DebatePhase::Synthesis => &SYNTHESIS,
    }
}

static DRAFT: Template = Template {
    system: PLANNER,
    user: &[
        &[
            FixedText(
                "A build plan for an open-source repository is wanted. This is known of it:\n",
            ),
            Show(Slot::Repository),
            Show(Slot::Readme),
            Show(Slot::BuildFiles),
            FixedText(
                "\nTask: write the plan for the build system that was detected. List every program that the steps use. Put the \
                 steps in their order: get what the build declares, build, test. Leave out what the build does not need.\n",
            ),
        ],
        RULES,
        PLAN_FORM,
    ],
};

static CRITIQUE: Template = Template {
    system: CRITIC,
    user: &[
        &[
            FixedText("A build plan is to be reviewed. It is for this repository:\n"),
            Show(Slot::Repository),
            Show(Slot::Readme),
            FixedText("\nThe plan, written by another model. Check it, do not trust it:\n"),
            Show(Slot::Plan),
            FixedText(
                "\nTask: check the plan for\n\
                 1. safety: a step that breaks a rule below;\n\
                 2. missing steps: what this build system plainly needs;\n\
                 3. overreach: a step, or part of a command, that the build does not need;\n\
                 4. dependencies: programs that a step uses and `tools` does not list.\n\
                 Name faults only. Approve a plan that has none; do not describe what is right.\n",
            ),
        ],
        RULES,
        &[FixedText(
            "\nForm of the answer, as plain JSON without fences. For a plan without faults:\n\
             {\"issues\": [], \"suggestions\": [], \"approved\": true}\n\
             For one with faults:\n\
             {\"issues\": [{\"severity\": \"error\", \"step_name\": \"name of the step\", \"description\": \"one short \
             sentence\"}], \"suggestions\": [{\"action\": \"add\", \"step_name\": \"name of the step\", \"description\": \"one \
             short sentence\"}], \"approved\": false}\n\
             `severity` is error or warning. `action` is add, remove or modify. `approved` is true only where there is no error. \
             No text is longer than one short sentence.\n",
        )],
    ],
};

static REVISION: Template = Template {
    system: PLANNER,
    user: &[
        &[
            FixedText("Your build plan was reviewed. The plan:\n"),
            Show(Slot::Plan),
            FixedText("\nThe review:\n"),
            Show(Slot::Critique),
            FixedText(
                "\nTask: write the whole plan again. Mend every error. You may decline a warning; say why in `warnings`. Keep \
                 what nobody objected to.\n",
            ),
        ],
        RULES,
        PLAN_FORM,
    ],
};

static SYNTHESIS: Template = Template {
    system: PLANNER,
    user: &[
        &[
            FixedText("The debate about a build plan is over. In short:\n"),
            Show(Slot::Summary),
            FixedText("\nThe last revision of the plan:\n"),
            Show(Slot::Plan),
            FixedText("\nIssues that nobody resolved:\n"),
            Show(Slot::Unresolved),
            FixedText(
                "\nTask: write the final plan. Start from the last revision and copy all of its steps; change or leave out one \
                 only where the debate asks for it. No new ideas: no step that is not in the last revision. Name what stays \
                 unresolved in `warnings`.\n",
            ),
        ],
        RULES,
        &[FixedText(
            "\nForm of the answer, as plain JSON without fences:\n\
             {\"dependencies\": {\"tools\": [\"program\"], \"notes\": \"one short sentence\"}, \"steps\": [{\"name\": \"short \
             name\", \"cmd\": \"one command\", \"cwd\": \".\", \"env\": [], \"note\": \"one short sentence\"}], \"warnings\": \
             [], \"accepted_suggestions\": [], \"rejected_suggestions\": []}\n\
             `env` lists variables as {\"name\": \"...\", \"value\": \"...\"}; mostly there are none. The last two lists repeat \
             the suggestions of the debate that were taken, as `suggestion - source: Claude`, and those that were not, as \
             `suggestion - source: Claude - reason`. No text is longer than one short sentence.\n",
        )],
    ],
};

/// The system message of a phase: our own words only.
pub(super) fn system(phase: DebatePhase) -> PromptText {
    PromptBuilder::new()
        .fixed_text(template(phase).system)
        .build()
}

/// The user message of a phase.
pub(super) fn user(phase: DebatePhase, system: BuildSystem, material: &[Material]) -> PromptText {
    template(phase)
        .parts()
        .fold(PromptBuilder::new(), |prompt, part| {
            add(prompt, *part, system, material)
        })
        .build()
}

fn add(
    prompt: PromptBuilder,
    part: Part,
    system: BuildSystem,
    material: &[Material],
) -> PromptBuilder {
    match part {
        FixedText(words) => prompt.fixed_text(words),
        Forms => prompt.fixed_text(accepted_forms(system)),
        Variables => prompt.fixed_text(accepted_variables()),
        Show(slot) => {
            let pieces = material
                .iter()
                .filter(|(filled, _)| *filled == slot)
                .flat_map(|(_, pieces)| pieces);
            pieces.fold(prompt, |prompt, (name, content)| {
                prompt.untrusted(name, content)
            })
        }
    }
}

/// The hash of every prompt template and token limit: all our words, the positions of slots, the
/// banner, the answer schemas, and the limits.
#[must_use]
pub fn prompt_hash() -> ShortHash {
    hash_of(&hashed_parts())
}

/// The parts that are hashed.
pub(super) fn hashed_parts() -> Vec<String> {
    let mut pieces = vec![UNTRUSTED_BANNER.to_owned()];
    for phase in DebatePhase::ALL {
        let template = template(phase);
        pieces.extend([phase.id().to_owned(), template.system.to_owned()]);
        pieces.extend(template.parts().map(|part| match part {
            FixedText(words) => (*words).to_owned(),
            Forms => "{forms}".to_owned(),
            Variables => accepted_variables().to_owned(),
            Show(slot) => format!("{{{slot:?}}}"),
        }));
    }
    pieces.extend(BuildSystem::ALL.map(|system| accepted_forms(system).to_owned()));
    pieces.extend(
        [
            DraftReply::schema(),
            CritiqueReply::schema(),
            SynthesisReply::schema(),
        ]
        .map(|s| s.to_string()),
    );
    pieces.push(
        DebatePhase::ALL
            .map(|phase| format!("{phase}={}", phase.tokens()))
            .join(","),
    );
    pieces
}

/// Each piece is hashed with its length, so that moving text between pieces changes the hash.
pub(super) fn hash_of(pieces: &[String]) -> ShortHash {
    let framed: String = pieces
        .iter()
        .map(|piece| format!("{}:{piece}\n", piece.len()))
        .collect();
    ShortHash::compute(framed.as_bytes())
}
