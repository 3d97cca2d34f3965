//! Properties of every command: no panic, accepted only if the specification accepts it, and a
//! deterministic verdict.

use crucible_crawl::allowed_prefixes;
use crucible_repo::BuildSystem;
use proptest::prelude::*;

use super::differential::Generator;
use super::golden;
use super::support::{judge, plan, step, workspace};

/// The specification's rules, parsed again from the golden file and implemented in the simplest
/// way.
fn seed_accepts(system: BuildSystem, command: &str, tokens: &[String]) -> bool {
    let begins = allowed_prefixes(system)
        .iter()
        .any(|prefix| command.starts_with(prefix));
    let holds_token = tokens.iter().any(|token| command.contains(token.as_str()));
    let is_absolute = command.split_whitespace().any(|word| word.starts_with('/'));
    let has_parent = command
        .split(['/', ' ', '=', ':', ','])
        .any(|part| part == "..");
    begins && !holds_token && !is_absolute && !has_parent
}

fn any_system() -> impl Strategy<Value = BuildSystem> {
    proptest::sample::select(BuildSystem::ALL.to_vec())
}

/// An accepted command with an insertion, or arbitrary text.
fn any_command() -> impl Strategy<Value = (BuildSystem, String)> {
    let known: Vec<(BuildSystem, String)> = golden::accepted()
        .map(|(system, command)| (system.parse().unwrap(), command))
        .collect();
    let mutated = (
        proptest::sample::select(known),
        any::<prop::sample::Index>(),
        "\\PC{0,3}|[ -~]{0,6}|\n|\t|\\.\\.|/",
    )
        .prop_map(|((system, command), at, inserted)| {
            let at = at.index(command.len() + 1);
            (
                system,
                format!("{}{inserted}{}", &command[..at], &command[at..]),
            )
        });
    prop_oneof![
        mutated,
        (any_system(), any::<String>()),
        (any_system(), "[ -~]{0,80}")
    ]
}

proptest! {
    #[test]
    fn accepted_commands_match_specification((system, command) in any_command()) {
        let tokens: Vec<String> = golden::tokens().collect();
        if judge(system.as_str(), &command).is_valid() {
            prop_assert!(seed_accepts(system, &command, &tokens), "{command:?}");
            prop_assert!(command.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        }
    }

    #[test]
    fn no_plan_makes_it_panic(
        name in any::<String>(), cwd in any::<String>(), note in any::<String>(), system in any::<String>(),
        key in any::<String>(), value in any::<String>(), confidence in any::<f64>()
    ) {
        let mut plan = plan(&system, vec![step("make")]);
        plan.detected.confidence = confidence;
        let step = &mut plan.steps[0];
        (step.name, step.cwd, step.note) = (name, cwd, note);
        step.env.insert(key, value);
        let safety = crucible_crawl::validate_plan_safety(&plan, &workspace());
        prop_assert_eq!(safety.is_valid(), safety.violations().is_empty());
    }

    #[test]
    fn no_command_has_more_findings_than_anybody_reads((system, command) in any_command(), times in 1_usize..400) {
        let command = vec![command; times].join(" ");
        prop_assert!(judge(system.as_str(), &command).verdict.findings().len() <= 18);
    }

    #[test]
    fn judging_is_pure((system, command) in any_command()) {
        let plan = plan(system.as_str(), vec![step(&command)]);
        let before = plan.clone();
        let first = crucible_crawl::validate_plan_safety(&plan, &workspace());
        prop_assert_eq!(&first, &crucible_crawl::validate_plan_safety(&plan, &workspace()));
        prop_assert_eq!(plan, before);
    }
}

#[test]
fn generated_accepted_commands_obey_the_literal_rules() {
    let tokens: Vec<String> = golden::tokens().collect();
    let accepted: Vec<_> = Generator::new(7)
        .take(20_000)
        .filter(|(s, c)| judge(s.as_str(), c).is_valid())
        .collect();
    assert!(accepted.len() > 5_000, "{}", accepted.len());
    for (system, command) in accepted {
        assert!(
            seed_accepts(system, &command, &tokens),
            "{system}: {command:?}"
        );
    }
}
