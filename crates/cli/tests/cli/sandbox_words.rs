//! Words of settings that name what git runs: addresses, programs on `PATH`, variables, and what only a shell understands.

use crate::sandbox_plants::{Form, STATUS, honest, never_run};

#[test]
fn every_word_of_a_remote_command_is_an_address() {
    const RECEIVE: &str = "git init -q --bare m; program m/hooks/pre-receive; \
         git -C m config receive.advertisePushOptions true";
    let form = |name, setup| Form::new(name, setup, ".", RECEIVE, "git pb");
    never_run(&[
        form(
            "behind an option with a value",
            "git config alias.pb 'push -o ci.skip m HEAD'",
        ),
        form(
            "behind the program at the other end",
            "git config alias.pb 'push --receive-pack git-receive-pack m HEAD'",
        ),
        form(
            "in an option",
            "git config alias.pb 'push --repo=m'; git config push.default current",
        ),
        form(
            "of another subcommand",
            "git config alias.pb 'send-pack m HEAD:refs/heads/z'",
        ),
        form(
            "in a variable",
            "git config alias.pb '!D=m; git push $D HEAD'",
        ),
    ]);
}

#[test]
fn programs_on_path_are_protected() {
    const PATH: &str = "PATH={R}/bin:/usr/local/bin:/usr/bin:/bin";
    never_run(&[
        Form::new(
            "an existing one",
            "program bin/mon; git config core.fsmonitor mon; echo true > bin/mon",
            ".",
            "program bin/mon",
            STATUS,
        )
        .with(PATH),
        Form::new(
            "a missing one",
            "mkdir bin; git config core.fsmonitor mon",
            ".",
            "program bin/mon",
            STATUS,
        )
        .with(PATH),
        Form::new(
            "a link",
            "mkdir -p bin lib; program lib/mon; echo true > lib/mon; ln -s ../lib/mon bin/mon; git config core.fsmonitor mon",
            ".",
            "rm bin/mon; program bin/mon; program lib/mon",
            STATUS,
        )
        .with(PATH),
        Form::new(
            "a subcommand",
            "program bin/git-foo; echo true > bin/git-foo",
            ".",
            "program bin/git-foo",
            "git foo",
        )
        .with(PATH),
        Form::new(
            "a subcommand in an alias",
            "mkdir bin; git config alias.f 'foo x'",
            ".",
            "program bin/git-foo",
            "git f",
        )
        .with(PATH),
        Form::new(
            "a helper for credentials",
            "mkdir bin; git config credential.helper 'foo --x'",
            ".",
            "program bin/git-credential-foo",
            "printf 'protocol=https\\nhost=h\\n\\n' | git credential fill",
        )
        .with(PATH),
        Form::new(
            "a helper for remotes",
            "mkdir bin; git remote add o foo::x",
            ".",
            "program bin/git-remote-foo",
            "git fetch o",
        )
        .with(PATH),
        Form::new(
            "a relative directory",
            "mkdir bin; git config core.fsmonitor mon",
            ".",
            "program bin/mon",
            STATUS,
        )
        .with("PATH=bin:/usr/local/bin:/usr/bin:/bin"),
        Form::new(
            "a search path in the setting",
            "mkdir bin; git config core.fsmonitor 'PATH=bin:$PATH mon'",
            ".",
            "program bin/mon",
            STATUS,
        ),
    ]);
}

#[test]
fn variables_of_shells_and_interpreters_count() {
    const WRITE: &str = "echo 'touch {M}; true' > env";
    never_run(&[
        Form::new(
            "the start of bash",
            "mkdir -p .git/hooks; printf '#!/bin/bash\\ntrue\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
            ".",
            WRITE,
            "git commit -qm y --allow-empty",
        )
        .with("BASH_ENV={R}/env"),
        Form::new(
            "the start of bash in the setting",
            "git config core.fsmonitor 'BASH_ENV=env bash -c true'",
            ".",
            WRITE,
            STATUS,
        ),
        Form::new(
            "modules of perl",
            "git config core.fsmonitor 'perl -MFoo -e 1'; mkdir lib; echo '1;' > lib/Foo.pm",
            ".",
            "echo 'system(\"touch {M}\"); 1;' > lib/Foo.pm",
            STATUS,
        )
        .with("PERL5LIB=lib"),
        Form::new(
            "modules of python in the setting",
            "git config core.fsmonitor 'PYTHONPATH=lib python3 -c \"import foo\"'; mkdir lib; echo 1 > lib/foo.py",
            ".",
            "echo 'open(\"{M}\", \"w\")' > lib/foo.py",
            STATUS,
        ),
    ]);
}

/// Existing files, spelled so that only a shell knows which they are.
#[test]
fn pieces_of_words_that_name_files_count() {
    const SETUP: &str = "mkdir tools; echo true > tools/mon; echo true > mon";
    const PLANT: &str = "for file in mon tools/mon; do echo 'touch {M}; true' > $file; done";
    let commands = [
        "sh ${X:-tools/mon}",
        "sh ${X-mon}",
        "sh ${X:=./tools/mon}",
        "sh ${GIT_PREFIX}mon",
        "sh \"$GIT_PREFIX\"mon",
        "D=tools/; sh ${D}mon",
        "N=mon; sh tools/$N",
        "bash -c \"sh ~+/mon\"",
        "bash -c \"sh tools/{mon,}\"",
    ];
    let setups = commands.map(|command| {
        let quoted = command.replace('\'', "'\\''");
        format!("{SETUP}; git config core.fsmonitor '{quoted}'")
    });
    let forms: Vec<Form<'_>> = commands
        .iter()
        .zip(&setups)
        .map(|(name, setup)| Form::new(name, setup, ".", PLANT, STATUS))
        .collect();
    never_run(&forms);
}

#[test]
fn scripts_behind_other_words_are_protected() {
    const PLANT: &str = "echo 'touch {M}; true' > mon";
    never_run(&[
        Form::new(
            "behind a program with its path",
            "git config core.fsmonitor '/usr/bin/env sub/mon'",
            ".",
            "program sub/mon",
            STATUS,
        ),
        Form::new(
            "in an option of ssh",
            "git config core.sshCommand 'ssh -o \"ProxyCommand=sh mon\"'",
            ".",
            PLANT,
            "git ls-remote ssh://h.invalid/x",
        ),
        Form::new(
            "in an option of an alias",
            "echo a > src/a; git add .; git commit -qm a; echo b > src/a; git config alias.dt 'difftool -y \"--extcmd=sh mon\"'",
            ".",
            PLANT,
            "git dt",
        ),
        Form::new(
            "behind a variable",
            "git config core.fsmonitor 's=sh; $s mon'",
            ".",
            PLANT,
            STATUS,
        ),
        Form::new(
            "behind a restricted shell",
            "git config core.fsmonitor 'rbash mon'",
            ".",
            PLANT,
            STATUS,
        ),
        Form::new(
            "behind an option of sed",
            "git config core.fsmonitor 'true; sed -n -f mon /etc/passwd'",
            ".",
            "echo '1e touch {M}' > mon",
            STATUS,
        ),
        Form::new(
            "a directory of python",
            "mkdir tools; git config core.fsmonitor 'python3 tools'",
            ".",
            "echo 'open(\"{M}\", \"w\")' > x.py; python3 -c 'import py_compile; py_compile.compile(\"x.py\", \"tools/__main__.pyc\")'",
            STATUS,
        ),
        Form::new(
            "git as a user's name",
            "mkdir ../bin; printf '#!/bin/sh\\nshift; shift; exec \"$@\"\\n' > ../bin/sudo; printf '#!/bin/sh\\nexec sh \"$@\"\\n' > ../bin/show; \
             chmod +x ../bin/*; echo true > mon; git config core.fsmonitor 'sudo -u git show mon'",
            ".",
            PLANT,
            STATUS,
        )
        .with("PATH={P}/bin:/usr/local/bin:/usr/bin:/bin"),
        Form::new(
            "a work tree behind a keyword",
            "mkdir web; git config alias.t '!if cd web; then git status; fi'",
            ".",
            "git init -q web; settings web/.git/config",
            "git t",
        ),
    ]);
}

#[test]
fn honest_work_beside_words_is_possible() {
    honest(&[
        (
            "references of a push",
            "git remote add origin https://host/a; git config alias.p 'push -o ci.skip origin main'; git config alias.u 'push -u origin HEAD'",
            "",
            "mkdir main HEAD && echo x > ci",
        ),
        (
            "paths of an archive",
            "git config alias.z 'archive -o z.zip HEAD src'",
            "",
            "echo x > src/new && echo x > z.zip",
        ),
        (
            "programs of a virtual environment that no setting names",
            "mkdir -p venv/bin; ln -s /bin/true venv/bin/python3; git config core.pager less; git config alias.l '!git log'",
            "PATH={R}/venv/bin:/usr/local/bin:/usr/bin:/bin",
            "echo x > venv/bin/pip && ln -s pip venv/bin/pip3 && rm venv/bin/python3",
        ),
        (
            "modules that no program of git loads",
            "mkdir lib; git config core.fsmonitor false",
            "PYTHONPATH=lib:. PERL5LIB=src ENV=dev",
            "echo x > lib/a.py && echo x > src/A.pm && mkdir dev",
        ),
        (
            "functions and parts of a shell",
            "git config alias.f '!f() { if test -n \"$1\"; then echo \"$1\"; else git status; fi; }; f'; mkdir bin",
            "PATH={R}/bin:/usr/local/bin:/usr/bin:/bin",
            "for name in f if test echo git; do echo x > bin/$name || exit; done",
        ),
        (
            "values of options",
            "git config credential.helper 'cache --timeout 3600'; git config core.pager 'delta --features mine'; git config core.sshCommand 'ssh -i key'",
            "",
            "echo x > 3600 && echo x > mine && echo x > key",
        ),
    ]);
}
