//! What is accepted, and everything that is not.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn guardrails() -> Guardrails {
    let web = WebLimits {
        allow_domains: vec!["docs.example".to_owned(), "Lang.Example".to_owned()],
        max_queries: 3,
        max_pages: 2,
    };
    Guardrails {
        find_mode: FindMode::ResolverPlusWeb(web),
        max_files: 1,
        max_total_bytes: 1,
        max_iterations: 1,
    }
}

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn good() -> Value {
    json!({
        "schema_version": "ctcp-find-web-v1",
        "constraints": { "allow_domains": ["api.docs.example", "lang.example"], "max_queries": 3, "max_pages": 2 },
        "results": [
            {
                "url": "https://api.docs.example/retry#limits",
                "locator": { "type": "heading", "value": "Limits" },
                "fetched_at": "2026-03-01T11:59:59.5Z",
                "excerpt": "At most three attempts are made.\nThen the call fails.",
                "why_relevant": "It states the limit that the goal speaks of.",
                "risk_flags": ["undated"],
            },
            {
                "url": "https://lang.example/std",
                "locator": { "type": "line_range", "value": "12-30" },
                "fetched_at": "2026-03-01T12:00:00Z",
                "excerpt": "retry(times)",
                "why_relevant": "the function",
                "risk_flags": [],
            },
        ],
    })
}

fn judge(document: &Value) -> Result<FindWeb, Verdict> {
    check_web(document.to_string().as_bytes(), &guardrails(), now())
}

/// Returns the codes of the findings after replacing the value at a JSON pointer.
fn with(pointer: &str, value: Value) -> Vec<String> {
    let mut document = good();
    *document.pointer_mut(pointer).unwrap() = value;
    codes(judge(&document))
}

fn codes(judged: Result<FindWeb, Verdict>) -> Vec<String> {
    let findings = judged
        .err()
        .map(|verdict| verdict.findings().to_vec())
        .unwrap_or_default();
    findings
        .into_iter()
        .map(|finding| finding.code.to_string())
        .collect()
}

#[test]
fn a_good_document_is_accepted_whole() {
    let web = judge(&good()).unwrap();
    assert_eq!((web.results.len(), web.constraints.max_pages), (2, 2));
    assert_eq!(web.results[0].locator.kind, LocatorKind::Heading);
    assert_eq!(web.results[0].risk_flags[0].as_str(), "undated");
    assert_eq!(
        format!("{:?}", web.results[0].excerpt),
        "Untrusted(53 bytes)"
    );
    let mut none = good();
    none["results"] = json!([]);
    assert!(judge(&none).unwrap().results.is_empty());
}

#[test]
fn schema_and_judge_agree() {
    let form = include_str!("../../../../../../docs/schemas/ctcp-find-web-v1.schema.json");
    let form = jsonschema::validator_for(&serde_json::from_str(form).unwrap()).unwrap();
    assert!(form.is_valid(&good()));
    for pointer in [
        "/schema_version",
        "/constraints/max_pages",
        "/results/0/locator/type",
        "/results/0/url",
    ] {
        let mut document = good();
        *document.pointer_mut(pointer).unwrap() = json!([]);
        assert!(!form.is_valid(&document), "{pointer}");
    }
}

#[test]
fn resolver_only_reads_no_pages() {
    let closed = Guardrails {
        find_mode: FindMode::ResolverOnly,
        ..guardrails()
    };
    for bytes in [good().to_string().as_bytes(), b"not even json", b""] {
        assert_eq!(
            codes(check_web(bytes, &closed, now())),
            ["find-web-not-enabled"]
        );
    }
}

#[test]
fn another_form_is_refused_with_its_place() {
    let refused = |bytes: &[u8]| {
        let verdict = check_web(bytes, &guardrails(), now()).unwrap_err();
        assert_eq!(verdict.findings()[0].code, INVALID);
        verdict.findings()[0].subject.clone()
    };
    let text = good().to_string();
    for (from, to, expected) in [
        (
            "ctcp-find-web-v1",
            "ctcp-find-web-v2",
            "none of ctcp-find-web-v1",
        ),
        (
            "\"results\"",
            "\"queries\":[],\"results\"",
            "unknown key `queries`",
        ),
        (
            "\"max_queries\":3",
            "\"max_queries\":3,\"max_queries\":3",
            "stands twice",
        ),
        ("\"max_queries\":3", "\"max_queries\":-1", "`max_queries`"),
        ("\"max_queries\":3", "\"max_queries\":0.5", "`max_queries`"),
        (
            "\"heading\"",
            "\"page\"",
            "none of heading, anchor, line_range, offset",
        ),
        ("\"risk_flags\":[]", "\"risk_flags\":null", "item 2"),
        (
            "\"excerpt\":\"retry(times)\"",
            "\"excerpt\":\"  \"",
            "`excerpt` of item 2",
        ),
        (
            ",\"why_relevant\":\"the function\"",
            "",
            "lacks `why_relevant`",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let problem = refused(text.replacen(from, to, 1).as_bytes());
        assert!(problem.contains(expected), "{expected} in {problem}");
    }
    let long = text.replacen("retry(times)", &"x".repeat(4001), 1);
    assert!(refused(long.as_bytes()).contains("longer than 4000"));
    assert!(refused(&vec![b' '; (1 << 20) + 1]).contains("the limit is 1048576"));
    assert!(refused(b"{\"schema_version\":\"\xff\"}").contains("UTF-8"));
    assert!(refused(format!("{text} {text}").as_bytes()).contains("a single JSON object"));
}

#[test]
fn constraints_cannot_exceed_guardrails() {
    assert_eq!(with("/constraints/max_queries", json!(0)), [""; 0]);
    assert_eq!(
        with("/constraints/max_queries", json!(4)),
        ["find-web-constraints"]
    );
    assert_eq!(
        with("/constraints/max_pages", json!(u64::MAX)),
        ["find-web-constraints"]
    );
    let wider = json!(["docs.example", "lang.example", "example.com"]);
    assert_eq!(
        with("/constraints/allow_domains", wider),
        ["find-web-constraints"]
    );
    let above = json!(["docs.example", "lang.example", "b.example"]);
    assert_eq!(
        with("/constraints/allow_domains", above),
        ["find-web-constraints"]
    );
    let unusual_json = json!([
        "docs.example",
        "lang.example",
        "*.docs.example",
        "127.0.0.1"
    ]);
    assert_eq!(
        with("/constraints/allow_domains", unusual_json),
        ["find-domain-invalid"; 2]
    );
    let FindMode::ResolverPlusWeb(mut limits) = guardrails().find_mode else {
        panic!()
    };
    limits.allow_domains.push("*".to_owned());
    let edited = Guardrails {
        find_mode: FindMode::ResolverPlusWeb(limits),
        ..guardrails()
    };
    assert_eq!(
        codes(check_web(good().to_string().as_bytes(), &edited, now())),
        ["find-domain-invalid"]
    );
}

#[test]
fn page_of_unlisted_host_is_refused() {
    for (url, code) in [
        ("https://evil.example/", "find-web-domain"),
        ("https://api.docs.example.evil.example/", "find-web-domain"),
        ("https://notapi.docs.example/", "find-web-domain"),
        ("https://xn--dcs-sna.example/", "find-web-domain"),
        ("http://api.docs.example/", "find-web-url"),
        ("https://api.docs.example@evil.example/", "find-web-url"),
        ("https://api.docs.example:8443/", "find-web-url"),
        ("https://api.docs.example./", "find-web-url"),
        ("https://10.0.0.1/", "find-web-url"),
        ("https://[::1]/", "find-web-url"),
        ("https://äpi.docs.example/", "find-web-url"),
        ("javascript:alert(1)", "find-web-url"),
    ] {
        assert_eq!(with("/results/0/url", json!(url)), [code], "{url}");
    }
    assert_eq!(
        with("/results/0/url", json!("https://v2.API.docs.example/x")),
        [""; 0]
    );
    // Allowed by the guardrails alone: the researcher set itself a narrower limit.
    assert_eq!(
        with("/results/0/url", json!("https://other.docs.example/x")),
        ["find-web-domain"]
    );
}

#[test]
fn duplicate_pages_count_once_within_limit() {
    let mut document = good();
    let mut second_json = document["results"][0].clone();
    second_json["url"] = json!("https://API.docs.example/retry#other");
    document["results"]
        .as_array_mut()
        .unwrap()
        .push(second_json.clone());
    assert!(judge(&document).is_ok());
    second_json["url"] = json!("https://api.docs.example/third");
    document["results"]
        .as_array_mut()
        .unwrap()
        .push(second_json);
    assert_eq!(codes(judge(&document)), ["find-web-pages"]);
    assert_eq!(with("/constraints/max_pages", json!(1)), ["find-web-pages"]);
}

#[test]
fn locators_and_instants_have_their_forms() {
    for (kind, fits, misfits) in [
        (
            "heading",
            &["Limits and more", "1-0"][..],
            &["a\nb", "a\u{202e}b"][..],
        ),
        ("anchor", &["limits", "#limits"], &["a b", "a\tb"]),
        (
            "line_range",
            &["1", "1-1", "12-30"],
            &[
                "0", "0-1", "3-2", "-1", "1-", "a", "1-2-3", "+1", "01", "1 - 2",
            ],
        ),
        (
            "offset",
            &["0", "4096"],
            &["-1", "+1", "1.5", "00", "x", "99999999999999999999"],
        ),
    ] {
        for value in fits {
            let locator = json!({ "type": kind, "value": value });
            assert_eq!(
                with("/results/0/locator", locator),
                [""; 0],
                "{kind} {value}"
            );
        }
        for value in misfits {
            let locator = json!({ "type": kind, "value": value });
            assert!(
                with("/results/0/locator", locator).contains(&LOCATOR.to_string()),
                "{kind} {value}"
            );
        }
    }
    for instant in ["2026-03-01T12:00:00.001Z", "2999-01-01T00:00:00Z"] {
        assert_eq!(
            with("/results/0/fetched_at", json!(instant)),
            ["find-web-instant"],
            "{instant}"
        );
    }
    for unusual_text in [
        "",
        "yesterday",
        "2026-03-01",
        "2026-03-01T11:00Z",
        "2026-03-01 11:00:00Z",
        "2026-03-01T11:00:00",
        "2026-03-01T11:00:00+00:00",
        "2026-13-01T11:00:00Z",
        "2026-03-01T11:00:00.Z",
        "2026-03-01T11:00:00ZZ",
        "1767225600",
        "2026-03-01T11:00:00[UTC]Z",
    ] {
        assert_eq!(
            with("/results/0/fetched_at", json!(unusual_text)),
            ["find-web-instant"],
            "{unusual_text}"
        );
    }
}

#[test]
fn hidden_and_secret_text_is_refused() {
    let key = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    for pointer in [
        "/results/0/excerpt",
        "/results/0/why_relevant",
        "/results/1/risk_flags",
    ] {
        let put = |text: &str| {
            if pointer.ends_with("flags") {
                json!([text])
            } else {
                json!(text)
            }
        };
        assert_eq!(
            with(pointer, put("a\u{e0041}b")),
            ["find-web-text"],
            "{pointer}"
        );
        assert_eq!(
            with(pointer, put("a\u{1b}[2J")),
            ["find-web-text"],
            "{pointer}"
        );
        assert_eq!(
            with(pointer, put("\u{200b}")),
            ["find-web-text"],
            "{pointer}"
        );
        assert_eq!(
            with(pointer, put(&format!("use {key} here"))),
            ["find-web-secret"],
            "{pointer}"
        );
    }
    let url = format!("https://api.docs.example/?token={key}");
    let mut document = good();
    document["results"][0]["url"] = json!(url);
    let verdict = judge(&document).unwrap_err();
    assert_eq!(verdict.findings()[0].code, SECRET);
    assert!(!format!("{verdict:?}").contains(&key));
    assert_eq!(
        with("/results/0/risk_flags", json!([""])),
        ["find-web-text"]
    );
}

#[test]
fn every_problem_is_named() {
    let mut document = good();
    document["constraints"]["max_queries"] = json!(9);
    document["results"][0]["url"] = json!("http://x.example");
    document["results"][1]["fetched_at"] = json!("never");
    document["results"][1]["locator"] = json!({ "type": "offset", "value": "x" });
    let found = codes(judge(&document));
    assert_eq!(
        found,
        [
            "find-web-constraints",
            "find-web-url",
            "find-web-locator",
            "find-web-instant"
        ]
    );
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn judge_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in any::<String>()) {
            let _ = check_web(&bytes, &guardrails(), now());
            for pointer in ["/results/0/url", "/results/0/fetched_at", "/results/0/excerpt", "/results/0/locator/value"] {
                let _ = with(pointer, json!(text));
            }
        }
    }
}
