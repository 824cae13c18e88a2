//! Reads through an io_uring: one ring for each thread that reads in batches, made with its first batch.
//!
//! Where the kernel or container has none, or gives no more of them, a thread tries once and then stays without.
//!
//! Invariant: all reads submitted to the kernel have completed before [`read_all`] returns, because the kernel
//! writes to buffers that are borrowed only until then.

use std::cell::RefCell;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use crate::process::Process;
use crate::read_queue::PendingRead;

/// Reads with the kernel at once.
const ENTRIES: usize = 64;

/// A thread's ring.
enum Ring {
    /// Not asked for yet.
    Untried,
    /// There is none, or it failed.
    Missing,
    /// With the process it belongs to: a forked child's copy is the same ring, and each would take the other's
    /// answers.
    Ready(Box<IoUring>, Process),
}

thread_local! {
    static RING: RefCell<Ring> = const { RefCell::new(Ring::Untried) };
}

/// Has the kernel carry out `reads` together, and notes its answers in them. False when there is no ring;
/// reads without an answer have then not been carried out.
pub(crate) fn read_all(reads: &mut [&mut PendingRead<'_>]) -> bool {
    let all = RING.try_with(|ring| {
        let ring = &mut *ring.borrow_mut();
        if matches!(ring, Ring::Ready(_, process) if !process.is_present()) {
            *ring = Ring::Untried;
        }
        if matches!(ring, Ring::Untried) {
            *ring = match IoUring::new(ENTRIES as u32) {
                Ok(made) => Ring::Ready(Box::new(made), Process::current()),
                Err(_) => Ring::Missing,
            };
        }
        let Ring::Ready(ready, _) = ring else {
            return false;
        };
        let works = reads
            .chunks_mut(ENTRIES)
            .all(|chunk| read_some(ready, chunk));
        if !works {
            *ring = Ring::Missing;
        }
        works
    });
    // A thread that is ending may have none any more.
    all.unwrap_or(false)
}

/// Carries out at most [`ENTRIES`] reads. False when the ring is of no more use; reads that the kernel
/// took have come back also then.
fn read_some(ring: &mut IoUring, reads: &mut [&mut PendingRead<'_>]) -> bool {
    for (index, read) in reads.iter_mut().enumerate() {
        let fd = types::Fd(read.file.descriptor().as_raw_fd());
        let len = u32::try_from(read.buffer.len()).unwrap_or(u32::MAX);
        let entry = opcode::Read::new(fd, read.buffer.as_mut_ptr(), len)
            .offset(read.offset)
            .build()
            .user_data(index as u64);
        // SAFETY: the buffer is lent to the read, and the file open, until `read_all` returns, which
        // waits for every entry that the kernel took.
        let pushed = unsafe { ring.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "the ring is empty before a chunk");
        if pushed.is_err() {
            break;
        }
    }
    let mut works = true;
    let mut waiting = ring.submission().len();
    while waiting > 0 {
        if !works {
            // Any call lets the kernel hand back finished reads.
            std::thread::yield_now();
        } else if let Err(error) = ring.submit_and_wait(waiting)
            && !is_passing(&error)
        {
            // Entries that the kernel did not take are never offered again: only the others are
            // waited for.
            works = false;
            waiting -= ring.submission().len().min(waiting);
        }
        for done in ring.completion() {
            waiting = waiting.saturating_sub(1);
            if let Some(read) = reads.get_mut(done.user_data() as usize) {
                read.answer = Some(done.result());
            }
        }
    }
    works
}

/// Whether the call is to be made again.
fn is_passing(error: &std::io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
    )
}
