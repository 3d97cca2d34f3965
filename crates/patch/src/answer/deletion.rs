//! Definitions that an answer takes away: a line `DELETE: name` outside of the blocks, below the file's name.
//!
//! A block of definitions cannot say that one goes. The line names one definition of the file, with its container where it
//! has one: `DELETE: Shape.area`, `DELETE: Shape::area`. The judge of the change treats the removal as any other.

use crucible_model::RepoPath;

use super::apply::without_mark;
use super::fence::AnswerBlock;
use super::splice::Target;
use super::{AnswerError, Edit, EditKind, answer_blocks, name};

/// The most lines of this form that are read.
const MAX_DELETED: u64 = 500;

/// Takes the deletions out of an answer with LF line ends. The rest keeps its line numbers.
///
/// # Errors
///
/// Fails when the answer's blocks cannot be read, when a line stands below no file's name, or when there are too many.
pub(super) fn deletions(
    text: &str,
    expected: &[RepoPath],
) -> Result<(String, Vec<Edit>), AnswerError> {
    if !text.lines().any(|line| deleted(line).is_some()) {
        return Ok((text.to_owned(), Vec::new()));
    }
    let blocks = answer_blocks(text)?;
    let (mut rest, mut edits) = (String::with_capacity(text.len()), Vec::new());
    let mut path = None;
    for (number, line) in (1u64..).zip(text.split_inclusive('\n')) {
        let inside = blocks
            .iter()
            .find(|block| lines_of(block).contains(&number));
        let Some(what) = deleted(line).filter(|_| inside.is_none()) else {
            rest.push_str(line);
            if inside.is_none() {
                path = name::in_label(line, number, expected)?.or(path);
            }
            continue;
        };
        // Without a name, an answer is about the only file that was asked for.
        let file = match (&path, expected) {
            (Some(path), _) | (None, [path]) => path.clone(),
            (None, _) => return Err(AnswerError::NoPath { line: number }),
        };
        if edits.len() as u64 == MAX_DELETED {
            return Err(AnswerError::TooManyEdits { limit: MAX_DELETED });
        }
        edits.push(Edit {
            path: file,
            kind: EditKind::Delete {
                name: what.to_owned(),
            },
        });
        rest.push('\n');
    }
    Ok((rest, edits))
}

/// Returns a file without one of its definitions.
///
/// # Errors
///
/// Fails when the file has no such definition, more than one, or one that cannot go alone.
pub(super) fn without(
    path: &RepoPath,
    name: &str,
    before: Option<&[u8]>,
) -> Result<Vec<u8>, AnswerError> {
    let (mark, text) = without_mark(before.unwrap_or_default());
    let target = std::str::from_utf8(text)
        .ok()
        .and_then(|text| Target::of(path, text));
    let target = target.ok_or_else(|| AnswerError::NoSuchDefinition {
        path: path.clone(),
        name: name.to_owned(),
    })?;
    let text = target.without(path, name)?;
    Ok([mark, text.as_bytes()].concat())
}

/// What a line deletes.
fn deleted(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches("- ").trim_matches('`');
    let name = line.strip_prefix("DELETE:")?.trim().trim_matches('`');
    let name = name.strip_suffix("()").unwrap_or(name);
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some(name)
}

/// The lines of a block with its fences, counted from 1.
fn lines_of(block: &AnswerBlock<'_>) -> std::ops::RangeInclusive<u64> {
    let inside = block.content.lines().count() as u64;
    block.line..=block.line + inside + 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crucible_model::{EditFormat, Untrusted};

    use super::*;
    use crate::answer::{Proposal, apply, read_answer};

    const FILE: &str = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n\n\nclass B:\n    \
        def f(self):\n        return 3\n\n\ndef helper():\n    return 4\n\n\ndef last():\n    return 5\n";

    fn applied(answer: &str) -> Result<String, AnswerError> {
        let path: RepoPath = "a.py".parse().unwrap();
        let files = BTreeMap::from([(path.clone(), FILE.as_bytes().to_vec())]);
        let expected = [path.clone()];
        let proposal = read_answer(EditFormat::Definitions, &Untrusted::new(answer), &expected)?;
        let after = apply(&proposal, &files)?;
        Ok(String::from_utf8(after[&path].clone()).unwrap())
    }

    #[test]
    fn deleted_definition_goes_alone() {
        let helper = "\n\n\ndef helper():\n    return 4";
        for answer in [
            "FILE: a.py\nDELETE: helper\n",
            "DELETE: helper()\n",
            "It is dead.\n\nFILE: a.py\n- `DELETE: helper`\n",
        ] {
            assert_eq!(
                applied(answer).unwrap(),
                FILE.replace(helper, ""),
                "{answer}"
            );
        }
        let method = "\n\n    def g(self):\n        return 2";
        for name in ["g", "A.g", "A::g"] {
            let answer = format!("FILE: a.py\nDELETE: {name}\n");
            assert_eq!(
                applied(&answer).unwrap(),
                FILE.replace(method, ""),
                "{name}"
            );
        }
    }

    #[test]
    fn deletion_stands_beside_changed_definitions() {
        let expected = FILE
            .replace("\n\n\ndef helper():\n    return 4", "")
            .replace("return 5", "return 6");
        let block = "```\ndef last():\n    return 6\n```\n";
        for answer in [
            format!("FILE: a.py\n{block}DELETE: helper\n"),
            format!("FILE: a.py\nDELETE: helper\n{block}"),
        ] {
            assert_eq!(applied(&answer).unwrap(), expected, "{answer}");
        }
    }

    #[test]
    fn line_within_a_block_deletes_nothing() {
        let answer = "FILE: a.py\n```\ndef last():\n    return '''\nDELETE: helper\n'''\n```\n";
        assert!(applied(answer).unwrap().contains("def helper"));
    }

    #[test]
    fn unclear_deletion_is_refused() {
        for (name, code) in [
            ("f", "answer-same-name"),
            ("missing", "answer-no-such-definition"),
            ("C.f", "answer-no-such-definition"),
        ] {
            let error = applied(&format!("FILE: a.py\nDELETE: {name}\n")).unwrap_err();
            assert_eq!(error.code().as_str(), code, "{name}");
        }
        let outside = applied("FILE: ../b.py\nDELETE: f\n").unwrap_err();
        assert_eq!(outside.code().as_str(), "answer-bad-path");
        let both: Vec<RepoPath> = ["a.py", "b.py"].map(|path| path.parse().unwrap()).into();
        let unnamed = deletions("DELETE: f\n", &both).unwrap_err();
        assert_eq!(unnamed.code().as_str(), "answer-no-path");
        let many = "FILE: a.py\n".to_owned() + &"DELETE: f\n".repeat(501);
        assert_eq!(
            deletions(&many, &both).unwrap_err().code().as_str(),
            "answer-too-many-edits"
        );
    }

    #[test]
    fn class_may_be_written_in_two_blocks() {
        let f = "    def f(self):\n        return 7\n";
        let g = "    def g(self):\n        return 8\n";
        let answer = format!("FILE: a.py\n```\nclass A:\n{f}\nclass A:\n{g}```\n");
        let expected = FILE
            .replace("return 1", "return 7")
            .replace("return 2", "return 8");
        assert_eq!(applied(&answer).unwrap(), expected);
        // The same method twice says two things.
        let twice = format!("FILE: a.py\n```\nclass A:\n{f}\nclass A:\n{f}```\n");
        assert_eq!(
            applied(&twice).unwrap_err().code().as_str(),
            "answer-same-name"
        );
        // So do two first lines, and a new class in two pieces.
        let bases = format!("FILE: a.py\n```\nclass A(X):\n{f}\nclass A(Y):\n{g}```\n");
        assert_eq!(
            applied(&bases).unwrap_err().code().as_str(),
            "answer-same-name"
        );
        let new = format!("FILE: a.py\n```\nclass C:\n{f}\nclass C:\n{g}```\n");
        assert_eq!(
            applied(&new).unwrap_err().code().as_str(),
            "answer-same-name"
        );
    }

    #[test]
    fn deletions_alone_are_edits() {
        let answer = Untrusted::new("FILE: a.py\nDELETE: helper\n");
        let expected = ["a.py".parse().unwrap()];
        let Ok(Proposal::Edits(edits)) = read_answer(EditFormat::Definitions, &answer, &expected)
        else {
            panic!("they are read");
        };
        assert_eq!(edits.len(), 1);
    }
}
