//! Footers, trailers, codecs and properties against bytes that RocksDB 7.8.3 and LevelDB 1.23
//! wrote, and round trips of everything that is written here. `data/tables.txt` holds the vectors.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a bad vector is a failed test"
)]

use drumlin_base::rng::Rng;
use drumlin_base::{ErrorKind, Result};
use drumlin_table::compress::{compress, decompress, train_dictionary};
use drumlin_table::format::{append_trailer, verify_block};
use drumlin_table::properties::IndexType;
use drumlin_table::{
    BlockHandle, ChecksumKind, Codec, Compression, Footer, Framing, PreparedDict, TableProperties,
    TableStyle,
};

const VECTORS: &str = include_str!("data/tables.txt");
const LIMIT: usize = 1 << 20;

fn vectors(kind: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = VECTORS.lines().map(|line| line.split(' ').collect());
    lines.filter(move |fields: &Vec<&str>| fields[0] == kind)
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn footers_of_both_engines_decode_and_encode_to_the_same_bytes() {
    let mut seen = 0;
    for fields in vectors("footer") {
        let (version, size, bytes) = (&fields[1], fields[2].parse().unwrap(), unhex(fields[3]));
        let footer = Footer::decode(&bytes, size).unwrap();
        assert_eq!(footer.format_version, version.parse::<u32>().unwrap());
        assert_eq!(footer.style, TableStyle::RocksDb);
        assert_eq!(footer.checksum as u8, bytes[0]);
        assert_eq!(footer.context.is_some(), footer.format_version >= 6);
        assert_eq!(footer.index.is_some(), footer.format_version < 6);
        let mut again = Vec::new();
        footer.encode(size - 53, &mut again).unwrap();
        assert_eq!(again, bytes, "version {version}");
        seen += 1;
    }
    assert_eq!(seen, 13);

    let fields = vectors("leveldb_footer").next().unwrap();
    let (size, bytes) = (fields[1].parse().unwrap(), unhex(fields[2]));
    let footer = Footer::decode(&bytes, size).unwrap();
    assert_eq!(footer.style, TableStyle::LevelDb);
    assert_eq!(footer.checksum, ChecksumKind::Crc32c);
    let mut again = Vec::new();
    footer.encode(size - 48, &mut again).unwrap();
    assert_eq!(again, bytes);
}

#[test]
fn every_version_round_trips() {
    for version in 1..=7 {
        let extended = version >= 6;
        let metaindex = BlockHandle {
            offset: 5_000_000_000,
            size: 300,
        };
        let footer = Footer {
            style: TableStyle::RocksDb,
            format_version: version,
            checksum: ChecksumKind::Xxh3,
            context: extended.then_some(0x0102_0304),
            metaindex,
            index: (!extended).then_some(BlockHandle {
                offset: 77,
                size: 9_000,
            }),
        };
        let at = metaindex.end_with_trailer().unwrap();
        let mut bytes = Vec::new();
        footer.encode(at, &mut bytes).unwrap();
        assert_eq!(bytes.len(), footer.len());
        assert_eq!(Footer::decode(&bytes, at + 53).unwrap(), footer);
    }
}

#[test]
fn a_damaged_or_moved_extended_footer_is_refused() {
    for fields in
        vectors("footer").filter(|fields| fields[1] == "7" && !fields[3].starts_with("00"))
    {
        let (size, bytes): (u64, _) = (fields[2].parse().unwrap(), unhex(fields[3]));
        assert!(Footer::decode(&bytes, size + 1).is_err_and(|e| e.is_corruption()));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Footer::decode(&damaged, size).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn foreign_and_future_tables_are_refused_by_name() {
    let mut footer = unhex(vectors("footer").next().unwrap()[3]);
    footer[41] = 9;
    let error = Footer::decode(&footer, 1 << 20).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(error.to_string().contains("format_version 9"));
    for magic in [
        0x8242_2296_63bf_9564u64,
        0x4f34_18eb_7a8f_13b8,
        0x9267_89d0_c5f1_7873,
    ] {
        footer[45..].copy_from_slice(&magic.to_le_bytes());
        let error = Footer::decode(&footer, 1 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
    }
    assert!(Footer::decode(b"short", 5).unwrap_err().is_corruption());
}

#[test]
fn checksums_are_rocksdbs() {
    let key: Vec<u8> = (0..200)
        .map(|i| (i * 7 + 200 * 13 + (i >> 5)) as u8)
        .collect();
    let mut seen = 0;
    for line in include_str!("data/filters.txt").lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if fields[0] == "checksum" {
            let kind = ChecksumKind::from_byte(fields[1].parse().unwrap()).unwrap();
            let covered = &key[..fields[2].parse::<usize>().unwrap()];
            let expected = u32::from_str_radix(&fields[3][2..], 16).unwrap();
            assert_eq!(kind.compute(covered), expected, "{kind:?} {}", fields[2]);
            seen += 1;
        }
    }
    assert_eq!(seen, 25);
}

#[test]
fn trailers_detect_damage_and_moves() {
    let mut rng = Rng::new(1);
    for kind in [
        ChecksumKind::Crc32c,
        ChecksumKind::Xxh32,
        ChecksumKind::Xxh64,
        ChecksumKind::Xxh3,
    ] {
        for context in [None, Some(0xdead_beef)] {
            let mut out = vec![0u8; 123];
            rng.fill(&mut out);
            append_trailer(&mut out, 23, 4, kind, context, 77);
            let block = &out[23..];
            assert_eq!(verify_block(block, kind, context, 77).unwrap(), 4);
            let moved = verify_block(block, kind, context, 78);
            assert_eq!(
                moved.is_err(),
                context.is_some(),
                "only a context tells of a move"
            );
            for _ in 0..64 {
                let mut damaged = block.to_vec();
                let bit = rng.below(damaged.len() as u64 * 8) as usize;
                damaged[bit / 8] ^= 1 << (bit % 8);
                let error = verify_block(&damaged, kind, context, 77).unwrap_err();
                assert!(error.is_corruption());
                assert_eq!(error.offset(), Some(77));
            }
        }
    }
    for short in 0..5 {
        assert!(verify_block(&[0; 5][..short], ChecksumKind::Crc32c, None, 0).is_err());
    }
}

/// The value the generator stored under each key, to be found in every first block.
fn value(i: u32) -> String {
    format!("value {i} of the table, {i} squared, hill and dale and hill again")
}

#[test]
fn blocks_of_every_codec_as_rocksdb_wrote_them_decompress() {
    let mut seen = 0;
    let plain = vectors("block").find(|fields| fields[1] == "none");
    let plain = unhex(plain.unwrap()[3]);
    for fields in vectors("block") {
        let (name, kind, bytes) = (fields[1], fields[2].parse().unwrap(), unhex(fields[3]));
        let dict = (fields[4] != "-").then(|| PreparedDict::for_reading(unhex(fields[4])));
        let kind = ChecksumKind::from_byte(kind).unwrap();
        let codec = verify_block(&bytes, kind, None, 0).unwrap();
        let body = &bytes[..bytes.len() - 5];
        let out = decompress(codec, body, dict.as_ref(), Framing::SizePrefix, LIMIT).unwrap();
        // Every codec packed the same block, and its first value is not compressed against others.
        assert!(String::from_utf8_lossy(&out).contains(&value(0)), "{name}");
        assert_eq!(out, plain[..plain.len() - 5], "{name}");
        if dict.is_some() {
            let without = decompress(codec, body, None, Framing::SizePrefix, LIMIT);
            assert!(
                without.is_err() || without.unwrap() != out,
                "{name} needs its dictionary"
            );
        }
        seen += 1;
    }
    assert_eq!(seen, 11);
}

fn text(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let words = [
        "hill", "dale", "drumlin", "esker", "moraine", "kame", " ", "\n", "0123",
    ];
    let mut out = Vec::new();
    while out.len() < bytes {
        out.extend_from_slice(words[rng.below(words.len() as u64) as usize].as_bytes());
    }
    out.truncate(bytes);
    out
}

const CODECS: [Codec; 6] = [
    Codec::Snappy,
    Codec::Zlib,
    Codec::Bzip2,
    Codec::Lz4,
    Codec::Lz4Hc,
    Codec::Zstd,
];

#[test]
fn codecs_round_trip_at_every_size() {
    let mut rng = Rng::new(2);
    for codec in CODECS {
        for size in [0, 1, 7, 64, 200, 1000, 4096, 40_000, 100_000] {
            let input = text(&mut rng, size);
            for level in [None, Some(1), Some(9)] {
                let mut out = b"before".to_vec();
                let used = compress(codec, level, None, &input, Framing::SizePrefix, &mut out);
                assert_eq!(&out[..6], b"before");
                let stored = &out[6..];
                assert!(
                    size < 1000 || used == codec,
                    "{codec} left {size} bytes alone"
                );
                assert!(used == Codec::None || stored.len() < size - size / 8);
                let id = used.id(TableStyle::RocksDb).unwrap();
                let back = decompress(id, stored, None, Framing::SizePrefix, size).unwrap();
                assert_eq!(back, input, "{codec} {size}");
            }
        }
    }
}

#[test]
fn what_does_not_shrink_is_stored_as_it_is() {
    let mut noise = vec![0; 4096];
    Rng::new(3).fill(&mut noise);
    for codec in CODECS {
        let mut out = Vec::new();
        let used = compress(codec, None, None, &noise, Framing::SizePrefix, &mut out);
        assert_eq!(used, Codec::None);
        assert_eq!(out, noise);
    }
}

#[test]
fn leveldb_blocks_round_trip_and_other_codecs_are_left_out() {
    let input = text(&mut Rng::new(4), 5000);
    for codec in CODECS {
        let mut out = Vec::new();
        let used = compress(codec, None, None, &input, Framing::LevelDb, &mut out);
        let fits = matches!(codec, Codec::Snappy | Codec::Zstd);
        assert_eq!(used == codec, fits, "{codec}");
        let id = used.id(TableStyle::LevelDb).unwrap();
        assert_eq!(
            decompress(id, &out, None, Framing::LevelDb, LIMIT).unwrap(),
            input
        );
    }
    assert_eq!(Codec::Zstd.id(TableStyle::LevelDb), Some(2));
    assert_eq!(Codec::from_id(2, TableStyle::RocksDb).unwrap(), Codec::Zlib);
}

#[test]
fn dictionaries_round_trip_and_help() {
    let mut rng = Rng::new(5);
    let blocks: Vec<Vec<u8>> = (0..200).map(|_| text(&mut rng, 400)).collect();
    let samples: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
    for codec in [Codec::Zstd, Codec::Lz4] {
        let compression = Compression {
            codec,
            level: None,
            dictionary_bytes: 2048,
        };
        let raw = train_dictionary(&compression, &samples);
        assert!(!raw.is_empty() && raw.len() <= 2048);
        let dict = PreparedDict::for_writing(raw.clone(), &compression);
        let (mut with, mut without) = (Vec::new(), Vec::new());
        assert_eq!(
            compress(
                codec,
                None,
                Some(&dict),
                &blocks[7],
                Framing::SizePrefix,
                &mut with
            ),
            codec
        );
        compress(
            codec,
            None,
            None,
            &blocks[7],
            Framing::SizePrefix,
            &mut without,
        );
        assert!(with.len() < without.len());
        let reading = PreparedDict::for_reading(raw);
        let id = codec.id(TableStyle::RocksDb).unwrap();
        let back = decompress(id, &with, Some(&reading), Framing::SizePrefix, LIMIT).unwrap();
        assert_eq!(back, blocks[7]);
    }
    let compression = Compression {
        codec: Codec::Snappy,
        level: None,
        dictionary_bytes: 2048,
    };
    assert!(train_dictionary(&compression, &samples).is_empty());
    assert!(
        train_dictionary(
            &Compression {
                codec: Codec::Zstd,
                ..compression
            },
            &[]
        )
        .is_empty()
    );
}

#[test]
fn a_wrong_declared_size_is_corruption_and_allocates_nothing_large() {
    let input = text(&mut Rng::new(6), 3000);
    for codec in [Codec::Zlib, Codec::Bzip2, Codec::Lz4, Codec::Zstd] {
        let mut out = Vec::new();
        compress(codec, None, None, &input, Framing::SizePrefix, &mut out);
        let id = codec.id(TableStyle::RocksDb).unwrap();
        assert_eq!(out[..2], [0xb8, 0x17]); // 3000
        for declared in [[0xb7u8, 0x17], [0xb9, 0x17], [0x80, 0x01], [0xff, 0x7f]] {
            out[..2].copy_from_slice(&declared);
            let result = decompress(id, &out, None, Framing::SizePrefix, LIMIT);
            assert!(
                result.is_err_and(|e| e.is_corruption()),
                "{codec} {declared:?}"
            );
        }
        out[..2].copy_from_slice(&[0xb8, 0x17]);
        let result = decompress(id, &out, None, Framing::SizePrefix, 2999);
        assert!(
            result.is_err_and(|e| e.is_corruption()),
            "{codec} over the limit"
        );
    }
    let huge = [0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3];
    for id in [1, 2, 4, 7] {
        let result = decompress(id, &huge, None, Framing::SizePrefix, usize::MAX);
        assert!(result.is_err_and(|e| e.is_corruption()));
    }
}

#[test]
fn unknown_codecs_are_refused_by_name() {
    for (id, kind) in [
        (6, ErrorKind::NotSupported),
        (0x80, ErrorKind::NotSupported),
        (8, ErrorKind::Corruption),
    ] {
        let error = decompress(id, b"abc", None, Framing::SizePrefix, LIMIT).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    for (id, kind) in [(4, ErrorKind::NotSupported), (9, ErrorKind::Corruption)] {
        let error = decompress(id, b"abc", None, Framing::LevelDb, LIMIT).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    for codec in CODECS {
        assert_eq!(codec.to_string().parse::<Codec>().unwrap(), codec);
    }
    assert!("lzo".parse::<Codec>().is_err());
}

/// Entries of a block without a restart in between, enough for a properties block.
fn entries(block: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut reader = drumlin_base::coding::Reader::new(&block[..block.len() - 8]);
    let mut out: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    while !reader.is_empty() {
        let shared = reader.varint32().unwrap() as usize;
        let unshared = reader.varint32().unwrap() as usize;
        let value = reader.varint32().unwrap() as usize;
        let mut key = out
            .last()
            .map_or(Vec::new(), |(key, _)| key[..shared].to_vec());
        key.extend_from_slice(reader.bytes(unshared).unwrap());
        out.push((key, reader.bytes(value).unwrap().to_vec()));
    }
    out
}

#[test]
fn properties_of_a_rocksdb_table_decode_and_encode_to_the_same_entries() {
    let fields = vectors("properties").next().unwrap();
    let bytes = unhex(fields[2]);
    let offset = fields[1].parse().unwrap();
    assert_eq!(
        verify_block(&bytes, ChecksumKind::Xxh3, None, offset).unwrap(),
        0
    );
    let stored = entries(&bytes[..bytes.len() - 5]);
    let properties = TableProperties::decode(stored.iter().cloned().map(Result::Ok)).unwrap();
    assert_eq!(properties.num_entries, 400);
    assert_eq!(properties.raw_key_size, 400 * 17);
    assert_eq!(properties.comparator_name, "leveldb.BytewiseComparator");
    assert_eq!(properties.compression_name, "NoCompression");
    assert_eq!(properties.column_family_id, TableProperties::FAMILY_UNKNOWN);
    assert!(properties.index_key_is_user_key && properties.index_value_is_delta_encoded);
    assert_eq!(properties.index_type().unwrap(), IndexType::BinarySearch);
    assert!(properties.whole_key_filtering() && !properties.prefix_filtering());
    assert_eq!(properties.global_seqno(), None);
    // This crate always states where the tail begins; RocksDB does so since 8.3.
    let encoded = properties.encode();
    let known: Vec<_> = encoded
        .into_iter()
        .filter(|(name, _)| name != b"rocksdb.tail.start.offset")
        .collect();
    assert_eq!(known, stored);
}

#[test]
fn properties_round_trip_and_refuse_disorder() {
    let mut properties = TableProperties {
        num_entries: 3,
        raw_key_size: 40,
        newest_key_time: 9,
        largest_seqno: 77,
        smallest_seqno: 0,
        user_defined_timestamps_persisted: false,
        separate_key_value_in_data_block: true,
        db_id: "an id".into(),
        ..TableProperties::default()
    };
    properties.set_index_type(IndexType::TwoLevel);
    properties.set_filtering(false, true);
    properties.user.insert("zz.mine".into(), vec![0, 255]);
    let encoded = properties.encode();
    assert!(encoded.is_sorted_by(|a, b| a.0 < b.0));
    let back = TableProperties::decode(encoded.iter().cloned().map(Ok)).unwrap();
    assert_eq!(back, properties);
    assert_eq!(back.index_type().unwrap(), IndexType::TwoLevel);
    let reversed = TableProperties::decode(encoded.into_iter().rev().map(Ok));
    assert!(reversed.is_err_and(|e| e.is_corruption()));
}

#[test]
fn leveldb_metaindex_checks_out() {
    let fields = vectors("leveldb_trailer").next().unwrap();
    let bytes = unhex(fields[2]);
    let offset = fields[1].parse().unwrap();
    assert_eq!(
        verify_block(&bytes, ChecksumKind::Crc32c, None, offset).unwrap(),
        0
    );
}

#[test]
fn hostile_bytes_never_panic() {
    let mut rng = Rng::new(0x7ab1e);
    let blocks: Vec<_> = vectors("block").map(|f| (unhex(f[3]), f[4])).collect();
    let dict = PreparedDict::for_reading(b"hill and dale and hill again".repeat(20));
    for round in 0..3000 {
        let mut bytes = vec![0; rng.below(120) as usize];
        rng.fill(&mut bytes);
        let _ = Footer::decode(&bytes, rng.below(1 << 20));
        if bytes.len() > 12 {
            let at = bytes.len() - 8;
            bytes[at..].copy_from_slice(&0x88e2_41b7_85f4_cff7u64.to_le_bytes());
            bytes[at - 4..at].copy_from_slice(&(rng.below(9) as u32).to_le_bytes());
            let _ = Footer::decode(&bytes, rng.below(1 << 20));
        }
        let _ = BlockHandle::decode(&bytes);
        let _ = verify_block(&bytes, ChecksumKind::Xxh3, Some(7), 3);
        let (block, _) = &blocks[round % blocks.len()];
        let mut damaged = block[..block.len() - 5].to_vec();
        for _ in 0..=rng.below(4) {
            let bit = rng.below(damaged.len() as u64 * 8) as usize;
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        damaged.truncate(rng.below(damaged.len() as u64 + 1) as usize);
        for framing in [Framing::SizePrefix, Framing::LevelDb, Framing::FixedPrefix] {
            let id = rng.below(9) as u8;
            let dict = rng.one_in(2).then_some(&dict);
            for input in [&damaged, &bytes] {
                if let Ok(out) = decompress(id, input, dict, framing, 1 << 16) {
                    assert!(out.len() <= 1 << 16);
                }
            }
        }
    }
}
