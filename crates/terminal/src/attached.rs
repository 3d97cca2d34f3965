//! Runs a program on the user's terminal, through a terminal of its own.
//!
//! The user's terminal is put into raw mode, and each key is passed on; the program's own terminal makes Ctrl-C and the like of
//! them. What always holds: the user's terminal gets its settings back ([`crate::raw_mode`]); a change of its size is passed on.

use std::io::{self, IsTerminal};
use std::time::Duration;

use crucible_model::Failure;
use crucible_sandbox::{Completed, Sandbox, Spawn, Stdin, TerminalMaster, TerminalSize};
use rustix::process::{Signal as Number, getpgrp, getpid, kill_process};
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::event_loop::interrupted;
use crate::raw_mode::{self, RawMode};
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

/// What the program's user can give a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserInput {
    /// Keys: standard input and output are a terminal.
    Terminal,
    /// A stream: standard input is a file or a pipe, or the output is not shown on the terminal.
    Stream,
    /// Nothing: a shell runs this program in the background of its terminal, where reading would stop it.
    None,
}

/// Returns what the user can give a command.
#[must_use]
pub fn user_input() -> UserInput {
    if !io::stdin().is_terminal() {
        return UserInput::Stream;
    }
    // A terminal that controls another session, or none, has no background here.
    match tcgetpgrp(rustix::stdio::stdin()) {
        Ok(foreground) if foreground != getpgrp() => UserInput::None,
        _ if io::stdout().is_terminal() => UserInput::Terminal,
        _ => UserInput::Stream,
    }
}

/// Runs a program whose standard input, output and error are a terminal that shows on the user's.
///
/// # Errors
///
/// Fails as [`Sandbox::run`] does, if the user's terminal cannot be used, or if a signal asks this program to end.
pub async fn run_attached(sandbox: &Sandbox, spawn: Spawn) -> Result<Completed, Failure> {
    let failed = |error: io::Error| Failure::refused(format!("cannot use the terminal: {error}"));
    let (master, end) = TerminalMaster::open(size())?;
    let mut resized = signal(SignalKind::window_change()).map_err(failed)?;
    let mut ending = Ending::new().map_err(failed)?;
    let mut stopping = signal(kind(Number::TSTP)).map_err(failed)?;
    let mut continued = signal(kind(Number::CONT)).map_err(failed)?;
    let raw = RawMode::enter().map_err(failed)?;
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
    let stops = async {
        loop {
            tokio::select! {
                _ = stopping.recv() => {
                    raw_mode::restore();
                    // As the signal would have done.
                    let _no_process = kill_process(getpid(), Number::STOP);
                }
                _ = continued.recv() => {}
            }
            let _gone = raw.enter_again();
        }
    };
    let mut shows = std::pin::pin!(shows);
    let runs = sandbox.run(Spawn {
        stdin: Stdin::Terminal(end),
        ..spawn
    });
    let mut is_shown = false;
    let mut runs = std::pin::pin!(runs);
    let (mut types, mut resizes) = (std::pin::pin!(types), std::pin::pin!(resizes));
    let mut stops = std::pin::pin!(stops);
    let completed = loop {
        tokio::select! {
            completed = &mut runs => break completed,
            () = ending.wait_for_signal() => return Err(interrupted()),
            () = &mut stops => {}
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

/// Listens for signals that end a program and that the event loop leaves as they are.
struct Ending([Signal; 4]);

impl Ending {
    fn new() -> io::Result<Self> {
        let listens = |number| signal(kind(number));
        Ok(Self([
            listens(Number::QUIT)?,
            listens(Number::ALARM)?,
            listens(Number::USR1)?,
            listens(Number::USR2)?,
        ]))
    }

    /// Comes back when one of them is heard.
    async fn wait_for_signal(&mut self) {
        let [quit, alarm, first, second] = &mut self.0;
        tokio::select! {
            _ = quit.recv() => {}
            _ = alarm.recv() => {}
            _ = first.recv() => {}
            _ = second.recv() => {}
        }
    }
}

fn kind(number: Number) -> SignalKind {
    SignalKind::from_raw(number.as_raw())
}
