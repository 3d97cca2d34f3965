//! Checks the real locations of a fixup's files: a path may lead through a link from a harmless name to a
//! protected file.
//!
//! Invariant: a fixup is offered only if every location that it would change was checked. The check is
//! repeated when it is applied.

use std::collections::BTreeMap;

use crucible_model::{ByteLimit, Code, Finding, RepoPath, Verdict};
use crucible_patch::{judge, make_diff, parse};
use crucible_repo::{GuardedPlaces, LinkPolicy, MAX_EDITED_BYTES, TreeEditError, read_tree_file};

use super::{FixupChoice, ProposedFixup};
use crate::project::SpecProject;

type Files = BTreeMap<RepoPath, Vec<u8>>;

/// Checks the locations of a proposed fixup before it is offered. `before` holds the current files. Problems that the model can
/// correct refuse it; a link to a file that may be changed is a warning.
///
/// # Errors
///
/// A verdict whose findings can be sent to the model as a correction.
pub(crate) fn place_fixup(
    project: &SpecProject,
    mut proposed: ProposedFixup,
    before: &BTreeMap<RepoPath, Vec<u8>>,
    choice: &FixupChoice,
) -> Result<ProposedFixup, Verdict> {
    let mut places = BTreeMap::new();
    let mut refused = Vec::new();
    for file in &proposed.files {
        let Ok(path) = file.path.parse::<RepoPath>() else {
            continue;
        };
        match real_place(project, &path) {
            Ok(place) => {
                places.insert(path, place);
            }
            Err(error) => {
                let why = match error {
                    TreeEditError::Blocked { why, .. } => why.to_string(),
                    other => other.to_string(),
                };
                refused.push(unreachable(&path, &why));
            }
        }
    }
    if !refused.is_empty() {
        return Err(Verdict::new(refused));
    }
    let patch = parse(&proposed.diff).map_err(|error| Verdict::new(vec![error.finding()]))?;
    let before: Files = patch
        .paths()
        .into_iter()
        .filter_map(|path| before.get_key_value(path))
        .map(|(path, bytes)| (path.clone(), bytes.clone()))
        .collect();
    let proposal = crucible_patch::Proposal::Diff(proposed.diff.clone());
    let after = crucible_patch::apply(&proposal, &before)
        .map_err(|error| Verdict::new(vec![error.finding()]))?;
    judge_places(&places, &before, &after, choice)?;
    for (path, place) in places.iter().filter(|(path, place)| path != place) {
        let how = match choice.links {
            LinkPolicy::Refuse => "; it is applied only with --allow-links",
            LinkPolicy::InsideProject => "",
        };
        let hint = format!("it is a link or lies behind one; what would change is {place}{how}");
        proposed.verdict.push(Finding::warning(
            Code::new("fixup-behind-link"),
            path.as_str(),
            hint,
        ));
    }
    Ok(proposed)
}

/// The real path of a project file, with links inside the project followed.
pub(super) fn real_place(
    project: &SpecProject,
    path: &RepoPath,
) -> Result<RepoPath, TreeEditError> {
    let limit = ByteLimit(MAX_EDITED_BYTES);
    read_tree_file(project.root(), path, LinkPolicy::InsideProject, limit).map(|file| file.real)
}

/// Checks the files at their real locations, and the locations themselves. `places` maps each path to its
/// location.
pub(super) fn judge_places(
    places: &BTreeMap<RepoPath, RepoPath>,
    before: &Files,
    after: &Files,
    choice: &FixupChoice,
) -> Result<(), Verdict> {
    let mut refused: Vec<Finding> =
        guarded(places, &choice.guarded, &choice.policy.named).collect();
    let mut led: BTreeMap<&RepoPath, &RepoPath> = BTreeMap::new();
    for (path, place) in places {
        if let Some(other) = led.insert(place, path) {
            refused.push(unreachable(
                path,
                &format!("it is the same file as {other}"),
            ));
        }
    }
    if refused.is_empty() && places.iter().any(|(path, place)| path != place) {
        let there = |files: &Files| -> Files {
            let moved = |(path, place): (&RepoPath, &RepoPath)| {
                Some((place.clone(), files.get(path)?.clone()))
            };
            places.iter().filter_map(moved).collect()
        };
        let (before, after) = (there(before), there(after));
        let broken = |finding: Finding| Verdict::new(vec![finding]);
        let diff = make_diff(&before, &after).map_err(|error| broken(error.finding()))?;
        let patch = parse(&diff).map_err(|error| broken(error.finding()))?;
        let verdict = judge(&patch, &choice.policy, &before, &after);
        refused.extend(verdict.errors().map(|finding| with_path(finding, &led)));
    }
    if refused.is_empty() {
        Ok(())
    } else {
        Err(Verdict::new(refused))
    }
}

/// A finding about a location, with the path that leads there.
fn with_path(finding: &Finding, led: &BTreeMap<&RepoPath, &RepoPath>) -> Finding {
    let mut finding = finding.clone();
    let place = led
        .iter()
        .find(|(place, path)| place.as_str() == finding.subject && place != path);
    if let Some((place, path)) = place {
        finding.hint = format!(
            "{path} leads there through a link, so a change of it changes {place}: {}",
            finding.hint
        );
    }
    finding
}

fn guarded(
    places: &BTreeMap<RepoPath, RepoPath>,
    guarded: &GuardedPlaces,
    named: &[RepoPath],
) -> impl Iterator<Item = Finding> {
    places.iter().filter_map(move |(path, place)| {
        // The link itself may be a file that git reads.
        let why = guarded.refusal(place, named).or_else(|| {
            let is_led = path != place && !named.contains(place);
            is_led.then(|| guarded.refusal(path, named)).flatten()
        })?;
        let hint = format!(
            "{why}; leave it as it is, or, where that change is wanted, look at it and name the file with --allow-path"
        );
        Some(Finding::error(Code::new("fixup-guarded-place"), place.as_str(), hint))
    })
}

fn unreachable(path: &RepoPath, why: &str) -> Finding {
    let hint = format!("{why}; no fixup can change it, so leave it as it is");
    Finding::error(Code::new("fixup-out-of-reach"), path.as_str(), hint)
}
