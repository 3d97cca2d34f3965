//! Removes fetched files so that the user can interrupt it: many directories take a while.
//!
//! The removal runs on a thread that the end of the program does not wait for. A directory that is left keeps its lock file, and the
//! next crawl removes it ([`WorkDir::sweep`]).

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use crucible_host::WorkDir;
use crucible_model::{ExitStatus, Failure};

use crate::context::CrawlHost;

/// How long the removal may take after the user interrupted the command.
const GRACE: Duration = Duration::from_secs(3);

/// The message about an interrupted command that leaves no files.
const REMOVED: &str = "Fetched files were removed.";

/// Removes what killed crawls left in a directory.
///
/// # Errors
///
/// Fails if the user interrupts it.
pub(crate) fn sweep(
    host: &impl CrawlHost,
    parent: PathBuf,
    prefix: &'static str,
) -> Result<(), Failure> {
    let done = on_thread(move || {
        let _removed = WorkDir::sweep(&parent, prefix);
    });
    host.drive(async {
        done.await;
        Ok(())
    })
    .map_err(|error| {
        error.hint("Files of an earlier crawl were not completely removed; the next crawl removes the rest.")
    })
}

/// Removes fetched files after a command that ended with `worked`. If the user interrupts it, or has interrupted the command and
/// it takes long, the rest stays and the result says so.
pub(crate) fn remove_fetched(
    host: &impl CrawlHost,
    fetched: WorkDir,
    worked: Result<ExitStatus, Failure>,
) -> Result<ExitStatus, Failure> {
    let path = fetched.path().to_owned();
    let remove = move || drop(fetched);
    let drive = |done: Pin<Box<dyn Future<Output = ()>>>| {
        host.drive(async {
            done.await;
            Ok(())
        })
    };
    finish(&path, remove, drive, worked)
}

fn finish(
    path: &Path,
    remove: impl FnOnce() + Send + 'static,
    drive: impl FnOnce(Pin<Box<dyn Future<Output = ()>>>) -> Result<(), Failure>,
    worked: Result<ExitStatus, Failure>,
) -> Result<ExitStatus, Failure> {
    let is_interrupted = matches!(&worked, Err(error) if error.status == ExitStatus::Interrupted);
    let done = on_thread(remove);
    let ended = drive(Box::pin(async move {
        if is_interrupted {
            let _is_late = tokio::time::timeout(GRACE, done).await;
        } else {
            done.await;
        }
    }));
    match (worked, ended, describe_residue(path)) {
        (Ok(_), Err(error), left) => {
            let left = left.unwrap_or_else(|| REMOVED.to_owned());
            Err(error.hint(format!("The result is complete. {left}")))
        }
        (Err(error), _, Some(left)) => Err(error.hint(left)),
        (Err(error), _, None) if is_interrupted => Err(error.hint(REMOVED)),
        (worked, _, _) => worked,
    }
}

/// Returns what to say of files that stayed.
fn describe_residue(path: &Path) -> Option<String> {
    let is_left = path.symlink_metadata().is_ok();
    is_left.then(|| {
        format!(
            "Fetched files stay in {}; the next crawl removes them.",
            path.display()
        )
    })
}

/// Runs `work` on a thread of its own, and returns a future that ends with it. The thread does not keep the program from ending.
fn on_thread(work: impl FnOnce() + Send + 'static) -> impl Future<Output = ()> {
    let (done, is_done) = tokio::sync::oneshot::channel::<()>();
    let work = move || {
        work();
        drop(done);
    };
    // Without a thread it is left to the next crawl, as after a kill.
    let _begun = std::thread::Builder::new()
        .name("remove_fetched".to_owned())
        .spawn(work);
    async move {
        let _dropped = is_done.await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn interrupted() -> Failure {
        Failure::new(ExitStatus::Interrupted, "interrupted")
    }

    #[test]
    fn interrupted_removal_ends_and_names_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (release, blocked) = channel::<()>();
        // The user interrupts before the removal ends.
        let drive = |_done: Pin<Box<dyn Future<Output = ()>>>| Err(interrupted());
        let remove = move || {
            let _released = blocked.recv();
        };
        let ended = finish(dir.path(), remove, drive, Ok(ExitStatus::Success)).unwrap_err();
        drop(release);
        assert_eq!(ended.status, ExitStatus::Interrupted);
        let hints = ended.hints.join(" ");
        let name = dir.path().display().to_string();
        assert!(hints.contains("The result is complete"), "{hints}");
        assert!(
            hints.contains(&name) && hints.contains("the next crawl removes"),
            "{hints}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn interrupted_command_does_not_wait_for_removal() {
        let dir = tempfile::tempdir().unwrap();
        let (release, blocked) = channel::<()>();
        let remove = move || {
            let _released = blocked.recv();
        };
        let done = on_thread(remove);
        // With a paused clock this returns at once.
        assert!(tokio::time::timeout(GRACE, done).await.is_err());
        drop(release);
        let drive = |_done: Pin<Box<dyn Future<Output = ()>>>| Ok(());
        let ended = finish(dir.path(), || (), drive, Err(interrupted())).unwrap_err();
        assert!(
            ended.hints.concat().contains("Fetched files stay in"),
            "{ended:?}"
        );
    }

    #[test]
    fn finished_removal_keeps_the_result() {
        let parent = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        for worked in [Ok(ExitStatus::Success), Err(interrupted())] {
            let work = WorkDir::create(parent.path(), "crucible-test-", "1").unwrap();
            let path = work.path().to_owned();
            let is_ok = worked.is_ok();
            let drive = |done: Pin<Box<dyn Future<Output = ()>>>| {
                runtime.block_on(done);
                Ok(())
            };
            let ended = finish(&path, move || drop(work), drive, worked);
            assert!(!path.exists());
            match ended {
                Ok(status) => assert!(is_ok && status == ExitStatus::Success),
                Err(error) => assert_eq!((is_ok, &*error.hints.concat()), (false, REMOVED)),
            }
        }
    }
}
