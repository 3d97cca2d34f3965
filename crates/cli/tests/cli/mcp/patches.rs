//! A patch gets the same verdict from the tool as from the command.

use std::fs;

use serde_json::json;

use super::client::{Client, fenced};
use crate::support::{Fixture, GOOD_DIFF, Ran, small};

const POLICY: &str = r#"{"allow_roots":["src/"],"max_added_lines":50,"max_files":2}"#;

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A patch with some lines or characters changed.
fn mutated(numbers: &mut Numbers) -> String {
    let mut lines: Vec<String> = GOOD_DIFF.lines().map(str::to_owned).collect();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(lines.len());
        match numbers.below(7) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                lines[at] = lines[at].replace(
                    "src/",
                    ["tests/", "../", "src/x/", ".git/", "\u{202e}"][numbers.below(5)],
                )
            }
            3 => {
                let other = numbers.below(lines.len());
                lines.swap(at, other);
            }
            4 => lines[at].push(['x', '\t', '\r', '\u{1b}', '\0'][numbers.below(5)]),
            5 => {
                let digits = numbers.below(100_000).to_string();
                lines[at] = lines[at].replace(|c: char| c.is_ascii_digit(), &digits);
            }
            _ => lines.insert(
                at,
                [
                    "new file mode 120000",
                    "GIT binary patch",
                    "rename from a",
                    "old mode 100644",
                ][numbers.below(4)]
                .to_owned(),
            ),
        }
        if lines.is_empty() {
            lines.push(String::new());
        }
    }
    lines.join("\n") + "\n"
}

/// Compares the verdicts of this many patches, byte for byte.
fn agree(count: usize) {
    let (repo, fixture) = (small().build(), Fixture::new());
    let (policy, file) = (fixture.path("policy.json"), fixture.path("change.patch"));
    fs::write(&policy, POLICY).unwrap();
    let mut client = Client::begun(&fixture, repo.path());
    let mut numbers = Numbers(21);
    let (mut passed, mut refused) = (0, 0);
    for number in 0..count {
        let patch = if number == 0 {
            GOOD_DIFF.to_owned()
        } else {
            mutated(&mut numbers)
        };
        fs::write(&file, &patch).unwrap();
        let policy_value: serde_json::Value = serde_json::from_str(POLICY).unwrap();
        let answer = client.call(
            "check_patch",
            json!({ "patch": patch, "policy": policy_value }),
        );
        let call = fixture
            .call(["patch", "check", "--json"])
            .current_dir(repo.path());
        let Ran { code, stdout, .. } = call
            .arg("--patch")
            .arg(&file)
            .arg("--policy")
            .arg(&policy)
            .run();
        assert_eq!(format!("{}\n", fenced(&answer)), stdout, "{patch:?}");
        let message = answer.lines().next().unwrap();
        match code {
            Some(0) => {
                passed += 1;
                assert_eq!(message, "The patch may be applied.");
            }
            Some(1) => {
                refused += 1;
                assert_eq!(message, "The patch is refused.");
            }
            other => panic!("{other:?}: {stdout}"),
        }
    }
    assert!(passed > 0 && refused > count / 4, "{passed} {refused}");
}

#[test]
fn verdicts_equal_those_of_the_command() {
    agree(50);
}

mod slow {
    #[test]
    fn hundred_verdicts_equal_those_of_the_command() {
        super::agree(100);
    }
}

mod exhaustive {
    #[test]
    fn thousand_verdicts_equal_those_of_the_command() {
        super::agree(1000);
    }
}
