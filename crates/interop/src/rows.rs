//! Keys with their values, and telling where two lists of them part.

/// Keys with their values, in the order of a walk.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// The key called `i`.
pub fn key(i: usize) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

/// A value of `i` in `generation` that compresses about by half.
pub fn value(i: usize, generation: usize) -> Vec<u8> {
    format!(
        "value-{i}-{generation}-{:x}-{}",
        i.wrapping_mul(0x9E37_79B9),
        "~".repeat(i % 60)
    )
    .into_bytes()
}

/// Rows `0..count` of `generation`.
pub fn numbered(count: usize, generation: usize) -> Rows {
    (0..count).map(|i| (key(i), value(i, generation))).collect()
}

/// Fails at the first row where `got` is not `want`.
///
/// # Panics
/// When they differ.
#[track_caller]
pub fn assert_rows(what: &str, got: &Rows, want: &Rows) {
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(
            got == want,
            "{what}: row {at} is {} = {}, not {} = {}",
            short(&got.0),
            short(&got.1),
            short(&want.0),
            short(&want.1)
        );
    }
    let rest = got.get(want.len()).or_else(|| want.get(got.len()));
    assert!(
        got.len() == want.len(),
        "{what}: {} rows, not {}; the next is {}",
        got.len(),
        want.len(),
        rest.map_or_else(String::new, |row| short(&row.0))
    );
}

fn short(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    match text.get(..80) {
        Some(start) if text.len() > 80 => format!("{start}.. ({} bytes)", bytes.len()),
        _ => text,
    }
}
