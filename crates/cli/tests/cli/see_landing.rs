//! Landing from the local page: only with the right, a form, its digest and a request of the page itself.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::see::Site;
use crate::support::{Fixture, answering, good_answer, id_of, small};

/// What a request says besides its form.
struct Post<'a> {
    origin: Option<&'a str>,
    site: Option<&'a str>,
    with_cookie: bool,
}

impl Site {
    fn post(&self, path: &str, form: &str, post: &Post<'_>) -> String {
        let mut lines = vec![
            format!("POST {path} HTTP/1.1"),
            format!("Host: {}", self.host),
        ];
        lines.extend(post.origin.map(|origin| format!("Origin: {origin}")));
        lines.extend(post.site.map(|site| format!("Sec-Fetch-Site: {site}")));
        lines.extend(post.with_cookie.then(|| format!("Cookie: {}", self.cookie)));
        lines.push("Content-Type: application/x-www-form-urlencoded".to_owned());
        lines.push(format!("Content-Length: {}", form.len()));
        lines.push("Connection: close".to_owned());
        let request = format!("{}\r\n\r\n{form}", lines.join("\r\n"));
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The post that the page itself would send.
    fn confirm(&self, path: &str, form: &str) -> String {
        let origin = format!("http://{}", self.host);
        let own = Post {
            origin: Some(&origin),
            site: Some("same-origin"),
            with_cookie: true,
        };
        self.post(path, form, &own)
    }

    /// Opens the page with the forms, and returns the token of the form that lands, and the digits of its digest.
    fn land_form(&self, run: &str) -> (String, String) {
        let page = self.get(&format!("/runs/{run}/land"));
        let (_, land) = page.split_once("Land the change").unwrap();
        let between = |before: &str, after: &str| {
            let (_, rest) = land.split_once(before).unwrap();
            rest.split(after).next().unwrap().to_owned()
        };
        let digest = between("<code>", "</code>");
        assert_eq!(digest.len(), 64, "{digest}");
        (
            between("name=\"token\" value=\"", "\""),
            digest[..12].to_owned(),
        )
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn page_lands_only_what_a_person_confirmed() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let run = id_of(&fixture.start(repo.path()).ok().json());
    let before = repo.head();
    let path = format!("/runs/{run}/land");
    let is_untouched = |what: &str| {
        assert_eq!(repo.head(), before, "{what}");
        assert_eq!(fixture.status()["state"], "verified", "{what}");
    };

    // Without the right there is no form, and nothing can be sent.
    let site = Site::enter(fixture.call(["serve"]));
    assert_eq!(status(&site.get(&path)), "404");
    assert!(!site.get(&format!("/runs/{run}")).contains(&path));
    assert_eq!(status(&site.confirm(&path, "token=x&digits=y")), "405");
    drop(site);

    let site = Site::enter(fixture.call(["serve", "--allow-landing"]));
    assert!(site.get(&format!("/runs/{run}")).contains(&path));
    let (token, digits) = site.land_form(&run);
    let form = format!("token={token}&digits={digits}");
    let own = format!("http://{}", site.host);
    let hostile = [
        Post {
            origin: None,
            site: None,
            with_cookie: true,
        },
        Post {
            origin: Some("null"),
            site: None,
            with_cookie: true,
        },
        Post {
            origin: Some("http://evil.test"),
            site: None,
            with_cookie: true,
        },
        Post {
            origin: Some("http://127.0.0.1:1"),
            site: None,
            with_cookie: true,
        },
        Post {
            origin: Some(&own),
            site: Some("cross-site"),
            with_cookie: true,
        },
        Post {
            origin: Some(&own),
            site: Some("same-site"),
            with_cookie: true,
        },
        Post {
            origin: Some(&own),
            site: Some("same-origin"),
            with_cookie: false,
        },
    ];
    for post in &hostile {
        assert_eq!(
            status(&site.post(&path, &form, post)),
            "403",
            "{:?}",
            post.origin
        );
    }
    is_untouched("hostile request");

    // A wrong digest uses the form.
    let wrong = site.confirm(&path, &format!("token={token}&digits=000000000000"));
    assert!(wrong.contains("The digits do not match"), "{wrong}");
    let stale = site.confirm(&path, &form);
    assert!(stale.contains("was used or is too old"), "{stale}");
    // A form is for one action.
    let (token, digits) = site.land_form(&run);
    let other = site.confirm(
        &format!("/runs/{run}/approve"),
        &format!("token={token}&digits={digits}"),
    );
    assert!(other.contains("for another run or action"), "{other}");
    for nothing in ["", "digits=1", "token=&digits="] {
        assert_eq!(status(&site.confirm(&path, nothing)), "403");
    }
    assert_eq!(status(&site.confirm(&path, &"x".repeat(5_000))), "403");
    assert_eq!(status(&site.confirm("/runs", "")), "404");
    assert_eq!(
        status(&site.confirm(&format!("/runs/{run}/delete"), "")),
        "404"
    );
    is_untouched("wrong form");

    let (token, digits) = site.land_form(&run);
    let done = site.confirm(&path, &format!("token={token}&digits={digits}"));
    assert_eq!(status(&done), "303", "{done}");
    assert!(done.contains(&format!("location: /runs/{run}")), "{done}");
    assert_ne!(repo.head(), before);
    assert_eq!(fixture.status()["state"], "landed");
    let report: Value = fixture.run(["report", &run, "--json"]).ok().json();
    assert_eq!(report["landing"]["commit"], repo.head().as_str());
    let page = site.get(&path);
    assert!(
        page.contains("can be neither approved nor landed"),
        "{page}"
    );
}

#[test]
fn form_of_a_change_that_was_landed_elsewhere_is_refused() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let run = id_of(&fixture.start(repo.path()).ok().json());
    let site = Site::enter(fixture.call(["serve", "--allow-landing"]));
    let (token, digits) = site.land_form(&run);
    fixture.run(["run", "land", &run]).ok();
    let head = repo.head();
    let answer = site.confirm(
        &format!("/runs/{run}/land"),
        &format!("token={token}&digits={digits}"),
    );
    assert_eq!(status(&answer), "409", "{answer}");
    assert!(answer.contains("no longer has"), "{answer}");
    assert_eq!(repo.head(), head);
}
