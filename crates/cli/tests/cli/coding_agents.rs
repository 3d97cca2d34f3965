//! Coding agents: the real ones and scripted ones, from a goal to a commit, and what becomes of their bad ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crucible_testkit::{FakeApi, Reply, made_up_token, real_client};
use serde_json::{Value, json};

use crate::support::{Desk, GOAL, id_of, right, small, snapshot};

/// A desk whose model server is `api`, with a key of the user and a link to an agent's program on the PATH.
fn desk(api: &FakeApi, provider: &str, config: &str) -> (Desk, String) {
    let desk = Desk::new();
    let key = format!("canary-{}", made_up_token());
    desk.user_config(&format!(
        "[llm.{provider}]\nbase_url = \"{}\"\napi_key_env = \"CANARY_KEY\"\n{config}\n",
        api.base_url()
    ));
    (desk, key)
}

/// Writes a program of these lines, as the agent `script`; returns its settings.
fn scripted(desk: &Desk, lines: &str) -> String {
    let path = desk.path("script-agent");
    fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!(
        "[agents.script]\nprogram = {path:?}\nprovider = \"gateway\"\nmodel = \"m\"\nwire = \"openai\"\n\
         env = {{ BASE = \"{{endpoint}}\", TOKEN = \"{{token}}\" }}\n"
    )
}

/// Asks the endpoint for a chat completion, in the shell of a scripted agent.
const ASK: &str = r#"ask() { python3 - "$1" <<'PY'
import os, sys, urllib.request, urllib.error
req = urllib.request.Request(os.environ["BASE"] + "/v1/chat/completions", data=sys.argv[1].encode(),
    headers={"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"})
try:
    print(urllib.request.urlopen(req).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
PY
}
FIX='s/return width + height/return width * height/'
"#;

/// A scripted agent's run: the desk, the start's result as JSON and its exit code.
fn run_script(lines: &str, settings: &str) -> (Desk, FakeApi, Value, i32) {
    let (repo, api) = (small().build(), FakeApi::start([Reply::Answer("fine".to_owned())]));
    let (desk, _) = desk(&api, "gateway", "");
    let config = scripted(&desk, &format!("{ASK}{lines}"));
    desk.user_config(&format!(
        "[llm.gateway]\nbase_url = \"{}\"\n{config}{settings}\n",
        api.base_url()
    ));
    let before = snapshot(repo.path());
    let ended = desk
        .call(["run", "start", GOAL, "--repo"])
        .args([repo.path().to_str().unwrap(), "--agent", "script", "--json"])
        .run();
    assert_eq!(before, snapshot(repo.path()), "the repository was changed");
    let code = ended.code();
    let document = serde_json::from_slice(&ended.stdout()).unwrap_or_default();
    (desk, api, document, code)
}
