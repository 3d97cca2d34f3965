//! The permissions of a person for a run: `crucible run advance RUN --allow PATH`, and `--accept CODE`.
//!
//! [`allow`] records in one event who allows which paths, and who accepts which refusals of the gates. The file request, the pack, the plan, its reviews
//! and its signature are then created again under new keys ([`Permissions::key`]) and include these paths. The
//! earlier versions become void, and so do attempts judged by the earlier plan. A change that was refused only for what is now
//! accepted is verified again without another answer. The event stands in the
//! ledger before any of these files is written, so a run that is cut off goes on with what was permitted.
//!
//! What always holds: only [`allow`] makes such an event, and only a command of a person calls it.

use std::collections::BTreeSet;

use crucible_host::words::shell_word;
use crucible_ledger::{EventRecord, Ledger};
use crucible_model::{Code, Finding, Level, PathPrefix, RepoPath, RunId};
use crucible_pack::{FileRequest, Mode, Need};
use crucible_repo::Git;
use crucible_verify::ACCEPTABLE;
use serde_json::Value;

use crate::attempt::{self, AttemptEnd, AttemptOutcome};
use crate::contract::{Plan, RunRecord, RunSettings};
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::gatekeeper::{DENIED, GATE_FILE};
use crate::journal::{Entry, Journal, RunObserver};
use crate::layout::{self, RunDir};
use crate::progress::progress;
use crate::recorded::is_allowance;
use crate::role::librarian::check_named;
use crate::run_context::RunContext;
use crate::scope::{is_guarded, is_unambiguous_name, named_places};
use crate::state::RunState;

/// The change of an answer is that of an earlier one.
pub(crate) const SAME_PATCH_TWICE: Code = Code::new("run-same-patch-twice");

/// The refusals that a permission lifts.
const LIFTED: [&str; 6] = [
    "patch-path-outside-scope",
    "patch-new-file-unnamed",
    "patch-test-edited",
    "patch-manifest-edited",
    "patch-lockfile-edited",
    "patch-deletes-file",
];

/// What a person permits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Permission<'a> {
    /// Files, directories and globs that the run may change too.
    pub paths: &'a [String],
    /// The codes of refusals to accept, out of [`ACCEPTABLE`].
    pub accepts: &'a [String],
}

impl Permission<'_> {
    /// Returns whether nothing is permitted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.accepts.is_empty()
    }
}

/// How many paths one command is printed with.
const MAX_PRINTED: usize = 8;

/// Allows a run to change these paths too, accepts these refusals, and records who did.
///
/// # Errors
///
/// Fails when another process holds the run, when its files were edited, when it is verified or landed
/// already, and when a path is invalid or cannot be shown to a model.
pub async fn allow(
    world: &RunContext<'_>,
    dir: &RunDir,
    permission: Permission<'_>,
    ledger: &mut Ledger,
    observer: &mut dyn RunObserver,
) -> Result<(), RunError> {
    let record = dir.record()?;
    let _lock = dir.acquire("widening the scope of the run")?;
    let mut journal = Journal::open(
        record.run_id.clone(),
        dir.clone(),
        ledger,
        world.clock,
        observer,
    )?;
    journal.check_files()?;
    let state = progress(dir, journal.events()?)?.state();
    if matches!(state, RunState::Verified | RunState::Landed) {
        return Err(RunError::NothingToAllow {
            id: record.run_id.to_string(),
            state: state.name(),
        });
    }
    let git = world.git(&record.repo, &dir.fresh_scratch()?).await?;
    let places =
        named_places(permission.paths, &git.tracked_files().await?).map_err(|(text, error)| {
            RunError::NotAllowable {
                text: text.to_owned(),
                error,
            }
        })?;
    let settings = RunSettings {
        named: places.files.clone(),
        ..record.settings.clone()
    };
    check_named(git.top(), &record.repo_slug, &record.goal, &settings)?;
    let before = Permissions::from_events(journal.events()?);
    if places.files.iter().all(|path| before.files.contains(path))
        && places
            .directories
            .iter()
            .all(|place| before.directories.contains(place))
        && permission
            .accepts
            .iter()
            .all(|code| before.accepts.contains(code))
    {
        return journal.note("  already allowed");
    }
    let by = who(&git).await;
    let attempts = attempt::recorded_outcomes(dir, journal.events()?)?.len();
    let body = serde_json::json!({
        "accepts": permission.accepts, "files": places.files, "directories": places.directories, "by": by,
        "attempts": attempts
    });
    let key = format!("allowed-{}", before.count + 1);
    let (role, event, path) = ("operator", EventKind::ScopeAllowed, layout::PLAN);
    journal.record(Entry {
        role,
        event,
        key,
        path,
        body,
    })?;
    journal.commit()?;
    let named = places.files.iter().map(ToString::to_string);
    let named: Vec<String> = named
        .chain(places.directories.iter().map(ToString::to_string))
        .chain(permission.accepts.iter().cloned())
        .collect();
    journal.note(&format!("  {by} permits: {}", named.join(", ")))
}

/// Returns the operator's name from git's configuration.
async fn who(git: &Git) -> String {
    match git.identity().await {
        Ok(identity) => format!("{} <{}>", identity.name, identity.email),
        Err(_) => "an operator without a user.name in git".to_owned(),
    }
}

/// Everything that was permitted since a run began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Permissions {
    files: Vec<RepoPath>,
    directories: Vec<PathPrefix>,
    /// The codes of accepted refusals.
    accepts: Vec<String>,
    /// How often something was permitted.
    count: usize,
    /// How many attempts had ended by the last time.
    pub(crate) attempts: usize,
}

impl Permissions {
    /// What these events tell.
    pub(crate) fn from_events(events: &[EventRecord]) -> Self {
        let mut all = Self::default();
        for event in events.iter().filter(|event| is_allowance(event)) {
            all.files.extend(list(event, "files"));
            all.directories.extend(list(event, "directories"));
            all.accepts.extend(list::<String>(event, "accepts"));
            all.count += 1;
            let attempts = event
                .body
                .get("attempts")
                .and_then(Value::as_u64)
                .unwrap_or(0);
            all.attempts = usize::try_from(attempts).unwrap_or(usize::MAX);
        }
        all
    }

    /// Lets a run make as many attempts under its new plan as it could under the first.
    pub(crate) fn extend_attempts(&self, record: &mut RunRecord) {
        let most = &mut record.settings.max_iterations;
        *most = most.saturating_add(self.attempts as u64);
    }

    /// Returns the key of a step that is repeated after each permission.
    pub(crate) fn key(&self, step: &str) -> String {
        if self.count == 0 {
            step.to_owned()
        } else {
            format!("{step}-allowed-{}", self.count)
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds the allowed paths and the accepted refusals to the plan. Idempotent.
    pub(crate) fn widen(&self, plan: &mut Plan) {
        for path in &self.files {
            if !plan.names.contains(path) {
                plan.names.push(path.clone());
            }
        }
        for code in &self.accepts {
            if ACCEPTABLE.contains(&code.as_str()) && !plan.accepts.contains(code) {
                plan.accepts.push(code.clone());
            }
        }
        let places = self
            .files
            .iter()
            .cloned()
            .map(PathPrefix::from)
            .chain(self.directories.iter().cloned());
        for place in places {
            plan.scope_deny.retain(|denied| *denied != place);
            if !plan.scope_allow.contains(&place) {
                plan.scope_allow.push(place);
            }
        }
    }

    /// The request with the permitted files before all others.
    pub(crate) fn prioritize(&self, request: &mut FileRequest) {
        let mut seen = BTreeSet::new();
        let first = self.files.iter().map(|path| Need {
            path: path.to_string(),
            mode: Mode::Full,
            line_ranges: Vec::new(),
        });
        let needs: Vec<Need> = first.chain(std::mem::take(&mut request.needs)).collect();
        request.needs = needs
            .into_iter()
            .filter(|need| seen.insert(need.path.clone()))
            .collect();
    }
}

fn list<T: serde::de::DeserializeOwned>(event: &EventRecord, field: &str) -> Vec<T> {
    let items = event
        .body
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    items
        .filter_map(|item| serde_json::from_value(item.clone()).ok())
        .collect()
}

/// Returns the command that continues the run and allows what the last answer was refused for; `None` if no
/// permission would help.
pub(crate) fn permission_command(run: &RunId, findings: &[Finding]) -> Option<String> {
    let is_error = |finding: &&Finding| finding.level == Level::Error;
    let (mut paths, mut accepts): (Vec<&str>, BTreeSet<&str>) = Default::default();
    let is_repeated = |finding: &&Finding| finding.code != SAME_PATCH_TWICE;
    for finding in findings.iter().filter(is_error).filter(is_repeated) {
        if ACCEPTABLE.contains(&finding.code.as_str()) {
            accepts.insert(finding.code.as_str());
            continue;
        }
        let path = finding.subject.as_str();
        let is_path = path
            .parse::<RepoPath>()
            .is_ok_and(|path| is_unambiguous_name(&path) && !is_guarded(&path));
        let is_lifted = LIFTED.contains(&finding.code.as_str())
            || finding.code.as_str() == DENIED && finding.hint == GATE_FILE;
        if !is_lifted || !is_path {
            return None;
        }
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    if paths.is_empty() && accepts.is_empty() || paths.len() > MAX_PRINTED {
        return None;
    }
    let paths = paths
        .iter()
        .map(|path| format!(" --allow {}", shell_word(path)));
    let accepts = accepts.iter().map(|code| format!(" --accept {code}"));
    let options: String = paths.chain(accepts).collect();
    Some(format!("crucible run advance {run}{options}"))
}

/// Returns whether a person accepted each refusal of an attempt whose gates ran, so that its change is verified again.
pub(crate) fn is_accepted(outcome: &AttemptOutcome, plan: &Plan) -> bool {
    let mut errors = outcome
        .findings
        .iter()
        .filter(|finding| finding.level == Level::Error)
        .peekable();
    outcome.end == AttemptEnd::VerifyFailed
        && errors.peek().is_some()
        && errors.all(|finding| {
            plan.accepts
                .iter()
                .any(|code| code == finding.code.as_str())
        })
}

/// [`permission_command`] for the last attempt of a run that failed.
pub(crate) fn permission_of(run: &RunId, attempts: &[AttemptOutcome]) -> Option<String> {
    permission_command(run, &attempts.last()?.findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_prints_complete_allow_command() {
        let id: RunId = crate::gatekeeper::tests::record(std::path::Path::new("/"), &[]).run_id;
        let outside = |path: &str| Finding::error(Code::new("patch-path-outside-scope"), path, "");
        let test = Finding::error(Code::new("patch-test-edited"), "tests/a.py", "");
        let note = Finding::warning(Code::new("patch-doctest-changed"), "x", "");
        let printed =
            permission_command(&id, &[outside("src/a.py"), test, note, outside("src/a.py")]);
        assert_eq!(
            printed,
            Some(format!(
                "crucible run advance {id} --allow src/a.py --allow tests/a.py"
            ))
        );
        let closed = |hint: &str| Finding::error(Code::new(DENIED), "checks.c", hint);
        let printed = permission_command(&id, &[outside("checks.c"), closed(GATE_FILE)]);
        assert_eq!(
            printed,
            Some(format!("crucible run advance {id} --allow checks.c"))
        );
        assert_eq!(
            permission_command(&id, &[closed("nothing under `checks.c` may change")]),
            None
        );
        let gates = |code| Finding::error(Code::new(code), "gates", "");
        let twice = Finding::error(SAME_PATCH_TWICE, "attempt 2", "");
        let printed = permission_command(&id, &[gates("verify-change-not-noticed"), twice]);
        assert_eq!(
            printed,
            Some(format!(
                "crucible run advance {id} --accept verify-change-not-noticed"
            ))
        );
        let broken = gates("verify-test-broken");
        assert_eq!(
            permission_command(&id, &[gates("verify-nothing-fixed"), broken]),
            None
        );
        let other = Finding::error(Code::new("patch-test-disabled"), "tests/a.py", "");
        for findings in [
            vec![],
            vec![outside("src/a.py"), other],
            vec![outside(".github/workflows/ci.yml")],
            vec![outside("a\u{202e}.py")],
            vec![outside("a; rm -rf x")],
            (0..9)
                .map(|number| outside(&format!("a{number}")))
                .collect(),
        ] {
            assert_eq!(permission_command(&id, &findings), None, "{findings:?}");
        }
    }
}
