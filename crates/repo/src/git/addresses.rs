//! Resolves addresses of repositories as git does: names of remotes, and prefixes that settings replace.
//!
//! git replaces the longest prefix (`url.BASE.insteadOf`). Here each one is tried, since settings may change which is the longest.

use std::collections::BTreeSet;

use super::config_files::Entry;
use super::nested::{Repository, paths_in};
use super::programs::subsection;

/// Names and prefixes that stand for addresses.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// The names of remotes.
    remotes: BTreeSet<Vec<u8>>,
    /// Each prefix, and what git puts in its place.
    prefixes: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl Addresses {
    /// Reads the settings that hold in a repository.
    pub(super) fn from_entries(entries: &[&Entry]) -> Self {
        let mut addresses = Self::default();
        for entry in entries {
            let base = subsection(&entry.key);
            if entry.key.starts_with(b"remote.") && !base.is_empty() {
                addresses.remotes.insert(base.to_owned());
            }
            let is_prefix =
                entry.key.ends_with(b".insteadof") || entry.key.ends_with(b".pushinsteadof");
            if entry.key.starts_with(b"url.") && is_prefix {
                addresses
                    .prefixes
                    .insert((entry.value.clone(), base.to_owned()));
            }
        }
        addresses
    }

    /// Adds the remotes that are in files of their own, and returns their addresses.
    pub(super) fn add_files(&mut self, repository: &Repository) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for (directory, starts) in [("remotes", &["URL:"][..]), ("branches", &[""])] {
            for file in paths_in(&repository.common_dir.join(directory)) {
                let text = std::fs::read(&file).unwrap_or_default();
                let values = text.split(|byte| *byte == b'\n').filter_map(|line| {
                    let start = starts
                        .iter()
                        .find(|start| line.starts_with(start.as_bytes()))?;
                    Some(line[start.len()..].trim_ascii())
                });
                // What follows is the branch.
                let is_of_branches = directory == "branches";
                let without_branch = |value: &[u8]| {
                    let mut parts = value.split(|byte| is_of_branches && *byte == b'#');
                    parts.next().unwrap_or_default().to_owned()
                };
                found.extend(values.map(without_branch).filter(|value| !value.is_empty()));
                let name = file
                    .file_name()
                    .map(|name| name.as_encoded_bytes().to_owned());
                self.remotes.extend(name);
            }
        }
        found
    }

    /// Returns whether git takes a word for a remote that the settings name.
    pub(super) fn has_remote(&self, name: &[u8]) -> bool {
        self.remotes.contains(name)
    }

    /// Returns the address itself, and what git may replace it with.
    pub(super) fn rewritten_forms(&self, address: &[u8]) -> BTreeSet<Vec<u8>> {
        let replaced = self.prefixes.iter().filter_map(|(prefix, base)| {
            let rest = address.strip_prefix(&prefix[..])?;
            Some([base, rest].concat())
        });
        replaced.chain([address.to_owned()]).collect()
    }
}

/// An address that leads to this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LocalTarget {
    Path(Vec<u8>),
    /// A command that git runs to reach the repository.
    Command(Vec<u8>),
}

/// Returns where an address leads on this machine; `None` if it leads elsewhere.
pub(super) fn local(address: &[u8]) -> Option<LocalTarget> {
    if let Some(command) = address.strip_prefix(b"ext::") {
        return Some(LocalTarget::Command(command.to_owned()));
    }
    if let Some(rest) = address.strip_prefix(b"file://") {
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        return Some(LocalTarget::Path(percent_decoded(&rest[slash..])));
    }
    let slash = address.iter().position(|byte| *byte == b'/');
    let colon = address.iter().position(|byte| *byte == b':');
    // `host:path`, `scheme://host/path` and `helper::address` have a colon before each slash.
    let is_local = match (slash, colon) {
        (Some(slash), Some(colon)) => slash < colon,
        (_, colon) => colon.is_none(),
    };
    (is_local && !address.is_empty()).then(|| LocalTarget::Path(address.to_owned()))
}

/// Returns the program that git runs to reach an address elsewhere: `git-remote-NAME` for `NAME::…` and `NAME://…`.
pub(super) fn remote_helper(address: &[u8]) -> Option<Vec<u8>> {
    let end = address
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-')?;
    let (name, rest) = address.split_at(end);
    let is_own = matches!(name, b"git" | b"ssh");
    let has_helper = rest.starts_with(b"::") || rest.starts_with(b"://") && !is_own;
    (end > 0 && has_helper).then(|| [b"git-remote-", name].concat())
}

/// Returns the bytes that a URL stands for (`%20` is a blank).
fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = &after[2..];
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_recognised() {
        for (address, expected) in [
            ("/srv/a.git", Some("/srv/a.git")),
            ("../a", Some("../a")),
            ("a", Some("a")),
            ("file:///srv/a", Some("/srv/a")),
            ("file:///a%20b%2", Some("/a b%2")),
            ("file://host/srv/a", Some("/srv/a")),
            ("./a:b", Some("./a:b")),
            ("git@host:src/a", None),
            ("https://host/src/a", None),
            ("helper::src/a", None),
            ("host:a", None),
            ("", None),
        ] {
            let expected = expected.map(|path| LocalTarget::Path(path.as_bytes().to_owned()));
            assert_eq!(local(address.as_bytes()), expected, "{address}");
        }
        assert_eq!(
            local(b"ext::sh x"),
            Some(LocalTarget::Command(b"sh x".to_vec()))
        );
    }

    #[test]
    fn helper_of_an_address_is_named() {
        for (address, expected) in [
            ("x::src/a", Some("git-remote-x")),
            ("codecommit://a", Some("git-remote-codecommit")),
            ("https://host/a", Some("git-remote-https")),
            ("ssh://host/a", None),
            ("host:a", None),
            ("::a", None),
            ("a/b", None),
        ] {
            let helper = remote_helper(address.as_bytes());
            let expected = expected.map(|name| name.as_bytes().to_owned());
            assert_eq!(helper, expected, "{address}");
        }
    }

    #[test]
    fn every_prefix_of_an_address_is_replaced() {
        let entry = |key: &str, value: &str| Entry {
            key: key.as_bytes().to_owned(),
            value: value.as_bytes().to_owned(),
        };
        let entries = [
            entry("url./m/p-.insteadof", "gh:"),
            entry("url.m.pushinsteadof", "gh:x"),
            entry("url.n.insteadof", "other:"),
            entry("remote.o.url", "gh:x.git"),
            entry("remote.pushdefault", "p"),
        ];
        let addresses = Addresses::from_entries(&entries.iter().collect::<Vec<_>>());
        let replaced = addresses.rewritten_forms(b"gh:x.git");
        let expected = ["/m/p-x.git", "gh:x.git", "m.git"];
        let expected = expected.map(|text| text.as_bytes().to_owned());
        assert_eq!(replaced, BTreeSet::from(expected));
        assert!(addresses.has_remote(b"o") && !addresses.has_remote(b"p"));
    }
}
