//! A comparison with real shells: dash and bash split every accepted command into the same words as we
//! do.
//!
//! Each accepted command is a line of a script in which every program is a function that prints its own
//! name and its arguments. One shell reads many of them.
#![expect(
    clippy::disallowed_methods,
    reason = "the witnesses are real shells, and they read a script from a file"
)]

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use crucible_crawl::{allowed_prefixes, validate_plan_safety};
use crucible_repo::BuildSystem;

use super::golden;
use super::support::{plan, step, workspace};

/// Endless commands of a grammar near the accepted one, some with hostile parts; deterministic for a
/// seed.
pub(crate) struct Generator {
    state: u64,
    known: Vec<(BuildSystem, Vec<String>)>,
    options: Vec<Vec<String>>,
}

const NASTY: &[&str] = &[
    "\n", "\t", "\r", "  ", "'", "\"", "\\", "$", "`", "*", "?", "[", "]", "{a,b}", "#", "!", "~",
    "&", "<", ">", "(", ")", "|", ";", "=", ":", ",", "@", "+", "%", "^", "-", "--", ".", "..",
    "/", "\u{0}", "\u{a0}", "\u{200b}", "\u{fc}", "$IFS", "%1", "a=b", "<<x", "2>x", "\\\n", "''",
    "$'a'", "\u{7f}", "\u{1b}", " #", " -", " =", " :", " ,", " . ", "~+", "=~",
];
const WORDS: &[&str] = &[
    "all", "a", "a.b", "src", "./x", "x/y", "lib:x", "a,b", "x_1", "unit", "-j4", "test", "CI",
    "if", "then", "fi", "do", "done", "case", "time", "4", "0x1", "1e3", "a+b", "e=f", "V=1",
    "DEBUG=0", "x@1", ":", ".", "a:b:c", "esac", "while", "in",
];

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        let known: Vec<(BuildSystem, Vec<String>)> = golden::accepted()
            .map(|(system, command)| {
                (
                    system.parse().unwrap(),
                    command.split(' ').map(str::to_owned).collect(),
                )
            })
            .collect();
        // Options of the same program may be used in any of its commands.
        let options = known
            .iter()
            .map(|(_, words)| options_like(words, &known))
            .collect();
        Self {
            state: seed,
            known,
            options,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        // SplitMix64: small, and good enough for choices.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % bound as u64).unwrap()
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

fn options_like(words: &[String], known: &[(BuildSystem, Vec<String>)]) -> Vec<String> {
    let same = |other: &Vec<String>| other[..2.min(other.len())] == words[..2.min(words.len())];
    let of_same = known
        .iter()
        .filter(|(_, other)| same(other))
        .flat_map(|(_, other)| other.iter().skip(2));
    of_same.filter(|word| *word != "--").cloned().collect()
}

impl Iterator for Generator {
    type Item = (BuildSystem, String);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.below(self.known.len());
        let (system, mut words) = self.known[at].clone();
        for _ in 0..self.below(3) {
            let options = std::mem::take(&mut self.options[at]);
            let word = if options.is_empty() || self.below(4) == 0 {
                self.pick(WORDS).to_owned()
            } else {
                self.pick(&options)
            };
            self.options[at] = options;
            words.push(word);
        }
        if self.below(4) == 0 && words.len() > 1 {
            // A name of plain characters instead of the last word.
            let characters: Vec<char> = "abcXYZ019_.-+/:,=@".chars().collect();
            let name: String = (0..1 + self.below(8))
                .map(|_| self.pick(&characters))
                .collect();
            words.pop();
            words.push(name);
        }
        let mut command = words.join(" ");
        if self.below(16) == 0 {
            let nasty = self.pick(NASTY);
            command.insert_str(self.below(command.len() + 1), nasty);
        }
        Some((system, command))
    }
}

/// The words that `shell` sees in these commands: each word ends with a NUL, each command with another.
/// Fails with the shell's error.
fn split_by(shell: &str, commands: &[String]) -> Result<Vec<u8>, String> {
    let mut script = String::new();
    let programs: std::collections::BTreeSet<&str> = BuildSystem::ALL
        .into_iter()
        .flat_map(allowed_prefixes)
        .filter_map(|prefix| prefix.split(' ').next())
        .filter(|program| !program.contains('/'))
        .collect();
    for program in programs {
        writeln!(
            script,
            "{program}() {{ printf '%s\\0' {program} \"$@\" ''; }}"
        )
        .unwrap();
    }
    for command in commands {
        // A function's name contains no `/`, so here the command is passed as arguments.
        let start = if command.starts_with("./") {
            "words "
        } else {
            ""
        };
        writeln!(script, "{start}{command}").unwrap();
    }
    let script = format!("words() {{ printf '%s\\0' \"$@\" ''; }}\n{script}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    std::fs::write(&file, script).unwrap();
    // The directory contains one file, so that an expanded pattern would be visible.
    let run = Command::new(shell)
        .arg("script")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&run.stderr).into_owned();
    if run.status.success() && complaint.is_empty() {
        Ok(run.stdout)
    } else {
        Err(complaint)
    }
}

fn split_by_us(commands: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    for command in commands {
        for word in command.split(' ') {
            out.extend_from_slice(word.as_bytes());
            out.push(0);
        }
        out.push(0);
    }
    out
}

fn agree(commands: &[String]) {
    let own_bytes = split_by_us(commands);
    for shell in ["dash", "bash"] {
        let other_bytes =
            split_by(shell, commands).unwrap_or_else(|complaint| panic!("{shell}: {complaint}"));
        if own_bytes != other_bytes {
            let at = own_bytes
                .iter()
                .zip(&other_bytes)
                .position(|(a, b)| a != b)
                .unwrap_or(own_bytes.len().min(other_bytes.len()));
            let around = |bytes: &[u8]| {
                String::from_utf8_lossy(&bytes[at.saturating_sub(100)..bytes.len().min(at + 100)])
                    .into_owned()
            };
            panic!(
                "{shell} differs:\n{:?}\n{:?}",
                around(&own_bytes),
                around(&other_bytes)
            );
        }
    }
}

/// Collects `wanted` accepted commands and compares them, as a share of the million.
fn share(seed: u64, expected: usize) {
    let mut generator = Generator::new(seed);
    let mut left = expected;
    let mut new_count = 0;
    while left > 0 {
        let batch: Vec<(BuildSystem, String)> = generator.by_ref().take(4_000).collect();
        new_count += batch.len();
        let mut accepted = accepted_of(&batch);
        accepted.truncate(left);
        left -= accepted.len();
        agree(&accepted);
        assert!(
            new_count < expected * 5 + 100_000,
            "too few of the generated commands are accepted: {left} of {expected} left"
        );
    }
}

/// The accepted commands of a batch: one plan per system, and the steps without findings.
fn accepted_of(batch: &[(BuildSystem, String)]) -> Vec<String> {
    let mut accepted = Vec::new();
    for system in BuildSystem::ALL {
        let commands: Vec<&String> = batch
            .iter()
            .filter(|(of, _)| *of == system)
            .map(|(_, command)| command)
            .collect();
        let steps = commands.iter().map(|command| step(command)).collect();
        let safety = validate_plan_safety(&plan(system.as_str(), steps), &workspace());
        let number = |subject: &str| {
            subject
                .strip_prefix("step ")?
                .split(' ')
                .next()?
                .parse::<usize>()
                .ok()
        };
        let refused: std::collections::BTreeSet<usize> = safety
            .verdict
            .errors()
            .filter_map(|finding| number(&finding.subject))
            .collect();
        let kept = commands
            .iter()
            .enumerate()
            .filter(|(index, _)| !refused.contains(&(index + 1)));
        accepted.extend(kept.map(|(_, command)| (*command).clone()));
    }
    accepted
}

#[test]
fn golden_commands_split_alike_in_shells() {
    let commands: Vec<String> = golden::accepted().map(|(_, command)| command).collect();
    agree(&commands);
}

#[test]
fn shell_comparison_detects_differences() {
    for command in [
        "cp 'a' b",
        "cp \"a\" b",
        "cp a\\ b c",
        "cp * b",
        "cp s?ript b",
        "cp [s]cript b",
        "cp a  b",
        " cp a b",
        "cp a b ",
        "cp $x b",
        "cp ${IFS}a b",
        "cp ~ b",
        "cp {a,b} c",
        "cp a #b",
        "cp a\tb",
        "cp a; cp b c",
        "cp a & cp b c",
        "cp a | cp b c",
        "cp a <script b",
        "cp a >b",
        "cp a\ncp b",
        "cp a \\\n b",
        "cp $(printf x) b",
        "cp `printf x` b",
        "cp $'a' b",
        "X=1 cp a b",
        "if cp a b",
        "! cp a b",
        "cp a (b)",
        "cp a )",
        "cp 'a",
        "cp a && cp b c",
        "{ cp a b; }",
        "cp a t''ouch",
        "cp $((1)) b",
    ] {
        let commands = [command.to_owned()];
        let own_bytes = split_by_us(&commands);
        let is_seen = ["dash", "bash"]
            .iter()
            .any(|shell| split_by(shell, &commands).as_ref() != Ok(&own_bytes));
        assert!(is_seen, "{command:?}");
    }
}

mod properties {
    use super::*;

    /// 64 commands for each case of a property: a shell reads thousands per second.
    #[test]
    fn accepted_commands_split_alike_in_shells() {
        let cases = usize::try_from(proptest::test_runner::Config::default().cases).unwrap();
        share(9, 64 * cases);
    }
}

mod exhaustive {
    use super::*;

    /// A million in eight shares, so that several cores can run them in reasonable time.
    macro_rules! shares_of_a_million {
        ($($name:ident: $seed:literal,)*) => {$(
            #[test]
            fn $name() {
                share($seed, 125_000);
            }
        )*};
    }

    shares_of_a_million! {
        the_first_eighth_of_a_million_accepted_commands_has_the_same_words_in_dash_and_bash: 1,
        the_second_eighth_of_a_million_accepted_commands_has_the_same_words_in_dash_and_bash: 2,
        the_third_eighth_of_a_million_accepted_commands_has_the_same_words_in_dash_and_bash: 3,
        the_fourth_eighth_of_a_million_accepted_commands_has_the_same_words_in_dash_and_bash: 4,
        the_fifth_eighth_of_a_million_accepted_commands_has_the_same_words_in_dash_and_bash: 5,
        the_sixth_eighth_of_a_million_accepted_commands_has_the_same_words_in_dash_and_bash: 6,
        the_seventh_eighth_of_a_million_accepted_commands_has_the_same_words_in_dash_and_bash: 7,
        the_last_eighth_of_a_million_accepted_commands_has_the_same_words_in_dash_and_bash: 8,
    }
}
