//! What names and patterns must not have: rules are told with blanks between them.

/// Whether a name or a pattern has what it must not have.
pub(crate) fn has_spaces(text: &[u8]) -> bool {
    text.iter()
        .any(|byte| byte.is_ascii_whitespace() || [0, 0x0b].contains(byte))
}
