//! Names of hosts, and the host of an address. Pure, and stricter than what fetches pages: an address that two programs
//! could read in two ways is invalid.
//!
//! - Case does not matter: upper case means what lower case means.
//! - Names are ASCII. An international name stands in its `xn--` form and is compared as it stands, so a name that only
//!   looks like an allowed one is another.
//! - A name has at least two labels and no final dot. An IP address in any notation is not a name.
//! - An address is `https`, without user, password and port.

use std::fmt;
use std::str::FromStr;

/// The longest address, in bytes.
const MAX_URL: usize = 2048;

/// The name of a host, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain(String);

/// Why a text is not a host name, or an address is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// It is empty or longer than a name can be.
    #[error("a host name must have 1 to 253 characters")]
    Length,
    /// It is not ASCII.
    #[error("a host name must be ASCII; write an international name in its xn-- form")]
    NotAscii,
    /// It ends with a dot.
    #[error("a host name must not end with a dot")]
    FinalDot,
    /// It has one label.
    #[error("a host name needs at least two parts, such as docs.example")]
    OneLabel,
    /// A part of it is invalid.
    #[error(
        "each part of a host name must have 1 to 63 of a-z, 0-9 and `-`, without `-` at its ends; subdomains are included without `*`"
    )]
    Label,
    /// It is a number.
    #[error("an IP address is not a host name")]
    Address,
    /// The address is not of the web, or not encrypted.
    #[error("an address must begin with https://")]
    Scheme,
    /// The address is too long.
    #[error("an address must have at most {MAX_URL} bytes")]
    Long,
    /// It has an invalid character.
    #[error(
        "an address must not hold spaces, backslashes, quotes, brackets or non-ASCII characters; percent-encode them"
    )]
    Character,
    /// It names a user.
    #[error("an address must not contain a user or password")]
    User,
    /// It names a port.
    #[error("an address must not contain a port")]
    Port,
}

impl Domain {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `host` is this host or one below it: `docs.example` covers `api.docs.example` and not `mydocs.example`.
    #[must_use]
    pub fn covers(&self, host: &Self) -> bool {
        host.0
            .strip_suffix(&self.0)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }

    /// The host of an address.
    ///
    /// # Errors
    ///
    /// See [`DomainError`].
    pub(crate) fn of_url(url: &str) -> Result<Self, DomainError> {
        authority(url).and_then(|authority| authority.parse())
    }
}

/// The page that an address names: without the part after `#`, and with its host in lower case.
pub(super) fn page_of(url: &str) -> String {
    let page = url.split('#').next().unwrap_or_default();
    let host = authority(url).unwrap_or_default();
    let rest = page
        .get("https://".len() + host.len()..)
        .unwrap_or_default();
    format!(
        "https://{}{}",
        host.to_ascii_lowercase(),
        if rest.is_empty() { "/" } else { rest }
    )
}

impl FromStr for Domain {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, DomainError> {
        if text.is_empty() || text.len() > 253 {
            return Err(DomainError::Length);
        }
        if !text.is_ascii() {
            return Err(DomainError::NotAscii);
        }
        if text.ends_with('.') {
            return Err(DomainError::FinalDot);
        }
        if text.starts_with('[') {
            return Err(DomainError::Address);
        }
        let name = text.to_ascii_lowercase();
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(plain)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if !name.split('.').all(fits) {
            return Err(DomainError::Label);
        }
        // Browsers treat a name as an IPv4 address if its last part is a decimal or hexadecimal number.
        let last = name.rsplit('.').next().unwrap_or_default();
        let hexadecimal = last
            .strip_prefix("0x")
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(DomainError::Address);
        }
        if !name.contains('.') {
            return Err(DomainError::OneLabel);
        }
        Ok(Self(name))
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the text between `https://` and the path, if it is a host alone.
fn authority(url: &str) -> Result<&str, DomainError> {
    if url.len() > MAX_URL {
        return Err(DomainError::Long);
    }
    let rest = match url.split_at_checked("https://".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https://") => rest,
        _ => return Err(DomainError::Scheme),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if !authority.is_ascii() {
        return Err(DomainError::NotAscii);
    }
    if authority.contains('@') {
        return Err(DomainError::User);
    }
    if authority.starts_with('[') {
        return Err(DomainError::Address);
    }
    if !url.bytes().all(stands_in_a_url) || !escapes_are_whole(url) || authority.contains('%') {
        return Err(DomainError::Character);
    }
    if authority.contains(':') {
        return Err(DomainError::Port);
    }
    Ok(authority)
}

/// The characters of RFC 3986, without the brackets of IP addresses.
fn stands_in_a_url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&'()*+,;=%".contains(&byte)
}

fn escapes_are_whole(url: &str) -> bool {
    let mut after = url.split('%').skip(1);
    after.all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn domain(text: &str) -> Domain {
        text.parse().unwrap()
    }

    #[test]
    fn domain_covers_its_subdomains() {
        let docs = domain("Docs.Example");
        assert_eq!(docs.as_str(), "docs.example");
        for host in [
            "docs.example",
            "DOCS.EXAMPLE",
            "api.docs.example",
            "xn--bcher-kva.docs.example",
        ] {
            assert!(docs.covers(&domain(host)), "{host}");
        }
        for host in [
            "mydocs.example",
            "docs.example.com",
            "example.com",
            "a.example",
            "xn--docs-example.com",
        ] {
            assert!(!docs.covers(&domain(host)), "{host}");
        }
    }

    #[test]
    fn invalid_name_has_specific_error() {
        use DomainError as E;
        for (text, error) in [
            ("", E::Length),
            (&*"a.".repeat(200), E::Length),
            ("döcs.example", E::NotAscii),
            ("docs.example.", E::FinalDot),
            ("example", E::OneLabel),
            ("localhost", E::OneLabel),
            ("*.example", E::Label),
            (".example", E::Label),
            ("a..example", E::Label),
            ("-a.example", E::Label),
            ("a-.example", E::Label),
            ("a_b.example", E::Label),
            ("docs.example:443", E::Label),
            ("https://docs.example", E::Label),
            ("127.0.0.1", E::Address),
            ("127.1", E::Address),
            ("2130706433", E::Address),
            ("0x7f.0.0.0x1", E::Address),
            ("a.0x", E::Address),
            ("[::1]", E::Address),
        ] {
            assert_eq!(text.parse::<Domain>(), Err(error), "{text}");
        }
    }

    #[test]
    fn only_plain_address_has_a_host() {
        use DomainError as E;
        for url in [
            "https://docs.example",
            "https://docs.example/",
            "HTTPS://Docs.Example/a?b=c&d=%20#e",
            "https://docs.example?q=https://evil.example/@x:1",
            "https://docs.example/a@b:c",
        ] {
            assert_eq!(Domain::of_url(url), Ok(domain("docs.example")), "{url}");
        }
        for (url, error) in [
            ("http://docs.example/", E::Scheme),
            ("//docs.example/", E::Scheme),
            ("https:/docs.example/", E::Scheme),
            ("file:///etc/passwd", E::Scheme),
            (" https://docs.example/", E::Scheme),
            ("https://docs.example@evil.example/", E::User),
            ("https://u:p@docs.example/", E::User),
            ("https://docs.example:443/", E::Port),
            ("https://docs.example:/", E::Port),
            ("https://docs.example./", E::FinalDot),
            ("https://127.0.0.1/", E::Address),
            ("https://[::1]/", E::Address),
            ("https://evil.example\\.docs.example/", E::Character),
            ("https://docs.example/a b", E::Character),
            ("https://docs.example/a\nb", E::Character),
            ("https://docs.example/\u{202e}", E::Character),
            ("https://docs%2eexample/", E::Character),
            ("https://docs.example/%", E::Character),
            ("https://docs.example/%zz", E::Character),
            ("https://docs.example/[x]", E::Character),
            ("https://döcs.example/", E::NotAscii),
            ("https://docs\u{ff0e}example/", E::NotAscii),
            ("https://", E::Length),
            ("https:///docs.example", E::Length),
        ] {
            assert_eq!(Domain::of_url(url), Err(error), "{url}");
        }
        assert_eq!(
            Domain::of_url(&format!("https://docs.example/{}", "a".repeat(MAX_URL))),
            Err(E::Long)
        );
    }

    #[test]
    fn parts_of_one_page_are_one_page() {
        assert_eq!(
            page_of("https://Docs.Example"),
            page_of("https://docs.example/#a")
        );
        assert_ne!(
            page_of("https://docs.example/A"),
            page_of("https://docs.example/a")
        );
        assert_ne!(
            page_of("https://docs.example/?a"),
            page_of("https://docs.example/")
        );
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn any_text_is_safe_and_name_round_trips(text in any::<String>(), host in "[a-z0-9]{1,9}(\\.[a-z0-9-]{1,9}){1,3}") {
                let _ = Domain::of_url(&text);
                let _ = page_of(&text);
                if let Ok(domain) = host.parse::<Domain>() {
                    prop_assert_eq!(Domain::of_url(&format!("https://{host}/x#y")), Ok(domain));
                }
            }
        }
    }
}
