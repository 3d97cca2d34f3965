//! `crucible sandbox exec` passes standard input and a terminal, and nothing of the user's own terminal.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::termios::{FlowArg, LocalFlags, Termios, tcflow, tcgetattr};

use crate::crawl::support::wait_for;
use crate::crawl::terminal::Terminal;
use crate::support::Fixture;

/// A command in the sandbox, on a terminal.
fn on_terminal(fixture: &Fixture, script: &str) -> Terminal {
    let current_dir = fixture.path("here");
    std::fs::create_dir_all(&current_dir).unwrap();
    let call = fixture.call(["sandbox", "exec", "--", "bash", "-c", script]);
    Terminal::start(call.current_dir(current_dir).env("TERM", "xterm"))
}

/// Runs a command with this input, which then stays open or ends.
fn with_input(script: &str, input: &[u8], ends: bool) -> (i32, String) {
    let fixture = Fixture::new();
    let current_dir = fixture.path("here");
    std::fs::create_dir_all(&current_dir).unwrap();
    let call = fixture.call(["sandbox", "exec", "--", "sh", "-c", script]);
    let mut command = call.current_dir(current_dir).command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let written = pipe.write_all(input);
    let held = (!ends).then_some(pipe);
    let output = child.wait_with_output().unwrap();
    drop(held);
    // A command that stops reading early breaks the pipe.
    let _early = written;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap(), text)
}

#[test]
fn standard_input_reaches_the_command() {
    assert_eq!(
        with_input("cat", b"one\ntwo", true),
        (0, "one\ntwo".to_owned())
    );
    let large = vec![b'x'; 3 << 20];
    assert_eq!(
        with_input("wc -c", &large, true).1.trim(),
        large.len().to_string()
    );
    assert_eq!(
        with_input("cat; echo end", b"", true),
        (0, "end\n".to_owned())
    );
}

#[test]
fn input_without_end_does_not_hold_the_command() {
    let begun = Instant::now();
    assert_eq!(
        with_input("read line; echo \"$line\"", b"first\nsecond\n", false),
        (0, "first\n".to_owned())
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// A loop reads on where the command left the input alone.
#[test]
fn redirected_command_leaves_the_list_to_the_loop() {
    let fixture = Fixture::new();
    let current_dir = fixture.path("here");
    std::fs::create_dir_all(&current_dir).unwrap();
    let program = env!("CARGO_BIN_EXE_crucible");
    for (redirected, expected) in [("< /dev/null", "one\ntwo\n"), ("", "one\n")] {
        let script = format!(
            "printf 'one\\ntwo\\n' | while read -r file; do {program} sandbox exec -- sh -c 'cat > /dev/null; echo '$file {redirected}; done"
        );
        let mut shell = std::process::Command::new("sh");
        let environment = fixture.call([""; 0]).command();
        for (name, value) in environment.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        let output = shell
            .args(["-c", &script])
            .current_dir(&current_dir)
            .output();
        let output = output.unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            expected,
            "{output:?}"
        );
    }
}

#[test]
fn command_has_a_terminal_of_its_own() {
    let fixture = Fixture::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && stty size && echo ready && read line && echo \"got $line\"";
    let mut terminal = on_terminal(&fixture, script);
    terminal.shows("40 200");
    terminal.shows("ready");
    terminal.keys(b"words\r");
    terminal.shows("got words");
    assert_eq!(terminal.ends().0, Some(0));
}

#[test]
fn ctrl_c_goes_to_the_command_alone() {
    let fixture = Fixture::new();
    let script = "trap 'echo caught' INT; echo ready; sleep 30 & wait $!; trap - INT; echo on; read line; exit 7";
    let mut terminal = on_terminal(&fixture, script);
    terminal.shows("ready");
    terminal.keys(b"\x03");
    terminal.shows("caught");
    terminal.shows("on");
    terminal.keys(b"\r");
    terminal.shows("exit code 7");
    assert_eq!(terminal.ends().0, Some(1));
}

#[test]
fn job_control_and_size_work() {
    let fixture = Fixture::new();
    let script = "trap 'stty size' WINCH; set -m; sleep 30 & jobs; kill %1; wait; echo ready; \
                  while ! read -t 1 line; do :; done; echo end";
    let mut terminal = on_terminal(&fixture, script);
    terminal.shows("Running");
    terminal.shows("ready");
    terminal.resizes(50, 120);
    terminal.shows("50 120");
    terminal.keys(b"\r");
    terminal.shows("end");
    let (code, screen) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("no job control"), "{screen}");
}

/// Whether the terminal shows what is typed and reads lines, as before a program took it.
fn is_usual(settings: &Termios) -> bool {
    let usual = LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG;
    settings.local_flags.contains(usual)
}

#[test]
fn users_terminal_gets_its_settings_back() {
    let signals = [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGALRM,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
    ];
    for signal in [None].into_iter().chain(signals.map(Some)) {
        let fixture = Fixture::new();
        let mut terminal = on_terminal(&fixture, "echo ready; read line");
        terminal.shows("ready");
        let (during, hold) = terminal.settings();
        assert!(!is_usual(&during), "it is raw");
        match signal {
            None => terminal.keys(b"\r"),
            Some(signal) => terminal.signals(signal),
        }
        let (code, screen) = terminal.ends();
        assert_eq!(code, Some(signal.map_or(0, |_| 130)), "{screen}");
        assert!(is_usual(&tcgetattr(&hold).unwrap()), "{signal:?}");
    }
}

/// Writes to a stopped terminal do not return, so the program cannot end in its usual way.
#[test]
fn stopped_terminal_gets_its_settings_back() {
    let fixture = Fixture::new();
    let mut terminal = on_terminal(&fixture, "echo ready; read line; yes");
    terminal.shows("ready");
    let (_, hold) = terminal.settings();
    let users_end = terminal.users_end();
    tcflow(&users_end, FlowArg::TCOOFF).unwrap();
    terminal.keys(b"\r");
    // Longer than the program takes to fill what the terminal holds, and to see that a write stands still.
    std::thread::sleep(Duration::from_secs(2));
    terminal.signals(Signal::SIGTERM);
    drop(users_end);
    let (code, _) = terminal.ends();
    assert_eq!(code, Some(130));
    assert!(is_usual(&tcgetattr(&hold).unwrap()));
}

#[test]
fn stopped_program_gives_the_terminal_back_meanwhile() {
    let fixture = Fixture::new();
    let mut terminal = on_terminal(&fixture, "echo ready; read line; echo \"got $line\"");
    terminal.shows("ready");
    terminal.signals(Signal::SIGTSTP);
    let state = format!("/proc/{}/status", terminal.id());
    wait_for("the program to stop", || {
        let status = std::fs::read_to_string(&state).unwrap();
        status.contains("State:\tT")
    });
    assert!(is_usual(&terminal.settings().0));
    terminal.signals(Signal::SIGCONT);
    wait_for("the terminal to be raw", || {
        !is_usual(&terminal.settings().0)
    });
    terminal.keys(b"words\r");
    terminal.shows("got words");
    assert_eq!(terminal.ends().0, Some(0));
}

/// A program that types into its terminal would type into the user's shell, were it the same.
#[test]
fn confined_program_cannot_type_into_users_terminal() {
    let fixture = Fixture::new();
    let script = "python3 - <<'PY'\nimport fcntl, glob, os, termios\nfor fd in (0, 1, 2):\n    for letter in b'evil\\n':\n        try:\n            \
                  fcntl.ioctl(fd, termios.TIOCSTI, bytes([letter]))\n            print('typed')\n        except OSError as error:\n            pass\n\
                  for path in glob.glob('/dev/pts/*') + ['/dev/console']:\n    try:\n        os.open(path, os.O_RDWR | os.O_NOCTTY)\n        \
                  print('opened', path)\n    except OSError:\n        pass\nprint('done')\nPY";
    let mut terminal = on_terminal(&fixture, script);
    terminal.shows("done");
    let (code, screen) = terminal.ends();
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        !screen.contains("typed") && !screen.contains("evil"),
        "{screen}"
    );
}
