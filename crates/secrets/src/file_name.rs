//! File and directory names that mean a secret, whatever the content.
//!
//! Invariants: case is ignored, `\` separates like `/`, and backup suffixes (`~`, `.bak`, `.old` and similar)
//! are ignored.

/// Returns whether the file name or directory of `path` means a secret: `.env*`, `*.pem`, `*.key`, `id_rsa`,
/// `.npmrc`, `.netrc`, `credentials.json`, files in `.ssh`, and more.
#[must_use]
pub fn is_secret_file(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace('\\', "/");
    let mut parts = path.rsplit('/');
    // An alternate stream, trailing dots and spaces name the same file on some systems.
    let written = parts.next().unwrap_or_default();
    let written = written
        .split(':')
        .next()
        .unwrap_or_default()
        .trim_end_matches(['.', ' ']);
    let folder = parts.next().unwrap_or_default();
    let name = without_backup_marks(written);
    let bare = name.strip_prefix('.').unwrap_or(name);

    name.starts_with(".env")
        || (KEY_PAIRS.iter().any(|start| bare.starts_with(start)) && !name.ends_with(".pub"))
        || NAMES.contains(&name)
        || ENDINGS
            .iter()
            .any(|ending| name.len() > ending.len() && name.ends_with(ending))
        || ENDINGS.contains(&name)
        || is_json_credential(name)
        || PLACES
            .iter()
            .any(|(place, file)| *place == folder && *file == name)
        || (folder == ".ssh" && !is_public_ssh_file(name))
        || path.split('/').any(|part| part == ".gnupg")
}

/// Whether the last name of `path` is that of a directory in which programs keep keys and tokens, under whatever names: `.ssh`, `.gnupg`,
/// `.azure`, `.config/gcloud`, and more. Case is ignored.
#[must_use]
pub fn is_secret_directory(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace('\\', "/");
    let mut parts = path.trim_end_matches('/').rsplit('/');
    let name = parts.next().unwrap_or_default();
    let above = parts.next().unwrap_or_default();
    SECRET_DIRECTORIES.contains(&name)
        || SECRET_PLACES
            .iter()
            .any(|(place, directory)| *place == above && *directory == name)
}

const SECRET_DIRECTORIES: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".azure",
    ".gcloud",
    ".kube",
    ".password-store",
    ".oci",
    ".aliyun",
    ".bluemix",
];

const SECRET_PLACES: &[(&str, &str)] = &[
    (".config", "gcloud"),
    (".aws", "sso"),
    (".aws", "cli"),
    (".config", "gh"),
    (".config", "op"),
];

const KEY_PAIRS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss"];

const NAMES: &[&str] = &[
    ".npmrc",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".pgpass",
    "pgpass.conf",
    ".my.cnf",
    ".mylogin.cnf",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    ".dockerconfigjson",
    ".vault-token",
    ".s3cfg",
    ".boto",
    ".terraformrc",
    "terraform.rc",
    "credentials.json",
    "credentials.toml",
    "credentials.yml",
    "credentials.yaml",
    "credentials.xml",
    "credentials.tfrc.json",
    "credentials.db",
    "application_default_credentials.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yml",
    "secrets.yaml",
    "secret.json",
    "secret.yml",
    "secret.yaml",
    "kubeconfig",
    "local.settings.json",
    ".bash_history",
    ".zsh_history",
    ".psql_history",
    ".mysql_history",
    ".python_history",
    ".node_repl_history",
    ".sh_history",
    ".rediscli_history",
];

const ENDINGS: &[&str] = &[
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".p8",
    ".pkcs12",
    ".jks",
    ".keystore",
    ".bks",
    ".kdb",
    ".kdbx",
    ".ppk",
    ".ovpn",
    ".agekey",
    ".keytab",
    ".tfstate",
    ".tfvars",
    ".tfvars.json",
    ".mobileprovision",
    ".env",
];

const PLACES: &[(&str, &str)] = &[
    (".aws", "credentials"),
    (".aws", "config"),
    (".azure", "accesstokens.json"),
    (".cargo", "credentials"),
    (".docker", "config.json"),
    (".gem", "credentials"),
    (".kube", "config"),
    ("gcloud", "access_tokens.db"),
    ("gh", "hosts.yml"),
];

fn without_backup_marks(mut name: &str) -> &str {
    loop {
        let shorter = [
            "~", ".bak", ".backup", ".old", ".orig", ".save", ".swp", ".swo", ".tmp", ".copy", ".1",
        ]
        .iter()
        .find_map(|mark| name.strip_suffix(mark));
        match shorter {
            Some(rest) if !rest.is_empty() => name = rest,
            _ => return name,
        }
    }
}

fn is_json_credential(name: &str) -> bool {
    name.ends_with(".json")
        && [
            "client_secret",
            "service-account",
            "service_account",
            "serviceaccount",
        ]
        .iter()
        .any(|start| name.starts_with(start))
}

fn is_public_ssh_file(name: &str) -> bool {
    name.ends_with(".pub") || ["", "known_hosts", "authorized_keys", "config"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::{is_secret_directory, is_secret_file};

    #[test]
    fn secret_directories_are_recognised() {
        for path in [
            ".ssh",
            "home/.SSH/",
            ".gnupg",
            "a/.config/gcloud",
            ".aws/sso",
            "x\\.ssh",
        ] {
            assert!(is_secret_directory(path), "{path}");
        }
        for path in [
            "",
            "/",
            "ssh",
            ".sshx",
            "gcloud",
            ".config",
            ".aws",
            "sso",
            ".ssh/keys",
            ".docker",
        ] {
            assert!(!is_secret_directory(path), "{path}");
        }
    }

    #[test]
    fn names_that_hold_secrets() {
        for path in [
            ".env",
            "a/.env.production",
            ".ENV",
            ".envrc",
            "prod.env",
            "server.pem",
            "x/Server.KEY",
            "id_rsa",
            "ID_ED25519",
            "home/.ssh/work",
            "home/.ssh/id_ecdsa",
            ".npmrc",
            "a/b/.netrc",
            "_netrc",
            "credentials.json",
            "Credentials.JSON",
            ".aws/credentials",
            "home/.docker/config.json",
            ".kube/config",
            "terraform.tfstate",
            "terraform.tfstate.backup",
            "server.key.bak",
            "server.pem~",
            ".id_rsa.swp",
            ".env.",
            ".env ",
            ".env::$DATA",
            "a\\.ENV",
            "id_rsa.old",
            "client_secret_123.json",
            "service-account-prod.json",
            ".gnupg/private-keys-v1.d/x",
            ".cargo/credentials.toml",
            ".key",
            ".vault-token",
            "store.jks",
            ".git-credentials",
            "config/master.key",
            "terraform.tfvars",
            "infra/Prod.auto.tfvars",
            "terraform.tfvars.json",
            "terraform.tfvars.bak",
            ".streamlit/secrets.toml",
        ] {
            assert!(is_secret_file(path), "{path}");
        }
    }

    #[test]
    fn names_that_do_not() {
        for path in [
            "",
            "/",
            "src/main.rs",
            "env.rs",
            "environment.md",
            "key.rs",
            "keys/mod.rs",
            "pem.rs",
            "src/credentials.rs",
            "docs/secrets.md",
            ".ssh/id_rsa_notes.pub",
            ".ssh/known_hosts",
            "config.json",
            "monkey",
            "token.rs",
            ".sshx/a",
            "package.json",
            "credentials",
            "tests/serviceaccount.rs",
            "hosts.yml",
            "terraform.tfvars.example",
            "tfvars.rs",
        ] {
            assert!(!is_secret_file(path), "{path}");
        }
    }
}
