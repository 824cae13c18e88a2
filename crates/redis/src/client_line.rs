//! The line of a client, as CLIENT LIST and ACL LOG show it.

use drumlin_resp::Protocol;

use crate::session::Session;
use crate::state::ServerState;

fn letters(session: &Session) -> String {
    let tracking = session.tracking.as_deref();
    let is_unix = session.address.starts_with('/');
    let flags = [
        ('S', session.is_replica),
        ('M', session.is_primary),
        ('O', session.is_monitor),
        ('P', session.subscriptions() > 0),
        ('x', session.multi.is_some()),
        ('b', session.blocked.is_some() || session.is_paused),
        ('t', tracking.is_some()),
        ('R', tracking.is_some_and(|it| it.is_broken)),
        ('B', tracking.is_some_and(|it| it.is_broadcast)),
        ('d', session.is_dirty),
        ('c', session.closes),
        ('U', is_unix),
        ('e', session.no_evict),
    ];
    let set: String = flags
        .iter()
        .filter_map(|(letter, is_set)| is_set.then_some(*letter))
        .collect();
    match set.is_empty() {
        true => "N".to_owned(),
        false => set,
    }
}

/// The line of a client. `own` is the size of its request, if it is the one that asks.
pub(crate) fn describe(server: &ServerState, session: &Session, own: Option<usize>) -> String {
    let io = server.net.ios.get(&session.id);
    let unread = own.or_else(|| Some(io?.pending_bytes())).unwrap_or(0);
    let unsent = session.out.len();
    let queued = session.multi.as_ref().map(|multi| &multi.queue);
    let multi_bytes = queued.map_or(0, |queue| queue.iter().map(|it| it.args.bytes()).sum());
    let now = server.now_seconds;
    let command = session.last_command;
    let user = match session.user.map(|id| server.users.get(id)) {
        Some(user) => user.map_or("".into(), |user| String::from_utf8_lossy(&user.name)),
        None => "(superuser)".into(),
    };
    format!(
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} \
         multi={} qbuf={unread} qbuf-free=0 argv-mem={} multi-mem={multi_bytes} rbs=1024 rbp=0 \
         obl={} oll=0 omem=0 tot-mem={} events={} cmd={command} user={} redir={} \
         resp={}\n",
        session.id,
        session.address,
        session.local_address,
        session.id,
        String::from_utf8_lossy(&session.name),
        now.saturating_sub(session.created_seconds),
        now.saturating_sub(session.last_seconds),
        letters(session),
        session.db,
        session.channels.len(),
        session.patterns.len(),
        session.shard_channels.len(),
        queued.map_or(-1, |queue| queue.len() as i64),
        own.unwrap_or(0),
        // Bytes that its socket has not taken: those of earlier rounds.
        if own.is_some() { 0 } else { unsent },
        unread + unsent + multi_bytes,
        if own.is_none() && unsent > 0 {
            "rw"
        } else {
            "r"
        },
        user,
        session
            .tracking
            .as_ref()
            .map_or(-1, |it| it.redirect as i64),
        if session.protocol == Protocol::Resp3 {
            3
        } else {
            2
        },
    )
}
