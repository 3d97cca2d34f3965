//! Runs hooks one after the other, and records the result of each.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_model::ByteLimit;
use crucible_sandbox::{
    CONFINED_HOME, Completed, Confinement, End, FORBIDDEN_SIGNAL, Identity, Keep, Limits, Network,
    Profile, Redaction, Sandbox, SandboxError, Spawn, Stdin, Strength, SyscallClass,
};
use crucible_secrets::Scanner;

use super::{Hook, HookIsolation, HookSubject};
use crate::project::CRUCIBLE;
use crate::receipt::{HookEnd, HookMoment, HookReceipt, OnFail};

/// The bytes of a stream that are read for the receipt.
const KEPT: ByteLimit = ByteLimit(4 << 10);
/// The bytes of a hook's output in its receipt.
const SAID: usize = 1_000;
/// The output limit of one stream, above which the hook is killed.
const RUNAWAY: ByteLimit = ByteLimit(64 << 20);
/// The grace period of a hook that is asked to end.
const GRACE: Duration = Duration::from_secs(2);
/// Directories of the project that a hook never changes: both affect what is executed or trusted later.
const READ_ONLY: [&str; 2] = [".git", CRUCIBLE];
/// The directory of the specs in it.
const SPECS: &str = "specs";
/// The depth of spec files below it: `specs/ID/receipts/` and its content.
const SPEC_DEPTH: usize = 3;
/// The most entries of `.crucible` that are examined, as for the rest of the project.
const MAX_ENTRIES: usize = 300_000;
/// The file that a hook does not change if it exists: the list of specs.
const REGISTRY: &str = "workspace.yaml";

/// The environment in which hooks run.
#[derive(Debug)]
pub(crate) struct HookPlace<'a> {
    /// Starts the hooks.
    pub sandbox: &'a Sandbox,
    /// The project's directory: their working directory, and all that they may write to.
    pub project: &'a Path,
    /// Their environment, without `HOME`.
    pub env: Vec<(OsString, OsString)>,
    /// The user's home directory, for hooks without a sandbox; others get an empty one.
    pub home: Option<PathBuf>,
    /// The required strength of the sandbox.
    pub strength: Strength,
    /// Additional paths to hide from them.
    pub masked: Vec<PathBuf>,
    /// Additional paths that hooks must not change, besides `.git`, `.crucible` and `workspace.yaml` of the
    /// project; or why these are unknown, in which case no sandboxed hook is started.
    pub read_only: Result<Vec<PathBuf>, String>,
}

/// Runs the hooks of this moment and phase in the order of their names, and returns a receipt for each
/// that was tried. After a failed hook that is set to `fail`, no other hook runs.
/// [`weigh_hooks`](super::weigh_hooks) derives the consequence.
///
/// Dropping the future ends the running hook and its child processes.
pub(crate) async fn run_hooks(
    hooks: &[Hook],
    moment: HookMoment,
    subject: &HookSubject,
    place: &HookPlace<'_>,
) -> Vec<HookReceipt> {
    let mut due: Vec<&Hook> = hooks
        .iter()
        .filter(|hook| hook.runs_at(moment, subject.phase))
        .collect();
    due.sort_by(|one, other| one.name.cmp(&other.name));
    let mut receipts = Vec::with_capacity(due.len());
    // Checked once for all of them: a sandboxed hook cannot change these files, and other hooks are not
    // protected from.
    let believed = due
        .iter()
        .any(|hook| hook.isolation == HookIsolation::Required)
        .then(|| believed(place));
    let believed = believed.unwrap_or(Ok(()));
    for hook in due {
        let receipt = run_hook(hook, subject, place, &believed).await;
        let stops = receipt.end != HookEnd::Passed && receipt.on_fail == OnFail::Fail;
        receipts.push(receipt);
        if stops {
            break;
        }
    }
    receipts
}

async fn run_hook(
    hook: &Hook,
    subject: &HookSubject,
    place: &HookPlace<'_>,
    believed: &Result<(), String>,
) -> HookReceipt {
    let base = HookReceipt {
        name: hook.name.clone(),
        moment: hook.moment,
        end: HookEnd::NotStarted,
        exit_code: None,
        duration_ms: 0,
        on_fail: hook.on_fail,
        isolation: None,
        said: String::new(),
    };
    let Some((program, args)) = hook.command.split_first() else {
        return HookReceipt {
            said: "it has no command".to_owned(),
            ..base
        };
    };
    let profile = match profile(hook, place, believed) {
        Ok(profile) => profile,
        Err(why) => {
            let why = Scanner::builtin().redact(&why).text.into_owned();
            return HookReceipt {
                said: tail(&why).to_owned(),
                ..base
            };
        }
    };
    let spawn = Spawn {
        args: args.iter().map(OsString::from).collect(),
        env: environment(hook, subject, place),
        stdin: Stdin::Bytes(subject.document(&hook.name, hook.moment)),
        confinement: Confinement::Confined(profile),
        keep: Keep::Tail,
        redaction: Redaction::Redact,
        ..Spawn::new(program, place.project, limits(hook.timeout))
    };
    match place.sandbox.run(spawn).await {
        Ok(completed) => finished(base, completed),
        Err(error) => {
            let end = match error {
                // It did run, and its remaining processes cannot be ended.
                SandboxError::Survivors { .. } => HookEnd::Failed,
                _ => HookEnd::NotStarted,
            };
            let why = Scanner::builtin()
                .redact(&explain(program, &error))
                .text
                .into_owned();
            HookReceipt {
                end,
                said: tail(&why).to_owned(),
                ..base
            }
        }
    }
}

/// A short error: a receipt is no place for a search path.
fn explain(program: &str, error: &SandboxError) -> String {
    match error {
        SandboxError::NotFound { .. } => {
            format!(
                "program {program:?} was not found; install it, or name a file of the project with a `/`"
            )
        }
        SandboxError::NotExecutable { problem, .. } => {
            format!("{program:?} cannot be run: {problem}")
        }
        SandboxError::Exec { source, .. } => {
            format!(
                "{program:?} could not be started: {source}; check that the sandbox hides neither it nor its \
                interpreter"
            )
        }
        other => other.to_string(),
    }
}

fn environment(
    hook: &Hook,
    subject: &HookSubject,
    place: &HookPlace<'_>,
) -> Vec<(OsString, OsString)> {
    let mut env = place.env.clone();
    let home = match hook.isolation {
        HookIsolation::Required => Some(OsString::from(CONFINED_HOME)),
        HookIsolation::Off => place
            .home
            .as_ref()
            .map(|home| home.clone().into_os_string()),
    };
    env.extend(home.map(|home| (OsString::from("HOME"), home)));
    let variables = subject.variables(&hook.name, hook.moment);
    env.extend(
        variables
            .into_iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value))),
    );
    env.push(("CRUCIBLE_PROJECT".into(), place.project.into()));
    env
}

/// Checks that the trusted files in `.crucible` are not links, and says why not.
fn believed(place: &HookPlace<'_>) -> Result<(), String> {
    if place.strength == Strength::Off {
        return Ok(());
    }
    let own = place.project.join(CRUCIBLE);
    let found = Search { left: MAX_ENTRIES }.link_in(&own, 0);
    match found.map_err(|why| format!("cannot search {CRUCIBLE}: {why}"))? {
        None => Ok(()),
        Some(link) => {
            let link = link.strip_prefix(place.project).unwrap_or(&link).display();
            Err(format!(
                "{link} is a symbolic link, and a hook could change its target in place of receipts and \
                artifacts; replace the link by the directory or file itself"
            ))
        }
    }
}

/// The sandbox profile of a hook, or why none can be made.
fn profile(
    hook: &Hook,
    place: &HookPlace<'_>,
    believed: &Result<(), String>,
) -> Result<Profile, String> {
    let strength = match hook.isolation {
        HookIsolation::Required => place.strength,
        HookIsolation::Off => Strength::Off,
    };
    let read_only = match (strength, &place.read_only) {
        (Strength::Off, _) => Vec::new(),
        (Strength::Required | Strength::BestEffort, Ok(others)) => {
            believed.clone()?;
            read_only(place.project, others)
        }
        (Strength::Required | Strength::BestEffort, Err(why)) => {
            return Err(format!(
                "cannot determine what it must not change in this repository: {why}"
            ));
        }
    };
    Ok(Profile {
        strength,
        writable: vec![place.project.to_owned()],
        masked: place.masked.clone(),
        read_only,
        mounts: Vec::new(),
        network: Network::None,
        calls: SyscallClass::Tools,
        identity: Identity::default(),
    })
}

/// A search with a limit.
struct Search {
    /// The number of entries that may still be examined.
    left: usize,
}

impl Search {
    /// Finds a link among the trusted files in `.crucible`: at its top, at the top of `specs`, and in
    /// each spec.
    fn link_in(&mut self, directory: &Path, depth: usize) -> io::Result<Option<PathBuf>> {
        let entries = match directory.read_dir() {
            Ok(entries) => entries,
            // If it is not a directory, or is a link itself, mounting it reports that.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            self.left = self.left.checked_sub(1).ok_or_else(|| {
                io::Error::other(format!(
                    "there are more than {MAX_ENTRIES} entries, too many to search for links; move finished \
                    specs out of \
                     {CRUCIBLE}/{SPECS}, or run the hook without a sandbox (hooks.NAME.sandbox = \"off\" in your own configuration)"
                ))
            })?;
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                return Ok(Some(entry.path()));
            }
            // Only specs are trusted; beside them there may be whole work trees.
            let is_believed = depth > 0 || entry.file_name() == SPECS;
            if kind.is_dir()
                && is_believed
                && depth < SPEC_DEPTH
                && let Some(link) = self.link_in(&entry.path(), depth + 1)?
            {
                return Ok(Some(link));
            }
        }
        Ok(None)
    }
}

fn read_only(project: &Path, others: &[PathBuf]) -> Vec<PathBuf> {
    // With a final `/` a missing path becomes an empty directory for the run, which git does not take for
    // a repository. An empty registry would be invalid for other readers, so it is not created.
    let own = READ_ONLY.iter().map(|name| project.join(name).join(""));
    let registry = Some(project.join(REGISTRY)).filter(|file| file.symlink_metadata().is_ok());
    own.chain(registry).chain(others.iter().cloned()).collect()
}

fn limits(wall: Duration) -> Limits {
    Limits {
        stdout: KEPT,
        stderr: KEPT,
        runaway: RUNAWAY,
        grace: GRACE,
        ..Limits::new(wall)
    }
}

fn finished(base: HookReceipt, completed: Completed) -> HookReceipt {
    let (end, exit_code, remark) = match completed.end {
        End::Exited(0) => (HookEnd::Passed, Some(0), None),
        End::Exited(code) => (HookEnd::Failed, Some(code), None),
        End::Signalled(signal) => (
            HookEnd::Failed,
            None,
            Some(format!("ended by signal {signal}")),
        ),
        End::Forbidden => (
            HookEnd::Failed,
            None,
            Some(format!("ended by signal {FORBIDDEN_SIGNAL}")),
        ),
        End::TimedOut => (HookEnd::TimedOut, None, None),
        End::OutputLimit => (
            HookEnd::Failed,
            None,
            Some("killed because it printed too much".to_owned()),
        ),
        End::DiskLimit => (
            HookEnd::Failed,
            None,
            Some("killed because it wrote too much to the disk".to_owned()),
        ),
    };
    let printed =
        [&completed.stdout, &completed.stderr].map(|stream| stream.text().trim().to_owned());
    let printed = printed
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    let mut output = tail(&printed).to_owned();
    if let Some(remark) = remark {
        output = if output.is_empty() {
            remark
        } else {
            format!("{output}\n{remark}")
        };
    }
    HookReceipt {
        end,
        exit_code,
        duration_ms: u64::try_from(completed.duration.as_millis()).unwrap_or(u64::MAX),
        isolation: Some(completed.receipt),
        said: output,
        ..base
    }
}

/// The end of a text, cut at a character boundary.
fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(SAID))..]
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out files by hand and read PATH to find a shell"
)]
mod tests {
    use std::time::Instant;

    use crucible_host::env::Environment;
    use crucible_model::Outcome;
    use crucible_sandbox::base_env;
    use proptest::prelude::*;

    use super::super::{HookConsequence, weigh_hooks};
    use super::*;
    use crate::error::SpecError;
    use crate::phase_id::PhaseId;
    use crate::receipt::PhaseStatus;

    /// A project, and a sandbox without isolation; isolation is tested with the whole program.
    struct Bench {
        project: tempfile::TempDir,
        env: Environment,
        sandbox: Sandbox,
        runtime: tokio::runtime::Runtime,
    }

    impl Bench {
        fn new() -> Self {
            let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
            let sandbox = Sandbox::new(None, &env);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            Self {
                project: tempfile::tempdir().unwrap(),
                env,
                sandbox,
                runtime,
            }
        }

        fn run(&self, hooks: &[Hook]) -> Vec<HookReceipt> {
            let place = HookPlace {
                sandbox: &self.sandbox,
                project: self.project.path(),
                env: base_env(&self.env),
                home: Some("/nowhere".into()),
                strength: Strength::Off,
                masked: Vec::new(),
                read_only: Ok(Vec::new()),
            };
            let subject = HookSubject {
                status: Some(PhaseStatus::Success),
                verdict: Some(Outcome::Pass),
                ..HookSubject::before("export-data".parse().unwrap(), PhaseId::Design)
            };
            self.runtime
                .block_on(run_hooks(hooks, HookMoment::PostPhase, &subject, &place))
        }

        fn run_hook(&self, script: &str) -> HookReceipt {
            self.run(&[hook("one", script)]).remove(0)
        }
    }

    fn hook(name: &str, script: &str) -> Hook {
        Hook {
            name: name.to_owned(),
            moment: HookMoment::PostPhase,
            phases: Vec::new(),
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            on_fail: OnFail::Warn,
            timeout: Duration::from_secs(60),
            isolation: HookIsolation::Required,
        }
    }

    #[test]
    fn hook_runs_in_project_with_input() {
        let bench = Bench::new();
        let done = bench.run_hook(
            "cat > told; echo \"$CRUCIBLE_SPEC_ID $CRUCIBLE_PHASE $CRUCIBLE_HOOK $CRUCIBLE_HOOK_NAME $HOME\"; \
             test \"$CRUCIBLE_PROJECT\" -ef . && env | cut -d= -f1 | sort | tr '\\n' ' '",
        );
        assert_eq!(
            (done.end, done.exit_code),
            (HookEnd::Passed, Some(0)),
            "{}",
            done.said
        );
        let (first, names) = done.said.split_once('\n').unwrap();
        assert_eq!(first, "export-data design post_phase one /tmp/home");
        assert_eq!(
            names,
            "CRUCIBLE_HOOK CRUCIBLE_HOOK_NAME CRUCIBLE_PHASE CRUCIBLE_PROJECT CRUCIBLE_SPEC_ID HOME PATH PWD TERM"
        );
        let input = std::fs::read(bench.project.path().join("told")).unwrap();
        let input: serde_json::Value = serde_json::from_slice(&input).unwrap();
        assert_eq!(
            (&input["schema_version"], &input["status"]),
            (&"crucible-hook-v1".into(), &"success".into())
        );
        assert!(done.isolation.is_some());

        let mut open = hook("one", "echo $HOME");
        open.isolation = HookIsolation::Off;
        assert_eq!(bench.run(&[open])[0].said, "/nowhere");
    }

    #[test]
    fn hooks_run_in_name_order_until_failure() {
        let bench = Bench::new();
        let mut other_phase = hook("a-other", "echo bad >> order");
        other_phase.phases = vec![PhaseId::Tasks];
        let mut other_moment = hook("a-moment", "echo bad >> order");
        other_moment.moment = HookMoment::PrePhase;
        let mut strict = hook("c", "echo c >> order; exit 3");
        strict.on_fail = OnFail::Fail;
        let hooks = [
            hook("d", "echo d >> order"),
            strict,
            hook("b", "echo b >> order; exit 1"),
            hook("a", "echo a >> order"),
            other_phase,
            other_moment,
        ];
        let receipts = bench.run(&hooks);
        let names: Vec<_> = receipts
            .iter()
            .map(|receipt| receipt.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(
            std::fs::read_to_string(bench.project.path().join("order")).unwrap(),
            "a\nb\nc\n"
        );
        match weigh_hooks(&hooks, &receipts) {
            HookConsequence::Fail(SpecError::Hook { name, why }) => {
                assert_eq!(
                    (name.as_str(), why.as_str()),
                    ("c", "ended with exit code 3")
                );
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_hook_that_cannot_be_started_says_why() {
        let bench = Bench::new();
        let root = bench.project.path();
        std::fs::write(root.join("plain"), "echo hello").unwrap();
        std::fs::create_dir(root.join("dir")).unwrap();
        let script = root.join("lost");
        std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).unwrap();
        for (command, word) in [
            (&["no-such-program-anywhere"][..], "not found"),
            (&["./plain"], "not executable"),
            (&["./dir"], "is a directory"),
            (&["./lost"], "could not be started"),
            (&["../../no/such"], "not found"),
            (&["sh", "-c", "a\0b"], "NUL"),
            (&[""], "empty"),
            (&[], "no command"),
        ] {
            let mut hook = hook("one", "");
            hook.command = command.iter().map(|&word| word.to_owned()).collect();
            let done = bench.run(&[hook]).remove(0);
            assert_eq!(
                (done.end, done.exit_code),
                (HookEnd::NotStarted, None),
                "{command:?}"
            );
            assert!(
                done.said.contains(word) && done.said.len() <= SAID,
                "{command:?}: {}",
                done.said
            );
            assert_eq!(done.isolation, None);
        }
    }

    #[test]
    fn killed_or_unread_hook_has_end() {
        let bench = Bench::new();
        let killed = bench.run_hook("echo before; kill -9 $$");
        assert_eq!((killed.end, killed.exit_code), (HookEnd::Failed, None));
        assert_eq!(killed.said, "before\nended by signal 9");
        let deaf = bench.run_hook("exec <&-; exit 0");
        assert_eq!(deaf.end, HookEnd::Passed, "{}", deaf.said);
    }

    #[test]
    fn hook_output_is_cut_and_redacted() {
        let bench = Bench::new();
        let secret = crucible_testkit::made_up_token();
        let loud = bench
            .run_hook("head -c 3000000 /dev/zero | tr '\\0' 'ä'; echo the end; echo aside >&2");
        assert_eq!(loud.end, HookEnd::Passed);
        assert!(
            loud.said.ends_with("the end\naside") && loud.said.len() <= SAID,
            "{}",
            loud.said
        );
        let leak = bench.run_hook(&format!(
            "echo first; echo {secret}; echo {secret} >&2; exit 1"
        ));
        assert!(
            !leak.said.contains(&secret) && leak.said.contains("[secret:"),
            "{}",
            leak.said
        );
        let mut absent = hook("one", "");
        absent.command = vec![format!("./{secret}")];
        let absent = bench.run(&[absent]).remove(0);
        assert!(!absent.said.contains(&secret), "{}", absent.said);
    }

    #[test]
    fn hook_output_keeps_last_1000_bytes() {
        let bench = Bench::new();
        let padded = |spaces: usize| bench.run_hook(&format!("printf 'x%{spaces}s' ''")).said;
        let limit = usize::try_from(KEPT.0).unwrap();
        assert_eq!(padded(limit - 1), "x", "the whole stream fits");
        assert_eq!(padded(limit), "", "its first byte does not");
        let text = |bytes: usize| format!("a{}", "b".repeat(bytes - 1));
        assert_eq!(tail(&text(SAID)), text(SAID));
        assert_eq!(tail(&text(SAID + 1)), "b".repeat(SAID));
        // Two bytes each: cut at a character boundary.
        assert_eq!(tail(&"ä".repeat(SAID / 2 + 1)), "ä".repeat(SAID / 2));
        assert_eq!(
            tail(&format!("{}z", "ä".repeat(SAID / 2))),
            format!("{}z", "ä".repeat(SAID / 2 - 1))
        );
    }

    #[test]
    fn hook_over_output_limit_is_killed() {
        let bench = Bench::new();
        let prints =
            |bytes: u64| bench.run_hook(&format!("head -c {bytes} /dev/zero | tr '\\0' ' '"));
        assert_eq!(prints(RUNAWAY.0).end, HookEnd::Passed);
        let ended = prints(RUNAWAY.0 + (1 << 20));
        assert_eq!((ended.end, ended.exit_code), (HookEnd::Failed, None));
        assert_eq!(ended.said, "killed because it printed too much");
    }

    #[test]
    fn timed_out_hook_gets_grace_period() {
        let bench = Bench::new();
        let mut polite = hook(
            "polite",
            "trap 'echo saved; exit 0' TERM; echo ready; sleep 300 & wait",
        );
        polite.timeout = Duration::from_secs(1);
        let polite = bench.run(&[polite]).remove(0);
        assert_eq!(
            (polite.end, polite.said.as_str()),
            (HookEnd::TimedOut, "ready\nsaved")
        );
        let mut stubborn = hook(
            "stubborn",
            "trap '' TERM; echo ready; while :; do sleep 1; done; echo never",
        );
        stubborn.timeout = Duration::from_secs(1);
        let stubborn = bench.run(&[stubborn]).remove(0);
        assert_eq!(
            (stubborn.end, stubborn.said.as_str()),
            (HookEnd::TimedOut, "ready")
        );
    }

    #[test]
    fn link_search_depth_covers_receipts() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join(CRUCIBLE);
        let search = || Search { left: MAX_ENTRIES }.link_in(&own, 0).unwrap();
        assert_eq!(search(), None, "there is no such directory");
        let link = |place: &str| {
            let link = own.join(place);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink("/elsewhere", &link).unwrap();
            let found = search();
            std::fs::remove_file(&link).unwrap();
            found.map(|found| found == link)
        };
        for believed in [
            "config.toml",
            "specs",
            "specs/a",
            "specs/a/receipts",
            "specs/a/receipts/1.json",
        ] {
            let parent = own.join(believed);
            let _not_there_yet = std::fs::remove_dir_all(&parent);
            assert_eq!(link(believed), Some(true), "{believed}");
        }
        for other in [
            "specs/a/receipts/old/1.json",
            "worktrees/a",
            "worktrees/a/receipts/1.json",
        ] {
            assert_eq!(link(other), None, "{other}");
        }
    }

    #[test]
    fn search_stops_at_limit_with_advice() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join(CRUCIBLE);
        std::fs::create_dir_all(own.join("specs/a")).unwrap();
        (0..7).for_each(|file| std::fs::write(own.join(format!("specs/a/{file}.md")), "").unwrap());
        // `specs`, `a` and its files.
        assert_eq!(Search { left: 9 }.link_in(&own, 0).unwrap(), None);
        let why = Search { left: 8 }.link_in(&own, 0).unwrap_err().to_string();
        assert!(
            why.contains("more than 300000 entries") && why.contains("move finished specs"),
            "{why}"
        );
    }

    #[test]
    fn nothing_that_a_hook_starts_outlives_it() {
        let bench = Bench::new();
        let mark = format!("87{:07}", std::process::id());
        let done = bench.run_hook(&format!("setsid sleep {mark} & sleep {mark} & exit 0"));
        assert_eq!(done.end, HookEnd::Passed);
        let mut slow = hook(
            "slow",
            &format!("trap '' TERM; setsid sleep {mark} & sleep {mark}; sleep {mark}"),
        );
        slow.timeout = Duration::from_millis(100);
        assert_eq!(bench.run(&[slow])[0].end, HookEnd::TimedOut);
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            assert!(!line.starts_with(&format!("sleep {mark}")), "{line}");
        }
    }

    mod properties {
        use crucible_testkit::expensive_cases;

        use super::*;

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(expensive_cases()))]

            /// With real processes: for any exit code, the work continues or fails as `on_fail`
            /// says.
            #[test]
            fn real_hook_exit_codes_follow_on_fail(code in 0_i32..256, fail in any::<bool>()) {
                thread_local!(static BENCH: Bench = Bench::new());
                let mut hook = hook("one", &format!("exit {code}"));
                hook.on_fail = if fail { OnFail::Fail } else { OnFail::Warn };
                let hooks = [hook];
                let receipts = BENCH.with(|bench| bench.run(&hooks));
                prop_assert_eq!(receipts[0].exit_code, Some(code));
                prop_assert_eq!(receipts[0].end, if code == 0 { HookEnd::Passed } else { HookEnd::Failed });
                match weigh_hooks(&hooks, &receipts) {
                    HookConsequence::GoOn(warnings) => {
                        prop_assert!(code == 0 || !fail);
                        prop_assert_eq!(warnings.len(), usize::from(code != 0));
                    }
                    HookConsequence::Fail(error) => {
                        prop_assert!(code != 0 && fail, "{}", error);
                        prop_assert!(error.to_string().contains(&format!("exit code {code}")), "{}", error);
                    }
                }
            }

            /// A hook that exceeds its time limit is killed and handled by `on_fail`; others are
            /// not.
            #[test]
            fn hook_is_killed_at_its_time_limit(
                hangs in any::<bool>(), millis in 20_u64..60, stubborn in any::<bool>(), fail in any::<bool>()
            ) {
                thread_local!(static BENCH: Bench = Bench::new());
                let script = match (hangs, stubborn) {
                    (false, _) => "exit 0",
                    (true, false) => "sleep 300",
                    // The shell stays and its child hangs.
                    (true, true) => "sleep 300; exit 0",
                };
                let mut hook = hook("one", script);
                hook.timeout = if hangs { Duration::from_millis(millis) } else { Duration::from_secs(60) };
                hook.on_fail = if fail { OnFail::Fail } else { OnFail::Warn };
                let (hooks, start) = ([hook], Instant::now());
                let receipts = BENCH.with(|bench| bench.run(&hooks));
                prop_assert!(start.elapsed() < Duration::from_secs(60), "it was not ended");
                prop_assert_eq!(receipts[0].end, if hangs { HookEnd::TimedOut } else { HookEnd::Passed });
                prop_assert!(!hangs || receipts[0].duration_ms >= millis);
                match weigh_hooks(&hooks, &receipts) {
                    HookConsequence::GoOn(warnings) => {
                        prop_assert!(!hangs || !fail);
                        prop_assert_eq!(warnings.len(), usize::from(hangs));
                    }
                    HookConsequence::Fail(error) => {
                        let timed_out = matches!(&error, SpecError::HookTimedOut { .. });
                        prop_assert!(hangs && fail && timed_out, "{}", error);
                    }
                }
            }
        }
    }
}
