//! The section `[find]` of the settings: whether a run may use the web, and how much of it.

use crucible_model::Failure;
use crucible_settings::{FindScope, Settings};

use crate::contract::{FindMode, WebLimits};
use crate::find::Domain;

/// Reads the section `[find]` for the guardrails of a run.
///
/// # Errors
///
/// Fails if a value is not allowed, or if the web is allowed without a host.
pub(crate) fn find_settings(config: &Settings) -> Result<FindMode, Failure> {
    let refuse = |message: String, hint: &str| Err(Failure::usage(message).hint(hint));
    match config.find.find_mode.get() {
        Ok(FindScope::ResolverOnly) => return Ok(FindMode::ResolverOnly),
        Ok(FindScope::ResolverPlusWeb) => {}
        Err(other) => {
            let message = format!("find.find_mode is {other:?}");
            return refuse(
                message,
                "It takes \"resolver_only\" or \"resolver_plus_web\".",
            );
        }
    }
    let mut allow_domains = Vec::new();
    for entry in &config.find.allow_domains {
        match entry.parse::<Domain>() {
            Ok(domain) if allow_domains.contains(&domain.to_string()) => {}
            Ok(domain) => allow_domains.push(domain.to_string()),
            Err(error) => {
                let hint = "Name hosts alone, such as docs.example; the hosts below them are allowed with them.";
                return refuse(format!("find.allow_domains: {entry:?}: {error}"), hint);
            }
        }
    }
    if allow_domains.is_empty() {
        let message =
            "find.find_mode is \"resolver_plus_web\", and find.allow_domains is empty".to_owned();
        return refuse(
            message,
            "Name the hosts that may be cited: allow_domains = [\"docs.example\"]",
        );
    }
    let (max_queries, max_pages) = (config.find.max_queries, config.find.max_pages);
    for (key, number) in [
        ("find.max_queries", max_queries),
        ("find.max_pages", max_pages),
    ] {
        if number == 0 || u32::try_from(number).is_err() {
            return refuse(
                format!("{key} must be from 1 to 4294967295"),
                "Set a whole number in this range.",
            );
        }
    }
    Ok(FindMode::ResolverPlusWeb(WebLimits {
        allow_domains,
        max_queries,
        max_pages,
    }))
}

#[cfg(test)]
mod tests {
    use crucible_host::env::Environment;
    use crucible_settings::ConfigFiles;

    use super::*;
    use crate::contract::Guardrails;

    fn settings(set: &[(&str, &str)]) -> Result<FindMode, String> {
        let files = ConfigFiles {
            user: "/nonexistent/config.toml".into(),
            ..ConfigFiles::default()
        };
        let flags: Vec<(&str, String)> = set
            .iter()
            .map(|(key, value)| (*key, (*value).to_owned()))
            .collect();
        let config = Settings::load(&files, &Environment::default(), &flags).unwrap();
        find_settings(&config).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn no_web_access_is_allowed_by_default() {
        assert_eq!(settings(&[]), Ok(FindMode::ResolverOnly));
    }

    #[test]
    fn web_limits_round_trip_through_guardrails() {
        let web = [
            ("find.find_mode", "resolver_plus_web"),
            (
                "find.allow_domains",
                "Docs.Example, docs.example, b.example",
            ),
        ];
        let find_mode = settings(&web).unwrap();
        let limits = WebLimits {
            allow_domains: vec!["docs.example".to_owned(), "b.example".to_owned()],
            max_queries: 5,
            max_pages: 10,
        };
        assert_eq!(find_mode, FindMode::ResolverPlusWeb(limits));
        let guardrails = Guardrails {
            find_mode,
            max_files: 1,
            max_total_bytes: 1,
            max_iterations: 1,
        };
        assert_eq!(Guardrails::parse(&guardrails.render()), Ok(guardrails));
    }

    #[test]
    fn invalid_setting_is_refused_with_its_key() {
        let web = ("find.find_mode", "resolver_plus_web");
        let docs = ("find.allow_domains", "docs.example");
        for (set, expected) in [
            (
                &[("find.find_mode", "anywhere")][..],
                "find.find_mode is \\\"anywhere\\\"",
            ),
            (&[web], "find.allow_domains is empty"),
            (
                &[web, ("find.allow_domains", "a.example; b.example")],
                "find.allow_domains",
            ),
            (
                &[web, ("find.allow_domains", "a.example\nmax_pages: 99")],
                "find.allow_domains",
            ),
            (&[web, ("find.allow_domains", "*")], "find.allow_domains"),
            (
                &[web, docs, ("find.max_pages", "0")],
                "find.max_pages must be from 1 to 4294967295",
            ),
            (
                &[web, docs, ("find.max_queries", "4294967296")],
                "find.max_queries must be from 1 to 4294967295",
            ),
        ] {
            let error = settings(set).unwrap_err();
            assert!(error.contains(expected), "{expected} in {error}");
        }
    }
}
