//! Readers of arguments that several commands have, and the settings that such arguments override.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use crucible_run::check_subject;
use crucible_sandbox::Strength;

/// Reads the name of a provider.
pub(crate) fn providers() -> PossibleValuesParser {
    PossibleValuesParser::new(crucible_llm::registry().iter().map(|kind| kind.name()))
}

/// Reads the name of a strength of the sandbox.
pub(crate) fn strengths() -> PossibleValuesParser {
    PossibleValuesParser::new(Strength::ALL.map(Strength::as_str))
}

/// Reads the subject of a commit.
pub(crate) fn subject(text: &str) -> Result<String, String> {
    check_subject(text)
        .map(|()| text.to_owned())
        .map_err(|error| error.to_string())
}

/// The settings that `--provider` and `--cassette` override.
pub(crate) fn provider_settings(
    provider: &Option<String>,
    cassette: &Option<PathBuf>,
) -> Vec<(&'static str, String)> {
    overrides([
        ("llm.provider", provider.clone()),
        ("llm.replay.cassette", path_text(cassette)),
    ])
}

/// The settings that given options override.
pub(crate) fn overrides<const N: usize>(
    options: [(&'static str, Option<String>); N],
) -> Vec<(&'static str, String)> {
    let given = |(key, value): (&'static str, Option<String>)| Some((key, value?));
    options.into_iter().filter_map(given).collect()
}

/// The value of a setting that is a path.
pub(crate) fn path_text(path: &Option<PathBuf>) -> Option<String> {
    path.as_ref().map(|path| path.display().to_string())
}
