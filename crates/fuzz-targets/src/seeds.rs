//! The inputs that fuzzing starts from: real files and their parts, and small ones made here.
//!
//! `cargo run -p drumlin-fuzz-targets --example make_corpus` writes them to `fuzz/corpus`. Inputs
//! that fuzzing finds are added there by hand, under a name for the bug.

use std::path::Path;
use std::sync::Arc;

use drumlin::WriteBatch;
use drumlin::internals::record::RecordReader;
use drumlin::internals::version::{History, PastMoment, Profile, VersionEdit};
use drumlin_base::key::{ValueKind, internal_key};
use drumlin_base::operators::FixedPrefix;
use drumlin_base::rng::Rng;
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};
use drumlin_table::blob::BlobWriter;
use drumlin_table::compress::{Framing, compress, decompress};
use drumlin_table::filter::LevelDbFilterBuilder;
use drumlin_table::probe::build_block;
use drumlin_table::{
    BlockHandle, ChecksumKind, Codec, Compression, FilterBuilder, FilterOptions, Footer,
    TableFormat, TableStyle, TableWriter, TableWriterOptions,
};

use drumlin_succinct::{KeyIndexBuilder, Model};

use crate::reseal::entries;
use crate::targets::expect::memory_file;
use crate::targets::table::PREFIX_BYTES;

/// Tables of RocksDB and LevelDB that are taken whole; of the others only parts.
const WHOLE_TABLES: [&str; 8] = [
    "bzip2.sst",
    "ingested.sst",
    "leveldb_snappy.ldb",
    "lz4.sst",
    "snappy.sst",
    "zlib.sst",
    "zstd.sst",
    "zstd_dict.sst",
];
const TABLES_FOR_PARTS: [&str; 8] = [
    "data_hash.sst",
    "first_key.sst",
    "fv2.sst",
    "fv5.sst",
    "hash_index.sst",
    "partitioned.sst",
    "ribbon.sst",
    "leveldb_none.ldb",
];
const LOGS: [(&str, &str); 4] = [
    ("wal_reader", "leveldb-1.23/000011.log"),
    ("wal_reader", "rocksdb-7.8.3/000016.log"),
    ("manifest_replay", "leveldb-1.23/MANIFEST-000008"),
    ("manifest_replay", "rocksdb-7.8.3/MANIFEST-000017"),
];
const NAMES: [&str; 14] = [
    "000001.log",
    "000002.sst",
    "000003.ldb",
    "000004.blob",
    "MANIFEST-000005",
    "OPTIONS-000006",
    "CURRENT",
    "LOCK",
    "IDENTITY",
    "LOG.old.17",
    "000007.dbtmp",
    "OPTIONS-000008.dbtmp",
    "18446744073709551615.sst",
    "zstd",
];

/// Rules of users of Redis.
const USERS: [(&str, &str); 6] = [
    ("plain", "on nopass ~a* %R~b* &c +@all -@dangerous"),
    (
        "password",
        "off #2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90 +get",
    ),
    (
        "subcommands",
        "+config|get +select|0 -client|kill +@read -@fast",
    ),
    (
        "selectors",
        "on (+get ~a) (%W~b* +@write &x) clearselectors (+set ~c)",
    ),
    ("quotes", "(\"~a)\" '~b c' +get) (~\\\"x +set)"),
    (
        "two",
        "on\n\n user b reset sanitize-payload allkeys\r\nuser default off",
    ),
];

/// Scripts, their libraries, and what ends them.
const SCRIPTS: [(&str, &str); 8] = [
    (
        "table",
        "local t = {}; for i = 1, 9 do t[#t + 1] = i .. ARGV[1] end; return t",
    ),
    ("for-ever", "while true do pcall(error, {}) end"),
    ("memory", "local s = 'x'; while true do s = s .. s end"),
    (
        "patterns",
        "return string.gsub(ARGV[1], '(%w+) (%f[%w]%w*)', '%2 %1')",
    ),
    (
        "formats",
        "return string.format('%5.2f %q %s %i', 1.5, ARGV[1], '\\0', -3)",
    ),
    (
        "deep",
        "local t = {}; for i = 1, 300 do t = {t} end; return cjson.encode(t)",
    ),
    (
        "ways-out",
        "return pcall(setmetatable(redis, {}), getmetatable(_G), coroutine.wrap(unpack)({}, 1, 8000))",
    ),
    (
        "numbers",
        "return struct.pack('>i4d!8sBb', 7, 0.5, 'a', 255, -1) .. bit.tohex(bit.bxor(1, -1)) .. cmsgpack.pack({1, a = 2})",
    ),
];

/// A format of `struct`, and bytes that some library reads.
const VALUES: [(&str, &str, &[u8]); 6] = [
    (
        "json",
        "",
        br#"{"a": [1, -2.5e3, true, null, "\u00e9\n"], "": {}}"#,
    ),
    ("json-deep", "", b"[[[[[[[[[[{\"a\":[[[[]]]]}]]]]]]]]]]"),
    (
        "msgpack",
        "",
        b"\x82\xa1a\x93\x01\xcd\x01\x00\xcb\x3f\xf0\0\0\0\0\0\0\xa0\xc0",
    ),
    ("msgpack-claims", "", b"\xdd\xff\xff\xff\xff\x01"),
    (
        "struct",
        ">I2!4i8d",
        b"\x00\x07\0\0\x01\x02\x03\x04\x05\x06\x07\x08\x3f\xf0\0\0\0\0\0\0",
    ),
    ("struct-text", "sBc0xc3", b"text\0\x02abxyz"),
];

/// Configuration files.
const CONFIGS: [(&str, &str); 3] = [
    (
        "plain",
        "# ours\nport 7000\nsave 60 1 300 10\nmaxmemory 1gb\nrequirepass \"a \\\"b\\\"\"\n",
    ),
    (
        "limits",
        "client-output-buffer-limit replica 256mb 64mb 60\nSLAVE-PRIORITY 7\nappendfsync always\n",
    ),
    (
        "names",
        "rename-command FLUSHALL \"\"\nuser a on ~x +get\nnotify-keyspace-events KEA\nreplicaof 127.0.0.1 6379\n",
    ),
];

/// Patterns and texts.
const GLOBS: [(&str, &str); 4] = [
    ("h[a-c^]?llo*", "hbxllo, hello"),
    ("*a*a*b", "aaaaaaaaaab"),
    ("\\*[^\\]x]\\", "*y\\"),
    ("[z-a]*[", "m"),
];

/// One file of the corpus.
#[derive(Clone, Debug)]
pub struct Seed {
    /// The target it is for.
    pub target: &'static str,
    /// Its file name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Every seed. `read` gives a file by its path from the root of the repository.
pub fn corpus(read: &dyn Fn(&str) -> Vec<u8>) -> Vec<Seed> {
    let mut corpus = Corpus(Vec::new());
    for name in WHOLE_TABLES {
        let table = read(&format!("crates/table/tests/data/golden/{name}"));
        corpus.parts_of(name, &table);
        corpus.add("sst_open_scan", name, table);
    }
    for name in TABLES_FOR_PARTS {
        let table = read(&format!("crates/table/tests/data/golden/{name}"));
        corpus.parts_of(name, &table);
    }
    for (target, name) in LOGS {
        corpus.log(
            target,
            name,
            read(&format!("crates/engine/tests/data/{name}")),
        );
    }
    let options = read("crates/engine/tests/data/rocksdb-7.8.3/OPTIONS-000019");
    corpus.add("options_file", "rocksdb-7.8.3", options);
    for name in ["000010.blob", "000014.blob"] {
        let file = read(&format!("crates/engine/tests/data/rocksdb-11/blobs/{name}"));
        corpus.add("blob_file", &format!("rocksdb-11-{name}"), file);
    }
    corpus.blobs();
    corpus.own_tables();
    corpus.key_indexes();
    corpus.own_blocks();
    corpus.texts_and_batches();
    corpus.programs();
    corpus.add("manifest_edit", "history", history());
    let made = crate::models::seeds().into_iter();
    let made = made.chain(crate::claims::seeds());
    for (target, name, bytes) in made
        .chain(crate::mongo::seeds())
        .chain(crate::mongo_operators::seeds())
        .chain(crate::changes::seeds())
        .chain(crate::redis::seeds())
        .chain(crate::resp::seeds())
    {
        corpus.add(target, &name, bytes);
    }
    corpus.0
}

/// An edit that says what is kept of the past.
fn history() -> Vec<u8> {
    let marked = [
        (1_795_700_000, 0),
        (1_795_700_300, 17),
        (1_795_703_600, 1 << 40),
    ];
    let marked = marked.map(|(unix_seconds, seqno)| PastMoment {
        unix_seconds,
        seqno,
    });
    let edit = VersionEdit {
        history: Some(History {
            keep_seconds: 86_400,
            every_seconds: 300,
            marked: marked.into(),
        }),
        ..VersionEdit::default()
    };
    edit.encode(Profile::RocksDb).expect("it can be said")
}

struct Corpus(Vec<Seed>);

impl Corpus {
    fn add(&mut self, target: &'static str, name: &str, bytes: Vec<u8>) {
        self.0.push(Seed {
            target,
            name: name.replace('/', "-"),
            bytes,
        });
    }

    /// A log, whole and, if it is a MANIFEST, record by record.
    fn log(&mut self, target: &'static str, name: &str, bytes: Vec<u8>) {
        if target == "wal_reader" {
            return self.add(target, name, [&[1], bytes.as_slice()].concat());
        }
        let mut reader = RecordReader::new(memory_file(bytes.clone()), 0);
        let mut index = 0;
        while let Ok(Some(record)) = reader.read() {
            let payload = record.payload.to_vec();
            self.add("manifest_edit", &format!("{name}-{index}"), payload);
            index += 1;
        }
        self.add("wal_reader", name, [&[1], bytes.as_slice()].concat());
        self.add(target, name, bytes);
    }

    /// Index, filter, properties and first data block of a table.
    fn parts_of(&mut self, name: &str, table: &[u8]) {
        let footer = Footer::decode(table, table.len() as u64).expect("a sound table");
        let framing = Framing::of(footer.style, footer.format_version);
        let block = |handle: BlockHandle| {
            let (start, size) = (handle.offset as usize, handle.size as usize);
            let (body, kind) = (&table[start..start + size], table[start + size]);
            decompress(kind, body, None, framing, 1 << 20).ok()
        };
        for (key, value) in entries(&block(footer.metaindex).expect("a sound table")) {
            let key = String::from_utf8_lossy(&key).into_owned();
            let Ok((handle, _)) = BlockHandle::decode(&value) else {
                continue;
            };
            let Some(bytes) = block(handle) else { continue };
            if key == "rocksdb.properties" {
                self.add("table_properties", name, pairs(&entries(&bytes)));
            } else if key.starts_with("fullfilter") {
                self.add("filter_block", name, [&[0], bytes.as_slice()].concat());
            } else if key.starts_with("filter.leveldb") {
                let head = [1, 0, 8, 0, 0, 0, 0, 0, 0];
                self.add("filter_block", name, [&head, bytes.as_slice()].concat());
            }
        }
        if let Some(index) = footer.index.and_then(block) {
            let shape = match footer.format_version {
                0..=2 => 0,
                3 => 1,
                _ if name == "first_key.sst" => 7,
                _ => 3,
            };
            self.add("index_block", name, [&[shape], index.as_slice()].concat());
        }
        if let Some(first) = first_block(table).and_then(block) {
            self.add("data_block_iter", name, [&[1], first.as_slice()].concat());
        }
    }

    /// Indexes of keys that are encoded as columns of each kind, and as texts.
    fn key_indexes(&mut self) {
        type Shape = (&'static str, fn(u32) -> Vec<u8>);
        let shapes: [Shape; 5] = [
            ("columns", |n| {
                format!("{n:03}|{}|{}", n * 7 % 101, n % 5).into_bytes()
            }),
            ("decimals", |n| {
                format!("a{}|{:02x}", n + 90, n % 200).into_bytes()
            }),
            ("integers", |n| (u64::from(n) * 77).to_be_bytes().to_vec()),
            ("texts", |n| {
                format!("/usr/share/{}/x", "doc".repeat(n as usize % 7)).into_bytes()
            }),
            ("random", |n| {
                n.wrapping_mul(0x9e37_79b9).to_be_bytes().repeat(4)
            }),
        ];
        for (name, key) in shapes {
            let mut keys: Vec<Vec<u8>> = (0..150).map(key).collect();
            keys.sort_unstable();
            keys.dedup();
            let mut builder = KeyIndexBuilder::new();
            for key in &keys {
                builder.add(key).expect("the keys ascend");
            }
            let (blocks, tail) = builder.finish().expect("few keys are not too many");
            let mut seed = (tail.len() as u16).to_le_bytes().to_vec();
            seed.extend_from_slice(&tail);
            seed.extend_from_slice(&blocks);
            self.add("key_index", name, seed);
        }
    }

    /// Small tables of every style: without checksums too, so that a plain mutation is enough.
    fn own_tables(&mut self) {
        let plain = TableWriterOptions {
            block_bytes: 256,
            restart_interval: 4,
            checksum: ChecksumKind::None,
            ..TableWriterOptions::default()
        };
        let filter = Some(FilterOptions {
            bits_per_key: 10.0,
            whole_keys: true,
            prefix: None,
        });
        let partitioned = TableWriterOptions {
            filter: filter.clone(),
            partition_filters: true,
            partition_index_above_bytes: 1,
            expected_bytes: 1 << 20,
            ..plain.clone()
        };
        let compressed = TableWriterOptions {
            compression: Compression::new(Codec::Zstd),
            filter: filter.clone(),
            ..plain.clone()
        };
        let leveldb = TableWriterOptions {
            style: TableStyle::LevelDb,
            filter: filter.clone(),
            ..plain.clone()
        };
        let filtered = TableWriterOptions {
            filter,
            ..plain.clone()
        };
        let hashed = TableWriterOptions {
            format: TableFormat::Plain,
            filter: Some(FilterOptions {
                prefix: Some(Arc::new(FixedPrefix::new(PREFIX_BYTES))),
                ..FilterOptions::default()
            }),
            ..plain.clone()
        };
        let searchable = TableWriterOptions {
            format: TableFormat::Searchable,
            ..plain.clone()
        };
        let naming = TableWriterOptions {
            model: Some(Arc::new(Model::raw())),
            ..searchable.clone()
        };
        let styles = [
            ("searchable-naming", naming),
            ("searchable", searchable),
            ("plain-table", hashed),
            ("own-plain", plain),
            ("own-filtered", filtered),
            ("own-partitioned", partitioned),
            ("own-compressed", compressed),
            ("own-leveldb", leveldb),
        ];
        for (name, options) in styles {
            for count in [0, 1, 150] {
                let bytes = table(options.clone(), count);
                self.add("sst_open_scan", &format!("{name}-{count}"), bytes);
            }
        }
    }

    /// A small blob file of each codec, and references into them.
    fn blobs(&mut self) {
        for codec in Codec::ALL {
            let files = StrictMemFileSystem::new();
            let path = Path::new("/blobs");
            let file = files.create(path, CreateOptions::new(FileKind::Blob));
            let file = file.expect("memory has no limit");
            let writer = BlobWriter::new(file, 7, 1, Compression::new(codec));
            let mut writer = writer.expect("memory has no limit");
            for index in 0..12 {
                let (key, value) = point(index);
                let value = value.repeat(1 + index as usize);
                let index = writer.add(&key, &value).expect("memory has no limit");
                let mut reference = Vec::new();
                index.encode(&mut reference);
                self.add("blob_index", &format!("{codec}-{}", key.len()), reference);
            }
            writer.finish().expect("memory has no limit");
            let bytes = files.read_file(path, u64::MAX);
            self.add("blob_file", &format!("own-{codec}"), bytes.expect("there"));
        }
        for (name, bytes) in [
            ("inlined-ttl", &b"\x00\x80\x01value"[..]),
            ("blob-ttl", b"\x02\x80\x01\x07\x64\x0a\x00"),
            ("embedded", b"\x01\x00\x64\x0a\x00"),
        ] {
            self.add("blob_index", name, bytes.to_vec());
        }
    }

    fn own_blocks(&mut self) {
        for (name, count, interval) in [("own-1", 1, 1), ("own-40", 40, 3), ("own-200", 200, 16)] {
            let entries: Vec<_> = (0..count).map(point).collect();
            let block = build_block(&entries, interval, &[]);
            self.add("data_block_iter", name, [&[1], block.as_slice()].concat());
            let block = build_block(&entries, interval, &[7; 53]);
            let name = format!("{name}-hash");
            self.add("data_block_iter", &name, [&[1], block.as_slice()].concat());
        }
        let (mut filter, mut leveldb) = (FilterBuilder::new(10.0), LevelDbFilterBuilder::new(10));
        for index in 0..60 {
            filter.add_key(&point(index).0);
            leveldb.start_block(u64::from(index) * 512);
            leveldb.add_key(&point(index).0);
        }
        let head = [1, 0, 8, 0, 0, 0, 0, 0, 0];
        self.add("filter_block", "own", [vec![0], filter.finish()].concat());
        self.add(
            "filter_block",
            "own-leveldb",
            [head.to_vec(), leveldb.finish()].concat(),
        );
        let text: Vec<u8> = (0..40).flat_map(|index| point(index).0).collect();
        for (type_byte, codec) in Codec::ALL.into_iter().enumerate() {
            for (index, framing) in [Framing::SizePrefix, Framing::LevelDb]
                .into_iter()
                .enumerate()
            {
                let mut out = Vec::new();
                let used = compress(codec, None, None, &text, framing, &mut out);
                let id = used.id(framing.style()).unwrap_or(type_byte as u8);
                let bytes = [&[id, index as u8, 0], out.as_slice()].concat();
                self.add("decompress", &format!("{codec}-{index}"), bytes);
            }
        }
    }

    fn texts_and_batches(&mut self) {
        for name in NAMES {
            self.add("names", name, name.as_bytes().to_vec());
        }
        for (name, rules) in USERS {
            self.add("users_file", name, format!("user a {rules}\n").into_bytes());
        }
        for (name, text) in CONFIGS {
            self.add("config_file", name, text.as_bytes().to_vec());
        }
        for (number, (pattern, text)) in GLOBS.iter().enumerate() {
            let bytes = [&[pattern.len() as u8], pattern.as_bytes(), text.as_bytes()].concat();
            self.add("glob_pattern", &number.to_string(), bytes);
        }
        for (name, code) in SCRIPTS {
            self.add("script_code", name, code.as_bytes().to_vec());
        }
        for (name, format, bytes) in VALUES {
            let bytes = [&[format.len() as u8], format.as_bytes(), bytes].concat();
            self.add("script_values", name, bytes);
        }
        // A few and many elements, short and long ones, with two changes.
        for (kind, name) in ["list", "hash", "set", "zset", "stream"].iter().enumerate() {
            for (size, count, long) in [("small", 3, 1), ("large", 250, 90)] {
                let changes: [(&str, &[u8]); 2] = [
                    ("", &[0, 0, 9, 77, 7, 1, 0, 3, 200, 5]),
                    // An operand over the second entry, which puts two bytes in.
                    ("-operand", &[1, 0, 9, 0, 3, 2, 1, 1, 9]),
                ];
                for (what, change) in changes {
                    let bytes = [&[kind as u8, count, long], change].concat();
                    self.add("stored_collections", &format!("{name}-{size}{what}"), bytes);
                }
            }
        }
        let own = b"[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n\n\
            [DBOptions]\n  max_open_files=-1\n\n[CFOptions \"default\"]\n  comparator=x\n\n\
            [TableOptions/BlockBasedTable \"default\"]\n  block_size=4096\n";
        self.add("options_file", "own", own.to_vec());
        let later = "\n[CFOptions \"later\"]\n  comparator=y\n";
        let checksum = drumlin_base::checksum::crc32c(later.as_bytes());
        let (len, end) = (later.len(), "# Families that came later follow.\n");
        let added = format!("{end}# Added: {len} bytes, checksum {checksum:08x}\n{later}");
        let added = [own, added.as_bytes()].concat();
        self.add("options_file", "added", added.clone());
        let torn = added.len() - 4;
        self.add("options_file", "added-torn", added[..torn].to_vec());
        let backup = b"1700000000\n17\nmetadata 6E6F7465\n3\nprivate/2/CURRENT crc32 98\n\
            shared/000004.sst crc32 1\nshared_checksum/000007_sABC_9.sst crc32 4294967295\n";
        self.add("backup_meta", "schema-1", backup.to_vec());
        let backup = b"schema_version 2.1\n5\n6\ncolour blue\n1\n\
            private/1/CURRENT temp kWarm size 16 crc32 7\n\
            shared_checksum/000009_12_34.blob ni::excluded true\n// FOOTER\nsum 1\n";
        self.add("backup_meta", "schema-2", backup.to_vec());
        let now = 1_700_000_000u32;
        for (name, ttl, times) in [
            ("live-and-expired", 100u64, [now - 200, now - 50, now]),
            ("for-ever", 0, [now - 200, now - 50, now]),
            ("no-times", 100, [0, 1_368_146_401, u32::MAX]),
        ] {
            let mut values = [ttl.to_le_bytes(), u64::from(now).to_le_bytes()].concat();
            for time in times {
                values.push(7);
                values.extend_from_slice(b"red");
                values.extend_from_slice(&time.to_le_bytes());
            }
            self.add("timed_values", name, values);
        }
        let mut batch = WriteBatch::new();
        self.add("write_batch", "empty", batch.bytes().to_vec());
        let filled = batch
            .put(b"key", b"value")
            .and_then(|()| batch.delete_cf(300, b"gone"))
            .and_then(|()| batch.merge_cf(1, b"sum", b"1"))
            .and_then(|()| batch.single_delete(b"once"))
            .and_then(|()| batch.delete_range_cf(2, b"a", b"z"))
            .and_then(|()| batch.put_log_data(b"a note"));
        filled.expect("short records");
        batch.set_seqno(77);
        self.add("write_batch", "every-record", batch.bytes().to_vec());
        let mut header = [0; 12];
        header[0] = 9;
        for (name, steps) in [
            ("commit", &b"\x0b\x03xid"[..]),
            ("rollback", b"\x0c\x03xid"),
            ("empty-section", b"\x09\x0a\x03xid"),
            (
                "rollback-and-section",
                b"\x0c\x01x\x0d\x09\x0a\x01x\x0b\x01y",
            ),
        ] {
            self.add("two_phase", name, [&header[..], steps].concat());
        }
        header[8] = 2;
        let section = b"\x09\x01\x01a\x011\x04\x02\x01b\x0a\x03xid";
        self.add("two_phase", "section", [&header[..], section].concat());
        let filled = batch.bytes();
        self.add("two_phase", "every-record-inside", [&[0], filled].concat());
        self.add("two_phase", "every-record-before", [&[1], filled].concat());
    }

    /// Programs for the targets that compare with a model: bytes without a form of their own.
    fn programs(&mut self) {
        let mut rng = Rng::new(1);
        for target in [
            "data_block_iter",
            "db_ops",
            "filter_block",
            "memtable_ops",
            "range_tombstones",
            "wal_reader",
        ] {
            for index in 0..6u64 {
                let mut bytes = vec![0; 40 << index.min(4)];
                rng.fill(&mut bytes);
                bytes[0] = if target == "filter_block" {
                    2 + (index as u8 & 1)
                } else {
                    0
                };
                // Whole histories of a database cost so much that few inputs may be made from them.
                if (target, index) != ("db_ops", 5) {
                    self.add(target, &format!("program-{index}"), bytes);
                }
            }
        }
        let mut rng = Rng::new(2);
        for index in 0..59u64 {
            let mut bytes = vec![0; 8 + (index as usize % 29)];
            rng.fill(&mut bytes);
            self.add("db_ops", &format!("short-{index}"), bytes);
        }
    }
}

/// The place of the first data block: from the front to the end in the first index entry.
fn first_block(table: &[u8]) -> Option<BlockHandle> {
    let footer = Footer::decode(table, table.len() as u64).ok()?;
    let index = footer.index?;
    let framing = Framing::of(footer.style, footer.format_version);
    let (start, size) = (index.offset as usize, index.size as usize);
    let body = &table[start..start + size];
    let bytes = decompress(table[start + size], body, None, framing, 1 << 20).ok()?;
    let mut input = drumlin_base::coding::Reader::new(&bytes);
    input.varint32()?;
    let unshared = input.varint32()? as usize;
    if footer.format_version < 4 {
        input.varint32()?;
    }
    input.bytes(unshared)?;
    BlockHandle::read(&mut input)
}

/// Names and values with their lengths before them.
fn pairs(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in entries {
        drumlin_base::coding::put_slice(&mut out, name);
        drumlin_base::coding::put_slice(&mut out, value);
    }
    out
}

fn point(index: u32) -> (Vec<u8>, Vec<u8>) {
    let kind = match index % 7 {
        3 => ValueKind::Deletion,
        5 => ValueKind::Merge,
        _ => ValueKind::Value,
    };
    let key = internal_key(format!("key{index:04}").as_bytes(), u64::from(index), kind);
    (key, format!("value {}", index * index).into_bytes())
}

fn table(options: TableWriterOptions, count: u32) -> Vec<u8> {
    let files = StrictMemFileSystem::new();
    let path = Path::new("/table");
    let file = files.create(path, CreateOptions::new(FileKind::Table));
    let leveldb = options.style == TableStyle::LevelDb;
    let mut writer = TableWriter::new(file.expect("memory has no limit"), options);
    for index in 0..count {
        let (key, value) = point(index);
        if leveldb && index % 7 == 5 {
            continue; // LevelDB knows no merge operands.
        }
        writer.add(&key, &value).expect("ascending keys");
    }
    if !leveldb {
        for begin in [b"key0010", b"key0100"] {
            let added = writer.add_range_tombstone(begin, b"key0120", 500);
            added.expect("ascending tombstones");
        }
    }
    writer.finish().expect("memory has no limit");
    let bytes = files.read_file(path, u64::MAX);
    bytes.expect("the file is there")
}
