//! A skill that is asked for: what it is called, what it is for, what goes in and out, what it may do, and examples nobody who builds it sees.

use crucible_ledger::{Ledger, LedgerError, Moment, NewSkill, SideEffect};
use crucible_model::{CanonicalError, is_hidden, to_canonical_json};
use crucible_secrets::Scanner;
use serde_json::{Value, json};

use crate::examples::HeldOutExample;
use crate::grants::{Grants, GrantsError};
use crate::io_schema::IoSchema;
use crate::name::SkillName;
use crate::project::ForgeProject;

/// The most characters of a description.
pub(crate) const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// The form of the specification.
const FORM: &str = "skill-spec.v1";

/// A proposal that was looked at: everything in it fits together, and nothing in it looks like a secret.
#[derive(Debug)]
pub struct SkillProposal {
    parts: ProposalParts,
}

/// What a proposal is made of.
#[derive(Debug)]
pub struct ProposalParts {
    /// What it is called.
    pub name: SkillName,
    /// What it is for, in one line of at most 2,000 characters.
    pub description: String,
    /// What goes in and what comes out.
    pub io_schema: IoSchema,
    /// What it may do.
    pub side_effect: SideEffect,
    /// What that is narrowed to.
    pub grants: Grants,
    /// Examples that fit the schemas; may be empty.
    pub examples: Vec<HeldOutExample>,
}

/// Why a proposal is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    /// It says nothing.
    #[error(
        "the description is empty; say in a sentence what the skill does with what it is given"
    )]
    NoDescription,
    /// It says too much.
    #[error(
        "the description has {chars} characters, at most {MAX_DESCRIPTION_CHARS} are taken; a skill does one thing"
    )]
    LongDescription {
        /// How many.
        chars: usize,
    },
    /// It hides something.
    #[error(
        "the description holds {found}, which is not seen as itself; write it as one line of plain text"
    )]
    HiddenCharacter {
        /// The character, escaped.
        found: String,
    },
    /// The grants do not fit.
    #[error(transparent)]
    Grants(#[from] GrantsError),
    /// Something looks like a secret; it is not shown.
    #[error(
        "{part} contains what looks like a secret ({rule}); remove it, because the ledger keeps it permanently and shown to a model"
    )]
    Secret {
        /// Where.
        part: &'static str,
        /// By which rule.
        rule: String,
    },
    /// A number has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The ledger does not take it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl SkillProposal {
    /// Looks at the parts.
    ///
    /// # Errors
    ///
    /// [`ProposalError`] names the first part that is not taken.
    pub fn new(parts: ProposalParts) -> Result<Self, ProposalError> {
        let description = &parts.description;
        if description.trim().is_empty() {
            return Err(ProposalError::NoDescription);
        }
        let chars = description.chars().count();
        if chars > MAX_DESCRIPTION_CHARS {
            return Err(ProposalError::LongDescription { chars });
        }
        if let Some(hidden) = description.chars().find(|c| is_hidden(*c)) {
            return Err(ProposalError::HiddenCharacter {
                found: hidden.escape_default().to_string(),
            });
        }
        parts.grants.check(parts.side_effect)?;
        free_of_secrets("the description", &Value::String(description.clone()))?;
        free_of_secrets("the I/O schema", parts.io_schema.document())?;
        free_of_secrets("the list of grants", &json!(parts.grants))?;
        free_of_secrets("an example", &json!(parts.examples))?;
        Ok(Self { parts })
    }

    /// What it is called.
    #[must_use]
    pub const fn name(&self) -> &SkillName {
        &self.parts.name
    }

    /// What it may reach.
    #[must_use]
    pub const fn grants(&self) -> &Grants {
        &self.parts.grants
    }

    /// The specification as it is kept: canonical JSON, without the examples.
    ///
    /// # Errors
    ///
    /// Fails for numbers that have no canonical form.
    pub fn spec(&self, project: &ForgeProject) -> Result<Vec<u8>, CanonicalError> {
        let ProposalParts {
            name,
            description,
            io_schema,
            side_effect,
            grants,
            ..
        } = &self.parts;
        to_canonical_json(&json!({
            "schema_version": FORM, "name": name, "class": name.class(), "package": project.package(), "description": description,
            "io_schema": io_schema.document(), "side_effect_class": side_effect, "grants": grants,
        }))
    }

    /// Records the proposal: skill, specification, examples and event, or nothing. Returns the skill's number.
    ///
    /// # Errors
    ///
    /// [`LedgerError::SkillTaken`] where the project has a skill of this name, and all that can be wrong with the ledger.
    pub fn record(
        &self,
        ledger: &mut Ledger,
        project: &ForgeProject,
        moment: Moment,
    ) -> Result<u64, ProposalError> {
        let ProposalParts {
            name,
            description,
            io_schema,
            side_effect,
            grants,
            examples,
        } = &self.parts;
        let held_out = match examples.as_slice() {
            [] => None,
            examples => Some(HeldOutExample::document(examples)),
        };
        Ok(ledger.propose_skill(&NewSkill {
            moment,
            project: *project.key(),
            name: name.to_string(),
            description: description.clone(),
            io_schema: io_schema.document().clone(),
            side_effect: *side_effect,
            grants: json!(grants),
            spec: self.spec(project)?,
            held_out,
        })?)
    }
}

/// Looks for secrets in every text of a value, and in the value as it is written down: a secret may be spread over keys and values.
fn free_of_secrets(part: &'static str, value: &Value) -> Result<(), ProposalError> {
    let found = |text: &str| match Scanner::builtin().scan(text.as_bytes()).first() {
        Some(found) => Err(ProposalError::Secret {
            part,
            rule: found.rule.to_string(),
        }),
        None => Ok(()),
    };
    let mut texts = String::new();
    collect(value, &mut texts);
    found(&texts)?;
    found(&value.to_string())
}

/// The texts of a value, one to a line.
fn collect(value: &Value, texts: &mut String) {
    match value {
        Value::String(text) => {
            texts.push_str(text);
            texts.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(map) => {
            for (key, inner) in map {
                texts.push_str(key);
                texts.push(if inner.is_string() { '=' } else { '\n' });
                collect(inner, texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
