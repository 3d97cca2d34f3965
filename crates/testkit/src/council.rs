//! Tells the calls of a council apart as a server sees them, and writes what a triage says.
//!
//! A call is told by the first words of its system message, and a seat by the marker that [`triage`] puts into its instructions.

use serde_json::{Value, json};

use crate::seen::SeenRequest;

/// Which call of a council a request is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CouncilCall {
    /// The call that configures the council.
    Triage,
    /// The answer without a council.
    Direct,
    /// A seat, by its name: its position, draft or revision.
    Seat(String),
    /// A seat that defends itself, by its name.
    Defense(String),
    /// An attack of the red team.
    RedTeam,
    /// The judge of changes.
    Judge,
    /// The call that writes the final answer.
    Synthesis,
}

/// What the first words of each kind of system message are.
const BEGINNINGS: [(&str, CouncilCall); 5] = [
    ("You configure a council", CouncilCall::Triage),
    ("You answer one question", CouncilCall::Direct),
    ("You are the red team", CouncilCall::RedTeam),
    ("You judge whether positions changed", CouncilCall::Judge),
    ("You write the one answer", CouncilCall::Synthesis),
];

/// The first words of a seat's system message.
const SEAT: &str = "You hold one seat of a council";

/// The words by which a seat that has to defend itself is told so, in its last message.
const DEFEND: &str = "Defend your position";

/// Which call of a council a request is.
#[must_use]
pub fn council_call(request: &SeenRequest) -> CouncilCall {
    let messages = request.body["messages"].as_array().expect("a conversation");
    let text = |message: &Value| message["content"].as_str().expect("text").to_owned();
    let system = text(messages.first().expect("a first message"));
    if let Some((_, call)) = BEGINNINGS
        .iter()
        .find(|(beginning, _)| system.starts_with(beginning))
    {
        return call.clone();
    }
    assert!(system.starts_with(SEAT), "no call of a council: {system}");
    let marked = system
        .split("SEAT-MARKER ")
        .nth(1)
        .expect("a seat's marker");
    let name = marked
        .split_whitespace()
        .next()
        .expect("a seat's name")
        .to_owned();
    let last = text(messages.last().expect("a last message"));
    if last.contains(DEFEND) {
        CouncilCall::Defense(name)
    } else {
        CouncilCall::Seat(name)
    }
}

/// A good triage for these deliberating roles and a red team behind them: a complex question, three loops, no early exit. Change
/// what a test needs otherwise.
#[must_use]
pub fn triage(grammar: &str, roles: &[&str]) -> Value {
    let mut seen: Vec<&str> = Vec::new();
    let mut seats: Vec<Value> = Vec::new();
    for role in roles {
        seen.push(role);
        let number = seen.iter().filter(|known| *known == role).count();
        let name = if number > 1 {
            format!("{role}#{number}")
        } else {
            (*role).to_owned()
        };
        let prompt = format!("SEAT-MARKER {name} speaks for what {role} stands for.");
        seats.push(json!({"role": role, "system_prompt": prompt, "model_hint": null}));
    }
    seats.push(
        json!({"role": "red_team", "system_prompt": "Look at the costs.", "model_hint": null}),
    );
    json!({
        "reconstructed_query": "Should this team of five split its one program into services?",
        "complexity": "complex",
        "short_circuit_allowed": false,
        "council": seats,
        "loop_grammar": grammar,
        "loop_count": 3,
        "red_team_flavor": "feasibility",
        "allow_early_exit": false,
        "synthesis_instruction": "Two paragraphs, the recommendation first.",
    })
}

/// A triage that lets the question go without a council.
#[must_use]
pub fn simple_triage() -> Value {
    let mut triage = triage("parallel", &["domain_expert", "pragmatist"]);
    triage["complexity"] = "simple".into();
    triage["short_circuit_allowed"] = true.into();
    triage["loop_count"] = 2.into();
    triage
}
