//! The ref updates of a push, and the rule for the notes themselves.

use std::str::FromStr;

use crucible_model::{Code, Finding};

const REF_MOVED: Code = Code::new("attest-ref-moved");

/// The ref that holds the statements.
pub const NOTES_REF: &str = "refs/notes/crucible";

/// One line of a `pre-receive` hook: a ref with its old and its new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefUpdate {
    /// The value before; zeros if the ref is created.
    pub old: String,
    /// The value afterwards; zeros if the ref is deleted.
    pub new: String,
    /// The full name of the ref.
    pub name: String,
}

/// A line is not `OLD NEW REF`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a ref update (OLD NEW REF): {line:?}")]
pub struct RefUpdateError {
    line: String,
}

impl RefUpdate {
    /// Returns whether the ref is created.
    #[must_use]
    pub fn is_creation(&self) -> bool {
        is_zero(&self.old)
    }

    /// Returns whether the push makes git show another object in the place of one. Only the removal of such a ref is
    /// harmless.
    #[must_use]
    pub fn replaces_objects(&self) -> bool {
        self.name.starts_with("refs/replace/") && !self.is_deletion()
    }

    /// Returns whether the ref is deleted.
    #[must_use]
    pub fn is_deletion(&self) -> bool {
        is_zero(&self.new)
    }
}

fn is_zero(oid: &str) -> bool {
    oid.bytes().all(|byte| byte == b'0')
}

impl FromStr for RefUpdate {
    type Err = RefUpdateError;

    fn from_str(line: &str) -> Result<Self, RefUpdateError> {
        let is_oid = |word: &str| {
            matches!(word.len(), 40 | 64)
                && word
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        match line.splitn(3, ' ').collect::<Vec<_>>()[..] {
            [old, new, name] if is_oid(old) && is_oid(new) && name.starts_with("refs/") => {
                Ok(Self {
                    old: old.to_owned(),
                    new: new.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err(RefUpdateError {
                line: line.chars().take(200).collect(),
            }),
        }
    }
}

/// Judges a ref that replaces an object.
#[must_use]
pub fn judge_replacement(update: &RefUpdate) -> Option<Finding> {
    const REPLACES: Code = Code::new("attest-replaces-object");
    let hint = "git would show another object under the name of an admitted one; push the change as a commit";
    update
        .replaces_objects()
        .then(|| Finding::error(REPLACES, update.name.as_str(), hint))
}

/// Judges the name of a ref. git takes the short name of the notes for one that ends with it, and cannot keep the notes
/// beside a ref below their name.
#[must_use]
pub fn judge_ref_name(update: &RefUpdate) -> Option<Finding> {
    const HIDES_NOTES: Code = Code::new("attest-ref-hides-notes");
    let hides = update.name.ends_with("/refs/notes/crucible")
        || update.name.starts_with("refs/notes/crucible/");
    let hint = "no one could push or fetch the notes beside a ref of this name; choose another one";
    (hides && !update.is_deletion())
        .then(|| Finding::error(HIDES_NOTES, update.name.as_str(), hint))
}

/// Judges the refs that a push names more than once: git makes one of the updates and rejects the others.
#[must_use]
pub fn judge_repeated_refs<'a>(refs: impl IntoIterator<Item = &'a str>) -> Vec<Finding> {
    let hint = "the push updates this ref twice, by its name or through a symbolic ref, and git would make only one of the updates";
    let mut names: Vec<&str> = refs.into_iter().collect();
    names.sort_unstable();
    names
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| Finding::error(REF_MOVED, pair[0], hint))
        .collect()
}

/// Judges the old value that the client gave for a ref. git rejects the update of this ref alone if it is another one, so
/// the commits of a push could land without their notes.
#[must_use]
pub fn judge_old_value(update: &RefUpdate, current: Option<&str>) -> Option<Finding> {
    let is_current = match current {
        Some(current) => update.old == current,
        None => update.is_creation(),
    };
    let hint = "the push was made for another value of this ref than it has; fetch and push again";
    (!is_current).then(|| Finding::error(REF_MOVED, update.name.as_str(), hint))
}

/// How a push changes the notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotesUpdate {
    /// They are new, or the old ones are an ancestor and each is still there.
    Added,
    /// The note of a commit is missing or another one.
    Changed,
    /// A signed note has more or fewer statements than its signer wrote, so its commit could not be admitted.
    Incomplete,
    /// Something was added that is no note, and that git does not keep.
    OtherEntries,
    /// The old ones are not an ancestor.
    Rewritten,
    /// They are deleted.
    Deleted,
}

/// Judges a change of the notes themselves.
#[must_use]
pub fn judge_notes_update(update: NotesUpdate) -> Option<Finding> {
    const NOTES_REWRITTEN: Code = Code::new("attest-notes-rewritten");
    let hint = match update {
        NotesUpdate::Added => return None,
        NotesUpdate::Changed => {
            "the push removes or changes notes that the repository has; restore them, as `git notes --ref=crucible` shows them there"
        }
        NotesUpdate::Incomplete => {
            "the push writes a signed note with added or missing lines; push the note as its signer wrote it"
        }
        NotesUpdate::OtherEntries => {
            "the push adds something other than a regular file to the notes, which git cannot merge; fetch the notes and add yours with `git notes`"
        }
        NotesUpdate::Rewritten => {
            "the push does not contain the notes of the repository; fetch them and merge with `git notes merge`"
        }
        NotesUpdate::Deleted => {
            "the push deletes the notes, and with them the statements of all commits"
        }
    };
    Some(Finding::error(NOTES_REWRITTEN, NOTES_REF, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ref_update_is_read_strictly() {
        let (zero, one) = ("0".repeat(40), "1".repeat(40));
        let update: RefUpdate = format!("{zero} {one} refs/heads/a b").parse().unwrap();
        assert!(is_zero(&update.old) && !update.is_deletion());
        assert_eq!(update.name, "refs/heads/a b");
        for bad in [
            String::new(),
            format!("{zero} {one}"),
            format!("{zero} {one} main"),
            format!("{zero} {} refs/heads/a", &one[1..]),
            format!("{zero} {} refs/heads/a", "G".repeat(40)),
        ] {
            assert!(bad.parse::<RefUpdate>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn refs_that_replace_objects_are_refused() {
        let (zero, one) = ("0".repeat(40), "1".repeat(40));
        let judged = |new: &str, name: &str| {
            let update: RefUpdate = format!("{zero} {new} {name}").parse().unwrap();
            judge_replacement(&update).is_some()
        };
        assert!(judged(&one, &format!("refs/replace/{one}")));
        assert!(!judged(&zero, &format!("refs/replace/{one}")));
        assert!(!judged(&one, "refs/heads/replace/x"));
    }

    #[test]
    fn refs_that_hide_the_notes_are_refused() {
        let (zero, one) = ("0".repeat(40), "1".repeat(40));
        let update = |new: &str, name: &str| -> RefUpdate {
            format!("{zero} {new} {name}").parse().unwrap()
        };
        for (name, is_refused) in [
            ("refs/refs/notes/crucible", true),
            ("refs/heads/refs/notes/crucible", true),
            ("refs/notes/crucible/x", true),
            ("refs/notes/crucible", false),
            ("refs/notes/crucible-old", false),
            ("refs/heads/notes/crucible", false),
        ] {
            assert_eq!(
                judge_ref_name(&update(&one, name)).is_some(),
                is_refused,
                "{name}"
            );
            assert_eq!(
                judge_ref_name(&update(&zero, name)),
                None,
                "a deletion helps"
            );
        }
        let updates =
            ["refs/heads/a", "refs/heads/b", "refs/heads/a"].map(|name| update(&one, name));
        let names = || updates.iter().map(|update| update.name.as_str());
        assert_eq!(judge_repeated_refs(names().take(2)), []);
        assert_eq!(judge_repeated_refs(names()).len(), 1);
    }

    #[test]
    fn old_value_must_be_current() {
        let [zero, one, two] = ["0", "1", "2"].map(|digit| digit.repeat(40));
        for (old, current, is_refused) in [
            (&one, Some(&one), false),
            (&zero, None, false),
            (&one, Some(&two), true),
            (&zero, Some(&one), true),
            (&one, None, true),
        ] {
            let update: RefUpdate = format!("{old} {two} refs/notes/crucible").parse().unwrap();
            let found = judge_old_value(&update, current.map(String::as_str));
            assert_eq!(found.is_some(), is_refused, "{old} {current:?}");
        }
    }

    #[test]
    fn only_added_notes_are_accepted() {
        assert_eq!(judge_notes_update(NotesUpdate::Added), None);
        for update in [
            NotesUpdate::Changed,
            NotesUpdate::OtherEntries,
            NotesUpdate::Rewritten,
            NotesUpdate::Deleted,
        ] {
            let code = judge_notes_update(update).unwrap().code;
            assert_eq!(code.as_str(), "attest-notes-rewritten");
        }
    }
}
