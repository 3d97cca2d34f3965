//! The vocabulary of a council: complexity, grammar, red team flavour, roles, and seat names.
//!
//! Invariant: each word has one spelling, which JSON, prompts and documents share.

use std::fmt;

use serde::{Serialize, Serializer};

/// Declares an enum with one spelling for each variant.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$word_doc])* $word,)+ }

        impl $name {
            /// All variants in order.
            pub const ALL: &'static [Self] = &[$(Self::$word,)+];

            /// The spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$word => $text,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words! {
    /// How complex a question is.
    ComplexityDomain {
        /// It has one answer that can be looked up or deduced.
        Simple = "simple",
        /// It needs expertise and analysis; several answers are good.
        Complicated = "complicated",
        /// It has no single right answer; trade-offs depend on the stakeholders.
        Complex = "complex",
        /// It has no precedent; only acting gives information.
        Chaotic = "chaotic",
    }
}

words! {
    /// The order in which seats speak.
    LoopGrammar {
        /// All seats at once, then the red team about all.
        Parallel = "parallel",
        /// One draft that passes from seat to seat, attacked after each.
        Sequential = "sequential",
        /// All seats at once, an attack on the weakest, and their defence.
        Debate = "debate",
    }
}

words! {
    /// What the red team attacks.
    RedTeamFlavor {
        /// The reasoning.
        Logical = "logical",
        /// The feasibility.
        Feasibility = "feasibility",
        /// The ethics.
        Ethical = "ethical",
        /// The strongest opposing case.
        Steelman = "steelman",
    }
}

words! {
    /// The contribution of a seat.
    CouncilRole {
        /// Coherence: combines views.
        Synthesizer = "synthesizer",
        /// Knowledge of the field.
        DomainExpert = "domain_expert",
        /// What works in practice.
        Pragmatist = "pragmatist",
        /// Alternatives.
        Creative = "creative",
        /// Attacks. It reads positions, edits none and has no vote.
        RedTeam = "red_team",
    }
}

/// The name of a seat in one council: its role, and for the second and later seats of a role a number
/// after `#`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeatId {
    role: CouncilRole,
    number: u8,
}

impl SeatId {
    /// The red team's name.
    pub(crate) const RED_TEAM: Self = Self {
        role: CouncilRole::RedTeam,
        number: 1,
    };

    /// The names of seats with these roles, in order.
    #[must_use]
    pub fn of_roles(roles: impl IntoIterator<Item = CouncilRole>) -> Vec<Self> {
        let mut named: Vec<Self> = Vec::new();
        for role in roles {
            let before = named.iter().filter(|seat| seat.role == role).count();
            named.push(Self {
                role,
                number: u8::try_from(before).unwrap_or(u8::MAX).saturating_add(1),
            });
        }
        named
    }

    /// The role of the seat.
    #[must_use]
    pub const fn role(self) -> CouncilRole {
        self.role
    }

    /// The number of the seat within its role, from 1.
    pub(crate) const fn number(self) -> u8 {
        self.number
    }
}

impl fmt::Display for SeatId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.role.as_str())?;
        if self.number > 1 {
            write!(f, "#{}", self.number)?;
        }
        Ok(())
    }
}

impl Serialize for SeatId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_seat_of_role_has_a_number() {
        use CouncilRole::{Creative, Pragmatist};
        let named = SeatId::of_roles([Creative, Pragmatist, Creative, Creative]);
        let named: Vec<String> = named.iter().map(ToString::to_string).collect();
        assert_eq!(
            named,
            ["creative", "pragmatist", "creative#2", "creative#3"]
        );
    }

    #[test]
    fn every_word_matches_the_seed() {
        fn spelled<T: Copy + fmt::Display>(all: &[T]) -> String {
            all.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        }
        assert_eq!(
            spelled(ComplexityDomain::ALL),
            "simple complicated complex chaotic"
        );
        assert_eq!(spelled(LoopGrammar::ALL), "parallel sequential debate");
        assert_eq!(
            spelled(RedTeamFlavor::ALL),
            "logical feasibility ethical steelman"
        );
        assert_eq!(
            spelled(CouncilRole::ALL),
            "synthesizer domain_expert pragmatist creative red_team"
        );
    }
}
