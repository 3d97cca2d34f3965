//! A real terminal for the program: a pseudo terminal whose other end a test reads and types on.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use nix::pty::{Winsize, openpty};

use super::support::wait_for;
use crate::support::Call;

/// A program on a terminal.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    path: PathBuf,
    screen: Arc<Mutex<String>>,
    reader: std::thread::JoinHandle<()>,
    /// How much of the screen was read.
    seen: usize,
}

impl Terminal {
    /// Starts the program with all its streams on a terminal.
    pub(crate) fn start(call: Call) -> Self {
        let pair = openpty(
            Some(&Winsize {
                ws_row: 40,
                ws_col: 200,
                ws_xpixel: 0,
                ws_ypixel: 0,
            }),
            None,
        )
        .unwrap();
        let end = || Stdio::from(pair.slave.try_clone().unwrap());
        let mut command = call.command();
        let child = command
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        drop(command);
        let path = nix::unistd::ttyname(&pair.slave).unwrap();
        drop(pair.slave);
        let keyboard = File::from(pair.master);
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut reader, shown) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The last program that leaves a terminal makes reading from it fail.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                shown
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self {
            child,
            keyboard,
            path,
            screen,
            reader,
            seen: 0,
        }
    }

    /// Waits until `text` is on the screen, after what was waited for before.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        let (screen, seen) = (Arc::clone(&self.screen), self.seen);
        let mut found = None;
        let begun = std::time::Instant::now();
        while found.is_none() {
            let content = screen.lock().unwrap().clone();
            found = content[seen..].find(text).map(|at| seen + at + text.len());
            assert!(
                begun.elapsed() < super::support::TIMEOUT,
                "{text:?} is not shown:\n{content}"
            );
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        self.seen = found.unwrap_or(seen);
    }

    /// Types a line.
    pub(crate) fn types(&mut self, line: impl AsRef<[u8]>) {
        self.keyboard
            .write_all(&[line.as_ref(), b"\n"].concat())
            .unwrap();
    }

    /// Types these keys.
    pub(crate) fn keys(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
    }

    /// Changes the size, and tells the program as the kernel tells the foreground.
    pub(crate) fn resizes(&self, rows: u16, columns: u16) {
        let size = rustix::termios::Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&self.keyboard, size).unwrap();
        self.signals(nix::sys::signal::Signal::SIGWINCH);
    }

    /// Sends the program a signal.
    pub(crate) fn signals(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.id()).unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// The settings of the terminal, and one more hold on it.
    pub(crate) fn settings(&self) -> (nix::sys::termios::Termios, File) {
        let hold = self.keyboard.try_clone().unwrap();
        (nix::sys::termios::tcgetattr(&hold).unwrap(), hold)
    }

    /// The end of the terminal that the program has.
    pub(crate) fn users_end(&self) -> File {
        let mut options = File::options();
        let options = options.read(true).write(true);
        options
            .custom_flags(libc::O_NOCTTY)
            .open(&self.path)
            .unwrap()
    }

    /// Types the end of the input at the beginning of a line.
    pub(crate) fn ends_input(&mut self) {
        self.keyboard.write_all(&[4]).unwrap();
    }

    /// The process, to send it signals.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the program, and tells its code and all that was on the screen.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let mut status = None;
        wait_for("the program to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        // What was printed last may still be on its way to the screen.
        wait_for("the screen to be read to its end", || {
            self.reader.is_finished()
        });
        let screen = self.screen.lock().unwrap().clone();
        (status.and_then(|status| status.code()), screen)
    }
}
