//! Decides whether a configured command is understood: whether it certainly runs nothing from a work tree.
//!
//! Only literal words are understood, of programs in the list below, outside of the writable directories. Nothing is expanded and no
//! other syntax is read. A command that is not understood may run any file.

use std::path::{Path, PathBuf};

use crucible_host::env::Environment;

use super::command::as_path;
use super::git_call;
use super::search_path::{SearchPath, is_builtin};

/// Bytes of literal words outside of quotes, which a shell takes as they are.
const LITERAL: &[u8] = b"/._-+=:,@%";
/// Variables that stand for arguments or names of files, and never for a program. git and its tools set them.
const DATA: [&[u8]; 5] = [b"@", b"BASE", b"LOCAL", b"MERGED", b"REMOTE"];
/// Bytes between commands of a shell.
const BETWEEN: &[u8] = b"|&;";

/// The arguments with which a program runs nothing from a work tree.
#[derive(Debug, Clone, Copy)]
enum Arguments {
    /// Any: none of them is run.
    Any,
    /// These words at first, then any.
    Begin(&'static [&'static str]),
    /// Words without `-`, `+` or `@` in front, and these options. One that ends with `=` takes any value.
    Options(&'static [&'static str]),
    /// As a subcommand of git.
    Git,
    /// None.
    Nothing,
}

use Arguments::{Any, Begin, Git, Nothing, Options};

/// Programs that run nothing from a work tree: no interpreter and no build tool. docs/sandbox.md describes the list.
const PROGRAMS: &[(&[&str], Arguments)] = &[
    (&["git"], Git),
    (
        &[
            // Programs that print, count, convert or store.
            ":",
            "[",
            "base64",
            "cat",
            "cmp",
            "col",
            "cut",
            "echo",
            "exit",
            "false",
            "fmt",
            "fold",
            "grep",
            "gunzip",
            "gzip",
            "head",
            "hexdump",
            "md5sum",
            "nl",
            "od",
            "printf",
            "pwd",
            "rev",
            "sha1sum",
            "sha256sum",
            "strings",
            "tac",
            "tail",
            "test",
            "tr",
            "true",
            "uniq",
            "wc",
            "xxd",
            "zcat",
            "colordiff",
            "docx2txt",
            "odt2txt",
            "pdfinfo",
            "pdftotext",
            // Parts and companions of git.
            "git-crypt",
            "git-lfs",
            "git-receive-pack",
            "git-upload-archive",
            "git-upload-pack",
            "gitk",
            "git-credential-cache",
            "git-credential-gcloud.sh",
            "git-credential-gnome-keyring",
            "git-credential-libsecret",
            "git-credential-manager",
            "git-credential-manager-core",
            "git-credential-oauth",
            "git-credential-osxkeychain",
            "git-credential-store",
            "git-remote-codecommit",
            "git-remote-ftp",
            "git-remote-ftps",
            "git-remote-http",
            "git-remote-https",
            // Programs that ask for a password, or that sign.
            "askpass.sh",
            "git-gui--askpass",
            "gnome-ssh-askpass",
            "ksshaskpass",
            "lxqt-openssh-askpass",
            "op-ssh-sign",
            "smimesign",
            "ssh-askpass",
            "x11-ssh-askpass",
        ],
        Any,
    ),
    (&["lesspipe", "lesspipe.sh"], Any),
    (
        &["chromium", "firefox", "google-chrome", "open", "xdg-open"],
        Nothing,
    ),
    (&["man"], Options(&[])),
    (&["ssh-add"], Options(&["-L"])),
    (&["ssh-keygen"], Options(&[])),
    (&["gh", "glab"], Begin(&["auth", "git-credential"])),
    (&["aws"], Begin(&["codecommit", "credential-helper"])),
    (
        &["less"],
        Options(&[
            "-E",
            "-F",
            "-FRSX",
            "-FRX",
            "-FX",
            "-FXR",
            "-K",
            "-M",
            "-N",
            "-Q",
            "-R",
            "-RF",
            "-RFX",
            "-RS",
            "-RSX",
            "-RX",
            "-RXF",
            "-S",
            "-SR",
            "-X",
            "-XF",
            "-XFR",
            "-XR",
            "-XRF",
            "-i",
            "-q",
            "-r",
            "-x1",
            "-x2",
            "-x4",
            "-x8",
            "-+F",
            "-+S",
            "-+X",
            "+F",
            "+G",
            "+g",
            "--RAW-CONTROL-CHARS",
            "--chop-long-lines",
            "--ignore-case",
            "--mouse",
            "--no-init",
            "--quit-if-one-screen",
            "--quit-on-intr",
            "--raw-control-chars",
            "--tabs=",
        ]),
    ),
    (&["more", "most", "moar", "moor"], Options(&["-R", "-s"])),
    (
        &["delta"],
        Options(&[
            "-n",
            "-s",
            "--color-only",
            "--dark",
            "--diff-so-fancy",
            "--features=",
            "--light",
            "--line-numbers",
            "--navigate",
            "--side-by-side",
            "--syntax-theme=",
        ]),
    ),
    (&["bat", "batcat"], Options(&["-p", "--plain", "--style="])),
    (&["diff-so-fancy"], Options(&["--colors"])),
    (&["difft"], Options(&["--color=", "--display="])),
    (
        &["diff"],
        Options(&["-u", "-r", "-N", "-ur", "-urN", "--color", "--color="]),
    ),
    (
        &["gvim", "mvim", "nvim", "vi", "vim"],
        Options(&["-d", "-f", "-g", "-n", "--nofork"]),
    ),
    (&["gvimdiff", "nvimdiff", "vimdiff"], Options(&["-f"])),
    (&["emacs"], Options(&["-Q", "-nw", "-q"])),
    (
        &["emacsclient"],
        Options(&["-c", "-nw", "-r", "-t", "--create-frame", "--tty"]),
    ),
    (&["ed", "hx", "kate", "micro", "pico"], Options(&["-b"])),
    (&["nano"], Options(&["-l", "-w"])),
    (
        &[
            "code",
            "code-insiders",
            "codium",
            "cursor",
            "windsurf",
            "zed",
        ],
        Options(&[
            "-d",
            "-m",
            "-n",
            "-r",
            "-w",
            "--diff",
            "--merge",
            "--new-window",
            "--reuse-window",
            "--wait",
        ]),
    ),
    (
        &["mate", "subl"],
        Options(&["-n", "-w", "--new-window", "--wait"]),
    ),
    (
        &["bcompare", "meld", "opendiff", "p4merge"],
        Options(&["-o", "--auto-merge", "--output", "--output="]),
    ),
    (&["kdiff3"], Options(&["-o", "--auto", "--output"])),
    (
        &["gpg", "gpg2", "gpgsm"],
        Options(&[
            "-a",
            "-d",
            "-q",
            "--armor",
            "--batch",
            "--decrypt",
            "--no-tty",
            "--pinentry-mode",
            "--pinentry-mode=",
            "--quiet",
            "--yes",
        ]),
    ),
    (
        &["ssh"],
        Options(&[
            "-4",
            "-6",
            "-A",
            "-C",
            "-T",
            "-a",
            "-i",
            "-l",
            "-p",
            "-q",
            "-v",
            "-x",
            "-oAddKeysToAgent=",
            "-oBatchMode=",
            "-oConnectTimeout=",
            "-oHostKeyAlgorithms=",
            "-oIdentitiesOnly=",
            "-oIdentityFile=",
            "-oLogLevel=",
            "-oPort=",
            "-oPubkeyAcceptedAlgorithms=",
            "-oPubkeyAcceptedKeyTypes=",
            "-oServerAliveCountMax=",
            "-oServerAliveInterval=",
            "-oStrictHostKeyChecking=",
            "-oUser=",
            "-oUserKnownHostsFile=",
        ]),
    ),
    (&["msmtp", "sendmail"], Options(&["-a", "-i", "-t"])),
];

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Literal(Vec<u8>),
    /// A variable whose value is an argument.
    Data,
}

/// What is known of the place that a command runs in.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandContext<'a> {
    /// The working directory of the command.
    pub(super) base: &'a Path,
    /// The directories that a sandboxed command may change.
    pub(super) writable: &'a [PathBuf],
    pub(super) env: &'a Environment,
}

impl CommandContext<'_> {
    /// Returns whether a command of a shell is understood.
    pub(super) fn is_understood(self, value: &[u8]) -> bool {
        let value = value.strip_prefix(b"!").unwrap_or(value);
        commands(value).is_some_and(|all| all.iter().all(|words| self.understand_words(words)))
    }

    /// Returns whether an alias is understood: a command of git, or after `!` of a shell.
    pub(super) fn is_alias_understood(self, value: &[u8], aliases: &[&[u8]]) -> bool {
        if value.starts_with(b"!") {
            return self.is_understood(value);
        }
        // git splits it without a shell, so only quotes and backslashes have a meaning. They are in arguments.
        let words: Vec<&[u8]> = value
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .collect();
        git_call::is_understood(&words, aliases)
    }

    fn understand_words(self, words: &[Word]) -> bool {
        let Some((Word::Literal(program), arguments)) = words.split_first() else {
            return words.is_empty();
        };
        let Some(name) = as_path(program)
            .file_name()
            .and_then(|name| name.to_str().map(str::to_owned))
        else {
            return false;
        };
        let mut listed = PROGRAMS.iter();
        let Some((_, allowed)) = listed.find(|(names, _)| names.contains(&&*name)) else {
            return false;
        };
        self.is_outside(program) && allowed.include(arguments)
    }

    /// Returns whether a program is not in a writable directory.
    fn is_outside(self, program: &[u8]) -> bool {
        let found = if program.contains(&b'/') {
            if !program.starts_with(b"/") {
                return false;
            }
            as_path(program)
        } else if is_builtin(program) {
            return true;
        } else {
            // Without one nothing is run.
            match SearchPath::new(self.env, self.base).candidates(program) {
                (mut candidates, true) => candidates.pop().unwrap_or_default(),
                _ => return true,
            }
        };
        let real = found.canonicalize().unwrap_or_else(|_| found.clone());
        let mut writable = self.writable.iter();
        !writable.any(|directory| real.starts_with(directory) || found.starts_with(directory))
    }
}

impl Arguments {
    fn include(self, words: &[Word]) -> bool {
        match self {
            Any => true,
            Nothing => words.is_empty(),
            Begin(begin) => {
                let mut words = words.iter();
                begin
                    .iter()
                    .all(|one| words.next() == Some(&Word::Literal(one.as_bytes().to_owned())))
            }
            Options(options) => {
                let mut words = words.iter().peekable();
                while let Some(word) = words.next() {
                    let Word::Literal(word) = word else { continue };
                    if !word.first().is_some_and(|byte| b"-+@".contains(byte)) {
                        continue;
                    }
                    // `-o KEY=VALUE` is one option.
                    let value = match words.peek() {
                        Some(Word::Literal(next)) if word == b"-o" && next.contains(&b'=') => {
                            next.clone()
                        }
                        _ => Vec::new(),
                    };
                    let option = [word, &value[..]].concat();
                    if !options.iter().any(|one| is_option(&option, one)) {
                        return false;
                    }
                }
                true
            }
            Git => {
                let literal = |word: &Word| match word {
                    Word::Literal(word) => word.clone(),
                    Word::Data => Vec::new(),
                };
                let words: Vec<Vec<u8>> = words.iter().map(literal).collect();
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                git_call::is_understood(&words, &[])
            }
        }
    }
}

/// Returns whether a word is this option; one that ends with `=` takes any value.
fn is_option(word: &[u8], option: &str) -> bool {
    match option.strip_suffix('=') {
        Some(name) => word
            .strip_prefix(name.as_bytes())
            .is_some_and(|rest| rest.starts_with(b"=")),
        None => word == option.as_bytes(),
    }
}

/// Splits a value into commands of literal words; `None` if anything else is in it.
fn commands(value: &[u8]) -> Option<Vec<Vec<Word>>> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    let mut word: Option<Word> = None;
    let mut at = 0;
    while let Some(byte) = value.get(at) {
        let rest = &value[at..];
        at += match byte {
            b' ' | b'\t' => {
                words.extend(word.take());
                1
            }
            _ if BETWEEN.contains(byte) => {
                words.extend(word.take());
                all.push(std::mem::take(&mut words));
                1
            }
            b'\'' => {
                let end = rest[1..].iter().position(|byte| *byte == b'\'')?;
                extend(&mut word, &rest[1..=end])?;
                end + 2
            }
            b'"' => {
                let end = rest[1..].iter().position(|byte| *byte == b'"')?;
                let quoted = &rest[1..=end];
                if let Some(name) = quoted.strip_prefix(b"$") {
                    data(&mut word, name)?;
                } else if quoted.iter().any(|byte| b"$`\\!".contains(byte)) {
                    return None;
                } else {
                    extend(&mut word, quoted)?;
                }
                end + 2
            }
            b'$' => {
                let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_@".contains(byte);
                let len = rest[1..].iter().take_while(|byte| is_of_name(byte)).count();
                data(&mut word, &rest[1..=len])?;
                len + 1
            }
            // The home directory. A program has to be named without it.
            b'~' if word.is_none() && !words.is_empty() && rest.starts_with(b"~/") => {
                extend(&mut word, b"~")?;
                1
            }
            _ if byte.is_ascii_alphanumeric() || LITERAL.contains(byte) => {
                extend(&mut word, &[*byte])?;
                1
            }
            _ => return None,
        };
    }
    words.extend(word);
    all.push(words);
    Some(all)
}

/// Adds bytes to a literal word.
fn extend(word: &mut Option<Word>, bytes: &[u8]) -> Option<()> {
    match word.get_or_insert(Word::Literal(Vec::new())) {
        Word::Literal(word) => word.extend(bytes),
        Word::Data => return None,
    }
    Some(())
}

/// Begins a word that is one of the known variables.
fn data(word: &mut Option<Word>, name: &[u8]) -> Option<()> {
    let is_known = word.is_none() && DATA.contains(&name);
    is_known.then(|| *word = Some(Word::Data))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out files by hand")]
mod tests {
    use super::*;

    fn understands(value: &str) -> bool {
        let env = Environment::from_pairs([("PATH", "/usr/bin:/bin")], "/work");
        let writable = [PathBuf::from("/work")];
        let base = Path::new("/work");
        let surroundings = CommandContext {
            base,
            writable: &writable,
            env: &env,
        };
        surroundings.is_understood(value.as_bytes())
    }

    #[test]
    fn literal_commands_of_known_programs_are_understood() {
        for value in [
            "",
            "less -R",
            "less -FRX --tabs=4",
            "vim",
            "/usr/bin/vim -f",
            "code --wait",
            "cat",
            "gpg2 --batch",
            "git-lfs smudge -- %f",
            "git-lfs filter-process",
            "'/usr/bin/git-crypt' clean",
            "ssh -i ~/.ssh/id_work -o IdentitiesOnly=yes",
            "diff-so-fancy | less --tabs=4 -RFX",
            "!gh auth git-credential",
            "!git fetch && git status",
            "!git log --format='%h %s'",
            "!gitk --all &",
            "meld \"$LOCAL\" $BASE \"$REMOTE\" --output \"$MERGED\"",
            "true",
            ":",
        ] {
            assert!(understands(value), "{value:?}");
        }
    }

    #[test]
    fn any_other_command_is_not_understood() {
        for value in [
            "!cd $(dirname tools/x) && ./mon",
            "!$(dirname tools/x)/mon",
            "!tools/m*n",
            "python -c \"import runpy; runpy.run_path('tools/x')\"",
            "node .",
            "M=mon; sh $M",
            "tools/mon",
            "./cat",
            "bin/less -R",
            "/work/bin/less -R",
            "less -k tools/keys",
            "less -Rktools/keys",
            "less --lesskey-src=tools/keys",
            "vim -S tools/x",
            "vim -u tools/x",
            "vim +source",
            "vim --cmd so",
            "emacs -l tools/x",
            "emacsclient -a tools/x",
            "nano -s tools/x",
            "ssh -F tools/config",
            "ssh -o ProxyCommand=tools/x",
            "ssh -oProxyCommand=tools/x",
            "ssh -o Include=tools/x",
            "gpg --homedir tools",
            "gpg --agent-program=tools/x",
            "delta --pager=tools/x",
            "gh alias x",
            "gh",
            "$EDITOR",
            "\"$LOCAL\" x",
            "cat$LOCAL",
            "c{a,b}t",
            "cat <(tools/x)",
            "cat >x",
            "cat `x`",
            "cat \"$(x)\"",
            "cat # x",
            "cat\nsh x",
            "~/bin/vim",
            "LESS=R less",
            "make",
            "npx prettier",
            "cargo fmt",
            "env cat",
            "xargs cat",
            "sed -n p",
            "awk 1",
            "cat 'x",
            "!git -c core.pager=tools/x log",
            "!git bisect run tools/x",
            "!git submodule foreach make",
        ] {
            assert!(!understands(value), "{value:?}");
        }
    }

    #[test]
    fn program_in_a_writable_directory_is_not_understood() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let program = top.join("cat");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let env = Environment::from_pairs([("PATH", top.as_os_str())], "/");
        let base = Path::new("/");
        let of = |writable: &[PathBuf]| {
            CommandContext {
                base,
                writable,
                env: &env,
            }
            .is_understood(b"cat")
        };
        assert!(!of(std::slice::from_ref(&top)));
        assert!(of(&[top.join("other")]));
    }
}
