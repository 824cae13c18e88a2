//! Waiting with epoll.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::{Error, Result};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;

use super::network::{Handle, HandleKind, Poller, Source, Waker};
use super::{Event, Events, Interest, Token};
use crate::process::Process;

/// The waker's data; above that of every token.
const WAKER: u64 = u64::MAX;
const READ: u64 = 1;
const WRITE: u64 = 2;

/// The most events that one wait asks for: further ones come with the next.
const EVENTS_MAX: usize = 256;

/// The longest wait that every kernel takes, 24 days; a longer one ends early.
const TIMEOUT_MAX: Duration = Duration::from_millis(i32::MAX as u64);

const NOTHING: epoll::Event = epoll::Event {
    flags: epoll::EventFlags::empty(),
    data: epoll::EventData::new_u64(0),
};

/// A set of epoll. The kernel gives back 64 bits of ours with each event: the token, and below it the interest, so that
/// an error, which epoll always reports, is reported in the directions that were asked for.
#[derive(Debug)]
pub(super) struct PosixPoller {
    epoll: OwnedFd,
    waker: Arc<PosixWaker>,
    process: Process,
}

fn refused(op: &str, errno: Errno) -> Error {
    Error::system(op, errno.into())
}

fn descriptor<'a>(handle: Handle<'a>) -> Result<BorrowedFd<'a>> {
    match handle.0 {
        HandleKind::Descriptor(descriptor) => Ok(descriptor),
        HandleKind::Memory(_) => Err(Error::invalid_argument(
            "a source of a network in memory has no place in a poller of the system",
        )),
    }
}

fn data(token: Token, interest: Interest) -> Result<epoll::EventData> {
    if token > Token::MAX {
        return Err(Error::invalid_argument(format!("{} is no token", token.0)));
    }
    let read = if interest.is_read() { READ } else { 0 };
    let write = if interest.is_write() { WRITE } else { 0 };
    Ok(epoll::EventData::new_u64(token.0 << 2 | read | write))
}

fn flags(interest: Interest) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, interest.is_read());
    flags.set(epoll::EventFlags::OUT, interest.is_write());
    flags
}

/// The kernel's event, reduced to the directions that were asked for.
fn event_of(raw: &epoll::Event) -> Event {
    let (data, flags) = (raw.data.u64(), raw.flags);
    let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
    let unasked = drumlin_base::bug!("unasked-direction-told");
    let asked = |direction| data & direction != 0 || unasked;
    Event {
        token: Token(data >> 2),
        readable: asked(READ) && (broken || flags.contains(epoll::EventFlags::IN)),
        writable: asked(WRITE) && (broken || flags.contains(epoll::EventFlags::OUT)),
    }
}

impl PosixPoller {
    pub(super) fn new() -> Result<Self> {
        let make = || -> Result<_, Errno> {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            // By edges, so that nobody has to read the counter: each ring is one.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&epoll, &bell, epoll::EventData::new_u64(WAKER), flags)?;
            Ok((epoll, bell))
        };
        let (epoll, bell) = make().map_err(|errno| refused("make a poller", errno))?;
        let process = Process::current();
        Ok(Self {
            epoll,
            waker: Arc::new(PosixWaker { bell, process }),
            process,
        })
    }
}

impl Poller for PosixPoller {
    fn register(&self, source: &dyn Source, token: Token, interest: Interest) -> Result<()> {
        self.process.check()?;
        let (source, data) = (descriptor(source.handle())?, data(token, interest)?);
        match epoll::add(&self.epoll, source, data, flags(interest)) {
            Err(Errno::EXIST) => Err(registered_already()),
            outcome => outcome.map_err(|errno| refused("register a socket", errno)),
        }
    }

    fn reregister(&self, source: &dyn Source, token: Token, interest: Interest) -> Result<()> {
        self.process.check()?;
        let (source, data) = (descriptor(source.handle())?, data(token, interest)?);
        match epoll::modify(&self.epoll, source, data, flags(interest)) {
            Err(Errno::NOENT) => Err(not_registered()),
            outcome => outcome.map_err(|errno| refused("register a socket", errno)),
        }
    }

    fn deregister(&self, source: &dyn Source) -> Result<()> {
        self.process.check()?;
        match epoll::delete(&self.epoll, descriptor(source.handle())?) {
            Err(Errno::NOENT) => Err(not_registered()),
            outcome => outcome.map_err(|errno| refused("deregister a socket", errno)),
        }
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<()> {
        self.process.check()?;
        events.clear();
        let mut raw = [NOTHING; EVENTS_MAX];
        let room = events.capacity().min(EVENTS_MAX);
        let timeout = timeout.map(|timeout| timeout.min(TIMEOUT_MAX));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let outcome = epoll::wait(&self.epoll, &mut raw[..room], timeout.as_ref());
        let count = match outcome {
            Ok(count) => count,
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(refused("wait for sockets", errno)),
        };
        for raw in raw.iter().take(count) {
            if raw.data.u64() == WAKER {
                events.set_woken();
                continue;
            }
            let event = event_of(raw);
            if event.readable || event.writable {
                events.push(event);
            }
        }
        Ok(())
    }

    fn waker(&self) -> Arc<dyn Waker> {
        Arc::clone(&self.waker) as _
    }
}

/// The error of registering twice.
pub(super) fn registered_already() -> Error {
    Error::invalid_argument("this source is registered already")
}

/// The error of changing a source that is not registered.
pub(super) fn not_registered() -> Error {
    Error::invalid_argument("this source is not registered with this poller")
}

#[expect(
    clippy::host_endian_bytes,
    reason = "the kernel counts in the machine's order"
)]
const ONE_RING: [u8; 8] = 1_u64.to_ne_bytes();

#[derive(Debug)]
struct PosixWaker {
    bell: OwnedFd,
    process: Process,
}

impl Waker for PosixWaker {
    fn wake(&self) -> Result<()> {
        self.process.check()?;
        loop {
            match rustix::io::write(self.bell.as_fd(), &ONE_RING) {
                // A counter that is full has rung.
                Ok(_) | Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(refused("wake a poller", errno)),
            }
        }
    }
}
