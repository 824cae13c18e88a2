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
    /// Those of opening it.
    fn client(&self) -> Result<Self::Client<'_>>;

    /// Waits until the writes have the durability that the binding promises.
    ///
    /// # Errors
    /// Those of the writes.
    fn flush(&self) -> Result<()>;
}

/// A connection, a session. Reads say whether the record was there.
pub trait Client {
    /// Replaces `out` by the fields of record `key`, or by the one called `field`.
    ///
    /// # Errors
    /// Those of the read; `Corruption` when the stored bytes are no fields.
    fn read(&mut self, key: &[u8], field: Option<&[u8]>, out: &mut Fields) -> Result<bool>;

    /// Reads several records whole and shows each found one with its key's index. Returns the
    /// number found.
    ///
    /// # Errors
    /// As [`Client::read`].
    fn read_batch(
        &mut self,
        keys: &[Vec<u8>],
        on_record: &mut dyn FnMut(usize, &Fields),
    ) -> Result<usize>;

    /// Reads up to `count` records from `key` on, and returns their number.
    ///
    /// # Errors
    /// As [`Client::read`].
    fn scan(&mut self, key: &[u8], count: usize, field: Option<&[u8]>) -> Result<usize>;

    /// Adds the record `key`.
    ///
    /// # Errors
    /// Those of the write.
    fn insert(&mut self, key: &[u8], fields: &Fields) -> Result<()>;

    /// Changes the named fields of record `key`.
    ///
    /// # Errors
    /// Those of the read or the write.
    fn update(&mut self, key: &[u8], fields: &Fields) -> Result<bool>;
}
