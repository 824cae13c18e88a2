//! The generated objects that hold options, and the tags of all handles.

#![expect(dead_code, reason = "not every option steers something")]

include!(concat!(env!("OUT_DIR"), "/fields.rs"));

/// A flag as options files and strings have it.
fn flag_of(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// A number as options files and strings have it: with K, M, G or T for powers of 1024.
fn number_of<T: TryFrom<i128> + std::str::FromStr>(text: &str) -> Option<T> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let shift = match text.chars().last()?.to_ascii_lowercase() {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        _ => return None,
    };
    let number: i128 = text.get(..text.len() - 1)?.parse().ok()?;
    T::try_from(number.checked_mul(1 << shift)?).ok()
}
