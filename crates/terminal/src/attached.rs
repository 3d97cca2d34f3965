//! Runs a program on the user's terminal, through a terminal of its own.
//!
//! The user's terminal is put into raw mode, and each key is passed on; the program's own terminal makes Ctrl-C and the like of
//! them. What always holds: the user's terminal gets its settings back, also where the work is interrupted; a change of its size
//! is passed on.

use std::io::{self, IsTerminal};
use std::time::Duration;

use crucible_model::Failure;
use crucible_sandbox::{Completed, Sandbox, Spawn, Stdin, TerminalMaster, TerminalSize};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::streams::{InputStream, OutputStream};

/// Bytes that are passed on at once.
const CHUNK: usize = 16 << 10;
/// How long what a program printed is waited for once it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The size of a terminal that does not tell it.
const USUAL: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};

/// Whether the user sits at a terminal: standard input and output are one.
#[must_use]
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Runs a program whose standard input, output and error are a terminal that shows on the user's.
///
/// # Errors
///
/// Fails as [`Sandbox::run`] does, or if the user's terminal cannot be used.
pub async fn run_attached(sandbox: &Sandbox, spawn: Spawn) -> Result<Completed, Failure> {
    let failed =
        |error: io::Error| Failure::refused(format!("the terminal cannot be used: {error}"));
    let (master, end) = TerminalMaster::open(size())?;
    let mut resized = signal(SignalKind::window_change()).map_err(failed)?;
    let _raw = RawMode::enter().map_err(failed)?;
    let (mut input, mut output) = (InputStream::open(), OutputStream::open());
    let mut printed = vec![0; CHUNK];
    let mut typed = vec![0; CHUNK];
    let shows = async {
        while let Ok(length @ 1..) = master.read(&mut printed).await {
            let part = printed.get(..length).unwrap_or_default();
            if output.write_all(part).await.is_err() || output.flush().await.is_err() {
                break;
            }
        }
    };
    let types = async {
        while let Ok(length @ 1..) = input.read(&mut typed).await {
            let part = typed.get(..length).unwrap_or_default();
            if master.write_all(part).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    let resizes = async {
        while resized.recv().await.is_some() {
            // One that fails is one of a terminal that is gone.
            let _gone = master.resize(size());
        }
        std::future::pending::<()>().await;
    };
    let mut shows = std::pin::pin!(shows);
    let runs = sandbox.run(Spawn {
        stdin: Stdin::Terminal(end),
        ..spawn
    });
    let mut is_shown = false;
    let mut runs = std::pin::pin!(runs);
    let (mut types, mut resizes) = (std::pin::pin!(types), std::pin::pin!(resizes));
    let completed = loop {
        tokio::select! {
            completed = &mut runs => break completed,
            () = &mut shows, if !is_shown => is_shown = true,
            () = &mut types => {}
            () = &mut resizes => {}
        }
    };
    if !is_shown {
        let _still_open_elsewhere = timeout(LAST_WORDS, shows).await;
    }
    Ok(completed?)
}

fn size() -> TerminalSize {
    tcgetwinsize(rustix::stdio::stdin()).map_or(USUAL, |size| TerminalSize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// The user's terminal passes each key on, until dropped.
struct RawMode(Termios);

impl RawMode {
    fn enter() -> io::Result<Self> {
        let saved = tcgetattr(rustix::stdio::stdin())?;
        let mut raw = saved.clone();
        raw.make_raw();
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self(saved))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs none.
        let _gone = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &self.0);
    }
}
