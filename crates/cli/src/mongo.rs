//! `drumlin mongo`: the server of MongoDB's protocol.

use core::net::SocketAddr;
use std::sync::Arc;

use drumlin_fs::Env;
use drumlin_fs::net::{Address, PosixNetwork};
use drumlin_mongo::{Server, ServerOptions};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::{Mongo, Place};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, remark};

/// Serves until a signal ends it.
pub(crate) fn mongo(place: &Place, wanted: &Mongo, out: &mut Output) -> Outcome {
    let env = Env::system();
    let missing = || Failure::Usage("--dir DIR: where is the data to be?".to_owned());
    let dir = wanted
        .dir
        .clone()
        .or_else(|| place.db.clone())
        .ok_or_else(missing)?;
    let options = ServerOptions {
        dir: dir.clone(),
        listen: Address::Tcp(SocketAddr::new(wanted.bind, wanted.port)),
        memory: wanted.memory,
        env: env.clone(),
        network: Arc::new(PosixNetwork::new()),
    };
    let server = Server::open(options).map_err(Failure::Engine)?;
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(Failure::Io)?;
    let (stopper, handle) = (server.stopper(), signals.handle());
    let listen = move || {
        if signals.forever().next().is_some() && stopper.stop().is_err() {
            remark("drumlin: the server could not be woken; it ends within a tenth of a second");
        }
    };
    let thread = env
        .spawner
        .spawn("signals", Box::new(listen))
        .map_err(Failure::Engine)?;
    let (dir, address) = (dir.display().to_string(), server.address().to_string());
    let text = format!("Serving {dir} at {address}");
    out.fact(text, serde_json::json!({"dir": dir, "address": address}))?;
    out.flush()?;
    let ended = server.run();
    handle.close();
    thread.join().map_err(Failure::Engine)?;
    ended.map_err(Failure::Engine)
}
