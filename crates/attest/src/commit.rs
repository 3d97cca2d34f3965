//! The parts of a commit object that a judgement needs, with the signature of its author.
//!
//! git writes `tree`, then every `parent`, then `author` and `committer`, and reads parents nowhere else. A commit in any
//! other order is malformed here, so that both always see the same parents. That includes signatures and continued
//! lines: git stops reading parents at the first line that is not one.

use std::time::Duration;

use crucible_model::Timestamp;

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
    /// When it was committed, as its committer says.
    pub committed_at: Option<Timestamp>,
    /// Its message; bytes that are not UTF-8 are replaced.
    pub message: String,
    signature: Option<SshSignature>,
    signed: Vec<u8>,
}

impl SignedCommit {
    /// Parses a commit object; `None` if it has no message, or headers that git does not write in this order.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
        let (head, message) = (&bytes[..=end], &bytes[end + 2..]);
        let mut signed = Vec::with_capacity(bytes.len());
        let (mut tree, mut parents, mut armors) = (None, Vec::new(), Vec::new());
        let (mut next, mut committed_at) = (Header::Tree, None);
        let mut is_signature = false;
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            if let Some(more) = text.strip_prefix(b" ") {
                if next != Header::Other {
                    return None;
                }
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
                _ if is_signature && next == Header::Other => {
                    armors.push(String::new());
                    if let Some(armor) = armors.last_mut() {
                        add_line(armor, value().unwrap_or_default().as_bytes());
                    }
                    continue;
                }
                b"tree" if next == Header::Tree => {
                    tree = Some(object_name(value()?)?);
                    next = Header::ParentOrAuthor;
                }
                b"parent" if next == Header::ParentOrAuthor => parents.push(object_name(value()?)?),
                b"author" if next == Header::ParentOrAuthor => next = Header::Committer,
                b"committer" if next == Header::Committer => {
                    committed_at = value().as_deref().and_then(date);
                    next = Header::Other;
                }
                b"tree" | b"parent" | b"author" | b"committer" => return None,
                _ if next != Header::Other => return None,
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
        if next != Header::Other {
            return None;
        }
        Some(Self {
            tree: tree?,
            parents,
            committed_at,
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
}

/// Returns the values of a trailer in the last paragraph of a commit's message, in order.
pub fn trailer_values<'a>(message: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let block = message.trim_end().rsplit("\n\n").next();
    block
        .unwrap_or_default()
        .lines()
        .filter_map(move |line| line.strip_prefix(key)?.strip_prefix(": "))
}

/// The header that git writes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    Tree,
    ParentOrAuthor,
    Committer,
    /// Any other header.
    Other,
}

/// The name of an object in full.
fn object_name(text: String) -> Option<String> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (matches!(text.len(), 40 | 64) && text.bytes().all(is_hex)).then_some(text)
}

/// The date of `NAME <MAIL> SECONDS ZONE`.
fn date(committer: &str) -> Option<Timestamp> {
    let (_, date) = committer.rsplit_once("> ")?;
    let seconds = date.split(' ').next()?.parse().ok()?;
    Some(Timestamp::from_unix(Duration::from_secs(seconds)))
}

fn add_line(armor: &mut String, line: &[u8]) {
    armor.push_str(&String::from_utf8_lossy(line));
    armor.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const PARENT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn head() -> String {
        format!("tree {TREE}\nparent {PARENT}\nauthor A <a> 1 +0000\ncommitter A <a> 2 +0000\n")
    }

    #[test]
    fn signature_is_removed_from_signed_bytes() {
        let head = head();
        let text = format!(
            "{head}gpgsig -----BEGIN\n one\n two\nencoding x\n\nTitle\n\nCrucible-Run: r\nOther: s\n"
        );
        let commit = SignedCommit::parse(text.as_bytes()).unwrap();
        assert_eq!(commit.tree, TREE);
        assert_eq!(commit.parents, [PARENT]);
        assert_eq!(commit.committed_at.unwrap().unix_millis(), 2000);
        assert_eq!(
            String::from_utf8(commit.signed.clone()).unwrap(),
            format!("{head}encoding x\n\nTitle\n\nCrucible-Run: r\nOther: s\n")
        );
        assert_eq!(
            trailer_values(&commit.message, "Crucible-Run").collect::<Vec<_>>(),
            ["r"]
        );
    }

    #[test]
    fn trailer_outside_last_paragraph_is_ignored() {
        let text = format!("{}\nTitle\n\nCrucible-Run: forged\n\nThe end.\n", head());
        let commit = SignedCommit::parse(text.as_bytes()).unwrap();
        assert_eq!(trailer_values(&commit.message, "Crucible-Run").count(), 0);
    }

    /// git ignores a `parent` behind `committer`, so a judgement that counted it would be about another commit.
    #[test]
    fn headers_in_another_order_are_refused() {
        let (tree, parent) = (format!("tree {TREE}\n"), format!("parent {PARENT}\n"));
        let (author, committer) = ("author A <a> 1 +0000\n", "committer A <a> 2 +0000\n");
        for bad in [
            format!("{tree}{parent}{author}{committer}{parent}"),
            format!("{tree}{parent}{author}{parent}{committer}"),
            format!("{parent}{tree}{author}{committer}"),
            format!("{tree}{tree}{author}{committer}"),
            format!("{tree}x y\n{parent}{author}{committer}"),
            format!("{tree}{parent}{author}"),
            format!("{tree}{parent}{committer}"),
            format!("{tree}{author}{committer}{committer}"),
            format!("{tree}parent bb\n{author}{committer}"),
            format!("{tree}gpgsig x\n{parent}{author}{committer}"),
            format!("{tree}gpgsig-sha256 x\n y\n{parent}{author}{committer}"),
            format!("{tree}{parent} x\n{parent}{author}{committer}"),
            format!("{tree} x\n{parent}{author}{committer}"),
            format!("{tree}{parent}{author} x\n{committer}"),
            format!("tree aa\n{author}{committer}"),
        ] {
            let text = format!("{bad}\nTitle\n");
            assert_eq!(SignedCommit::parse(text.as_bytes()), None, "{bad}");
        }
        let root = format!("{tree}{author}{committer}mergetag x\n parent\nencoding y\n\nTitle\n");
        assert!(SignedCommit::parse(root.as_bytes()).is_some());
    }

    #[test]
    fn malformed_commit_is_refused() {
        for bad in ["", "tree aa\n", "\n\n", "parent bb\n\nTitle\n"] {
            assert_eq!(SignedCommit::parse(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
