//! A key in a PKCS#11 token: it signs landings through an agent, and gates reach neither the token nor the agent.
//!
//! The token is software. It has the interface of a real one, and no walls of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crucible_testkit::RepoBuilder;

use crate::support::{CHECK, Fixture, GATE, TEST, WRONG, answering, good_answer, id_of};

const PIN: &str = "1234";

/// A device with a key that an agent serves.
struct Device {
    socket: PathBuf,
    public: PathBuf,
    /// A script that prints a line with `REACHED` for each way in which it reaches the key.
    probes: String,
    /// How many ways there are.
    ways: usize,
}

/// Writes a program that answers the question for the PIN.
fn answer(place: &Path) -> PathBuf {
    let answer = place.join("answer");
    std::fs::write(&answer, format!("#!/bin/sh\necho {PIN}\n")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&answer, mode).unwrap();
    answer
}

/// Probes that every device has: its module, its files and its agent.
fn probes(module: &str, files: &Path, socket: &Path, public: &Path) -> String {
    let (files, socket, public) = (files.display(), socket.display(), public.display());
    format!(
        "if ssh-keygen -D '{module}' 2>/dev/null | grep ecdsa; then echo REACHED module; fi\n\
         if find '{files}' -type f -size +1c 2>/dev/null | grep -q .; then echo REACHED files; fi\n\
         export SSH_AUTH_SOCK='{socket}'\n\
         if ssh-add -L 2>/dev/null | grep ecdsa; then echo REACHED agent; fi\n\
         if echo m | ssh-keygen -q -Y sign -n git -f '{public}' 2>/dev/null | grep BEGIN; then echo REACHED signature; fi\n\
         if cat /proc/[0-9]*/comm 2>/dev/null | grep ssh-agent; then echo REACHED process; fi\n\
         echo PROBED\n"
    )
}

/// Lands a change that the device signs, while its gate probes for the key.
fn signs_landings_out_of_reach(fixture: &Fixture, device: &Device) {
    fixture.user_config(&format!(
        "[attest]\nkey = {:?}\nrequired = true\nsign_commits = true\n",
        device.public
    ));
    let check = format!("(\n{})\n{CHECK}", device.probes);
    let repo = RepoBuilder::new()
        .files([
            (".crucible/config.toml", GATE),
            ("check.sh", check.as_str()),
            ("src/area.py", WRONG),
            ("tests/area_test.sh", TEST),
        ])
        .build();
    let start = fixture
        .start_call(repo.path())
        .env("SSH_AUTH_SOCK", &device.socket);
    let id = id_of(&start.run().ok().json());
    let run = fixture.runs().pop().unwrap();
    let log = std::fs::read_to_string(run.join("logs/verify.stdout.log")).unwrap();
    assert!(log.contains("PROBED") && !log.contains("REACHED"), "{log}");
    // Without the agent nothing lands.
    fixture.run(["run", "land", &id]).exits(1);
    let land = fixture
        .call(["run", "land", &id])
        .env("SSH_AUTH_SOCK", &device.socket);
    land.run().ok();
    let key = std::fs::read_to_string(&device.public).unwrap();
    let policy = fixture.path("attest.toml");
    let text = format!(
        "version = 1\n[[signers]]\nname = \"ada\"\nkey = \"{}\"\n",
        key.trim()
    );
    std::fs::write(&policy, text).unwrap();
    let verify = fixture.call(["attest", "verify", "HEAD", "--policy"]);
    verify.arg(&policy).current_dir(repo.path()).run().ok();
    // Outside of the sandbox each of the probes succeeds.
    let outside = Command::new("sh")
        .args(["-c", &device.probes])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&outside.stdout).into_owned();
    assert_eq!(message.matches("REACHED").count(), device.ways, "{message}");
}

mod slow {
    use super::*;
    use crate::attest_key::Agent;

    /// The module of SoftHSM. The test command installs it.
    const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";

    #[test]
    fn token_signs_landings_and_gates_cannot_reach_it() {
        let server = answering(good_answer());
        let fixture = Fixture::with(&server);
        let place = fixture.home().join("softhsm");
        let objects = place.join("tokens");
        std::fs::create_dir_all(&objects).unwrap();
        let config = place.join("softhsm2.conf");
        let text = format!("directories.tokendir = {}\n", objects.display());
        std::fs::write(&config, text).unwrap();
        let softhsm = |words: &[&str]| {
            let output = Command::new("softhsm2-util")
                .args(words)
                .env("SOFTHSM2_CONF", &config)
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        let init = ["--init-token", "--free", "--label", "t", "--so-pin", "5678"];
        softhsm(&[&init[..], &["--pin", PIN]].concat());
        let file = place.join("key");
        let exit_status = Command::new("ssh-keygen")
            .args([
                "-q", "-m", "PKCS8", "-t", "ecdsa", "-b", "256", "-N", "", "-f",
            ])
            .arg(&file)
            .status();
        assert!(exit_status.unwrap().success());
        let import = ["--import", file.to_str().unwrap(), "--token", "t"];
        softhsm(&[&import[..], &["--label", "k", "--id", "01", "--pin", PIN]].concat());
        std::fs::remove_file(&file).unwrap();
        let public = fixture.path("token.pub");
        std::fs::rename(place.join("key.pub"), &public).unwrap();
        let socket = fixture.path("token.sock");
        let _agent = Agent::start(&socket, &[("SOFTHSM2_CONF", &config)]);
        let added = Command::new("ssh-add")
            .args(["-q", "-s", MODULE])
            .env("SSH_AUTH_SOCK", &socket)
            .env("SSH_ASKPASS", answer(&place))
            .env("SSH_ASKPASS_REQUIRE", "force")
            .output()
            .unwrap();
        assert!(added.status.success(), "{added:?}");
        let probes = format!(
            "export SOFTHSM2_CONF='{}'\n{}",
            config.display(),
            probes(MODULE, &objects, &socket, &public)
        );
        signs_landings_out_of_reach(
            &fixture,
            &Device {
                socket,
                public,
                probes,
                ways: 5,
            },
        );
    }
}
