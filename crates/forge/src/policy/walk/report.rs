//! How findings are reported: each power has its code, and each place is named once for each advice.

use crucible_ledger::SideEffect;
use crucible_model::{Code, Finding};
use tree_sitter::Node;

use super::super::table::Effect;
use super::{NodeContext, Seen, Walk, When};
use crate::python::place_of;

/// The most findings of one skill; who has so many needs no more.
const MAX_FINDINGS: usize = 100;

impl<'s> Walk<'s> {
    pub(super) fn runs(&mut self, node: Node<'s>, place: NodeContext, what: &str) {
        if place.when == When::Import {
            self.add_finding(
                node,
                Code::new("forge-import-time"),
                what,
                "Only imports, constants and definitions run while a skill is imported; do this in `execute`.",
            );
        }
    }

    pub(super) fn allows(&self, power: Effect) -> bool {
        use SideEffect::{FileWrite, Messaging, Money, Network, SecretRead};
        match power {
            Effect::None => true,
            Effect::Network => matches!(self.class, Network | Money | Messaging),
            Effect::Write => self.class == FileWrite,
            Effect::Secret => matches!(self.class, SecretRead | Money | Messaging),
            _ => false,
        }
    }

    pub(super) fn report(&mut self, node: Node<'s>, power: Effect, what: &str) -> Seen {
        if self.allows(power) {
            return Seen::Nothing;
        }
        let (code, hint) = match power {
            Effect::Process => (
                Code::new("forge-process"),
                "A skill starts and ends no processes: do the work in Python, and raise ValueError or another ordinary error where it cannot be done.",
            ),
            Effect::Code => (
                Code::new("forge-code"),
                "A skill runs no text as code and loads none by name; write the code out.",
            ),
            Effect::Interpreter => (
                Code::new("forge-interpreter"),
                "A skill must not change the interpreter; remove it.",
            ),
            Effect::Outlives => (
                Code::new("forge-outlives"),
                "Nothing of a skill goes on after its call; wait for it in a `with` block.",
            ),
            Effect::Pickle => (
                Code::new("forge-pickle"),
                "Bytes are not objects; read and write JSON.",
            ),
            Effect::Native => (
                Code::new("forge-native"),
                "A skill calls no machine code; do it in Python.",
            ),
            Effect::Network => (
                Code::new("forge-network"),
                "Only the classes NETWORK, MONEY and MESSAGING connect.",
            ),
            Effect::Write => (
                Code::new("forge-write"),
                "Only the class FILE_WRITE changes files; read with a literal mode.",
            ),
            Effect::Secret => (
                Code::new("forge-secret"),
                "Only the classes SECRET_READ, MONEY and MESSAGING read secrets, by name.",
            ),
            _ => (
                Code::new("forge-reflection"),
                "Name attributes in the text, and stay on the surface of objects.",
            ),
        };
        self.add_finding(node, code, what, hint);
        Seen::Finding
    }

    pub(super) fn add_finding(
        &mut self,
        node: Node<'s>,
        code: Code,
        what: &str,
        hint: &'static str,
    ) {
        if self.verdict.findings().len() >= MAX_FINDINGS
            || !self.reported.insert((node.start_byte(), hint))
        {
            return;
        }
        let what: String = what.chars().take(80).collect();
        self.verdict.push(Finding::error(
            code,
            format!("{}: {what}", place_of(node)),
            hint,
        ));
    }
}
