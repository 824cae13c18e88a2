//! HyperLogLogs at keys.

use super::estimate::REGISTERS;
use super::sketch::{Registers, Sketch, cardinality_of};
use super::sparse;
use crate::events::EventClass;
use crate::failure::Outcome;
use crate::keyspace::{Keyspace, Old};
use crate::record::Record;
use crate::types::string;

/// Stores `sketch`, which the string of `old` became.
fn put(
    keys: &mut Keyspace<'_>,
    key: &[u8],
    old: Option<&Record>,
    sketch: &Sketch<'_>,
) -> Outcome<()> {
    let new = string::changed_in_place(old, sketch.bytes());
    keys.put(key, Old::Is(old), new)
}

/// Adds elements; whether that changed anything, a key that is new among it. Tells `pfadd` then.
///
/// # Errors
/// `WrongType`; no HyperLogLog; one that is damaged; the keyspace's.
pub fn add<'e>(
    keys: &mut Keyspace<'_>,
    key: &[u8],
    elements: impl IntoIterator<Item = &'e [u8]>,
    sparse_bytes_max: usize,
) -> Outcome<bool> {
    let old = string::get(keys, key)?;
    let mut sketch = match &old {
        Some(record) => Sketch::of(record.payload())?,
        None => Sketch::new(),
    };
    let mut changed = old.is_none();
    for element in elements {
        changed |= sketch.add(element, sparse_bytes_max)?;
    }
    if changed {
        sketch.forget_cardinality();
        put(keys, key, old.as_ref(), &sketch)?;
        keys.event(EventClass::String, "pfadd", key);
    }
    Ok(changed)
}

/// How many different elements there are in the HyperLogLogs of `names`, about. That of a single one is kept with it.
///
/// # Errors
/// As those of [`add`].
pub fn count(keys: &mut Keyspace<'_>, names: &[&[u8]]) -> Outcome<u64> {
    let [key] = names else {
        let mut registers = vec![0; REGISTERS];
        for name in names {
            if let Some(record) = string::get(keys, name)? {
                Sketch::of(record.payload())?.raise_each(&mut registers)?;
            }
        }
        return Ok(cardinality_of(&registers));
    };
    let Some(record) = string::get(keys, key)? else {
        return Ok(0);
    };
    let mut sketch = Sketch::of(record.payload())?;
    if let Some(kept) = sketch.kept_cardinality() {
        return Ok(kept);
    }
    let cardinality = sketch.cardinality()?;
    sketch.keep_cardinality(cardinality);
    put(keys, key, Some(&record), &sketch)?;
    Ok(cardinality)
}

/// Makes the HyperLogLog at `to` the union of itself and those at `from`. It is dense if one of them is. Tells `pfadd`.
///
/// # Errors
/// As those of [`add`].
pub fn merge<'k>(
    keys: &mut Keyspace<'_>,
    to: &[u8],
    from: impl IntoIterator<Item = &'k [u8]>,
    sparse_bytes_max: usize,
) -> Outcome<()> {
    let mut registers = vec![0; REGISTERS];
    let mut any_dense = false;
    let mut raise_by = |record: &Record| {
        let sketch = Sketch::of(record.payload())?;
        any_dense |= sketch.is_dense();
        sketch.raise_each(&mut registers)
    };
    let old = string::get(keys, to)?;
    if let Some(record) = &old {
        raise_by(record)?;
    }
    for name in from {
        if let Some(record) = string::get(keys, name)? {
            raise_by(&record)?;
        }
    }
    let mut sketch = match &old {
        Some(record) => Sketch::of(record.payload())?,
        None => Sketch::new(),
    };
    if any_dense {
        sketch.make_dense()?;
    }
    for (index, value) in registers.iter().enumerate() {
        if *value > 0 {
            sketch.raise(index, *value, sparse_bytes_max)?;
        }
    }
    sketch.forget_cardinality();
    put(keys, to, old.as_ref(), &sketch)?;
    keys.event(EventClass::String, "pfadd", to);
    Ok(())
}

/// The value of each register of that at `key`, if there is one: it is dense after that.
///
/// # Errors
/// As those of [`add`].
pub fn registers(keys: &mut Keyspace<'_>, key: &[u8]) -> Outcome<Option<Registers>> {
    if make_dense(keys, key)?.is_none() {
        return Ok(None);
    }
    let mut registers = vec![0; REGISTERS];
    if let Some(record) = string::get(keys, key)? {
        Sketch::of(record.payload())?.raise_each(&mut registers)?;
    }
    Ok(Some(registers))
}

/// Makes that at `key` dense; whether it was not. `None` where there is no key.
///
/// # Errors
/// As those of [`add`].
pub fn make_dense(keys: &mut Keyspace<'_>, key: &[u8]) -> Outcome<Option<bool>> {
    let Some(record) = string::get(keys, key)? else {
        return Ok(None);
    };
    let mut sketch = Sketch::of(record.payload())?;
    let was_sparse = !sketch.is_dense();
    if was_sparse {
        sketch.make_dense()?;
        put(keys, key, Some(&record), &sketch)?;
    }
    Ok(Some(was_sparse))
}

/// `dense` or `sparse`; `None` where there is no key.
///
/// # Errors
/// `WrongType`; no HyperLogLog; the keyspace's.
pub fn encoding(keys: &Keyspace<'_>, key: &[u8]) -> Outcome<Option<&'static str>> {
    let Some(record) = string::get(keys, key)? else {
        return Ok(None);
    };
    Ok(Some(match Sketch::of(record.payload())?.is_dense() {
        true => "dense",
        false => "sparse",
    }))
}

/// The runs of a sparse one as `PFDEBUG DECODE` tells them; nothing of a dense one.
///
/// # Errors
/// `WrongType`; no HyperLogLog; the keyspace's.
pub fn decode(keys: &Keyspace<'_>, key: &[u8]) -> Outcome<Option<String>> {
    let Some(record) = string::get(keys, key)? else {
        return Ok(None);
    };
    let sketch = Sketch::of(record.payload())?;
    if sketch.is_dense() {
        return Ok(None);
    }
    let runs = sparse::runs(sketch.bytes()).map(|run| match (run.value, run.width) {
        (0, 1) => format!("z:{}", run.len),
        (0, _) => format!("Z:{}", run.len),
        (value, _) => format!("v:{value},{}", run.len),
    });
    Ok(Some(runs.collect::<Vec<_>>().join(" ")))
}
