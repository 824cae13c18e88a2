//! Names for the errors of sockets.

use drumlin_base::Error;

use super::Address;

/// The kind of a socket's error, as a server would branch on it. The system's code in the error decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetErrorKind {
    /// Somebody else listens at the address.
    AddressInUse,
    /// The machine has no such address, or not this family of them.
    AddressNotAvailable,
    /// The path or port is not for this user.
    PermissionDenied,
    /// No such path to connect to, or no directory to listen in.
    NotFound,
    /// Nobody listens there.
    Refused,
    /// The listener has too many connections that nobody accepted. Unix sockets only; try again later.
    QueueFull,
    /// The connection was reset, or closed while bytes were on their way.
    Disconnected,
    /// The peer did not answer in time.
    TimedOut,
    /// The host or network cannot be reached.
    Unreachable,
    /// The process or the system has no more descriptors or memory. The same call may succeed later.
    OutOfResources,
    /// Anything else, misuse included.
    Other,
}

impl NetErrorKind {
    /// The kind of an error that a network gave.
    pub fn of(error: &Error) -> Self {
        match error.os_code().unwrap_or(0) {
            libc::EADDRINUSE => Self::AddressInUse,
            libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT => Self::AddressNotAvailable,
            libc::EACCES | libc::EPERM => Self::PermissionDenied,
            libc::ENOENT | libc::ENOTDIR => Self::NotFound,
            libc::ECONNREFUSED => Self::Refused,
            libc::EAGAIN => Self::QueueFull,
            libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => Self::Disconnected,
            libc::ETIMEDOUT => Self::TimedOut,
            libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ENETDOWN | libc::EHOSTDOWN => {
                Self::Unreachable
            }
            libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => Self::OutOfResources,
            _ => Self::Other,
        }
    }
}

/// The error of `code` that `op` met at `address`.
pub(super) fn failed(op: &str, address: &Address, code: i32) -> Error {
    let source = std::io::Error::from_raw_os_error(code);
    Error::system(&format!("{op} {address}"), source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_address_and_have_a_kind() {
        let address = Address::Unix("/run/x".into());
        let error = failed("listen on", &address, libc::EADDRINUSE);
        let text = error.to_string();
        assert!(text.starts_with("cannot listen on /run/x: "), "{text}");
        assert_eq!(NetErrorKind::of(&error), NetErrorKind::AddressInUse);
        let other = Error::invalid_argument("no");
        assert_eq!(NetErrorKind::of(&other), NetErrorKind::Other);
    }
}
