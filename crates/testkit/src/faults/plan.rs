//! Which call fails, and how.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::dice::Dice;

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the call goes through.
    None,
    /// The call fails before anything was done.
    Refused,
    /// Everything is done, and the answer is lost: the caller sees the same as with `Refused`.
    AnswerLost,
}

/// A sequence of faults, drawn from a seed or written down, and what was drawn so far.
#[derive(Debug)]
pub struct FaultPlan {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    scripted: VecDeque<Fault>,
    dice: Dice,
    refused_percent: u8,
    lost_percent: u8,
    drawn: Vec<Fault>,
}

impl FaultPlan {
    /// The calls meet `faults` in order; after the last one, no more.
    #[must_use]
    pub fn scripted(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self::new(faults.into_iter().collect(), 0, 0, 0)
    }

    /// Of 100 calls, about `refused_percent` fail before and `lost_percent` after their work, as `seed` says.
    #[must_use]
    pub fn seeded(seed: u64, refused_percent: u8, lost_percent: u8) -> Self {
        Self::new(VecDeque::new(), seed, refused_percent, lost_percent)
    }

    fn new(scripted: VecDeque<Fault>, seed: u64, refused_percent: u8, lost_percent: u8) -> Self {
        let dice = Dice::new(seed);
        Self { state: Mutex::new(State { scripted, dice, refused_percent, lost_percent, drawn: Vec::new() }) }
    }

    /// The fault of the next call.
    pub fn draw(&self) -> Fault {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = match state.scripted.pop_front() {
            Some(fault) => fault,
            None => {
                let (refused, lost) = (state.refused_percent, state.lost_percent);
                if state.dice.happens(refused) {
                    Fault::Refused
                } else if state.dice.happens(lost) {
                    Fault::AnswerLost
                } else {
                    Fault::None
                }
            }
        };
        state.drawn.push(fault);
        fault
    }

    /// How often `fault` was drawn.
    pub fn drawn(&self, fault: Fault) -> usize {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.drawn.iter().filter(|&&drawn| drawn == fault).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_followed_and_then_ends() {
        let plan = FaultPlan::scripted([Fault::AnswerLost, Fault::Refused]);
        assert_eq!([plan.draw(), plan.draw(), plan.draw()], [Fault::AnswerLost, Fault::Refused, Fault::None]);
        assert_eq!(plan.drawn(Fault::AnswerLost), 1);
    }
}
