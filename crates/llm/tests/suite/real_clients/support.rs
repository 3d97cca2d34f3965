//! A provider with its real program and a scripted server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::http::HttpClient;
use crucible_llm::{
    Context, LlmBackend, LlmError, LlmInvocation, LlmResult, Login, Message, ProviderSettings,
    construct,
};
use crucible_model::{PromptBuilder, Untrusted};
use crucible_sandbox::Sandbox;
use crucible_testkit::{FakeApi, Reply, SeenRequest, real_client, real_clients_dir};
use tempfile::TempDir;

pub(crate) use Program::{Claude, Codex, Gemini};

/// A phrase of every prompt, which a refusing server quotes.
pub(crate) const PROMPT: &str = "words-of-the-prompt";

/// A key in a form that no secret scanner recognises, so errors must simply not contain it.
pub(crate) const KEY: &str = "plain-key-of-the-team";

pub(crate) const PROGRAMS: [Program; 3] = [Claude, Gemini, Codex];

/// A client program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Claude,
    Gemini,
    Codex,
}

impl Program {
    pub(crate) fn provider(self) -> &'static str {
        match self {
            Claude => "claude-cli",
            Gemini => "gemini-cli",
            Codex => "codex-cli",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Claude => "claude",
            Gemini => "gemini",
            Codex => "codex",
        }
    }

    /// A server with these replies, and the provider that uses it.
    pub(crate) fn against(self, replies: impl IntoIterator<Item = Reply>) -> Stand {
        let [temporary, home] =
            [(), ()].map(|()| tempfile::tempdir().expect("a temporary directory"));
        Stand {
            program: self,
            login: Login::Isolated,
            api: FakeApi::start(replies),
            temporary,
            home,
        }
    }
}

/// A program with its server and the directories of its calls.
pub(crate) struct Stand {
    program: Program,
    pub(crate) login: Login,
    pub(crate) api: FakeApi,
    pub(crate) temporary: TempDir,
    /// The user's home.
    pub(crate) home: TempDir,
}

impl Stand {
    /// Makes a call with this text in the prompt.
    pub(crate) async fn call(&self, text: &str) -> Result<LlmResult, LlmError> {
        self.invoke(ask(text)).await
    }

    /// Makes a call.
    pub(crate) async fn start(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let settings = ProviderSettings {
            base_url: Some(match self.program {
                Claude | Gemini => self.api.origin(),
                Codex => self.api.base_url(),
            }),
            api_key_env: Some("TEAM_KEY".to_owned()),
            binary: Some(real_client(self.program.name())),
            login: self.login,
            model: Some("a-model".to_owned()),
            max_tokens: Some(4096),
            ..ProviderSettings::default()
        };
        construct(self.program.provider(), &settings, &self.context())
            .expect("a backend")
            .invoke(inv)
            .await
    }

    /// Makes a call, and checks that it leaves no file on disk.
    pub(crate) async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let provider = self.program.provider();
        let outcome = self.start(inv).await;
        let left: Vec<_> = self
            .temporary
            .path()
            .read_dir()
            .expect("the directory")
            .flatten()
            .collect();
        assert!(left.is_empty(), "{provider} leaves {left:?}");
        outcome
    }

    /// The only request for an answer.
    pub(crate) fn only_request(&self) -> SeenRequest {
        let [request] = self.api.completions().try_into().expect("one request");
        request
    }

    fn context(&self) -> Context {
        // Two of the programs start `node` by name.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(real_clients_dir()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(path).expect("a PATH");
        let isolated = [("PATH", path.as_os_str()), ("TEAM_KEY", KEY.as_ref())];
        // With the user's own login, a key in the environment is the login.
        let users = ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "CODEX_API_KEY"]
            .map(|name| (name, KEY.as_ref()));
        let users = users
            .into_iter()
            .chain([("HOME", self.home.path().as_os_str())]);
        let users = users.filter(|_| self.login == Login::User);
        let env = Environment::from_pairs(isolated.into_iter().chain(users), "/");
        Context {
            sandbox: Arc::new(Sandbox::new(None, &env)),
            http: Arc::new(HttpClient::new().expect("a client")),
            env,
            temporary: self.temporary.path().to_owned(),
            cli_cap: Context::CLI_CAP,
            http_cap: Context::HTTP_CAP,
        }
    }
}

/// A request with a system prompt, and this text in the user message.
pub(crate) fn ask(text: &str) -> LlmInvocation {
    let text = Untrusted::new(text);
    LlmInvocation {
        spec_id: "run-1".to_owned(),
        phase_id: "patch".to_owned(),
        model: String::new(),
        timeout: Duration::from_secs(100),
        messages: vec![
            Message::system(PromptBuilder::new().fixed_text("the-system-prompt").build()),
            Message::user(
                PromptBuilder::new()
                    .fixed_text(PROMPT)
                    .untrusted("file.txt", &text)
                    .build(),
            ),
        ],
        metadata: BTreeMap::new(),
    }
}

/// Fails if an error contains the server's text, which quotes key and prompt.
pub(crate) fn assert_says_nothing(error: &LlmError) {
    let text = format!("{error}\n{error:?}");
    for word in [KEY, PROMPT, "the-system-prompt", "refused:"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
}
