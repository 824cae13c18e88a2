//! The interface of a database under measurement.

use drumlin_base::Result;

use crate::fields::Fields;

/// A store with records of named fields. Shared by threads.
pub trait Binding: Sync {
    /// One thread's way in.
    type Client<'a>: Client
    where
        Self: 'a;

    /// A way in, opened on the thread that will use it.
    ///
    /// # Errors
    /// Whatever keeps it from opening.
    fn client(&self) -> Result<Self::Client<'_>>;

    /// Waits until what was written is where the binding promises it.
    ///
    /// # Errors
    /// Whatever the writes met.
    fn flush(&self) -> Result<()>;
}

/// A connection, a session. Reads say whether the record was there.
pub trait Client {
    /// Replaces `out` by the fields of record `key`, or by the one called `field`.
    ///
    /// # Errors
    /// Whatever the read met; `Corruption` when what is stored are no fields.
    fn read(&mut self, key: &[u8], field: Option<&[u8]>, out: &mut Fields) -> Result<bool>;

    /// Reads several records whole and shows each found one with its key's index; how many were
    /// found.
    ///
    /// # Errors
    /// As [`Client::read`].
    fn read_batch(
        &mut self,
        keys: &[Vec<u8>],
        on_record: &mut dyn FnMut(usize, &Fields),
    ) -> Result<usize>;

    /// Reads up to `count` records from `key` on; how many there were.
    ///
    /// # Errors
    /// As [`Client::read`].
    fn scan(&mut self, key: &[u8], count: usize, field: Option<&[u8]>) -> Result<usize>;

    /// Adds the record `key`.
    ///
    /// # Errors
    /// Whatever the write met.
    fn insert(&mut self, key: &[u8], fields: &Fields) -> Result<()>;

    /// Changes the named fields of record `key`.
    ///
    /// # Errors
    /// Whatever the read or the write met.
    fn update(&mut self, key: &[u8], fields: &Fields) -> Result<bool>;
}
