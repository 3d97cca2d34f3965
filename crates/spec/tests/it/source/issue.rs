//! Ideas from GitHub issues, through the real `gh` and a fake GitHub.

use super::*;

/// The real `gh` of this machine, logged in to the fake.
fn gh(fake: &FakeGitHub, more: &[(&str, &str)]) -> Gh {
    let mut pairs: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        ("HOME".into(), "/nonexistent".into()),
    ];
    pairs.extend(fake.env());
    pairs.extend(
        more.iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value))),
    );
    let env = Environment::from_pairs(pairs, "/");
    let patient = GhDeadlines {
        answer: Duration::from_secs(300),
        download: Duration::from_secs(300),
    };
    Gh::new(Arc::new(Sandbox::new(None, &env)), &env).with_deadlines(patient)
}

async fn issue_idea(gh: &Gh, issue: &str, limit: ByteLimit) -> Result<Idea, SpecError> {
    let issue: IssueRef = issue.parse()?;
    let mut builder = IdeaBuilder::new(limit);
    builder.issue(gh, &issue).await?;
    builder.finish()
}

fn shop() -> FakeRepo {
    let moved = json!({"state": "closed", "comments": 3, "html_url": "https://github.com/acme/store/issues/2"});
    FakeRepo::new("acme/shop")
        .issue(12, "Users  can\r\nexport", "As JSON.\r\n\r\nAnd CSV.\r\n")
        .issue(13, "Only a title", "")
        .issue_but(
            14,
            "A change",
            "text",
            &json!({"pull_request": {"url": "x"}}),
        )
        .issue_but(15, "Old", "text", &moved)
        .issue(16, "\u{200b}", " ")
        .issue_but(17, "Odd", "text", &json!({"title": null}))
        .issue(18, " ", "Only a text\r\n")
        .issue_but(19, "Another", "text", &json!({"number": 99}))
        .issue_but(
            20,
            "Another",
            "text",
            &json!({"number": 99, "html_url": "https://github.com/acme/shop/issues/99"}),
        )
        .issue_but(
            21,
            "Another",
            "text",
            &json!({"number": 99, "html_url": ""}),
        )
        .issue_but(
            22,
            "Moved",
            "text",
            &json!({"number": 2, "html_url": "https://github.com/acme/store/issues/2"}),
        )
}

#[tokio::test]
async fn an_issue_is_its_title_and_its_text() {
    let fake = FakeGitHub::start([shop()]);
    let gh = gh(&fake, &[]);
    for name in [
        "acme/shop#12",
        "https://github.com/acme/shop/issues/12",
        "HTTPS://www.GitHub.com/acme/shop/issues/12/?x#issuecomment-1",
    ] {
        let idea = issue_idea(&gh, name, LIMIT).await.unwrap();
        assert_eq!(
            idea.text.as_str(),
            "# Users can export\n\nAs JSON.\n\nAnd CSV.\n",
            "{name}"
        );
        assert!(idea.notes.is_empty());
    }
    assert_eq!(fake.count("/repos/acme/shop/issues/12"), 3);
    assert_eq!(
        issue_idea(&gh, "acme/shop#13", LIMIT)
            .await
            .unwrap()
            .text
            .as_str(),
        "# Only a title\n"
    );
    assert_eq!(
        issue_idea(&gh, "acme/shop#18", LIMIT)
            .await
            .unwrap()
            .text
            .as_str(),
        "Only a text\n"
    );
    let old = issue_idea(&gh, "acme/shop#15", LIMIT).await.unwrap();
    assert!(
        old.notes[0].contains("3 comments are ignored"),
        "{:?}",
        old.notes
    );
    assert!(old.notes[1].ends_with("is closed") && old.notes[2].contains("acme/store/issues/2"));
    let renumbered = issue_idea(&gh, "acme/shop#22", LIMIT).await.unwrap();
    assert!(
        renumbered.notes[0].contains("acme/store/issues/2"),
        "a moved one has another number"
    );
    // Next to another source it gets its name as a heading.
    let mut builder = IdeaBuilder::new(LIMIT);
    builder.text("standard input", b"first".to_vec()).unwrap();
    builder
        .issue(&gh, &"acme/shop#13".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(
        builder.finish().unwrap().text.as_str(),
        "# From standard input\n\nfirst\n\n# From acme/shop#13\n\n# Only a title\n"
    );
}

#[tokio::test]
async fn non_issue_reference_is_refused() {
    let fake = FakeGitHub::start([shop()]);
    let gh = gh(&fake, &[]);
    let refusal =
        async |issue: &str, limit: u64| issue_idea(&gh, issue, ByteLimit(limit)).await.unwrap_err();
    assert!(
        refusal("acme/shop#14", 1000)
            .await
            .to_string()
            .contains("pull request")
    );
    for number in 19..=21 {
        let other = refusal(&format!("acme/shop#{number}"), 1000)
            .await
            .to_string();
        assert!(other.contains("answers with issue 99 instead"), "{other}");
    }
    let large = issue_idea(&gh, "acme/shop#12", ByteLimit(10))
        .await
        .unwrap();
    assert_eq!(sizes(&large)[0].0, "acme/shop#12");
    assert!(matches!(
        refusal("acme/shop#16", 1000).await,
        SpecError::EmptyIdea
    ));
    let missing = refusal("acme/shop#99", 1000).await;
    assert!(
        matches!(
            missing,
            SpecError::GitHub {
                error: GhError::NotFound { .. },
                ..
            }
        ),
        "{missing}"
    );
    let unusual_spec_error = refusal("acme/shop#17", 1000).await;
    assert!(
        matches!(
            unusual_spec_error,
            SpecError::GitHub {
                error: GhError::Unreadable { .. },
                ..
            }
        ),
        "{unusual_spec_error}"
    );
    let before = fake.requests().len();
    let elsewhere = refusal("https://git.example.com/acme/shop/issues/12", 1000)
        .await
        .to_string();
    assert!(
        elsewhere.contains("set GH_HOST to git.example.com"),
        "{elsewhere}"
    );
    assert_eq!(fake.requests().len(), before, "nobody was asked");
}

#[tokio::test]
async fn issue_on_another_host_is_fetched_there() {
    let fake = FakeGitHub::start([shop()]);
    let gh = gh(
        &fake,
        &[
            ("GH_HOST", "git.example.com"),
            ("GH_ENTERPRISE_TOKEN", "a-token-of-the-fake"),
        ],
    );
    let idea = issue_idea(&gh, "https://git.example.com/acme/shop/issues/13", LIMIT)
        .await
        .unwrap();
    assert_eq!(idea.text.as_str(), "# Only a title\n");
    assert!(
        issue_idea(&gh, "https://github.com/acme/shop/issues/13", LIMIT)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn github_messages_are_redacted() {
    let fake = FakeGitHub::start([shop()]);
    let gh = gh(&fake, &[]);
    let token = made_up_token();
    let body = json!({"message": format!("no: {token}")})
        .to_string()
        .into_bytes();
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    fake.misbehave(
        "/issues/12",
        Times::Once,
        Misbehaviour::Raw {
            status: 403,
            headers,
            body,
        },
    );
    let error = issue_idea(&gh, "acme/shop#12", LIMIT).await.unwrap_err();
    assert!(
        matches!(
            error,
            SpecError::GitHub {
                error: GhError::Forbidden { .. },
                ..
            }
        ),
        "{error}"
    );
    assert!(!format!("{error} {error:?}").contains(&token), "{error}");
    assert!(error.to_string().starts_with("acme/shop#12: "), "{error}");
    fake.misbehave(
        "/issues/12",
        Times::Once,
        Misbehaviour::primary_limit(4_102_444_800),
    );
    let error = issue_idea(&gh, "acme/shop#12", LIMIT).await.unwrap_err();
    assert!(
        matches!(
            error,
            SpecError::GitHub {
                error: GhError::RateLimited(_),
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_text_that_names_no_issue_is_refused() {
    for good in ["a/b#1", "A-1/b.c_d#999", "https://github.com/a/b/issues/7"] {
        assert!(good.parse::<IssueRef>().is_ok(), "{good}");
    }
    for bad in [
        "",
        "#1",
        "a#1",
        "a/b",
        "a/b#0",
        "a/b#-1",
        "a/b#1x",
        "a/b/c#1",
        "a/..#1",
        "-a/b#1",
        "a b/c#1",
        "a/b#1\n2",
        "http://github.com/a/b/issues/1",
        "https://github.com/a/b/pull/1",
        "https://github.com/a/b/issues/",
        "https://github.com/a/b/issues/1/2",
        "https:///a/b/issues/1",
        "https://u@h/a/b/issues/1",
        "é/b#1",
        "a/b#99999999999999999999",
        "a/b#1#2",
    ] {
        let error = bad.parse::<IssueRef>().unwrap_err();
        // For a nearly valid address, the specific fault is reported.
        let message = match bad {
            "http://github.com/a/b/issues/1" => "write https:// instead of",
            "https://github.com/a/b/pull/1" => "pull request",
            _ => "OWNER/REPO#123",
        };
        assert!(error.to_string().contains(message), "{bad}: {error}");
    }
}
