//! Paths that are hidden from every confined program: all home directories, and the secrets of the machine.
//!
//! Invariants: a home directory is hidden whatever its name and whichever user runs. The table in `tools` lists what
//! is made visible again; the secrets in this file stay hidden there, too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;

/// Secrets below a home directory: hidden also where the home is shown or writable.
const HOME_SECRETS: [&str; 38] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".docker",
    ".kube",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/git/credentials",
    ".config/gcloud",
    ".config/op",
    ".config/rclone",
    ".config/containers",
    ".config/doctl",
    ".config/configstore",
    ".local/share/keyrings",
    ".password-store",
    ".terraform.d",
    ".vault-token",
    ".gem/credentials",
    ".m2/settings-security.xml",
    ".pgpass",
    ".my.cnf",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".bash_history",
    ".zsh_history",
    ".python_history",
];
/// Secrets of the machine, which root can read.
const MACHINE_SECRETS: [&str; 24] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
    "/etc/ssh",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/krb5.keytab",
    "/etc/letsencrypt",
    "/etc/NetworkManager/system-connections",
    "/etc/openvpn",
    "/etc/tpm2_pkcs11",
    "/etc/wireguard",
    "/var/backups",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/opencryptoki",
    "/var/lib/softhsm",
    "/var/log",
    "/var/mail",
    "/var/spool",
];

/// Kernel files about the machine and its other users: keys, addresses, memory. No build or test reads them.
const KERNEL_SECRETS: [&str; 14] = [
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/slabinfo",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/vmallocinfo",
];

/// Home directories of all users.
const HOMES: [&str; 2] = ["/home", "/root"];
/// Values of `HOME` that are not hidden, because that would hide the system.
const SYSTEM: [&str; 18] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/mnt", "/nix", "/opt",
    "/proc", "/run", "/sbin", "/srv", "/sys", "/usr", "/var",
];
/// The variable of the sandbox's own environment that lists further secrets, separated by NUL. No child gets it.
pub(crate) const VARIABLE: &str = "CRUCIBLE_HIDDEN";
/// Variables that name a file or directory of secrets, or a socket to one who keeps them; some may list several.
const NAMED_SECRETS: [&str; 17] = [
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "CLOUDSDK_CONFIG",
    "CRUCIBLE_RUNS_ROOT",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "PIP_CONFIG_FILE",
    "SOFTHSM2_CONF",
    "SSH_AUTH_SOCK",
    "TPM2_PKCS11_STORE",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];
/// Variables that name a socket by its address.
const NAMED_SOCKETS: [&str; 3] = ["DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "CONTAINER_HOST"];

/// Returns whether this is a system directory that is never covered.
pub(crate) fn is_system(path: &Path) -> bool {
    let kernel = ["/dev", "/proc", "/sys"]
        .iter()
        .any(|place| path.starts_with(place));
    let temporary = ["/tmp", "/var/tmp"]
        .iter()
        .any(|place| path == Path::new(place));
    kernel || temporary || SYSTEM.iter().any(|place| path == Path::new(place))
}

/// Returns the home directories, without a `HOME` that is a system directory.
pub(crate) fn homes(env: &Environment) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = HOMES.iter().map(PathBuf::from).collect();
    let system = |home: &PathBuf| {
        let real = home.canonicalize();
        let real = real.as_ref().unwrap_or(home);
        SYSTEM.iter().any(|place| real == Path::new(place))
    };
    homes.extend(
        env.home()
            .filter(|home| home.is_absolute() && !system(home)),
    );
    // Outer ones first, because they may contain a link to an inner one.
    homes.sort();
    homes
}

/// Returns the paths of secrets, in home directories and elsewhere.
pub(crate) fn secrets(env: &Environment) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = env.home().into_iter().collect();
    if rustix::process::geteuid().is_root() {
        homes.push(PathBuf::from("/root"));
    }
    let mut places: Vec<PathBuf> = MACHINE_SECRETS.iter().map(PathBuf::from).collect();
    for home in homes.iter().filter(|home| home.is_absolute()) {
        places.extend(HOME_SECRETS.iter().map(|name| home.join(name)));
    }
    let set = |name: &str| env.get_os(name).unwrap_or_default();
    let named = |name: &str| Some(PathBuf::from(set(name))).filter(|path| path.is_absolute());
    if let Some(cargo) = named("CARGO_HOME") {
        places.extend([cargo.join("credentials"), cargo.join("credentials.toml")]);
    }
    places.extend(
        NAMED_SECRETS
            .iter()
            .flat_map(|name| std::env::split_paths(set(name))),
    );
    // A single path may contain the byte that separates the paths of a list.
    places.extend(NAMED_SECRETS.iter().filter_map(|name| named(name)));
    let further = set(VARIABLE).as_bytes().split(|byte| *byte == 0);
    places.extend(further.map(|path| PathBuf::from(OsStr::from_bytes(path))));
    places.extend(NAMED_SOCKETS.iter().filter_map(|name| socket(set(name))));
    places.extend(env.crucible_home());
    places.retain(|place| place.is_absolute());
    // The shortest first, so that a link does not hide another path.
    places.sort();
    places.dedup();
    places
}

/// Returns the existing files of [`KERNEL_SECRETS`].
pub(crate) fn kernel_secrets() -> Vec<PathBuf> {
    KERNEL_SECRETS
        .iter()
        .map(PathBuf::from)
        .filter(|place| place.exists())
        .collect()
}

/// Returns the path in an address such as `unix:///run/docker.sock` or `unix:path=/run/bus,guid=1`.
fn socket(address: &OsStr) -> Option<PathBuf> {
    let path = address.to_str()?.strip_prefix("unix:")?;
    let path = path.strip_prefix("path=").unwrap_or(path);
    let path = path.split([',', ';']).next()?.trim_start_matches('/');
    (!path.is_empty()).then(|| Path::new("/").join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_directory_as_home_is_not_hidden() {
        let homes = |home: &str| homes(&Environment::from_pairs([("HOME", home)], "/"));
        for home in ["/", "/usr", "/etc/", "/usr/../usr", "", "relative"] {
            assert_eq!(
                homes(home),
                [PathBuf::from("/home"), "/root".into()],
                "{home}"
            );
        }
        assert!(homes("/var/www").contains(&PathBuf::from("/var/www")));
    }

    #[test]
    fn paths_with_separators_are_hidden() {
        let pairs = [
            ("SSH_AUTH_SOCK", "/x:y/agent"),
            ("KUBECONFIG", "/k1:/k2"),
            (VARIABLE, "/a:b/key\0/c d\n"),
        ];
        let places = secrets(&Environment::from_pairs(pairs, "/"));
        for place in ["/x:y/agent", "/k1", "/k2", "/a:b/key", "/c d\n"] {
            assert!(places.contains(&PathBuf::from(place)), "{place:?}");
        }
        assert!(!places.contains(&PathBuf::new()));
    }

    /// The objects of a token are files where no device keeps them.
    #[test]
    fn stores_of_tokens_are_hidden() {
        let pairs = [
            ("SOFTHSM2_CONF", "/x/softhsm2.conf"),
            ("TPM2_PKCS11_STORE", "/x/store"),
        ];
        let places = secrets(&Environment::from_pairs(pairs, "/"));
        for place in [
            "/x/softhsm2.conf",
            "/x/store",
            "/var/lib/softhsm",
            "/etc/tpm2_pkcs11",
        ] {
            assert!(places.contains(&PathBuf::from(place)), "{place:?}");
        }
    }

    #[test]
    fn sockets_are_found_in_their_addresses() {
        let found = |text: &str| socket(OsStr::new(text));
        assert_eq!(
            found("unix:///x/docker.sock"),
            Some("/x/docker.sock".into())
        );
        assert_eq!(found("unix:path=/x/bus,guid=1"), Some("/x/bus".into()));
        assert_eq!(found("tcp://127.0.0.1:2375"), None);
        assert_eq!(
            found("unix:abstract=/tmp/x"),
            Some("/abstract=/tmp/x".into())
        );
        assert_eq!(found("unix://"), None);
    }
}
