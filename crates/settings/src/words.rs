//! Settings that take one of a few texts.
//!
//! A text that is not listed is kept, so that the command which needs the setting can say what is wrong with it and all
//! others go on.

/// A type whose values are texts of the configuration.
pub trait Words: Copy + 'static {
    /// The texts, in the order of [`Words::VALUES`].
    const WORDS: &'static [&'static str];
    /// The values.
    const VALUES: &'static [Self];
}

/// The value of a setting that takes one of a few texts, or any other text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOf<T>(Result<T, String>);

impl<T: Words> OneOf<T> {
    pub(crate) fn parse(text: &str) -> Self {
        let value = T::WORDS
            .iter()
            .zip(T::VALUES)
            .find(|(word, _)| **word == text);
        Self(
            value
                .map(|(_, value)| *value)
                .ok_or_else(|| text.to_owned()),
        )
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// Returns the text where it is not listed.
    pub fn get(&self) -> Result<T, &str> {
        self.0.as_ref().copied().map_err(String::as_str)
    }
}

macro_rules! words {
    ($($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl Words for $name {
            const WORDS: &'static [&'static str] = &[$($word),*];
            const VALUES: &'static [Self] = &[$(Self::$variant),*];
        }
    )*};
}

words! {
    /// Something that is on or off.
    Switch {
        /// On.
        On = "on",
        /// Off.
        Off = "off",
    }
    /// How a council decides whether a loop changed anything.
    DeltaRule {
        /// A model judges.
        Judge = "judge",
        /// The words are compared.
        Similarity = "similarity",
        /// Nothing decides; all loops run.
        Never = "never",
    }
    /// When a hook runs.
    HookPoint {
        /// Before a phase.
        PrePhase = "pre_phase",
        /// After a phase.
        PostPhase = "post_phase",
        /// Before a gate.
        PreGate = "pre_gate",
        /// After a gate.
        PostGate = "post_gate",
    }
    /// What the failure of a hook means.
    OnHookFailure {
        /// A warning.
        Warn = "warn",
        /// Failure of the phase or the gate.
        Fail = "fail",
    }
    /// When a gate runs.
    GateTier {
        /// For every attempt at a change.
        Lite = "lite",
        /// Before a change is committed.
        Full = "full",
    }
    /// What a gate reaches; both mean the same.
    GateReach {
        /// Its own loopback.
        Loopback = "loopback",
        /// No network but its own loopback.
        None = "none",
    }
    /// Who writes skills.
    SkillAuthor {
        /// The program of `llm.claude-cli`.
        Claude = "claude",
        /// The configured command.
        Command = "command",
        /// The model of any provider.
        WholeFile = "whole-file",
    }
    /// Whether a skill needs held-out examples to be promoted.
    ExamplesNeed {
        /// It does.
        Required = "required",
        /// It does not.
        Optional = "optional",
    }
    /// Where a run may learn how to reach its goal.
    FindScope {
        /// Known workflows and earlier runs on this machine.
        ResolverOnly = "resolver_only",
        /// Pages of the web, too.
        ResolverPlusWeb = "resolver_plus_web",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_text_is_parsed_and_others_preserved() {
        assert_eq!(
            OneOf::<DeltaRule>::parse("never").get(),
            Ok(DeltaRule::Never)
        );
        for other in ["", "Never", "never "] {
            assert_eq!(OneOf::<DeltaRule>::parse(other).get(), Err(other));
        }
    }
}
