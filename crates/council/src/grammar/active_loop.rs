//! The trait of grammars, and one loop in progress, through which they ask seats.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use crucible_llm::Message;
use crucible_model::{Untrusted, short_line, single_spaced};
use futures_util::future::try_join_all;
use serde_json::Value;

use super::loop_state::LoopState;
use super::prompt;
use crate::caller::{CallAnswer, CallFailure, CallRequest, Caller};
use crate::config::Observability;
use crate::council::{Council, Seat};
use crate::degradation::{Degradation, DegradationKind, Part};
use crate::delta::Positions;
use crate::error::CouncilError;
use crate::red_team::{self, Attack};
use crate::seat::SeatId;
use crate::turn::{Turn, TurnKind};

/// The fewest deliberating seats that must answer in a loop, so that there can be disagreement.
const QUORUM: usize = 2;

/// The most characters of the reason why a seat has no answer.
const REASON_CHARS: usize = 300;

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

/// A seat with its answer, or the reason why it has none.
pub(super) type SeatReply = (SeatId, Result<CallAnswer, String>);

/// One loop in progress: the council, its caller and the turns so far.
pub(crate) struct ActiveLoop<'f> {
    pub(super) caller: &'f Caller<'f>,
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
    pub(super) async fn ask_seats(
        &self,
        requests: Vec<(&Seat, Vec<Message>)>,
        kind: TurnKind,
    ) -> Result<Vec<SeatReply>, CouncilError> {
        let calls: Vec<_> = requests
            .into_iter()
            .map(|(seat, messages)| self.ask_seat(seat, messages))
            .collect();
        let replies = try_join_all(calls).await?;
        for (seat, reply) in &replies {
            match reply {
                Ok(answer) => self.keep(*seat, kind, &answer.text, answer),
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
            Ok(answer) => Ok((seat.id, Ok(answer))),
            Err(why @ CallFailure::Final(_)) => {
                Err(why.fatal(Part::Seat(seat.id), Some(self.number)))
            }
            Err(why @ (CallFailure::Call(_) | CallFailure::TooLong { .. })) => {
                Ok((seat.id, Err(short_line(&why.to_string(), REASON_CHARS))))
            }
        }
    }

    /// Asks the red team for its critique, which the loop requires. Notes if it raises no objection.
    pub(super) async fn request_critique(
        &self,
        messages: Vec<Message>,
    ) -> Result<Untrusted, CouncilError> {
        let answer = self.ask_red_team(messages, None).await?;
        self.take_critique(&answer, &answer.text);
        Ok(answer.text)
    }

    /// Asks the red team of a debate, whose answer names the seats it attacks; `seats` are those with a
    /// position.
    pub(super) async fn ask_attack(
        &self,
        messages: Vec<Message>,
        schema: Option<(&'static str, Value)>,
        seats: &[Seat],
    ) -> Result<Attack, CouncilError> {
        let answer = self.ask_red_team(messages, schema).await?;
        let attack = red_team::read_attack(&answer.text, seats);
        self.take_critique(&answer, &attack.critique);
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

    fn take_critique(&self, answer: &CallAnswer, critique: &Untrusted) {
        let red_team = self.council.red_team.id;
        if red_team::states_no_objection(critique) {
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
        self.keep(red_team, TurnKind::Critique, critique, answer);
    }

    async fn ask(
        &self,
        seat: &Seat,
        messages: Vec<Message>,
        schema: Option<(&'static str, Value)>,
    ) -> Result<CallAnswer, CallFailure> {
        let ask = CallRequest {
            part: Part::Seat(seat.id),
            loop_number: Some(self.number),
            model: seat.model.clone(),
            messages,
            schema,
        };
        self.caller.ask(ask).await
    }

    /// Keeps a turn for the trace, if there is one.
    fn keep(&self, seat: SeatId, kind: TurnKind, text: &Untrusted, answer: &CallAnswer) {
        if self.caller.config().observability == Observability::On {
            let turn = Turn::new(seat, kind, text, answer);
            self.turns
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(turn);
        }
    }

    /// Fails if too few seats answered, counting the seats that were not asked yet as answered.
    pub(super) fn quorum(&self, replies: &[SeatReply]) -> Result<(), CouncilError> {
        let left = replies.iter().filter(|(_, reply)| reply.is_ok()).count();
        let to_come = self.council.seats.len().saturating_sub(replies.len());
        if left.saturating_add(to_come) >= QUORUM {
            return Ok(());
        }
        let missing = |(seat, reply): &SeatReply| Some((*seat, reply.as_ref().err()?.clone()));
        Err(CouncilError::TooFewSeats {
            loop_number: self.number,
            left,
            seats: self.council.seats.len(),
            missing: replies.iter().filter_map(missing).collect(),
        })
    }

    /// All turns; empty if observability is off.
    pub(super) fn into_turns(self) -> Vec<Turn> {
        self.turns
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The positions of the seats that answered.
pub(super) fn reply_positions(replies: Vec<SeatReply>) -> Positions {
    replies
        .into_iter()
        .filter_map(|(seat, reply)| Some((seat, reply.ok()?.text)))
        .collect()
}

/// The positions with their prompt labels, in the order of the seats.
pub(super) fn labelled<'p>(
    council: &Council,
    positions: &'p Positions,
) -> Vec<(String, &'p Untrusted)> {
    let seats = council.seats.iter();
    seats
        .filter_map(|seat| Some((prompt::position_of(seat.id), positions.get(&seat.id)?)))
        .collect()
}

/// The degradation of a missing answer of this kind.
const fn missing(kind: TurnKind) -> DegradationKind {
    match kind {
        TurnKind::Position | TurnKind::Critique => DegradationKind::SeatMissing,
        TurnKind::Defense => DegradationKind::DefenseMissing,
    }
}
