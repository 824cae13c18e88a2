//! DEBUG DIGEST and DIGEST-VALUE: 20 bytes that are the same where the data is, here and in Redis, whatever its order.
//!
//! To *mix* bytes in is to hash them with all before; to *add* them is to XOR their hash, so that their order does not count.

use drumlin_rdb::Item;
use drumlin_redis_store::{DATABASES, Keyspace, Kind, Outcome};
use sha1::{Digest as _, Sha1};

use crate::call::Call;
use crate::double;
use crate::persist::values;

#[derive(Clone, Copy, Debug, Default)]
struct Digest([u8; 20]);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        let hash = Sha1::digest(bytes);
        for (own, other) in self.0.iter_mut().zip(hash) {
            *own ^= other;
        }
    }

    fn mix(&mut self, bytes: &[u8]) {
        self.add(bytes);
        self.0 = Sha1::digest(self.0).into();
    }

    fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Takes a value in, with its type and with whether it expires.
    fn take_value(&mut self, keys: &Keyspace<'_>, key: &[u8]) -> Outcome<()> {
        let Some(record) = keys.lookup(key)? else {
            return Ok(());
        };
        let number: u32 = match record.kind() {
            Kind::String => 0,
            Kind::List => 1,
            Kind::Set => 2,
            Kind::SortedSet => 3,
            Kind::Hash => 4,
            Kind::Stream => 6,
        };
        self.mix(&number.to_be_bytes());
        values::each_item(keys, key, record.kind(), |item| {
            let mut both = Self::default();
            match &item {
                Item::String(bytes) | Item::Element(bytes) => self.mix(bytes),
                Item::Member(member) => self.add(member),
                Item::Scored(member, score) => {
                    both.mix(member);
                    both.mix(double::print(*score).as_bytes());
                    self.add(&both.0);
                }
                Item::Field(field) => {
                    both.mix(&field.name);
                    both.mix(&field.value);
                    if field.expire_ms.is_some() {
                        both.add(b"!!hexpire!!");
                    }
                    self.add(&both.0);
                }
                Item::Entry(entry) => {
                    let id = entry.id;
                    self.mix(format!("{}.{}", id.ms, id.seq).as_bytes());
                    for (name, value) in &entry.fields {
                        self.mix(name);
                        self.mix(value);
                    }
                }
                Item::Head(..) | Item::Group(_) | Item::Consumer(_) | Item::Pending(_) => {}
            }
            Ok(())
        })?;
        if record.expire_ms().is_some() {
            self.add(b"!!expire!!");
        }
        Ok(())
    }
}

/// Replies the digest of all keys.
pub(super) fn reply_all(call: &mut Call<'_, '_>) -> Outcome<()> {
    let own = call.keys.db();
    let mut all = Digest::default();
    for db in 0..DATABASES {
        call.keys.select(db);
        let keys = &*call.keys;
        let mut is_first = true;
        let mut outcome = Ok(());
        keys.for_each_key(|key, _| {
            if std::mem::take(&mut is_first) {
                all.mix(&u32::from(db).to_be_bytes());
            }
            let mut one = Digest::default();
            one.mix(key);
            outcome = one.take_value(keys, key);
            all.add(&one.0);
            outcome.is_ok()
        })?;
        outcome?;
    }
    call.keys.select(own);
    call.reply.simple(all.hex().as_bytes());
    Ok(())
}

/// Replies the digest of the value of each key, from the third argument on.
pub(super) fn reply_values(call: &mut Call<'_, '_>) -> Outcome<()> {
    call.reply.array(call.len() - 2);
    for key in call.args.from(2).iter() {
        let mut one = Digest::default();
        one.take_value(call.keys, key)?;
        call.reply.simple(one.hex().as_bytes());
    }
    Ok(())
}
