//! Which commits a history has: ranges, ancestors, children, and whether it is complete.

use std::collections::BTreeSet;

use super::CommitReader;
use crate::error::RepoError;
use crate::git::{Call, Output};
use crate::oid::Oid;

/// What git says of objects that are not there or damaged.
const MISSING: [&str; 6] = [
    "missing ",
    "bad object ",
    "bad tree object ",
    "Could not read ",
    "unable to read ",
    "unable to parse ",
];
/// The most commits whose common ancestor is searched: the time grows with their square.
const MAX_ROOTS: usize = 100;

/// A position in the history, as the user wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revisions<'a> {
    /// One commit.
    Commit(&'a str),
    /// The commits of a range such as `main..topic`.
    Range(&'a str),
}

impl CommitReader {
    /// Returns the commits that the user named, oldest first; `None` if there are more than `most`.
    ///
    /// # Errors
    ///
    /// [`RepoError::NoSuchRevision`] if there is no such commit, [`RepoError::AmbiguousRevision`] if git would choose
    /// one of several meanings.
    pub async fn commits(
        &self,
        named: Revisions<'_>,
        most: usize,
    ) -> Result<Option<Vec<Oid>>, RepoError> {
        let (Revisions::Commit(words) | Revisions::Range(words)) = named;
        let missing = || RepoError::NoSuchRevision {
            name: words.to_owned(),
        };
        let is_known = self.has_revision(words).await?;
        match named {
            Revisions::Commit(name) => {
                let commit = self.resolve(name).await?.ok_or_else(missing)?;
                Ok(Some(vec![commit]))
            }
            Revisions::Range(_) if !is_known => Err(missing()),
            Revisions::Range(_) => {
                let (tips, left_out) = self.ends(named).await?;
                self.new_commits(&tips, &left_out, most).await
            }
        }
    }

    /// Returns whether words of a user name a revision or a range.
    ///
    /// # Errors
    ///
    /// [`RepoError::AmbiguousRevision`] if git would choose one of several meanings.
    pub async fn has_revision(&self, words: &str) -> Result<bool, RepoError> {
        let call = Call::new(["rev-parse", "--end-of-options", words])
            .with_setting("core.warnAmbiguousRefs", "true");
        let output = self.run(call).await?;
        // git chooses a tag before a branch, and a ref before an object, and only warns.
        let warned = output.stderr.lines().find_map(|line| {
            let name = line.strip_prefix("warning: refname '")?;
            let name = name.strip_suffix("' is ambiguous.")?;
            // The whole name of an object always means the object.
            name.parse::<Oid>().is_err().then_some(name)
        });
        match warned {
            Some(found) => Err(RepoError::AmbiguousRevision {
                name: words.to_owned(),
                found: found.to_owned(),
            }),
            None => Ok(output.code == 0),
        }
    }

    /// Returns the commits of `tips` that none of `known` contains, oldest first; `None` if there are more than `most`.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn new_commits(
        &self,
        tips: &[Oid],
        known: &[Oid],
        most: usize,
    ) -> Result<Option<Vec<Oid>>, RepoError> {
        if tips.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let call = Call::new(["rev-list", "--topo-order", "--stdin"]);
        let output = self.ok(call.reading(revisions(tips, known))).await?;
        let mut listed = oids(&output)?;
        listed.reverse();
        // git stops early where a commit is dated before its ancestors, and then lists known ones, too.
        let contained = self.contained(&listed, known).await?;
        listed.retain(|commit| !contained.contains(commit));
        Ok((listed.len() <= most).then_some(listed))
    }

    /// Returns which of `commits` are in the history of `known`, whatever the dates say. If one of them is not of this push
    /// only, the whole history is listed.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn contained(
        &self,
        commits: &[Oid],
        known: &[Oid],
    ) -> Result<BTreeSet<Oid>, RepoError> {
        if known.is_empty() || commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        // The history of a ref is in the repository itself.
        let names = commits.iter().map(|commit| format!("{commit}\n"));
        let call = Call::new(["cat-file", "--batch-check=%(objectname)"])
            .reading(names.collect::<String>().into_bytes())
            .with_env("GIT_DIR", self.git_dir.as_os_str());
        let output = self.runner.run(&self.git_dir, None, &[], call).await?;
        if output.code != 0 {
            return Err(output.into_error());
        }
        let lines = output.stdout.split(|byte| *byte == b'\n');
        let stored: BTreeSet<Oid> = lines.filter_map(Oid::from_ascii).collect();
        if stored.is_empty() {
            return Ok(stored);
        }
        let call = Call::new(["rev-list", "--stdin"]);
        let output = self.ok(call.reading(revisions(known, &[]))).await?;
        let history = oids(&output)?.into_iter();
        Ok(history.filter(|commit| stored.contains(commit)).collect())
    }

    /// Returns the commits in the history of `tips` that have a parent among `bases`. Each of `bases` must be one of `roots`
    /// or have one of them in its history: the history is searched down to the commit that all of `roots` contain.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn children(
        &self,
        bases: &BTreeSet<Oid>,
        roots: &[Oid],
        tips: &[Oid],
    ) -> Result<Vec<Oid>, RepoError> {
        if bases.is_empty() || tips.is_empty() {
            return Ok(Vec::new());
        }
        // Without a common commit, or with one that was not fetched, the whole history is searched.
        let mut below = Vec::new();
        if roots.len() <= MAX_ROOTS {
            let words = ["merge-base", "--octopus"].into_iter();
            let words = words.chain(roots.iter().map(Oid::as_str));
            let common = self.run(Call::new(words)).await?;
            if common.code == 0 {
                below.extend(Oid::from_ascii(common.stdout.trim_ascii()));
            }
        }
        let call = Call::new(["rev-list", "--parents", "--stdin"]);
        let output = self.ok(call.reading(revisions(tips, &below))).await?;
        let mut children = Vec::new();
        for line in output.stdout.split(|byte| *byte == b'\n') {
            let mut oids = line.split(|byte| *byte == b' ').filter_map(Oid::from_ascii);
            let Some(child) = oids.next() else { continue };
            if oids.any(|parent| bases.contains(&parent)) {
                children.push(child);
            }
        }
        Ok(children)
    }

    /// Returns the commits at both ends of what the user named: its tips, and those that it leaves out.
    ///
    /// # Errors
    ///
    /// Fails when git cannot be run.
    pub async fn ends(&self, named: Revisions<'_>) -> Result<(Vec<Oid>, Vec<Oid>), RepoError> {
        let (Revisions::Commit(words) | Revisions::Range(words)) = named;
        let words = ["rev-parse", "--revs-only", "--end-of-options", words];
        let output = self.run(Call::new(words)).await?;
        let (mut tips, mut left_out) = (Vec::new(), Vec::new());
        for line in output.stdout.split(|byte| *byte == b'\n') {
            match line.strip_prefix(b"^") {
                Some(line) => left_out.extend(Oid::from_ascii(line)),
                None => tips.extend(Oid::from_ascii(line)),
            }
        }
        Ok((tips, left_out))
    }

    /// Returns whether the repository has all objects that these contain, so that git accepts refs to them.
    ///
    /// # Errors
    ///
    /// Fails when git does for another reason than a missing object.
    pub async fn is_connected(&self, tips: &[Oid]) -> Result<bool, RepoError> {
        if tips.is_empty() {
            return Ok(true);
        }
        let words = [
            "rev-list",
            "--objects",
            "--quiet",
            "--stdin",
            "--not",
            "--all",
        ];
        let tips = tips.iter().map(|tip| format!("{tip}\n"));
        let call = Call::new(words).reading(tips.collect::<String>().into_bytes());
        let output = self.run(call).await?;
        let is_missing = || MISSING.iter().any(|text| output.stderr.contains(text));
        match output.code {
            0 => Ok(true),
            _ if is_missing() => Ok(false),
            _ => Err(output.into_error()),
        }
    }

    /// Returns the newest commit that both `tip` and one of `known` contain, if they have one.
    ///
    /// # Errors
    ///
    /// Fails when git cannot be run.
    pub async fn fork_point(&self, tip: &Oid, known: &[Oid]) -> Result<Option<Oid>, RepoError> {
        if known.is_empty() {
            return Ok(None);
        }
        let words = ["merge-base", tip.as_str()].into_iter();
        let call = Call::new(words.chain(known.iter().map(Oid::as_str)));
        let output = self.run(call).await?;
        Ok((output.code == 0)
            .then(|| Oid::from_ascii(output.stdout.trim_ascii()))
            .flatten())
    }

    /// Returns whether `older` is an ancestor of `newer`.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn is_ancestor(&self, older: &Oid, newer: &Oid) -> Result<bool, RepoError> {
        let words = [
            "merge-base",
            "--is-ancestor",
            older.as_str(),
            newer.as_str(),
        ];
        let output = self.run(Call::new(words)).await?;
        match output.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(output.into_error()),
        }
    }
}

/// The standard input of `git rev-list --stdin`.
fn revisions(tips: &[Oid], known: &[Oid]) -> Vec<u8> {
    let tips = tips.iter().map(|tip| format!("{tip}\n"));
    let known = known.iter().map(|known| format!("^{known}\n"));
    tips.chain(known).collect::<String>().into_bytes()
}

/// The names that git printed, one a line.
fn oids(output: &Output) -> Result<Vec<Oid>, RepoError> {
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| Oid::from_ascii(line).ok_or_else(|| output.unreadable()))
        .collect()
}
