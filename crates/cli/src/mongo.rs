//! `drumlin mongo`: the server of MongoDB's protocol.

use core::net::SocketAddr;
use std::sync::Arc;

use drumlin_fs::Env;
use drumlin_fs::net::{Address, PosixNetwork};
use drumlin_mongo::{Server, ServerOptions};

use crate::args::{Mongo, Place};
use crate::failure::{Failure, Outcome};
use crate::interrupt::serve_until_signal;
use crate::output::Output;

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
        auth: wanted.auth,
        memory: wanted.memory,
        env: env.clone(),
        network: Arc::new(PosixNetwork::new()),
    };
    let server = Server::open(options).map_err(Failure::Engine)?;
    let stopper = server.stopper();
    let stop = move || stopper.stop();
    serve_until_signal(&env, stop, || {
        let (dir, address) = (dir.display().to_string(), server.address().to_string());
        let text = format!("Serving {dir} at {address}");
        out.fact(text, serde_json::json!({"dir": dir, "address": address}))?;
        out.flush()?;
        server.run().map_err(Failure::Engine)
    })
}
