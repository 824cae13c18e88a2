//! The subcommands of CLIENT for caches of clients.

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::integer;

use crate::call::{Call, NOT_AN_INTEGER, SYNTAX};
use crate::tracking::options::Tracking;

pub(super) fn tracking(call: &mut Call<'_, '_>) -> Outcome<()> {
    let asked = parse(call)?;
    match () {
        () if call.is(2, "on") => {
            check(&asked, call.session.tracking.as_deref())?;
            let id = call.session.id;
            let old = call.session.tracking.take();
            let mut asked = asked;
            if asked.is_broadcast && asked.prefixes.is_empty() {
                asked.prefixes.insert(Vec::new());
            }
            let server = call.server()?;
            server.tracker.begin(id, &asked.prefixes);
            // Prefixes of an earlier call stay.
            asked
                .prefixes
                .extend(old.into_iter().flat_map(|old| old.prefixes));
            call.session.tracking = Some(Box::new(asked));
        }
        () if call.is(2, "off") => {
            let id = call.session.id;
            if let Some(old) = call.session.tracking.take() {
                call.server()?.tracker.end(id, &old);
            }
        }
        () => return Err(SYNTAX),
    }
    call.reply.ok();
    Ok(())
}

fn parse(call: &mut Call<'_, '_>) -> Outcome<Tracking> {
    let mut asked = Tracking::default();
    let mut at = 3;
    while at < call.len() {
        let has_value = at + 1 < call.len();
        match () {
            () if call.is(at, "redirect") && has_value => {
                if asked.redirect != 0 {
                    return Err(Failure::refused(
                        "ERR A client can only redirect to a single other client",
                    ));
                }
                at += 1;
                let id = integer(call.arg(at)).ok_or(NOT_AN_INTEGER)?;
                let id = u64::try_from(id).unwrap_or(0);
                let own = call.session.id;
                if id != own && call.server()?.clients.get(id).is_none() {
                    return Err(Failure::refused(
                        "ERR The client ID you want redirect to does not exist",
                    ));
                }
                asked.redirect = id;
            }
            () if call.is(at, "prefix") && has_value => {
                at += 1;
                asked.asked_prefixes.push(call.arg(at).to_vec());
            }
            () if call.is(at, "bcast") => asked.is_broadcast = true,
            () if call.is(at, "optin") => asked.opts_in = true,
            () if call.is(at, "optout") => asked.opts_out = true,
            () if call.is(at, "noloop") => asked.no_loop = true,
            () => return Err(SYNTAX),
        }
        at += 1;
    }
    asked.prefixes = asked.asked_prefixes.iter().cloned().collect();
    Ok(asked)
}

/// Checks that the options agree with each other and with what the client asked for before.
fn check(asked: &Tracking, old: Option<&Tracking>) -> Outcome<()> {
    let refused = |text| Err(Failure::refused(text));
    if !asked.is_broadcast && !asked.prefixes.is_empty() {
        return refused("ERR PREFIX option requires BCAST mode to be enabled");
    }
    if old.is_some_and(|old| old.is_broadcast != asked.is_broadcast) {
        return refused(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and \
             then re-enabling it with a different mode.",
        );
    }
    if asked.is_broadcast && (asked.opts_in || asked.opts_out) {
        return refused("ERR OPTIN and OPTOUT are not compatible with BCAST");
    }
    if asked.opts_in && asked.opts_out {
        return refused("ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    if old.is_some_and(|old| asked.opts_in && old.opts_out || asked.opts_out && old.opts_in) {
        return refused(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and \
             then re-enabling it with a different mode.",
        );
    }
    for (at, prefix) in asked.asked_prefixes.iter().enumerate() {
        let meets = |other: &&Vec<u8>| other.starts_with(prefix) || prefix.starts_with(other);
        let existing = old.and_then(|old| old.prefixes.iter().find(meets));
        let given = asked.asked_prefixes.iter().skip(at + 1).find(meets);
        let (other, kind) = match (existing, given) {
            (Some(other), _) => (other, "an existing"),
            (None, Some(other)) => (other, "another provided"),
            (None, None) => continue,
        };
        let [prefix, other] = [prefix, other].map(|it| String::from_utf8_lossy(it));
        return Err(Failure::because(format!(
            "ERR Prefix '{prefix}' overlaps with {kind} prefix '{other}'. Prefixes for a single client \
             must not overlap."
        )));
    }
    Ok(())
}

pub(super) fn caching(call: &mut Call<'_, '_>) -> Outcome<()> {
    let [yes, no] = [call.is(2, "yes"), call.is(2, "no")];
    let Some(tracking) = call.session.tracking.as_deref_mut() else {
        return Err(Failure::refused(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
             OPTOUT mode enabled",
        ));
    };
    match () {
        () if yes && !tracking.opts_in => {
            return Err(Failure::refused(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
        () if no && !tracking.opts_out => {
            return Err(Failure::refused(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
        () if yes || no => tracking.is_caching = true,
        () => return Err(SYNTAX),
    }
    call.reply.ok();
    Ok(())
}

pub(super) fn getredir(call: &mut Call<'_, '_>) -> Outcome<()> {
    let redirect = redirect(call);
    call.reply.integer(redirect);
    Ok(())
}

fn redirect(call: &Call<'_, '_>) -> i64 {
    let tracking = call.session.tracking.as_ref();
    tracking.map_or(-1, |it| i64::try_from(it.redirect).unwrap_or(0))
}

pub(super) fn trackinginfo(call: &mut Call<'_, '_>) -> Outcome<()> {
    let redirect = redirect(call);
    let none = Tracking::default();
    let tracking = call.session.tracking.as_deref();
    let it = tracking.unwrap_or(&none);
    let flags = [
        ("on", tracking.is_some()),
        ("off", tracking.is_none()),
        ("bcast", it.is_broadcast),
        ("optin", it.opts_in),
        ("caching-yes", it.opts_in && it.is_caching),
        ("optout", it.opts_out),
        ("caching-no", it.opts_out && it.is_caching),
        ("noloop", it.no_loop),
        ("broken_redirect", it.is_broken),
    ];
    let set: Vec<&str> = flags
        .iter()
        .filter_map(|(name, is_set)| is_set.then_some(*name))
        .collect();
    call.reply.map(3);
    call.reply.bulk(b"flags");
    call.reply.set(set.len());
    set.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    call.reply.bulk(b"redirect");
    call.reply.integer(redirect);
    call.reply.bulk(b"prefixes");
    call.reply.array(it.prefixes.len());
    it.prefixes.iter().for_each(|it| call.reply.bulk(it));
    Ok(())
}
