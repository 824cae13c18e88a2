//! Waiting until this process does nothing.
//!
//! LevelDB and fjall do not say when their background work is done. But every engine's background
//! work costs processor time, and the process can be asked how much it has used.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long one look lasts.
const LOOK: Duration = Duration::from_millis(100);

/// Looks in a row that must find the process idle: longer than a sync of a large file.
const IDLE_LOOKS: u32 = 15;

/// Looks after which waiting is given up: half an hour.
const LOOKS_MAX: u32 = 18_000;

/// Processor time of all threads of this process.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}

/// Blocks until the process has been idle (under one hundredth of a processor) for 1.5 seconds.
///
/// Requires: no other thread of the caller's is at work.
pub(crate) fn wait_until_idle() {
    let mut idle = 0;
    for _ in 0..LOOKS_MAX {
        let before = used();
        std::thread::sleep(LOOK);
        idle = if used() - before < LOOK / 100 {
            idle + 1
        } else {
            0
        };
        if idle == IDLE_LOOKS {
            break;
        }
    }
}
