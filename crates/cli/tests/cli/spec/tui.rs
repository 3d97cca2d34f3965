//! `crucible tui` and `crucible project tui` in a real terminal: tmux draws it, types on it, changes its size, and shows what is left afterwards.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crucible_spec::PhaseId;

use super::written::WrittenSpec;
use crate::support::{Fixture, answering, good_answer, id_of, small};

const HOUR: Duration = Duration::from_secs(3_600);

/// How long anything may take before a test calls it a failure.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What the shell in the terminal says when it waits for a line.
const PROMPT: &str = "ready>";

/// A terminal with a shell in it, of its own server.
struct Tmux {
    socket: tempfile::TempDir,
}

impl Tmux {
    /// A shell in this directory, on a terminal of this size.
    fn start(fixture: &Fixture, current_dir: &Path, width: u16, height: u16) -> Self {
        // The path of a socket has to be short.
        let tmux = Self {
            socket: tempfile::Builder::new()
                .prefix("t")
                .tempdir_in("/tmp")
                .unwrap(),
        };
        let (width, height) = (width.to_string(), height.to_string());
        let call = fixture.call(["project", "tui"]).command();
        let mut start = tmux.command(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
        ]);
        start.args(["sh", "-i"]).current_dir(current_dir);
        start.env_clear().envs(
            call.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        start
            .env("PS1", format!("{PROMPT} "))
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8");
        start.env("PROGRAM", call.get_program());
        let started = start.output().unwrap();
        assert!(
            started.status.success(),
            "{}",
            String::from_utf8_lossy(&started.stderr)
        );
        tmux.shows(PROMPT);
        tmux
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .arg("-u")
            .arg("-S")
            .arg(self.socket.path().join("s"))
            .args(args);
        command
    }

    fn run(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is on the screen.
    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Waits until the screen is as wanted, and gives it.
    #[track_caller]
    fn waits_for(&self, what: &str, expected: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if expected(&screen) {
                return screen;
            }
            assert!(
                begun.elapsed() < TIMEOUT,
                "waited in vain for {what}:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn shows(&self, text: &str) -> String {
        self.waits_for(text, |screen| screen.contains(text))
    }

    /// Presses keys, by tmux's names of them.
    fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Types a line into the shell.
    fn types(&self, line: &str) {
        self.run(&["send-keys", "-l", line]);
        self.press(&["Enter"]);
    }

    /// Starts the TUI, and waits until it is there.
    #[track_caller]
    fn starts_the_tui(&self) {
        self.starts("project tui");
    }

    /// Starts this command, and waits until its view is there.
    #[track_caller]
    fn starts(&self, command: &str) {
        self.types(&format!("\"$PROGRAM\" {command}; echo ended with $?"));
        self.shows("q leave");
    }

    fn resize(&self, width: u16, height: u16) {
        self.run(&[
            "resize-window",
            "-x",
            &width.to_string(),
            "-y",
            &height.to_string(),
        ]);
    }

    /// The process of the TUI: the one that the shell has started.
    fn program(&self) -> String {
        let shell = self.run(&["display-message", "-p", "#{pane_pid}"]);
        let shell = shell.trim();
        let children =
            std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        children.split_whitespace().next().unwrap().to_owned()
    }

    /// The TUI ended with this code, its screen is gone, and the terminal takes lines and shows them as before.
    #[track_caller]
    fn is_usable_after(&self, code: u8) {
        let screen = self.shows(&format!("ended with {code}"));
        assert!(
            screen.contains(PROMPT) && !screen.contains("q leave"),
            "{screen}"
        );
        self.types("stty -a | tr ';' '\\n' | grep -Ewo -e '-?(icanon|echo|isig|opost)' | tr '\\n' '.'; echo usa''ble");
        let screen = self.shows("usable");
        let modes = screen
            .lines()
            .find(|line| line.ends_with("usable"))
            .unwrap();
        for mode in ["icanon", "echo", "isig", "opost"] {
            assert!(
                modes.contains(mode) && !modes.contains(&format!("-{mode}")),
                "{mode}: {screen}"
            );
        }
        assert_eq!(
            self.run(&["display-message", "-p", "#{cursor_flag} #{alternate_on}"])
                .trim(),
            "1 0"
        );
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _it_may_have_ended = self.command(&["kill-server"]).output();
    }
}

/// A project with three specs.
fn project(fixture: &Fixture) -> std::path::PathBuf {
    let root = fixture.path("project");
    let mut first = WrittenSpec::named(root.clone(), "export-data");
    first.success(PhaseId::Requirements, 3 * HOUR);
    first.failure(PhaseId::Design, 2 * HOUR);
    let mut second = WrittenSpec::named(root.clone(), "login");
    second.success_with(PhaseId::Requirements, HOUR, |value| {
        value["phases"][0]["llm"]["model_used"] = "\u{1b}[2J\u{1b}]0;owned\u{7}evil".into();
    });
    let file = "version: \"1\"\nname: demo\nspecs:\n- id: export-data\n  tags: [backend]\n- id: login\n  tags: [\"front\\e[31mend\"]\n- id: later\n";
    std::fs::write(root.join("workspace.yaml"), file).unwrap();
    root
}

#[test]
fn keys_do_what_the_help_says() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    let tmux = Tmux::start(&fixture, &root, 80, 24);
    tmux.starts_the_tui();
    let screen = tmux.shows("demo: 3 specs, 1 failed, 1 not started");
    for part in [
        "> failed      export-data #backend",
        "design: failed, 2h ago",
        "error: provider: the model",
        "next: crucible",
    ] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    tmux.press(&["j"]);
    let screen = tmux.shows("> in progress login");
    assert!(screen.contains("\\u{1b}[2J\\u{1b}]0;owned"), "{screen}");
    tmux.press(&["Enter"]);
    let screen = tmux.shows("Esc back");
    assert!(
        screen.contains("requirements: done, 1h ago") && screen.contains("final: not run"),
        "{screen}"
    );
    tmux.press(&["Escape"]);
    tmux.shows("> in progress login");
    tmux.press(&["End"]);
    tmux.shows("> not started later");
    tmux.press(&["/"]);
    tmux.press(&["b", "a", "c", "k"]);
    let screen = tmux.waits_for("one spec", |screen| {
        screen.contains("/back_") && !screen.contains("later")
    });
    assert!(screen.contains("> failed      export-data"), "{screen}");
    tmux.press(&["Enter"]);
    tmux.shows("filter: back");
    // What has changed is there when it is read again, and what cannot be read is told.
    let file = root.join("workspace.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, "version: \"9\"\nname: x\n").unwrap();
    tmux.press(&["r"]);
    tmux.shows("reload failed");
    std::fs::write(&file, format!("{text}- id: back-again\n")).unwrap();
    tmux.press(&["r"]);
    tmux.shows("not started back-again");
    tmux.press(&["q"]);
    tmux.is_usable_after(0);
}

#[test]
fn runs_and_specs_are_one_key_apart() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let root = project(&fixture);
    let tmux = Tmux::start(&fixture, &root, 80, 24);
    tmux.starts("tui");
    let list = fixture.run(["run", "list", "--json"]).ok().json();
    let tokens = format!("{} tokens", list["runs"][0]["tokens"]);
    let screen = tmux.shows("> verified");
    for part in ["1 run", &id, "make area in src/area.py", &tokens] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    // No word is cut: each line beside the list ends between two words.
    assert!(screen.contains("multiply"), "{screen}");
    tmux.press(&["Enter"]);
    let screen = tmux.shows("plan: approved");
    assert!(screen.contains(&tokens), "{screen}");
    tmux.press(&["End"]);
    let screen = tmux.shows(&format!("crucible report {id}"));
    for part in ["attempt 1: Verified", "gate tests: passed", "call 1: "] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    tmux.press(&["Escape"]);
    tmux.shows("Tab specs");
    tmux.press(&["Tab"]);
    tmux.shows("demo: 3 specs, 1 failed, 1 not started");
    tmux.press(&["Tab"]);
    tmux.shows("> verified");
    tmux.press(&["q"]);
    tmux.is_usable_after(0);
}

#[test]
fn resize_is_handled_and_interrupt_restores_terminal() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    let tmux = Tmux::start(&fixture, &root, 80, 24);
    tmux.starts_the_tui();
    tmux.shows("│");
    tmux.resize(40, 10);
    tmux.waits_for("the list alone", |screen| {
        screen.contains("> failed") && !screen.contains('│')
    });
    tmux.resize(12, 3);
    tmux.waits_for("what fits", |screen| {
        screen.contains("> failed") && screen.lines().count() <= 3
    });
    tmux.resize(2, 1);
    tmux.press(&["Down"]);
    tmux.resize(100, 30);
    // It is painted in parts, and a look can fall between them.
    tmux.waits_for("both again, and the keys at the foot", |screen| {
        let foot = screen
            .lines()
            .nth(29)
            .is_some_and(|line| line.contains("q leave"));
        foot && screen.contains('│') && screen.contains("> in progress login")
    });
    tmux.press(&["C-c"]);
    let screen = tmux.shows("ended with 130");
    assert!(screen.contains("error: interrupted"), "{screen}");
    tmux.is_usable_after(130);
}

#[test]
fn a_signal_puts_the_terminal_back() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    let tmux = Tmux::start(&fixture, &root, 80, 24);
    for signal in ["TERM", "INT", "QUIT"] {
        tmux.starts_the_tui();
        tmux.press(&["Enter"]);
        tmux.shows("Esc back");
        let sent = Command::new("kill")
            .args(["-s", signal, &tmux.program()])
            .status()
            .unwrap();
        assert!(sent.success());
        tmux.is_usable_after(130);
        tmux.types("clear");
        tmux.waits_for("an empty screen", |screen| !screen.contains("usable"));
    }
}

#[test]
fn stopped_tui_returns_terminal_and_resumes() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    let tmux = Tmux::start(&fixture, &root, 80, 24);
    tmux.types("set -m");
    tmux.starts_the_tui();
    tmux.press(&["j"]);
    tmux.shows("> in progress login");
    for stop_method in ["key", "TSTP"] {
        match stop_method {
            "key" => tmux.press(&["C-z"]),
            signal => {
                let sent = Command::new("kill")
                    .args(["-s", signal, &tmux.program()])
                    .status()
                    .unwrap();
                assert!(sent.success());
            }
        }
        tmux.waits_for("the shell", |screen| {
            screen.contains("topped") && !screen.contains("q leave")
        });
        tmux.types("stty -a | tr ';' '\\n' | grep -Ewo -e '-?(icanon|echo|isig|opost)' | tr '\\n' '.'; echo us''able");
        let screen = tmux.shows("usable");
        let modes = screen
            .lines()
            .rfind(|line| line.ends_with("usable"))
            .unwrap();
        assert!(
            modes.contains("icanon") && !modes.contains('-'),
            "{stop_method}: {screen}"
        );
        assert_eq!(
            tmux.run(&["display-message", "-p", "#{cursor_flag} #{alternate_on}"])
                .trim(),
            "1 0",
            "{stop_method}"
        );
        tmux.types("clear; fg");
        tmux.shows("> in progress login");
        tmux.waits_for("the screen", |screen| screen.contains("q leave"));
    }
    // Who stops it without a word gives it back a terminal that others have used.
    let sent = Command::new("kill")
        .args(["-s", "STOP", &tmux.program()])
        .status()
        .unwrap();
    assert!(sent.success());
    tmux.shows("topped");
    // The shell has a raw terminal now, where Enter ends no line.
    tmux.run(&["send-keys", "-l", "fg"]);
    tmux.press(&["C-j"]);
    tmux.waits_for("the screen alone", |screen| {
        screen.contains("q leave") && !screen.contains("topped")
    });
    tmux.press(&["k"]);
    tmux.shows("> failed      export-data");
    tmux.press(&["q"]);
    tmux.waits_for("the end", |screen| !screen.contains("q leave"));
    assert_eq!(
        tmux.run(&["display-message", "-p", "#{cursor_flag} #{alternate_on}"])
            .trim(),
        "1 0"
    );
}

#[test]
fn the_program_ends_with_its_terminal() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    let tmux = Tmux::start(&fixture, &root, 80, 24);
    tmux.starts_the_tui();
    let program = tmux.program();
    tmux.run(&["kill-server"]);
    let begun = Instant::now();
    let command = format!("/proc/{program}/cmdline");
    while std::fs::read(&command).is_ok_and(|line| line.ends_with(b"project\0tui\0")) {
        assert!(begun.elapsed() < TIMEOUT, "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn tui_without_terminal_names_the_alternative() {
    let fixture = Fixture::new();
    let root = project(&fixture);
    let ran = fixture
        .call(["project", "tui"])
        .env("TERM", "xterm")
        .current_dir(&root)
        .run()
        .exits(2);
    assert!(
        ran.stdout.is_empty() && ran.stderr.contains("crucible project status"),
        "{}",
        ran.stderr
    );
    let ran = fixture
        .call(["project", "tui", "--json"])
        .env("TERM", "xterm")
        .current_dir(&root)
        .run()
        .exits(2);
    assert!(ran.message().contains("terminal"));
    // Nor on one that cannot move its cursor.
    let tmux = Tmux::start(&fixture, &root, 80, 24);
    tmux.types("TERM=dumb \"$PROGRAM\" project tui; echo ended with $?");
    let screen = tmux.shows("ended with 2");
    assert!(screen.contains("crucible project status"), "{screen}");
}
