//! Commands of HyperLogLogs.

use drumlin_redis_store::types::hyperloglog;
use drumlin_redis_store::{Failure, Outcome};

use super::elements::random;
use crate::call::Call;
use crate::command::{ALL_KEYS, Command, Flags, KeyPositions, NO_KEYS, ONE_KEY};

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const SECOND: KeyPositions = KeyPositions {
    first: 2,
    last: 2,
    step: 1,
};

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("pfadd", -2, WRITE.and(Flags::FAST), ONE_KEY, pfadd),
    Command::new(
        "pfcount",
        -2,
        Flags::READONLY.and(Flags::KEEPS),
        ALL_KEYS,
        pfcount,
    ),
    Command::new("pfdebug", 3, WRITE.and(Flags::ADMIN), SECOND, pfdebug),
    Command::new("pfmerge", -2, WRITE, ALL_KEYS, pfmerge),
    Command::new("pfselftest", 1, Flags::ADMIN, NO_KEYS, pfselftest),
];

fn pfadd(call: &mut Call<'_, '_>) -> Outcome<()> {
    let elements = call.args.from(2);
    let most = call.limits.hll_sparse_bytes_max;
    let changed = hyperloglog::add(call.keys, call.arg(1), elements.iter(), most)?;
    call.reply.integer(i64::from(changed));
    Ok(())
}

fn pfcount(call: &mut Call<'_, '_>) -> Outcome<()> {
    let names: Vec<_> = call.args.from(1).iter().collect();
    let count = hyperloglog::count(call.keys, &names)?;
    // What is over an i64 is told as Redis tells it.
    call.reply.integer(count as i64);
    Ok(())
}

fn pfmerge(call: &mut Call<'_, '_>) -> Outcome<()> {
    let from = call.args.from(2);
    let most = call.limits.hll_sparse_bytes_max;
    hyperloglog::merge(call.keys, call.arg(1), from.iter(), most)?;
    call.reply.ok();
    Ok(())
}

fn pfselftest(call: &mut Call<'_, '_>) -> Outcome<()> {
    let mut random = random(call);
    hyperloglog::self_test(&mut random, call.limits.hll_sparse_bytes_max)?;
    call.reply.ok();
    Ok(())
}

fn pfdebug(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(2);
    let encoding = hyperloglog::encoding(call.keys, key)?;
    let encoding = encoding.ok_or(Failure::refused("ERR The specified key does not exist"))?;
    match () {
        () if call.is(1, "getreg") => {
            let registers = hyperloglog::registers(call.keys, key)?.unwrap_or_default();
            call.reply.array(registers.len());
            for register in registers {
                call.reply.integer(i64::from(register));
            }
        }
        () if call.is(1, "decode") => {
            let runs = hyperloglog::decode(call.keys, key)?;
            let runs = runs.ok_or(Failure::refused("ERR HLL encoding is not sparse"))?;
            call.reply.bulk(runs.as_bytes());
        }
        () if call.is(1, "encoding") => call.reply.simple(encoding.as_bytes()),
        () if call.is(1, "todense") => {
            let was_sparse = hyperloglog::make_dense(call.keys, key)?.unwrap_or(false);
            call.reply.integer(i64::from(was_sparse));
        }
        () => {
            let name = String::from_utf8_lossy(call.arg(1)).into_owned();
            return Err(Failure::because(format!(
                "ERR Unknown PFDEBUG subcommand '{name}'"
            )));
        }
    }
    Ok(())
}
