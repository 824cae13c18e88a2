//! The addresses that the server listens at.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use drumlin::{Error, Result};
use drumlin_fs::net::{Acceptor, Address, ListenOptions, NetErrorKind, Network, Poller, Token};

use crate::config::Config;
use crate::net::{Door, Guest, Net};

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
    let mut tokens = 0..;
    let token = || Token(tokens.next().unwrap_or(0));
    let doors = open((config, network, poller), wanted(config)?, token)?;
    match doors.iter().any(|door| door.guest != Guest::Scraper) {
        true => Ok(doors),
        false => Err(nowhere()),
    }
}

/// Listens where a new configuration says, and no more where only the old one did. Connections stay. After an error nothing has changed.
///
/// # Errors
/// As of [`listen`].
pub(crate) fn listen_anew(config: &Config, network: &dyn Network, net: &mut Net) -> Result<()> {
    let all = wanted(config)?;
    let is_open = |doors: &[Door], address: &Address, guest: Guest| {
        let mut doors = doors.iter();
        doors.any(|door| (&door.asked, door.guest) == (address, guest))
    };
    let mut missing = all.clone();
    missing.retain(|address, (guest, _)| !is_open(&net.doors, address, *guest));
    let is_any_port = |address: &Address| matches!(address, Address::Tcp(it) if it.port() == 0);
    if missing.keys().any(is_any_port) {
        return Err(nowhere());
    }
    let mut ids: Vec<u64> = missing.keys().map(|_| net.take_id()).collect();
    let token = || Token(ids.pop().unwrap_or(0));
    let new = open((config, network, &*net.poller), missing, token)?;
    let (stay, gone): (Vec<Door>, Vec<Door>) = std::mem::take(&mut net.doors)
        .into_iter()
        .partition(|door| {
            all.get(&door.asked)
                .is_some_and(|(it, _)| *it == door.guest)
        });
    close(&*net.poller, &gone);
    net.doors = stay.into_iter().chain(new).collect();
    Ok(())
}

fn nowhere() -> Error {
    Error::invalid_argument("the server would listen nowhere")
}

/// Opens doors at all of `wanted`, or none.
fn open(
    (config, network, poller): (&Config, &dyn Network, &dyn Poller),
    wanted: Wanted,
    mut token: impl FnMut() -> Token,
) -> Result<Vec<Door>> {
    let mut doors = Vec::new();
    for (asked, (guest, may_fail)) in wanted {
        match open_one((config, network, poller), &asked, token()) {
            Ok((acceptor, token)) => doors.push(Door {
                acceptor,
                token,
                asked,
                guest,
            }),
            Err(error) if may_fail && NetErrorKind::of(&error) != NetErrorKind::AddressInUse => {}
            Err(error) => {
                close(poller, &doors);
                return Err(error);
            }
        }
    }
    Ok(doors)
}

fn open_one(
    (config, network, poller): (&Config, &dyn Network, &dyn Poller),
    address: &Address,
    token: Token,
) -> Result<(Acceptor, Token)> {
    let backlog = u32::try_from(config.number("tcp-backlog")).unwrap_or(511);
    let mode = u32::from_str_radix(config.get("unixsocketperm"), 8).unwrap_or(0);
    let options = ListenOptions {
        backlog,
        unix_mode: if mode == 0 { 0o700 } else { mode },
    };
    let listener = network.listen(address, options)?;
    Ok((Acceptor::new(listener, poller, token)?, token))
}

/// Has nobody come to these doors any more.
fn close(poller: &dyn Poller, doors: &[Door]) {
    for door in doors {
        // One that pauses is not registered, which is the error.
        drop(poller.deregister(door.acceptor.listener()));
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
