//! The replies of models: three objects, strictly parsed, each with a JSON Schema for the backend.
//!
//! The schemas use only what every backend supports (`StructuredOutput::JsonSchema`): closed objects, all
//! keys required, no bounds. Maps with arbitrary keys are not supported, so `env` is a list of names and
//! values there. An object, which is how a plan stores it, is also parsed. Bounds are checked here, after
//! the answer.

use std::collections::BTreeMap;

use crucible_model::strict_json::{self as strict, Fields, SchemaMismatch, closed};
use serde::Serialize;
use serde_json::{Value, json};

use super::error::ReplyFault;
use crate::artifact::{Dependencies, PlanStep};

/// The longest reply that is parsed, in bytes: the largest token limit with long tokens.
pub(super) const MAX_BYTES: usize = 64 * 1024;
/// The most items of a list.
const MAX_ITEMS: usize = 50;
/// The most variables of a step.
const MAX_VARIABLES: usize = 20;
/// The most characters of the name of a step, program or variable.
const MAX_NAME: usize = 200;
/// The most characters of a command.
const MAX_COMMAND: usize = 4096;
/// The most characters of a text for people.
const MAX_TEXT: usize = 2000;

/// A kind of reply.
pub(super) trait Reply: Serialize + Sized {
    /// The schema's name in the request.
    const NAME: &'static str;

    /// Its JSON Schema.
    fn schema() -> Value;

    /// Converts the parsed object.
    fn from_fields(fields: Fields) -> Result<Self, SchemaMismatch>;

    /// The verdict on the plan, as in records; empty if the reply is not a critique.
    fn verdict(&self) -> &'static str {
        ""
    }

    /// Parses the reply.
    fn read(text: &str) -> Result<Self, ReplyFault> {
        Ok(strict::read(text, MAX_BYTES, Self::from_fields)?)
    }

    /// The value of the hint `response_format`.
    fn response_format() -> Value {
        json!({
            "type": "json_schema",
            "json_schema": {"name": Self::NAME, "strict": true, "schema": Self::schema()},
        })
    }
}

/// A draft or a revision, as a model writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct DraftReply {
    pub(super) dependencies: Dependencies,
    #[serde(serialize_with = "as_models_write")]
    pub(super) steps: Vec<PlanStep>,
    pub(super) warnings: Vec<String>,
}

impl Reply for DraftReply {
    const NAME: &'static str = "build_plan";

    fn schema() -> Value {
        closed(plan_properties())
    }

    fn from_fields(mut fields: Fields) -> Result<Self, SchemaMismatch> {
        let (dependencies, steps, warnings) = plan(&mut fields)?;
        fields.finish()?;
        Ok(Self {
            dependencies,
            steps,
            warnings,
        })
    }
}

/// A critique of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct CritiqueReply {
    pub(super) issues: Vec<Issue>,
    pub(super) suggestions: Vec<Suggestion>,
    pub(super) approved: bool,
}

impl CritiqueReply {
    /// Whether the plan is approved: the critic says so, and names no error.
    pub(super) fn is_approval(&self) -> bool {
        self.approved && !self.has_error()
    }

    /// Whether it names an error.
    pub(super) fn has_error(&self) -> bool {
        self.issues
            .iter()
            .any(|issue| issue.severity == Severity::Error)
    }
}

/// A problem of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Issue {
    pub(super) severity: Severity,
    pub(super) step_name: String,
    pub(super) description: String,
}

/// The severity of an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Error,
    Warning,
}

impl Severity {
    const NAMES: [(&'static str, Self); 2] = [("error", Self::Error), ("warning", Self::Warning)];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A suggestion for a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Suggestion {
    pub(super) action: Action,
    pub(super) step_name: String,
    pub(super) description: String,
}

/// The change to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Add,
    Remove,
    Modify,
}

impl Action {
    const NAMES: [(&'static str, Self); 3] = [
        ("add", Self::Add),
        ("remove", Self::Remove),
        ("modify", Self::Modify),
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
            Self::Modify => "modify",
        }
    }
}

impl Reply for CritiqueReply {
    const NAME: &'static str = "critique";

    fn schema() -> Value {
        let text = json!({"type": "string"});
        let issue = closed([
            (
                "severity",
                json!({"type": "string", "enum": ["error", "warning"]}),
            ),
            ("step_name", text.clone()),
            ("description", text.clone()),
        ]);
        let suggestion = closed([
            (
                "action",
                json!({"type": "string", "enum": ["add", "remove", "modify"]}),
            ),
            ("step_name", text.clone()),
            ("description", text),
        ]);
        closed([
            ("issues", json!({"type": "array", "items": issue})),
            ("suggestions", json!({"type": "array", "items": suggestion})),
            ("approved", json!({"type": "boolean"})),
        ])
    }

    fn verdict(&self) -> &'static str {
        if self.is_approval() {
            "approved"
        } else {
            "objected"
        }
    }

    fn from_fields(mut fields: Fields) -> Result<Self, SchemaMismatch> {
        let issues = fields.list("issues", MAX_ITEMS, |value, place| {
            let mut fields = Fields::new(value, place)?;
            let issue = Issue {
                severity: fields.one_of("severity", &Severity::NAMES)?,
                step_name: fields.text("step_name", MAX_NAME)?,
                description: fields.words("description", MAX_TEXT)?,
            };
            fields.finish().map(|()| issue)
        })?;
        let suggestions = fields.list("suggestions", MAX_ITEMS, |value, place| {
            let mut fields = Fields::new(value, place)?;
            let suggestion = Suggestion {
                action: fields.one_of("action", &Action::NAMES)?,
                step_name: fields.text("step_name", MAX_NAME)?,
                description: fields.words("description", MAX_TEXT)?,
            };
            fields.finish().map(|()| suggestion)
        })?;
        let approved = fields.truth("approved")?;
        fields.finish()?;
        Ok(Self {
            issues,
            suggestions,
            approved,
        })
    }
}

/// The final plan, and the outcome of the suggestions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SynthesisReply {
    pub(super) dependencies: Dependencies,
    #[serde(serialize_with = "as_models_write")]
    pub(super) steps: Vec<PlanStep>,
    pub(super) warnings: Vec<String>,
    pub(super) accepted_suggestions: Vec<String>,
    pub(super) rejected_suggestions: Vec<String>,
}

impl Reply for SynthesisReply {
    const NAME: &'static str = "final_plan";

    fn schema() -> Value {
        let texts = json!({"type": "array", "items": {"type": "string"}});
        let [dependencies, steps, warnings] = plan_properties();
        closed([
            dependencies,
            steps,
            warnings,
            ("accepted_suggestions", texts.clone()),
            ("rejected_suggestions", texts),
        ])
    }

    fn from_fields(mut fields: Fields) -> Result<Self, SchemaMismatch> {
        let (dependencies, steps, warnings) = plan(&mut fields)?;
        let accepted_suggestions = fields.texts("accepted_suggestions", MAX_ITEMS, MAX_TEXT)?;
        let rejected_suggestions = fields.texts("rejected_suggestions", MAX_ITEMS, MAX_TEXT)?;
        fields.finish()?;
        Ok(Self {
            dependencies,
            steps,
            warnings,
            accepted_suggestions,
            rejected_suggestions,
        })
    }
}

fn plan_properties() -> [(&'static str, Value); 3] {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let variable = closed([("name", text.clone()), ("value", text.clone())]);
    let step = closed([
        ("name", text.clone()),
        ("cmd", text.clone()),
        ("cwd", text.clone()),
        ("env", json!({"type": "array", "items": variable})),
        ("note", text.clone()),
    ]);
    [
        (
            "dependencies",
            closed([("tools", texts.clone()), ("notes", text)]),
        ),
        ("steps", json!({"type": "array", "items": step})),
        ("warnings", texts),
    ]
}

fn plan(fields: &mut Fields) -> Result<(Dependencies, Vec<PlanStep>, Vec<String>), SchemaMismatch> {
    let mut needs = fields.object("dependencies")?;
    let dependencies = Dependencies {
        tools: needs.texts("tools", MAX_ITEMS, MAX_NAME)?,
        notes: needs.text("notes", MAX_TEXT)?,
    };
    needs.finish()?;
    let steps = fields.list("steps", MAX_ITEMS, |value, place| {
        step(Fields::new(value, place)?)
    })?;
    if steps.is_empty() {
        return Err(SchemaMismatch::new("`steps` of the reply", "is empty"));
    }
    Ok((
        dependencies,
        steps,
        fields.texts("warnings", MAX_ITEMS, MAX_TEXT)?,
    ))
}

/// `env` and `note` are optional, as in a plan.
fn step(mut fields: Fields) -> Result<PlanStep, SchemaMismatch> {
    let step = PlanStep {
        name: fields.words("name", MAX_NAME)?,
        cmd: fields.words("cmd", MAX_COMMAND)?,
        cwd: fields.words("cwd", MAX_NAME)?,
        env: fields
            .optional("env")
            .map_or(Ok(BTreeMap::new()), |(value, place)| {
                variables(value, &place)
            })?,
        note: match fields.optional("note") {
            Some((value, place)) => strict::text(value, &place, MAX_TEXT)?,
            None => String::new(),
        },
    };
    fields.finish().map(|()| step)
}

fn variables(value: Value, place: &str) -> Result<BTreeMap<String, String>, SchemaMismatch> {
    let pairs = if value.is_object() {
        let entries = Fields::new(value, place.to_owned())?.entries();
        entries
            .map(|(name, value, place)| Ok((name, strict::text(value, &place, MAX_TEXT)?)))
            .collect()
    } else {
        strict::list(value, place, MAX_VARIABLES, |value, place| {
            let mut fields = Fields::new(value, place)?;
            let pair = (
                fields.words("name", MAX_NAME)?,
                fields.text("value", MAX_TEXT)?,
            );
            fields.finish().map(|()| pair)
        })
    };
    let mut variables = BTreeMap::new();
    for (name, value) in pairs? {
        if variables.insert(name, value).is_some() {
            return Err(SchemaMismatch::new(place, "sets a variable twice"));
        }
    }
    if variables.len() > MAX_VARIABLES {
        let what = format!("has {} items, more than {MAX_VARIABLES}", variables.len());
        return Err(SchemaMismatch::new(place, what));
    }
    Ok(variables)
}

/// Steps in the form that models must use, so that a prompt never shows another one.
fn as_models_write<S: serde::Serializer>(
    steps: &[PlanStep],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Step<'s> {
        name: &'s str,
        cmd: &'s str,
        cwd: &'s str,
        env: Vec<Variable<'s>>,
        note: &'s str,
    }
    #[derive(Serialize)]
    struct Variable<'s> {
        name: &'s str,
        value: &'s str,
    }
    serializer.collect_seq(steps.iter().map(|step| {
        Step {
            name: &step.name,
            cmd: &step.cmd,
            cwd: &step.cwd,
            env: step
                .env
                .iter()
                .map(|(name, value)| Variable { name, value })
                .collect(),
            note: &step.note,
        }
    }))
}
