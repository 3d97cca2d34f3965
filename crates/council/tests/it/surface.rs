//! Checks the public API, read from the source: the crate's doc tests prove that private items cannot be
//! reached, and these tests that nothing else is public.

const SOURCE: &str = include_str!("../../src/lib.rs");

/// Every name that can be used from outside.
const PUBLIC: &[&str] = &[
    "AfterAttack",
    "CallUsage",
    "ComplexityDomain",
    "CouncilBackend",
    "CouncilError",
    "CouncilFailure",
    "CouncilLimits",
    "CouncilRole",
    "CouncilSeat",
    "Crucible",
    "Degradation",
    "DegradationKind",
    "DeltaChoice",
    "DeltaStrategy",
    "DeltaVerdict",
    "EngineConfig",
    "ExecutorResult",
    "HintedModels",
    "Independence",
    "LoopGrammar",
    "LoopRecord",
    "Observability",
    "PairSimilarity",
    "Part",
    "Positions",
    "RedTeamFlavor",
    "SeatId",
    "TriageContext",
    "TriageOutput",
    "Turn",
    "TurnKind",
    "Violation",
    "Wording",
];

/// The code of the crate's root, without its comments.
fn code() -> String {
    let lines = SOURCE
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The names in `pub use path::{A, B};` and `pub use path::A;`.
fn public_names(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for declaration in code.split("pub use ").skip(1) {
        let path = declaration.split(';').next().unwrap();
        let last = path.split_once("::{").map_or_else(
            || path.rsplit("::").next().unwrap().to_owned(),
            |(_, group)| group.trim_end().strip_suffix('}').unwrap().to_owned(),
        );
        names.extend(
            last.split(',')
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty()),
        );
    }
    names.sort();
    names
}

#[test]
fn public_names_match_list() {
    assert_eq!(public_names(&code()), PUBLIC);
}

#[test]
fn nothing_else_of_the_root_is_public() {
    let code = code();
    let rest: Vec<&str> = code
        .lines()
        .filter(|line| line.contains("pub") && !line.starts_with("pub use "))
        .collect();
    assert_eq!(rest, ["pub mod configured;", "pub mod text;"]);
    assert!(!code.contains("#[macro_export]"));
    let modules: Vec<&str> = code
        .lines()
        .filter(|line| line.starts_with("mod "))
        .collect();
    assert!(modules.len() >= 17, "the modules are read: {modules:?}");
}

#[test]
fn added_public_name_is_detected() {
    let wider = "pub use executor::execute;\npub use a::b::{\n    One,\n    two as Two,\n};\npub use triage::*;\n";
    assert_eq!(public_names(wider), ["*", "One", "execute", "two as Two"]);
}

#[test]
fn root_docs_contain_example() {
    // Doc tests need a fenced block in a doc comment of the package; one in an included page is not
    // found.
    assert!(SOURCE.contains("//! ```compile_fail\n"));
    assert!(SOURCE.contains("#![doc = include_str!(\"../README.md\")]\n"));
}
