//! The order in which seats speak: three grammars behind one trait (seed 001 §2.4).
//!
//! Invariants: in every grammar the red team speaks in every loop, and a loop without its answer is an
//! error. A seat without an answer is noted and skipped. The run ends if fewer than two seats are left.
//! Calls that do not depend on each other run concurrently.

mod debate;
mod parallel;
mod prompt;
mod sequential;
#[cfg(test)]
pub(crate) mod shown;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use crucible_llm::Message;
use crucible_model::{Untrusted, short_line, single_spaced};
use futures_util::future::try_join_all;
use serde_json::Value;

use crate::caller::{Ask, CallAnswer, Caller, NoAnswer};
use crate::config::Observability;
use crate::council::{Council, Seat};
use crate::delta::Positions;
use crate::error::CouncilError;
use crate::red_team::{self, Attack};
use crate::result::{Degradation, DegradationKind, Part, Turn, TurnKind};
use crate::seat::{LoopGrammar, SeatId};

/// The state of a loop for the next loop and the synthesis.
#[derive(Debug, Clone)]
pub(crate) struct LoopState {
    /// The number of the loop, from 1.
    pub(crate) number: u32,
    pub(crate) grammar: LoopGrammar,
    /// The position of each seat that answered, at the end of the loop; in the sequential grammar its
    /// draft.
    pub(crate) positions: Positions,
    /// The last critique of the red team.
    pub(crate) critique: Untrusted,
    /// In the sequential grammar, the drafts in writing order. The last one is current.
    pub(crate) drafts: Vec<Draft>,
    /// In a debate, the attacked seats.
    pub(crate) targets: Vec<SeatId>,
    /// In a debate, the positions of the defending seats before the attack.
    pub(crate) before_attack: Positions,
    /// All turns; empty if observability is off.
    pub(crate) turns: Vec<Turn>,
}

/// A draft of the sequential grammar.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) seat: SeatId,
    pub(crate) text: Untrusted,
    /// The red team's attack on it before the next seat spoke.
    pub(crate) attack: Untrusted,
}

impl LoopState {
    /// The positions to compare between loops. In the sequential grammar that is only the last draft,
    /// under the name of the council's last seat, whichever seat wrote it. If that seat is missing, the
    /// draft must not appear as another seat's position. In a debate it is the positions before the
    /// attack.
    pub(crate) fn standing(&self, council: &Council) -> Cow<'_, Positions> {
        match (self.drafts.last(), council.seats.last()) {
            (Some(draft), Some(last)) => {
                Cow::Owned(Positions::from([(last.id, draft.text.clone())]))
            }
            _ if self.before_attack.is_empty() => Cow::Borrowed(&self.positions),
            _ => Cow::Owned(Self::stated(
                self.positions.clone(),
                self.before_attack.clone(),
            )),
        }
    }

    /// The values of positions as stated, before any attack. In a debate each loop takes new positions,
    /// so these are what two loops have in common.
    pub(crate) fn stated<T>(
        at_the_end: BTreeMap<SeatId, T>,
        before_attack: BTreeMap<SeatId, T>,
    ) -> BTreeMap<SeatId, T> {
        let mut stated = at_the_end;
        stated.extend(before_attack);
        stated
    }
}

/// An order in which seats speak.
#[async_trait]
pub(crate) trait Grammar: Send + Sync {
    /// Runs one loop. `prior` is the loop before it.
    async fn run(
        &self,
        active: ActiveLoop<'_>,
        prior: Option<&LoopState>,
    ) -> Result<LoopState, CouncilError>;

    /// The most calls of one loop with this many deliberating seats.
    fn calls(&self, seats: u64) -> u64;
}

/// The implementation of a grammar.
pub(crate) fn grammar(grammar: LoopGrammar) -> &'static dyn Grammar {
    match grammar {
        LoopGrammar::Parallel => &parallel::Parallel,
        LoopGrammar::Sequential => &sequential::Sequential,
        LoopGrammar::Debate => &debate::Debate,
    }
}

/// A seat with its answer, or the reason why it has none.
type SeatReply = (SeatId, Result<CallAnswer, String>);

/// One loop in progress: the council, its caller and the turns so far.
pub(crate) struct ActiveLoop<'f> {
    caller: &'f Caller<'f>,
    pub(crate) council: &'f Council,
    /// The number of the loop, from 1.
    pub(crate) number: u32,
    turns: Mutex<Vec<Turn>>,
}

impl<'f> ActiveLoop<'f> {
    pub(crate) fn new(caller: &'f Caller<'f>, council: &'f Council, number: u32) -> Self {
        Self {
            caller,
            council,
            number,
            turns: Mutex::default(),
        }
    }

    /// Asks seats concurrently, each with its own messages, and returns the results in the given order. A
    /// seat without an answer is noted as missing its position or its defence. If no further call can
    /// succeed, all calls end at once.
    async fn ask_seats(
        &self,
        asked: Vec<(&Seat, Vec<Message>)>,
        kind: TurnKind,
    ) -> Result<Vec<SeatReply>, CouncilError> {
        let calls: Vec<_> = asked
            .into_iter()
            .map(|(seat, messages)| self.ask_seat(seat, messages))
            .collect();
        let replies = try_join_all(calls).await?;
        for (seat, said) in &replies {
            match said {
                Ok(said) => self.keep(*seat, kind, &said.text, said),
                Err(why) => self.caller.note(Degradation {
                    loop_number: Some(self.number),
                    part: Part::Seat(*seat),
                    kind: missing(kind),
                    detail: why.clone(),
                }),
            }
        }
        Ok(replies)
    }

    async fn ask_seat(
        &self,
        seat: &Seat,
        messages: Vec<Message>,
    ) -> Result<SeatReply, CouncilError> {
        match self.ask(seat, messages, None).await {
            Ok(said) => Ok((seat.id, Ok(said))),
            Err(why @ NoAnswer::Final(_)) => Err(why.fatal(Part::Seat(seat.id), Some(self.number))),
            Err(why @ (NoAnswer::Call(_) | NoAnswer::TooLong { .. })) => {
                Ok((seat.id, Err(short_line(&why.to_string(), REASON_CHARS))))
            }
        }
    }

    /// Asks the red team for its critique, which the loop requires. Notes if it raises no objection.
    async fn request_critique(&self, messages: Vec<Message>) -> Result<Untrusted, CouncilError> {
        let said = self.ask_red_team(messages, None).await?;
        self.take_critique(&said, &said.text);
        Ok(said.text)
    }

    /// Asks the red team of a debate, whose answer names the seats it attacks; `seats` are those with a
    /// position.
    async fn ask_attack(
        &self,
        messages: Vec<Message>,
        schema: Option<(&'static str, Value)>,
        seats: &[Seat],
    ) -> Result<Attack, CouncilError> {
        let said = self.ask_red_team(messages, schema).await?;
        let attack = red_team::read_attack(&said.text, seats);
        self.take_critique(&said, &attack.critique);
        Ok(attack)
    }

    async fn ask_red_team(
        &self,
        messages: Vec<Message>,
        schema: Option<(&'static str, Value)>,
    ) -> Result<CallAnswer, CouncilError> {
        let red_team = &self.council.red_team;
        let answer = self.ask(red_team, messages, schema).await;
        answer.map_err(|why| why.fatal(Part::Seat(red_team.id), Some(self.number)))
    }

    fn take_critique(&self, said: &CallAnswer, critique: &Untrusted) {
        let red_team = self.council.red_team.id;
        if red_team::has_yielded(critique) {
            self.caller.note(Degradation {
                loop_number: Some(self.number),
                part: Part::Seat(red_team),
                kind: DegradationKind::RedTeamYielded,
                detail: format!(
                    "it says: {}",
                    short_line(&single_spaced(critique.as_str()), REASON_CHARS)
                ),
            });
        }
        self.keep(red_team, TurnKind::Critique, critique, said);
    }

    async fn ask(
        &self,
        seat: &Seat,
        messages: Vec<Message>,
        schema: Option<(&'static str, Value)>,
    ) -> Result<CallAnswer, NoAnswer> {
        let ask = Ask {
            part: Part::Seat(seat.id),
            loop_number: Some(self.number),
            model: seat.model.clone(),
            messages,
            schema,
        };
        self.caller.ask(ask).await
    }

    /// Keeps a turn for the trace, if there is one.
    fn keep(&self, seat: SeatId, kind: TurnKind, text: &Untrusted, said: &CallAnswer) {
        if self.caller.config().observability == Observability::On {
            let turn = Turn::of(seat, kind, text, said);
            self.turns
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(turn);
        }
    }

    /// Fails if too few seats answered, counting the seats that were not asked yet as answered.
    fn quorum(&self, replies: &[SeatReply]) -> Result<(), CouncilError> {
        let left = replies.iter().filter(|(_, said)| said.is_ok()).count();
        let to_come = self.council.seats.len().saturating_sub(replies.len());
        if left.saturating_add(to_come) >= QUORUM {
            return Ok(());
        }
        let missing = |(seat, said): &SeatReply| Some((*seat, said.as_ref().err()?.clone()));
        Err(CouncilError::TooFewSeats {
            loop_number: self.number,
            left,
            seats: self.council.seats.len(),
            missing: replies.iter().filter_map(missing).collect(),
        })
    }

    /// All turns; empty if observability is off.
    fn into_turns(self) -> Vec<Turn> {
        self.turns
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The positions of the seats that answered.
fn answered(replies: Vec<SeatReply>) -> Positions {
    replies
        .into_iter()
        .filter_map(|(seat, said)| Some((seat, said.ok()?.text)))
        .collect()
}

/// The positions with their prompt labels, in the order of the seats.
fn labelled<'p>(council: &Council, positions: &'p Positions) -> Vec<(String, &'p Untrusted)> {
    let seats = council.seats.iter();
    seats
        .filter_map(|seat| Some((prompt::position_of(seat.id), positions.get(&seat.id)?)))
        .collect()
}

/// The fewest deliberating seats that must answer in a loop, so that there can be disagreement.
const QUORUM: usize = 2;

/// The most characters of the reason why a seat has no answer.
const REASON_CHARS: usize = 300;

/// The degradation of a missing answer of this kind.
const fn missing(kind: TurnKind) -> DegradationKind {
    match kind {
        TurnKind::Position | TurnKind::Critique => DegradationKind::SeatMissing,
        TurnKind::Defense => DegradationKind::DefenseMissing,
    }
}
