//! The golden file: every accepted and rejected command of the specification, every prefix and
//! token, and attacks on every program.

use crucible_crawl::allowed_prefixes;
use crucible_repo::BuildSystem;

use super::support::{judge, refusals};

const GOLDEN: &str = include_str!("golden.txt");

fn lines(start: &'static str) -> impl Iterator<Item = &'static str> {
    GOLDEN
        .lines()
        .filter_map(move |line| line.strip_prefix(start))
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        out.push_str(plain);
        let kind = escape.chars().next().unwrap();
        rest = &escape[1..];
        match kind {
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            's' => out.push(' '),
            'e' => out.push('\u{1b}'),
            '\\' => out.push('\\'),
            'u' => {
                let (digits, after) = rest.strip_prefix('{').unwrap().split_once('}').unwrap();
                out.push(char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap());
                rest = after;
            }
            other => panic!("unknown escape {other:?} in {text:?}"),
        }
    }
    out + rest
}

/// The accepted commands of the golden file, each with its system.
pub(crate) fn accepted() -> impl Iterator<Item = (&'static str, String)> {
    lines("+ ")
        .map(|line| line.split_once(' ').unwrap())
        .map(|(system, command)| (system, unescaped(command)))
}

/// The prohibited tokens of the specification.
pub(crate) fn tokens() -> impl Iterator<Item = String> {
    lines("token ").map(unescaped)
}

/// The refused commands, each with its system and a code.
fn refused() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    lines("- ").map(|line| {
        let (system, rest) = line.split_once(' ').unwrap();
        let (code, command) = rest.split_once(' ').unwrap();
        (system, code, unescaped(command))
    })
}

#[test]
fn prefixes_match_the_specification_in_order() {
    let written: Vec<(&str, String)> = lines("prefix ")
        .map(|line| line.split_once(' ').unwrap())
        .map(|(s, p)| (s, unescaped(p)))
        .collect();
    let known: Vec<(&str, String)> = BuildSystem::ALL
        .into_iter()
        .flat_map(|system| {
            allowed_prefixes(system)
                .iter()
                .map(move |p| (system.as_str(), (*p).to_owned()))
        })
        .collect();
    assert_eq!(known, written);
}

#[test]
fn each_prohibited_token_is_refused_by_name() {
    let tokens: Vec<String> = tokens().collect();
    assert_eq!(tokens.len(), 59);
    for token in tokens {
        for command in [
            format!("make a{token}b"),
            format!("make {token}"),
            format!("{token}make"),
        ] {
            let safety = judge("make", &command);
            let named = safety.verdict.errors().any(|finding| {
                finding.code.as_str() == "build-token-prohibited"
                    && finding.subject.ends_with(&format!(": {token}"))
            });
            assert!(named, "{command:?}: {:?}", safety.violations());
        }
    }
}

#[test]
fn every_command_listed_as_harmless_is_accepted() {
    let wrong: Vec<String> = accepted()
        .filter_map(|(system, command)| {
            let safety = judge(system, &command);
            (!safety.is_valid())
                .then(|| format!("{system}: {command:?}: {:?}", safety.violations()))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_attack_is_refused_for_its_own_reason() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (system, code, command) in refused() {
        count += 1;
        let safety = judge(system, &command);
        if !refusals(&safety).contains(&format!("build-{code}")) {
            wrong.push(format!(
                "{system} {code}: {command:?}: {:?}",
                safety.violations()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 300, "{count}");
}

#[test]
fn every_prefix_occurs_in_an_accepted_command() {
    for system in BuildSystem::ALL {
        for prefix in allowed_prefixes(system) {
            let is_used = accepted()
                .any(|(of, command)| of == system.as_str() && command.starts_with(prefix));
            assert!(is_used, "{system}: {prefix:?}");
        }
    }
}
