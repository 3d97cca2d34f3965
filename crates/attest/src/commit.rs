//! The parts of a commit object that a judgement needs, with the signature of its author.

use crate::public_key::PublicKey;
use crate::signature::{COMMIT_NAMESPACE, SshSignature};

/// The headers that hold a signature. Git signs the commit without them.
const SIGNATURES: [&[u8]; 2] = [b"gpgsig", b"gpgsig-sha256"];

/// A commit as its bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCommit {
    /// The tree that it holds.
    pub tree: String,
    /// The commits before it, in order.
    pub parents: Vec<String>,
    /// Its message; bytes that are no UTF-8 are replaced.
    pub message: String,
    signature: Option<SshSignature>,
    signed: Vec<u8>,
}

impl SignedCommit {
    /// Parses a commit object; `None` if it has no tree or no message.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
        let (head, message) = (&bytes[..=end], &bytes[end + 2..]);
        let mut signed = Vec::with_capacity(bytes.len());
        let (mut tree, mut parents, mut armors) = (None, Vec::new(), Vec::new());
        let mut is_signature = false;
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            if let Some(more) = text.strip_prefix(b" ") {
                match armors.last_mut() {
                    Some(armor) if is_signature => add_line(armor, more),
                    _ => signed.extend(line),
                }
                continue;
            }
            let (name, value) = match text.iter().position(|byte| *byte == b' ') {
                Some(space) => (&text[..space], &text[space + 1..]),
                None => (text, &[][..]),
            };
            is_signature = SIGNATURES.contains(&name);
            let value = || std::str::from_utf8(value).ok().map(str::to_owned);
            match name {
                _ if is_signature => {
                    armors.push(String::new());
                    if let Some(armor) = armors.last_mut() {
                        add_line(armor, value().unwrap_or_default().as_bytes());
                    }
                    continue;
                }
                b"tree" if tree.is_none() => tree = Some(value()?),
                b"parent" => parents.push(value()?),
                _ => {}
            }
            signed.extend(line);
        }
        signed.push(b'\n');
        signed.extend(message);
        let signature = match armors.as_slice() {
            [armor] => SshSignature::from_armor(armor),
            _ => None,
        };
        Some(Self {
            tree: tree?,
            parents,
            message: String::from_utf8_lossy(message).into_owned(),
            signature,
            signed,
        })
    }

    /// Returns whether the commit is signed with this SSH key.
    #[must_use]
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        let signature = self.signature.as_ref();
        signature.is_some_and(|signature| signature.verifies(key, COMMIT_NAMESPACE, &self.signed))
    }

    /// Returns the values of a trailer, in order.
    pub(crate) fn trailer<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let block = self
            .message
            .trim_end()
            .rsplit("\n\n")
            .next()
            .unwrap_or_default();
        block
            .lines()
            .filter_map(move |line| line.strip_prefix(key)?.strip_prefix(": "))
    }
}

fn add_line(armor: &mut String, line: &[u8]) {
    armor.push_str(&String::from_utf8_lossy(line));
    armor.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "tree aa\nparent bb\nauthor A <a> 1 +0000\n";

    #[test]
    fn signature_is_removed_from_signed_bytes() {
        let text = format!(
            "{HEAD}gpgsig -----BEGIN\n one\n two\nencoding x\n\nTitle\n\nCrucible-Run: r\nOther: s\n"
        );
        let commit = SignedCommit::parse(text.as_bytes()).unwrap();
        assert_eq!(commit.tree, "aa");
        assert_eq!(commit.parents, ["bb"]);
        assert_eq!(
            String::from_utf8(commit.signed.clone()).unwrap(),
            format!("{HEAD}encoding x\n\nTitle\n\nCrucible-Run: r\nOther: s\n")
        );
        assert_eq!(commit.trailer("Crucible-Run").collect::<Vec<_>>(), ["r"]);
    }

    #[test]
    fn trailer_outside_last_paragraph_is_ignored() {
        let text = format!("{HEAD}\nTitle\n\nCrucible-Run: forged\n\nThe end.\n");
        let commit = SignedCommit::parse(text.as_bytes()).unwrap();
        assert_eq!(commit.trailer("Crucible-Run").count(), 0);
    }

    #[test]
    fn malformed_commit_is_refused() {
        for bad in ["", "tree aa\n", "\n\n", "parent bb\n\nTitle\n"] {
            assert_eq!(SignedCommit::parse(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
