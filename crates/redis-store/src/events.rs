//! Keyspace events.

/// The classes of keyspace events, by the letters of `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventClass {
    /// `g`: of any type, such as `del` and `expire`.
    Generic,
    /// `$`
    String,
    /// `l`
    List,
    /// `s`
    Set,
    /// `h`
    Hash,
    /// `z`
    SortedSet,
    /// `t`
    Stream,
    /// `x`
    Expired,
    /// `e`
    Evicted,
    /// `m`
    Missed,
    /// `n`
    New,
}

/// Something that happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its class.
    pub class: EventClass,
    /// Its name, as subscribers get it.
    pub name: &'static str,
    /// The database, as clients number it.
    pub db: u16,
    /// The key.
    pub key: Vec<u8>,
}
