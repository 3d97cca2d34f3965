//! Raw mode of the user's terminal, in which each key is passed on at once.
//!
//! What always holds: the terminal gets its settings back on each way out that the program can take part in. A guard restores
//! them when it is dropped. A hook does where the program panics, since a panic aborts it, and so does `blocked_write`. Only a
//! signal that no program can handle leaves the terminal raw.

use std::io;
use std::sync::{Mutex, Once, PoisonError};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The settings that the terminal gets back.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);

/// Keeps the terminal at standard input in raw mode until dropped.
pub(crate) struct RawMode(());

impl RawMode {
    /// Saves the terminal's settings and enters raw mode.
    pub(crate) fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let earlier = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore();
                earlier(info);
            }));
        });
        let settings = tcgetattr(rustix::stdio::stdin())?;
        *SAVED.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings.clone());
        let guard = Self(());
        set_raw(settings)?;
        Ok(guard)
    }

    /// Enters raw mode again after the program was stopped; the shell may have changed the settings meanwhile.
    pub(crate) fn enter_again(&self) -> io::Result<()> {
        set_raw(tcgetattr(rustix::stdio::stdin())?)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
        *SAVED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn set_raw(mut settings: Termios) -> io::Result<()> {
    settings.make_raw();
    tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &settings)?;
    Ok(())
}

/// Gives the terminal its settings back, if it is in raw mode. Never waits: neither for a terminal that is stopped, nor for
/// another thread.
pub(crate) fn restore() {
    let saved = match SAVED.try_lock() {
        Ok(saved) => saved,
        Err(std::sync::TryLockError::Poisoned(saved)) => saved.into_inner(),
        Err(std::sync::TryLockError::WouldBlock) => return,
    };
    if let Some(settings) = &*saved {
        // A terminal that is gone needs none.
        let _gone = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, settings);
    }
}
