//! The core workload: records of random fields, read, changed, added and scanned in proportions.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use drumlin_base::rng::Rng;
use drumlin_base::{Error, Result};

use crate::binding::Client;
use crate::choosers::Chooser;
use crate::distributions::Zipfian;
use crate::fields::Fields;
use crate::keys::KeyShape;
use crate::measurements::{Kind, Return};
use crate::properties::Properties;
use crate::values::{append_fixed, append_random};
use crate::workload::{Stopwatch, Workload, found, rng_of_thread};

/// Lengths between two ends.
#[derive(Clone, Debug)]
enum Lengths {
    Constant(u64),
    Uniform(u64, u64),
    Zipfian(u64, Zipfian),
}

impl Lengths {
    fn new(
        properties: &Properties,
        name: &str,
        default: &str,
        least: u64,
        most: u64,
    ) -> Result<Self> {
        let kind = properties.text(name, default);
        if least > most {
            let message =
                format!("{name}: the least length {least} is more than the greatest {most}");
            return Err(Error::invalid_argument(message));
        }
        Ok(match kind.as_str() {
            "constant" => Self::Constant(most),
            "uniform" => Self::Uniform(least, most),
            "zipfian" => Self::Zipfian(least, Zipfian::new(most - least + 1, 0.99)),
            _ => {
                let message = format!("{name}={kind}: there is constant, uniform and zipfian");
                return Err(Error::invalid_argument(message));
            }
        })
    }

    fn next(&self, rng: &mut Rng) -> usize {
        let length = match self {
            Self::Constant(length) => *length,
            Self::Uniform(least, most) => least + rng.below(most - least + 1),
            Self::Zipfian(least, zipfian) => least + zipfian.next(rng),
        };
        usize::try_from(length).unwrap_or(usize::MAX)
    }
}

/// Numbers given out in order and acknowledged in any: the last up to which all are acknowledged.
#[derive(Debug)]
struct Sequence {
    next: AtomicU64,
    /// Numbers below are acknowledged.
    below: AtomicU64,
    ahead: Mutex<BTreeSet<u64>>,
}

impl Sequence {
    fn new(start: u64) -> Self {
        Self {
            next: AtomicU64::new(start),
            below: AtomicU64::new(start),
            ahead: Mutex::default(),
        }
    }

    fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn acknowledge(&self, number: u64) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        ahead.insert(number);
        let mut below = self.below.load(Ordering::Relaxed);
        while ahead.remove(&below) {
            below += 1;
        }
        // Relaxed: a reader then asks the store, which orders the writes.
        self.below.store(below, Ordering::Relaxed);
    }

    /// The last number that is there.
    fn last(&self) -> u64 {
        self.below.load(Ordering::Relaxed).saturating_sub(1)
    }
}

/// The operations of the run and their shares.
const KINDS: [(Kind, &str, f64); 5] = [
    (Kind::Read, "readproportion", 0.95),
    (Kind::Update, "updateproportion", 0.05),
    (Kind::Insert, "insertproportion", 0.0),
    (Kind::Scan, "scanproportion", 0.0),
    (Kind::ReadModifyWrite, "readmodifywriteproportion", 0.0),
];

/// The workload under its properties.
#[derive(Debug)]
pub(crate) struct Core {
    keys: KeyShape,
    field_names: Vec<Vec<u8>>,
    field_lengths: Lengths,
    scan_lengths: Lengths,
    reads_all: bool,
    writes_all: bool,
    verifies: bool,
    shares: [f64; KINDS.len()],
    chooser: Chooser,
    seed: u64,
    /// Of the load.
    loading: Sequence,
    load_end: u64,
    /// Of the run's inserts.
    adding: Sequence,
}

/// The proportions of the operations, in the order of [`KINDS`], as they were given.
///
/// # Errors
/// `InvalidArgument`: a negative one, or nothing but zeros.
fn proportions(properties: &Properties) -> Result<[f64; KINDS.len()]> {
    let mut shares = [0.0; KINDS.len()];
    for (share, (_, name, default)) in shares.iter_mut().zip(KINDS) {
        *share = properties.number::<f64>(name, default)?;
    }
    if shares.iter().sum::<f64>() <= 0.0 || shares.iter().any(|share| *share < 0.0) {
        return Err(Error::invalid_argument(
            "the proportions of the operations must be above 0",
        ));
    }
    Ok(shares)
}

impl Core {
    /// The workload of `properties`.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn new(properties: &Properties) -> Result<Self> {
        let records: u64 = properties.number("recordcount", 0)?;
        if records == 0 {
            return Err(Error::invalid_argument(
                "recordcount must be at least 1: -p recordcount=1000000",
            ));
        }
        let start: u64 = properties.number("insertstart", 0)?;
        let count: u64 = properties.number("insertcount", records.saturating_sub(start))?;
        let operations: f64 = properties.number("operationcount", 0.0)?;
        let asked = proportions(properties)?;
        let [_, _, inserts, ..] = asked;
        let sum: f64 = asked.iter().sum();
        let verifies = properties.number("dataintegrity", false)?;
        let field_length = properties.number("fieldlength", 100)?;
        let fields = properties.number::<usize>("fieldcount", 10)?;
        let prefix = properties.text("fieldnameprefix", "field");
        let made = Self {
            keys: KeyShape {
                is_ordered: properties.text("insertorder", "hashed") == "ordered",
                digits: properties.number("zeropadding", 1)?,
            },
            field_names: (0..fields)
                .map(|number| format!("{prefix}{number}").into_bytes())
                .collect(),
            field_lengths: Lengths::new(
                properties,
                "fieldlengthdistribution",
                "constant",
                properties.number("minfieldlength", 1)?,
                field_length,
            )?,
            scan_lengths: Lengths::new(
                properties,
                "scanlengthdistribution",
                "uniform",
                properties.number("minscanlength", 1)?,
                properties.number("maxscanlength", 1000)?,
            )?,
            reads_all: properties.number("readallfields", true)?,
            writes_all: properties.number("writeallfields", false)?,
            verifies,
            shares: asked.map(|share| share / sum),
            chooser: Chooser::new(
                properties,
                start + count,
                (operations * inserts * 2.0) as u64,
            )?,
            seed: properties.number("seed", 0)?,
            loading: Sequence::new(start),
            load_end: start + count,
            adding: Sequence::new(records),
        };
        if made.field_names.is_empty() {
            return Err(Error::invalid_argument("fieldcount must be at least 1"));
        }
        if verifies && !matches!(made.field_lengths, Lengths::Constant(_)) {
            let message =
                "dataintegrity needs fields of one length (fieldlengthdistribution=constant)";
            return Err(Error::invalid_argument(message));
        }
        Ok(made)
    }

    fn append_value(&self, key: &[u8], name: &[u8], rng: &mut Rng, out: &mut Vec<u8>) {
        let length = self.field_lengths.next(rng);
        if self.verifies {
            append_fixed(key, name, length, out);
        } else {
            append_random(length, rng, out);
        }
    }

    /// Replaces the thread's record by all fields of its key, or by one that is drawn.
    fn fill(&self, thread: &mut Thread, all: bool) {
        let Thread {
            rng, key, record, ..
        } = thread;
        record.clear();
        let one = self.draw_field(rng);
        let names = self
            .field_names
            .iter()
            .filter(|name| all || name.as_slice() == one);
        for name in names {
            record.push_with(name, |out| self.append_value(key, name, rng, out));
        }
    }

    fn draw_field(&self, rng: &mut Rng) -> &[u8] {
        let index = rng.below(self.field_names.len() as u64) as usize;
        self.field_names
            .get(index)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    fn choose_key(&self, thread: &mut Thread) {
        let number = thread.chooser.next(self.adding.last(), &mut thread.rng);
        self.keys.write(number, &mut thread.key);
    }

    fn read(
        &self,
        thread: &mut Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
    ) -> Result<()> {
        let field = (!self.reads_all).then(|| self.draw_field(&mut thread.rng));
        let Thread { key, read, .. } = thread;
        let is_there = watch.time(Kind::Read, || {
            let is_there = client.read(key, field, read)?;
            Ok((is_there, found(is_there)))
        })?;
        if self.verifies && is_there {
            watch.time(Kind::Verify, || Ok(((), self.verify(thread, field))))?;
        }
        Ok(())
    }

    /// Whether the fields read are those of the key.
    fn verify(&self, thread: &mut Thread, field: Option<&[u8]>) -> Return {
        let Thread {
            rng,
            key,
            read,
            expected,
            ..
        } = thread;
        let count = if field.is_some() {
            1
        } else {
            self.field_names.len()
        };
        let mut is_same = read.len() == count;
        for (name, value) in read.iter() {
            expected.clear();
            self.append_value(key, name, rng, expected);
            is_same &= value == expected.as_slice();
        }
        if is_same {
            Return::Ok
        } else {
            Return::UnexpectedState
        }
    }

    fn update(
        &self,
        thread: &mut Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
    ) -> Result<()> {
        self.fill(thread, self.writes_all);
        let Thread { key, record, .. } = thread;
        watch.time(Kind::Update, || {
            let is_there = client.update(key, record)?;
            Ok(((), found(is_there)))
        })
    }

    fn insert(
        &self,
        thread: &mut Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
        from: &Sequence,
        number: u64,
    ) -> Result<()> {
        self.keys.write(number, &mut thread.key);
        self.fill(thread, true);
        let Thread { key, record, .. } = thread;
        watch.time(Kind::Insert, || {
            client.insert(key, record)?;
            Ok(((), Return::Ok))
        })?;
        from.acknowledge(number);
        Ok(())
    }

    fn scan(
        &self,
        thread: &mut Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
    ) -> Result<()> {
        let count = self.scan_lengths.next(&mut thread.rng);
        let field = (!self.reads_all).then(|| self.draw_field(&mut thread.rng));
        watch.time(Kind::Scan, || {
            let read = client.scan(&thread.key, count, field)?;
            Ok(((), found(read > 0)))
        })
    }
}

/// One thread's state.
#[derive(Debug)]
pub(crate) struct Thread {
    rng: Rng,
    chooser: Chooser,
    key: Vec<u8>,
    record: Fields,
    read: Fields,
    expected: Vec<u8>,
}

impl Workload for Core {
    type Thread = Thread;

    fn thread(&self, index: u64) -> Thread {
        Thread {
            rng: rng_of_thread(self.seed, index),
            chooser: self.chooser.clone(),
            key: Vec::new(),
            record: Fields::default(),
            read: Fields::default(),
            expected: Vec::new(),
        }
    }

    fn load_one(
        &self,
        thread: &mut Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
    ) -> Result<bool> {
        let number = self.loading.take();
        if number >= self.load_end {
            return Ok(false);
        }
        self.insert(thread, client, watch, &self.loading, number)?;
        Ok(true)
    }

    fn run_one(
        &self,
        thread: &mut Thread,
        client: &mut impl Client,
        watch: &mut Stopwatch<'_>,
    ) -> Result<()> {
        let mut draw = thread.rng.unit();
        let mut chosen = Kind::Read;
        for ((kind, ..), share) in KINDS.iter().zip(self.shares) {
            if share > 0.0 {
                chosen = *kind;
            }
            if draw < share {
                break;
            }
            draw -= share;
        }
        if chosen == Kind::Insert {
            let number = self.adding.take();
            return self.insert(thread, client, watch, &self.adding, number);
        }
        self.choose_key(thread);
        match chosen {
            Kind::Update => self.update(thread, client, watch),
            Kind::Scan => self.scan(thread, client, watch),
            Kind::ReadModifyWrite => {
                let (intended, began) = (watch.intended, watch.clock.monotonic());
                self.read(thread, client, watch)?;
                self.update(thread, client, watch)?;
                let ended = watch.clock.monotonic();
                watch.measurements.record(
                    Kind::ReadModifyWrite,
                    intended,
                    began,
                    ended,
                    Return::Ok,
                );
                Ok(())
            }
            _ => self.read(thread, client, watch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_record_there_is_the_one_below_which_none_is_missing() {
        let sequence = Sequence::new(10);
        assert_eq!(
            [sequence.take(), sequence.take(), sequence.take()],
            [10, 11, 12]
        );
        assert_eq!(sequence.last(), 9);
        sequence.acknowledge(11);
        sequence.acknowledge(12);
        assert_eq!(sequence.last(), 9);
        sequence.acknowledge(10);
        assert_eq!(sequence.last(), 12);
    }

    #[test]
    fn lengths_keep_to_their_ends() {
        let mut properties = Properties::default();
        let mut rng = Rng::new(2);
        for kind in ["constant", "uniform", "zipfian"] {
            properties.set("lengths", kind);
            let lengths = Lengths::new(&properties, "lengths", "", 3, 20).expect(kind);
            assert!(
                (0..2000).all(|_| (3..=20).contains(&lengths.next(&mut rng))),
                "{kind}"
            );
        }
        properties.set("lengths", "histogram");
        assert!(Lengths::new(&properties, "lengths", "", 3, 20).is_err());
        assert!(Lengths::new(&properties, "else", "uniform", 30, 20).is_err());
    }

    #[test]
    fn what_cannot_run_is_refused() {
        let with = |pairs: &[(&str, &str)]| {
            let mut properties = Properties::default();
            properties.set("recordcount", "10");
            for (name, value) in pairs {
                properties.set(name, value);
            }
            Core::new(&properties)
        };
        assert!(with(&[]).is_ok());
        for pair in [
            ("recordcount", "0"),
            ("fieldcount", "0"),
            ("readproportion", "-1"),
            ("requestdistribution", "x"),
            ("fieldlength", "many"),
        ] {
            assert!(with(&[pair]).is_err(), "{pair:?}");
        }
        assert!(
            with(&[
                ("dataintegrity", "true"),
                ("fieldlengthdistribution", "uniform")
            ])
            .is_err()
        );
    }
}
