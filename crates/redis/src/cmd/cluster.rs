//! CLUSTER, READONLY, READWRITE, ASKING: a cluster of one node, which owns all slots.

use drumlin_redis_store::{Failure, Outcome, slot_of};
use drumlin_resp::integer;

use crate::call::{Call, NOT_AN_INTEGER};
use crate::command::{Command, Flags, NO_KEYS};

const QUICK: Flags = Flags::LOADING.and(Flags::STALE).and(Flags::FAST);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("asking", 1, Flags::FAST, NO_KEYS, flag),
    Command::new("cluster", -2, Flags::NONE, NO_KEYS, cluster),
    Command::new("readonly", 1, QUICK, NO_KEYS, flag),
    Command::new("readwrite", 1, QUICK, NO_KEYS, flag),
];

/// Slots of a cluster.
const SLOTS: i64 = 16_384;
/// The distance of the port that nodes would talk to each other on.
const BUS_PORT: u64 = 10_000;
/// Keys that are looked at together.
const PAGE: usize = 1_000;

/// There is no other node that could have the keys: READONLY and ASKING change nothing.
fn flag(call: &mut Call<'_, '_>) -> Outcome<()> {
    check_enabled(call)?;
    call.reply.ok();
    Ok(())
}

fn check_enabled(call: &mut Call<'_, '_>) -> Outcome<()> {
    match call.server()?.is_cluster {
        true => Ok(()),
        false => Err(Failure::refused(
            "ERR This instance has cluster support disabled",
        )),
    }
}

fn cluster(call: &mut Call<'_, '_>) -> Outcome<()> {
    check_enabled(call)?;
    let id = call.server()?.run_id.clone();
    let name = String::from_utf8_lossy(call.arg(1)).to_ascii_lowercase();
    match (name.as_str(), call.len()) {
        ("help", 2) => return super::reply_help(call, HELP),
        ("info", 2) => call.reply.verbatim(*b"txt", INFO.as_bytes()),
        ("myid", 2) => call.reply.bulk(id.as_bytes()),
        ("nodes", 2) => {
            let (address, port) = address(call)?;
            let bus = port + BUS_PORT;
            let line = format!(
                "{id} {address}:{port}@{bus} myself,master - 0 0 0 connected 0-{}\n",
                SLOTS - 1
            );
            call.reply.verbatim(*b"txt", line.as_bytes());
        }
        ("slots", 2) => slots(call, &id)?,
        ("shards", 2) => shards(call, &id)?,
        ("links", 2) => call.reply.array(0),
        ("saveconfig", 2) => call.reply.ok(),
        ("keyslot", 3) => call.reply.integer(i64::from(slot_of(call.arg(2)))),
        ("countkeysinslot", 3) => {
            let slot = slot(call, "ERR Invalid slot")?;
            let keys = keys_in_slot(call, slot, usize::MAX, |_| {})?;
            call.reply.integer(keys as i64);
        }
        ("getkeysinslot", 4) => getkeysinslot(call)?,
        ("replicas" | "slaves", 3) => {
            check_node(call, 2, &id)?;
            call.reply.array(0);
        }
        ("count-failure-reports", 3) => {
            check_node(call, 2, &id)?;
            call.reply.integer(0);
        }
        _ => return Err(refusal(call, &name, &id)),
    }
    Ok(())
}

/// The error of what would change the cluster.
fn refusal(call: &Call<'_, '_>, name: &str, id: &str) -> Failure {
    let node = check_node(call, 2, id);
    match (name, node) {
        ("forget" | "replicate", Err(unknown)) => unknown,
        ("forget", Ok(())) => Failure::refused("ERR I tried hard but I can't forget myself..."),
        ("replicate", Ok(())) => Failure::refused("ERR Can't replicate myself"),
        ("failover", _) => Failure::refused("ERR You should send CLUSTER FAILOVER to a replica"),
        ("addslots" | "addslotsrange", _) => {
            match integer(call.arg(2)).filter(|slot| (0..SLOTS).contains(slot)) {
                Some(slot) => Failure::because(format!("ERR Slot {slot} is already busy")),
                None => Failure::refused("ERR Invalid or out of range slot"),
            }
        }
        _ => Failure::because(format!(
            "ERR CLUSTER {} is not supported: this node owns all slots, and there is no other",
            name.to_ascii_uppercase()
        )),
    }
}

/// Checks that argument `at` names this node.
fn check_node(call: &Call<'_, '_>, at: usize, id: &str) -> Outcome<()> {
    match call.arg(at) == id.as_bytes() {
        true => Ok(()),
        false => {
            let name = String::from_utf8_lossy(call.arg(at));
            Err(Failure::because(format!("ERR Unknown node {name}")))
        }
    }
}

/// The address and the port that clients are told. Without an address, they use that of their connection.
fn address(call: &mut Call<'_, '_>) -> Outcome<(String, u64)> {
    let config = &call.server()?.config;
    let announced = config.number("cluster-announce-port");
    let port = match announced {
        0 => config.number("port"),
        port => port,
    };
    Ok((config.get("cluster-announce-ip").to_owned(), port))
}

fn slots(call: &mut Call<'_, '_>, id: &str) -> Outcome<()> {
    let (address, port) = address(call)?;
    call.reply.array(1);
    call.reply.array(3);
    call.reply.integer(0);
    call.reply.integer(SLOTS - 1);
    call.reply.array(4);
    call.reply.bulk(address.as_bytes());
    call.reply.integer(port as i64);
    call.reply.bulk(id.as_bytes());
    call.reply.map(0);
    Ok(())
}

fn shards(call: &mut Call<'_, '_>, id: &str) -> Outcome<()> {
    let (address, port) = address(call)?;
    let reply = &mut *call.reply;
    reply.array(1);
    reply.map(2);
    reply.bulk(b"slots");
    reply.array(2);
    reply.integer(0);
    reply.integer(SLOTS - 1);
    reply.bulk(b"nodes");
    reply.array(1);
    reply.map(7);
    reply.bulk(b"id");
    reply.bulk(id.as_bytes());
    reply.bulk(b"port");
    reply.integer(port as i64);
    for name in ["ip", "endpoint"] {
        reply.bulk(name.as_bytes());
        reply.bulk(address.as_bytes());
    }
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"replication-offset");
    reply.integer(0);
    reply.bulk(b"health");
    reply.bulk(b"online");
    Ok(())
}

fn slot(call: &Call<'_, '_>, error: &'static str) -> Outcome<u16> {
    let slot = integer(call.arg(2)).ok_or(NOT_AN_INTEGER)?;
    let slot = u16::try_from(slot).ok();
    slot.filter(|slot| i64::from(*slot) < SLOTS)
        .ok_or(Failure::refused(error))
}

fn getkeysinslot(call: &mut Call<'_, '_>) -> Outcome<()> {
    let invalid = "ERR Invalid slot or number of keys";
    let most = integer(call.arg(3)).ok_or(NOT_AN_INTEGER)?;
    let slot = slot(call, invalid)?;
    let most = usize::try_from(most).map_err(|_| Failure::refused(invalid))?;
    let mut keys = Vec::new();
    keys_in_slot(call, slot, most, |key| keys.push(key))?;
    call.reply.array(keys.len());
    keys.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

/// Visits up to `most` keys of a slot; how many there were. Keys lie in the order of their slots, so this reads no others.
fn keys_in_slot(
    call: &Call<'_, '_>,
    slot: u16,
    most: usize,
    mut visit: impl FnMut(Vec<u8>),
) -> Outcome<usize> {
    let mut seen = 0;
    let mut cursor = u64::from(slot) << 32;
    loop {
        let page = call.keys.scan(cursor, PAGE)?;
        for (key, _) in page.keys {
            if slot_of(&key) != slot || seen == most {
                return Ok(seen);
            }
            seen += 1;
            visit(key);
        }
        cursor = page.cursor;
        if cursor >> 32 != u64::from(slot) || cursor == 0 {
            return Ok(seen);
        }
    }
}

const INFO: &str = "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\n\
                    cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\n\
                    cluster_size:1\r\ncluster_current_epoch:0\r\ncluster_my_epoch:0\r\n\
                    cluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\n\
                    total_cluster_links_buffer_limit_exceeded:0\r\n";

const HELP: &[&str] = &[
    "CLUSTER <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "COUNTKEYSINSLOT <slot>",
    "    Return the number of keys in <slot>.",
    "GETKEYSINSLOT <slot> <count>",
    "    Return key names stored by current node in a slot.",
    "INFO",
    "    Return information about the cluster.",
    "KEYSLOT <key>",
    "    Return the hash slot for <key>.",
    "MYID",
    "    Return the node id.",
    "NODES",
    "    Return cluster configuration seen by node. Output format:",
    "    <id> <ip:port> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
    "REPLICAS <node-id>",
    "    Return <node-id> replicas.",
    "SLOTS",
    "    Return information about slots range mappings. Each range is made of:",
    "    start, end, master and replicas IP addresses, ports and ids",
    "SHARDS",
    "    Return information about slot range mappings and the nodes associated with them.",
    "LINKS",
    "    Return information about all network links between this node and its peers.",
    "HELP",
    "    Prints this help.",
];
