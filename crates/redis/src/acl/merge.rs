//! Selectors whose words came as several rules.

/// The rules with those of a selector in one, from the one that begins with a parenthesis to the one that ends with its twin.
///
/// # Errors
/// The rule that begins a selector without an end.
pub(super) fn merged<'a>(rules: &[&'a [u8]]) -> Result<Vec<Vec<u8>>, &'a [u8]> {
    let mut merged = Vec::new();
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for rule in rules {
        let is_end = rule.ends_with(b")");
        if rule.starts_with(b"(") && !is_end {
            open = Some((rule, rule.to_vec()));
            continue;
        }
        let Some((start, mut selector)) = open.take() else {
            merged.push(rule.to_vec());
            continue;
        };
        selector.push(b' ');
        selector.extend_from_slice(rule);
        match is_end {
            true => merged.push(selector),
            false => open = Some((start, selector)),
        }
    }
    match open {
        Some((start, _)) => Err(start),
        None => Ok(merged),
    }
}

#[cfg(test)]
mod tests {
    use super::merged;

    /// Goal: the words of a selector are one rule. Method: selectors in one word, in several, and without an end.
    #[test]
    fn the_words_of_a_selector_are_one_rule() {
        let merge = |line: &'static str| {
            let rules: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let merged = merged(&rules).map_err(String::from_utf8_lossy);
            merged
                .map(|it| it.join(&b"; "[..]))
                .map(|it| String::from_utf8_lossy(&it).into_owned())
        };
        assert_eq!(
            merge("on (+get ~a) (+set ~b) off"),
            Ok("on; (+get ~a); (+set ~b); off".into())
        );
        assert_eq!(merge("(+get) on"), Ok("(+get); on".into()));
        assert_eq!(merge("on (+get ~a"), Err("(+get".into()));
        assert_eq!(merge(") a("), Ok("); a(".into()));
    }
}
