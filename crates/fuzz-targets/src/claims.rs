//! Seeds for the targets that are about claims: `coded_rows`, `key_claims` and `model_frame`.

use drumlin_succinct::KeyIndexBuilder;

use crate::models::models;

/// On disk: the offset of a packed model's parts, and the byte that marks them as a frame.
const FRAME_AT: usize = 6;
const PACKED: u8 = 1;
const SUM_BYTES: usize = 8;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// A frame that is its own window and has its size in four bytes.
const DESCRIPTOR: u8 = 0xA0;
/// Bytes of one block at most, and its kind when it is one byte, again and again.
const REPEATED_BYTES: u32 = 128 << 10;
const REPEATED: u32 = 1;

/// A zstd frame that claims `size` bytes and holds `blocks` blocks of zeros.
fn frame(size: u32, blocks: u32) -> Vec<u8> {
    let mut out = [&ZSTD_MAGIC[..], &[DESCRIPTOR]].concat();
    out.extend_from_slice(&size.to_le_bytes());
    for block in 1..=blocks {
        let head = REPEATED_BYTES << 3 | REPEATED << 1 | u32::from(block == blocks);
        out.extend_from_slice(&head.to_le_bytes()[..3]);
        out.push(0);
    }
    out
}

/// A zstd frame that holds `bytes` as they are, so that mutations reach the model in it.
fn as_it_is(bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len() as u32;
    assert!(len <= REPEATED_BYTES, "one block");
    let mut out = [&ZSTD_MAGIC[..], &[DESCRIPTOR], &len.to_le_bytes()].concat();
    out.extend_from_slice(&(len << 3 | 1).to_le_bytes()[..3]);
    out.extend_from_slice(bytes);
    out
}

/// Inputs: target, name, bytes.
pub(crate) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (number, (name, model, _)) in models().into_iter().enumerate() {
        let bytes = model.to_bytes();
        let body = &bytes[FRAME_AT..bytes.len() - SUM_BYTES];
        let frame = match bytes[FRAME_AT - 1] {
            PACKED => body.to_vec(),
            _ => as_it_is(body),
        };
        seeds.push(("model_frame", name.to_owned(), frame));
        for (len, of) in [(100u16, "short"), (9000, "long"), (u16::MAX, "longest")] {
            let head = [&[number as u8][..], &len.to_le_bytes(), &[11]].concat();
            // The last edits are at the place where a frame of the form `large` has its size.
            let edits: [u8; 6] = [5, 0, 0xFF, 8, 0, 0x7F];
            let whole = [head.as_slice(), b"drumlin, esk"].concat();
            let damaged = [whole.as_slice(), &edits].concat();
            seeds.push(("coded_rows", format!("{name}-{of}"), whole));
            seeds.push(("coded_rows", format!("{name}-{of}-damaged"), damaged));
        }
    }
    for (name, size, blocks) in [
        ("zeros", 8 * REPEATED_BYTES, 8),
        ("many-zeros", 100 * REPEATED_BYTES, 100),
        ("claims-much", u32::MAX, 1),
        ("claims-much-of-what-is-there", 300 * REPEATED_BYTES, 290),
    ] {
        seeds.push(("model_frame", name.to_owned(), frame(size, blocks)));
    }
    seeds.extend(key_claims());
    seeds
}

/// Blocks of texts, and of a template, and one whose keys go on for longer than it is.
fn key_claims() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut builder = KeyIndexBuilder::new();
    for n in 0..64u32 {
        let key = format!("{:02}", n);
        builder.add(key.as_bytes()).expect("the keys ascend");
    }
    let (block, _) = builder.finish().expect("few keys");
    let block = &block[..block.len().min(64)];
    // Texts: no prefix, nothing shared, each as many bits as the least says.
    let claims: [u8; 10] = [0, 0, 0, 0xFF, 0xFF, 0x7F, 0, 1, 2, 3];
    let head = |count: u16, template: &[u8]| {
        let len = template.len() as u8;
        [&count.to_le_bytes()[..], &[len], template, &[0]].concat()
    };
    let with = |head: Vec<u8>, block: &[u8]| {
        let len = [block.len() as u8 - 1];
        [head.as_slice(), &len, block].concat()
    };
    // A field of digits between two texts, the first of them long.
    let literal = [&[1, 0, 0, 8, 100][..], &[b'x'; 100], &[0]].concat();
    [
        ("sound", with(head(1, &[]), block)),
        ("keys-go-on", with(head(999, &[]), &claims)),
        ("all-go-on", with(head(4095, &[]), &claims)),
        ("template", with(head(999, &literal), &[1, 5, 6, 7, 8])),
    ]
    .into_iter()
    .map(|(name, bytes)| ("key_claims", name.to_owned(), bytes))
    .collect()
}
