//! The bounds of memory, from the configuration. Kept as numbers: they are looked at with every reply.

use drumlin::Options;

use crate::config::{Config, OutLimits};

/// The least that clients may have together, unless `maxmemory-clients` says less: as many idle ones as `maxclients` is by
/// default fit in, and a few large values.
const CLIENTS_BYTES_LEAST: usize = 64 << 20;
/// The least budget that CONFIG SET sets. Below it even an empty engine has more.
const BUDGET_BYTES_LEAST: usize = 16 << 20;
/// What an empty Redis counts as used, rounded up.
const EMPTY_SERVER_BYTES: usize = 1 << 20;
/// The part of the budget that clients may have together.
const CLIENTS_SHARE: usize = 2;
/// The part of the budget that the Lua state may have, and its bounds.
const LUA_SHARE: usize = 4;
const LUA_BYTES: std::ops::RangeInclusive<usize> = 16 << 20..=256 << 20;

/// The part of the budget that the nodes of trees may have between rounds, and the most of it: so much is let go of at once.
const NODES_SHARE: usize = 16;
const NODES_BYTES_MAX: usize = 64 << 20;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// `maxmemory`, or the part of the machine's memory that 0 stands for.
    pub(crate) budget_bytes: usize,
    /// `maxmemory` is less than a server needs that has no data, Redis too: commands that may need memory are refused.
    pub(crate) has_none: bool,
    /// What all clients may have together, before the largest are cut off.
    pub(crate) clients_bytes: usize,
    /// What nodes of trees may have between rounds.
    pub(crate) nodes_bytes: usize,
    /// What the Lua state may have.
    pub(crate) lua_bytes: usize,
    /// What one client may send ahead, `client-query-buffer-limit`.
    pub(crate) query_bytes: u64,
    /// What may wait for a client, and for a subscriber.
    pub(crate) normal: OutLimits,
    pub(crate) subscriber: OutLimits,
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Bounds {
    /// Those that `config` says.
    pub(crate) fn of(config: &Config) -> Self {
        let budget_bytes = match size(config.number("maxmemory")) {
            0 => Options::default().memory_budget_bytes(),
            bytes => bytes.max(BUDGET_BYTES_LEAST),
        };
        let wanted = config.get("maxmemory-clients");
        let percent = wanted.strip_suffix('%').and_then(|it| it.parse().ok());
        let clients_bytes = match (percent, size(config.number("maxmemory-clients"))) {
            (Some(percent), _) => budget_bytes / 100 * size(percent),
            (None, 0) => (budget_bytes / CLIENTS_SHARE).max(CLIENTS_BYTES_LEAST),
            (None, bytes) => bytes,
        };
        let asked = size(config.number("maxmemory"));
        Self {
            has_none: (1..EMPTY_SERVER_BYTES).contains(&asked),
            budget_bytes,
            clients_bytes,
            nodes_bytes: (budget_bytes / NODES_SHARE).min(NODES_BYTES_MAX),
            lua_bytes: (budget_bytes / LUA_SHARE).clamp(*LUA_BYTES.start(), *LUA_BYTES.end()),
            query_bytes: config.number("client-query-buffer-limit").max(1 << 20),
            normal: config.out_limits(&["normal"]),
            subscriber: config.out_limits(&["pubsub"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(pairs: &[(&str, &str)]) -> Bounds {
        let mut config = Config::default();
        for (name, value) in pairs {
            let set = config.set_at_start(name.as_bytes(), value.as_bytes());
            set.expect("a value");
        }
        Bounds::of(&config)
    }

    #[test]
    fn clients_and_scripts_have_parts_of_the_budget() {
        let of_a_gigabyte = bounds(&[("maxmemory", "1gb")]);
        assert_eq!(of_a_gigabyte.budget_bytes, 1 << 30);
        assert_eq!(of_a_gigabyte.clients_bytes, 1 << 29);
        assert_eq!(of_a_gigabyte.lua_bytes, 256 << 20);
        assert_eq!(of_a_gigabyte.nodes_bytes, 64 << 20);
        let small = bounds(&[("maxmemory", "1"), ("maxmemory-clients", "10%")]);
        assert_eq!(small.budget_bytes, BUDGET_BYTES_LEAST);
        assert!(small.has_none && !of_a_gigabyte.has_none && !bounds(&[]).has_none);
        assert!(!bounds(&[("maxmemory", "1mb")]).has_none);
        assert_eq!(small.clients_bytes, (BUDGET_BYTES_LEAST) / 100 * 10);
        assert_eq!(small.lua_bytes, 16 << 20);
        assert_eq!(small.nodes_bytes, 1 << 20);
        assert_eq!(
            bounds(&[("maxmemory-clients", "7mb")]).clients_bytes,
            7 << 20
        );
        assert!(bounds(&[]).budget_bytes >= 64 << 20);
    }
}
