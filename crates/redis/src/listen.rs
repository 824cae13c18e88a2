//! The addresses that the server listens at.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use drumlin::{Error, Result};
use drumlin_fs::net::{Acceptor, Address, ListenOptions, NetErrorKind, Network, Poller, Token};

use crate::config::Config;
use crate::net::{Door, Guest};

/// Who is expected at an address, and whether this machine may lack it.
type Wanted = BTreeMap<Address, (Guest, bool)>;

/// Listens wherever the configuration says.
///
/// # Errors
/// Of the sockets; `InvalidArgument` for an address that is none.
pub(crate) fn listen(
    config: &Config,
    network: &dyn Network,
    poller: &dyn Poller,
) -> Result<Vec<Door>> {
    let backlog = u32::try_from(config.number("tcp-backlog")).unwrap_or(511);
    let mode = u32::from_str_radix(config.get("unixsocketperm"), 8).unwrap_or(0);
    let mut doors = Vec::new();
    for (address, (guest, may_fail)) in wanted(config)? {
        let options = ListenOptions {
            backlog,
            unix_mode: if mode == 0 { 0o700 } else { mode },
        };
        match network.listen(&address, options) {
            Ok(listener) => {
                let token = Token(doors.len() as u64);
                let acceptor = Acceptor::new(listener, poller, token)?;
                doors.push(Door { acceptor, guest });
            }
            Err(error) if may_fail && NetErrorKind::of(&error) != NetErrorKind::AddressInUse => {}
            Err(error) => return Err(error),
        }
    }
    match doors.iter().any(|door| door.guest != Guest::Scraper) {
        true => Ok(doors),
        false => Err(Error::invalid_argument("the server would listen nowhere")),
    }
}

fn wanted(config: &Config) -> Result<Wanted> {
    let mut wanted = Wanted::new();
    let (port, metrics_port) = (config.number("port"), config.number("metrics-port"));
    let (tls_port, socket) = (config.number("tls-port"), config.get("unixsocket"));
    if port > 0 || (socket.is_empty() && tls_port == 0) {
        add(&mut wanted, config, port, Guest::Client)?;
    }
    if tls_port > 0 {
        add(&mut wanted, config, tls_port, Guest::Secure)?;
    }
    if metrics_port > 0 {
        add(&mut wanted, config, metrics_port, Guest::Scraper)?;
    }
    if !socket.is_empty() {
        let address = Address::Unix(socket.into());
        wanted.insert(address, (Guest::Client, false));
    }
    Ok(wanted)
}

/// A port of all addresses of `bind`.
fn add(wanted: &mut Wanted, config: &Config, port: u64, guest: Guest) -> Result<()> {
    for name in config.get("bind").split_whitespace() {
        // A name that begins with a minus may be missing on this machine.
        let (name, may_fail) = name
            .strip_prefix('-')
            .map_or((name, false), |name| (name, true));
        let host = match name {
            "*" => "0.0.0.0",
            "localhost" => "127.0.0.1",
            other => other,
        };
        let address = host.parse::<IpAddr>().map_err(|_| {
            Error::invalid_argument(format!("bind: {name:?} is no address of this machine"))
        })?;
        let address = SocketAddr::new(address, u16::try_from(port).unwrap_or(0));
        let other = wanted.insert(Address::Tcp(address), (guest, may_fail));
        if other.is_some_and(|(other, _)| other != guest) {
            return Err(Error::invalid_argument(format!(
                "{address} would serve twice"
            )));
        }
    }
    Ok(())
}
