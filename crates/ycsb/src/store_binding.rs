//! An embedded store as a binding: a record is one value.

use std::sync::Arc;

use drumlin_base::{Error, Result};
use drumlin_bench::{Cursor, Flags, Session, Store};

use crate::binding::{Binding, Client};
use crate::fields::Fields;

/// Records of fields in a store of keys and values.
#[derive(Debug)]
pub struct StoreBinding<S> {
    store: Arc<S>,
    flags: Flags,
}

impl<S: Store> StoreBinding<S> {
    /// Records in `store`, written and read under `flags`.
    pub fn new(store: Arc<S>, flags: Flags) -> Self {
        Self { store, flags }
    }
}

impl<S: Store> Binding for StoreBinding<S> {
    type Client<'a> = StoreClient<S::Session<'a>>;

    fn client(&self) -> Result<Self::Client<'_>> {
        Ok(StoreClient {
            session: self.store.session(&self.flags),
            record: Fields::default(),
            value: Vec::new(),
        })
    }

    fn flush(&self) -> Result<()> {
        self.store.flush()
    }
}

/// One thread's session.
#[derive(Debug)]
pub struct StoreClient<S> {
    session: S,
    record: Fields,
    value: Vec<u8>,
}

fn no_fields(key: &[u8]) -> Error {
    let key = String::from_utf8_lossy(key);
    Error::corruption(format!("what is stored at {key} is no record of fields"))
}

impl<S: Session> Client for StoreClient<S> {
    fn read(&mut self, key: &[u8], field: Option<&[u8]>, out: &mut Fields) -> Result<bool> {
        let mut is_sound = true;
        let found = self
            .session
            .get(key, |value| is_sound = out.decode(value, field))?;
        if is_sound {
            Ok(found)
        } else {
            Err(no_fields(key))
        }
    }

    fn read_batch(
        &mut self,
        keys: &[Vec<u8>],
        on_record: &mut dyn FnMut(usize, &Fields),
    ) -> Result<usize> {
        let mut bad = None;
        let record = &mut self.record;
        let found = self.session.multi_get(keys, |index, value| {
            if record.decode(value, None) {
                on_record(index, record);
            } else {
                bad = keys.get(index);
            }
        })?;
        bad.map_or(Ok(found), |key| Err(no_fields(key)))
    }

    fn scan(&mut self, key: &[u8], count: usize, field: Option<&[u8]>) -> Result<usize> {
        let mut cursor = self.session.cursor(None, None)?;
        cursor.seek(key);
        let mut read = 0;
        while read < count && cursor.valid() {
            if !self.record.decode(cursor.value(), field) {
                return Err(no_fields(cursor.key()));
            }
            read += 1;
            cursor.next();
        }
        cursor.status()?;
        Ok(read)
    }

    fn insert(&mut self, key: &[u8], fields: &Fields) -> Result<()> {
        fields.encode(&mut self.value);
        self.session.put(key, &self.value)
    }

    fn update(&mut self, key: &[u8], fields: &Fields) -> Result<bool> {
        let mut record = std::mem::take(&mut self.record);
        let found = self.read(key, None, &mut record);
        if let Ok(true) = found {
            record.update(fields);
            record.encode(&mut self.value);
        }
        self.record = record;
        if !found? {
            return Ok(false);
        }
        self.session.put(key, &self.value).map(|()| true)
    }
}
