//! Selects the most informative files of a repository, with their roles.

use crucible_repo::{FileKind, RepoSample, SampledFile};

use crate::artifact::{KeyFile, KeyFileRole};

/// The most key files.
const LIMIT: usize = 50;
/// The most ordinary source files among them.
const MAX_SOURCE: usize = 10;

/// Entry points of programs and libraries, by file name.
const ENTRY_POINTS: &[&str] = &[
    "main.rs",
    "lib.rs",
    "main.go",
    "main.py",
    "__main__.py",
    "app.py",
    "cli.py",
    "manage.py",
    "main.c",
    "main.cc",
    "main.cpp",
    "main.js",
    "main.ts",
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
    "index.tsx",
    "server.js",
    "server.ts",
    "main.rb",
    "main.lua",
    "main.swift",
    "main.zig",
    "main.nim",
    "main.kt",
    "Main.kt",
    "Main.java",
    "Program.cs",
];
/// The deepest directory of an entry point: `cmd/tool/main.go` has two levels.
const ENTRY_DEPTH: usize = 2;

/// Files other than build files that configure the build.
const BUILD_CONFIG: &[&str] = &[
    "build.rs",
    "flake.nix",
    "shell.nix",
    "default.nix",
    "rust-toolchain.toml",
    "tsconfig.json",
];

/// Selects from the files that were read: by role, within a role by level; sorted by path.
pub(super) fn key_files(sampling: &RepoSample) -> Vec<KeyFile> {
    let mut chosen: Vec<(KeyFileRole, &SampledFile)> = sampling
        .files
        .iter()
        .filter_map(|file| Some((role(file)?, file)))
        .collect();
    // The sort is stable: within a role the reading order is kept.
    chosen.sort_by_key(|(role, _)| *role);
    let (source, mut chosen): (Vec<_>, Vec<_>) = chosen
        .into_iter()
        .partition(|(role, _)| *role == KeyFileRole::Source);
    chosen.truncate(LIMIT);
    let remaining = MAX_SOURCE.min(LIMIT - chosen.len());
    chosen.extend(source.into_iter().take(remaining));
    let key_file = |(role, file): (KeyFileRole, &SampledFile)| KeyFile {
        path: file.path.clone(),
        role,
        size_bytes: file.total_bytes,
    };
    let mut files: Vec<KeyFile> = chosen.into_iter().map(key_file).collect();
    files.sort_unstable();
    files
}

fn role(file: &SampledFile) -> Option<KeyFileRole> {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    Some(match file.kind {
        _ if BUILD_CONFIG.contains(&name) => KeyFileRole::BuildConfig,
        FileKind::Build | FileKind::Lock => KeyFileRole::BuildConfig,
        FileKind::Readme => KeyFileRole::Readme,
        FileKind::License => KeyFileRole::License,
        FileKind::Container => KeyFileRole::Dockerfile,
        FileKind::Workflow => KeyFileRole::Ci,
        FileKind::Other => return None,
        FileKind::Source if is_entry_point(&file.path, name) => KeyFileRole::EntryPoint,
        FileKind::Source => KeyFileRole::Source,
    })
}

fn is_entry_point(path: &str, name: &str) -> bool {
    ENTRY_POINTS.contains(&name) && path.matches('/').count() <= ENTRY_DEPTH
}
