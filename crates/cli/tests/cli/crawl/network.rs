//! That a crawl itself reaches nothing but `gh`, git and the models' own clients: seen by the kernel, around the real program.
//!
//! The observer of the doctor's tests: whoever asks for a socket of the internet's families is killed on the spot. `gh`
//! talks to the fake GitHub over a unix socket and git clones from this machine, so a crawl that opens any other
//! connection does not survive.

use std::os::unix::process::ExitStatusExt;

use serde_json::Value;

use super::support::{CARGO, CrawlDesk, Models, local};
use crate::doctor_observed::{become_the_observed, observed};

#[test]
fn whole_crawl_opens_no_internet_socket() {
    become_the_observed();
    let name = "crawl::network::whole_crawl_opens_no_internet_socket";
    let (fixture, repo) = (CrawlDesk::with_widget(), local(&CARGO));
    fixture.clonable("acme/widget", &CARGO);
    for args in [
        &["search", "widget"][..],
        &["inspect", "acme/widget"],
        &["inspect", "acme/widget", "--ref", "v0.9"],
        &["inspect", repo.path().to_str().unwrap()],
        &["plan", "--query", "widget", "--auto-select", "--offline"],
        &["export", "acme/widget", "--offline"],
        &["history"],
    ] {
        let output = observed(&fixture.fixture, name, fixture.call(args));
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap();
    }
    // The observer sees: models are the only ones that are reached over the internet's sockets.
    let models = Models::agreeing_on("cargo build");
    let output = observed(
        &fixture.fixture,
        name,
        models.apply_to(fixture.call(["plan", "acme/widget"])),
    );
    assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{output:?}");
    assert_eq!(models.asked(), (0, 0));
}
