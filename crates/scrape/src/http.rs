//! As much of HTTP/1.1 as a scraper needs: one request a connection, without a body.

/// Longest request.
pub(crate) const REQUEST_BYTES_MAX: usize = 8 << 10;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// It is not whole yet.
    More,
    /// The page; or only its head.
    Page { head_only: bool },
    /// Nothing that there is: the status of the answer.
    Refused(&'static str),
}

/// Looks at the bytes of a request that have come.
pub(crate) fn asked(bytes: &[u8]) -> Ask {
    let Some(head) = head_of(bytes) else {
        return match bytes.len() >= REQUEST_BYTES_MAX {
            true => Ask::Refused("431 Request Header Fields Too Large"),
            false => Ask::More,
        };
    };
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.trim_ascii_end().split(|byte| *byte == b' ').collect();
    let [method, target, version] = words.as_slice() else {
        return Ask::Refused("400 Bad Request");
    };
    if !version.starts_with(b"HTTP/1.") {
        return Ask::Refused("400 Bad Request");
    }
    let path = target.split(|byte| *byte == b'?').next();
    if path != Some(b"/metrics") {
        return Ask::Refused("404 Not Found");
    }
    match *method {
        b"GET" => Ask::Page { head_only: false },
        b"HEAD" => Ask::Page { head_only: true },
        _ => Ask::Refused("405 Method Not Allowed"),
    }
}

/// The lines before the empty one.
fn head_of(bytes: &[u8]) -> Option<&[u8]> {
    let ends = |end: &[u8]| bytes.windows(end.len()).position(|it| it == end);
    let ended = ends(b"\r\n\r\n").into_iter().chain(ends(b"\n\n")).min()?;
    bytes.get(..ended)
}

/// An answer, after which the connection is closed.
pub fn answer(status: &str, body: &str, head_only: bool) -> Vec<u8> {
    let length = body.len();
    let mut out = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    if !head_only {
        out.push_str(body);
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{Ask, REQUEST_BYTES_MAX, asked};

    /// Goal: one path is served, and no request may grow for ever. Method: requests right and wrong, whole and cut.
    #[test]
    fn requests_are_told_apart() {
        let page = Ask::Page { head_only: false };
        let whole = b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(asked(whole), page);
        (0..whole.len()).for_each(|cut| assert_eq!(asked(&whole[..cut]), Ask::More, "{cut}"));
        assert_eq!(asked(b"GET /metrics HTTP/1.0\n\nmore"), page);
        let head = Ask::Page { head_only: true };
        assert_eq!(asked(b"HEAD /metrics HTTP/1.1\r\n\r\n"), head);
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"GET /metrics\r\n\r\n", "400"),
            (b"GET /metrics HTTP/2\r\n\r\n", "400"),
            (b"*1\r\n$4\r\nPING\r\n\r\n", "400"),
            (b"\r\n\r\n", "400"),
            (&[b'a'; REQUEST_BYTES_MAX], "431"),
        ] {
            let Ask::Refused(told) = asked(request) else {
                panic!("{request:?} is taken");
            };
            assert!(told.starts_with(status), "{told}");
        }
    }
}
