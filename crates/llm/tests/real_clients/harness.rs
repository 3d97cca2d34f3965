//! A provider with its real program, the server that it asks, and what must never be seen or left behind.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crucible_host::env::Environment;
use crucible_host::http::HttpClient;
use crucible_llm::{
    Context, LlmBackend, LlmError, LlmInvocation, LlmResult, Login, Message, ProviderSettings, construct,
};
use crucible_model::{PromptBuilder, Untrusted};
use crucible_sandbox::Sandbox;
use crucible_testkit::{FakeApi, Reply, RetryAfter, SeenRequest, real_client, real_clients_dir};
use serde_json::json;
use tempfile::TempDir;

/// In the prompt of every call.
const PROMPT_WORDS: &str = "the words that only the prompt holds";

const KEY: &str = "key-of-the-user-0123456789";

/// Long enough for a slow machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(120);

/// A provider and its real program.
pub(crate) struct Client {
    provider: &'static str,
    program: &'static str,
    /// What the program sees below the address of the server.
    below: &'static str,
    places: TempDir,
}

/// How a call went.
pub(crate) struct Outcome {
    pub(crate) result: Result<LlmResult, LlmError>,
    /// The requests for an answer that reached the server.
    pub(crate) requests: Vec<SeenRequest>,
}

impl Client {
    pub(crate) fn new(provider: &'static str, program: &'static str, below: &'static str) -> Self {
        let places = tempfile::tempdir().unwrap();
        for name in ["private", "home", "forbidden"] {
            std::fs::create_dir(places.path().join(name)).unwrap();
        }
        Self { provider, program, below, places }
    }

    /// The user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.places.path().join("home")
    }

    /// A file that nothing must ever make, named after what would make it.
    pub(crate) fn forbidden(&self, by: &str) -> PathBuf {
        self.places.path().join("forbidden").join(by)
    }

    /// A file of this machine that a prompt names, whose content must not leave it: the words, and the prompt.
    pub(crate) fn tempting(&self) -> (&'static str, String) {
        let file = self.places.path().join("tempting.txt");
        std::fs::write(&file, "what only the file holds").unwrap();
        ("what only the file holds", format!("look at @{0} and [this]({0}) and !cat {0}", file.display()))
    }

    /// One call with nobody's login, answered by these replies.
    pub(crate) async fn call(&self, replies: impl IntoIterator<Item = Reply>) -> Outcome {
        self.ask(replies, ask("x"), Login::Isolated).await
    }

    pub(crate) async fn ask(
        &self,
        replies: impl IntoIterator<Item = Reply>,
        inv: LlmInvocation,
        login: Login,
    ) -> Outcome {
        let server = FakeApi::start(replies);
        let result = self.invoke(&server, inv, login).await;
        self.assert_nothing_is_left().await;
        if let Err(error) = &result {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(PROMPT_WORDS) && !shown.contains(KEY), "{shown}");
            assert!(shown.contains(self.provider), "{shown}");
        }
        let requests = server.completions();
        let outside: Vec<String> =
            requests.iter().filter(|r| r.key() != Some(KEY)).map(|r| r.path.clone()).collect();
        assert!(outside.is_empty(), "without the key: {outside:?}");
        Outcome { result, requests }
    }

    /// Gives a call up while the server holds it, as an interrupt does.
    pub(crate) async fn abandon(&self) {
        let server = FakeApi::start([Reply::Hang]);
        {
            let mut call = Box::pin(self.invoke(&server, ask("x"), Login::Isolated));
            let asked = until("the server is asked", || !server.completions().is_empty());
            tokio::select! {
                biased;
                result = &mut call => panic!("it ended by itself: {result:?}"),
                () = asked => {}
            }
            assert!(!self.processes().is_empty(), "these processes are not seen by this test");
        }
        self.assert_nothing_is_left().await;
    }

    /// Makes a call that the server never answers, with too little time.
    pub(crate) async fn hang(&self) {
        let mut inv = ask("x");
        inv.timeout = Duration::from_secs(5);
        let Outcome { result, .. } = self.ask([Reply::Hang], inv, Login::Isolated).await;
        assert!(matches!(result, Err(LlmError::Timeout { .. })), "{result:?}");
    }

    /// Makes a call for each of these and compares the class of its error.
    pub(crate) async fn fails(&self, cases: impl IntoIterator<Item = (Reply, &'static str)>) {
        for (reply, class) in cases {
            let Outcome { result, requests } = self.call([reply.clone()]).await;
            let error = result.expect_err(&format!("{reply:?}"));
            assert_eq!(error.class(), class, "{reply:?}: {error}");
            assert!(!requests.is_empty(), "{reply:?}");
        }
    }

    async fn invoke(
        &self,
        server: &FakeApi,
        inv: LlmInvocation,
        login: Login,
    ) -> Result<LlmResult, LlmError> {
        let program = real_client(self.program);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", real_clients_dir().display());
        let home = self.home().display().to_string();
        let env = Environment::from_pairs(
            [
                ("PATH", path.as_str()),
                ("HOME", home.as_str()),
                ("ANTHROPIC_API_KEY", KEY),
                ("GEMINI_API_KEY", KEY),
                ("OPENAI_API_KEY", KEY),
                ("CODEX_API_KEY", KEY),
            ],
            "/",
        );
        let settings = ProviderSettings {
            binary: Some(program),
            base_url: Some(format!("{}{}", server.origin(), self.below)),
            model: Some("fake-model".to_owned()),
            max_tokens: Some(4000),
            login,
            ..ProviderSettings::default()
        };
        let context = Context {
            sandbox: Arc::new(Sandbox::new(None, &env)),
            http: Arc::new(HttpClient::new().unwrap()),
            env,
            temporary: self.places.path().join("private"),
            cli_cap: Context::CLI_CAP,
            http_cap: Context::HTTP_CAP,
        };
        construct(self.provider, &settings, &context).unwrap().invoke(inv).await
    }

    async fn assert_nothing_is_left(&self) {
        until("every process of the call is gone", || self.processes().is_empty()).await;
        for name in ["private", "forbidden"] {
            let left: Vec<_> = std::fs::read_dir(self.places.path().join(name)).unwrap().collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }

    /// Whatever runs with this client's directory in its environment.
    fn processes(&self) -> Vec<PathBuf> {
        let mark = self.places.path().as_os_str().as_encoded_bytes();
        let runs_here = |process: &PathBuf| {
            // A process that has ended has an empty environment.
            std::fs::read(process.join("environ"))
                .is_ok_and(|environment| environment.windows(mark.len()).any(|window| window == mark))
        };
        std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()).filter(runs_here).collect()
    }
}

/// A request with a system prompt and this in its prompt.
pub(crate) fn ask(text: &str) -> LlmInvocation {
    let prompt = PromptBuilder::new().ours(PROMPT_WORDS).untrusted("file.txt", &Untrusted::new(text)).build();
    LlmInvocation {
        spec_id: "run-1".to_owned(),
        phase_id: "patch".to_owned(),
        model: String::new(),
        timeout: PATIENCE,
        messages: vec![
            Message::system(PromptBuilder::new().ours("You are terse indeed.").build()),
            Message::user(prompt),
        ],
        metadata: BTreeMap::new(),
    }
}

pub(crate) fn answer() -> Reply {
    Reply::Answer("Here it is,\nas asked: `a < b`.".to_owned())
}

/// The model asks to run and to write; then it answers.
pub(crate) fn tool_call(tool: &str, input: serde_json::Value) -> [Reply; 2] {
    [Reply::ToolCall(tool.to_owned(), input), answer()]
}

/// Asserts the good answer, with the model's name and the tokens that the server counted.
pub(crate) fn assert_answered(outcome: &Outcome) {
    let result = outcome.result.as_ref().unwrap();
    assert_eq!(Reply::Answer(result.raw_response.clone()), answer());
    assert_eq!(result.model_used, "fake-model");
    let counted: usize = outcome.requests.iter().map(SeenRequest::prompt_tokens).sum();
    assert_eq!(result.tokens_input, u64::try_from(counted).ok());
    assert!(result.tokens_output.is_some_and(|tokens| tokens > 0));
    assert!(outcome.requests.iter().all(|request| request.conversation().contains(PROMPT_WORDS)));
}

pub(crate) fn rate_limited() -> Reply {
    Reply::RateLimited(RetryAfter::Value("1".to_owned()))
}

pub(crate) fn run_input(file: &Path) -> serde_json::Value {
    let command = format!("touch {}", file.display());
    json!({"command": command, "cmd": command, "file_path": file, "content": "x", "path": file})
}

/// Whether any file below a directory holds the words of the prompt.
pub(crate) fn prompt_is_kept_below(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            false
        } else if path.is_dir() {
            prompt_is_kept_below(&path)
        } else {
            let bytes = std::fs::read(&path).unwrap();
            bytes.windows(PROMPT_WORDS.len()).any(|window| window == PROMPT_WORDS.as_bytes())
        }
    })
}

/// Waits until something holds; fails when it does not in a long time.
fn until<'a>(what: &'a str, mut holds: impl FnMut() -> bool + 'a) -> impl Future<Output = ()> + 'a {
    let begun = Instant::now();
    async move {
        while !holds() {
            assert!(begun.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
