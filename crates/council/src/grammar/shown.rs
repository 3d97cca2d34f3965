//! Helpers for tests of prompts: a council, a previous loop, and two renderings of a conversation.

use std::fmt::Write;

use crucible_llm::Message;
use crucible_model::{UNTRUSTED_BANNER, Untrusted};

use super::LoopState;
use crate::council::{Council, Seat};
use crate::delta::Positions;
use crate::seat::{CouncilRole, LoopGrammar, RedTeamFlavor, SeatId};

/// A council with these roles. Each seat's instructions are `as SEAT`.
pub(super) fn council(roles: &[CouncilRole]) -> Council {
    let seat = |id: SeatId| Seat {
        id,
        persona: Untrusted::new(format!("as {id}")),
        model: String::new(),
    };
    let mut seats: Vec<Seat> =
        SeatId::of_roles(roles.iter().copied().chain([CouncilRole::RedTeam]))
            .into_iter()
            .map(seat)
            .collect();
    let red_team = seats.pop().expect("the red team");
    Council {
        question: Untrusted::new("Split it?"),
        seats,
        red_team,
        flavor: RedTeamFlavor::Feasibility,
        grammar: LoopGrammar::Parallel,
    }
}

/// The first loop of a council in which the seats at these indexes answered.
pub(super) fn first_loop(council: &Council, answered: &[usize]) -> LoopState {
    let seats = answered.iter().map(|place| council.seats[*place].id);
    let positions = seats
        .map(|seat| (seat, Untrusted::new(format!("What {seat} holds."))))
        .collect();
    ended(council.grammar, 1, positions)
}

/// Five seats that a test can index.
pub(crate) fn seats() -> Vec<SeatId> {
    use CouncilRole::{Creative, DomainExpert, Pragmatist, Synthesizer};
    SeatId::of_roles([Synthesizer, DomainExpert, Pragmatist, Creative, Creative])
}

/// A loop with these positions; an empty text means no position.
pub(crate) fn said_in(grammar: LoopGrammar, number: u32, texts: &[&str]) -> LoopState {
    let positions = seats()
        .into_iter()
        .zip(texts)
        .filter(|(_, text)| !text.is_empty());
    ended(
        grammar,
        number,
        positions
            .map(|(seat, text)| (seat, Untrusted::new(*text)))
            .collect(),
    )
}

fn ended(grammar: LoopGrammar, number: u32, positions: Positions) -> LoopState {
    LoopState {
        number,
        grammar,
        positions,
        critique: Untrusted::new("What fails."),
        drafts: Vec::new(),
        targets: Vec::new(),
        before_attack: Positions::new(),
        turns: Vec::new(),
    }
}

/// A part of a message.
enum Piece {
    Ours(String),
    Block { name: String, content: String },
}

/// Splits a message at its fences; a block ends only at its own marker.
fn pieces(message: &Message) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut lines = message.content.as_str().lines();
    while let Some(line) = lines.next() {
        let opened = line
            .strip_prefix("<<<DATA ")
            .and_then(|line| line.rsplit_once(' '));
        let Some((name, marker)) = opened else {
            pieces.push(Piece::Ours(line.to_owned()));
            continue;
        };
        let end = format!(">>>END {marker}");
        let content: Vec<_> = lines.by_ref().take_while(|line| *line != end).collect();
        pieces.push(Piece::Block {
            name: name.to_owned(),
            content: content.join("\n"),
        });
    }
    pieces
}

/// A conversation word for word, except that the banner of a fence is `(banner)` and a marker is `#`.
pub(super) fn render_all(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let _ = writeln!(text, "[{}]", message.role.as_str());
        for piece in pieces(message) {
            let _ = match piece {
                Piece::Ours(line) if UNTRUSTED_BANNER.starts_with(&line) && !line.is_empty() => {
                    writeln!(text, "(banner)")
                }
                Piece::Ours(line) => writeln!(text, "{line}"),
                Piece::Block { name, content } => {
                    writeln!(text, "<<<DATA {name} #\n{content}\n>>>END #")
                }
            };
        }
    }
    text
}

/// A summary of a conversation: the role and the fenced blocks of each message.
pub(super) fn blocks(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let _ = write!(text, "[{}]", message.role.as_str());
        for piece in pieces(message) {
            if let Piece::Block { name, content } = piece {
                let _ = write!(text, " {name}: {content};");
            }
        }
        text.push('\n');
    }
    text
}
