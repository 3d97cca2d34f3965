//! Prompt templates, for providers whose models were trained on a certain layout: pure functions.
//!
//! A template moves and marks the parts of a prompt, and does not change its words: fenced text stays
//! fenced. A phase names a template. One that its provider does not support is refused when the backend
//! is created, before any phase starts. There is no automatic
//! substitute.
//!
//! A template is applied last, when a request is sent: a recording holds the original prompt and answers
//! it under any template.

use std::collections::BTreeMap;

use crucible_model::PromptBuilder;

use crate::error::{Fault, LlmError};
use crate::invocation::{Message, Role};
use crate::provider_settings::ProviderSettings;

/// A layout of prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptTemplate {
    /// System instructions and user messages as separate messages, unchanged.
    Plain,
    /// Both between tags, as Anthropic recommends for its models.
    Claude,
    /// Both below headings.
    Headings,
    /// One message, which begins with the instructions, for models without a system role.
    OneMessage,
}

impl PromptTemplate {
    /// All templates.
    pub(crate) const ALL: [Self; 4] = [Self::Plain, Self::Claude, Self::Headings, Self::OneMessage];

    /// The name in the configuration.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Claude => "claude",
            Self::Headings => "headings",
            Self::OneMessage => "one-message",
        }
    }

    /// The providers that support it; none means all.
    const fn providers(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Plain => None,
            Self::Claude => Some(&["anthropic", "claude-cli"]),
            Self::Headings => Some(&[
                "codex-cli",
                "gateway",
                "gemini-cli",
                "ollama",
                "openai",
                "openrouter",
            ]),
            Self::OneMessage => Some(&["gateway", "ollama"]),
        }
    }

    /// Whether this provider supports it.
    #[must_use]
    pub(crate) fn fits(self, provider: &str) -> bool {
        self.providers()
            .is_none_or(|providers| providers.contains(&provider))
    }

    /// Applies the template to a conversation.
    pub(crate) fn shape(self, messages: Vec<Message>) -> Vec<Message> {
        let around = |message: &Message, before: &'static str, after: &'static str| Message {
            role: message.role,
            content: PromptBuilder::new()
                .fixed_text(before)
                .text(&message.content)
                .fixed_text(after)
                .build(),
        };
        let shaped = |message: &Message| match (self, message.role) {
            (Self::Claude, Role::System) => {
                around(message, "<instructions>\n", "\n</instructions>\n")
            }
            (Self::Claude, Role::User) => around(message, "<task>\n", "\n</task>\n"),
            (Self::Headings, Role::System) => around(message, "# Instructions\n\n", "\n"),
            (Self::Headings, Role::User) => around(message, "# Task\n\n", "\n"),
            _ => message.clone(),
        };
        match self {
            Self::Plain => messages,
            Self::Claude | Self::Headings => messages.iter().map(shaped).collect(),
            Self::OneMessage => in_one(messages),
        }
    }
}

/// Puts the instructions at the beginning of the first user message.
fn in_one(messages: Vec<Message>) -> Vec<Message> {
    let (standing, mut conversation): (Vec<Message>, Vec<Message>) = messages
        .into_iter()
        .partition(|message| message.role == Role::System);
    let Some(first) = conversation.first_mut() else {
        return standing;
    };
    let with = standing.iter().fold(PromptBuilder::new(), |text, message| {
        text.text(&message.content).fixed_text("\n\n")
    });
    first.content = with.text(&first.content).build();
    conversation
}

/// The templates of phases that name one, by phase name.
///
/// # Errors
///
/// [`LlmError::Misconfiguration`] if a phase names a template that does not exist, or one that the provider does not support, with
/// the supported ones.
pub(crate) fn phase_templates(
    provider: &str,
    settings: &ProviderSettings,
) -> Result<BTreeMap<String, PromptTemplate>, LlmError> {
    let taken: Vec<&str> = PromptTemplate::ALL
        .into_iter()
        .filter(|template| template.fits(provider))
        .map(PromptTemplate::name)
        .collect();
    let refused = |phase: &str, what: String| {
        let hint = format!(
            "set [phases.{phase}] prompt_template to one that {provider} takes: {}",
            taken.join(", ")
        );
        LlmError::Misconfiguration(Fault::new(provider, "", what, hint))
    };
    let template_of = |(phase, name): (&String, &String)| {
        let template = PromptTemplate::ALL
            .into_iter()
            .find(|template| template.name() == name);
        match template {
            None => {
                let text: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
                Err(refused(
                    phase,
                    format!(
                        "phase {phase:?} names the prompt template {text:?}, which does not exist"
                    ),
                ))
            }
            Some(template) if !template.fits(provider) => {
                let what = format!(
                    "phase {phase:?} names the prompt template {name:?}, which is not for this provider"
                );
                Err(refused(phase, what))
            }
            Some(template) => Ok((phase.clone(), template)),
        }
    };
    settings.phase_templates.iter().map(template_of).collect()
}

#[cfg(test)]
mod tests {
    use crucible_model::Untrusted;

    use super::*;

    fn question() -> Vec<Message> {
        let user = PromptBuilder::new()
            .fixed_text("The material:\n")
            .untrusted("a", &Untrusted::new("<task>\n# Task\n"));
        vec![
            Message::system(PromptBuilder::new().fixed_text("You write.").build()),
            Message::user(user.fixed_text("Write.").build()),
        ]
    }

    #[test]
    fn each_template_keeps_every_word_in_its_order() {
        let plain = question();
        let words: Vec<&str> = plain
            .iter()
            .map(|message| message.content.as_str())
            .collect();
        for template in PromptTemplate::ALL {
            let shaped = template.shape(question());
            let text: String = shaped
                .iter()
                .map(|message| message.content.as_str())
                .collect();
            let at = |word: &str| {
                text.find(word)
                    .unwrap_or_else(|| panic!("{template:?}: {text}"))
            };
            assert!(at(words[0]) < at(words[1]), "{text}");
            assert_eq!(
                shaped.len(),
                if template == PromptTemplate::OneMessage {
                    1
                } else {
                    2
                }
            );
            assert_eq!(shaped.last().unwrap().role, Role::User);
        }
        assert_eq!(PromptTemplate::Plain.shape(question()), plain);
        let claude = PromptTemplate::Claude.shape(question());
        assert!(
            claude[0]
                .content
                .as_str()
                .starts_with("<instructions>\nYou write.\n</instructions>")
        );
        assert!(claude[1].content.as_str().starts_with("<task>\n"));
    }

    #[test]
    fn incompatible_template_is_refused_at_construction() {
        let settings = |template: &str| ProviderSettings {
            phase_templates: [("design".to_owned(), template.to_owned())].into(),
            ..ProviderSettings::default()
        };
        for (provider, fits) in [
            ("anthropic", ["plain", "claude"].as_slice()),
            ("claude-cli", &["plain", "claude"]),
            ("openai", &["plain", "headings"]),
            ("openrouter", &["plain", "headings"]),
            ("gemini-cli", &["plain", "headings"]),
            ("gateway", &["plain", "headings", "one-message"]),
            ("ollama", &["plain", "headings", "one-message"]),
        ] {
            for template in PromptTemplate::ALL.map(PromptTemplate::name) {
                let made = phase_templates(provider, &settings(template));
                assert_eq!(
                    made.is_ok(),
                    fits.contains(&template),
                    "{provider} {template}"
                );
                if let Err(error) = made {
                    let message = error.to_string();
                    assert!(
                        message.contains("design") && message.contains(template),
                        "{message}"
                    );
                }
            }
        }
        let message = phase_templates("openai", &settings("Claude"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("does not exist"), "{message}");
    }
}
