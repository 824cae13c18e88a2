//! Goal: every workload loads and runs without a failed operation, in its proportions, and a store that
//! loses or changes a record is noticed. Method: a map as binding, with faults that can be switched on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use drumlin_base::Result;
use drumlin_fs::{CreateOptions, Env, FileKind, StrictMemFileSystem};
use drumlin_ycsb::measurements::Kind;
use drumlin_ycsb::{Binding, Client, Fields, Phase, Properties, Run};

#[derive(Default)]
struct Map {
    records: Mutex<BTreeMap<Vec<u8>, Fields>>,
    /// Reads show another first byte.
    flips: bool,
}

struct MapClient<'m>(&'m Map);

impl Binding for Map {
    type Client<'a> = MapClient<'a>;

    fn client(&self) -> Result<MapClient<'_>> {
        Ok(MapClient(self))
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

impl Client for MapClient<'_> {
    fn read(&mut self, key: &[u8], field: Option<&[u8]>, out: &mut Fields) -> Result<bool> {
        let records = self.0.records.lock().expect("no panics here");
        let Some(record) = records.get(key) else {
            return Ok(false);
        };
        out.clear();
        for (name, value) in record
            .iter()
            .filter(|(name, _)| field.is_none_or(|field| field == *name))
        {
            let mut value = value.to_vec();
            value[0] ^= u8::from(self.0.flips);
            out.push(name, &value);
        }
        Ok(true)
    }
    fn read_batch(
        &mut self,
        keys: &[Vec<u8>],
        on_record: &mut dyn FnMut(usize, &Fields),
    ) -> Result<usize> {
        let mut found = 0;
        let mut record = Fields::default();
        for (index, key) in keys.iter().enumerate() {
            if self.read(key, None, &mut record)? {
                on_record(index, &record);
                found += 1;
            }
        }
        Ok(found)
    }
    fn scan(&mut self, key: &[u8], count: usize, _: Option<&[u8]>) -> Result<usize> {
        let records = self.0.records.lock().expect("no panics here");
        Ok(records.range(key.to_vec()..).take(count).count())
    }
    fn insert(&mut self, key: &[u8], fields: &Fields) -> Result<()> {
        let mut records = self.0.records.lock().expect("no panics here");
        records.insert(key.to_vec(), fields.clone());
        Ok(())
    }
    fn update(&mut self, key: &[u8], fields: &Fields) -> Result<bool> {
        let mut records = self.0.records.lock().expect("no panics here");
        let record = records.get_mut(key);
        Ok(record.map(|record| record.update(fields)).is_some())
    }
}

fn properties(workload: &str, pairs: &[(&str, &str)]) -> Properties {
    let mut properties = Properties::default();
    properties
        .add_file(workload, &Env::system())
        .expect("built in");
    for (name, value) in [
        ("recordcount", "500"),
        ("operationcount", "3000"),
        ("threadcount", "3"),
    ] {
        properties.set(name, value);
    }
    for (name, value) in pairs {
        properties.set(name, value);
    }
    properties
}

fn phase(phase: Phase, properties: &Properties, map: &Map) -> Result<Run> {
    Run::carry_out(phase, properties, map, &Env::system(), &mut |_| {})
}

fn count(run: &Run, kind: Kind) -> u64 {
    run.measurements
        .times(kind)
        .map_or(0, |times| times.count())
}

#[test]
fn every_workload_runs_in_its_proportions_without_a_failure() {
    for (name, kind, share) in [
        ("workloada", Kind::Update, 0.5),
        ("workloadb", Kind::Read, 0.95),
        ("workloadc", Kind::Read, 1.0),
        ("workloadd", Kind::Insert, 0.05),
        ("workloade", Kind::Scan, 0.95),
        ("workloadf", Kind::ReadModifyWrite, 0.5),
    ] {
        let properties = properties(name, &[]);
        let map = Map::default();
        let load = phase(Phase::Load, &properties, &map).expect(name);
        assert_eq!(
            (load.operations, map.records.lock().expect("free").len()),
            (500, 500)
        );
        let run = phase(Phase::Run, &properties, &map).expect(name);
        assert_eq!(run.operations, 3000, "{name}");
        assert_eq!(run.measurements.failed(), 0, "{name}\n{}", run.report());
        let found = count(&run, kind) as f64 / 3000.0;
        assert!((found - share).abs() < 0.04, "{name}: {found}");
        let records = map.records.lock().expect("free").len() as u64;
        assert_eq!(records, 500 + count(&run, Kind::Insert), "{name}");
    }
}

#[test]
fn a_record_has_ten_fields_of_a_hundred_bytes() {
    let map = Map::default();
    phase(
        Phase::Load,
        &properties("workloada", &[("recordcount", "1")]),
        &map,
    )
    .expect("loaded");
    let records = map.records.lock().expect("free");
    let record = records
        .get(&b"user6284781860667377211"[..])
        .expect("YCSB's first key");
    let names: Vec<String> = record
        .iter()
        .map(|(name, _)| String::from_utf8_lossy(name).into_owned())
        .collect();
    assert_eq!(
        (
            names.first().map(String::as_str),
            names.last().map(String::as_str)
        ),
        (Some("field0"), Some("field9"))
    );
    assert!(record.len() == 10 && record.iter().all(|(_, value)| value.len() == 100));
}

#[test]
fn lost_and_changed_records_are_counted_as_failures() {
    let fixed = properties("workloada", &[("dataintegrity", "true")]);
    let mut map = Map::default();
    phase(Phase::Load, &fixed, &map).expect("loaded");
    let run = phase(Phase::Run, &fixed, &map).expect("sound");
    assert_eq!(run.measurements.failed(), 0, "{}", run.report());
    assert_eq!(count(&run, Kind::Verify), count(&run, Kind::Read));
    map.flips = true;
    let run = phase(Phase::Run, &fixed, &map).expect("no error");
    assert_eq!(run.measurements.failed(), count(&run, Kind::Read));
    assert!(run.report().contains("[VERIFY], Return=UNEXPECTED_STATE, "));
    map.flips = false;
    map.records.lock().expect("free").clear();
    let run = phase(Phase::Run, &fixed, &map).expect("no error");
    assert_eq!(run.measurements.failed(), 3000);
    assert!(run.report().contains("[READ], Return=NOT_FOUND, "));
}

#[test]
fn a_target_rate_is_kept_and_reported_from_when_operations_were_due() {
    let paced = properties(
        "workloadc",
        &[
            ("target", "3000"),
            ("operationcount", "600"),
            ("measurement.interval", "both"),
        ],
    );
    let map = Map::default();
    phase(Phase::Load, &paced, &map).expect("loaded");
    let run = phase(Phase::Run, &paced, &map).expect("sound");
    assert!(run.took.as_millis() >= 190, "{:?}", run.took);
    let intended = run.measurements.intended_times(Kind::Read).expect("reads");
    let operation = run.measurements.times(Kind::Read).expect("reads");
    assert!(intended.mean_us() >= operation.mean_us());
    assert!(run.report().contains("[Intended-READ], Operations, 600"));
}

#[test]
fn records_come_from_a_file_and_requests_from_another() {
    let env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
    let write = |name: &str, text: &str| {
        env.files
            .create_dir_all(Path::new("/f"))
            .expect("a directory");
        let options = CreateOptions::new(FileKind::Other);
        let mut file = env
            .files
            .create(&Path::new("/f").join(name), options)
            .expect("a file");
        file.append(text.as_bytes()).expect("room");
        file.close().expect("closed");
    };
    let lines: String = (0..40_000)
        .map(|n| format!("p{n}\tu{}\tthe text of number {n}\n", n % 7))
        .collect();
    write("data", &lines);
    write("keys", "p7 u0\np13 u6\n\np39999 u1\n");
    let mut properties = properties(
        "workloadc",
        &[("workload", "file"), ("datafile", "/f/data")],
    );
    properties.set("keyfields", "0,1");
    let map = Map::default();
    let carry_out = |phase, properties: &Properties| {
        Run::carry_out(phase, properties, &map, &env, &mut |_| {}).expect("sound")
    };
    assert_eq!(carry_out(Phase::Load, &properties).operations, 40_000);
    {
        let records = map.records.lock().expect("free");
        let record = records.get(&b"p39999 u1"[..]).expect("the last line");
        assert_eq!(
            (record.len(), record.get(b"field2")),
            (1, Some(&b"the text of number 39999"[..]))
        );
    }
    let run = carry_out(Phase::Run, &properties);
    assert_eq!(
        (count(&run, Kind::Read), run.measurements.failed()),
        (3000, 0)
    );
    for (name, value) in [
        ("keyfile", "/f/keys"),
        ("batchread", "8"),
        ("requestdistribution", "zipfian"),
    ] {
        properties.set(name, value);
    }
    let run = carry_out(Phase::Run, &properties);
    assert_eq!(
        (count(&run, Kind::BatchRead), run.measurements.failed()),
        (3000, 0)
    );
}
