//! The policy: which keys may sign, what a change must have, and which other commits are admitted.

use std::collections::BTreeSet;

use crucible_model::{Timestamp, is_hidden, single_spaced};
use globset::{Glob, GlobMatcher};
use serde::Deserialize;
use unicode_normalization::UnicodeNormalization as _;

use crate::door::NOTES_REF;
use crate::public_key::PublicKey;

/// The longest policy in bytes.
const MAX_POLICY: usize = 1 << 20;

/// What a commit must have to be admitted.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) signers: Vec<KeyHolder>,
    pub(crate) people: Vec<KeyHolder>,
    pub(crate) approvers: Vec<KeyHolder>,
    pub(crate) require: Requirements,
    pub(crate) models: Vec<GlobMatcher>,
    pub(crate) admit: Admit,
    /// The refs that the door guards: whole names, or beginnings that end with `*`.
    pub(crate) refs: Vec<String>,
    rerun_gates: Vec<RerunGate>,
}

/// A command that the door runs on the tip of each pushed ref.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RerunGate {
    /// Its name.
    pub id: String,
    /// The program and its arguments; no shell is between.
    pub command: Vec<String>,
    /// Seconds that it may take.
    #[serde(default = "ten_minutes")]
    pub timeout_s: u32,
    /// Files of the checkout that the command names and a push may change.
    #[serde(default)]
    pub pushed_files: Vec<String>,
}

const fn ten_minutes() -> u32 {
    600
}

/// The policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid policy: {0}")]
pub struct PolicyError(String);

/// A person or a machine that holds a key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyHolder {
    pub(crate) name: String,
    pub(crate) key: PublicKey,
    /// Whether the device of a hardware-backed key must have verified the user, not only felt a touch.
    #[serde(default)]
    user_verified: bool,
    /// Statements and commits from before this instant are not accepted.
    #[serde(default)]
    pub(crate) valid_from: Option<Timestamp>,
    /// Statements and commits from this instant on are not accepted.
    #[serde(default)]
    pub(crate) valid_until: Option<Timestamp>,
}

impl KeyHolder {
    /// Returns whether there is an instant at which the key does not count.
    pub(crate) fn is_limited(&self) -> bool {
        self.valid_from.is_some() || self.valid_until.is_some()
    }

    /// Returns whether the key counts at this instant.
    pub(crate) fn is_valid_at(&self, at: Timestamp) -> bool {
        self.valid_from.is_none_or(|from| at >= from)
            && self.valid_until.is_none_or(|until| at < until)
    }
}

/// What a statement must say.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirements {
    /// Gates that must have passed.
    #[serde(default)]
    pub(crate) gates: Vec<String>,
    /// How much of the isolation each gate must have had.
    #[serde(default)]
    pub(crate) isolation: RequiredIsolation,
    /// Whether the check with a broken change must have passed.
    #[serde(default)]
    pub(crate) broken_change: bool,
    /// The least share of mutants that the gates noticed, from 0 to 1.
    #[serde(default)]
    pub(crate) min_strength: Option<f64>,
    /// Allowed models as `provider/model`, with `*` and `?`; empty allows all.
    #[serde(default)]
    pub(crate) models: Vec<String>,
    /// Allowed agents; without the list, all are.
    #[serde(default)]
    pub(crate) agents: Option<Vec<String>>,
    /// How many people must have approved the plan.
    #[serde(default)]
    pub(crate) approvals: usize,
    /// Days after which a statement no longer counts.
    #[serde(default)]
    pub(crate) max_age_days: Option<u32>,
}

/// How much of the isolation a gate must have had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RequiredIsolation {
    /// Every layer.
    #[default]
    Complete,
    /// As much as there was.
    Any,
}

/// Which commits without a statement of their own are admitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Admit {
    /// Merges.
    #[serde(default)]
    pub(crate) merges: AdmittedMerges,
    /// Whether a statement may have been carried over from another commit with the same tree.
    #[serde(default)]
    pub(crate) carried: bool,
    /// The codes of refusals that a person may have accepted (`run advance --accept`); by default none.
    #[serde(default)]
    pub(crate) accepted: Vec<String>,
}

/// Which merges are admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AdmittedMerges {
    /// None.
    #[default]
    None,
    /// Merges of two parents whose tree is exactly what git's merge gives.
    Clean,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u64,
    #[serde(default)]
    signers: Vec<KeyHolder>,
    #[serde(default)]
    people: Vec<KeyHolder>,
    #[serde(default)]
    approvers: Vec<KeyHolder>,
    #[serde(default)]
    require: Requirements,
    #[serde(default)]
    admit: Admit,
    #[serde(default)]
    door: DoorSection,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DoorSection {
    #[serde(default)]
    refs: Vec<String>,
    #[serde(default)]
    rerun_gates: Vec<RerunGate>,
}

impl Policy {
    /// Parses a policy in TOML.
    ///
    /// # Errors
    ///
    /// Fails for unknown fields, invalid or repeated keys, and values out of range.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let fail = |why: String| Err(PolicyError(why));
        if text.len() > MAX_POLICY {
            return fail(format!("it has more than {MAX_POLICY} bytes"));
        }
        let Document {
            version,
            mut signers,
            mut people,
            mut approvers,
            require,
            admit,
            door,
        } = toml::from_str(text).map_err(|error| PolicyError(error.to_string()))?;
        if version != 1 {
            return fail(format!(
                "version {version} is unknown; this program reads version 1"
            ));
        }
        if signers.is_empty() && people.is_empty() {
            return fail("it names no key: add [[signers]] or [[people]]".to_owned());
        }
        for holders in [&mut signers, &mut people, &mut approvers] {
            for holder in holders.iter_mut().filter(|holder| holder.user_verified) {
                let Some(key) = holder.key.clone().needing_user_verified() else {
                    return fail(format!(
                        "user_verified is for hardware-backed keys (sk-), and that of {:?} is not one",
                        holder.name
                    ));
                };
                holder.key = key;
            }
            for (at, holder) in holders.iter().enumerate() {
                // Names are compared, and a difference that nobody sees would make one person two.
                let name = &holder.name;
                let is_plain = *name == single_spaced(name)
                    && !name.chars().any(is_hidden)
                    && name.nfkc().eq(name.chars());
                if name.is_empty() || !is_plain {
                    return fail(format!(
                        "the holder of key {} has no name, or one with spaces at an end, double spaces, invisible characters or another Unicode form than NFKC",
                        holder.key.fingerprint()
                    ));
                }
                if holders[..at]
                    .iter()
                    .any(|other| other.key.fingerprint() == holder.key.fingerprint())
                {
                    return fail(format!("the key of {:?} is listed twice", holder.name));
                }
            }
        }
        let names: BTreeSet<&str> = approvers.iter().map(|one| one.name.as_str()).collect();
        if names.len() < require.approvals {
            return fail(format!(
                "approvals is {}, and [[approvers]] names {} people",
                require.approvals,
                names.len()
            ));
        }
        if let Some(share) = require.min_strength
            && !(0.0..=1.0).contains(&share)
        {
            return fail(format!(
                "min_strength is {share}; it is a share from 0 to 1"
            ));
        }
        // Other special characters would match what nobody reads in them.
        let is_plain = |c: char| !"[]{}!\\".contains(c) && !c.is_whitespace();
        if let Some(bad) = require
            .models
            .iter()
            .find(|pattern| !pattern.contains('/') || !pattern.chars().all(is_plain))
        {
            return fail(format!(
                "models: {bad:?} is not provider/model with `*` and `?`"
            ));
        }
        let models = require.models.iter().map(|pattern| {
            Glob::new(pattern)
                .map(|glob| glob.compile_matcher())
                .map_err(|error| PolicyError(format!("models: {error}")))
        });
        let models = models.collect::<Result<_, _>>()?;
        let refs = if door.refs.is_empty() {
            ["refs/heads/*", "refs/tags/*"].map(str::to_owned).to_vec()
        } else {
            door.refs.clone()
        };
        if let Some(bad) = refs.iter().find(|pattern| !is_ref_pattern(pattern)) {
            return fail(format!(
                "{bad:?} is not a pattern of refs, such as \"refs/heads/*\""
            ));
        }
        let gates = &door.rerun_gates;
        for (at, gate) in gates.iter().enumerate() {
            let is_double = gates[..at].iter().any(|other| other.id == gate.id);
            if is_double || gate.id.trim().is_empty() || gate.command.is_empty() {
                return fail(format!(
                    "rerun_gates: {:?} is repeated, or has no name or no command",
                    gate.id
                ));
            }
            if gate.timeout_s == 0 {
                return fail(format!(
                    "rerun_gates: timeout_s of {:?} is 0; give the seconds that it may take",
                    gate.id
                ));
            }
            if let Some(bad) = gate.command.iter().find(|word| is_relative_path_list(word)) {
                return fail(format!(
                    "rerun_gates: {:?} sets {bad:?}, so the push could bring programs; use absolute paths",
                    gate.id
                ));
            }
        }
        Ok(Self {
            rerun_gates: door.rerun_gates,
            signers,
            people,
            approvers,
            require,
            models,
            admit,
            refs,
        })
    }

    /// Returns whether the door guards a ref. The notes have a rule of their own.
    #[must_use]
    pub fn guards(&self, name: &str) -> bool {
        name != NOTES_REF
            && self
                .refs
                .iter()
                .any(|pattern| match pattern.strip_suffix('*') {
                    Some(prefix) => name.starts_with(prefix),
                    None => name == pattern,
                })
    }

    /// Returns the commands that the door runs on the tip of each pushed ref.
    #[must_use]
    pub fn rerun_gates(&self) -> &[RerunGate] {
        &self.rerun_gates
    }

    /// Returns whether clean merges are admitted, so that merges have to be made again.
    #[must_use]
    pub fn admits_clean_merges(&self) -> bool {
        self.admit.merges == AdmittedMerges::Clean
    }
}

/// Returns whether a word gives a search path a directory of the checkout.
fn is_relative_path_list(word: &str) -> bool {
    word.split(|c: char| c.is_whitespace() || ";&|()\"'`".contains(c))
        .filter_map(|piece| piece.split_once('='))
        .filter(|(name, _)| {
            matches!(
                *name,
                "PATH" | "LD_PRELOAD" | "LD_LIBRARY_PATH" | "LD_AUDIT"
            ) || name.starts_with("DYLD_")
        })
        .any(|(_, list)| list.split(':').any(|one| !one.starts_with(['/', '$'])))
}

/// A whole name below `refs/KIND/`, or a beginning of names that ends with `*`. `refs/heads` would guard nothing.
fn is_ref_pattern(pattern: &str) -> bool {
    let beginning = pattern.strip_suffix('*');
    let name = beginning.unwrap_or(pattern);
    let is_name = name.split('/').count() > 2 && name.split('/').all(|part| !part.is_empty());
    name.starts_with("refs/")
        && (beginning.is_some() || is_name)
        && !name.contains(['*', '?', '[', ' ', '\\', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8dTm3Dy4b4Bv9zNB8fB0aNEAXyY6wPY5dQ4PlRMOMo";

    fn parse(text: &str) -> Result<Policy, String> {
        Policy::parse(text).map_err(|error| error.to_string())
    }

    #[test]
    fn policy_has_strict_defaults() {
        let policy = parse(&format!(
            "version = 1\n[[signers]]\nname = \"Ren\u{e9} 佳\"\nkey = \"{KEY} comment\"\n"
        ))
        .unwrap();
        assert_eq!(policy.require.isolation, RequiredIsolation::Complete);
        assert!(!policy.admit.carried && !policy.admits_clean_merges());
        assert!(
            policy.guards("refs/heads/a/b")
                && policy.guards("refs/tags/v1")
                && !policy.guards("refs/notes/x")
        );
    }

    #[test]
    fn all_refs_pattern_excludes_notes() {
        let policy = parse(&format!(
            "version = 1\n[[signers]]\nname = \"ci\"\nkey = \"{KEY}\"\n[door]\nrefs = [\"refs/*\"]\n"
        ))
        .unwrap();
        assert!(policy.guards("refs/heads/main") && policy.guards("refs/notes/other"));
        assert!(!policy.guards(NOTES_REF));
    }

    #[test]
    fn invalid_policy_is_refused_with_reason() {
        let signer = format!("[[signers]]\nname = \"ci\"\nkey = \"{KEY}\"\n");
        for (text, content) in [
            ("version = 1".to_owned(), "names no key"),
            (format!("version = 2\n{signer}"), "version 2 is unknown"),
            (signer.clone(), "missing field `version`"),
            (
                format!("version = 1\nstrict = true\n{signer}"),
                "unknown field `strict`",
            ),
            (format!("version = 1\n{signer}{signer}"), "listed twice"),
            (
                format!("version = 1\n{signer}[require]\nmin_strength = 1.5\n"),
                "from 0 to 1",
            ),
            (
                format!("version = 1\n{signer}[require]\nisolation = \"none\"\n"),
                "unknown variant",
            ),
            (
                format!("version = 1\n{signer}[door]\nrefs = [\"main\"]\n"),
                "not a pattern of refs",
            ),
            (
                format!("version = 1\n{signer}[door]\nrefs = [\"refs/heads\"]\n"),
                "not a pattern of refs",
            ),
            (
                format!("version = 1\n{signer}[door]\nrefs = [\"refs/heads/\"]\n"),
                "not a pattern of refs",
            ),
            (
                format!("version = 1\n{signer}[[people]]\nname = \"ada \"\nkey = \"{KEY}\"\n"),
                "spaces at an end",
            ),
            (
                format!(
                    "version = 1\n{signer}[[people]]\nname = \"a\u{200b}da\"\nkey = \"{KEY}\"\n"
                ),
                "invisible characters",
            ),
            (
                format!(
                    "version = 1\n{signer}[[people]]\nname = \"Rene\u{301}\"\nkey = \"{KEY}\"\n"
                ),
                "NFKC",
            ),
            (
                format!("version = 1\n{signer}[[people]]\nname = \"a\u{a0}b\"\nkey = \"{KEY}\"\n"),
                "NFKC",
            ),
            (
                format!("version = 1\n{signer}[require]\nmodels = [\"{{a,b}}/*\"]\n"),
                "provider/model",
            ),
            (
                format!("version = 1\n{signer}[require]\nmodels = [\"*\"]\n"),
                "provider/model",
            ),
            (
                format!(
                    "version = 1\n{signer}[[door.rerun_gates]]\nid = \"tests\"\ncommand = [\"pytest\"]\ntimeout_s = 0\n"
                ),
                "timeout_s",
            ),
            (
                "version = 1\n[[signers]]\nname = \"ci\"\nkey = \"ssh-ed25519 AAAA\"\n".to_owned(),
                "not a public key",
            ),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(content), "{text}: {error}");
        }
    }

    #[test]
    fn search_path_of_the_checkout_is_refused() {
        for (word, is_refused) in [
            ("PATH=.", true),
            ("PATH=/bin:tools", true),
            ("PATH=/bin:", true),
            ("cd x; PATH=tools:$PATH check", true),
            ("LD_PRELOAD=./x.so", true),
            ("PATH=/usr/bin:/bin", false),
            ("PATH=/srv/bin:$PATH make", false),
            ("PYTHONPATH=src", false),
            ("--path=tests", false),
        ] {
            assert_eq!(is_relative_path_list(word), is_refused, "{word}");
        }
    }
}
