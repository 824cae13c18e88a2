//! The sockets of the operating system, none of which ever blocks.
//!
//! For Linux: the mode of a unix path is set before it is bound, and pollers are epoll. A forked child is refused, as
//! everywhere in this crate: it would take bytes and events away from its parent.

use core::net::{IpAddr, SocketAddr};
use std::ffi::OsStr;
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use drumlin_base::{Error, Result};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny,
    SocketAddrUnix, SocketFlags, SocketType, sockopt,
};

use super::error_kind::failed;
use super::network::{
    Connection, Handle, HandleKind, ListenOptions, Listener, Network, Poller, Source, unknown_host,
};
use super::posix_poll::PosixPoller;
use super::transfer::taken_at_once;
use super::{Address, Received, Sent};
use crate::process::Process;

/// The shortest silence after which a peer can be asked for a sign of life.
pub(super) const KEEPALIVE_MIN: Duration = Duration::from_secs(3);

/// The network of the machine. See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct PosixNetwork;

impl PosixNetwork {
    /// The network of the machine.
    pub fn new() -> Self {
        Self
    }
}

impl Network for PosixNetwork {
    fn listen(&self, address: &Address, options: ListenOptions) -> Result<Box<dyn Listener>> {
        let refuse = |errno: Errno| failed("listen on", address, errno.raw_os_error());
        let backlog = i32::try_from(options.backlog).unwrap_or(i32::MAX);
        let (descriptor, path) = match address {
            Address::Tcp(at) => (bind_tcp(at).map_err(refuse)?, None),
            Address::Unix(path) => {
                let (descriptor, bound) = bind_unix(path, options.unix_mode).map_err(refuse)?;
                (descriptor, Some(bound))
            }
            Address::Unnamed => return Err(unnamed()),
        };
        let listener = |local| PosixListener {
            local,
            _path: path,
            process: Process::current(),
            descriptor,
        };
        // From here on a failure removes the path.
        let mut listener = listener(address.clone());
        rustix::net::listen(&listener.descriptor, backlog).map_err(refuse)?;
        if matches!(address, Address::Tcp(_)) {
            let name = rustix::net::getsockname(&listener.descriptor).map_err(refuse)?;
            listener.local = address_of(Some(name));
        }
        Ok(Box::new(listener))
    }

    fn connect(&self, address: &Address) -> Result<Box<dyn Connection>> {
        let refuse = |errno: Errno| failed("connect to", address, errno.raw_os_error());
        let begin = || -> Result<(OwnedFd, bool), Errno> {
            let (descriptor, begun) = match address {
                Address::Tcp(at) => {
                    let descriptor = socket(family_of(at))?;
                    let begun = rustix::net::connect(&descriptor, at);
                    (descriptor, begun)
                }
                Address::Unix(path) => {
                    let descriptor = socket(AddressFamily::UNIX)?;
                    let begun = rustix::net::connect(&descriptor, &unix_name(path)?);
                    (descriptor, begun)
                }
                Address::Unnamed => return Err(Errno::INVAL),
            };
            match begun {
                Ok(()) => Ok((descriptor, true)),
                Err(Errno::INPROGRESS | Errno::INTR) => Ok((descriptor, false)),
                Err(errno) => Err(errno),
            }
        };
        let (descriptor, connected) = begin().map_err(refuse)?;
        Ok(Box::new(PosixConnection {
            descriptor,
            peer: address.clone(),
            connected,
            process: Process::current(),
        }))
    }

    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>> {
        let found = std::net::ToSocketAddrs::to_socket_addrs(&(host, 0));
        let found = found.map_err(|error| unknown_host(host, &error.to_string()))?;
        Ok(found.map(|address| address.ip()).collect())
    }

    fn poller(&self) -> Result<Box<dyn Poller>> {
        Ok(Box::new(PosixPoller::new()?))
    }
}

/// The error of listening nowhere.
pub(super) fn unnamed() -> Error {
    Error::invalid_argument("an unnamed address cannot be listened on")
}

fn family_of(address: &SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

fn socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
}

fn bind_tcp(at: &SocketAddr) -> Result<OwnedFd, Errno> {
    let descriptor = socket(family_of(at))?;
    if at.is_ipv6() {
        sockopt::set_ipv6_v6only(&descriptor, true)?;
    }
    sockopt::set_socket_reuseaddr(&descriptor, true)?;
    rustix::net::bind(&descriptor, at)?;
    Ok(descriptor)
}

fn unix_name(path: &Path) -> Result<SocketAddrUnix, Errno> {
    match path.as_os_str().is_empty() {
        true => Err(Errno::INVAL),
        false => SocketAddrUnix::new(path),
    }
}

/// A path that a listener is bound to; removed when dropped, unless something else has its name by then.
#[derive(Debug)]
struct BoundPath {
    path: PathBuf,
    device: u64,
    inode: u64,
    process: Process,
}

impl Drop for BoundPath {
    fn drop(&mut self) {
        // A forked child's copy names its parent's socket.
        if !self.process.is_present() {
            return;
        }
        if let Ok(facts) = std::fs::symlink_metadata(&self.path)
            && (facts.dev(), facts.ino()) == (self.device, self.inode)
        {
            // A path that cannot be removed becomes a stale socket, which the next listener replaces.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn bind_unix(path: &Path, mode: u32) -> Result<(OwnedFd, BoundPath), Errno> {
    let name = unix_name(path)?;
    let descriptor = socket(AddressFamily::UNIX)?;
    let mode = mode & 0o777;
    // The path gets the socket's mode less the process's mask, so at no moment may more users connect than in the
    // end. The mask itself belongs to all threads and stays as it is.
    rustix::fs::fchmod(&descriptor, Mode::from_raw_mode(mode))?;
    match rustix::net::bind(&descriptor, &name) {
        Err(Errno::ADDRINUSE) if is_stale(path, &name) => {
            std::fs::remove_file(path).map_err(errno_of)?;
            rustix::net::bind(&descriptor, &name)?;
        }
        outcome => outcome?,
    }
    let facts = std::fs::symlink_metadata(path).map_err(errno_of)?;
    let bound = BoundPath {
        path: path.to_owned(),
        device: facts.dev(),
        inode: facts.ino(),
        process: Process::current(),
    };
    if !drumlin_base::bug!("unix-mode-masked") {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, permissions).map_err(errno_of)?;
    }
    Ok((descriptor, bound))
}

fn errno_of(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// Whether the path is a socket that nobody listens on. A server that has bound it and will listen in a moment looks
/// the same: two servers that start on one path at one moment are not handled here.
fn is_stale(path: &Path, name: &SocketAddrUnix) -> bool {
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|facts| facts.file_type().is_socket());
    let refuses = || {
        let probe = socket(AddressFamily::UNIX)?;
        rustix::net::connect(&probe, name)
    };
    is_socket && refuses() == Err(Errno::CONNREFUSED)
}

fn address_of(name: Option<SocketAddrAny>) -> Address {
    let Some(name) = name else {
        return Address::Unnamed;
    };
    if let Ok(address) = SocketAddr::try_from(name.clone()) {
        return Address::Tcp(address);
    }
    let name = SocketAddrUnix::try_from(name);
    let path = name.as_ref().ok().and_then(SocketAddrUnix::path_bytes);
    match path {
        Some(path) if !path.is_empty() => {
            let path = path.strip_suffix(&[0]).unwrap_or(path);
            Address::Unix(OsStr::from_bytes(path).into())
        }
        _ => Address::Unnamed,
    }
}

#[derive(Debug)]
struct PosixListener {
    local: Address,
    /// Before the descriptor: nobody shall find the path refusing.
    _path: Option<BoundPath>,
    descriptor: OwnedFd,
    process: Process,
}

impl Source for PosixListener {
    fn handle(&self) -> Handle<'_> {
        Handle(HandleKind::Descriptor(self.descriptor.as_fd()))
    }
}

impl Listener for PosixListener {
    fn accept(&mut self) -> Result<Option<Box<dyn Connection>>> {
        self.process.check()?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (descriptor, name) = match rustix::net::acceptfrom_with(&self.descriptor, flags) {
            Ok(accepted) => accepted,
            // Errors of the connection, which is gone; the next wait reports the next one.
            Err(
                Errno::AGAIN
                | Errno::INTR
                | Errno::CONNABORTED
                | Errno::PROTO
                | Errno::NETDOWN
                | Errno::NOPROTOOPT
                | Errno::HOSTDOWN
                | Errno::NONET
                | Errno::HOSTUNREACH
                | Errno::OPNOTSUPP
                | Errno::NETUNREACH,
            ) => return Ok(None),
            Err(errno) => {
                let code = errno.raw_os_error();
                return Err(failed("accept on", &self.local, code));
            }
        };
        Ok(Some(Box::new(PosixConnection {
            descriptor,
            peer: address_of(name),
            connected: true,
            process: self.process,
        })))
    }

    fn local_address(&self) -> &Address {
        &self.local
    }
}

#[derive(Debug)]
struct PosixConnection {
    descriptor: OwnedFd,
    peer: Address,
    connected: bool,
    process: Process,
}

impl PosixConnection {
    #[cold]
    fn failed(&self, op: &str, errno: Errno) -> Error {
        failed(op, &self.peer, errno.raw_os_error())
    }
}

impl Source for PosixConnection {
    fn handle(&self) -> Handle<'_> {
        Handle(HandleKind::Descriptor(self.descriptor.as_fd()))
    }
}

impl Connection for PosixConnection {
    fn read(&mut self, buffer: &mut [u8]) -> Result<Received> {
        self.process.check()?;
        if buffer.is_empty() {
            return Ok(Received::Bytes(0));
        }
        match rustix::net::recv(&self.descriptor, buffer, RecvFlags::empty()) {
            Ok((_, 0)) => Ok(Received::End),
            Ok((count, _)) => Ok(Received::Bytes(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Received::NotNow),
            Err(errno) => Err(self.failed("read from", errno)),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> Result<Sent> {
        self.process.check()?;
        let (slices, len) = taken_at_once(slices);
        if len == 0 {
            return Ok(Sent::Bytes(0));
        }
        let mut control = SendAncillaryBuffer::default();
        let flags = SendFlags::NOSIGNAL;
        match rustix::net::sendmsg(&self.descriptor, slices, &mut control, flags) {
            Ok(count) => Ok(Sent::Bytes(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Sent::NotNow),
            Err(errno) => Err(self.failed("write to", errno)),
        }
    }

    fn connected(&mut self) -> Result<bool> {
        self.process.check()?;
        if self.connected {
            return Ok(true);
        }
        let outcome = sockopt::socket_error(&self.descriptor).and_then(|outcome| outcome);
        outcome.map_err(|errno| self.failed("connect to", errno))?;
        self.connected = rustix::net::getpeername(&self.descriptor).is_ok();
        Ok(self.connected)
    }

    fn shutdown_write(&mut self) -> Result<()> {
        self.process.check()?;
        let outcome = rustix::net::shutdown(&self.descriptor, Shutdown::Write);
        outcome.map_err(|errno| self.failed("end writing to", errno))
    }

    fn local_address(&self) -> Result<Address> {
        let name = rustix::net::getsockname(&self.descriptor);
        let name = name.map_err(|errno| self.failed("find the way to", errno))?;
        Ok(address_of(Some(name)))
    }

    fn peer_address(&self) -> &Address {
        &self.peer
    }

    fn set_nodelay(&mut self, nodelay: bool) -> Result<()> {
        self.process.check()?;
        if !matches!(self.peer, Address::Tcp(_)) {
            return Ok(());
        }
        let outcome = sockopt::set_tcp_nodelay(&self.descriptor, nodelay);
        outcome.map_err(|errno| self.failed("set the options of", errno))
    }

    fn set_keepalive(&mut self, idle: Option<Duration>) -> Result<()> {
        self.process.check()?;
        if idle.is_some_and(|idle| idle < KEEPALIVE_MIN) {
            return Err(Error::invalid_argument("a keepalive below three seconds"));
        }
        if !matches!(self.peer, Address::Tcp(_)) {
            return Ok(());
        }
        let set = || {
            if let Some(idle) = idle {
                sockopt::set_tcp_keepidle(&self.descriptor, idle)?;
                sockopt::set_tcp_keepintvl(&self.descriptor, idle / 3)?;
                sockopt::set_tcp_keepcnt(&self.descriptor, 3)?;
            }
            sockopt::set_socket_keepalive(&self.descriptor, idle.is_some())
        };
        set().map_err(|errno| self.failed("set the options of", errno))
    }
}
