//! Schemas as people write them, and as somebody writes them who wants the judge to hang.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn words() -> Value {
    json!({
        "input": {"type": "object", "properties": {"text": {"$ref": "#/$defs/text"}}, "required": ["text"], "$defs": {"text": {"type": "string", "maxLength": 9}}},
        "output": {"type": "object", "properties": {"count": {"type": "integer", "minimum": 0}}, "required": ["count"], "additionalProperties": false}
    })
}

fn with_input(input: &Value) -> Result<IoSchema, IoSchemaError> {
    IoSchema::from_value(json!({"input": input, "output": {"type": "object"}}))
}

#[test]
fn input_and_output_have_own_schemas_without_echo() {
    let schema = IoSchema::parse(words().to_string().as_bytes()).unwrap();
    assert_eq!(schema.document(), &words());
    assert!(
        schema
            .problems(IoSide::Input, &json!({"text": "a b"}))
            .is_empty()
    );
    assert!(
        schema
            .problems(IoSide::Output, &json!({"count": 2}))
            .is_empty()
    );
    let problems = schema.problems(IoSide::Input, &json!({"text": "hunter2 hunter2"}));
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("/text: ") && !problems[0].contains("hunter2"),
        "{problems:?}"
    );
    assert_eq!(
        schema
            .problems(IoSide::Output, &json!({"count": -1, "more": 1}))
            .len(),
        2
    );
    assert_eq!(schema.problems(IoSide::Input, &json!(["text"])).len(), 1);
}

#[test]
fn invalid_schema_pair_is_refused() {
    let parse = |text: &str| IoSchema::parse(text.as_bytes()).unwrap_err();
    for text in [
        "",
        "{",
        "\u{feff}{}",
        r#"{"input":{},"input":{},"output":{}}"#,
        "nan",
    ] {
        assert!(
            matches!(parse(text), IoSchemaError::NotJson { .. }),
            "{text:?}"
        );
    }
    for text in [
        "[]",
        "{}",
        r#"{"input":{"type":"object"}}"#,
        r#"{"input":{},"output":{},"more":1}"#,
    ] {
        assert_eq!(parse(text), IoSchemaError::Shape, "{text:?}");
    }
    for text in [
        r#"{"input":true,"output":{}}"#,
        r#"{"input":{"type":["object"]},"output":{}}"#,
    ] {
        assert_eq!(
            parse(text),
            IoSchemaError::NotAnObject {
                side: IoSide::Input
            },
            "{text:?}"
        );
    }
    let bad = [
        json!({"type": "object", "properties": 1}),
        json!({"type": "object", "required": "x"}),
        json!({"type": "object", "properties": {"x": {"type": "text"}}}),
        json!({"type": "object", "properties": {"x": {"pattern": "("}}}),
        json!({"type": "object", "minProperties": -1}),
    ];
    for input in bad {
        assert!(
            matches!(with_input(&input), Err(IoSchemaError::NotASchema { .. })),
            "{input}"
        );
    }
}

#[test]
fn nothing_is_fetched_and_no_reference_leads_out() {
    for reference in [
        "https://example.com/x.json",
        "file:///etc/passwd",
        "other.json",
        "#text",
        "",
    ] {
        let input = json!({"type": "object", "properties": {"x": {"$ref": reference}}});
        assert!(
            matches!(with_input(&input), Err(IoSchemaError::Keyword { .. })),
            "{reference:?}"
        );
    }
    for (key, value) in [
        ("$id", "https://example.com/x.json"),
        ("$dynamicRef", "#"),
        ("$anchor", "a"),
        ("$schema", "http://json-schema.org/draft-07/schema#"),
    ] {
        let input = json!({"type": "object", key: value});
        assert!(
            matches!(with_input(&input), Err(IoSchemaError::Keyword { .. })),
            "{key}"
        );
    }
    with_input(
        &json!({"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema"}),
    )
    .unwrap();
}

#[test]
fn a_schema_that_would_take_forever_is_refused() {
    let circle = json!({"type": "object", "allOf": [{"$ref": "#"}]});
    assert!(matches!(
        with_input(&circle),
        Err(IoSchemaError::Reference { .. })
    ));
    let pair = json!({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    assert!(matches!(
        with_input(&pair),
        Err(IoSchemaError::Reference { .. })
    ));
    let nowhere = json!({"type": "object", "$ref": "#/$defs/none"});
    assert!(matches!(
        with_input(&nowhere),
        Err(IoSchemaError::Reference { .. })
    ));
    let mut defs = Map::new();
    for level in 0..24 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(format!("l{level}"), json!({"allOf": [next.clone(), next]}));
    }
    defs.insert("l24".to_owned(), json!({}));
    let doubling = json!({"type": "object", "$ref": "#/$defs/l0", "$defs": defs});
    assert!(matches!(
        with_input(&doubling),
        Err(IoSchemaError::Reference { .. })
    ));
    let mut chain = Map::new();
    for link in 0..2_000 {
        chain.insert(
            format!("l{link}"),
            json!({"$ref": format!("#/$defs/l{}", link + 1)}),
        );
    }
    chain.insert("l2000".to_owned(), json!({}));
    let chain = json!({"type": "object", "$ref": "#/$defs/l0", "$defs": chain});
    assert!(matches!(
        with_input(&chain),
        Err(IoSchemaError::Reference { .. })
    ));
    // A pattern that backtracks for years elsewhere.
    let slow = with_input(&json!({"type": "object", "properties": {"x": {"pattern": "^(a+)+$"}}}))
        .unwrap();
    assert_eq!(
        slow.problems(
            IoSide::Input,
            &json!({"x": format!("{}!", "a".repeat(50_000))})
        )
        .len(),
        1
    );
}

#[test]
fn bounds_hold() {
    let mut deep = json!({});
    for _ in 0..MAX_DEPTH {
        deep = json!({"not": deep});
    }
    assert!(matches!(
        with_input(&json!({"type": "object", "not": deep})),
        Err(IoSchemaError::TooDeep)
    ));
    let brackets = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(
        IoSchema::parse(brackets.as_bytes()),
        Err(IoSchemaError::NotJson { .. })
    ));
    let large = json!({"type": "object", "title": "x".repeat(MAX_SCHEMA_BYTES)});
    assert!(matches!(
        with_input(&large),
        Err(IoSchemaError::TooLarge { .. })
    ));
    for hidden in ["\u{1b}[2J", "\u{202e}", "a\u{0}"] {
        let input = json!({"type": "object", "title": hidden});
        assert!(
            matches!(with_input(&input), Err(IoSchemaError::Keyword { .. })),
            "{hidden:?}"
        );
        let input = json!({"type": "object", "properties": {hidden: {}}});
        assert!(
            matches!(with_input(&input), Err(IoSchemaError::Keyword { .. })),
            "{hidden:?}"
        );
    }
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _whatever_it_says = IoSchema::parse(&bytes);
        }
    }
}
