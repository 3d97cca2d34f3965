//! Whatever is changed after the signature is refused: the commit, the note, the statements, the policy, the key, the time.

use std::sync::LazyLock;

use crucible_attest::{
    CarriedFrom, Change, GateIsolationLevel, GateVerdict, NoteRead, Policy, Strength, judge_file,
    statements,
};
use crucible_model::Digest;
use proptest::prelude::*;
use serde_json::Value;

use crate::sample::{
    AT, Sample, change, codes, instant, judge, judge_by, name_of, new_signer, policy_of,
};

/// Mutations of each kind in one case.
const OF_EACH: usize = 50;

struct World {
    sample: Sample,
    other_policy: String,
    /// The same statements, signed with a key that the policy does not name.
    other_note: Vec<u8>,
    /// A valid note of another commit.
    elsewhere: Vec<u8>,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let room = tempfile::tempdir().unwrap();
        let signer = new_signer(room.path()).await;
        let sample = Sample::signed_by(change(), &signer, room).await;
        let other = new_signer(&sample.room.path().join("other")).await;
        let payloads = statements(&sample.change, &sample.id, &sample.tree).unwrap();
        let other_note = other.sign_all(&payloads).await.unwrap();
        let mut changed = sample.change.clone();
        changed.ledger.seq += 1;
        let payloads = statements(&changed, &sample.id, &sample.tree).unwrap();
        let elsewhere = signer.sign_all(&payloads).await.unwrap();
        World {
            sample,
            other_policy: policy_of(&other),
            other_note,
            elsewhere,
        }
    })
});

#[test]
fn honest_commit_is_admitted() {
    let World {
        sample,
        other_policy,
        other_note,
        elsewhere,
    } = &*WORLD;
    assert_eq!(codes(&sample.judge()), Vec::<String>::new());
    assert_eq!(
        codes(&judge(
            other_policy,
            &sample.commit,
            other_note,
            instant(AT)
        )),
        Vec::<String>::new()
    );
    assert_eq!(
        codes(&judge(
            &sample.policy,
            &sample.commit,
            elsewhere,
            instant(AT)
        )),
        ["attest-trailer-differs"]
    );
}

/// What a statement that was signed says is judged, not only that it was signed.
#[tokio::test]
async fn signed_statement_must_satisfy_the_policy() {
    type Edit = fn(&mut Change);
    let strict = "[require]\ngates = [\"tests\"]\nbroken_change = true\nmin_strength = 0.8\nmodels = [\"gateway/*\"]\n\
                  agents = []\nmax_age_days = 30\n";
    let cases: [(&str, Edit, &[&str]); 17] = [
        ("nothing", |_| {}, &[]),
        (
            "failed",
            |c| c.verification.result = GateVerdict::Failed,
            &["attest-not-passed"],
        ),
        (
            "skipped",
            |c| c.verification.gates[1].result = GateVerdict::Skipped,
            &["attest-not-passed"],
        ),
        (
            "neutral",
            |c| c.verification.gates[1].result = GateVerdict::Neutral,
            &["attest-not-passed"],
        ),
        (
            "no gates",
            |c| c.verification.gates.clear(),
            &[
                "attest-gate-missing",
                "attest-isolation-incomplete",
                "attest-gate-missing",
            ],
        ),
        (
            "other gate",
            |c| c.verification.gates[1].id = "test".to_owned(),
            &["attest-gate-missing"],
        ),
        (
            "partial",
            |c| c.verification.gates[1].isolation = Some(GateIsolationLevel::Partial),
            &["attest-isolation-incomplete"],
        ),
        (
            "unstated",
            |c| c.verification.gates[1].isolation = None,
            &["attest-isolation-incomplete"],
        ),
        (
            "unbroken",
            |c| c.verification.broken_change = None,
            &["attest-broken-change-unchecked"],
        ),
        (
            "neutral check",
            |c| c.verification.broken_change = Some(GateVerdict::Neutral),
            &["attest-broken-change-unchecked"],
        ),
        (
            "weak",
            |c| {
                c.verification.strength = Some(Strength {
                    noticed: 7,
                    mutants: 10,
                })
            },
            &["attest-strength-low"],
        ),
        (
            "no mutants",
            |c| {
                c.verification.strength = Some(Strength {
                    noticed: 0,
                    mutants: 0,
                })
            },
            &["attest-strength-low"],
        ),
        (
            "too strong",
            |c| {
                c.verification.strength = Some(Strength {
                    noticed: 11,
                    mutants: 10,
                })
            },
            &["attest-strength-low"],
        ),
        (
            "other model",
            |c| c.calls[0].provider = "other".to_owned(),
            &["attest-model-denied"],
        ),
        ("no calls", |c| c.calls.clear(), &["attest-model-denied"]),
        (
            "agent",
            |c| c.agents.push("claude".to_owned()),
            &["attest-agent-denied"],
        ),
        (
            "carried",
            |c| {
                c.carried_from = Some(CarriedFrom {
                    commit: "c".repeat(40),
                    statement: c.patch,
                })
            },
            &["attest-carried"],
        ),
    ];
    let temp_dir = tempfile::tempdir().unwrap();
    let signer = new_signer(temp_dir.path()).await;
    for (what, edit, expected) in cases {
        let mut change = change();
        edit(&mut change);
        let mut sample = Sample::signed_by(change, &signer, tempfile::tempdir().unwrap()).await;
        sample.policy.push_str(strict);
        assert_eq!(codes(&sample.judge()), expected, "{what}");
    }
    let mut sample = Sample::signed_by(change(), &signer, temp_dir).await;
    sample.policy.push_str(strict);
    for (now, expected) in [
        ("2026-11-27T09:26:00Z", &[][..]),
        ("2026-11-27T09:24:00Z", &["attest-in-future"]),
        ("1970-01-01T00:00:00Z", &["attest-in-future"]),
        ("2026-12-27T09:30:00Z", &[]),
        ("2026-12-27T09:30:01Z", &["attest-too-old"]),
        ("9000-12-31T00:00:00Z", &["attest-too-old"]),
    ] {
        assert_eq!(codes(&sample.judge_at(now)), expected, "{now}");
    }
}

/// A commit with another base, other parents, or other trailers is not the one that landed.
#[tokio::test]
async fn commit_must_be_the_one_that_landed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let signer = new_signer(temp_dir.path()).await;
    let sample = Sample::signed_by(change(), &signer, temp_dir).await;
    let text = String::from_utf8(sample.commit.clone()).unwrap();
    let parent = format!("parent {}\n", "b".repeat(40));
    for (commit, expected) in [
        (text.replace(&parent, ""), "attest-base-differs"),
        (
            text.replace(&parent, &parent.repeat(2)),
            "attest-base-differs",
        ),
        (
            text.replace(&parent, &format!("parent {}\n", "c".repeat(40))),
            "attest-base-differs",
        ),
        (
            text.replace("Crucible-Run: 2026", "Crucible-Run: 2025"),
            "attest-trailer-differs",
        ),
        (
            text.replace("Crucible-Plan", "Crucible-Plans"),
            "attest-trailer-differs",
        ),
        (
            text.replace("Crucible-Ledger: 41:", "Crucible-Ledger: 42:"),
            "attest-trailer-differs",
        ),
        (
            format!("{text}Crucible-Run: other\n"),
            "attest-trailer-differs",
        ),
    ] {
        // The signer signed exactly this commit, and still it is not what was verified.
        let id = name_of(commit.as_bytes());
        let payloads = statements(&sample.change, &id, &sample.tree).unwrap();
        let note = signer.sign_all(&payloads).await.unwrap();
        let judged = judge(&sample.policy, commit.as_bytes(), &note, instant(AT));
        assert_eq!(codes(&judged), [expected], "{commit}");
        // Without that, it is another commit.
        let judged = judge(&sample.policy, commit.as_bytes(), &sample.note, instant(AT));
        assert_eq!(codes(&judged), ["attest-subject-differs"], "{commit}");
    }
}

/// A source of numbers for one case.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below.max(1)
    }
}

/// Changes some bytes: one is replaced, removed, added or repeated, or a part is removed, repeated or moved.
fn mutate(bytes: &[u8], dice: &mut RandomNumbers) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let at = dice.roll(out.len());
    match dice.roll(7) {
        0 => out[at] ^= 1 << dice.roll(8),
        1 => out[at] = u8::try_from(dice.roll(256)).unwrap(),
        2 => {
            out.remove(at);
        }
        3 => out.insert(at, u8::try_from(dice.roll(256)).unwrap()),
        4 => {
            let end = (at + 1 + dice.roll(60)).min(out.len());
            out.drain(at..end);
        }
        5 => {
            let end = (at + 1 + dice.roll(60)).min(out.len());
            let part = out[at..end].to_vec();
            let to = dice.roll(out.len());
            out.splice(to..to, part);
        }
        _ => out.truncate(at),
    }
    out
}

/// Moves, removes, repeats or exchanges whole lines.
fn reorder(note: &[u8], other: &[u8], dice: &mut RandomNumbers) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = note.split_inclusive(|byte| *byte == b'\n').collect();
    let others: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
    let (one, two) = (dice.roll(3), dice.roll(3));
    match dice.roll(5) {
        0 => lines.swap(one, two),
        1 => {
            lines.remove(one);
        }
        2 => lines.insert(two, lines[one]),
        3 => lines[one] = others[two],
        _ => lines.insert(one, others[two]),
    }
    lines.concat()
}

/// Changes a value somewhere in a statement, and puts the new payload under the old signature.
fn resign(note: &[u8], dice: &mut RandomNumbers) -> Vec<u8> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let mut lines: Vec<Vec<u8>> = note
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let which = dice.roll(3);
    let mut bundle: Value = serde_json::from_slice(&lines[which]).unwrap();
    let payload = STANDARD
        .decode(bundle["dsseEnvelope"]["payload"].as_str().unwrap())
        .unwrap();
    let mut statement: Value = serde_json::from_slice(&payload).unwrap();
    edit_value(&mut statement, dice);
    let payload = crucible_model::to_canonical_json(&statement).unwrap();
    bundle["dsseEnvelope"]["payload"] = STANDARD.encode(payload).into();
    lines[which] = crucible_model::to_canonical_json(&bundle).unwrap();
    lines[which].push(b'\n');
    lines.concat()
}

fn edit_value(value: &mut Value, dice: &mut RandomNumbers) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(dice.roll(map.len())).unwrap().clone();
            match dice.roll(6) {
                0 => {
                    map.remove(&key);
                }
                1 => {
                    map.insert(format!("{key}x"), Value::Null);
                }
                _ => edit_value(map.get_mut(&key).unwrap(), dice),
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let at = dice.roll(list.len());
            if dice.roll(3) == 0 {
                list.remove(at);
            } else {
                edit_value(&mut list[at], dice);
            }
        }
        Value::String(text) => {
            let mut bytes = std::mem::take(text).into_bytes();
            if bytes.is_empty() || dice.roll(4) == 0 {
                bytes.push(b'0');
            } else {
                let at = dice.roll(bytes.len());
                bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
            }
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        Value::Number(number) => *value = (number.as_u64().unwrap_or_default() + 1).into(),
        other => *other = Value::Bool(*other != Value::Bool(true)),
    }
}

mod properties {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crucible_testkit::expensive_cases()))]

        #[test]
        fn no_mutation_is_admitted(seed in any::<u64>()) {
            let World { sample, other_policy, other_note, elsewhere } = &*WORLD;
            let mut dice = RandomNumbers(seed);
            let (commit, note, policy) = (&sample.commit, &sample.note, &sample.policy);
            let now = instant(AT);
            let parsed = Policy::parse(policy).unwrap();
            let mut judged = Vec::new();
            for _ in 0..OF_EACH {
                let other = [other_note, elsewhere][dice.roll(2)];
                for bad in [mutate(note, &mut dice), reorder(note, other, &mut dice), resign(note, &mut dice)] {
                    if bad != *note {
                        let file = judge_file(&parsed, "x.jsonl", NoteRead::Bytes(&bad), now);
                        judged.push(("bundle", file, bad.clone()));
                        judged.push(("note", judge_by(&parsed, commit, &bad, now), bad));
                    }
                }
                let bad = mutate(commit, &mut dice);
                if bad != *commit {
                    judged.push(("commit", judge_by(&parsed, &bad, note, now), bad));
                }
            }
            // The key: another one in the policy, or one digit of it.
            judged.push(("policy", judge(other_policy, commit, note, now), Vec::new()));
            let bad = mutate(policy.as_bytes(), &mut dice);
            let signer = |policy: &str| policy.split("key = ").nth(1).map(str::to_owned);
            if let Ok(bad) = String::from_utf8(bad)
                && Policy::parse(&bad).is_ok()
                && signer(&bad) != signer(policy)
            {
                let keeps_the_key = bad.contains(signer(policy).unwrap().trim().trim_matches('"'));
                prop_assert!(keeps_the_key || !judge(&bad, commit, note, now).verdict.passes(), "{bad}");
            }
            for (what, judged, bad) in judged {
                prop_assert!(judged.admission.is_none() && !judged.verdict.passes(),
                    "{what}: {}", String::from_utf8_lossy(&bad));
            }
        }
    }
}

/// Two judgements of the same input are equal.
#[test]
fn judgement_is_a_function_of_its_input() {
    let World { sample, .. } = &*WORLD;
    let judged = || Digest::of(format!("{:?}", sample.judge_at("2000-01-01T00:00:00Z")).as_bytes());
    assert_eq!(judged(), judged());
}
