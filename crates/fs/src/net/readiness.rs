//! Tokens, interests and events of pollers.

use drumlin_base::rng::Rng;

/// The number a source is registered under; the caller's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

impl Token {
    /// The largest number that can be registered.
    pub const MAX: Self = Self((1 << 62) - 1);
}

/// The directions a registration asks for: one or both. A source with neither is deregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Reading, or accepting.
    Read,
    /// Writing, or being connected.
    Write,
    /// Both.
    ReadWrite,
}

impl Interest {
    /// Whether reading or accepting is asked for.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Whether writing is asked for.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

/// A source that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token of its registration.
    pub token: Token,
    /// A read gives bytes, the end or an error; an accept gives a connection or an error.
    pub readable: bool,
    /// A write takes bytes or gives an error; an attempt to connect has come to its end.
    pub writable: bool,
}

/// The events of one wait. A buffer that is used again for the next wait costs no allocation.
#[derive(Debug)]
pub struct Events {
    list: Vec<Event>,
    capacity: usize,
    woken: bool,
}

impl Events {
    /// Room for `capacity` events. A wait may report fewer at a time.
    ///
    /// # Panics
    /// With a capacity of 0.
    pub fn with_capacity(capacity: usize) -> Self {
        assert!(capacity > 0, "a wait tells of at least one event");
        Self {
            list: Vec::with_capacity(capacity),
            capacity,
            woken: false,
        }
    }

    /// The most events of one wait.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The events of the last wait.
    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        self.list.iter().copied()
    }

    /// The number of events of the last wait, wakes not counted.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the last wait reported no source.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a waker ended the last wait.
    pub fn is_woken(&self) -> bool {
        self.woken
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.woken = false;
    }

    pub(super) fn push(&mut self, event: Event) {
        debug_assert!(self.list.len() < self.capacity, "a poller keeps the bound");
        self.list.push(event);
    }

    /// Clears the sources; a reported wake stays.
    pub(super) fn clear_sources(&mut self) {
        self.list.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.list.len() == self.capacity
    }

    /// Puts the events in a drawn order (Fisher and Yates).
    pub(super) fn shuffle(&mut self, rng: &mut Rng) {
        for last in (1..self.list.len()).rev() {
            self.list.swap(last, rng.below(last as u64 + 1) as usize);
        }
    }

    pub(super) fn set_woken(&mut self) {
        self.woken = true;
    }
}
