//! The addresses that the server listens at.

use std::collections::BTreeMap;

use drumlin::{Error, Result};
use drumlin_fs::net::{Acceptor, Address, ListenOptions, NetErrorKind, Network, Poller, Token};

use crate::config::Config;

/// Listens wherever the configuration says.
///
/// # Errors
/// Of the sockets; `InvalidArgument` for an address that is none.
pub(crate) fn listen(
    config: &Config,
    network: &dyn Network,
    poller: &dyn Poller,
) -> Result<Vec<Acceptor>> {
    let backlog = u32::try_from(config.number("tcp-backlog")).unwrap_or(511);
    let mut addresses = BTreeMap::new();
    let port = config.number("port");
    if port > 0 || config.get("unixsocket").is_empty() {
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
            let address = host.parse::<core::net::IpAddr>().map_err(|_| {
                Error::invalid_argument(format!("bind: {name:?} is no address of this machine"))
            })?;
            let port = u16::try_from(port).unwrap_or(0);
            let address = core::net::SocketAddr::new(address, port);
            addresses.insert(Address::Tcp(address), may_fail);
        }
    }
    if !config.get("unixsocket").is_empty() {
        addresses.insert(Address::Unix(config.get("unixsocket").into()), false);
    }
    let mode = u32::from_str_radix(config.get("unixsocketperm"), 8).unwrap_or(0);
    let mut acceptors = Vec::new();
    for (address, may_fail) in addresses {
        let options = ListenOptions {
            backlog,
            unix_mode: if mode == 0 { 0o700 } else { mode },
        };
        match network.listen(&address, options) {
            Ok(listener) => {
                let token = Token(acceptors.len() as u64);
                acceptors.push(Acceptor::new(listener, poller, token)?);
            }
            Err(error) if may_fail && NetErrorKind::of(&error) != NetErrorKind::AddressInUse => {}
            Err(error) => return Err(error),
        }
    }
    match acceptors.is_empty() {
        true => Err(Error::invalid_argument("the server would listen nowhere")),
        false => Ok(acceptors),
    }
}
