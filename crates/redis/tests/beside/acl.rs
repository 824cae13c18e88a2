//! Goal: users may do what Redis lets them do, and are told the same. Method: random rules for a few users, whose commands run on
//! connections of their own, beside redis-server; then the cases of Redis's own tests of users that need several connections.
//! `REDIS_COMMANDS` and `REDIS_SEED` as elsewhere.

use drumlin_base::rng::Rng;
use drumlin_resp::Value;

use crate::clients::Both;
use crate::pair::{Pair, pick, words};

const USERS: &[&str] = &["alice", "bob", "carol", "default"];
const RULES: &[&str] = &[
    "on",
    "on",
    "on",
    "off",
    "nopass",
    "nopass",
    "resetpass",
    "reset",
    ">secret",
    ">other",
    "<secret",
    "<other",
    "#2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90",
    "!2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90",
    "#short",
    "!short",
    "~*",
    "~a*",
    "~b*",
    "%R~a*",
    "%W~a*",
    "%RW~b*",
    "%r~*",
    "%w~*",
    "%R~b*",
    "%~a",
    "%RR~a",
    "%X~a",
    "%R",
    "%",
    "~",
    "&*",
    "&a*",
    "&b*",
    "&",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
    "+@all",
    "-@all",
    "+@ALL",
    "clearselectors",
    "sanitize-payload",
    "skip-sanitize-payload",
    "(+get ~a*)",
    "(+@read %R~b*)",
    "(+@write %W~a* &b*)",
    "(+@pubsub &a*)",
    "()",
    "(+nothing)",
    "(on)",
    "(+get",
    "~a)",
    "nothing",
    "+",
    "-",
    "+@",
    "-@nothing",
    "+@nothing",
    "+nothing",
    "-nothing",
    "+config|get",
    "-config|get",
    "+config|",
    "+config|nothing",
    "+config|get|x",
    "+select|0",
    "+SELECT|1",
    "+select|",
    "-select|0",
    "+debug|object",
    "-config",
    "+config",
    "+client|id",
    "-client|kill",
    "+acl|whoami",
    "+object|encoding",
    "-object",
    "+xinfo|stream",
    "+memory|usage",
    "+GET",
    "-get",
    "+set",
    "-set",
    "+mget",
    "+mset",
    "+publish",
    "+subscribe",
    "+psubscribe",
    "-ping",
    "+ping",
    "+eval",
    "-eval",
    "+sort",
    "+sort_ro",
    "+zunionstore",
    "+bitfield",
    "+multi",
    "+exec",
    "+hello",
    "-auth",
    "+keys",
];
const CATEGORIES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];
const CALLS: &[&str] = &[
    "get a1",
    "get b1",
    "get c1",
    "GET a1",
    "get",
    "get a b",
    "set a1 v",
    "set b1 v",
    "set b1 v get",
    "mget a1 a2",
    "mget a1 b1",
    "mget a1 c1",
    "mset a1 1 b1 2",
    "ping",
    "select 0",
    "select 1",
    "config get port",
    "config set",
    "config nothing",
    "config",
    "nothing a",
    "publish a1 m",
    "publish b1 m",
    "publish c m",
    "spublish a1 m",
    "object encoding a1",
    "object encoding c1",
    "object freq",
    "sort a1",
    "sort a1 by b* get c*",
    "sort a1 store b1",
    "sort_ro a1 get #",
    "zunionstore a1 1 b1",
    "zunionstore a1 2 b1 c1",
    "zunionstore a1 0 b1",
    "bitfield a1 get u8 0",
    "bitfield a1 set u8 0 1",
    "eval return 1 a1",
    "acl whoami",
    "client id",
    "dbsize",
    "copy a1 b1",
    "rename a1 b1",
    "del a1",
    "getdel a1",
    "append b1 x",
    "strlen a1",
    "exists b1",
    "touch c1",
    "xread streams a1 0",
    "lmpop 1 a1 left",
    "migrate h 1 a1 0 1",
    "georadius a1 1 2 3 m store b1",
    "dump a1",
    "restore a1 0 x",
    "expire b1 100",
    "type a1",
    "memory usage a1",
    "debug sleep 0",
];
/// Those that do the same on both, whatever came before, and change nothing that would be told otherwise.
const RUN: &[&str] = &[
    "get a1",
    "get b1",
    "get c1",
    "set a1 v",
    "set b1 v",
    "set b1 v get",
    "mget a1 b1",
    "mset a1 1 b1 2",
    "ping",
    "select 0",
    "select 1",
    "publish a1 m",
    "publish c m",
    "spublish a1 m",
    "sort a2 by b* get c*",
    "sort a2",
    "sort_ro a2 get d*",
    "bitfield a1 get u8 0",
    "bitfield b1 set u8 0 1",
    "zunionstore a3 1 b3",
    "acl whoami",
    "eval return(1) 0",
    "eval return(1) 1 a1",
    "eval return(redis.call('get','a1')) 0",
    "eval return(redis.pcall('set','b1','1')) 0",
    "eval return(redis.acl_check_cmd('get','a1')) 0",
    "eval return(redis.acl_check_cmd('config','get','x')) 0",
    "eval return(redis.acl_check_cmd('none')) 0",
    "eval return(redis.call('publish','a1','m')) 0",
    "multi",
    "exec",
    "discard",
    "watch a1",
    "unwatch",
    "del c1",
    "rename none a1",
    "copy a1 a9",
    "getdel b1",
    "object encoding none",
    "config get maxmemory",
    "dbsize none",
    "auth alice secret",
    "auth bob other",
    "auth carol x",
    "auth nobody x",
    "auth default x",
    "auth secret",
    "auth",
    "hello 3 auth alice secret",
    "hello 2 auth bob wrong",
    "hello",
    "reset",
    "xread count 1 streams a4 0",
];

/// A user's rules, one to six of them.
fn rules(rng: &mut Rng) -> String {
    let one = |rng: &mut Rng| match rng.below(3) {
        0 => format!("{}@{}", pick(rng, &["+", "-"]), pick(rng, CATEGORIES)),
        _ => pick(rng, RULES).to_owned(),
    };
    let count = 1 + rng.below(6);
    let rules: Vec<String> = (0..count).map(|_| one(rng)).collect();
    rules.join(" ")
}

/// The words of rules, single commands in order: Redis tells them in that of a hash table. Those that Redis does not have are left
/// out.
fn ordered(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text)
        .replace('(', "( ")
        .replace(')', " )");
    let is_ours = |word: &str| {
        let name = word.trim_start_matches(['+', '-']);
        name == "compact"
            || name.starts_with("hexpire")
            || name.starts_with("hpexpire")
            || ["hpersist", "httl", "hpttl"].contains(&name)
    };
    let mut words: Vec<&str> = text.split(' ').filter(|word| !is_ours(word)).collect();
    let is_single = |word: &&str| word.starts_with(['+', '-']) && !word[1..].starts_with('@');
    for part in words.split_mut(|word| *word == ")") {
        let first = part.iter().position(is_single);
        let first = first.unwrap_or(part.len());
        part[first..].sort_unstable();
    }
    words.join(" ").into_bytes()
}

/// What has to be the same of a reply about users.
fn told(value: Value) -> Value {
    match value {
        Value::Bulk(text) if text.windows(4).any(|it| it == b"@all") => Value::Bulk(ordered(&text)),
        Value::Array(items) => Value::Array(without_times(items.into_iter().map(told).collect())),
        Value::Map(pairs) => {
            // Clients of the two have other numbers.
            let pairs = pairs
                .into_iter()
                .filter(|(name, _)| name.as_bytes() != Some(b"id"));
            let pairs = pairs.map(|(name, value)| (name, told(value)));
            Value::Map(pairs.collect())
        }
        other => other,
    }
}

/// An entry of the log without its age and the client.
fn without_times(mut items: Vec<Value>) -> Vec<Value> {
    let is = |item: Option<&Value>, name: &[u8]| item.and_then(Value::as_bytes) == Some(name);
    if let Some(at) = items.iter().position(|item| is(Some(item), b"id")) {
        items.remove(at + 1);
    }
    if is(items.first(), b"count") && is(items.get(10), b"age-seconds") {
        items.truncate(10);
    }
    items
}

fn same_told(both: &mut Both, line: &str, history: &[String]) {
    let [ours, theirs] = both.ask(line).map(|value| value.map(told));
    let from = history.len().saturating_sub(25);
    let history = history[from..].join("\n");
    let shown = |value: &Option<Value>| value.as_ref().map_or("closed".into(), Value::to_string);
    let (shown_ours, shown_theirs) = (shown(&ours), shown(&theirs));
    assert!(
        ours == theirs,
        "ours: {shown_ours}\nRedis's: {shown_theirs}\nto {line:?} after\n{history}"
    );
    if ours.is_none() {
        assert!(both.ours.is_closed && both.theirs.is_closed);
    }
}

#[test]
fn users_may_do_what_redis_lets_them_do() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let count: u64 = number("REDIS_COMMANDS").unwrap_or(6_000);
    let first: u64 = number("REDIS_SEED").unwrap_or(1);
    for seed in first..first + count.div_ceil(3_000) {
        let Some(pair) = Pair::start() else {
            return;
        };
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut clients = [0; 3].map(|_| Both::connect(&pair));
        let mut history = Vec::new();
        for _ in 0..count.min(3_000) {
            let user = pick(&mut rng, USERS);
            // The operator is the default user, who is to stay that.
            let other = pick(&mut rng, &USERS[..3]);
            let line = match rng.below(16) {
                0..4 => format!("acl setuser {other} {}", rules(&mut rng)),
                4 | 5 => format!("acl dryrun {user} {}", pick(&mut rng, CALLS)),
                6 => format!("acl getuser {user}"),
                7 if rng.one_in(6) => format!("acl deluser {other}"),
                7 if rng.one_in(4) => "acl log reset".to_owned(),
                7 => pick(&mut rng, &["acl list", "acl users", "acl log", "acl log 3"]).to_owned(),
                _ => pick(&mut rng, RUN).to_owned(),
            };
            let is_admin = line.starts_with("acl ") && !line.starts_with("acl whoami");
            let at = if is_admin {
                0
            } else {
                1 + rng.below(2) as usize
            };
            history.push(format!("{at}: {line}"));
            same_told(&mut clients[at], &line, &history);
            if clients[at].ours.is_closed {
                clients[at] = Both::connect(&pair);
            }
        }
    }
}

/// Lines that one client says, as Redis's tests of users say them.
const LINES: &[&str] = &[
    "acl whoami",
    "acl cat",
    "acl cat nothing",
    "acl nothing",
    "acl setuser",
    "acl setuser new",
    "acl getuser new",
    "acl getuser nobody",
    "acl list",
    "acl users",
    "acl deluser nobody new",
    "acl deluser default",
    "acl genpass 0",
    "acl genpass 5000",
    "acl genpass x",
    "acl log x",
    "acl log -1",
    "acl load",
    "acl save",
    "acl help",
    "acl dryrun nobody get",
    "acl dryrun default nothing",
    "acl dryrun default get",
    "acl dryrun default get a",
    "acl setuser u on (",
    "acl setuser u on (+get",
    "acl setuser u on (+get ~a)",
    "acl getuser u",
    "acl setuser u on >pw +acl",
    "auth u wrong",
    "acl log",
    "auth u pw",
    "acl whoami",
    "get a",
    "acl log 1",
    "auth",
    "auth a b c",
    "auth pw",
    "config set requirepass foobar",
    "acl setuser u +config",
    "config set requirepass foobar",
    "acl getuser default",
    "auth wrong",
    "auth foobar",
    "acl whoami",
    "acl setuser default nopass",
    "acl getuser default",
    "auth foobar",
    "config set acl-pubsub-default allchannels",
    "acl setuser v",
    "acl getuser v",
    "acl setuser v resetchannels (+get)",
    "acl getuser v",
    "acl setuser v reset",
    "acl getuser v",
    "config set acl-pubsub-default resetchannels",
    "acl setuser v reset",
    "acl list",
    "client kill user nobody",
    "client kill user v",
    "reset",
    "acl whoami",
];

#[test]
fn an_operator_is_told_what_redis_tells() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut both = Both::connect(&pair);
    let mut history = Vec::new();
    for line in LINES {
        history.push((*line).to_owned());
        same_told(&mut both, line, &history);
    }
    for bits in [1_usize, 4, 5, 256, 4_096] {
        let reply = both
            .ours
            .ask(&format!("acl genpass {bits}"))
            .expect("a password");
        let text = reply.as_bytes().expect("a text").to_vec();
        assert_eq!(text.len(), bits.div_ceil(4));
        assert!(text.iter().all(u8::is_ascii_hexdigit));
    }
    let default = || Both::connect(&pair);
    let passwords = [0; 2].map(|_| default().ours.ask("acl genpass"));
    assert_ne!(passwords[0], passwords[1]);
}

/// Goal: names with spaces or zeros are refused. Method: words that a line cannot have.
#[test]
fn names_have_no_spaces() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut commands = Vec::new();
    for name in ["a b", "a\0b", "a\tb", ""] {
        let mut command = words("acl setuser");
        command.push(name.as_bytes().to_vec());
        commands.push(command);
        for rule in ["~", "&", "%R~"] {
            let mut command = words("acl setuser u");
            command.push(format!("{rule}{name}").into_bytes());
            commands.push(command);
        }
    }
    let mut password = words("acl setuser u on");
    password.push(b">a b\0c".to_vec());
    let mut auth = words("auth u");
    auth.push(b"a b\0c".to_vec());
    commands.extend([password, auth, words("acl users")]);
    pair.same("2", &commands, |_| true);
}

#[test]
fn rights_that_go_away_are_gone_for_those_who_wait_and_listen() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut admin = Both::connect(&pair);
    let ok = |admin: &mut Both, line: &str| {
        assert!(matches!(admin.same(line), Some(Value::Simple(_))), "{line}");
    };
    // Commands that are queued.
    ok(&mut admin, "acl setuser u on nopass +@all ~* &*");
    let mut user = Both::connect(&pair);
    for line in ["auth u x", "multi", "set a 1", "publish c m", "get b"] {
        user.same(line);
    }
    ok(
        &mut admin,
        "acl setuser u -set resetchannels &d resetkeys ~a",
    );
    user.same("exec");
    assert_eq!(
        told(admin.ours.ask("acl log").expect("a log")),
        told(admin.theirs.ask("acl log").expect("a log"))
    );
    // Channels: of all kinds, kept and taken away.
    for (lines, rule, is_cut) in [
        (vec!["subscribe a1"], "resetchannels &a*", false),
        (vec!["subscribe a1"], "resetchannels &b*", true),
        (vec!["ssubscribe a1"], "resetchannels &b*", true),
        (vec!["psubscribe a*"], "resetchannels &a*", false),
        (vec!["psubscribe a*"], "resetchannels &a1", true),
        (vec!["psubscribe a1"], "resetchannels &a*", true),
        (
            vec!["subscribe a1", "psubscribe b*"],
            "resetchannels &a*",
            true,
        ),
        (vec!["subscribe a1"], "allchannels", false),
        (vec!["subscribe a1"], "resetchannels (&a*)", false),
        (vec!["subscribe a1"], "off", false),
    ] {
        ok(&mut admin, "acl setuser u reset on nopass +@all ~* &*");
        let mut user = Both::connect(&pair);
        user.same("auth u x");
        lines.iter().for_each(|line| {
            user.same(line);
        });
        ok(&mut admin, &format!("acl setuser u {rule}"));
        match is_cut {
            true => assert_eq!(user.hear(), None, "{lines:?} {rule}"),
            false => assert!(user.same("ping").is_some(), "{lines:?} {rule}"),
        }
    }
    // A user who is gone.
    ok(&mut admin, "acl setuser u reset on nopass +@all ~* &*");
    let mut user = Both::connect(&pair);
    user.same("auth u x");
    admin.same("acl deluser u");
    assert_eq!(user.hear(), None);
    ok(&mut admin, "acl setuser u on nopass +acl");
    let mut user = Both::connect(&pair);
    user.same("auth u x");
    assert_eq!(user.same("acl deluser u"), Some(Value::Integer(1)));
    assert_eq!(user.hear(), None, "the own client, after its reply");
}

/// Goal: who waits for a key when the right to it goes gets an error, and the key keeps its value. Redis 7.0 serves such a client;
/// later ones do not. Method: a client of ours alone.
#[test]
fn who_waits_for_a_key_needs_the_right_to_it_when_it_comes() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut admin = Both::connect(&pair).ours;
    admin.ask("acl setuser u on nopass +@all ~*");
    let mut user = Both::connect(&pair).ours;
    user.ask("auth u x");
    user.say(&words("blpop a 0"));
    while !admin
        .ask("client list")
        .expect("a list")
        .to_string()
        .contains("cmd=blpop")
    {}
    admin.ask("acl setuser u resetkeys ~b");
    assert_eq!(admin.ask("lpush a x"), Some(Value::Integer(1)));
    let reply = user.hear().expect("an error").to_string();
    assert!(reply.contains("NOPERM"), "{reply}");
    assert_eq!(admin.ask("llen a"), Some(Value::Integer(1)));
}

/// Goal: nothing but what authenticates runs before that. Method: a default user with a password, one who is off, and one without
/// rights.
#[test]
fn clients_authenticate_first() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut admin = Both::connect(&pair);
    admin.same("acl setuser operator on nopass +@all ~* &*");
    admin.same("auth operator x");
    let lines = [
        "ping",
        "nothing",
        "get",
        "get a",
        "multi",
        "exec",
        "discard",
        "watch a",
        "config get port",
        "config nothing",
        "hello",
        "hello 3",
        "hello 3 setname x",
        "hello 9",
        "hello 3 auth default wrong",
        "auth wrong",
        "auth default wrong",
        "client id",
        "command count",
        "subscribe a",
        "reset",
        "reset",
        "acl whoami",
        "debug x",
        "module list",
        "module load x",
        "auth a b c",
        "auth default pw",
        "acl whoami",
        "get a",
        "ping",
        "reset",
        "ping",
        "quit",
    ];
    for rules in [
        "resetpass >pw",
        "off",
        "on nopass -@all",
        "reset on nopass",
        "reset on nopass +ping",
        "reset",
    ] {
        admin.same(&format!("acl setuser default {rules}"));
        let mut client = Both::connect(&pair);
        for line in lines {
            same_told(&mut client, line, &[rules.to_owned()]);
        }
    }
    // Who came before stays who it is.
    admin.same("acl setuser default reset on nopass +@all ~* &*");
    let mut client = Both::connect(&pair);
    client.same("config set requirepass pw");
    for line in [
        "get a",
        "reset",
        "get a",
        "auth pw",
        "get a",
        "config set requirepass ''",
        "reset",
        "get a",
    ] {
        client.same(line);
    }
}
