//! A look at commands that were received and not parsed yet: enough to read ahead what they will ask for.

/// The commands at the beginning of `bytes`, each with its name and its first argument. A command of another form than a
/// client library sends, or one that is not whole, ends it: nothing is checked, as the commands are parsed later.
///
/// ```
/// let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1";
/// let seen: Vec<_> = drumlin_resp::look_ahead(bytes).collect();
/// assert_eq!(seen, [(&b"GET"[..], &b"a"[..]), (b"PING", b"")]);
/// ```
pub fn look_ahead(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let args = number(&mut rest, b'*').filter(|args| *args > 0)?;
        let name = bulk(&mut rest)?;
        let mut first: &[u8] = &[];
        for at in 1..args {
            let arg = bulk(&mut rest)?;
            if at == 1 {
                first = arg;
            }
        }
        Some((name, first))
    })
}

/// The number in a line that begins with `kind`.
#[inline]
fn number(rest: &mut &[u8], kind: u8) -> Option<usize> {
    let (first, line) = rest.split_first()?;
    if *first != kind {
        return None;
    }
    let mut value = 0usize;
    for (at, byte) in line.iter().take(20).enumerate() {
        match byte {
            b'0'..=b'9' => {
                value = value
                    .checked_mul(10)?
                    .checked_add(usize::from(byte - b'0'))?
            }
            b'\r' => {
                *rest = line.get(at + 2..)?;
                return Some(value);
            }
            _ => return None,
        }
    }
    None
}

#[inline]
fn bulk<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = number(rest, b'$')?;
    let bytes = rest.get(..len)?;
    *rest = rest.get(len.checked_add(2)?..)?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_else_ends_it() {
        for bytes in [
            &b"GET a\r\n"[..],
            b"*-1\r\n",
            b"*0\r\n",
            b"*1\r\n+x\r\n",
            b"*1\r\n$99999999999999999999\r\n",
            b"*1\r\n$18446744073709551615\r\nx",
            b"*2\r\n$3\r\nGET\r\n$5\r\nab\r\n",
            b"*",
            b"",
        ] {
            assert_eq!(look_ahead(bytes).count(), 0, "{bytes:?}");
        }
    }
}
