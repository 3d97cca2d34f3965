//! Whatever is changed after the signature is refused: the commit, the note, the statements, the policy, the key, the time.

use std::sync::LazyLock;

use crucible_attest::{
    CarriedFrom, Change, GateIsolationLevel, GateVerdict, NoteRead, Policy, Strength, carried,
    judge_file, payload_of, statements,
};
use crucible_model::Digest;
use proptest::prelude::*;
use serde_json::Value;

use crate::sample::{
    AT, Sample, change, codes, instant, judge, judge_by, judge_carried, name_of, new_signer,
    policy_of,
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
    let cases: [(&str, Edit, &[&str]); 19] = [
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
            "one of two unstated",
            |c| {
                let mut other = c.verification.gates[1].clone();
                other.id = "lint".to_owned();
                c.verification.gates.push(other);
                c.verification.gates[1].isolation = None;
            },
            &["attest-isolation-incomplete"],
        ),
        (
            "accepted",
            |c| c.accepted.push("verify-nothing-fixed".to_owned()),
            &["attest-accepted"],
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

/// A policy names the refusals that people may accept.
#[tokio::test]
async fn accepted_refusal_must_be_in_the_policy() {
    let mut change = change();
    change.accepted = vec!["verify-nothing-fixed".to_owned()];
    let sample = Sample::new(change).await;
    for (listed, expected) in [
        ("\"verify-nothing-fixed\"", &[][..]),
        ("\"verify-change-not-noticed\"", &["attest-accepted"]),
        ("\"verify-*\"", &["attest-accepted"]),
        ("", &["attest-accepted"]),
    ] {
        let policy = format!("{}[admit]\naccepted = [{listed}]\n", sample.policy);
        let judged = judge(&policy, &sample.commit, &sample.note, instant(AT));
        assert_eq!(codes(&judged), expected, "{listed}");
    }
}

/// A carried statement says the same as the valid original, of the same tree on the same base.
#[tokio::test]
async fn carried_statement_needs_its_original() {
    let temp_dir = tempfile::tempdir().unwrap();
    let signer = new_signer(temp_dir.path()).await;
    let landed = Sample::signed_by(change(), &signer, temp_dir).await;
    let policy = format!("{}[admit]\ncarried = true\n", landed.policy);
    let policy = Policy::parse(&policy).unwrap();
    let payload = payload_of(&landed.note).unwrap();
    let honest = carried(&payload).unwrap();
    let stranger = new_signer(&landed.room.path().join("other")).await;
    let payloads = statements(&landed.change, &landed.id, &landed.tree).unwrap();
    let by_stranger = stranger.sign_all(&payloads).await.unwrap();
    let text = String::from_utf8(landed.commit.clone()).unwrap();
    let (head, _) = text.split_once("\n\n").unwrap();
    let moved = format!("parent {}", "c".repeat(40));
    let message = format!("{head}\n\nAnother message\n");
    let own = NoteRead::Bytes(&landed.note);
    let with = |edit: fn(&mut Change)| {
        let mut change = honest.clone();
        edit(&mut change);
        change
    };
    let on_other_base = message.replace(&format!("parent {}", "b".repeat(40)), &moved);
    let without_line = landed.note.split_inclusive(|byte| *byte == b'\n');
    let without_line: Vec<u8> = without_line.take(2).flatten().copied().collect();
    for (what, change, commit, original, expected) in [
        ("honest", honest.clone(), &message, own, &[][..]),
        (
            "no original",
            honest.clone(),
            &message,
            NoteRead::Missing,
            &["attest-original-differs"],
        ),
        (
            "huge original",
            honest.clone(),
            &message,
            NoteRead::TooLarge,
            &["attest-original-differs"],
        ),
        (
            "original by a stranger",
            honest.clone(),
            &message,
            NoteRead::Bytes(&by_stranger),
            &["attest-original-differs"],
        ),
        (
            "original without a line",
            honest.clone(),
            &message,
            NoteRead::Bytes(&without_line),
            &["attest-original-differs"],
        ),
        (
            "other run",
            with(|c| c.run = "20261127-093001-abcdef".parse().unwrap()),
            &message,
            own,
            &["attest-original-differs"],
        ),
        (
            "other gates",
            with(|c| c.verification.gates[1].fixed = None),
            &message,
            own,
            &["attest-original-differs"],
        ),
        (
            "other digest",
            with(|c| c.carried_from.as_mut().unwrap().statement = c.patch),
            &message,
            own,
            &["attest-original-differs"],
        ),
        (
            "other base",
            honest.clone(),
            &on_other_base,
            own,
            &["attest-base-differs"],
        ),
    ] {
        let id = name_of(commit.as_bytes());
        let payloads = statements(&change, &id, &landed.tree).unwrap();
        let note = signer.sign_all(&payloads).await.unwrap();
        let judged = judge_carried(&policy, commit.as_bytes(), &note, original, instant(AT));
        assert_eq!(codes(&judged), expected, "{what}");
    }
    // Another tree.
    let commit = message.replace(&landed.tree, &"8".repeat(40));
    let payloads = statements(&honest, &name_of(commit.as_bytes()), &"8".repeat(40)).unwrap();
    let note = signer.sign_all(&payloads).await.unwrap();
    let judged = judge_carried(&policy, commit.as_bytes(), &note, own, instant(AT));
    assert_eq!(codes(&judged), ["attest-original-differs"]);
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
    let judged =
        || Digest::compute(format!("{:?}", sample.judge_at("2000-01-01T00:00:00Z")).as_bytes());
    assert_eq!(judged(), judged());
}
