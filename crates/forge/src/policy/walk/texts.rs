//! Literal texts: places where secrets lie, and hosts.

use crucible_model::Code;
use tree_sitter::Node;

use super::super::table::Effect;
use super::super::words;
use super::{NodeContext, Walk};

impl<'s> Walk<'s> {
    /// A text on its own, or with placeholders.
    pub(super) fn string(&mut self, node: Node<'s>, place: NodeContext) {
        if !(self.judged.contains(&node.start_byte()) && node.end_byte() <= self.judged.end) {
            match self.source.fold(node, &self.names) {
                Some(text) => self.text(node, &text),
                // As far as it stands in it.
                None => {
                    self.hosts(node, self.source.node_text(node));
                    self.sql(node, self.source.node_text(node));
                }
            }
        }
        self.inner(node, place);
    }

    /// An expression of texts, judged as the one text that it makes.
    pub(super) fn folded(&mut self, node: Node<'s>) {
        if self.judged.contains(&node.start_byte()) && node.end_byte() <= self.judged.end {
            return;
        }
        if let Some(text) = self.source.fold(node, &self.names) {
            self.text(node, &text);
            self.judged = node.byte_range();
        }
    }

    fn text(&mut self, node: Node<'s>, text: &str) {
        if let Some(part) = words::secret_place(text) {
            self.add_finding(
                node,
                Code::new("forge-secret"),
                part,
                "Secrets are handed over by name, never read from where they lie.",
            );
        }
        self.names_fixtures(node, text);
        self.hosts(node, text);
        self.sql(node, text);
    }

    /// A database is read by its address alone: SQL that opens another one writes to it, or makes it.
    fn sql(&mut self, node: Node<'s>, text: &str) {
        let is_sql = self.tests.is_none() && self.names.imports("sqlite3");
        if is_sql && words::opens_database(text) {
            self.report(node, Effect::Write, "SQL that opens another database");
        }
    }

    fn hosts(&mut self, node: Node<'s>, text: &str) {
        if self.allows(Effect::Network) {
            // A placeholder is not a literal host.
            for host in words::hosts(text)
                .into_iter()
                .filter(|host| !host.starts_with('{'))
            {
                self.host(node, &host);
            }
        }
    }

    /// A host has to be one that is granted, and one that the policy leaves.
    pub(super) fn host(&mut self, node: Node<'s>, host: &str) {
        let granted = self
            .grants
            .hosts
            .iter()
            .any(|granted| granted.as_str() == host);
        let allowed = self.policy.allowed_network.as_ref();
        let allowed =
            allowed.is_none_or(|allowed| allowed.iter().any(|name| name.as_str() == host));
        if !granted || !allowed {
            let hint = if granted {
                "It is granted, and the project's policy leaves it out: see allowed_network in .crucible/skills/policy.yaml."
            } else {
                "Name a host that is granted, or ask for a grant."
            };
            self.add_finding(node, Code::new("forge-host-not-granted"), host, hint);
        }
    }
}
