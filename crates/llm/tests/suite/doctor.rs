//! The doctor's checks of providers: its report, and the actions it takes.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_host::http::HttpClient;
use crucible_llm::doctor::{
    Configured, Diagnosis, KeyState, NeededBy, ProgramState, Reach, Readiness, examine, verdict,
};
use crucible_llm::{CassetteSource, Context, Login, ProviderSettings, registry};
use crucible_model::Level;
use crucible_sandbox::{Sandbox, Strength};
use proptest::prelude::*;

/// A plausible key, which must not appear anywhere.
const KEY: &str = "a-key-that-nobody-may-see-0123456789";

/// A machine with fake programs that record how they are called.
struct Machine {
    directory: tempfile::TempDir,
    variables: BTreeMap<String, String>,
    runtime: tokio::runtime::Runtime,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path().join("bin");
        std::fs::create_dir_all(bin.join("folder")).unwrap();
        let log = directory.path().join("calls");
        for name in ["claude", "gemini", "codex", "git", "gh", "ruff"] {
            let script = format!(
                "#!/bin/sh\nread line && echo \"input $line\" >> {log}\necho \"$*\" >> {log}\n\
                 env >> {log}.env\necho {name} 3.4.5\n",
                log = log.display()
            );
            std::fs::write(bin.join(name), script).unwrap();
            std::fs::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::fs::write(bin.join("flat"), "#!/bin/sh\necho 1.0\n").unwrap();
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let variables = [
            ("PATH", path.as_str()),
            ("KEY_SET", KEY),
            ("KEY_EMPTY", " "),
        ];
        Self {
            variables: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            directory,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    fn bin(&self, name: &str) -> PathBuf {
        self.directory.path().join("bin").join(name)
    }

    fn examine(&self, configured: &Configured) -> Diagnosis {
        let env = Environment::from_pairs(self.variables.clone(), "/");
        let context = Context {
            sandbox: Arc::new(Sandbox::new(None, &env)),
            http: Arc::new(HttpClient::new().unwrap()),
            env,
            temporary: self.directory.path().to_owned(),
            cli_cap: Context::CLI_CAP,
            http_cap: Context::HTTP_CAP,
        };
        self.runtime
            .block_on(examine(configured, Strength::Off, &context))
    }

    /// The program calls since the last check.
    fn calls(&self) -> Vec<String> {
        let log = self.directory.path().join("calls");
        let calls = std::fs::read_to_string(&log).unwrap_or_default();
        let _there_may_be_none = std::fs::remove_file(log);
        calls.lines().map(str::to_owned).collect()
    }
}

fn settings(binary: &Path, base_url: &str) -> ProviderSettings {
    ProviderSettings {
        base_url: Some(base_url.to_owned()),
        api_key_env: Some("KEY_SET".to_owned()),
        model: Some("m".to_owned()),
        max_tokens: Some(100),
        binary: Some(binary.to_owned()),
        login: Login::Isolated,
        ..ProviderSettings::default()
    }
}

fn configured(provider: &str, settings: ProviderSettings) -> Configured {
    Configured {
        settings: registry()
            .iter()
            .map(|kind| (kind.name().to_owned(), settings.clone()))
            .collect(),
        provider: provider.to_owned(),
        fallback: String::new(),
        strategy: "controlled".to_owned(),
    }
}

fn codes(seen: &Diagnosis) -> Vec<(String, Level)> {
    let about =
        |code: &str| code.starts_with("doctor-provider") || code.starts_with("doctor-strategy");
    let verdict = verdict(seen);
    let found = verdict
        .findings()
        .iter()
        .map(|finding| (finding.code.as_str().to_owned(), finding.level));
    found.filter(|(code, _)| about(code)).collect()
}

#[test]
fn doctor_reports_found_and_missing() {
    let machine = Machine::new();
    let seen = machine.examine(&configured(
        "claude-cli",
        settings(Path::new("claude"), "http://127.0.0.1:9/v1"),
    ));
    let claude = seen
        .providers
        .iter()
        .find(|check| check.provider == "claude-cli")
        .unwrap();
    assert_eq!(
        (claude.reach, claude.readiness),
        (Reach::Program, Readiness::Ready)
    );
    let program = claude.program.as_ref().unwrap();
    assert_eq!(program.path.as_deref(), machine.bin("claude").to_str());
    assert_eq!(program.version.as_deref(), Some("3.4.5"));
    assert_eq!(program.says.as_deref(), Some("claude 3.4.5"));
    assert_eq!(claude.key.as_ref().unwrap().state, KeyState::Set);
    assert_eq!(
        seen.answers().map(|check| check.provider.as_str()),
        Some("claude-cli")
    );
    assert_eq!(codes(&seen), []);

    let missing = machine.examine(&configured(
        "claude-cli",
        settings(Path::new("no-such"), "http://127.0.0.1:9/v1"),
    ));
    let claude = missing
        .providers
        .iter()
        .find(|check| check.provider == "claude-cli")
        .unwrap();
    let program = claude.program.as_ref().unwrap();
    assert_eq!(program.state, ProgramState::Missing);
    assert_eq!(program.searched[1..], ["/usr/bin/no-such", "/bin/no-such"]);
    assert!(
        claude
            .problem
            .as_ref()
            .unwrap()
            .next
            .contains(&program.install),
        "{claude:?}"
    );
    assert_eq!(claude.lacks().unwrap().what, "no-such was not found");
    assert_eq!(
        codes(&missing),
        [("doctor-provider-unready".to_owned(), Level::Error)]
    );

    for bad in [machine.bin("folder"), machine.bin("flat")] {
        let seen = machine.examine(&configured(
            "claude-cli",
            settings(&bad, "http://127.0.0.1:9/v1"),
        ));
        let claude = seen
            .providers
            .iter()
            .find(|check| check.provider == "claude-cli")
            .unwrap();
        let program = claude.program.as_ref().unwrap();
        assert_eq!(program.state, ProgramState::Unusable);
        assert_eq!(program.path.as_deref(), bad.to_str());
        assert_eq!(claude.readiness, Readiness::NotReady);
    }
}

#[test]
fn a_choice_is_judged_with_its_fallback() {
    let machine = Machine::new();
    let ready = settings(Path::new("claude"), "http://127.0.0.1:9/v1");
    let unset = ProviderSettings {
        api_key_env: Some("KEY_UNSET".to_owned()),
        ..ready.clone()
    };
    let judged = |provider: &str, fallback: &str, strategy: &str| {
        let mut asked = configured(provider, ready.clone());
        asked.settings.insert("gateway".to_owned(), unset.clone());
        asked.fallback = fallback.to_owned();
        asked.strategy = strategy.to_owned();
        let seen = machine.examine(&asked);
        (
            seen.answers().map(|check| check.provider.clone()),
            codes(&seen),
            verdict(&seen).passes(),
        )
    };
    let code = |code: &str, level| (code.to_owned(), level);
    let unready = |level| code("doctor-provider-unready", level);
    let claude = Some("claude-cli".to_owned());
    assert_eq!(
        judged("", "", "controlled"),
        (
            None,
            vec![code("doctor-provider-unset", Level::Warning)],
            true
        )
    );
    assert_eq!(judged("", "claude-cli", "controlled").0, None);
    assert_eq!(
        judged("gateway", "", "controlled"),
        (None, vec![unready(Level::Error)], false)
    );
    assert_eq!(
        judged("gateway", "claude-cli", "controlled"),
        (claude.clone(), vec![unready(Level::Warning)], true)
    );
    assert_eq!(
        judged("claude-cli", "gateway", "controlled"),
        (claude, vec![unready(Level::Warning)], true)
    );
    let both = (
        None,
        vec![unready(Level::Error), unready(Level::Warning)],
        false,
    );
    assert_eq!(judged("gateway", "nobody", "controlled"), both);
    assert_eq!(
        judged("nobody", "", "controlled"),
        (None, vec![unready(Level::Error)], false)
    );
    let refused = judged("claude-cli", "", "external_tool");
    assert_eq!(
        (refused.1, refused.2),
        (vec![code("doctor-strategy-refused", Level::Error)], false)
    );
}

#[test]
fn old_or_missing_git_is_error() {
    let mut machine = Machine::new();
    machine.variables.insert(
        "PATH".to_owned(),
        format!("{}:/bin", machine.directory.path().display()),
    );
    let ready = || {
        configured(
            "gateway",
            settings(Path::new("claude"), "http://127.0.0.1:9/v1"),
        )
    };
    let tool = |seen: &Diagnosis, need: NeededBy| -> Vec<(String, Level)> {
        let names: Vec<&str> = seen
            .programs
            .iter()
            .filter(|own| own.needed_by == need)
            .map(|own| own.name.as_str())
            .collect();
        let verdict = verdict(seen);
        let about = |subject: &str| names.iter().any(|name| subject.starts_with(name));
        let findings = verdict
            .findings()
            .iter()
            .filter(|finding| about(&finding.subject));
        findings
            .map(|finding| (finding.code.as_str().to_owned(), finding.level))
            .collect()
    };
    let git = machine.directory.path().join("git");
    for (version, findings) in [
        (
            "git version 2.30.9",
            vec![("doctor-program-old".to_owned(), Level::Error)],
        ),
        (
            "git version 1.99",
            vec![("doctor-program-old".to_owned(), Level::Error)],
        ),
        ("git version 2.31.0", vec![]),
        ("git version 10.0", vec![]),
        ("a git of our own", vec![]),
    ] {
        std::fs::write(&git, format!("#!/bin/sh\necho {version}\n")).unwrap();
        std::fs::set_permissions(&git, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(
            tool(&machine.examine(&ready()), NeededBy::EveryRun),
            findings,
            "{version}"
        );
    }
    std::fs::write(&git, "#!/bin/sh\nexit 1\n").unwrap();
    let seen = machine.examine(&ready());
    let mute = verdict(&seen);
    let mute = mute
        .findings()
        .iter()
        .find(|finding| finding.code.as_str() == "doctor-program-mute")
        .unwrap();
    assert_eq!(mute.level, Level::Warning, "{mute}");
    std::fs::remove_file(&git).unwrap();
    machine.variables.insert(
        "PATH".to_owned(),
        machine.directory.path().display().to_string(),
    );
    let seen = machine.examine(&ready());
    assert_eq!(
        tool(&seen, NeededBy::EveryRun),
        [("doctor-program-missing".to_owned(), Level::Error)]
    );
    let others = tool(&seen, NeededBy::SomeCommands);
    assert!(
        others.iter().all(|(_, level)| *level == Level::Info) && others.len() == 4,
        "{others:?}"
    );
}

/// The settings of one provider, printable by a failed test.
#[derive(Debug, Clone)]
struct Said {
    binary: Option<PathBuf>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    model: Option<String>,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    login: Login,
    cassette: Option<PathBuf>,
}

impl From<Said> for ProviderSettings {
    fn from(said: Said) -> Self {
        Self {
            base_url: said.base_url,
            api_key_env: said.api_key_env,
            model: said.model,
            max_tokens: said.max_tokens,
            temperature: said.temperature,
            binary: said.binary,
            login: said.login,
            cassette: said.cassette.map(CassetteSource::File),
            ..Self::default()
        }
    }
}

/// The settings of one provider, from valid and invalid parts.
fn any_settings(bin: PathBuf, base_url: String, cassette: PathBuf) -> impl Strategy<Value = Said> {
    let binary = prop_oneof![
        3 => prop::sample::select(vec!["claude", "gemini", "codex"]).prop_map(PathBuf::from),
        1 => prop::sample::select(vec!["folder", "flat", "nothing", "claude"]).prop_map(move |name| bin.join(name)),
        1 => "[ -~]{1,12}".prop_map(PathBuf::from),
    ];
    let url = prop_oneof![
        4 => Just(base_url.clone()),
        1 => Just(format!("{base_url}/")),
        1 => Just(base_url.replace("http://", "http://me:secret@")),
        1 => "[ -~]{0,20}",
    ];
    let key = prop::sample::select(vec![
        "KEY_SET",
        "KEY_EMPTY",
        "KEY_UNSET",
        "",
        "PATH=",
        "\u{0}",
    ]);
    let login = prop::sample::select(vec![Login::Isolated, Login::User]);
    let some = |strategy: BoxedStrategy<String>| prop::option::weighted(0.9, strategy);
    (
        prop::option::weighted(0.9, binary),
        some(url.boxed()),
        some(key.prop_map(str::to_owned).boxed()),
        some("[ -~]{0,8}".boxed()),
        prop::option::weighted(0.9, any::<u64>()),
        prop::option::of(any::<f64>()),
        login,
        prop::option::of(Just(cassette)),
    )
        .prop_map(
            |(binary, base_url, api_key_env, model, max_tokens, temperature, login, cassette)| {
                Said {
                    binary,
                    base_url,
                    api_key_env,
                    model,
                    max_tokens,
                    temperature,
                    login,
                    cassette,
                }
            },
        )
}

mod properties {
    use crucible_testkit::expensive_cases;

    use super::*;

    /// Seed 002, properties 4 and 6: for any configuration, client programs are only asked for their
    /// version, and no HTTP provider is contacted.
    #[test]
    fn doctor_runs_only_version_checks() {
        let machine = Machine::new();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let base_url = format!("http://{}/v1", server.local_addr().unwrap());
        let names: Vec<String> = registry()
            .iter()
            .map(|kind| kind.name().to_owned())
            .collect();
        let cassette = machine.directory.path().join("bin/flat");
        let one = || {
            any_settings(
                machine.directory.path().join("bin"),
                base_url.clone(),
                cassette.clone(),
            )
        };
        let every = prop::collection::vec(one(), names.len());
        let chosen = prop::sample::select(
            [names.clone(), vec![String::new(), "nobody".to_owned()]].concat(),
        );
        let mut runner =
            proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(expensive_cases()));
        let strategy = (every, chosen.clone(), chosen);
        let result = runner.run(&strategy, |(settings, provider, fallback)| {
            let settings = names
                .iter()
                .cloned()
                .zip(settings.into_iter().map(ProviderSettings::from))
                .collect();
            let seen = machine.examine(&Configured {
                settings,
                provider,
                fallback,
                strategy: "controlled".to_owned(),
            });
            let calls = machine.calls();
            prop_assert!(calls.iter().all(|call| call == "--version"), "{calls:?}");
            prop_assert!(server.accept().is_err(), "somebody connected");
            let message = format!(
                "{}{:?}",
                serde_json::to_string(&seen).unwrap(),
                verdict(&seen)
            );
            prop_assert!(
                !message.contains(KEY) && !message.contains("me:secret"),
                "{message}"
            );
            prop_assert_eq!(seen.providers.len(), names.len());
            Ok(())
        });
        result.unwrap();
        let seen = machine.examine(&configured(
            "gateway",
            settings(Path::new("claude"), &base_url),
        ));
        assert!(
            machine.calls().len() >= 4,
            "the fakes write down that they are called"
        );
        assert!(
            seen.providers
                .iter()
                .any(|check| check.reach == Reach::Http)
        );
        let environment =
            std::fs::read_to_string(machine.directory.path().join("calls.env")).unwrap();
        assert!(
            environment.contains("PATH=") && !environment.contains(KEY),
            "{environment}"
        );
        // A connection would be noticed.
        let _connected = std::net::TcpStream::connect(server.local_addr().unwrap()).unwrap();
        assert!(server.accept().is_ok());
    }
}
