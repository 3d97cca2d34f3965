//! `[find]`: what a run may learn from, as a user sets it.

use crate::support::Desk;

#[test]
fn the_settings_of_finding_are_listed_with_their_variables_and_open_nothing_by_default() {
    let config = Desk::new().run(["config", "show", "--json"]).ok().json();
    let settings = config["settings"].as_array().unwrap();
    for (key, value, variable) in [
        ("find.find_mode", serde_json::json!("resolver_only"), "CRUCIBLE_FIND_FIND_MODE"),
        ("find.allow_domains", serde_json::json!([]), "CRUCIBLE_FIND_ALLOW_DOMAINS"),
        ("find.max_queries", serde_json::json!(5), "CRUCIBLE_FIND_MAX_QUERIES"),
        ("find.max_pages", serde_json::json!(10), "CRUCIBLE_FIND_MAX_PAGES"),
    ] {
        let row = settings.iter().find(|row| row["key"] == key).unwrap();
        assert_eq!((&row["value"], &row["variable"]), (&value, &serde_json::json!(variable)), "{key}");
    }
}
