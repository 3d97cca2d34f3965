//! The judge of `find_web.json`: is it allowed, within the limits, and fit to be shown? Pure.

use std::collections::BTreeSet;

use crucible_model::{
    Code, Finding, Timestamp, Untrusted, Verdict, is_hidden, says_nothing, short_line,
};
use crucible_secrets::Scanner;

use super::domain::{Domain, page_of};
use super::read::{LocatorKind, UncheckedFindWeb, UncheckedResult, read};
use super::{FindWeb, WebConstraints, WebLocator, WebResult};
use crate::contract::{FindMode, Guardrails, WebLimits};

const NOT_ENABLED: Code = Code::new("find-web-not-enabled");
const INVALID: Code = Code::new("find-web-invalid");
const CONSTRAINTS: Code = Code::new("find-web-constraints");
const DOMAIN_INVALID: Code = Code::new("find-domain-invalid");
const URL: Code = Code::new("find-web-url");
const DOMAIN: Code = Code::new("find-web-domain");
const PAGES: Code = Code::new("find-web-pages");
const LOCATOR: Code = Code::new("find-web-locator");
const INSTANT: Code = Code::new("find-web-instant");
const TEXT: Code = Code::new("find-web-text");
const SECRET: Code = Code::new("find-web-secret");

/// How much of a value is shown in a finding.
const SHOWN: usize = 80;

/// Parses `artifacts/find_web.json` and checks it against the guardrails at the time `now`.
///
/// # Errors
///
/// The verdict if it refuses the document. It names every problem, but only the first error of form.
pub(crate) fn check_web(
    bytes: &[u8],
    guardrails: &Guardrails,
    now: Timestamp,
) -> Result<FindWeb, Verdict> {
    let FindMode::ResolverPlusWeb(limits) = &guardrails.find_mode else {
        let hint = "The guardrails say resolver_only: remove the file, or start a run with find.find_mode = \"resolver_plus_web\".";
        return Err(Verdict::new(vec![Finding::error(
            NOT_ENABLED,
            "artifacts/find_web.json",
            hint,
        )]));
    };
    let written = read(bytes).map_err(|problem| {
        let hint = "Write it as docs/contracts/find_web.md says.";
        Verdict::new(vec![Finding::error(INVALID, problem, hint)])
    })?;
    let mut judge = Judge {
        verdict: Verdict::default(),
        now,
    };
    let allowed = judge.domains(&limits.allow_domains, "allow_domains of the guardrails");
    let own = judge.domains(&written.allow_domains, "constraints.allow_domains");
    judge.constraints(&written, &own, limits, &allowed);
    judge.pages(&written, limits);
    let constraints = WebConstraints {
        allow_domains: own,
        max_queries: written.max_queries,
        max_pages: written.max_pages,
    };
    let numbered = written.results.into_iter().enumerate();
    let results: Vec<WebResult> = numbered
        .filter_map(|(index, result)| {
            judge.result(index + 1, result, &allowed, &constraints.allow_domains)
        })
        .collect();
    if judge.verdict.passes() {
        Ok(FindWeb {
            constraints,
            results,
        })
    } else {
        Err(judge.verdict)
    }
}

struct Judge {
    verdict: Verdict,
    now: Timestamp,
}

impl Judge {
    fn refuse(&mut self, code: Code, subject: String, hint: impl Into<String>) {
        self.verdict.push(Finding::error(code, subject, hint));
    }

    /// Returns the entries that are host names; the others are reported.
    fn domains(&mut self, entries: &[String], list: &str) -> Vec<Domain> {
        let mut domains = Vec::new();
        for entry in entries {
            match entry.parse::<Domain>() {
                Ok(domain) => domains.push(domain),
                Err(error) => {
                    let subject = format!("{list}: {}", short_line(entry, SHOWN));
                    self.refuse(
                        DOMAIN_INVALID,
                        subject,
                        format!("Name hosts only: {error}."),
                    );
                }
            }
        }
        domains
    }

    /// The researcher may hold itself to less than the guardrails allow, and not to more.
    fn constraints(
        &mut self,
        written: &UncheckedFindWeb,
        own: &[Domain],
        limits: &WebLimits,
        allowed: &[Domain],
    ) {
        for domain in own {
            if !allowed.iter().any(|wider| wider.covers(domain)) {
                let hint = "Remove it; the guardrails do not allow it.";
                self.refuse(
                    CONSTRAINTS,
                    format!("constraints.allow_domains: {domain}"),
                    hint,
                );
            }
        }
        for (key, stated, limit) in [
            ("max_queries", written.max_queries, limits.max_queries),
            ("max_pages", written.max_pages, limits.max_pages),
        ] {
            if stated > limit {
                let subject = format!("constraints.{key}: {stated}");
                self.refuse(
                    CONSTRAINTS,
                    subject,
                    format!("The guardrails allow at most {limit}."),
                );
            }
        }
    }

    fn pages(&mut self, written: &UncheckedFindWeb, limits: &WebLimits) {
        let pages: BTreeSet<String> = written
            .results
            .iter()
            .map(|result| page_of(&result.url))
            .collect();
        let most = written.max_pages.min(limits.max_pages);
        if pages.len() as u64 > most {
            let hint = format!("At most {most} are allowed: keep the results that matter.");
            self.refuse(PAGES, format!("{} different pages", pages.len()), hint);
        }
    }

    /// Returns a result that may be shown; otherwise reports why not.
    fn result(
        &mut self,
        number: usize,
        result: UncheckedResult,
        allowed: &[Domain],
        own: &[Domain],
    ) -> Option<WebResult> {
        let place = |what: &str| format!("result {number}, {what}");
        self.address(&place("url"), &result.url, allowed, own);
        if let Some(problem) = misfit(result.kind, &result.value) {
            let subject = format!("{}: {}", place("locator"), short_line(&result.value, SHOWN));
            self.refuse(
                LOCATOR,
                subject,
                format!("A locator of type {} {problem}.", result.kind.name()),
            );
        }
        let fetched_at = self.instant(&place("fetched_at"), &result.fetched_at);
        let texts = [
            (place("url"), &result.url),
            (place("locator"), &result.value),
            (place("excerpt"), &result.excerpt),
            (place("why_relevant"), &result.why_relevant),
        ];
        let flags = result
            .risk_flags
            .iter()
            .map(|flag| (place("risk_flags"), flag));
        for (subject, text) in texts.into_iter().chain(flags) {
            self.text(subject, text);
        }
        Some(WebResult {
            url: Untrusted::new(result.url),
            locator: WebLocator {
                kind: result.kind,
                value: Untrusted::new(result.value),
            },
            fetched_at: fetched_at?,
            excerpt: Untrusted::new(result.excerpt),
            why_relevant: Untrusted::new(result.why_relevant),
            risk_flags: result.risk_flags.into_iter().map(Untrusted::new).collect(),
        })
    }

    fn address(&mut self, place: &str, url: &str, allowed: &[Domain], own: &[Domain]) {
        let host = match Domain::of_url(url) {
            Ok(host) => host,
            Err(error) => {
                let subject = format!("{place}: {}", short_line(url, SHOWN));
                return self.refuse(
                    URL,
                    subject,
                    format!("Give a plain https address: {error}."),
                );
            }
        };
        for (list, name) in [
            (allowed, "the guardrails allow"),
            (own, "its own constraints allow"),
        ] {
            if !list.iter().any(|domain| domain.covers(&host)) {
                let hint = format!("Remove the result: its host is not one that {name}.");
                return self.refuse(DOMAIN, format!("{place}: {host}"), hint);
            }
        }
    }

    fn instant(&mut self, place: &str, text: &str) -> Option<Timestamp> {
        let subject = || format!("{place}: {}", short_line(text, SHOWN));
        let Some(instant) = text.parse::<Timestamp>().ok().filter(|_| is_rfc_3339(text)) else {
            self.refuse(
                INSTANT,
                subject(),
                "Write it in UTC, such as 2026-01-31T09:30:00Z.",
            );
            return None;
        };
        if instant > self.now {
            let hint = format!(
                "It is {} now; correct the clock, or write when the page was actually fetched.",
                self.now
            );
            self.refuse(INSTANT, subject(), hint);
        }
        Some(instant)
    }

    /// Checks that a quotation is visible text without a secret.
    fn text(&mut self, place: String, text: &str) {
        let hidden = |c: char| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t');
        if says_nothing(text) {
            self.refuse(TEXT, place, "Fill in this field, or remove the result.");
        } else if let Some(c) = text.chars().find(|c| hidden(*c)) {
            let subject = format!("{place}: {}", c.escape_unicode());
            self.refuse(TEXT, subject, "Remove the invisible characters.");
        } else if let Some(found) = Scanner::builtin().scan(text.as_bytes()).first() {
            let subject = format!("{place}: {}", found.rule);
            self.refuse(
                SECRET,
                subject,
                "Remove what looks like a secret; the text is stored and shown.",
            );
        }
    }
}

/// What is wrong with the value of a locator.
fn misfit(kind: LocatorKind, value: &str) -> Option<&'static str> {
    let number = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit())
            && (text == "0" || !text.starts_with('0'));
        text.parse::<u64>().ok().filter(|_| is_plain)
    };
    let line = |text: &str| number(text).filter(|line| *line > 0);
    let fits = match kind {
        LocatorKind::Heading => !value.contains(is_hidden),
        LocatorKind::Anchor => !value.contains(|c: char| is_hidden(c) || c.is_whitespace()),
        LocatorKind::LineRange => match value.split_once('-') {
            None => line(value).is_some(),
            Some((first, last)) => line(first)
                .zip(line(last))
                .is_some_and(|(first, last)| first <= last),
        },
        LocatorKind::Offset => number(value).is_some(),
    };
    let form = match kind {
        LocatorKind::Heading => "must have the heading's text, on one line",
        LocatorKind::Anchor => "must have a name without spaces",
        LocatorKind::LineRange => {
            "must have a line from 1, or the first and last line joined by `-`, such as 12-30"
        }
        LocatorKind::Offset => "must have a whole number",
    };
    (!fits).then_some(form)
}

/// Returns whether date and time are complete RFC 3339 in UTC; the parser checks their values.
fn is_rfc_3339(text: &str) -> bool {
    let shape = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
    let full_text = text
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end_matches('Z');
    let fraction = text
        .split_once('.')
        .map(|(_, rest)| rest.trim_end_matches('Z'));
    full_text.bytes().map(shape).eq(*b"0000-00-00T00:00:00")
        && text.matches('Z').count() == 1
        && fraction.is_none_or(|digits| {
            (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests;
