//! `.crucible/skills/registry.yaml`: which skills of a project are trusted, for people and other programs to read.
//!
//! It is derived from the ledger by every promotion and demotion and written whole, in one canonical form. The ledger decides who is
//! trusted; the registry can only refuse: a skill that the ledger trusts is not run where the registry says anything else of it.
//!
//! What always holds: nothing becomes trusted by what stands in this file.

use std::collections::BTreeMap;
use std::time::Duration;

use crucible_host::fs::{FsError, read_beneath, write_beneath};
use crucible_host::lock::{DirectoryTurn, LockError, TurnPurpose};
use crucible_ledger::{Ledger, LedgerError, PromotionRow, SkillRow};
use crucible_model::{ByteLimit, Code, Digest, Finding, RepoPathError, Verdict, short_line};
use serde::{Deserialize, Serialize};

use crate::context::ForgeContext;
use crate::name::{SkillName, SkillNameError};
use crate::paths::SkillPaths;
use crate::project::ForgeProject;
use crate::trust::read_skill_file;

/// The file, from the project's top.
pub(crate) const REGISTRY_FILE: &str = ".crucible/skills/registry.yaml";
/// The form of it.
const FORM: &str = "skill-registry.v1";
/// The largest that is read.
const LIMIT: ByteLimit = ByteLimit(1 << 20);
/// How long a turn at writing it is waited for.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What it begins with.
const HEADER: &str = "\
# The trusted skills of this project, derived from Crucible's ledger whenever a skill is promoted or demoted.
# Do not edit it: no edit makes a skill trusted, and an entry that says anything else than the ledger keeps its skill from running.
";

/// What the registry says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillRegistry {
    entries: BTreeMap<String, RegistryEntry>,
}

/// What it says of one skill.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RegistryEntry {
    module: String,
    class: String,
    side_effect: String,
    /// The digest of the skill's file; none where the entry has none.
    sha256: Option<Digest>,
    promoted_at: String,
    approved_by: String,
}

impl RegistryEntry {
    /// What the ledger says of a skill that is trusted by this promotion.
    fn new(paths: &SkillPaths, skill: &SkillRow, trust: &PromotionRow) -> Self {
        Self {
            module: paths.module.clone(),
            class: paths.class.clone(),
            side_effect: skill.side_effect.as_str().to_owned(),
            sha256: Some(trust.skill),
            promoted_at: trust.at.to_string(),
            approved_by: trust.approved_by.clone(),
        }
    }

    /// The keys whose value differs in another entry. A missing digest is not a difference.
    fn differing_fields(&self, written: &Self) -> Vec<&'static str> {
        let other_bytes = written.sha256.is_some() && written.sha256 != self.sha256;
        let keys = [
            ("module", self.module != written.module),
            ("class", self.class != written.class),
            ("side_effect_class", self.side_effect != written.side_effect),
            ("sha256", other_bytes),
            ("promoted_at", self.promoted_at != written.promoted_at),
            ("approved_by", self.approved_by != written.approved_by),
        ];
        keys.into_iter()
            .filter(|(_, differs)| *differs)
            .map(|(key, _)| key)
            .collect()
    }
}

/// What the file of a trusted skill is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustedFile {
    /// What was promoted.
    Promoted,
    /// Something else.
    Changed,
    /// Not there, or nothing that is read.
    Unreadable,
}

/// What is done about an entry without a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnhashedPolicy {
    /// The skill is not run.
    Refused,
    /// It is reported, and the ledger alone decides.
    Allowed,
}

/// Why the registry cannot be read, derived or written.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It is not of its form.
    #[error(
        "{REGISTRY_FILE} is not of its form: {why}; remove it: the next promotion or demotion rewrites it"
    )]
    Form {
        /// What is wrong.
        why: String,
    },
    /// The file system refuses.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The directory of the forge cannot be made.
    #[error(transparent)]
    Own(#[from] LockError),
    /// Another process writes it all the time.
    #[error("another process is writing {REGISTRY_FILE}; try again")]
    Busy,
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A name in the ledger is invalid.
    #[error(transparent)]
    Name(#[from] SkillNameError),
    /// A name makes no path.
    #[error(transparent)]
    Path(#[from] RepoPathError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema_version: String,
    #[serde(default)]
    skills: BTreeMap<String, WrittenEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEntry {
    #[serde(default)]
    module: String,
    #[serde(default)]
    class: String,
    #[serde(default)]
    side_effect_class: String,
    #[serde(default)]
    sha256: Option<String>,
    #[serde(default)]
    promoted_at: String,
    #[serde(default)]
    approved_by: String,
}

impl SkillRegistry {
    /// Returns what the ledger trusts, and the differences to the project's registry with whatever cannot be read.
    #[must_use]
    pub fn load_with_differences(ledger: &Ledger, project: &ForgeProject) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let known = Self::open(ledger, project).unwrap_or_else(|error| {
            problems.push(error.to_string());
            Self::default()
        });
        match Self::read(project) {
            Ok(Some(written)) => {
                let differences = known.differences(&written);
                problems.extend(differences.findings().iter().map(ToString::to_string));
            }
            Ok(None) => {}
            Err(error) => problems.push(error.to_string()),
        }
        (known, problems)
    }

    /// What the ledger says of this project's skills.
    ///
    /// # Errors
    ///
    /// Fails where the ledger cannot be read, or was damaged.
    pub fn open(ledger: &Ledger, project: &ForgeProject) -> Result<Self, RegistryError> {
        let mut entries = BTreeMap::new();
        for (skill, trust) in ledger.trusted_skills(project.key())? {
            let name: SkillName = skill.name.parse()?;
            let entry = RegistryEntry::new(&project.paths(&name)?, &skill, &trust);
            entries.insert(skill.name, entry);
        }
        Ok(Self { entries })
    }

    /// What stands in the project's file; nothing if it does not exist.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Form`] where it is not a registry, and where it cannot be read or lies behind a link.
    pub fn read(project: &ForgeProject) -> Result<Option<Self>, RegistryError> {
        match read_beneath(project.root(), REGISTRY_FILE, LIMIT) {
            Ok(bytes) => Self::parse(&bytes).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the text of a registry. A key that this version does not know could mean anything: with one it is not a registry.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Form`].
    pub fn parse(bytes: &[u8]) -> Result<Self, RegistryError> {
        let form = |why: String| RegistryError::Form {
            why: short_line(&why, 200),
        };
        let text = std::str::from_utf8(bytes).map_err(|error| form(error.to_string()))?;
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: 8, max_nodes: 40_000, max_aliases: 0, max_anchors: 0, max_documents: 1, },
            no_schema: true,
            with_snippet: false,
        };
        let written: Written = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| form(error.to_string()))?;
        if written.schema_version != FORM {
            return Err(form(format!(
                "its schema_version is {:?}, not {FORM}",
                written.schema_version
            )));
        }
        let mut entries = BTreeMap::new();
        for (name, entry) in written.skills {
            let sha256 = entry.sha256.map(|text| {
                text.parse::<Digest>()
                    .map_err(|_| form(format!("the sha256 of {name:?} is not a digest")))
            });
            let entry = RegistryEntry {
                module: entry.module,
                class: entry.class,
                side_effect: entry.side_effect_class,
                sha256: sha256.transpose()?,
                promoted_at: entry.promoted_at,
                approved_by: entry.approved_by,
            };
            entries.insert(name, entry);
        }
        Ok(Self { entries })
    }

    /// The text of the file: sorted by name, every value quoted.
    #[must_use]
    pub fn text(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut text = format!("{HEADER}schema_version: {FORM}\n");
        if self.entries.is_empty() {
            text.push_str("skills: {}\n");
            return text;
        }
        text.push_str("skills:\n");
        for (name, entry) in &self.entries {
            text.push_str(&format!("  {}:\n", quoted(name)));
            let sha256 = entry.sha256.map(|digest| digest.to_string());
            let values = [
                ("module", Some(entry.module.as_str())),
                ("class", Some(entry.class.as_str())),
                ("side_effect_class", Some(entry.side_effect.as_str())),
                ("sha256", sha256.as_deref()),
                ("promoted_at", Some(entry.promoted_at.as_str())),
                ("approved_by", Some(entry.approved_by.as_str())),
            ];
            for (key, value) in values {
                if let Some(value) = value {
                    text.push_str(&format!("    {key}: {}\n", quoted(value)));
                }
            }
        }
        text
    }

    /// Whether the registry names a skill.
    #[must_use]
    pub fn names(&self, name: &SkillName) -> bool {
        self.entries.contains_key(name.as_str())
    }

    /// Returns a warning for each skill whose entry in the project's file differs from the ledger.
    #[must_use]
    pub fn differences(&self, written: &Self) -> Verdict {
        let mut verdict = Verdict::default();
        for name in self.entries.keys().chain(
            written
                .entries
                .keys()
                .filter(|name| !self.entries.contains_key(*name)),
        ) {
            let difference = match (self.entries.get(name), written.entries.get(name)) {
                (Some(known), Some(read)) if known == read => continue,
                (Some(_), Some(_)) => "has another entry for it than the ledger",
                (Some(_), None) => "has no entry for it, but the ledger of this machine trusts it",
                (None, _) => {
                    "lists it, but the ledger of this machine does not trust it, so it does not run here"
                }
            };
            verdict.push(Finding::warning(
                Code::new("forge-registry-differs"),
                short_line(name, 80),
                format!("{REGISTRY_FILE} {difference}. The ledger takes precedence; the next promotion or demotion rewrites the file."),
            ));
        }
        verdict
    }

    /// Whether the file of a skill that this registry trusts has the approved bytes; nothing if the registry does not trust it.
    #[must_use]
    pub fn trusted_file(&self, project: &ForgeProject, name: &SkillName) -> Option<TrustedFile> {
        let promoted = self.entries.get(name.as_str())?.sha256?;
        let path = project.paths(name).ok()?.skill;
        Some(match read_skill_file(project, &path) {
            Ok(bytes) if Digest::compute(&bytes) == promoted => TrustedFile::Promoted,
            Ok(_) => TrustedFile::Changed,
            Err(_) => TrustedFile::Unreadable,
        })
    }

    /// Whether a skill that the ledger trusts by this promotion may run as far as the project's registry goes.
    #[must_use]
    pub(crate) fn judge(
        found: &Result<Option<Self>, RegistryError>,
        name: &SkillName,
        paths: &SkillPaths,
        skill: &SkillRow,
        trust: &PromotionRow,
        unhashed: UnhashedPolicy,
    ) -> Verdict {
        let known = RegistryEntry::new(paths, skill, trust);
        let subject = name.to_string();
        let finding = match found {
            Err(error) => Finding::error(
                Code::new("forge-registry-unreadable"),
                subject,
                format!("{error}."),
            ),
            Ok(None) => Finding::warning(
                Code::new("forge-registry-missing"),
                subject,
                format!(
                    "There is no {REGISTRY_FILE}; the ledger alone says that this skill is trusted. The next promotion or demotion rewrites it."
                ),
            ),
            Ok(Some(registry)) => match registry.entries.get(name.as_str()) {
                None => Finding::warning(
                    Code::new("forge-registry-missing"),
                    subject,
                    format!(
                        "{REGISTRY_FILE} does not name this skill; the ledger alone says that it is trusted. The next promotion or demotion rewrites it."
                    ),
                ),
                Some(entry) if *entry == known => return Verdict::default(),
                Some(entry) if !known.differing_fields(entry).is_empty() => Finding::error(
                    Code::new("forge-registry-differs"),
                    subject,
                    format!(
                        "{REGISTRY_FILE} has another entry for it than the ledger of this machine: {}. Find out who changed the file, then remove it; the next promotion or demotion rewrites it.",
                        known.differing_fields(entry).join(", ")
                    ),
                ),
                // Nothing else is left that differs: it has no digest.
                Some(_) => {
                    let hint = format!(
                        "Its entry in {REGISTRY_FILE} has no sha256, so it vouches for nothing. Remove the file, or run with --allow-unhashed: the ledger's own digest is checked either way."
                    );
                    match unhashed {
                        UnhashedPolicy::Refused => {
                            Finding::error(Code::new("forge-registry-unhashed"), subject, hint)
                        }
                        UnhashedPolicy::Allowed => {
                            Finding::warning(Code::new("forge-registry-unhashed"), subject, hint)
                        }
                    }
                }
            },
        };
        Verdict::new(vec![finding])
    }

    /// Writes the project's file as the ledger has it now. One process at a time derives and writes, so that the newest wins.
    ///
    /// # Errors
    ///
    /// [`RegistryError`]; the file is as it was.
    pub fn write(
        world: &ForgeContext<'_>,
        ledger: &Ledger,
        project: &ForgeProject,
    ) -> Result<Self, RegistryError> {
        let own = project.own_directory(&world.home)?;
        let _turn =
            DirectoryTurn::take(&own, TurnPurpose::Change, TIMEOUT)?.ok_or(RegistryError::Busy)?;
        let registry = Self::open(ledger, project)?;
        write_beneath(project.root(), REGISTRY_FILE, registry.text().as_bytes())?;
        Ok(registry)
    }
}

#[cfg(test)]
mod tests {
    use crucible_ledger::{SideEffect, SkillStatus};

    use super::*;

    fn digest(of: &str) -> Digest {
        Digest::compute(of.as_bytes())
    }

    fn entry(sha256: Option<Digest>, approved_by: &str) -> RegistryEntry {
        RegistryEntry {
            module: "skillset.skills.word_count".to_owned(),
            class: "WordCountSkill".to_owned(),
            side_effect: "READ_ONLY".to_owned(),
            sha256,
            promoted_at: "2026-01-02T03:04:05Z".to_owned(),
            approved_by: approved_by.to_owned(),
        }
    }

    fn registry(entries: &[(&str, RegistryEntry)]) -> SkillRegistry {
        SkillRegistry {
            entries: entries
                .iter()
                .map(|(name, entry)| ((*name).to_owned(), entry.clone()))
                .collect(),
        }
    }

    fn name(text: &str) -> SkillName {
        text.parse().unwrap()
    }

    fn skill() -> SkillRow {
        let at = "2026-01-02T03:04:05Z".parse().unwrap();
        SkillRow {
            id: 1,
            project: digest("p"),
            name: "word_count".to_owned(),
            description: "Counts.".to_owned(),
            io_schema: serde_json::json!({}),
            side_effect: SideEffect::ReadOnly,
            grants: serde_json::json!({}),
            status: SkillStatus::Trusted,
            created_at: at,
            updated_at: at,
        }
    }

    fn promotion(skill: Digest) -> PromotionRow {
        PromotionRow {
            event: 7,
            proposal: 1,
            verification: Some(1),
            from: SkillStatus::Verified,
            to: SkillStatus::Trusted,
            approved_by: "Ada".to_owned(),
            reason: "read".to_owned(),
            skill,
            test: digest("test"),
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
        }
    }

    #[test]
    fn registry_round_trips_for_any_approver_name() {
        for by in [
            "Ada",
            "a: b",
            "#x",
            "- y",
            "\"quoted\" \\ back",
            "größer 漢字",
            "null",
            "1e3",
            "{{ }}",
            "'",
        ] {
            let one = registry(&[
                ("word_count", entry(Some(digest("x")), by)),
                ("y", entry(None, by)),
            ]);
            let text = one.text();
            assert_eq!(
                SkillRegistry::parse(text.as_bytes()).unwrap(),
                one,
                "{text}"
            );
            assert_eq!(SkillRegistry::parse(text.as_bytes()).unwrap().text(), text);
        }
        let none = SkillRegistry::default();
        assert_eq!(SkillRegistry::parse(none.text().as_bytes()).unwrap(), none);
        assert!(none.text().starts_with("# The trusted skills"));
    }

    #[test]
    fn the_text_has_one_canonical_form() {
        let one = registry(&[("word_count", entry(Some(digest("x")), "Ada"))]);
        let expected = format!(
            "{HEADER}schema_version: skill-registry.v1\nskills:\n  \"word_count\":\n    module: \"skillset.skills.word_count\"\n    class: \"WordCountSkill\"\n    side_effect_class: \"READ_ONLY\"\n    sha256: \"{}\"\n    promoted_at: \"2026-01-02T03:04:05Z\"\n    approved_by: \"Ada\"\n",
            digest("x")
        );
        assert_eq!(one.text(), expected);
    }

    #[test]
    fn malformed_registry_is_refused() {
        let wrong_digest = "schema_version: skill-registry.v1\nskills:\n  a:\n    sha256: abc\n";
        let bomb = "schema_version: skill-registry.v1\nskills: &a [*a, *a]\n";
        let twice = "schema_version: skill-registry.v1\nskills:\n  a: {}\n  a: {sha256: null}\n";
        for bad in [
            "",
            "[]",
            "skills: {}\n",
            "schema_version: skill-registry.v9\nskills: {}\n",
            "schema_version: skill-registry.v1\nskills: {}\ntrusts: [a]\n",
            "schema_version: skill-registry.v1\nskills:\n  a: {granted: everything}\n",
            wrong_digest,
            bomb,
            twice,
            "\0",
        ] {
            assert!(
                matches!(
                    SkillRegistry::parse(bad.as_bytes()),
                    Err(RegistryError::Form { .. })
                ),
                "{bad}"
            );
        }
        assert!(SkillRegistry::parse(b"\xff").is_err());
    }

    #[test]
    fn the_registry_can_refuse_and_never_trusts() {
        let (own, other) = (digest("own"), digest("other"));
        let name = name("word_count");
        let temp_dir = tempfile::tempdir().unwrap();
        let project = ForgeProject::new(
            temp_dir.path().to_owned(),
            digest("p"),
            "skillset".parse().unwrap(),
        );
        let (paths, skill, trust) = (project.paths(&name).unwrap(), skill(), promotion(own));
        let judge = |found: Result<Option<SkillRegistry>, RegistryError>, unhashed| {
            let verdict = SkillRegistry::judge(&found, &name, &paths, &skill, &trust, unhashed);
            let code = verdict
                .findings()
                .first()
                .map(|finding| finding.code.to_string());
            (verdict.passes(), code.unwrap_or_default())
        };
        let known = |sha256| RegistryEntry {
            promoted_at: trust.at.to_string(),
            ..entry(sha256, "Ada")
        };
        let of = |sha256| Ok(Some(registry(&[("word_count", known(sha256))])));
        let refused = UnhashedPolicy::Refused;
        assert_eq!(judge(of(Some(own)), refused), (true, String::new()));
        assert_eq!(
            judge(of(Some(other)), refused),
            (false, "forge-registry-differs".to_owned())
        );
        // Whatever it says besides, it says what the ledger says.
        let others: [fn(&mut RegistryEntry); 5] = [
            |entry| entry.side_effect = "NETWORK".to_owned(),
            |entry| entry.approved_by = "Eve".to_owned(),
            |entry| entry.class = "OtherSkill".to_owned(),
            |entry| entry.module = String::new(),
            |entry| entry.promoted_at = "2026-01-02T03:04:06Z".to_owned(),
        ];
        for change in others {
            for sha256 in [Some(own), None] {
                let mut changed = known(sha256);
                change(&mut changed);
                let found = judge(
                    Ok(Some(registry(&[("word_count", changed)]))),
                    UnhashedPolicy::Allowed,
                );
                assert_eq!(found, (false, "forge-registry-differs".to_owned()));
            }
        }
        // The flag is for entries without a digest, and lets no other pass.
        assert!(!judge(of(Some(other)), UnhashedPolicy::Allowed).0);
        assert_eq!(
            judge(of(None), refused),
            (false, "forge-registry-unhashed".to_owned())
        );
        assert_eq!(
            judge(of(None), UnhashedPolicy::Allowed),
            (true, "forge-registry-unhashed".to_owned())
        );
        assert_eq!(
            judge(Ok(None), refused),
            (true, "forge-registry-missing".to_owned())
        );
        assert_eq!(
            judge(Ok(Some(SkillRegistry::default())), refused),
            (true, "forge-registry-missing".to_owned())
        );
        let form = RegistryError::Form {
            why: "x".to_owned(),
        };
        assert_eq!(
            judge(Err(form), refused),
            (false, "forge-registry-unreadable".to_owned())
        );
    }

    #[test]
    fn each_difference_is_reported_once() {
        let known = registry(&[
            ("a", entry(Some(digest("a")), "Ada")),
            ("b", entry(Some(digest("b")), "Ada")),
        ]);
        let written = registry(&[
            ("b", entry(Some(digest("c")), "Ada")),
            ("d", entry(None, "Eve")),
        ]);
        let differences = known.differences(&written);
        let subjects: Vec<&str> = differences
            .findings()
            .iter()
            .map(|finding| finding.subject.as_str())
            .collect();
        assert_eq!(subjects, ["a", "b", "d"]);
        assert!(differences.passes());
        assert!(known.differences(&known).findings().is_empty());
    }
}
