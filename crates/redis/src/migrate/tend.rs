//! Migrations begin at the end of a turn, when all changes of the round are written.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use drumlin_redis_store::{Claims, Keyspace, Outcome, Overlay, ReadFrom};
use parking_lot::Mutex;

use super::request::Request;
use super::state::{Delivered, Running};
use super::task::Task;
use crate::state::ServerState;

/// Migrations that run beside each other.
const RUNNING_MAX: usize = 4;

/// Begins those that may.
pub(crate) fn tend(state: &mut ServerState) {
    while state.migrations.running.len() < RUNNING_MAX
        && let Some(request) = state.migrations.asked.pop_front()
    {
        begin(state, request);
    }
}

fn begin(state: &mut ServerState, request: Request) {
    let request = Arc::new(request);
    let letter = Arc::new(Mutex::new(None));
    let stops = Arc::new(AtomicBool::new(false));
    let task = Task {
        request: Arc::clone(&request),
        env: state.migrations.env.clone(),
        network: Arc::clone(&state.replication.network),
        store: Arc::clone(&state.store),
        view: state.store.view(),
        letter: Arc::clone(&letter),
        stops: Arc::clone(&stops),
        waker: state.net.poller.waker(),
    };
    let waker = state.net.poller.waker();
    let mut thread = None;
    let mut delivered = Delivered::default();
    let claims = claims(state, &task);
    match &claims {
        Err(failure) => delivered.error = Some(failure.to_string()),
        Ok(claims) if claims.is_empty() => delivered.found_none = true,
        Ok(_) => {
            let spawner = &state.migrations.env.spawner;
            match spawner.spawn("redis-migrate", Box::new(move || task.run())) {
                Ok(spawned) => thread = Some(spawned),
                Err(error) => delivered.error = Some(format!("ERR {error}")),
            }
        }
    }
    if thread.is_none() {
        *letter.lock() = Some(delivered);
        // The next turn finishes it, if this fails a tenth of a second later.
        drop(waker.wake());
    }
    state.migrations.running.push(Running {
        request,
        claims: claims.unwrap_or_default(),
        letter,
        stops,
        thread,
        is_abandoned: false,
    });
}

/// What is looked out for from the view on. Their records were read by the command: they are in memory but for a rare one.
fn claims(state: &ServerState, task: &Task) -> Outcome<Claims> {
    let now_ms = state.store.now_ms(state.now_micros / 1_000);
    let (mut overlay, db) = (Overlay::new(), task.request.db);
    let (store, view) = (&state.store, &task.view);
    let keys = Keyspace::new(store, view, &mut overlay, db, now_ms, ReadFrom::Disk);
    Claims::new(&keys, &task.request.keys)
}
