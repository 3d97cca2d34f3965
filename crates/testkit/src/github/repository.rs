//! What the fake GitHub holds: repositories with their releases, refs and archives.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use super::archive::tarball;

/// A repository of the fake GitHub. The fields say what the API answers; the methods fill them in a chain.
#[derive(Debug, Clone)]
pub struct FakeRepo {
    /// `owner/name`.
    pub full_name: String,
    /// The owner's words; null where there are none.
    pub description: Option<String>,
    /// The number of stars.
    pub stars: u64,
    /// RFC 3339; null for a repository without a commit.
    pub pushed_at: Option<String>,
    /// `User`, `Organization` or whatever else is to be told.
    pub owner_type: String,
    /// Whether it is read-only.
    pub archived: bool,
    /// Whether it is a fork.
    pub fork: bool,
    /// The name of the default branch.
    pub default_branch: String,
    /// Its main language.
    pub language: Option<String>,
    /// GitHub topics, by which a search finds it.
    pub topics: Vec<String>,
    /// Its releases, the newest first.
    pub releases: Vec<FakeRelease>,
    /// What tags, branches and commit ids resolve to.
    pub refs: BTreeMap<String, String>,
    /// Its issues by number, as the API tells them.
    pub issues: BTreeMap<u64, Value>,
    /// The archive of each ref and commit.
    pub archives: BTreeMap<String, Vec<u8>>,
    /// Fields that are told instead of the right ones; a null hides nothing, it is told.
    pub lies: Map<String, Value>,
}

/// A release of a [`FakeRepo`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeRelease {
    /// The git tag of the release.
    pub tag: String,
    /// Whether it is not a final one; the latest release never is.
    pub kind: FakeReleaseKind,
}

/// How final a release is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeReleaseKind {
    /// Neither a draft nor a pre-release.
    Final,
    /// A pre-release.
    Preview,
}

impl FakeRepo {
    /// A young repository of a person's: ten stars, no description, no release, pushed to at the start of 2026.
    #[must_use]
    pub fn new(full_name: &str) -> Self {
        assert!(
            full_name.split('/').count() == 2,
            "{full_name:?} is not owner/name"
        );
        Self {
            full_name: full_name.to_owned(),
            description: None,
            stars: 10,
            pushed_at: Some("2026-01-01T00:00:00Z".to_owned()),
            owner_type: "User".to_owned(),
            archived: false,
            fork: false,
            default_branch: "main".to_owned(),
            language: None,
            topics: Vec::new(),
            releases: Vec::new(),
            refs: BTreeMap::from([("main".to_owned(), fake_sha(full_name, "main"))]),
            issues: BTreeMap::new(),
            archives: BTreeMap::new(),
            lies: Map::new(),
        }
    }

    /// With these stars.
    #[must_use]
    pub fn stars(mut self, stars: u64) -> Self {
        self.stars = stars;
        self
    }

    /// With this description.
    #[must_use]
    pub fn description(mut self, text: &str) -> Self {
        self.description = Some(text.to_owned());
        self
    }

    /// Pushed to at this instant, RFC 3339.
    #[must_use]
    pub fn pushed_at(mut self, instant: &str) -> Self {
        self.pushed_at = Some(instant.to_owned());
        self
    }

    /// Owned by an organisation.
    #[must_use]
    pub fn of_organization(mut self) -> Self {
        "Organization".clone_into(&mut self.owner_type);
        self
    }

    /// Read-only.
    #[must_use]
    pub fn archived(mut self) -> Self {
        self.archived = true;
        self
    }

    /// Marks it as a fork.
    #[must_use]
    pub fn fork(mut self) -> Self {
        self.fork = true;
        self
    }

    /// With this default branch.
    #[must_use]
    pub fn default_branch(mut self, name: &str) -> Self {
        name.clone_into(&mut self.default_branch);
        self
    }

    /// With this main language.
    #[must_use]
    pub fn language(mut self, name: &str) -> Self {
        self.language = Some(name.to_owned());
        self
    }

    /// With this open issue; an empty body is told as null, as GitHub does.
    #[must_use]
    pub fn issue(self, number: u64, title: &str, body: &str) -> Self {
        self.issue_but(number, title, body, &json!({}))
    }

    /// With this issue, and these fields told otherwise.
    #[must_use]
    pub fn issue_but(mut self, number: u64, title: &str, body: &str, other: &Value) -> Self {
        let body = if body.is_empty() {
            Value::Null
        } else {
            body.into()
        };
        let mut issue = json!({
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "comments": 0,
            "html_url": format!("https://github.com/{}/issues/{number}", self.full_name),
            "user": {"login": "somebody"},
        });
        for (field, value) in other.as_object().into_iter().flatten() {
            issue[field] = value.clone();
        }
        self.issues.insert(number, issue);
        self
    }

    /// With these topics.
    #[must_use]
    pub fn topics(mut self, topics: &[&str]) -> Self {
        self.topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        self
    }

    /// With a release of this tag, newer than those it has, whose archive holds these files. Its commit is
    /// [`fake_sha`] of the full name and the tag.
    #[must_use]
    pub fn release(self, tag: &str, files: &[(&str, &str)]) -> Self {
        let sha = fake_sha(&self.full_name, tag);
        let archive = self.archive_of(&sha, files);
        self.release_with(tag, &sha, archive)
    }

    /// With a release of this tag, commit and archive, be it a broken one.
    #[must_use]
    pub fn release_with(mut self, tag: &str, sha: &str, archive: Vec<u8>) -> Self {
        self.releases.insert(
            0,
            FakeRelease {
                tag: tag.to_owned(),
                kind: FakeReleaseKind::Final,
            },
        );
        self.at(tag, sha, archive)
    }

    /// With a pre-release of this tag, newer than the releases it has.
    #[must_use]
    pub fn preview(mut self, tag: &str) -> Self {
        self.releases.insert(
            0,
            FakeRelease {
                tag: tag.to_owned(),
                kind: FakeReleaseKind::Preview,
            },
        );
        let sha = fake_sha(&self.full_name, tag);
        self.refs.insert(tag.to_owned(), sha);
        self
    }

    /// With a commit of this id whose archive holds these files.
    #[must_use]
    pub fn commit(self, sha: &str, files: &[(&str, &str)]) -> Self {
        let archive = self.archive_of(sha, files);
        self.at(sha, sha, archive)
    }

    /// With a ref (a tag, a branch or a commit id) that resolves to `sha` and has this archive.
    #[must_use]
    pub fn at(mut self, reference: &str, sha: &str, archive: Vec<u8>) -> Self {
        self.refs.insert(reference.to_owned(), sha.to_owned());
        self.refs.insert(sha.to_owned(), sha.to_owned());
        self.archives.insert(reference.to_owned(), archive.clone());
        self.archives.insert(sha.to_owned(), archive);
        self
    }

    /// Telling `value` in this field of the repository, whatever is right.
    #[must_use]
    pub fn lying(mut self, field: &str, value: Value) -> Self {
        self.lies.insert(field.to_owned(), value);
        self
    }

    /// The part before the slash.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.full_name.split('/').next().unwrap_or_default()
    }

    /// The part after the slash.
    #[must_use]
    pub fn name(&self) -> &str {
        self.full_name.split('/').nth(1).unwrap_or_default()
    }

    fn archive_of(&self, sha: &str, files: &[(&str, &str)]) -> Vec<u8> {
        tarball(self.owner(), self.name(), sha, files.iter().copied())
    }

    /// The repository as the API tells it.
    pub(super) fn json(&self) -> Value {
        let mut body = json!({
            "id": self.full_name.len(),
            "name": self.name(),
            "full_name": self.full_name,
            "private": false,
            "owner": {"login": self.owner(), "id": 1, "type": self.owner_type},
            "html_url": format!("https://github.com/{}", self.full_name),
            "description": self.description,
            "fork": self.fork,
            "url": format!("https://api.github.com/repos/{}", self.full_name),
            "created_at": "2020-01-01T00:00:00Z",
            "updated_at": self.pushed_at,
            "pushed_at": self.pushed_at,
            "stargazers_count": self.stars,
            "watchers_count": self.stars,
            "language": self.language,
            "archived": self.archived,
            "disabled": false,
            "topics": self.topics,
            "visibility": "public",
            "default_branch": self.default_branch,
            "score": 1.0,
        });
        for (field, value) in &self.lies {
            body[field] = value.clone();
        }
        body
    }
}

impl FakeRelease {
    pub(super) fn json(&self, repo: &FakeRepo) -> Value {
        json!({
            "url": format!("https://api.github.com/repos/{}/releases/1", repo.full_name),
            "id": 1,
            "tag_name": self.tag,
            "name": self.tag,
            "draft": false,
            "prerelease": self.kind == FakeReleaseKind::Preview,
            "tarball_url": format!("https://api.github.com/repos/{}/tarball/{}", repo.full_name, self.tag),
        })
    }
}

/// A commit id of 40 digits that follows from the names alone.
#[must_use]
pub fn fake_sha(full_name: &str, reference: &str) -> String {
    let part = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, full_name, reference).hash(&mut hasher);
        hasher.finish()
    };
    let digits = format!("{:016x}{:016x}{:016x}", part(0), part(1), part(2));
    digits.get(..40).unwrap_or_default().to_owned()
}
