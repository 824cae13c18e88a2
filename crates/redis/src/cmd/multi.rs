//! MULTI and WATCH. EXEC itself is a part of `dispatch`, as it runs other commands.

use drumlin_redis_store::{Failure, Outcome};

use crate::call::Call;
use crate::command::{ALL_KEYS, Command, Flags, NO_KEYS};
use crate::dispatch_multi::end_multi;
use crate::session::{Multi, Watched};

const QUICK: Flags = Flags::NOSCRIPT
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::FAST);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("discard", 1, QUICK, NO_KEYS, discard),
    Command::new(
        "exec",
        1,
        Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::SKIP_MONITOR),
        NO_KEYS,
        exec,
    ),
    Command::new("multi", 1, QUICK, NO_KEYS, multi),
    Command::new("unwatch", 1, QUICK, NO_KEYS, unwatch),
    Command::new("watch", -2, QUICK, ALL_KEYS, watch),
];

fn multi(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.session.multi.is_some() {
        return Err(Failure::refused("ERR MULTI calls can not be nested"));
    }
    call.session.multi = Some(Multi::default());
    call.reply.ok();
    Ok(())
}

/// Never called: `dispatch` knows EXEC by name.
fn exec(_call: &mut Call<'_, '_>) -> Outcome<()> {
    Err(Failure::refused("ERR EXEC without MULTI"))
}

fn discard(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.session.multi.is_none() {
        return Err(Failure::refused("ERR DISCARD without MULTI"));
    }
    end(call)
}

fn unwatch(call: &mut Call<'_, '_>) -> Outcome<()> {
    let multi = call.session.multi.take();
    end(call)?;
    call.session.multi = multi;
    Ok(())
}

fn end(call: &mut Call<'_, '_>) -> Outcome<()> {
    let elsewhere = Failure::refused("ERR transactions end on the server's own thread");
    let server = call.server.as_deref_mut().ok_or(elsewhere)?;
    end_multi(server, call.session);
    call.reply.ok();
    Ok(())
}

fn watch(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.session.multi.is_some() {
        return Err(Failure::refused("ERR WATCH inside MULTI is not allowed"));
    }
    let mut watched = Vec::new();
    for key in call.args.from(1).iter() {
        let had_expired = call.keys.has_expired(key)?;
        let (db, key) = (call.session.db, key.to_vec());
        watched.push((Watched { db, key }, had_expired));
    }
    let id = call.session.id;
    let server = call.server()?;
    watched
        .iter()
        .for_each(|(key, _)| server.watching.add(key.clone(), id));
    for (key, had_expired) in watched {
        call.session.watched.entry(key).or_insert(had_expired);
    }
    call.reply.ok();
    Ok(())
}
