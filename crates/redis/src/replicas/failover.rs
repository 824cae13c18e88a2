//! A failover that an operator asked for: how far it is.

use std::time::Duration;

use crate::replica::state::Primary;

/// How far a failover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No replica has all changes yet.
    Waits,
    /// The replica is asked to take over.
    HandsOver,
}

/// See `hand_over`. While there is one, writes of clients wait.
#[derive(Debug)]
pub(crate) struct Failover {
    pub(crate) stage: Stage,
    /// The replica that is to take over: the first that has all changes, if none is named.
    pub(crate) target: Option<Primary>,
    /// The end of the wait, by the monotonic clock.
    pub(crate) until: Option<Duration>,
    /// The target takes over at the end of the wait, whatever it lacks.
    pub(crate) is_forced: bool,
}

/// The word of INFO for the stage.
pub(crate) fn told(failover: Option<&Failover>) -> &'static str {
    match failover.map(|it| it.stage) {
        None => "no-failover",
        Some(Stage::Waits) => "waiting-for-sync",
        Some(Stage::HandsOver) => "failover-in-progress",
    }
}
