//! What the tests of a crawl share: a fixture with a GitHub, repositories to clone, and models with their words.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crucible_testkit::{FakeGitHub, FakeOpenAi, FakeRepo, Reply, RepoBuilder, TestRepo};
use serde_json::{Value, json};

use crate::support::{Call, Fixture, Ran};

/// How long anything may take before a test calls it a failure.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// The instant of every crawl in these tests.
pub(crate) const NOW: &str = "2026-03-01T12:00:00.000Z";

pub(crate) const CARGO_TOML: &str = "[package]\nname = \"widget\"\nversion = \"1.0.0\"\nedition = \"2021\"\nrust-version = \"1.70\"\n";

/// The files of a small cargo project.
pub(crate) const CARGO: [(&str, &str); 4] = [
    ("Cargo.toml", CARGO_TOML),
    ("Cargo.lock", "version = 4\n"),
    (
        "README.md",
        "# Widget\n\nMakes widgets. Build it with cargo.\n",
    ),
    ("src/main.rs", "fn main() {}\n"),
];

/// A fixture with a GitHub and places for what is cloned and what is temporary.
pub(crate) struct CrawlDesk {
    pub(crate) fixture: Fixture,
    pub(crate) github: FakeGitHub,
}

impl CrawlDesk {
    /// With these repositories.
    pub(crate) fn new(repos: impl IntoIterator<Item = FakeRepo>) -> Self {
        let fixture = Fixture::new();
        for place in ["clones", "tmp"] {
            std::fs::create_dir(fixture.path(place)).unwrap();
        }
        Self {
            fixture,
            github: FakeGitHub::start(repos),
        }
    }

    /// With one repository of a release, which is found as `widget`.
    pub(crate) fn with_widget() -> Self {
        Self::new([widget()])
    }

    /// `crucible crawl` with these arguments.
    pub(crate) fn call<A: AsRef<OsStr>>(&self, args: impl AsRef<[A]>) -> Call {
        let mut call = self.fixture.call(["crawl"]);
        for arg in args.as_ref() {
            call = call.arg(arg);
        }
        for (name, value) in self.github.env() {
            call = call.env(name.to_str().unwrap(), value);
        }
        call.env("TMPDIR", self.tmp())
            .env("CRUCIBLE_CLOCK", NOW)
            .env(
                "CRUCIBLE_CRAWL_CLONE_BASE",
                format!("file://{}", self.fixture.path("clones").display()),
            )
            .without_env("CRUCIBLE_LLM_PROVIDER")
    }

    /// Runs it; whatever comes of it, standard error speaks with a crawl's voice and nothing temporary is left.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.finish(self.call::<&str>(args))
    }

    /// Runs a call, with the same look at what comes of it.
    #[track_caller]
    pub(crate) fn finish(&self, call: Call) -> Ran {
        let ran = call.run();
        speaks_as_a_crawl(&ran);
        assert_eq!(self.left_in_tmp(), Vec::<String>::new(), "{}", ran.stderr);
        ran
    }

    /// Runs a call whose models are these.
    #[track_caller]
    pub(crate) fn ask(&self, args: &[&str], models: &Models) -> Ran {
        self.finish(models.apply_to(self.call::<&str>(args)))
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.fixture.path("tmp")
    }

    /// The names of what lies in the temporary directory.
    pub(crate) fn left_in_tmp(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.tmp()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Whether there is a work directory.
    pub(crate) fn works(&self) -> bool {
        let is_one =
            |name: &String| name.starts_with("crucible-crawl-") && self.tmp().join(name).is_dir();
        self.left_in_tmp().iter().any(is_one)
    }

    /// Makes `owner/repo` of these files clonable, and tells its commit.
    pub(crate) fn clonable(&self, full_name: &str, files: &[(&str, &str)]) -> String {
        let repo = local(files);
        let to = self.fixture.path("clones").join(format!("{full_name}.git"));
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        repo.git(["tag", "v0.9"]);
        repo.git(["clone", "--quiet", "--bare", ".", to.to_str().unwrap()]);
        repo.head()
    }

    /// `crucible crawl` alone.
    pub(crate) fn menu(&self) -> Call {
        self.call::<&str>([])
    }

    /// The newest session in the history.
    #[track_caller]
    pub(crate) fn last_session(&self) -> Value {
        self.run(&["history", "--json"]).ok().json()["sessions"][0].clone()
    }

    /// The directory of the only export there is.
    pub(crate) fn exports(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.fixture.data().join("exports"));
        entries
            .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
            .unwrap_or_default()
    }
}

/// A repository with a release.
pub(crate) fn widget() -> FakeRepo {
    FakeRepo::new("acme/widget")
        .of_organization()
        .stars(2500)
        .description("Makes widgets with cargo")
        .language("Rust")
        .pushed_at("2026-02-20T00:00:00Z")
        .release("v1.0", &CARGO)
}

/// A local repository of these files.
pub(crate) fn local(files: &[(&str, &str)]) -> TestRepo {
    RepoBuilder::new().files(files.iter().copied()).build()
}

/// Every line of standard error but a JSON error carries the prefix, and JSON on standard output is one document.
#[track_caller]
pub(crate) fn speaks_as_a_crawl(ran: &Ran) {
    for line in ran.stderr.lines() {
        let is_error = line.starts_with("{") && line.contains("\"crucible-error-v1\"");
        assert!(
            line.starts_with("[crawl] ") || is_error,
            "{line:?} of\n{}",
            ran.stderr
        );
    }
}

/// The error document, which is the last line of standard error with `--json`.
#[track_caller]
pub(crate) fn error_of(ran: &Ran) -> Value {
    serde_json::from_str(ran.stderr.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {}", ran.stderr))
}

/// Both owners, each with a server of its own: the gateway drafts, `openai` criticises.
pub(crate) struct Models {
    pub(crate) gpt: FakeOpenAi,
    pub(crate) claude: FakeOpenAi,
}

impl Models {
    /// Models that say this, one after the other.
    pub(crate) fn saying<const G: usize, const C: usize>(
        gpt: [Value; G],
        claude: [Value; C],
    ) -> Self {
        let replies = |values: Vec<Value>| {
            values
                .into_iter()
                .map(|value| Reply::Answer(value.to_string()))
        };
        Self::replying(replies(gpt.into()), replies(claude.into()))
    }

    pub(crate) fn replying(
        gpt: impl IntoIterator<Item = Reply>,
        claude: impl IntoIterator<Item = Reply>,
    ) -> Self {
        Self {
            gpt: FakeOpenAi::start(gpt),
            claude: FakeOpenAi::start(claude),
        }
    }

    /// A draft of one step, criticised once and then approved.
    pub(crate) fn agreeing_on(step: &str) -> Self {
        Self::saying([draft(step), synthesis(step)], [approval()])
    }

    /// A call that has these two.
    pub(crate) fn apply_to(&self, call: Call) -> Call {
        call.env("CRUCIBLE_CRAWL_GPT_PROVIDER", "gateway")
            .env("CRUCIBLE_CRAWL_CLAUDE_PROVIDER", "openai")
            .env("CRUCIBLE_GATEWAY_BASE_URL", self.gpt.base_url())
            .env("CRUCIBLE_OPENAI_BASE_URL", self.claude.base_url())
            .env("OPENAI_API_KEY", "a-key-for-tests")
    }

    /// How many questions each was asked.
    pub(crate) fn asked(&self) -> (usize, usize) {
        (
            self.gpt.completions().len(),
            self.claude.completions().len(),
        )
    }
}

fn step(cmd: &str) -> Value {
    json!({ "name": "build", "cmd": cmd, "cwd": ".", "env": [], "note": "builds it" })
}

pub(crate) fn draft(cmd: &str) -> Value {
    json!({
        "dependencies": { "tools": ["cargo"], "notes": "the build tool" },
        "steps": [step(cmd)],
        "warnings": ["the first build takes a while"],
    })
}

pub(crate) fn approval() -> Value {
    json!({ "issues": [], "suggestions": [], "approved": true })
}

pub(crate) fn objection(description: &str) -> Value {
    json!({
        "issues": [{ "severity": "error", "step_name": "build", "description": description }],
        "suggestions": [{ "action": "modify", "step_name": "build", "description": "use --release" }],
        "approved": false,
    })
}

pub(crate) fn synthesis(cmd: &str) -> Value {
    let mut plan = draft(cmd);
    plan["accepted_suggestions"] = json!(["use --release; source: claude"]);
    plan["rejected_suggestions"] = json!(["add tests; source: claude; not asked for"]);
    plan
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < TIMEOUT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
