//! What a proposal keeps, and what it is refused for.

use crucible_model::{ClockSource, Digest, Timestamp};

use super::*;

const KEY: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";

fn parts() -> ProposalParts {
    let io_schema = json!({"input": {"type": "object"}, "output": {"type": "object"}});
    ProposalParts {
        name: "word_count".parse().unwrap(),
        description: "Counts the words of a text.".to_owned(),
        io_schema: IoSchema::from_value(io_schema).unwrap(),
        side_effect: SideEffect::ReadOnly,
        grants: Grants::default(),
        examples: vec![HeldOutExample {
            input: json!({"text": "held back"}),
            output: json!({"count": 2}),
        }],
    }
}

fn project() -> ForgeProject {
    ForgeProject::new(
        "/p".into(),
        Digest::compute(b"p"),
        "skillset".parse().unwrap(),
    )
}

fn moment() -> Moment {
    Moment {
        at: "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap(),
        clock: ClockSource::System,
    }
}

#[test]
fn examples_are_stored_outside_the_specification() {
    let home = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(&home.path().join("ledger.db")).unwrap();
    let proposal = SkillProposal::new(parts()).unwrap();
    let id = proposal.record(&mut ledger, &project(), moment()).unwrap();
    let artifacts = ledger.skill_artifacts(id).unwrap();
    let kinds: Vec<&str> = artifacts
        .iter()
        .map(|artifact| artifact.kind.as_str())
        .collect();
    assert_eq!(kinds, ["SKILL_SPEC", "NOTE"]);
    let spec = proposal.spec(&project()).unwrap();
    assert_eq!(artifacts[0].digest, Digest::compute(&spec));
    let text = String::from_utf8(spec).unwrap();
    assert!(!text.contains("held back"), "{text}");
    let held_out = HeldOutExample::document(&parts().examples);
    assert_eq!(artifacts[1].digest, Digest::compute(&held_out));
    let second_count =
        SkillProposal::new(parts())
            .unwrap()
            .record(&mut ledger, &project(), moment());
    assert!(matches!(
        second_count,
        Err(ProposalError::Ledger(LedgerError::SkillTaken { .. }))
    ));
    let without = ProposalParts {
        name: "other".parse().unwrap(),
        examples: Vec::new(),
        ..parts()
    };
    let id = SkillProposal::new(without)
        .unwrap()
        .record(&mut ledger, &project(), moment())
        .unwrap();
    assert_eq!(ledger.skill_artifacts(id).unwrap().len(), 1);
    assert!(ledger.verify(&[]).unwrap().passes());
}

#[test]
fn secret_in_any_text_is_refused_unquoted() {
    let schema = |part: Value| {
        let document =
            json!({"input": {"type": "object", "x": part}, "output": {"type": "object"}});
        IoSchema::from_value(document).unwrap()
    };
    let example = |input: Value| {
        vec![HeldOutExample {
            input,
            output: json!({}),
        }]
    };
    let worst = [
        ProposalParts {
            description: format!("Sends {KEY} along."),
            ..parts()
        },
        ProposalParts {
            io_schema: schema(json!({ "default": KEY })),
            ..parts()
        },
        ProposalParts {
            io_schema: schema(json!({ KEY: {} })),
            ..parts()
        },
        ProposalParts {
            examples: example(json!({ "text": [KEY] })),
            ..parts()
        },
        ProposalParts {
            examples: example(json!({ "token": KEY })),
            ..parts()
        },
    ];
    for parts in worst {
        let error = SkillProposal::new(parts).unwrap_err();
        assert!(matches!(error, ProposalError::Secret { .. }), "{error}");
        assert!(!error.to_string().contains(KEY));
    }
}

#[test]
fn empty_multiline_or_long_description_is_rejected() {
    let with = |description: &str| {
        SkillProposal::new(ProposalParts {
            description: description.to_owned(),
            ..parts()
        })
    };
    for empty in ["", " ", "\u{3000}"] {
        assert!(
            matches!(with(empty), Err(ProposalError::NoDescription)),
            "{empty:?}"
        );
    }
    for hidden in ["a\u{1b}[2Jb", "a\nb", "a\u{202e}b", "a\u{0}", "a\u{200b}b"] {
        assert!(
            matches!(with(hidden), Err(ProposalError::HiddenCharacter { .. })),
            "{hidden:?}"
        );
    }
    assert!(with(&"ä".repeat(MAX_DESCRIPTION_CHARS)).is_ok());
    assert!(matches!(
        with(&"ä".repeat(MAX_DESCRIPTION_CHARS + 1)),
        Err(ProposalError::LongDescription { .. })
    ));
}

#[test]
fn grants_not_matching_the_class_are_refused() {
    let parts = ProposalParts {
        side_effect: SideEffect::Network,
        ..parts()
    };
    assert!(matches!(
        SkillProposal::new(parts),
        Err(ProposalError::Grants(_))
    ));
}
