//! A TLS session beside a socket: what is read from the socket goes through it, and what is to be sent.
//!
//! Bounds: up to 32 KiB are read for a handshake. What was decrypted is given on at once. Up to 64 KiB that were encrypted wait
//! for the socket; the rest waits unencrypted, as that of a plain connection does.

use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::net::{Connection, Received, Sent};
use rustls::{ServerConfig, ServerConnection};

/// Bytes that are read at a time: two of the longest records.
const READ_BYTES: usize = 33 << 10;
/// Bytes that a handshake takes: hellos and chains of certificates.
const GREETING_BYTES_MAX: usize = 32 << 10;
/// Bytes that were encrypted and not sent.
const UNSENT_BYTES_MAX: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub struct Tls {
    session: ServerConnection,
    /// Bytes that were read for the handshake.
    greeting_bytes: usize,
    /// The peer sends nothing more.
    has_ended: bool,
}

/// Takes bytes for a socket, as rustls wants it.
struct Sink<'a>(&'a mut dyn Connection);

impl std::io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_vectored(&[std::io::IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
        match self.0.write_vectored(slices) {
            Ok(Sent::Bytes(bytes)) => Ok(bytes),
            Ok(Sent::NotNow) => Err(std::io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(std::io::Error::other(error.to_string())),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("TLS: {error}"))
}

impl Tls {
    /// A session that waits for a hello.
    ///
    /// # Errors
    /// Where the machine has no randomness.
    pub fn new(config: Arc<ServerConfig>) -> Result<Self> {
        let mut session = ServerConnection::new(config).map_err(failed)?;
        session.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Ok(Self {
            session,
            greeting_bytes: 0,
            has_ended: false,
        })
    }

    /// Whether the handshake is not over.
    pub fn is_greeting(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Whether something that was encrypted waits for the socket.
    pub fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// Whether the peer has said that it sends nothing more.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Reads from the socket about as many bytes as `wanted`, and appends to `input` all that they say.
    ///
    /// # Errors
    /// Of the socket; where the peer does not keep to the protocol, which it is told.
    pub fn read(
        &mut self,
        connection: &mut dyn Connection,
        input: &mut Vec<u8>,
        wanted: usize,
    ) -> Result<Received> {
        let before = input.len();
        let mut buffer = [0; READ_BYTES];
        let mut read = 0;
        while read < wanted && !self.has_ended {
            match connection.read(&mut buffer)? {
                Received::Bytes(bytes) => {
                    read += bytes;
                    let read = buffer.get(..bytes).unwrap_or_default();
                    self.feed(connection, read, input)?;
                    if bytes < buffer.len() {
                        break;
                    }
                }
                Received::End => self.has_ended = true,
                Received::NotNow => break,
            }
        }
        Ok(match input.len() - before {
            0 if self.has_ended => Received::End,
            0 => Received::NotNow,
            bytes => Received::Bytes(bytes),
        })
    }

    /// As [`Tls::read`], of bytes that were read from the socket already.
    ///
    /// # Errors
    /// Where the peer does not keep to the protocol, which it is told.
    pub fn feed(
        &mut self,
        connection: &mut dyn Connection,
        bytes: &[u8],
        input: &mut Vec<u8>,
    ) -> Result<()> {
        let taken = self.take(bytes, input);
        if taken.is_err() {
            // The peer is told why, if it listens.
            drop(self.session.write_tls(&mut Sink(connection)));
        }
        taken
    }

    /// Decrypts bytes of the socket.
    fn take(&mut self, mut bytes: &[u8], input: &mut Vec<u8>) -> Result<()> {
        while !bytes.is_empty() && !self.has_ended {
            let was_greeting = self.session.is_handshaking();
            let read = self.session.read_tls(&mut bytes).map_err(failed)?;
            let state = self.session.process_new_packets().map_err(failed)?;
            if was_greeting {
                // rustls takes a few KiB at a time: commands that came along with the end of the handshake count little.
                self.greeting_bytes += read;
            }
            let (len, more) = (input.len(), state.plaintext_bytes_to_read());
            input.resize(len + more, 0);
            let space = input.get_mut(len..).unwrap_or_default();
            std::io::Read::read_exact(&mut self.session.reader(), space).map_err(failed)?;
            self.has_ended = state.peer_has_closed();
            if self.session.is_handshaking() && self.greeting_bytes > GREETING_BYTES_MAX {
                return Err(failed("the handshake is too long"));
            }
        }
        Ok(())
    }

    /// Encrypts and sends what the socket takes; how many bytes of `out` were taken, which may still wait encrypted.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn send(&mut self, connection: &mut dyn Connection, out: &[u8]) -> Result<usize> {
        let mut taken = 0;
        loop {
            while self.session.wants_write() {
                match self.session.write_tls(&mut Sink(connection)) {
                    Ok(_) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        return Ok(taken);
                    }
                    Err(error) => return Err(failed(error)),
                }
            }
            let rest = out.get(taken..).unwrap_or_default();
            if rest.is_empty() || self.session.is_handshaking() {
                return Ok(taken);
            }
            let mut writer = self.session.writer();
            taken += std::io::Write::write(&mut writer, rest).map_err(failed)?;
        }
    }

    /// Tells the peer that the connection ends here, if its socket takes that.
    pub fn say_goodbye(&mut self, connection: &mut dyn Connection) {
        self.session.send_close_notify();
        drop(self.session.write_tls(&mut Sink(connection)));
    }
}
