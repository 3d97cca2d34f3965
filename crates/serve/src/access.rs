//! Who may read the page: a request for this address, from this page or from no page, with the cookie of this session.
//!
//! The checks are pure. A name that resolves to loopback (DNS rebinding) has another `Host`; a page of another site or port
//! has another `Origin` or `Sec-Fetch-Site`; another program of this machine has no cookie. The link that begins a session
//! works once, and only for some minutes.

use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderName, Method, Uri, header};
use crucible_model::{Digest, Secret};

use crate::actions::PageRights;

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// It is for another host.
    Host,
    /// It comes from another page.
    Origin,
    /// It would change something.
    Method,
    /// It has no cookie of this session.
    Session,
    /// The link was used, is too old, or was never given.
    Link,
}

impl Denial {
    /// Returns the text of the answer.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Host => {
                "This address belongs to another host. Use the address that `crucible serve` printed."
            }
            Self::Origin => "Another page may not read this one. Open the address in a new tab.",
            Self::Method => "This page is read-only.",
            Self::Session => "Open the link that `crucible serve` printed.",
            Self::Link => "The link was used or is too old. Start `crucible serve` again.",
        }
    }
}

/// The secrets of a session.
pub(crate) struct Access {
    /// The names that the page is reached by, with the port.
    hosts: [String; 2],
    /// The name of the cookie.
    cookie: String,
    /// What the cookie holds.
    session: Secret,
    /// What pages may do.
    rights: PageRights,
    /// The token of the link, until it is used or too old.
    link: Mutex<Option<Digest>>,
}

impl Access {
    /// Creates the access to the page at `port`.
    pub(crate) fn new(port: u16, rights: PageRights, session: Secret, link: &Secret) -> Self {
        Self {
            hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
            // Browsers send cookies of a host to each of its ports.
            cookie: format!("crucible-{port}"),
            session,
            rights,
            link: Mutex::new(Some(Digest::compute(link.expose().as_bytes()))),
        }
    }

    /// Checks everything but the session. A request that changes something must come from a page of this address.
    pub(crate) fn check_source(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Denial> {
        let host = only(headers, &header::HOST).ok_or(Denial::Host)?;
        let is_ours = |host: &str| self.hosts.iter().any(|known| known == host);
        if !is_ours(host)
            || uri
                .authority()
                .is_some_and(|named| !is_ours(named.as_str()))
        {
            return Err(Denial::Host);
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, &header::ORIGIN).ok_or(Denial::Origin)?;
            if origin.strip_prefix("http://") != Some(host) {
                return Err(Denial::Origin);
            }
        }
        let site = HeaderName::from_static("sec-fetch-site");
        if headers.contains_key(&site)
            && !matches!(only(headers, &site), Some("same-origin" | "none"))
        {
            return Err(Denial::Origin);
        }
        match *method {
            Method::GET | Method::HEAD => Ok(()),
            Method::POST if self.rights == PageRights::Land => {
                match headers.contains_key(header::ORIGIN) {
                    true => Ok(()),
                    false => Err(Denial::Origin),
                }
            }
            _ => Err(Denial::Method),
        }
    }

    /// Checks the cookie. Digests are compared, so the time does not depend on how much of a guess is right.
    pub(crate) fn check_session(&self, headers: &HeaderMap) -> Result<(), Denial> {
        let session = Digest::compute(self.session.expose().as_bytes());
        let mut cookies = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let is_ours = |(name, value): (&str, &str)| {
            name == self.cookie && Digest::compute(value.as_bytes()) == session
        };
        match cookies.any(is_ours) {
            true => Ok(()),
            false => Err(Denial::Session),
        }
    }

    /// Exchanges the token of the link for the cookie, once.
    pub(crate) fn exchange(&self, token: &str) -> Result<String, Denial> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if *link != Some(Digest::compute(token.as_bytes())) {
            return Err(Denial::Link);
        }
        *link = None;
        Ok(format!(
            "{}={}; HttpOnly; SameSite=Strict; Path=/",
            self.cookie,
            self.session.expose()
        ))
    }

    /// Makes the link useless.
    pub(crate) fn expire_link(&self) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Returns the value of a header that occurs once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        access_with(PageRights::ReadOnly)
    }

    fn access_with(rights: PageRights) -> Access {
        let (session, link) = ("s".repeat(32), "t".repeat(32));
        Access::new(7, rights, Secret::new(session), &Secret::new(link))
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_requests_from_this_address_pass() {
        let check = |method: Method, uri: &str, pairs: &[(&'static str, &str)]| {
            access().check_source(&method, &uri.parse().unwrap(), &headers(pairs))
        };
        let get = |pairs: &[(&'static str, &str)]| check(Method::GET, "/runs", pairs);
        let host = ("host", "127.0.0.1:7");
        assert_eq!(get(&[host]), Ok(()));
        assert_eq!(
            get(&[("host", "localhost:7"), ("origin", "http://localhost:7")]),
            Ok(())
        );
        assert_eq!(get(&[host, ("sec-fetch-site", "none")]), Ok(()));
        for wrong in [
            "127.0.0.1",
            "127.0.0.1:8",
            "evil.test:7",
            "127.0.0.1.evil.test:7",
            "[::1]:7",
            "LOCALHOST:7",
            "",
        ] {
            assert_eq!(get(&[("host", wrong)]), Err(Denial::Host), "{wrong}");
        }
        assert_eq!(get(&[]), Err(Denial::Host));
        assert_eq!(get(&[host, host]), Err(Denial::Host));
        assert_eq!(
            check(Method::GET, "http://evil.test/runs", &[host]),
            Err(Denial::Host)
        );
        for wrong in [
            "http://evil.test",
            "null",
            "https://127.0.0.1:7",
            "http://localhost:7",
            "http://127.0.0.1:8",
            "",
        ] {
            assert_eq!(
                get(&[host, ("origin", wrong)]),
                Err(Denial::Origin),
                "{wrong}"
            );
        }
        for wrong in ["cross-site", "same-site", "", "x"] {
            assert_eq!(
                get(&[host, ("sec-fetch-site", wrong)]),
                Err(Denial::Origin),
                "{wrong}"
            );
        }
        for method in [
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::OPTIONS,
            Method::CONNECT,
        ] {
            assert_eq!(check(method, "/runs", &[host]), Err(Denial::Method));
        }
    }

    #[test]
    fn change_needs_the_right_and_the_origin_of_a_page() {
        let host = ("host", "127.0.0.1:7");
        let origin = ("origin", "http://127.0.0.1:7");
        let check = |rights, method: Method, pairs: &[(&'static str, &str)]| {
            let uri = "/runs/x/land".parse().unwrap();
            access_with(rights).check_source(&method, &uri, &headers(pairs))
        };
        let post = |pairs: &[(&'static str, &str)]| check(PageRights::Land, Method::POST, pairs);
        assert_eq!(post(&[host, origin]), Ok(()));
        let site = ("sec-fetch-site", "same-origin");
        assert_eq!(post(&[host, origin, site]), Ok(()));
        assert_eq!(post(&[host]), Err(Denial::Origin));
        assert_eq!(post(&[host, ("origin", "null")]), Err(Denial::Origin));
        assert_eq!(
            post(&[host, ("origin", "http://127.0.0.1:8")]),
            Err(Denial::Origin)
        );
        assert_eq!(
            post(&[host, origin, ("sec-fetch-site", "cross-site")]),
            Err(Denial::Origin)
        );
        assert_eq!(post(&[("host", "evil.test"), origin]), Err(Denial::Host));
        let read_only = check(PageRights::ReadOnly, Method::POST, &[host, origin]);
        assert_eq!(read_only, Err(Denial::Method));
        for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
            let denied = check(PageRights::Land, method, &[host, origin]);
            assert_eq!(denied, Err(Denial::Method));
        }
    }

    #[test]
    fn link_works_once_and_the_cookie_always() {
        let access = access();
        assert_eq!(access.exchange(""), Err(Denial::Link));
        assert_eq!(access.exchange("T"), Err(Denial::Link));
        let cookie = access.exchange(&"t".repeat(32)).unwrap();
        assert!(
            cookie.contains("; HttpOnly; SameSite=Strict; Path=/"),
            "{cookie}"
        );
        assert_eq!(access.exchange(&"t".repeat(32)), Err(Denial::Link));
        let pair = cookie.split(';').next().unwrap();
        let check = |cookie: &str| access.check_session(&headers(&[("cookie", cookie)]));
        assert_eq!(check(pair), Ok(()));
        assert_eq!(check(&format!("a=b; {pair}")), Ok(()));
        for wrong in [
            "",
            "crucible-7=",
            "crucible-7=x",
            "crucible-8=ssss",
            &pair[..pair.len() - 1],
        ] {
            assert_eq!(check(wrong), Err(Denial::Session), "{wrong}");
        }
    }

    #[test]
    fn expired_link_is_refused() {
        let access = access();
        access.expire_link();
        assert_eq!(access.exchange(&"t".repeat(32)), Err(Denial::Link));
    }
}
