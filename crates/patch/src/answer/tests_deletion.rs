//! Definitions that an answer takes away, and classes that it writes in several blocks.

use std::collections::BTreeMap;

use crucible_model::{EditFormat, RepoPath, Untrusted};

use super::deletion::deletions;
use super::{AnswerError, Proposal, apply, read_answer};

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
