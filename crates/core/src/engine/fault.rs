//! Faults planted on purpose, to show that the simulator finds them. Only with the feature `planted-faults`, which
//! nothing but Postbox's own tests switches on.

/// One mistake an engine could make. Several of them it did make once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A lane's next attempt starts while one is in flight.
    TwoInFlight,
    /// What waits behind a failed head is dropped instead of parked.
    ForgetSuccessors,
    /// An attempt is counted when it could not be started.
    CountUnstarted,
    /// A failed head is not remembered until it is stored: its lane looks open.
    ForgetClosedLane,
    /// A read that is older than a record of ours is believed.
    BelieveStaleReads,
    /// A busy aggregate whose first events were all parked at once is not read further.
    ForgetSaturated,
    /// Rows that committed late, below the cursor, are not loaded.
    DropLateCommits,
    /// The lane's parked head, reported with an event, is ignored.
    IgnoreParkedHead,
    /// Attempts start whatever is left of the lease.
    IgnoreLease,
    /// An event leaves the to-do list with the first of its deliveries, the others unrecorded.
    SettleHalfAnEvent,
    /// What a lost term left unconfirmed hides events of the next one.
    KeepGhosts,
    /// A later event is parked while an earlier one of its aggregate stays on the to-do list.
    ParkOutOfOrder,
    /// A destination that is disabled is sent to all the same.
    SendToDisabled,
    /// An attempt at a destination that wants evidence is made without being committed first.
    BeginNothing,
    /// After an unknown outcome the next attempt follows by the schedule, without waiting for evidence.
    RetryUnknownBySchedule,
    /// What is undecided when the wait for evidence is over is sent again, whatever the destination wants.
    ResendUndecided,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::TwoInFlight,
        Self::ForgetSuccessors,
        Self::CountUnstarted,
        Self::ForgetClosedLane,
        Self::BelieveStaleReads,
        Self::ForgetSaturated,
        Self::DropLateCommits,
        Self::IgnoreParkedHead,
        Self::IgnoreLease,
        Self::SettleHalfAnEvent,
        Self::KeepGhosts,
        Self::ParkOutOfOrder,
        Self::SendToDisabled,
        Self::BeginNothing,
        Self::RetryUnknownBySchedule,
        Self::ResendUndecided,
    ];
}
