//! Cluster mode: one node that owns all slots. Commands may only name keys of one slot, in database 0.

use drumlin_redis_store::{Failure, Outcome, slot_of};
use drumlin_resp::Args;

use crate::cmd::command::keys_of;
use crate::facts::Facts;
use crate::session::Session;

/// Checks that a command may run in cluster mode; for EXEC, all commands that were queued.
///
/// # Errors
/// As Redis words them.
pub(crate) fn check(session: &Session, facts: &Facts, args: Args<'_>) -> Outcome<()> {
    let refused = |text| Err(Failure::refused(text));
    match facts.name {
        "select" if args.get(1) != Some(b"0") => {
            return refused("ERR SELECT is not allowed in cluster mode");
        }
        "swapdb" => return refused("ERR SWAPDB is not allowed in cluster mode"),
        "move" => return refused("ERR MOVE is not allowed in cluster mode"),
        _ => {}
    }
    let mut slot = None;
    let is_other = |key: &[u8]| *slot.get_or_insert(slot_of(key)) != slot_of(key);
    let crosses = match (&session.multi, facts.name) {
        (Some(multi), "exec") => multi
            .queue
            .iter()
            .flat_map(|kept| keys_of(&kept.facts, kept.args.args()))
            .any(is_other),
        _ => keys_of(facts, args).any(is_other),
    };
    match crosses {
        true => refused("CROSSSLOT Keys in request don't hash to the same slot"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use drumlin_resp::OwnedArgs;

    use super::check;
    use crate::session::Session;
    use crate::table::Table;

    /// Goal: commands of one slot run, others do not. Method: some of each, as Redis 7.0.15 in cluster mode answers them.
    #[test]
    fn keys_of_one_command_lie_in_one_slot() {
        let table = Table::new(&[]).expect("a table");
        for (line, is_refused) in [
            ("mset {a}1 x {a}2 y", false),
            ("mset a x b y", true),
            ("get a", false),
            ("zunion 2 {a}1 {a}2", false),
            ("zunion 2 a b", true),
            ("zunionstore a 1 b", true),
            ("select 0", false),
            ("select 1", true),
            ("swapdb 0 1", true),
            ("ping", false),
            ("publish a b", false),
        ] {
            let args: OwnedArgs = line.split(' ').map(str::as_bytes).collect();
            let name = line.split(' ').next().unwrap_or_default();
            let command = table.find(name.as_bytes()).expect("it is there");
            let outcome = check(&Session::default(), &command.facts, args.args());
            assert_eq!(outcome.is_err(), is_refused, "{line}");
        }
    }
}
