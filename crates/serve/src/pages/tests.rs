//! Hostile text in every field of every page.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crucible_model::is_hidden;
use crucible_testkit::{BrowserJob, in_browser};
use crucible_view::{CostView, LedgerView, RedactedText, RunList, RunView};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, CharacterTokens, CommentToken, StartTag, TagToken, Token, TokenSink,
    TokenSinkResult, Tokenizer, TokenizerOpts,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::actions::{RunAction, RunActionKind};
use crate::format::{duration, money};
use crate::markdown::markdown_report;
use crate::project_pages::{
    crawl_page, crawls_page, evidence_page, skill_page, skills_page, spec_page, specs_page,
};
use crate::report::html_report;

const SAMPLE: &str = include_str!("sample.json");
/// A document of each page of a project.
const PROJECT_SAMPLES: &str = include_str!("project_samples.json");

/// Numbers of a run that no page shows: three equal the totals, a line is the place of its finding, and calls are numbered.
const NOT_SHOWN: [&str; 5] = [
    "/attempts/0/findings/0/line",
    "/budgets/calls",
    "/budgets/micro_dollars",
    "/budgets/tokens",
    "/model_calls/0/attempt",
];

/// What a page consists of, as a browser reads it.
#[derive(Default, Debug, PartialEq, Eq)]
struct Parsed {
    /// Each start tag with the names of its attributes.
    tags: Vec<(String, Vec<String>)>,
    /// Values of attributes that name an address.
    addresses: Vec<String>,
    /// The text outside of style sheets.
    text: String,
    comments: usize,
}

#[derive(Default)]
struct Sink(RefCell<Parsed>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut parsed = self.0.borrow_mut();
        match token {
            TagToken(tag) if tag.kind == StartTag => {
                let names = tag.attrs.iter().map(|attr| attr.name.local.to_string());
                let names: Vec<String> = names.collect();
                for attr in &tag.attrs {
                    if matches!(&*attr.name.local, "href" | "src" | "action" | "data-live") {
                        parsed.addresses.push(attr.value.to_string());
                    }
                    assert!(!attr.name.local.starts_with("on"), "{tag:?}");
                    assert_ne!(&*attr.name.local, "style");
                }
                parsed.tags.push((tag.name.to_string(), names));
                match &*tag.name {
                    "style" => TokenSinkResult::RawData(RawKind::Rawtext),
                    "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                    "title" => TokenSinkResult::RawData(RawKind::Rcdata),
                    _ => TokenSinkResult::Continue,
                }
            }
            CharacterTokens(text) => {
                parsed.text.push_str(&text);
                TokenSinkResult::Continue
            }
            CommentToken(_) => {
                parsed.comments += 1;
                TokenSinkResult::Continue
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

fn parsed(page: &str) -> Parsed {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    let _done = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.take()
}

/// Replaces each text of a document that may be any text. Returns how many there are.
fn fill<T: DeserializeOwned>(document: &mut Value, with: &str) -> usize {
    fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
        match value {
            Value::String(_) => found.push(at),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointers(item, format!("{at}/{index}"), found);
                }
            }
            Value::Object(fields) => {
                for (name, item) in fields {
                    pointers(item, format!("{at}/{name}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    pointers(document, String::new(), &mut found);
    let mut filled = 0;
    for pointer in found {
        let slot = document.pointer_mut(&pointer).unwrap();
        let was = std::mem::replace(slot, Value::from(with));
        if serde_json::from_value::<T>(document.clone()).is_ok() {
            filled += 1;
        } else {
            *document.pointer_mut(&pointer).unwrap() = was;
        }
    }
    filled
}

/// Every page with this text wherever a text may be anything.
fn pages(with: &str) -> Vec<(&'static str, String)> {
    let mut document: Value = serde_json::from_str(SAMPLE).unwrap();
    let filled = fill::<RunView>(&mut document, with);
    assert!(filled >= 80, "{filled}");
    let run: RunView = serde_json::from_value(document).unwrap();
    let list = RunList {
        schema_version: String::new(),
        total: 1,
        runs: vec![run.summary.clone()],
    };
    let mut address = url::form_urlencoded::Serializer::new(String::new());
    for name in ["q", "state", "model"] {
        address.append_pair(name, with);
    }
    let query = RunQuery::parse(&format!("{}&page=2", address.finish()));
    let totals = json!({ "calls": 1, "open_calls": 0, "tokens": 1, "micro_dollars": 5 });
    let mut group = totals.clone();
    group["provider"] = with.into();
    group["model"] = with.into();
    let costs = json!({ "schema_version": "x", "totals": totals, "models": [group], "days": [], "outcomes": [
        { "day": "2026-01-31", "runs": { "failed": 2 }, "elapsed_ms": 5 }, { "day": with, "runs": {}, "elapsed_ms": 5 }] });
    let costs: CostView = serde_json::from_value(costs).unwrap();
    let finding =
        json!({ "code": with, "level": "error", "subject": with, "hint": with, "line": null });
    let ledger = json!({ "schema_version": "x", "path": with, "head": 1, "runs": 1, "is_verified": false, "findings": [finding],
        "head_hash": "1111111111111111111111111111111111111111111111111111111111111111" });
    let ledger: LedgerView = serde_json::from_value(ledger).unwrap();
    vec![
        ("run", run_page(&run, PageRights::Land).unwrap()),
        ("land", land_page(&run, &land_forms(&run)).unwrap()),
        ("report", html_report(&run).unwrap()),
        ("attempt", attempt_page(&run, &run.attempts[0]).unwrap()),
        ("events", events_page(&run).unwrap()),
        ("calls", calls_page(&run).unwrap()),
        (
            "runs",
            runs_page(&list, &query, &[RedactedText::new(with)]).unwrap(),
        ),
        ("costs", costs_page(&costs).unwrap()),
        ("ledger", ledger_page(&ledger).unwrap()),
        ("message", message_page("Title", with).unwrap()),
        ("specs", specs_page(&project_sample("specs", with)).unwrap()),
        (
            "spec",
            spec_page(&RedactedText::new(with), &project_sample("spec", with)).unwrap(),
        ),
        (
            "evidence",
            evidence_page(&RedactedText::new(with), &project_sample("evidence", with)).unwrap(),
        ),
        (
            "skills",
            skills_page(&project_sample("skills", with)).unwrap(),
        ),
        ("skill", skill_page(&project_sample("skill", with)).unwrap()),
        (
            "crawls",
            crawls_page(&project_sample("crawls", with)).unwrap(),
        ),
        ("crawl", crawl_page(&project_sample("crawl", with)).unwrap()),
    ]
}

fn land_forms(run: &RunView) -> Vec<ActionForm> {
    let form = |kind| ActionForm {
        action: RunAction {
            run: run.summary.run_id.clone(),
            kind,
            digest: crucible_model::Digest::compute(b"x"),
        },
        token: "0".repeat(32),
    };
    vec![form(RunActionKind::Approve), form(RunActionKind::Land)]
}

/// A document of a project with this text wherever a text may be anything.
fn project_sample<T: DeserializeOwned>(name: &str, with: &str) -> T {
    let samples: Value = serde_json::from_str(PROJECT_SAMPLES).unwrap();
    let mut document = samples[name].clone();
    assert!(fill::<T>(&mut document, with) >= 5, "{name}");
    serde_json::from_value(document).unwrap()
}

/// How many texts surround each core of an attack.
const FRAMES: usize = 10;

/// Three hundred texts that break out of some context of HTML, or that deceive a reader.
fn hostile() -> Vec<String> {
    let cores = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)>",
        "\" onmouseover=\"alert(1)",
        "' onfocus='alert(1)' autofocus='",
        "</title><script>alert(1)</script>",
        "</style><script>alert(1)</script>",
        "</pre></main><iframe src=//evil.test></iframe>",
        "<a href=javascript:alert(1)>x</a>",
        "javascript:alert(1)",
        "<!--",
        "--><b>",
        "<![CDATA[<b>]]>",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "&#60;script&#62;",
        "{{ 7 * 7 }}{% raw %}",
        "<base href=//evil.test>",
        "<meta http-equiv=refresh content=0;url=//evil.test>",
        "<link rel=stylesheet href=//evil.test>",
        "<form action=//evil.test><input name=q>",
        "<style>*{display:none}</style>",
        "<textarea>",
        "<plaintext>",
        "<xmp><script>alert(1)</script>",
        "<math><mi//xlink:href=\"data:x,<script>\">",
        "<details open ontoggle=alert(1)>",
        "<object data=//evil.test>",
        "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
        "\u{202e}txet desrever\u{202c}",
        "\u{1b}[2J\u{7}",
    ];
    let frames: [(&str, &str); FRAMES] = [
        ("", ""),
        ("\">", ""),
        ("'>", ""),
        ("</td></tr></table>", ""),
        ("</code></pre>", "\n\n"),
        ("\u{0}", "\u{0}"),
        ("\u{feff}\u{200b}", "\u{2066}"),
        ("<", ">"),
        ("`", "`"),
        ("\\", "\u{2028}"),
    ];
    let text = |core: &&str| frames.map(|(before, after)| format!("{before}{core}{after}"));
    cores.iter().flat_map(text).collect()
}

#[test]
fn only_page_of_a_running_run_is_loaded_again() {
    let of = |state: &str, process: Option<&str>| {
        let mut document: Value = serde_json::from_str(SAMPLE).unwrap();
        document["derived_state"] = state.into();
        document["at_work"] = process.into();
        let run: RunView = serde_json::from_value(document).unwrap();
        let page = run_page(&run, PageRights::ReadOnly).unwrap();
        let is_left = page.contains("No process works on this run.");
        (
            page.contains("http-equiv=\"refresh\""),
            page.contains("data-live"),
            is_left,
        )
    };
    assert_eq!(of("patched", Some("process 7")), (true, true, false));
    assert_eq!(of("patched", None), (false, true, true));
    assert_eq!(of("blocked", None), (false, true, false));
    assert_eq!(of("landed", None), (false, false, false));
}

/// Each core of an attack once, and each frame three times.
#[test]
fn hostile_text_stays_text_on_each_page() {
    let texts = hostile();
    let representative = texts.chunks(FRAMES).enumerate();
    let texts: Vec<String> = representative
        .map(|(at, framed)| framed[at % FRAMES].clone())
        .collect();
    assert_eq!(texts.len(), 30);
    assert_stay_text(&texts);
}

fn assert_stay_text(texts: &[String]) {
    let benign: Vec<Parsed> = pages("benign")
        .iter()
        .map(|(_, page)| parsed(page))
        .collect();
    assert!(benign[0].tags.len() > 100, "{}", benign[0].tags.len());
    for text in texts {
        for ((name, page), benign) in pages(text).iter().zip(&benign) {
            let read = parsed(page);
            assert_eq!(read.tags, benign.tags, "{name}: {text:?}");
            assert_eq!(read.comments, 0, "{name}: {text:?}");
            let hidden = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
            assert!(!page.contains(hidden), "{name}: {text:?}");
            for address in &read.addresses {
                assert!(
                    matches!(
                        address.as_str(),
                        "#main"
                            | "/style.css"
                            | "/live.js"
                            | "/icon.svg"
                            | "/costs"
                            | "/specs"
                            | "/skills"
                            | "/crawls"
                            | "/ledger"
                            | "/ledger/verify"
                    ) || ["/runs", "/specs/", "/skills/", "/crawls/"]
                        .iter()
                        .any(|start| address.starts_with(start)),
                    "{name}: {text:?}: {address}"
                );
            }
            // It is shown, not dropped.
            let content = crucible_model::escaped(text);
            if !matches!(*name, "costs") {
                assert!(read.text.contains(content.trim()), "{name}: {text:?}");
            }
        }
    }
}

#[test]
fn hostile_text_stays_code_in_markdown() {
    for text in hostile() {
        let mut document: Value = serde_json::from_str(SAMPLE).unwrap();
        fill::<RunView>(&mut document, &text);
        let run: RunView = serde_json::from_value(document).unwrap();
        let page = markdown_report(&run);
        let mut fence: Option<usize> = None;
        for line in page.lines() {
            let marks = line.len() - line.trim_start_matches('`').len();
            match fence {
                Some(length) if marks >= length && line.trim_start_matches('`').is_empty() => {
                    fence = None;
                }
                Some(_) => {}
                None if marks >= 3 && line.ends_with("text") => fence = Some(marks),
                None => {
                    let outside = without_code(line);
                    let own_text = outside
                        .replace("<details><summary>Plan</summary>", "")
                        .replace("</details>", "");
                    assert!(
                        !own_text.contains(['<', '>', '\u{202e}', '[', '@']),
                        "{text:?}: {line}"
                    );
                }
            }
        }
        assert_eq!(fence, None, "{text:?}");
    }
}

/// Returns a line without its inline code.
fn without_code(line: &str) -> String {
    let mut rest = line;
    let mut outside = String::new();
    while let Some(start) = rest.find('`') {
        outside.push_str(&rest[..start]);
        let after = rest[start..].trim_start_matches('`');
        let length = rest.len() - start - after.len();
        let mut at = 0;
        let mut end = None;
        while let Some(found) = after[at..].find('`') {
            let run = &after[at + found..];
            let marks = run.len() - run.trim_start_matches('`').len();
            if marks == length {
                end = Some(at + found + marks);
                break;
            }
            at += found + marks;
        }
        match end {
            Some(end) => rest = &after[end..],
            None => {
                outside.push_str(&rest[start..]);
                return outside;
            }
        }
    }
    outside + rest
}

#[test]
fn report_allows_exactly_its_own_style() {
    let run: RunView = serde_json::from_str(SAMPLE).unwrap();
    let page = html_report(&run).unwrap();
    let read = parsed(&page);
    assert!(
        read.addresses.iter().all(|address| address == "#main"),
        "{:?}",
        read.addresses
    );
    assert!(
        page.contains("default-src &#39;none&#39;; style-src &#39;sha256-"),
        "{}",
        &page[..600]
    );
    assert_eq!(page.matches("<style>").count(), 1);
    assert!(!page.contains("<script"));
    assert!(page.contains("$1.234567") && page.contains("12 tokens"));
    assert!(page.contains("the gates notice 3 of 4") || page.contains("The gates notice 3 of 4"));
}

/// Replaces each number of a document by another one, so that a page shows where it comes from. A number that cannot be so large
/// stays. Returns the new ones with their places.
fn number<T: DeserializeOwned>(document: &mut Value, first: u64) -> Vec<(String, u64)> {
    fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
        match value {
            Value::Number(_) => found.push(at),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointers(item, format!("{at}/{index}"), found);
                }
            }
            Value::Object(fields) => {
                for (name, item) in fields {
                    pointers(item, format!("{at}/{name}"), found);
                }
            }
            _ => {}
        }
    }
    let mut places = Vec::new();
    pointers(document, String::new(), &mut places);
    let mut found = Vec::new();
    // Further apart than a minute, so that their times differ, too.
    let numbers = (first..).step_by(61_007);
    for (place, number) in places.into_iter().zip(numbers) {
        let slot = document.pointer_mut(&place).unwrap();
        let before = std::mem::replace(slot, number.into());
        if serde_json::from_value::<T>(document.clone()).is_ok() {
            found.push((place, number));
        } else {
            *document.pointer_mut(&place).unwrap() = before;
        }
    }
    found
}

/// The long numbers of a text: of six digits and more, without digests.
fn long_numbers(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '$'));
    let words = words.map(|word| word.trim_end_matches('.'));
    let is_long = |word: &&str| {
        let digits: BTreeSet<char> = word.chars().filter(char::is_ascii_digit).collect();
        let is_number = word
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | '$'));
        // The digests of the samples repeat one digit.
        is_number && digits.len() > 1 && word.len() >= 6
    };
    words.filter(is_long).map(str::to_owned).collect()
}

/// What a page shows: texts of different elements are different words.
fn text_of(page: &str) -> String {
    let page = page.split_once("</style>").map_or(page, |(_, rest)| rest);
    parsed(&page.replace('<', " <")).text
}

/// Every long number that pages of a document show is a number of it, as it is, in dollars or as a time. Returns the places of
/// those that no page shows.
fn numbers_not_shown<T: DeserializeOwned>(
    mut document: Value,
    first: u64,
    pages: impl Fn(&T) -> Vec<String>,
) -> BTreeSet<String> {
    let found = number::<T>(&mut document, first);
    let pages = pages(&serde_json::from_value(document).unwrap());
    let forms = |number: u64| [number.to_string(), money(&number), duration(&number)];
    let known: BTreeSet<String> = found
        .iter()
        .flat_map(|(_, number)| forms(*number))
        .flat_map(|form| long_numbers(&form))
        .collect();
    for page in &pages {
        for number in long_numbers(page) {
            assert!(known.contains(&number), "{number}: {page}");
        }
    }
    let all = pages.concat();
    let is_shown = |number: u64| forms(number).iter().any(|form| all.contains(form.as_str()));
    let hidden = found.into_iter().filter(|(_, number)| !is_shown(*number));
    hidden.map(|(at, _)| at).collect()
}

/// Numbers that are small, that JavaScript cannot count with, and the largest.
const FIRST_NUMBERS: [u64; 3] = [700_000, 1 << 53, u64::MAX - 100_000_000];

#[test]
fn pages_show_exactly_the_numbers_of_their_documents() {
    for first in FIRST_NUMBERS {
        let sample: Value = serde_json::from_str(SAMPLE).unwrap();
        let numbered = number::<RunView>(&mut sample.clone(), first);
        assert!(numbered.len() > 60, "{}", numbered.len());
        let hidden = numbers_not_shown(sample.clone(), first, |run: &RunView| {
            let html = [
                run_page(run, PageRights::ReadOnly),
                land_page(run, &land_forms(run)),
                attempt_page(run, &run.attempts[0]),
                events_page(run),
                calls_page(run),
                html_report(run),
            ];
            let html = html.into_iter().map(|page| text_of(&page.unwrap()));
            html.chain([markdown_report(run)]).collect()
        });
        // A small field keeps its number where the others are large.
        let places = numbered.into_iter().map(|(at, _)| at);
        let not_shown: BTreeSet<String> = places
            .filter(|at| NOT_SHOWN.contains(&at.as_str()))
            .collect();
        assert_eq!(hidden, not_shown, "{first}");
        let list = json!({ "schema_version": "x", "total": 1, "runs": [sample] });
        numbers_not_shown(list, first, |list: &RunList| {
            // The number of pages follows from the total.
            let list = RunList {
                total: 1,
                ..list.clone()
            };
            let page = runs_page(&list, &RunQuery::parse(""), &[]);
            vec![text_of(&page.unwrap())]
        });
        let samples: Value = serde_json::from_str(PROJECT_SAMPLES).unwrap();
        let sample = |name: &str| samples[name].clone();
        let name = RedactedText::new("n");
        let text = |page: Result<String, ServeError>| vec![text_of(&page.unwrap())];
        numbers_not_shown(sample("specs"), first, |specs| text(specs_page(specs)));
        numbers_not_shown(sample("spec"), first, |spec| text(spec_page(&name, spec)));
        numbers_not_shown(sample("evidence"), first, |spec| {
            text(evidence_page(&name, spec))
        });
        numbers_not_shown(sample("skills"), first, |skills| text(skills_page(skills)));
        numbers_not_shown(sample("skill"), first, |skill| text(skill_page(skill)));
        numbers_not_shown(sample("crawls"), first, |crawls| text(crawls_page(crawls)));
    }
}

/// Opens every page in a browser with so many hostile texts in each field. One line, as the harmless text is: some parts of a page
/// depend on the number of lines.
fn attack_in_a_browser(together: usize) {
    let home = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    let mut names = Vec::new();
    let mut write = |name: &'static str, text: &str| {
        let file = home.path().join(format!("{}.html", files.len()));
        crucible_host::fs::write_new(&file, text.as_bytes()).unwrap();
        files.push(file);
        names.push(name);
    };
    // As long as the attack, because headings of long texts are cut.
    let benign = pages(&"benign ".repeat(10 * together - 9));
    let count = benign.len();
    for (name, page) in &benign {
        write(name, page);
    }
    for texts in hostile().chunks(together) {
        for (name, page) in pages(&texts.join(" ").replace('\n', " ")) {
            write(name, &page);
        }
    }
    // A page that is not safe is noticed.
    write(
        "control",
        "<script>alert(1)</script><img src=//evil.test/x onerror=alert(1)>",
    );
    let job = json!({ "style": STYLE, "files": files, "judged": count });
    let report = in_browser(BrowserJob::Hostile, job);
    let report = report.as_array().unwrap();
    let (control, seen) = report.split_last().unwrap();
    assert!(control["executed"].as_u64().unwrap() > 0, "{control:#}");
    assert_ne!(control["requests"], json!([]), "{control:#}");
    assert_eq!(seen.len(), count * (1 + hostile().len() / together));
    for (at, page) in seen.iter().enumerate() {
        let name = names[at];
        assert_eq!(page["executed"], 0, "{name}: {page:#}");
        assert_eq!(page["requests"], json!([]), "{name}: {page:#}");
        assert_eq!(page["violations"], json!([]), "{name}: {page:#}");
        assert_eq!(page["skeleton"], seen[at % count]["skeleton"], "{name}");
    }
    println!("{} pages of {count} kinds", seen.len());
}

mod slow {
    use super::*;

    /// Parses five thousand pages, which takes half a minute.
    #[test]
    fn each_hostile_text_stays_text_on_each_page() {
        let texts = hostile();
        assert_eq!(texts.len(), 300);
        assert_stay_text(&texts);
    }

    /// All hostile texts, fifty at once in each field, so that it takes about 15 seconds. A text that hides those after it changes
    /// what the page consists of, which fails the test.
    #[test]
    fn hostile_text_does_nothing_in_a_browser() {
        attack_in_a_browser(50);
    }
}

mod exhaustive {
    use super::*;

    /// Each hostile text for itself: five thousand pages, which take about six minutes.
    #[test]
    fn each_hostile_text_does_nothing_in_a_browser() {
        attack_in_a_browser(1);
    }
}
