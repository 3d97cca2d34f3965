//! `artifacts/find_web.json`: pages that a researcher fetched, strictly parsed and checked
//! against the guardrails.
//!
//! Crucible fetches nothing. Quotations are untrusted text ([`crucible_model::Untrusted`]). Accepted results
//! are allowed by the operator, bounded, and free of secrets.

mod check;
mod domain;
mod read;

pub(crate) use check::check_web;
pub use domain::{Domain, DomainError};
pub(crate) use read::LocatorKind;

use crucible_model::{Timestamp, Untrusted};

/// What a researcher found, as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindWeb {
    /// The limits that the researcher kept.
    pub constraints: WebConstraints,
    /// What was found, in the researcher's order.
    pub results: Vec<WebResult>,
}

/// Limits of a research: those of the guardrails, or tighter ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebConstraints {
    /// Hosts of the pages, each with its subdomains.
    pub allow_domains: Vec<Domain>,
    /// Maximum number of searches. The researcher states how many there were; the document lists none.
    pub max_queries: u64,
    /// Different pages at the most.
    pub max_pages: u64,
}

/// One place on one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebResult {
    /// The page, as it was written; an `https` address of an allowed host.
    pub url: Untrusted,
    /// Where on the page.
    pub locator: WebLocator,
    /// When it was fetched.
    pub fetched_at: Timestamp,
    /// Its content.
    pub excerpt: Untrusted,
    /// Why it matters, in the researcher's words.
    pub why_relevant: Untrusted,
    /// Reasons against relying on it, in the researcher's words.
    pub risk_flags: Vec<Untrusted>,
}

/// A place on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebLocator {
    /// How it is named.
    pub kind: LocatorKind,
    /// Its name or numbers.
    pub value: Untrusted,
}
