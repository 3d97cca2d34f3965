//! Each way to make git run a program later by what a command writes in its directories, tried with the git of this machine.
//!
//! A form is tried twice: first without a sandbox, where git has to run the program, and then with `sandbox exec`, where it must not.

use std::path::Path;
use std::process::Command;

use crate::sandbox_writes::{exec, left, repository};
use crate::support::{Call, Fixture, Ran};

/// Before each script. `program FILE` writes a program that leaves the mark, and `settings FILE` settings that name one.
const PRELUDE: &str = "\
repo() { git init -q \"$1\" && git -C \"$1\" commit -q --allow-empty -m x; }\n\
program() { mkdir -p \"$(dirname \"$1\")\" 2>/dev/null; printf '#!/bin/sh\\ntouch {M}\\n' >\"$1\"; chmod +x \"$1\"; }\n\
settings() { mkdir -p \"$(dirname \"$1\")\" 2>/dev/null; printf '[core]\\n fsmonitor = \"touch {M}; false\"\\n' >>\"$1\"; }\n\
submodule() { git -c protocol.file.allow=always submodule \"$@\"; }\n";

/// A way to make git run a program.
pub(crate) struct Form<'f> {
    name: &'f str,
    /// What the user did before, in the repository `{R}` in the directory `{P}`.
    setup: &'f str,
    /// Variables of the user, separated by blanks.
    variables: &'f str,
    /// The writable directories, separated by blanks.
    writable: &'f str,
    /// What the command does.
    plant: &'f str,
    /// What the user does after.
    after: &'f str,
}

impl<'f> Form<'f> {
    pub(crate) const fn new(
        name: &'f str,
        setup: &'f str,
        writable: &'f str,
        plant: &'f str,
        after: &'f str,
    ) -> Self {
        Self {
            name,
            setup,
            variables: "",
            writable,
            plant,
            after,
        }
    }

    pub(crate) const fn with(self, variables: &'f str) -> Self {
        Self { variables, ..self }
    }
}

/// A repository, a place for the mark, and a user.
struct Room<'d> {
    fixture: &'d Fixture,
    place: std::path::PathBuf,
    variables: Vec<(String, String)>,
}

impl<'d> Room<'d> {
    fn new(fixture: &'d Fixture, name: &str, variables: &str) -> Self {
        let place = fixture.path(name);
        std::fs::create_dir_all(place.join("R")).unwrap();
        let mut project = Self {
            fixture,
            place,
            variables: Vec::new(),
        };
        let variables = project.filled(variables);
        let pairs = variables
            .split_whitespace()
            .map(|pair| pair.split_once('=').unwrap());
        project.variables = pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        project
    }

    fn filled(&self, text: &str) -> String {
        let place = self.place.to_str().unwrap();
        let repo = format!("{place}/R");
        let mark = format!("{place}/mark");
        text.replace("{P}", place)
            .replace("{R}", &repo)
            .replace("{M}", &mark)
    }

    /// Runs a script of the user in the repository; what fails in it does not matter.
    fn user(&self, script: &str, variables: &[(String, String)]) -> Ran {
        let mut command = Command::new("sh");
        let (name, mail) = ("Ada", "ada@example.invalid");
        command
            .args(["-c", &self.filled(&format!("{PRELUDE}{script}"))])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.fixture.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", self.place.parent().unwrap())
            .envs([("GIT_AUTHOR_NAME", name), ("GIT_COMMITTER_NAME", name)])
            .envs([("GIT_AUTHOR_EMAIL", mail), ("GIT_COMMITTER_EMAIL", mail)])
            .envs(variables.iter().cloned())
            .current_dir(self.place.join("R"));
        Call::from_command(command).run()
    }

    fn set_up(&self, script: &str) {
        self.user(&format!("repo .; mkdir src; {script}"), &[]);
        assert!(!self.place.join("mark").exists());
    }

    fn exec(&self, writable: &str, script: &str) -> Ran {
        let mut words = vec!["sandbox", "exec"];
        let writable = self.filled(writable);
        for directory in writable.split_whitespace() {
            words.extend(["--write", directory]);
        }
        let script = self.filled(&format!("{PRELUDE}{script}"));
        words.extend(["--", "sh", "-c", &script]);
        let mut call = self.fixture.call(words).current_dir(self.place.join("R"));
        for (name, value) in &self.variables {
            call = call.env(name, value);
        }
        call.run()
    }

    fn is_marked(&self) -> bool {
        self.place.join("mark").exists()
    }
}

pub(crate) fn never_run(forms: &[Form<'_>]) {
    let fixture = Fixture::new();
    for (number, form) in forms.iter().enumerate() {
        let name = form.name;
        let project = Room::new(&fixture, &format!("open{number}"), form.variables);
        project.set_up(form.setup);
        project.user(form.plant, &[]);
        let ran = project.user(form.after, &project.variables);
        assert!(
            project.is_marked(),
            "{name}: git runs nothing without a sandbox: {ran:?}"
        );

        let _ = std::fs::remove_file(fixture.home().join(".gitconfig"));
        let project = Room::new(&fixture, &format!("kept{number}"), form.variables);
        project.set_up(form.setup);
        let planted = project.exec(form.writable, form.plant);
        project.user(form.after, &project.variables);
        assert!(!project.is_marked(), "{name}: {planted:?}");
        let _ = std::fs::remove_file(fixture.home().join(".gitconfig"));
    }
}

/// Runs each script in the sandbox: a name, what the user did before, variables of the user, and the script, which has to succeed.
pub(crate) fn honest(cases: &[(&str, &str, &str, &str)]) {
    let fixture = Fixture::new();
    for (number, (name, setup, variables, script)) in cases.iter().enumerate() {
        let project = Room::new(&fixture, &format!("room{number}"), variables);
        project.set_up(setup);
        let ran = project.exec(".", script);
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
    }
}

const COMMIT: &str = "git commit -qm y --allow-empty";
pub(crate) const STATUS: &str = "git status";

#[test]
fn git_directory_in_two_parts_is_protected() {
    never_run(&[
        Form::new(
            "settings of the shared part",
            "echo '* diff=x' > .gitattributes; echo a > src/a; git add .; git commit -qm a; \
             git clone -q --bare . parts; mkdir head; git rev-parse HEAD > head/HEAD; rm parts/HEAD; echo ../parts > head/commondir",
            ".",
            "mkdir -p parts/info; echo '* diff=x' > parts/info/attributes; \
             printf '[diff \"x\"]\\n textconv = \"touch {M}; cat\"\\n' >> parts/config",
            "cd head; git show",
        ),
        Form::new(
            "above the directory",
            "repo ../main; mkdir -p ../W/.git ../W/src; cp ../main/.git/HEAD ../W/.git/; \
             echo ../../main/.git > ../W/.git/commondir; git -C ../W config core.hooksPath src/hooks",
            "{P}/W/src",
            "program {P}/W/src/hooks/pre-commit",
            "cd ../W; git commit -qm x --allow-empty",
        ),
    ]);
}

#[test]
fn settings_of_outer_repositories_count() {
    never_run(&[
        Form::new(
            "hooks in a submodule",
            "repo ../o; submodule -q add {P}/o dev; git commit -qm s; mkdir dev/hooks; git config core.hooksPath dev/hooks",
            "dev",
            "program dev/hooks/pre-commit",
            COMMIT,
        ),
        Form::new(
            "a filter in a nested repository",
            "repo dev; echo cat > dev/clean; git config filter.x.clean 'sh dev/clean'; echo '* filter=x' > .gitattributes",
            "dev",
            "echo 'touch {M}; cat' > dev/clean",
            "echo b > src/a; git add src",
        ),
        Form::new(
            "included settings in a submodule",
            "repo ../o; submodule -q add {P}/o dev; git commit -qm s; git config include.path ../dev/dev.cfg",
            "dev",
            "settings dev/dev.cfg",
            STATUS,
        ),
        Form::new(
            "attributes in a nested repository",
            "repo dev; git config core.attributesFile dev/attrs; git config filter.x.clean 'touch {M}; cat'",
            "dev",
            "echo '* filter=x' > dev/attrs",
            "echo b > src/a; git add src",
        ),
        Form::new(
            "a submodule of the index in a nested repository",
            "repo mid; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),mid/in",
            "mid",
            "repo mid/in; settings mid/in/.git/config",
            STATUS,
        ),
        Form::new(
            "a linked work tree",
            "git worktree add -q .wt/a; mkdir .wt/a/t; echo true > .wt/a/t/m; git config core.fsmonitor 'sh .wt/a/t/m'",
            ".wt/a",
            "echo 'touch {M}' > .wt/a/t/m",
            STATUS,
        ),
    ]);
}

#[test]
fn repository_of_working_directory_counts() {
    never_run(&[Form::new(
        "hooks elsewhere",
        "mkdir ../hooks; git config core.hooksPath {P}/hooks",
        "{P}/hooks",
        "program {P}/hooks/pre-commit",
        COMMIT,
    )]);
}

#[test]
fn hard_links_to_places_outside_are_found() {
    never_run(&[
        Form::new(
            "a hook",
            "mkdir t; echo true > t/hook; chmod +x t/hook; mkdir -p .git/hooks; ln t/hook .git/hooks/pre-commit",
            "t",
            "printf '#!/bin/sh\\ntouch {M}\\n' > t/hook",
            COMMIT,
        ),
        Form::new(
            "included settings",
            "mkdir t; echo > ../inc; ln ../inc t/inc; git config include.path {P}/inc",
            "t",
            "settings t/inc",
            STATUS,
        ),
        Form::new(
            "the user's own settings",
            "git config --global user.name x; mkdir ../t; ln ~/.gitconfig ../t/config",
            "{P}/t",
            "settings {P}/t/config",
            STATUS,
        ),
        Form::new(
            "a hook of a submodule that is not checked out",
            "repo ../o; submodule -q add {P}/o sub; git commit -qm s; submodule -q deinit -f sub; mkdir t; echo true > t/x; \
             chmod +x t/x; mkdir -p .git/modules/sub/hooks; ln t/x .git/modules/sub/hooks/post-checkout",
            ".",
            "printf '#!/bin/sh\\ntouch {M}\\n' > t/x",
            "submodule update --init",
        ),
    ]);
}

#[test]
fn directory_in_a_guarded_place_is_refused() {
    never_run(&[
        Form::new(
            "templates",
            "mkdir -p t/hooks; git config --global init.templateDir {R}/t",
            "t/hooks",
            "program t/hooks/post-checkout",
            "git clone -q . ../clone",
        ),
        Form::new(
            "a link in a git directory",
            "git worktree add -q {P}/wt; mkdir my; mv .git/worktrees my/; ln -s ../my/worktrees .git/worktrees",
            "my/worktrees/wt",
            "cp -r .git/objects .git/refs my/worktrees/wt/; cp .git/config my/worktrees/wt/config; \
             settings my/worktrees/wt/config; echo . > my/worktrees/wt/commondir",
            "git -C {P}/wt status",
        ),
        Form::new(
            "a directory of hooks",
            "mkdir -p h/lib; echo true > h/lib/f; printf '#!/bin/sh\\n. h/lib/f\\n' > h/pre-commit; chmod +x h/pre-commit; \
             git config core.hooksPath h",
            "h/lib",
            "echo 'touch {M}' > h/lib/f",
            COMMIT,
        ),
        Form::new(
            "templates of a variable",
            "mkdir -p t/hooks",
            "t/hooks",
            "program t/hooks/post-checkout",
            "git clone -q . ../clone",
        )
        .with("GIT_TEMPLATE_DIR={R}/t"),
    ]);
}

#[test]
fn writable_directories_are_protected_together() {
    never_run(&[
        Form::new(
            "hooks of one in another",
            "mkdir -p ../t/hooks; git config core.hooksPath ../t/hooks",
            ". {P}/t",
            "program ../t/hooks/pre-commit",
            COMMIT,
        ),
        Form::new(
            "a git directory of one in another",
            "mkdir -p ../A/x ../B; echo 'gitdir: {P}/B/miss' > ../A/x/.git",
            "{P}/A {P}/B",
            "git init -q --bare {P}/B/miss; git config --file {P}/B/miss/config core.bare false; settings {P}/B/miss/config",
            "git -C {P}/A/x status",
        ),
        Form::new(
            "one in the hooks of another",
            "mkdir -p t/hooks; git config core.hooksPath t/hooks",
            ". t/hooks",
            "program t/hooks/pre-commit",
            COMMIT,
        ),
    ]);
}

#[test]
fn submodules_that_are_not_checked_out_count() {
    never_run(&[
        Form::new(
            "hooks",
            "repo ../o; submodule -q add {P}/o sub; git commit -qm s; mkdir -p t/hooks; \
             git -C sub config core.hooksPath ../t/hooks; submodule -q deinit -f sub",
            ".",
            "program t/hooks/post-checkout",
            "submodule update --init",
        ),
        Form::new(
            "a link to hooks",
            "repo ../o; submodule -q add {P}/o sub; git commit -qm s; submodule -q deinit -f sub; \
             rm -rf .git/modules/sub/hooks; mkdir hk; ln -s ../../../hk .git/modules/sub/hooks",
            ".",
            "program hk/post-checkout",
            "submodule update --init",
        ),
        Form::new(
            "a submodule of another branch",
            "repo ../o; b=$(git branch --show-current); git checkout -qb f; submodule -q add {P}/o sub; git commit -qm s; \
             git -C sub config core.hooksPath ../hk; git checkout -q --recurse-submodules $b",
            ".",
            "program hk/post-checkout",
            "git checkout -q --recurse-submodules f; git -C sub checkout -q --detach",
        ),
    ]);
}

#[test]
fn words_with_punctuation_are_whole() {
    never_run(&[
        Form::new(
            "a comma",
            "mkdir t; echo true > t/a,b; git config core.fsmonitor 'sh t/a,b'",
            ".",
            "echo 'touch {M}' > t/a,b",
            STATUS,
        ),
        Form::new(
            "an equals sign",
            "mkdir t=1; echo true > t=1/x; git config core.fsmonitor 'sh t=1/x'",
            ".",
            "echo 'touch {M}' > t=1/x",
            STATUS,
        ),
        Form::new(
            "a colon and braces",
            "mkdir t; echo true > 't/a:{b}'; git config core.fsmonitor \"sh t/a:{b}\"",
            ".",
            "echo 'touch {M}' > 't/a:{b}'",
            STATUS,
        ),
        Form::new(
            "quotes in a word",
            "mkdir t; echo true > 't/my check.sh'; git config core.fsmonitor 'sh t/\"my check\".sh'",
            ".",
            "echo 'touch {M}' > 't/my check.sh'",
            STATUS,
        ),
        Form::new(
            "an absolute path",
            "repo ../A,b=1; echo true > ../A,b=1/x; git -C ../A,b=1 config core.fsmonitor \"sh {P}/A,b=1/x\"",
            "{P}/A,b=1",
            "echo 'touch {M}' > {P}/A,b=1/x",
            "git -C {P}/A,b=1 status",
        ),
        Form::new(
            "an interpreter's name",
            "echo true > sh; git config core.fsmonitor 'sh sh'",
            ".",
            "echo 'touch {M}' > ./sh",
            STATUS,
        ),
    ]);
}

#[test]
fn paths_are_expanded_as_by_git() {
    never_run(&[
        Form::new(
            "hooks relative to the git directory",
            "git config core.hooksPath ../t/hooks; git config receive.denyCurrentBranch updateInstead; mkdir t; git clone -q . ../c",
            ".",
            "program t/hooks/pre-receive",
            "cd ../c; git commit -qm y --allow-empty; git push -q",
        ),
        Form::new(
            "the home of a user",
            "mkdir hk; git config core.hooksPath \"~root/..{R}/hk\"",
            ".",
            "program hk/pre-commit",
            COMMIT,
        ),
        Form::new(
            "the prefix of git",
            "mkdir hk; git config core.hooksPath \"%(prefix)/../../../../..{R}/hk\"",
            ".",
            "program hk/pre-commit",
            COMMIT,
        ),
        Form::new(
            "included from the home of a user",
            "git config include.path \"~root/..{R}/inc\"",
            ".",
            "settings inc",
            STATUS,
        ),
    ]);
}

#[test]
fn variables_of_git_count() {
    never_run(&[
        Form::new(
            "a setting",
            "mkdir hk",
            ".",
            "program hk/pre-commit",
            COMMIT,
        )
        .with("GIT_CONFIG_PARAMETERS='core.hooksPath'='hk'"),
        Form::new(
            "an older setting",
            "mkdir hk",
            ".",
            "program hk/pre-commit",
            COMMIT,
        )
        .with("GIT_CONFIG_PARAMETERS='core.hooksPath=hk'"),
        Form::new(
            "an included file that includes",
            "printf '[include]\\npath = {R}/more\\n' > inc",
            ".",
            "settings more",
            STATUS,
        )
        .with("GIT_CONFIG_PARAMETERS='include.path'='{R}/inc'"),
        Form::new(
            "a git directory",
            "mkdir ../W; echo > ../W/inc; git config include.path {P}/W/inc",
            "{P}/W",
            "settings {P}/W/inc",
            STATUS,
        )
        .with("GIT_DIR={R}/.git GIT_WORK_TREE={P}/W"),
        Form::new(
            "subcommands of git",
            "mkdir ../d; cp -rs $(git --exec-path) ../d/ex",
            "{P}/d",
            "program {P}/d/ex/git-zz",
            "git zz",
        )
        .with("GIT_EXEC_PATH={P}/d/ex"),
    ]);
}

/// A word behind an interpreter is a script, whatever is before the interpreter, and whether or not it exists.
#[test]
fn scripts_without_a_path_are_protected() {
    const PLANT: &str = "echo 'touch {M}; true' > mon";
    never_run(&[
        Form::new(
            "a missing one",
            "git config core.fsmonitor 'sh mon'",
            ".",
            PLANT,
            STATUS,
        ),
        Form::new(
            "one behind a wrapper with an argument",
            "echo true > mon; git config core.fsmonitor 'timeout 5 sh mon'",
            ".",
            PLANT,
            STATUS,
        ),
        Form::new(
            "one that a shell sources",
            "echo true > mon; git config core.fsmonitor \"bash -c 'source mon'\"",
            ".",
            PLANT,
            STATUS,
        ),
        Form::new(
            "the input of a shell",
            "echo true > mon; git config alias.q '!cat mon | sh'",
            ".",
            PLANT,
            "git q",
        ),
        Form::new(
            "a directory of Python",
            "mkdir tools; git config core.fsmonitor 'python3 tools'",
            ".",
            "echo 'open(\"{M}\", \"w\")' > tools/__main__.py",
            STATUS,
        ),
        Form::new(
            "the settings of another program",
            "printf 'Host *\\n' > sc; git config core.sshCommand 'ssh -F sc'; git remote add o git@h.invalid:x",
            ".",
            "printf 'Host *\\n ProxyCommand touch {M}\\n' > sc",
            "git fetch o",
        ),
        Form::new(
            "a command of an unfinished rebase",
            "mkdir t; echo true > t/t; git rebase -q -x false --root; printf '  exec\\tsh t/t\\n' >> .git/rebase-merge/git-rebase-todo",
            ".",
            "echo 'touch {M}' > t/t",
            "git rebase --continue",
        ),
    ]);
}

#[test]
fn settings_in_aliases_count() {
    never_run(&[
        Form::new(
            "hooks",
            "mkdir gh; git config alias.ci '-c core.hooksPath=gh commit'",
            ".",
            "program gh/pre-commit",
            "git ci -qm y --allow-empty",
        ),
        Form::new(
            "a git directory",
            "git config alias.dot '!git --git-dir=dot.g --work-tree=. status'",
            ".",
            "git init -q --bare dot.g; git config -f dot.g/config core.bare false; settings dot.g/config",
            "git dot",
        ),
        Form::new(
            "a git directory in a variable",
            "git config alias.dot '!GIT_DIR=dot.g GIT_WORK_TREE=. git status'",
            ".",
            "git init -q --bare dot.g; git config -f dot.g/config core.bare false; settings dot.g/config",
            "git dot",
        ),
        Form::new(
            "another work tree",
            "mkdir c; echo > c/f; git config alias.dot '!git -C c status'",
            ".",
            "repo c; settings c/.git/config",
            "git dot",
        ),
        Form::new(
            "templates",
            "mkdir tp; git config alias.cl 'clone --template=tp'",
            ".",
            "program tp/hooks/post-checkout",
            "git cl -q . ../cl",
        ),
        Form::new(
            "commands in submodules",
            "repo ../o; submodule -q add {P}/o sub; git commit -qm s; git config alias.each 'submodule foreach sh upd'",
            ".",
            "echo 'touch {M}' > sub/upd",
            "git each",
        ),
        Form::new(
            "a setting in a variable",
            "git config alias.s '--config-env=core.fsmonitor=MON status'",
            ".",
            "program mon",
            "git s",
        )
        .with("MON=./mon"),
        Form::new(
            "a git directory whose objects are elsewhere",
            "git clone -q --bare . b; mv b/objects ../objs",
            "b",
            "settings b/config",
            "git --git-dir=b --work-tree=. status",
        )
        .with("GIT_OBJECT_DIRECTORY={P}/objs"),
    ]);
}

#[test]
fn repositories_of_addresses_cannot_be_created() {
    never_run(&[
        Form::new(
            "an address without a slash",
            "git remote add o m",
            ".",
            "git init -q --bare m.git; program m.git/hooks/pre-receive",
            "git push -q o HEAD",
        ),
        Form::new(
            "a remote that is not a name",
            "git config remote.pushDefault m",
            ".",
            "git init -q --bare m; program m/hooks/pre-receive",
            "git push -q m HEAD",
        ),
        Form::new(
            "a part of a name in a key",
            "mkdir m; git config url.{R}/m/p-.pushInsteadOf gh:; git remote add o gh:x.git",
            ".",
            "git init -q --bare m/p-x.git; program m/p-x.git/hooks/pre-receive",
            "git push -q o HEAD",
        ),
        Form::new(
            "a file of a remote",
            "mkdir m .git/remotes; printf 'URL: {R}/m/x.git\\nPush: HEAD:refs/heads/x\\n' > .git/remotes/origin",
            ".",
            "git init -q --bare m/x.git; program m/x.git/hooks/pre-receive",
            "git push -q origin",
        ),
        Form::new(
            "a file of a branch",
            "mkdir -p m .git/branches; echo '{R}/m/x.git' > .git/branches/origin",
            ".",
            "git init -q --bare m/x.git; program m/x.git/hooks/pre-receive",
            "git push -q origin HEAD",
        ),
        Form::new(
            "a remote",
            "mkdir m; git remote add origin {R}/m/x.git",
            ".",
            "git init -q --bare m/x.git; program m/x.git/hooks/pre-receive",
            "git push -q origin HEAD",
        ),
        Form::new(
            "a prefix in a key",
            "mkdir m; git config url.{R}/m/.insteadOf gh:; git remote add origin gh:x.git",
            ".",
            "git init -q --bare m/x.git; program m/x.git/hooks/pre-receive",
            "git push -q origin HEAD",
        ),
    ]);
}

#[test]
fn missing_places_cannot_be_created() {
    never_run(&[
        Form::new(
            "a program with its directory",
            "git config core.fsmonitor build/mon",
            ".",
            "program build/mon",
            STATUS,
        ),
        Form::new(
            "included settings with their directory",
            "git config include.path ../build/gen/cfg",
            ".",
            "settings build/gen/cfg",
            STATUS,
        ),
        Form::new(
            "hooks below a file",
            "echo x > hk; git config core.hooksPath hk/hooks",
            ".",
            "rm hk; program hk/hooks/pre-commit",
            COMMIT,
        ),
        Form::new(
            "a submodule with its directory",
            "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),a/b; git commit -qm g",
            ".",
            "mkdir -p a; repo a/b; settings a/b/.git/config",
            STATUS,
        ),
        Form::new(
            "a linked work tree that was removed",
            "git worktree add -q ../wt; rm -rf ../wt",
            "{P}",
            "mkdir {P}/wt; echo 'gitdir: {P}/wt/g' > {P}/wt/.git; git init -q --bare {P}/wt/g; \
             git config -f {P}/wt/g/config core.bare false; settings {P}/wt/g/config",
            "git -C {P}/wt status",
        ),
        Form::new(
            "a program of an unfinished rebase",
            "mkdir t; echo true > t/t; git rebase -q -x false --root; echo 'exec sh t/t' >> .git/rebase-merge/git-rebase-todo",
            ".",
            "echo 'touch {M}' > t/t",
            "git rebase --continue",
        ),
    ]);
}

#[test]
fn borrowed_objects_are_read_only() {
    let fixture = Fixture::new();
    let setup = "mkdir ../o; cp -r .git/objects ../o/objects; echo {P}/o/objects > .git/objects/info/alternates";
    let plant = "for file in {P}/o/objects/new {P}/o/objects/info/alternates; do echo x > $file && echo planted; done; echo x > {P}/o/free";
    let project = Room::new(&fixture, "room", "");
    project.set_up(setup);
    let ran = project.exec("{P}/o", plant).ok();
    assert_eq!(ran.stdout, "", "{ran:?}");
    assert!(project.place.join("o/free").exists());
    let ran = project.exec("{P}/o/objects/info", "true").exits(2);
    assert!(
        ran.stderr.contains("git runs programs from there"),
        "{ran:?}"
    );
}

#[test]
fn honest_work_beside_settings_is_possible() {
    let fixture = Fixture::new();
    for (number, (name, setup, writable, script)) in [
        (
            "prefixes of gitflow",
            "git config gitflow.prefix.release release/; git config gitflow.prefix.versiontag v/",
            ".",
            "mkdir release v && echo x > release/notes && echo x > v/1",
        ),
        (
            "an alias that names a file",
            "echo > src/a; git config alias.l 'log --format=%h/%s src/a'; echo > main; git config alias.m '!git checkout main'",
            ".",
            "echo x > src/a && echo x > main",
        ),
        (
            "files and directories with the names of words",
            "git config alias.l 'log --oneline'; git config alias.t '!make test'; git config core.pager delta; \
             git config alias.p 'push origin HEAD'; git remote add origin https://host/a",
            ".",
            "mkdir log origin && echo x > test && echo x > make && echo x > delta && echo x > HEAD",
        ),
        (
            "a remote that another file of settings names",
            "git config --global remote.pushDefault mine; git remote add mine https://host/a",
            ".",
            "mkdir mine",
        ),
        (
            "ignored files and templates",
            "echo x > .ignored; git config core.excludesFile .ignored; git config commit.template src/template",
            ".",
            "echo x > .ignored && echo x > src/template",
        ),
        (
            "places of other tools",
            "git config lfs.storage build/lfs; git config svn-remote.svn.fetch src/trunk:refs/remotes/t; mkdir build",
            ".",
            "mkdir build/lfs src/trunk",
        ),
        (
            "addresses of other machines",
            "git remote add origin git@host:src/a; echo > src/a; git config branch.x.merge refs/heads/x",
            ".",
            "echo x > src/a && mkdir refs",
        ),
        (
            "a remote in the same repository",
            "git remote add here .; git remote add up ..; git remote add sub ./dev; repo dev",
            ".",
            "echo x > dev/new && echo x > new",
        ),
        ("no hooks", "git config core.hooksPath ''", ".", "echo x > src/new"),
        (
            "a git directory elsewhere",
            "rm -rf .git; git init -q --separate-git-dir {P}/apart .",
            ".",
            "git status && echo x > new",
        ),
        (
            "a missing submodule in a missing directory",
            "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),a/b; git commit -qm g",
            ".",
            "mkdir -p a && echo x > a/other && git status",
        ),
        (
            "a file in place of a submodule",
            "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),a/b; git commit -qm g; echo x > a",
            ".",
            "git status && echo x > new",
        ),
        (
            "files that only look like a repository",
            "mkdir -p t/objects t/refs; echo x > t/HEAD",
            ".",
            "echo x > t/new && echo x > t/HEAD",
        ),
        (
            "a hard link outside of the directories",
            "echo > ../inc; ln ../inc ../other; ln ../inc inc; git config include.path {P}/inc; rm inc",
            ".",
            "echo x > new",
        ),
        (
            "a work tree in a bare repository",
            "git clone -q --bare . ../b.git; git -C ../b.git worktree add -q main",
            "{P}/b.git/main",
            "git -C {P}/b.git/main status && echo x > {P}/b.git/main/new",
        ),
        (
            "a program of a package that is not installed",
            "git config filter.x.clean node_modules/.bin/clean",
            ".",
            "mkdir -p node_modules/.bin && echo x > node_modules/.bin/other",
        ),
        ("a helper on the path", "git config credential.helper store.sh", ".", "echo x > store.sh"),
    ]
    .iter()
    .enumerate()
    {
        let project = Room::new(&fixture, &format!("room{number}"), "");
        project.set_up(setup);
        let ran = project.exec(writable, script);
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        let left = |name: &str| Path::new(&project.filled("{R}")).join(name).exists();
        assert!(!left("a/b") && !left("store.sh.git"), "{name}");
    }
}

/// A mark of a cache, or what makes a directory a repository, hides nothing of a directory that was there.
#[test]
fn planted_marks_hide_nothing_from_the_list() {
    let (fixture, repo) = (Fixture::new(), repository());
    let plant = "echo x > src/.envrc; mkdir src/.vscode; echo x > src/.vscode/tasks.json; git init --quiet src/x";
    let planted = ["src/.vscode/tasks.json", "src/x/.git", "src/.envrc"];
    let script =
        format!("echo > src/CACHEDIR.TAG; {plant}; for i in 1 2 3 4; do echo x > src/$i.pth; done");
    let ran = exec(&fixture, repo.path(), &[], &script).ok().json();
    for path in planted {
        assert!(left(&ran).contains(&path), "{path}: {ran:#}");
    }
    let repo = repository();
    let script = format!("mkdir src/objects src/refs; echo > src/HEAD; {plant}");
    let ran = exec(&fixture, repo.path(), &[], &script).ok().json();
    assert_eq!(left(&ran), planted, "{ran:#}");
    let repo = repository();
    let script = format!("mkdir src/objects src/refs; cp .git/HEAD src/HEAD; {plant}");
    let ran = exec(&fixture, repo.path(), &[], &script).ok().json();
    let with_src = ["src", planted[0], planted[1], planted[2]];
    assert_eq!(left(&ran), with_src, "{ran:#}");
    // A git directory in two parts, and one among the files of programs.
    let repo = repository();
    let script = "mkdir src/d node_modules; cp .git/HEAD src/d/; echo ../c > src/d/commondir\n\
        for i in 1 2 3 4; do echo x > node_modules/$i.pth; done; git init --quiet --bare node_modules/b";
    let ran = exec(&fixture, repo.path(), &[], script).ok().json();
    assert_eq!(
        left(&ran),
        ["node_modules", "node_modules/b", "src/d"],
        "{ran:#}"
    );
}
